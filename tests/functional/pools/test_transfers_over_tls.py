"""Zones are transferred over TLS (RFC 9103) alone: to BIND and NSD, configured as the guide says, and from a master."""

from __future__ import annotations

import base64
import pathlib
import re
import textwrap
import uuid
from collections.abc import Iterator

import dns.query
import dns.xfr
import dns.zone
import pytest

from designate_pool.model import Endpoint, TsigKey
from testing.asking import transfer
from testing.bind import Named
from testing.certificates import Authority
from testing.nsd import Nsd
from testing.processes import Log, free_port, wait_until
from testing.stack import MASTERS, Stack

PAGE = pathlib.Path(__file__).parents[3] / 'doc/source/guide/transfers-over-tls.rst'
KEY = TsigKey('transfer.example.com.', 'hmac-sha256', base64.b64encode(b'a key of the pool').decode())
MINIDNS, MASTER = 'minidns.example.com', 'master.example.net'
MASTER_ZONE = ('$TTL 60\n@ SOA ns1.master.example.net. hostmaster.example.net. 7 3600 1 86400 60\n'
               '@ NS ns1.master.example.net.\nwww A 192.0.2.1\n')


def page_texts() -> tuple[str, str]:
    """What the guide has for named.conf and nsd.conf."""
    bind, nsd, _ = re.findall(r'code-block:: text\n\n((?: {3}.*\n|\n)+)', PAGE.read_text())
    return textwrap.dedent(bind), textwrap.dedent(nsd)


def put(text: str, *replaced: str) -> str:
    """*text* with other words in place of those, each of which it has."""
    for old, new in zip(replaced[::2], replaced[1::2]):
        assert old in text
        text = text.replace(old, new)
    return text


class TlsPool:
    """A pool whose MiniDNS refuses plain transfers."""

    def __init__(self, folder: pathlib.Path, database_url: str, concurrency: str, is_mutual: bool) -> None:
        self.authority = Authority(folder / 'authority')
        ca = self.authority.pair.certificate
        own, client, master = (self.authority.sign(name) for name in (MINIDNS, 'ns1.example.org', MASTER))
        self.where = Endpoint('127.0.0.1', free_port())
        bind, nsd = page_texts()
        if is_mutual:
            bind = put(bind, 'protocols', f'cert-file "{client.certificate}"; key-file "{client.key}"; protocols')
            nsd = put(nsd, 'pattern:',
                      f'    client-cert: "{client.certificate}"\n    client-key: "{client.key}"\npattern:')
        self.named = Named(folder / 'named', keys=[KEY], statements=put(bind, '/etc/bind/minidns-ca.pem', ca))
        nsd = put(nsd, '/etc/nsd/minidns-ca.pem', ca, '192.0.2.10@853', f'127.0.0.1@{self.where.port}', 'name: pool',
                  'name: over_tls', '192.0.2.10', '127.0.0.1', '192.0.2.20', '127.0.0.1')
        self.nsd = Nsd(folder / 'nsd', keys=[KEY], statements=nsd)
        self.master_port = free_port()
        self.master = Named(folder / 'master', options=(
            f'listen-on port {self.master_port} tls own {{ 127.0.0.1; }};'), statements=(
            f'tls own {{ cert-file "{master.certificate}"; key-file "{master.key}"; protocols {{ TLSv1.3; }}; }};\n'
            'zone "secondary.example.com." { type primary; file "secondary"; allow-update { any; };'
            f' allow-transfer port {self.master_port} transport tls {{ any; }}; notify no; }};'))
        self.master.folder.mkdir(parents=True)
        (self.master.folder / 'secondary').write_text(MASTER_ZONE)
        access = {'tsig_key': f'{KEY.name}:{KEY.algorithm}:{KEY.secret}', 'call_timeout': 4}
        options = {'listen_tls': str(self.where), 'tls_certificate': own.certificate, 'tls_key': own.key,
                   'require_tls': 'true', 'masters_ca': ca}
        if is_mutual:
            options['tls_client_ca'] = ca
        self.stack = Stack(folder / 'stack', [
            self.named.section(str(uuid.uuid4()), [self.where], primaries_tls='minidns', **access),
            self.nsd.section(str(uuid.uuid4()), [self.where], pattern='over_tls', **access), MASTERS],
            database_url, concurrency=concurrency, minidns=options)

    def serials(self, name: str) -> set[int]:
        return {server.query(name, 'SOA').answer[0][0].serial for server in (self.named, self.nsd)}


@pytest.fixture(scope='module', params=[('eventlet', False), ('threading', True)], ids=['strict', 'mutual'])
def pool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsPool]:
    folder = tmp_path_factory.mktemp('tls')
    pool = TlsPool(folder, f'sqlite:///{folder}/pool.sqlite', *request.param)
    with pool.named, pool.nsd, pool.master, pool.stack:
        yield pool


def test_zones_are_created_and_changed_over_tls(pool: TlsPool) -> None:
    zone = pool.stack.create_zone('one.example.com.')
    for number in range(3):
        pool.stack.wait_for(zone['id'])
        created = pool.stack.zone(zone['id'])
        assert pool.serials('one.example.com.') == {created['serial']}
        pool.stack.create_recordset(zone['id'], f'www{number}.one.example.com.', 'A', f'192.0.2.{number}')
    pool.stack.wait_for(zone['id'])
    with pytest.raises(dns.xfr.TransferError, match='REFUSED'):
        transfer(Endpoint('127.0.0.1', pool.stack.minidns_port), 'one.example.com.')


def test_the_configuration_is_found_to_be_right(pool: TlsPool) -> None:
    assert f'ok  MiniDNS at {pool.where}' in pool.stack.manage('config', 'check')


def test_a_secondary_zone_comes_over_tls_from_a_master_that_proves_its_name(pool: TlsPool) -> None:
    master = f'127.0.0.1:{pool.master_port}#{MASTER}'
    zone = pool.stack.create_secondary('secondary.example.com.', master)
    assert zone['masters'] == [master]
    pool.stack.wait_for(zone['id'])
    assert pool.serials('secondary.example.com.') == {7}


def test_a_master_with_another_name_is_not_believed(pool: TlsPool) -> None:
    master = f'127.0.0.1:{pool.master_port}#other.example.net'
    log = Log(pool.stack.processes['all'].log)
    zone = pool.stack.create_secondary('unproven.example.com.', master)
    wait_until(lambda: log.lines('unproven.example.com..*its certificate is not accepted: Hostname mismatch'),
               'the log says why')
    assert not pool.stack.request('GET', f'/v2/zones/{zone["id"]}/servers', 200)['secondary']['served']
    pool.stack.delete_zone(zone['id'])
