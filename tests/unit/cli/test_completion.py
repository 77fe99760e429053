"""What Tab offers: asked of the command itself, and of a real bash."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from designate_pool.cli.command_table import COMMANDS


def offered(run, *words):
    ran = run('complete', '--words', '--', *words)
    assert (ran.code, ran.err) == (0, '')
    return ran.out.splitlines()


@pytest.mark.parametrize('words, expected', [
    (('zon',), ['zone']),
    (('zone', 'expl'), ['explain']),
    (('zone', 'import', 'l'), ['list']),
    (('--url', 'http://192.0.2.1', 'zone', 'se'), ['servers', 'set']),
    (('--all-projects', 'quota', ''), ['set', 'show', 'unset']),
    (('zone', 'list', '--sta'), ['--status']),
    (('zone', 'list', '--status', 'E'), ['ERROR']),
    (('zone', 'list', '-f', 'j'), ['json']),
    (('zone', 'list', '--all-pro'), ['--all-projects']),
    (('tsigkey', 'create', 'k', '--algorithm', 'hmac-sha5'), ['hmac-sha512']),
    (('nothing', 'like', 'that'), []),
    (('recordset', 'create', 'example.com', 'www', 'AA'), ['AAAA']),
])
def test_words(run, words, expected):
    assert offered(run, *words) == expected


def test_the_first_word(run):
    assert set(offered(run, '')) == {name.split()[0] for name in COMMANDS}


def test_names_of_zones_servers_and_recordsets(run, zone):
    run('recordset', 'create', 'example.com', 'www', 'A', '--record', '192.0.2.1')
    assert offered(run, 'zone', 'show', 'exa') == ['example.com.']
    assert offered(run, 'zone', 'show', 'other') == []
    assert offered(run, 'tsigkey', 'create', 'k', '--zone', 'e') == ['example.com.']
    assert offered(run, 'server', 'show', 'fake:192.0.2.2') == ['fake:192.0.2.2:53']
    assert offered(run, 'recordset', 'show', 'example.com', 'w') == ['www']


def test_clouds(run, tmp_path, monkeypatch):
    (tmp_path / 'clouds.yaml').write_text('clouds: {production: {}, laboratory: {}}')
    monkeypatch.setenv('DESIGNATE_POOL_CONFIG', str(tmp_path / 'clouds.yaml'))
    assert offered(run, '--cloud', 'p') == ['production']


def test_nothing_is_written_where_the_api_is_away(run):
    ran = run('complete', '--words', '--', 'zone', 'show', '', url='http://127.0.0.1:1')
    assert (ran.code, ran.out, ran.err) == (0, '', '')


@pytest.mark.parametrize('line, expected', [
    ('pool-command zone expl', ['explain']),
    ('pool-command zone show exa', ['example.com.']),
    ('pool-command server show fake:192.0.2.2', ['192.0.2.2:53']),  # bash has ended the word at the colon
])
def test_in_bash(run, api, zone, tmp_path, line, expected):
    script = tmp_path / 'pool-command'
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m designate_pool.cli "$@"\n')
    script.chmod(0o755)
    function = run('complete', '--name', 'pool-command').out
    asked = f"""{function}
        COMP_LINE='{line}' COMP_POINT={len(line)}
        _complete_pool_command
        printf '%s\\n' "${{COMPREPLY[@]}}"
        complete -p pool-command"""
    environ = {**os.environ, 'DESIGNATE_POOL_URL': api, 'PATH': f'{tmp_path}:{os.environ["PATH"]}'}
    ran = subprocess.run(['bash', '--norc', '-c', asked], capture_output=True, text=True, timeout=60, env=environ)
    *found, registered = ran.stdout.splitlines()
    assert (found, ran.stderr) == (expected, '')
    assert registered == 'complete -o default -F _complete_pool_command pool-command'
