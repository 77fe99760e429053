"""What a real server serves, beside what it should: over transfers with and without a key, and by its own ZONEMD."""

from __future__ import annotations

import dataclasses
import pathlib
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import dns.zone
import dns.zonetypes
import pytest

from designate_pool.model import Server, TsigKey
from designate_pool.pool_manager.dispatch.zone_compare import Match, Ours, compare
from designate_pool.pool_manager.periodic import signature_audit
from designate_pool.protocol.axfr_inbound import Pace
from designate_pool.protocol.zone_signatures import judge
from designate_pool.testing import a_domain, opened
from testing.bind import Named
from testing.pdns import PowerDns
from testing.processes import binary, wait_until
from tests.fixtures.digests import wire_zone
from tests.fixtures.nameservers import Primary, zone_text

KEY = TsigKey('transfers.example.com.', 'hmac-sha256', 'c2VjcmV0IHNlY3JldCBzZWNyZXQh')
STRANGER = TsigKey('stranger.example.com.', 'hmac-sha256', 'c2VjcmV0IHNlY3JldCBzZWNyZXQh')
WRONG = dataclasses.replace(KEY, secret='b3RoZXIgb3RoZXIgb3RoZXIgb3Ro')
HEAD = '$TTL 300\n@ SOA ns1 Hostmaster 7 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n'
RECORDS = '''
www A 192.0.2.2
www A 192.0.2.3
WWW TXT "Case Matters"
mail MX 10 Mail.Example.NET.
_sip._tcp SRV 1 2 3 Target.Example.NET.
alias CNAME www
tree NAPTR 1 2 "U" "E2U+sip" "!^.*$!sip:a@example.com!" Next.Example.NET.
odd\\000\\.\\\\name TYPE65400 \\# 2 4142
'''
LARGE = ''.join(f'host{number} A 192.0.2.{number % 250}\n' for number in range(9000))
SIGNATURE = '@ RRSIG SOA 13 2 300 20350101000000 20250101000000 1 @ AAAA\n@ DNSKEY 257 3 13 AAAA\n'


def digest(name: str, text: str) -> str:
    zone = dns.zone.from_text(text, name, relativize=False)
    record = zone.compute_digest(dns.zonetypes.DigestHashAlgorithm.SHA384)
    return f'@ ZONEMD {record.to_text()}\n'


#: The zones' files, and whether they may be transferred.
ZONES = {
    'plain.example.': (HEAD + RECORDS, True),
    'large.example.': (HEAD + LARGE, True),
    'signed.example.': (HEAD + SIGNATURE, True),
    'large-signed.example.': (HEAD + SIGNATURE + LARGE, True),
    'shut.example.': (HEAD, False),
    'told.example.': (HEAD + RECORDS + digest('told.example.', HEAD + RECORDS), False),
    'mistold.example.': (HEAD + RECORDS + digest('mistold.example.', HEAD), False),
}


@pytest.fixture(scope='module')
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A BIND with these zones, as the pool knows it."""
    folder: pathlib.Path = tmp_path_factory.mktemp('named')
    statements = []
    for name, (text, open_to_all) in ZONES.items():
        (folder / f'{name}zone').write_text(text)
        allowed = '' if open_to_all else 'allow-transfer { none; };'
        statements.append(f'zone "{name}" {{ type primary; file "{name}zone"; check-integrity no; {allowed} }};')
    named = Named(folder, keys=[KEY], statements='\n'.join(statements)).start()
    yield named.server()
    named.remove()


def ours(name: str, text: str) -> Ours:
    contents = wire_zone(name, text)
    return Ours(name, 7, contents, contents.digest())


def keyed(server: Server, key: TsigKey | None) -> Server:
    return dataclasses.replace(server, tsig_key=key)


@pytest.mark.parametrize('key', [None, KEY], ids=['no key', 'a key'])
@pytest.mark.parametrize(('name', 'text'), [('plain.example.', HEAD + RECORDS), ('large.example.', HEAD + LARGE)])
def test_the_same_contents_are_the_same(server: Server, name: str, text: str, key: TsigKey | None) -> None:
    found = compare(keyed(server, key), ours(name, text), Pace(0))
    assert (found.match, found.serial) == (Match.SAME, 7), found


MORE = HEAD + RECORDS.replace('192.0.2.3', '192.0.2.4') + 'more TXT "more"\n'


@pytest.mark.parametrize(('name', 'text', 'serial', 'facts', 'match', 'why'), [
    ('plain.example.', MORE, 7, {}, Match.OTHER, 'serves serial 7 with other contents than ours: 12 records ours, 11 '
     'theirs; e.g. more.plain.example. TXT, www.plain.example. A'),
    ('large.example.', HEAD, 7, {}, Match.OTHER, '3 records ours, more than '),  # it is not read to its end
    ('plain.example.', HEAD, 8, {}, Match.ELSEWHERE, 'serves serial 7, not 8'),
    ('signed.example.', HEAD, 7, {}, Match.SAME, ''),
    ('signed.example.', HEAD + 'www A 192.0.2.2\n', 7, {}, Match.OTHER, '4 records ours, 3 theirs; e.g. www.signed'),
    ('large-signed.example.', HEAD, 7, {}, Match.UNKNOWN, 'its zones are too large to be compared: it signs'),
    ('signed.example.', HEAD, 6, {}, Match.AHEAD, 'which is ahead of ours, 6; its serials are its own: it signs'),
    # Told of the whole server, to operators of any project, so it names no zone.
    ('shut.example.', HEAD, 7, {}, Match.UNKNOWN,
     'it does not let the zone be transferred (REFUSED), and has no ZONEMD record of this serial'),
    ('plain.example.', HEAD + RECORDS, 7, {'tsig_key': STRANGER}, Match.UNKNOWN, 'BADKEY'),
    ('plain.example.', HEAD + RECORDS, 7, {'tsig_key': WRONG}, Match.UNKNOWN, 'BADSIG'),
    ('absent.example.', HEAD, 7, {}, Match.UNKNOWN, ''),
    ('plain.example.', HEAD, 7, {'port': 1}, Match.SILENT, 'connection failed: Connection refused')],
    ids=['other contents', 'much larger', 'another serial', 'signed', 'signed, other contents', 'signed, much larger',
         'signed, with serials of its own', 'refused',
         'key unknown', 'key wrong', 'absent', 'silent'])
def test_what_is_not_the_same_is_told_apart(server: Server, name: str, text: str, serial: int, facts: dict[str, Any],
                                            match: Match, why: str) -> None:
    found = compare(dataclasses.replace(server, **facts), dataclasses.replace(ours(name, text), serial=serial), Pace(0))
    assert found.match is match and why in found.why, found
    assert found.signs is ('signed' in name)


@pytest.mark.parametrize('key', [None, KEY], ids=['no key', 'a key'])
def test_a_server_that_refuses_is_taken_at_its_own_digest(server: Server, key: TsigKey | None) -> None:
    server = keyed(server, key)
    assert compare(server, ours('told.example.', HEAD + RECORDS), Pace(0)).match is Match.SAME
    found = compare(server, ours('mistold.example.', HEAD + RECORDS), Pace(0))
    assert found.match is Match.OTHER
    assert found.why == 'serves serial 7 with other contents than ours, by its own ZONEMD record'


def test_a_powerdns_that_signs_keeps_our_serial_and_is_compared_without_what_that_adds(tmp_path: pathlib.Path) -> None:
    with PowerDns(tmp_path) as powerdns, Primary() as primary:
        primary.publish('example.com.', zone_text(7))
        server = powerdns.server([primary.endpoint], signs_zones=True)
        with opened(server) as backend:
            assert backend.create_domain(a_domain()).ok
        wait_until(lambda: powerdns.serial('example.com.') == 7, 'the contents are served')
        subprocess.run([binary('pdnsutil'), f'--config-dir={tmp_path}', 'secure-zone', 'example.com'], check=True,
                       capture_output=True)
        wait_until(lambda: powerdns.query('example.com.', 'DNSKEY').answer, 'it signs')
        found = compare(server, ours('example.com.', zone_text(7)), Pace(0))
        assert (found.match, found.serial, found.signs) == (Match.SAME, 7, False)
        served = signature_audit.ask(server, server.endpoint, ['absent.example.', 'example.com.'])
        assert list(served) == ['example.com.'] and served['example.com.'].is_signed
        assert judge(served, int(time.time()), 86400, must_be_signed=False) == {'example.com.': []}
