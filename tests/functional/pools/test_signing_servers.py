"""A pool with a Knot and two BINDs that sign what they are given: their serials are their own, and users are told."""

from __future__ import annotations

import pathlib
import uuid
from collections.abc import Iterator

import pytest

from designate_pool.model import Endpoint
from testing.bind import Named
from testing.knot import Knotd
from testing.processes import free_port, wait_until
from testing.stack import QUICK, Stack

NAME = 'example.com.'
ZONE = (f'$ORIGIN {NAME}\n@ 300 IN SOA ns1.example.org. hostmaster.example.com. 1 3600 600 86400 300\n'
        'www 300 IN A 192.0.2.1\n')
KNOT = '  - id: signed\n    storage: "{folder}/zones"\n    journal-content: all\n    dnssec-signing: on\n'


class Signing:
    """The servers, one of which does not list its zones, and a BIND that does not sign.

    BIND 9.18 signs only zones that say so in their own statement.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.primary = Endpoint('127.0.0.1', free_port())
        self.knot = Knotd(folder / 'knot', templates=KNOT)
        self.bind = Named(folder / 'bind', statistics=True)
        self.quiet = Named(folder / 'quiet')
        self.plain = Named(folder / 'plain', statistics=True)
        sections = [
            self.knot.section(str(uuid.uuid4()), [self.primary], template='signed', call_timeout=2),
            self.bind.section(str(uuid.uuid4()), [self.primary], adopts_zones=True, call_timeout=2,
                              statistics_url=self.bind.statistics_url),
            self.quiet.section(str(uuid.uuid4()), [self.primary], adopts_zones=True, call_timeout=2),
            self.plain.section(str(uuid.uuid4()), [self.primary], call_timeout=2,
                               statistics_url=self.plain.statistics_url)]
        self.stack = Stack(folder / 'stack', sections, f'sqlite:///{folder}/pool.sqlite', threshold=25, manager={
            **QUICK, 'periodic_sync_interval': '1', 'contents_audit_interval': '2'}, minidns_port=self.primary.port)

    def wait_until_served(self, address: str) -> None:
        for server in self.knot, self.bind, self.quiet, self.plain:
            wait_until(lambda: server.addresses(NAME) == [address], f'{server.folder.name} serves {address}')


@pytest.fixture
def signing(tmp_path: pathlib.Path) -> Iterator[Signing]:
    pool = Signing(tmp_path)
    with pool.knot, pool.bind, pool.quiet, pool.plain:
        for server in pool.bind, pool.quiet:
            assert server.command(f'addzone {NAME} {{ type secondary; file "signed.db"; primaries {{ 127.0.0.1 port '
                                  f'{pool.primary.port}; }}; inline-signing yes; dnssec-policy default; }};'
                                  ).result == 0
        with pool.stack:
            yield pool


def test_servers_that_sign(signing: Signing) -> None:
    stack, signers = signing.stack, (signing.knot, signing.bind, signing.quiet)
    zone = stack.import_zone(ZONE)
    stack.wait_for(zone)
    wait_until(lambda: all(server.query(NAME, 'DNSKEY').answer for server in signers), 'they sign')
    checked = stack.manage('config', 'check', code=1)
    assert 'error: the template signed has zones signed, so that' in checked
    assert checked.count('error: named signs zones, so that their serials are not ours') == 2

    for _ in range(40):  # so that their serials are ahead of the next one, too, whatever time passes until then
        signing.knot.knotc('zone-sign', NAME)
        for bind in signing.bind, signing.quiet:
            bind.command(f'sign {NAME}')
    told = wait_until(lambda: (text := ' '.join(stack.command('zone', 'explain', NAME).split())).count(
        f'which is ahead of ours, {stack.zone(zone)["serial"]}; its serials are its own: it signs; it is compared again'
    ) == 3 and text, 'all are found to be ahead, since they sign', 60)
    assert told.count("turn signing off in the server's own configuration") == 1
    assert 'whether it can transfer' not in told
    recordset, = stack.request('GET', f'/v2/zones/{zone}/recordsets?type=A', 200)['recordsets']
    stack.set_recordset(zone, recordset['id'], '192.0.2.2')
    serial = stack.zone(zone)['serial']
    signing.wait_until_served('192.0.2.2')
    stack.wait_for(zone)
    stack.wait_for_round('CONTENTS')
    assert stack.zone(zone)['serial'] == serial, 'it does not race with theirs'
    stack.must_be_sound()
