"""How the outcome of Designate's tests is judged, and that the list of those that do not pass is whole."""

from __future__ import annotations

import contextlib
import pathlib
import signal
import subprocess
import sys
from collections.abc import Mapping

import psutil
import pytest

from testing.processes import wait_until
from tests.designate.__main__ import FAILED, MISSING, PASSED, SKIPPED, _known, _outcomes, _report

TABLE = '''\
test,status,start_time,stop_time
designate_tempest_plugin.tests.api.v2.test_zones.ZonesTest.test_show[id-1],success,,
designate_tempest_plugin.tests.api.v2.test_zones.ZonesTest.test_create[id-2],fail,,
setUpClass (designate_tempest_plugin.tests.api.v2.test_ptrs.Ptr),skip,,
'''


def test_a_test_without_an_outcome_has_that_of_its_class() -> None:
    zones, ptr = 'api.v2.test_zones.ZonesTest', 'api.v2.test_ptrs.Ptr'
    listed = [f'{zones}.test_show', f'{zones}.test_create', f'{zones}.test_list', f'{ptr}.test_set']
    assert list(_outcomes(listed, TABLE).values()) == [PASSED, FAILED, MISSING, SKIPPED]


@pytest.mark.parametrize(('outcomes', 'known', 'code', 'told'), [
    ({'a': PASSED, 'b': FAILED, 'c': SKIPPED}, {'b': 'why', 'c': 'why'}, 0, '1 passed'),
    ({'a': FAILED}, {}, 1, 'These do not pass, and are not expected to fail:\n  a: failed'),
    ({'a': MISSING}, {}, 1, 'a: did not run'),
    ({'a': PASSED}, {'a': 'why'}, 1, 'These pass, and are expected to fail:\n  a'),
    ({'a': PASSED}, {'a': 'Varies: why'}, 0, '1 passed'),
    ({'a': PASSED}, {'b': 'why'}, 1, 'There are no such tests:\n  b'),
    ({}, {}, 1, 'No test was selected.'),
], ids=['as expected', 'a failure', 'not run', 'a pass', 'now and then', 'none', 'nothing'])
def test_the_verdict(outcomes: Mapping[str, str], known: Mapping[str, str], code: int, told: str,
                     capsys: pytest.CaptureFixture[str]) -> None:
    assert _report(outcomes, known) == code
    assert told in capsys.readouterr().out


def test_each_test_that_does_not_pass_is_listed_once_with_a_reason() -> None:
    listed = list(_known())
    assert len(dict(listed)) == len(listed)
    assert all(why.endswith('.') and name.startswith(('api.', 'client.', 'scenario.')) for name, why in listed)


def test_all_that_runs_is_ended_with_the_command(tmp_path: pathlib.Path) -> None:
    venv, folder, names = tmp_path / 'venv', tmp_path / 'run', tmp_path / 'names'
    (venv / 'bin').mkdir(parents=True)
    (venv / 'lib' / 'python3' / 'site-packages').mkdir(parents=True)
    program = venv / 'bin' / 'stestr'
    program.write_text(f'#!/bin/sh\ncase $1 in list) echo a.test;; run) touch {names}; sleep 600 & wait;; esac\n')
    program.chmod(0o755)
    with subprocess.Popen([sys.executable, '-m', 'tests.designate', '--tempest', str(venv), '--folder', str(folder)],
                          stdout=subprocess.DEVNULL) as command:
        started: list[psutil.Process] = []
        try:
            wait_until(names.exists, 'the tests run', 60)
            started = psutil.Process(command.pid).children(recursive=True)
            assert any(str(program) in each.cmdline() for each in started)
            command.send_signal(signal.SIGTERM)
            assert command.wait(60) == 1
            _, alive = psutil.wait_procs(started, 30)
            assert not alive
        finally:
            command.kill()
            for each in started:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
