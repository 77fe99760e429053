"""The files in ``etc`` for systemd, logrotate and nftables, each tried with the program that reads it."""

from __future__ import annotations

import configparser
import getpass
import grp
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

import pytest
import requests
from oslo_config import cfg

from designate_pool.config import load
from testing.processes import binary, free_port, patience, running, wait_until

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


RULES = pathlib.Path(__file__).resolve().parents[3] / 'etc' / 'nftables'
HOSTS = ('192.0.2.1', '2001:db8::1')
MANAGERS = ('192.0.2.10', '2001:db8::10')
SERVER, SERVER6 = '192.0.2.53', '2001:db8::53'
USER = '203.0.113.7'
STRANGER, STRANGER6 = '192.0.2.99', '2001:db8::99'

#: Makes a machine with the rules and a neighbour, joined by a wire, and lets one of them try to reach the other.  The
#: rules are loaded twice, as it is done after a change.  The neighbour is there for as long as all of it may take, and
#: ends by itself: where this is killed, no trap ends it.
NETWORK = '''
unshare --net sleep "$LIFETIME" & peer=$!
trap 'kill $peer' EXIT
until [ "$(readlink /proc/$peer/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.02; done
neighbour="nsenter --net=/proc/$peer/ns/net"
ip link add wire type veth peer name wire netns $peer
for address in $HOST; do ip address add $address dev wire; done
for address in $NEIGHBOURS; do $neighbour ip address add $address dev wire; done
ip link set wire up
$neighbour ip link set wire up
for address in $NEIGHBOURS; do ip route add $address dev wire; done
for address in $HOST; do $neighbour ip route add $address dev wire; done
nft --file "$RULES"
nft --file "$RULES"
case $WHO in
    neighbours) $neighbour "$PYTHON" -c "$TRY" "$NEIGHBOURS" "$HOST" "$PORTS" ;;
    host) "$PYTHON" -c "$TRY" "$HOST" "$NEIGHBOURS" "$PORTS" ;;
esac
'''

#: Nothing listens, so what passes the rules is refused by the other's TCP, and what does not pass is not answered.
#: A new address is not usable at once; the port 9, which no rule is about, tells when it is.
TRY = '''
import itertools, json, os, socket, sys, time
sources, targets, ports = (text.split() for text in sys.argv[1:])

def passes(source, target, port, seconds):
    try:
        socket.create_connection((target, int(port)), seconds, (source, 0))
    except ConnectionRefusedError:
        return True
    except OSError:
        return False

found = []
for source, target in itertools.product(sources, targets):
    if (":" in source) == (":" in target):
        end = time.monotonic() + float(os.environ["PATIENCE"])
        while not passes(source, target, 9, 1):
            assert time.monotonic() < end, f"{source} does not reach {target} at all"
            time.sleep(0.05)
        found += [[source, target, int(port)] for port in ports if passes(source, target, port, 0.5)]
print(json.dumps(found))
'''


def passing(rules: str, who: str, neighbours: Sequence[str], ports: Sequence[int]) -> list[tuple[str, str, int]]:
    """Source, target and port of the TCP connections that get through to the other side.

    :param who: ``host``, the machine with these rules, or ``neighbours``
    """
    command = ['unshare', '--net', 'sh', '-euc', NETWORK]
    if os.geteuid() != 0:
        command.insert(1, '--map-root-user')
    seconds = patience(90)
    environment = {'PATH': '/usr/sbin:/sbin:/usr/bin:/bin', 'RULES': str(RULES / rules), 'WHO': who,
                   'HOST': ' '.join(HOSTS), 'NEIGHBOURS': ' '.join(neighbours), 'PORTS': ' '.join(map(str, ports)),
                   'PYTHON': sys.executable, 'TRY': TRY, 'PATIENCE': str(patience(20)), 'LIFETIME': str(seconds)}
    for program in ('unshare', 'nsenter', 'ip', 'nft'):
        binary(program)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr
    return [tuple(each) for each in json.loads(done.stdout)]


def from_neighbours(rules: str, neighbours: Sequence[str], ports: Sequence[int]) -> list[tuple[str, int]]:
    return [(source, port) for source, _, port in passing(rules, 'neighbours', neighbours, ports)]


def test_minidns_is_for_servers_and_the_api_for_users() -> None:
    neighbours = [SERVER, SERVER6, USER, STRANGER, STRANGER6]
    assert from_neighbours('designate-pool.nft', neighbours, [5354, 9001, 22]) == [
        (SERVER, 5354), (SERVER, 22), (SERVER6, 5354), (SERVER6, 22), (USER, 9001), (USER, 22), (STRANGER, 22),
        (STRANGER6, 22)]


def test_control_channels_lead_to_servers_only() -> None:
    found = passing('designate-pool.nft', 'host', [SERVER, SERVER6, STRANGER, STRANGER6], [53, 953])
    assert {(target, port) for _, target, port in found} == {
        (SERVER, 53), (SERVER, 953), (SERVER6, 53), (SERVER6, 953), (STRANGER, 53), (STRANGER6, 53)}


def test_a_server_is_asked_by_everyone_and_commanded_by_pool_managers() -> None:
    assert from_neighbours('name-server.nft', [*MANAGERS, STRANGER, STRANGER6], [53, 953]) == [
        (MANAGERS[0], 53), (MANAGERS[0], 953), (MANAGERS[1], 53), (MANAGERS[1], 953), (STRANGER, 53), (STRANGER6, 53)]


def test_no_example_was_forgotten() -> None:
    assert sorted(path.name for path in RULES.iterdir()) == ['designate-pool.nft', 'name-server.nft']
