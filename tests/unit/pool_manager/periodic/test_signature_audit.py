"""The programs that the audit of signatures asks."""

from __future__ import annotations

import logging
import os
import pathlib
import subprocess
import sys

import pytest

from designate_pool.deadline import Deadline
from designate_pool.pool_manager.periodic import signature_audit
from testing.processes import binary

AUDIT = '''
import sys
from designate_pool import runtime
if sys.argv[1] == 'eventlet':
    runtime.patch()
from designate_pool.deadline import Deadline
from designate_pool.pool_manager.periodic import signature_audit
records = [('example.com.', 'SOA', 300, bytes(22))] * 5000
deadline = Deadline(float(sys.argv[2]))
print(signature_audit._defects_by_program(records, deadline), deadline.is_over)
'''


@pytest.mark.parametrize('runtime', ['threading', 'eventlet'])
@pytest.mark.parametrize(('does', 'seconds', 'why'), [
    ('exec sleep 60', 6, 'timed out after'), ('exec 0<&-; kill -9 $$', 60, 'ended with -9')])
def test_a_program_that_hangs_or_crashes_ends_no_audit_and_leaves_it_time(
        tmp_path: pathlib.Path, runtime: str, does: str, seconds: int, why: str) -> None:
    program = tmp_path / 'dnssec-verify'
    program.write_text(f'#!/bin/sh\n{does}\n')
    program.chmod(0o755)
    done = subprocess.run([sys.executable, '-c', AUDIT, runtime, str(seconds)], capture_output=True, text=True,
                          timeout=100, check=False, env={**os.environ, 'PATH': f'{tmp_path}:{os.environ["PATH"]}'})
    assert done.stdout == '[] False\n' and why in done.stderr, done.stderr


@pytest.mark.parametrize(('name', 'why'), [
    ('dnssec-verify', 'invalid NS owner name (wildcard)'), ('ldns-verify-zone', 'no SOA in the zone')])
def test_a_zone_that_a_program_cannot_read_is_not_told_as_one_that_is_not_valid(
        tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str,
        why: str) -> None:
    (tmp_path / name).symlink_to(binary(name))
    monkeypatch.setenv('PATH', str(tmp_path))
    records = [('*.example.com.', 'NS', 300, b'\0')]
    if name == 'dnssec-verify':
        records.insert(0, ('example.com.', 'SOA', 300, bytes(22)))
    with caplog.at_level(logging.WARNING):
        assert signature_audit._defects_by_program(records, Deadline(60)) == []
    assert why in caplog.text
