"""What a real server serves, beside what it should: over transfers with and without a key, and by its own ZONEMD."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator

import dns.zone
import dns.zonetypes
import pytest

from designate_pool.model import Server, TsigKey
from designate_pool.pool_manager.dispatch.zone_compare import Match, Ours, compare
from designate_pool.protocol.axfr_inbound import Pace
from testing.bind import Named
from tests.fixtures.digests import wire_zone

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


def test_other_contents_of_the_serial_are_told_with_a_sample(server: Server) -> None:
    mine = HEAD + RECORDS.replace('192.0.2.3', '192.0.2.4') + 'more TXT "more"\n'
    found = compare(server, ours('plain.example.', mine), Pace(0))
    assert found.match is Match.OTHER
    assert found.why == ('serves serial 7 with other contents than ours: 12 records ours, 11 theirs; e.g. '
                         'more.plain.example. TXT, www.plain.example. A')


def test_a_zone_that_is_much_larger_than_ours_is_not_read_to_its_end(server: Server) -> None:
    found = compare(server, ours('large.example.', HEAD), Pace(0))
    assert found.match is Match.OTHER and '3 records ours, more than ' in found.why


def test_another_serial_is_no_finding(server: Server) -> None:
    found = compare(server, dataclasses.replace(ours('plain.example.', HEAD), serial=8), Pace(0))
    assert (found.match, found.serial, found.why) == (Match.ELSEWHERE, 7, 'serves serial 7, not 8')


def test_a_zone_that_the_server_signs_is_not_compared(server: Server) -> None:
    assert compare(server, ours('signed.example.', HEAD), Pace(0)).match is Match.UNKNOWN


def test_a_server_that_refuses_and_has_no_digest_is_not_compared(server: Server) -> None:
    found = compare(server, ours('shut.example.', HEAD), Pace(0))
    assert found.match is Match.UNKNOWN
    # Told of the whole server, to operators of any project, so it names no zone.
    assert found.why == ('it does not let the zone be transferred (REFUSED), and has no ZONEMD record of this '
                         'serial')


@pytest.mark.parametrize('key', [None, KEY], ids=['no key', 'a key'])
def test_a_server_that_refuses_is_taken_at_its_own_digest(server: Server, key: TsigKey | None) -> None:
    server = keyed(server, key)
    assert compare(server, ours('told.example.', HEAD + RECORDS), Pace(0)).match is Match.SAME
    found = compare(server, ours('mistold.example.', HEAD + RECORDS), Pace(0))
    assert found.match is Match.OTHER
    assert found.why == 'serves serial 7 with other contents than ours, by its own ZONEMD record'


@pytest.mark.parametrize(('key', 'why'), [(STRANGER, 'BADKEY'), (WRONG, 'BADSIG')])
def test_a_key_that_is_not_accepted_is_said_in_words(server: Server, key: TsigKey, why: str) -> None:
    found = compare(keyed(server, key), ours('plain.example.', HEAD + RECORDS), Pace(0))
    assert found.match is Match.UNKNOWN and why in found.why


def test_a_zone_that_is_not_there_is_not_held_against_the_server(server: Server) -> None:
    assert compare(server, ours('absent.example.', HEAD), Pace(0)).match is Match.UNKNOWN


def test_a_server_that_is_not_there_is_silent(server: Server) -> None:
    found = compare(dataclasses.replace(server, port=1), ours('plain.example.', HEAD), Pace(0))
    assert (found.match, found.why) == (Match.SILENT, 'connection failed: Connection refused')
