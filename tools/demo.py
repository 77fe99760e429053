"""``make demo``: a zone on three small name servers, from import to deletion, with every step checked over DNS.

Everything runs in a temporary folder on free ports of the loopback address: ``designate-pool-all``, three times
``designate-pool-nameserver``, and the command ``designate-pool``.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from typing import Any

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import requests

from designate_pool.backoff import Backoff

ZONE = 'example.com.'
ZONE_FILE = """\
$ORIGIN example.com.
$TTL 3600
@       IN SOA  ns1.example.org. hostmaster.example.com. 2026010100 3600 600 86400 300
@       IN NS   ns1.example.org.
@       IN MX   10 mail
@       IN TXT  "v=spf1 mx -all"
www 300 IN A    192.0.2.10
www 300 IN AAAA 2001:db8::10
mail    IN A    192.0.2.25
ftp     IN CNAME www
"""
STEP_SECONDS = 20.0


class DemoFailed(Exception):
    """A step was not confirmed."""


def main() -> int:
    """Run the demo; 0 when every step was confirmed."""
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix='designate-pool-demo-') as name, contextlib.ExitStack() as stack:
            _run_steps(pathlib.Path(name), stack)
    except (DemoFailed, OSError, subprocess.SubprocessError, requests.RequestException) as error:
        print(f'\ndemo: FAILED: {error}', file=sys.stderr)
        return 1
    print(f'\nAll of it in {time.monotonic() - started:.1f} s.')
    print('demo: OK')
    return 0


def _run_steps(folder: pathlib.Path, stack: contextlib.ExitStack) -> None:
    servers = [DemoServer(folder, number) for number in (1, 2, 3)]
    for server in servers:
        stack.callback(server.stop)
        server.start()
    pool = DemoPool(folder, servers)
    stack.callback(pool.stop)
    pool.start()

    _say('A zone file is imported; two of the three servers must serve it (threshold_percentage = 66).')
    (folder / 'example.com.zone').write_text(ZONE_FILE, encoding='ascii')
    pool.command('zone', 'import', f'{folder}/example.com.zone', '--wait')
    pool.wait_for_all()
    for server in servers:
        server.must_answer('www.example.com.', 'A', '192.0.2.10')
        server.must_answer('example.com.', 'MX', '10 mail.example.com.')

    _say('A record is changed.')
    pool.command('recordset', 'set', ZONE, 'www', 'A', '--record', '192.0.2.20', '--wait')
    pool.wait_for_all()
    for server in servers:
        server.must_answer('www.example.com.', 'A', '192.0.2.20')

    dead = servers[1]
    _say(f'{dead.label} is stopped, and the record is changed again: two of three are enough.')
    dead.stop()
    pool.command('recordset', 'set', ZONE, 'www', 'A', '--record', '192.0.2.30', '--wait')
    _say(f'What {dead.label} lacks:')
    _until(lambda: pool.states()[dead.label] == 'ERROR', f'{dead.label} is shown in ERROR')
    if dead.label not in pool.command('zone', 'explain', ZONE):
        raise DemoFailed(f'zone explain does not name {dead.label}')
    for server in servers:
        if server is not dead:
            server.must_answer('www.example.com.', 'A', '192.0.2.30')

    _say(f'{dead.label} is started again; it has lost its zones.')
    dead.start()
    pool.wait_for_all()
    dead.must_answer('www.example.com.', 'A', '192.0.2.30')

    _say('The zone is deleted.')
    pool.command('zone', 'delete', ZONE, '--wait')
    for server in servers:
        server.must_refuse('www.example.com.', 'A')


class DemoServer:
    """One ``designate-pool-nameserver``."""

    def __init__(self, folder: pathlib.Path, number: int) -> None:
        self.id = uuid.uuid4()
        self._log = folder / f'nameserver-{number}.log'
        self._secret_file = folder / f'nameserver-{number}.secret'
        self._secret_file.write_text(secrets.token_hex(16), encoding='ascii')
        self.port, self._control_port = _free_port(), _free_port()
        self.label = f'secondary:127.0.0.1:{self.port}'
        self._process: subprocess.Popen[str] | None = None

    @property
    def section(self) -> str:
        return (f'[backend:secondary:{self.id}]\nhost = 127.0.0.1\nport = {self.port}\n'
                f'control_port = {self._control_port}\ncontrol_secret = file:{self._secret_file}\n')

    def start(self) -> None:
        with self._log.open('a', encoding='utf-8') as log:
            self._process = subprocess.Popen(
                [sys.executable, '-m', 'designate_pool.cmd.programs.nameserver', '--listen', f'127.0.0.1:{self.port}',
                 '--control', f'127.0.0.1:{self._control_port}', '--secret-file', str(self._secret_file)],
                stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        if not ready:
            raise DemoFailed(f'{self.label} does not start:\n{self._log.read_text(encoding="utf-8")}')
        print(f'{self.label} runs (process {json.loads(ready)["pid"]})')

    def stop(self) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None

    def must_answer(self, name: str, kind: str, wanted: str) -> None:
        """Ask the server over DNS, show the answer, and require it."""
        answer = self._ask(name, kind)
        texts = sorted(rdata.to_text() for rrset in answer.answer for rdata in rrset
                       if rrset.rdtype == dns.rdatatype.from_text(kind))
        print(f'  {self.label}  {name} {kind} -> {", ".join(texts) or dns.rcode.to_text(answer.rcode())}')
        if texts != [wanted] or not answer.flags & dns.flags.AA:
            raise DemoFailed(f'{self.label} answers {texts} for {name} {kind}, wanted {wanted}')

    def must_refuse(self, name: str, kind: str) -> None:
        answer = self._ask(name, kind)
        print(f'  {self.label}  {name} {kind} -> {dns.rcode.to_text(answer.rcode())}')
        if answer.rcode() != dns.rcode.REFUSED:
            raise DemoFailed(f'{self.label} still answers for {name}')

    def _ask(self, name: str, kind: str) -> dns.message.Message:
        try:
            return dns.query.udp(dns.message.make_query(name, kind), '127.0.0.1', port=self.port, timeout=5)
        except dns.exception.Timeout as error:
            raise DemoFailed(f'{self.label} does not answer for {name}') from error


class DemoPool:
    """``designate-pool-all``, and requests to it."""

    def __init__(self, folder: pathlib.Path, servers: list[DemoServer]) -> None:
        self._log = folder / 'designate-pool-all.log'
        self._config = folder / 'designate-pool.conf'
        self._servers = servers
        self._url = f'http://127.0.0.1:{(api_port := _free_port())}'
        self._config.write_text('\n'.join([
            '[DEFAULT]', f'state_path = {folder}',
            '[database]', f'connection = sqlite:///{folder}/designate-pool.sqlite',
            '[service:pool_manager]', 'threshold_percentage = 66', 'poll_timeout = 1', 'poll_retry_interval = 0.5',
            'circuit_probe_interval = 0.5',
            '[service:minidns]', f'listen = 127.0.0.1:{_free_port()}',
            '[service:api]', f'listen = 127.0.0.1:{api_port}',
            *(server.section for server in servers)]), encoding='utf-8')
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._run('designate_pool.cmd.manage.app', '--config-file', str(self._config), 'database', 'upgrade')
        self._run('designate_pool.cmd.manage.app', '--config-file', str(self._config), 'pool', 'set', 'default',
                  '--name-server', 'ns1.example.org.', '--name-server', 'ns2.example.org.')
        with self._log.open('ab') as log:
            self._process = subprocess.Popen(
                [sys.executable, '-m', 'designate_pool.cmd.programs.daemons', 'all', '--config-file',
                 str(self._config)],
                stdout=log, stderr=log)
        _until(self._healthy, f'designate-pool-all is healthy (its log: {self._log})')
        print(f'designate-pool-all runs at {self._url} (process {self._process.pid})')

    def stop(self) -> None:
        if self._process is not None and _end(self._process) != 0:
            print(self._log.read_text(encoding='utf-8')[-4000:], file=sys.stderr)

    def command(self, *arguments: str) -> str:
        """Show a command of ``designate-pool`` and its progress, or else what it prints; it is returned."""
        print(f'$ designate-pool {" ".join(arguments)}')
        printed = self._run('designate_pool.cli', '--url', self._url, *arguments)
        print(''.join(f'  {line}'.rstrip() + '\n' for line in printed.rstrip().splitlines()), end='')
        return printed

    def states(self) -> dict[str, str]:
        """``SUCCESS`` of each server that serves the zone at its serial, else another status, by the server's label."""
        zone, = requests.get(f'{self._url}/v2/zones', {'name': ZONE}, timeout=30).json()['zones']
        servers = requests.get(f'{self._url}/v2/zones/{zone["id"]}/servers', timeout=30).json()['servers']
        return {server['name']: server['status'] if server['status'] == 'ERROR' or server['current'] else 'PENDING'
                for server in servers}

    def wait_for_all(self) -> None:
        started = time.monotonic()
        _until(lambda: set(self.states().values()) == {'SUCCESS'}, 'all servers serve the zone')
        print(f'  all {len(self._servers)} servers serve it after {round(1000 * (time.monotonic() - started))} ms more')

    def _healthy(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise DemoFailed(f'designate-pool-all has ended:\n{self._log.read_text(encoding="utf-8")[-4000:]}')
        with contextlib.suppress(requests.ConnectionError):
            return requests.get(f'{self._url}/healthz', timeout=5).status_code == 200
        return False

    @staticmethod
    def _run(module: str, *arguments: str) -> str:
        done = subprocess.run([sys.executable, '-m', module, *arguments], capture_output=True, text=True, timeout=60,
                              check=False)
        if done.returncode:
            raise DemoFailed(f'{module} {" ".join(arguments)} ended with {done.returncode}: {done.stderr}')
        return done.stderr or done.stdout


def _say(text: str) -> None:
    print(f'\n* {text}')


def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + STEP_SECONDS
    for pause in Backoff(0.005, 1.1, cap=0.25).delays():
        if condition():
            return
        if time.monotonic() > end:
            raise DemoFailed(f'not within {STEP_SECONDS:g} s: {what}')
        time.sleep(pause)


def _end(process: subprocess.Popen[Any]) -> int:
    process.terminate()
    try:
        return process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _free_port() -> int:
    """A port that nothing on the loopback address uses, neither over TCP nor over UDP."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp, contextlib.suppress(OSError):
            tcp.bind(('127.0.0.1', 0))
            udp.bind(tcp.getsockname())
            return int(tcp.getsockname()[1])


if __name__ == '__main__':
    sys.exit(main())
