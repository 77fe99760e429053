"""The files in ``etc`` for systemd and logrotate, each tried with the program that reads it."""

from __future__ import annotations

import configparser
import getpass
import grp
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import requests
from oslo_config import cfg

from designate_pool.config import load
from testing.processes import binary, free_port, running, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[3]
ETC = ROOT / 'etc'
UNITS = sorted(path.name for path in (ETC / 'systemd').glob('*.service'))
#: As systemd-analyze rates what a service may do, in tenths: 100 is everything.
EXPOSURE = 25


def unit(path: pathlib.Path) -> configparser.ConfigParser:
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read(path)
    return found


@pytest.fixture(scope='module')
def machine(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The root of a machine with the units, and with the programs that the package installs."""
    root = tmp_path_factory.mktemp('machine')
    shutil.copytree(ETC / 'systemd', root / 'etc' / 'systemd' / 'system')
    setup = configparser.ConfigParser()
    setup.read(ROOT / 'setup.cfg')
    scripts = setup['options.entry_points']['console_scripts'].strip().splitlines()
    for program in ['bin/kill', *(f'opt/designate-pool/bin/{line.split(" = ")[0]}' for line in scripts)]:
        (root / program).parent.mkdir(parents=True, exist_ok=True)
        (root / program).write_text('#!/bin/sh\n')
        (root / program).chmod(0o755)
    return root


def analyze(machine: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([binary('systemd-analyze'), f'--root={machine}', *arguments], capture_output=True, text=True,
                          timeout=60, check=False)


def verify(machine: pathlib.Path, name: str) -> subprocess.CompletedProcess[str]:
    # That the units of the system itself are not on this machine is no mistake of ours.
    return analyze(machine, '--man=no', '--recursive-errors=no', 'verify', name)


@pytest.mark.parametrize('name', UNITS)
def test_systemd_understands_a_unit(machine: pathlib.Path, name: str) -> None:
    done = verify(machine, name)
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')


@pytest.mark.parametrize('name', UNITS)
def test_a_unit_may_do_little(machine: pathlib.Path, name: str) -> None:
    done = analyze(machine, 'security', '--offline=yes', f'--threshold={EXPOSURE}', name)
    assert done.returncode == 0, done.stdout


def test_there_is_a_unit_for_every_service_and_they_differ_in_little() -> None:
    assert UNITS == [f'designate-pool-{name}.service' for name in (
        'all', 'api', 'central', 'manager', 'minidns', 'sink')]
    alike = []
    for name in UNITS:
        service = dict(unit(ETC / 'systemd' / name)['Service'])
        assert service.pop('ExecStart') == (f'/opt/designate-pool/bin/{name.removesuffix(".service")}'
                                            ' --config-file /etc/designate-pool/designate-pool.conf')
        alike.append({key: value for key, value in service.items() if 'Capabilit' not in key})
    assert alike == alike[:1] * len(UNITS)


def test_the_state_is_where_the_configuration_looks_for_it() -> None:
    conf = cfg.ConfigOpts()
    load.load(conf, [], config_files=[])
    service = unit(ETC / 'systemd' / 'designate-pool-all.service')['Service']
    assert load.read_settings(conf).process.state_path == f'/var/lib/{service["StateDirectory"]}'


def test_a_running_program_goes_on_in_a_new_file_when_its_log_is_rotated(tmp_path: pathlib.Path) -> None:
    logs, api = tmp_path / 'logs', f'127.0.0.1:{free_port()}'
    logs.mkdir()
    config = tmp_path / 'pool.conf'
    config.write_text(f'[DEFAULT]\nstate_path = {tmp_path}/state\nlog_dir = {logs}\n'
                      f'[service:api]\nlisten = {api}\n[service:minidns]\nlisten = 127.0.0.1:{free_port()}\n'
                      '[backend:fake:2a1f6b7c-5f5e-4a57-9b0e-3f6a3b1f7d01]\nhost = 127.0.0.1\n')
    program = [str(pathlib.Path(sys.executable).parent / 'designate-pool-all'), '--config-file', str(config)]
    log = logs / 'designate-pool-all.log'

    def answers() -> bool:
        return requests.get(f'http://{api}/healthz', timeout=10).ok

    for earlier in (['.1'], ['.1', '.2.gz']):
        with running(program, tmp_path / 'output', answers):
            wait_until(lambda: 'stopping' not in log.read_text().splitlines()[-1], 'it has written to its log')
            begun = log.read_text()
            rotate(tmp_path, logs)
            assert not log.exists()
            assert (logs / f'{log.name}.1').read_text().startswith(begun)
            assert sorted(path.name for path in logs.iterdir()) == [f'{log.name}{end}' for end in earlier]
        assert 'stopping' in log.read_text()


def rotate(folder: pathlib.Path, logs: pathlib.Path) -> None:
    """Let logrotate do now what it would do tonight."""
    owner = f'{getpass.getuser()} {grp.getgrgid(os.getegid()).gr_name}'
    rules = (ETC / 'logrotate' / 'designate-pool').read_text()
    rules = rules.replace('/var/log/designate-pool/', f'{logs}/').replace('designate-pool designate-pool', owner)
    path = folder / 'logrotate.conf'
    path.write_text(rules)
    path.chmod(0o644)
    done = subprocess.run([binary('logrotate'), '--force', f'--state={folder}/logrotate.state', str(path)],
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, '')


def test_the_logs_are_rotated_where_systemd_makes_their_folder() -> None:
    service = unit(ETC / 'systemd' / 'designate-pool-all.service')['Service']
    rules = (ETC / 'logrotate' / 'designate-pool').read_text()
    assert re.findall(r'^(/\S+) \{', rules, re.MULTILINE) == [f'/var/log/{service["LogsDirectory"]}/*.log']
    assert f'su {service["User"]} {service["Group"]}\n' in rules
