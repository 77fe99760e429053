"""A pool that octoDNS feeds by its own commands."""

from __future__ import annotations

import pathlib
import subprocess
import textwrap
from collections.abc import Iterator

import pytest

from testing import warm
from tests.fixtures.bind_pool import BindPool

RECORDS = r'''
? ''
: - type: CAA
    value: {flags: 0, tag: issue, value: ca.example.net}
  - type: MX
    value: {exchange: mail.example.net., preference: 10}
  - type: TXT
    values: [v=spf1 -all, v=DKIM1\; k=rsa\; p=MIGf]
'*.wild':
  type: CNAME
  value: www.{zone}
_443._tcp.www:
  type: TLSA
  value: {certificate_usage: 3, selector: 1, matching_type: 0, certificate_association_data: 0123456789abcdef}
_sip._tcp:
  type: SRV
  value: {priority: 0, weight: 5, port: 5060, target: sip.example.net.}
alias:
  type: CNAME
  value: www.{zone}
host:
  - type: LOC
    value: {altitude: -2, lat_degrees: 52, lat_direction: N, lat_minutes: 22, lat_seconds: 23, long_degrees: 4,
            long_direction: E, long_minutes: 53, long_seconds: 32, precision_horz: 10000, precision_vert: 10, size: 1}
  - type: NAPTR
    value: {flags: U, order: 100, preference: 10, regexp: '!^.*$!sip:info@example.com!', replacement: .,
            service: E2U+sip}
  - type: SSHFP
    value: {algorithm: 4, fingerprint: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef,
            fingerprint_type: 2}
old:
  type: A
  value: 192.0.2.9
svc:
  type: HTTPS
  value: {svcparams: {alpn: [h2, h3], ipv4hint: [192.0.2.1]}, svcpriority: 1, targetname: .}
www:
  - ttl: 60
    type: A
    values: [192.0.2.1, 192.0.2.2]
  - type: AAAA
    value: 2001:db8::1
'''


class OctodnsPool(BindPool):
    """A pool of one BIND, and octoDNS with a folder of YAML.

    :ivar yaml: where octoDNS's zones are
    """

    def __init__(self, folder: pathlib.Path) -> None:
        super().__init__(folder)
        self.yaml = folder / 'yaml'
        self.yaml.mkdir(parents=True)
        self.config = folder / 'octodns.yaml'

    def write(self, name: str, text: str = RECORDS) -> None:
        (self.yaml / f'{name}yaml').write_text(text.replace('{zone}', name))

    def configure(self, *zones: str, url: str = '', more: str = '') -> None:
        listed = ''.join(f'  {name}:\n    sources: [config]\n    targets: [pool]\n' for name in zones)
        self.config.write_text(textwrap.dedent(f'''
            providers:
              config:
                class: octodns.provider.yaml.YamlProvider
                directory: {self.yaml}
                enforce_order: false
                escaped_semicolons: true
              pool:
                class: designate_pool.octodns_provider.DesignatePoolProvider
                url: {url or self.url}
                email: dns@example.com
                {more}
              dumped:
                class: octodns.provider.yaml.YamlProvider
                directory: {self.folder / 'dumped'}
                escaped_semicolons: true
            zones:
            ''') + listed)

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One of octoDNS's commands."""
        module = command.replace('octodns-', 'octodns.cmds.')
        return warm.run(module, '--config-file', str(self.config), *arguments)

    def sync(self, *arguments: str) -> str:
        """What ``octodns-sync`` logs; it has to end well."""
        done = self.run('octodns-sync', *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def zone(self, name: str) -> dict[str, object]:
        """The zone as the API has it, once it is served."""
        found = self.stack.request('GET', f'/v2/zones?name={name}', 200)['zones']
        assert len(found) == 1
        active: dict[str, object] = self.stack.wait_for(found[0]['id'])
        return active

    def filled(self, name: str) -> dict[str, object]:
        """The zone as the API has it, once octoDNS has filled it and it is served."""
        self.write(name)
        self.configure(name)
        self.sync('--doit')
        return self.zone(name)

    def names(self) -> list[str]:
        return [zone['name'] for zone in self.stack.request('GET', '/v2/zones', 200)['zones']]


@pytest.fixture(scope='module')
def octodns_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OctodnsPool]:
    with OctodnsPool(tmp_path_factory.mktemp('octodns-pool')) as made:
        yield made
