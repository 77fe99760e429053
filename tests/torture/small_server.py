"""The project's own small name server, with its scripted faults, in a network namespace."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

import dns.exception

from designate_pool.model import Endpoint, TsigKey
from testing.daemon import Daemon
from testing.processes import Process, binary, free_port
from tests.fixtures.nameservers import ControlClient
from tests.torture.network import Host

_SECRET = 'only for tests'
#: Its control socket is on loopback alone; this lets others reach it there.
_FORWARD = '''
add table ip control
add chain ip control prerouting {{ type nat hook prerouting priority dstnat; }}
add rule ip control prerouting tcp dport {port} dnat to 127.0.0.1:{port}
'''


class SmallServer(Daemon):
    """A ``designate-pool-nameserver`` that keeps its zones."""

    driver = 'secondary'

    def __init__(self, folder: pathlib.Path, host: Host, key: TsigKey) -> None:
        self.folder = folder
        self.host = host.address
        self.port = free_port(self.host)
        self._control_port = free_port(self.host)
        self.control = ControlClient(Endpoint(self.host, self._control_port), _SECRET)
        (folder / 'secret').write_text(_SECRET + '\n')
        (folder / 'key').write_text(f'{key.name}:{key.algorithm}:{key.secret}\n')
        subprocess.run([*host.prefix, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet'], check=True,
                       timeout=60)
        subprocess.run([*host.prefix, binary('nft'), '-f', '-'], input=_FORWARD.format(port=self._control_port),
                       text=True, check=True, timeout=60)

    def start(self) -> SmallServer:
        """Start it; returns when it answers."""
        return self._start(Process([
            *self.prefix, sys.executable, '-m', 'designate_pool.cmd.programs.nameserver',
            '--listen', f'{self.host}:{self.port}', '--control', f'127.0.0.1:{self._control_port}',
            '--secret-file', str(self.folder / 'secret'), '--tsig-key-file', str(self.folder / 'key'),
            '--state', str(self.folder / 'state'), '--retry', '2'], self._log_file))

    def _lose_zones(self) -> None:
        shutil.rmtree(self.folder / 'state', ignore_errors=True)

    def _access(self, primaries: Sequence[Endpoint], key_name: str, given: Mapping[str, object]) -> dict[str, object]:
        return {'control_port': self._control_port, 'control_secret': _SECRET}

    def _answers(self) -> bool:
        with contextlib.suppress(dns.exception.Timeout):
            self.query('version.bind', 'TXT', timeout=0.2)
            return True
        return False
