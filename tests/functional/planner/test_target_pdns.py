"""A real PowerDNS as a target of plans; also interrupted, changed by others, refusing, and busy."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import time
from collections.abc import Callable
from typing import Any

import dns.zone
import pytest

from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, SourceError
from designate_pool.model import Reason
from designate_pool.planner.plan.plan import ApplyResult
from designate_pool.planner.processors.ownership import Ownership, TxtRegistry
from designate_pool.planner.targets.pdns import PdnsProvider
from designate_pool.planner.zone.zone import Zone
from designate_pool.powerdns import PdnsAnswer, PdnsServer
from designate_pool.protocol.rrset import rrset
from testing.pdns import PowerDns
from testing.processes import binary
from tests.fixtures.plans import bring, planned, refuse_cname_beside_mail

Start = Callable[..., PowerDns]

#: A record of every type, and what is odd about some; the owner is the number of the line.
EVERY_TYPE = r'''
A 192.0.2.1
AAAA 2001:db8::1
AAAA ::ffff:192.0.2.1
AFSDB 1 afs.example.com.
APL 1:192.0.2.0/24 !1:192.0.2.64/28
CAA 0 issue "ca.example.net; account=230123; x=\"y\""
CERT PGP 0 0 MIIBdDCCAR2g
CNAME Target.example.com.
CNAME a\.b.example.com.
CNAME a\$b\"c\(d\;e\@f.example.com.
CNAME a\032b\000c\255.example.com.
CNAME a\\b.example.com.
CNAME *.example.com.
CSYNC 66 3 A NS AAAA
DHCID AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=
DNAME example.org.
DS 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118
DS 60485 13 4 D4B7D520E7BB5F0F67674A0CCEB1E3E0614B93C4F9E99B8383F6A1E4469DA50AD4B7D520E7BB5F0F67674A0CCEB1E3E0
EUI48 00-00-5e-00-53-2a
EUI64 00-00-5e-ef-10-00-00-2a
HINFO "PC" "Linux"
HTTPS 1 . alpn=h2,h3 port=8443 ipv4hint=192.0.2.1,192.0.2.2 ipv6hint=2001:db8::1
HTTPS 1 svc.example.com. mandatory=alpn,port alpn=h2 no-default-alpn port=443 key65333="ex1"
IPSECKEY 10 1 2 192.0.2.38 AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ==
KX 10 kx.example.com.
L32 10 10.1.2.0
LOC 52 22 23 N 4 53 32 E -2m 0m 10000m 10m
LOC 52 14 05 N 00 08 50 E 10m
LP 10 l64-subnet1.example.com.
MX 10 Mail.Example.com.
MX 0 .
NAPTR 100 10 "S" "SIP+D2U" "" _sip._udp.example.com.
NAPTR 100 50 "u" "E2U+sip" "!^(\\+441632960083)$!sip:\\1@example.com!" .
NAPTR 100 50 "u" "E2U+sip" "" a\$b.example.com.
OPENPGPKEY AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0BBQkNERUZHSElK
PTR host.example.com.
RP mbox.example.com. txt.example.com.
SMIMEA 3 1 1 d2abde240d7cd3ee6b4b28c54df034b97983a1d16e8a410e4561cb106618e971
SPF "v=spf1 -all"
SRV 0 5 5060 sip.example.com.
SSHFP 4 2 123456789abcdef67890123456789abcdef67890123456789abcdef67890abcd
SVCB 16 foo.example.org. alpn="f\\\\oo\\,bar,h2"
SVCB 1 svc.example.com. alpn=h2 dohpath=/dns-query{?dns}
SVCB 1 a\$b.example.com. key667="hello\210qoo"
SVCB 1 . ech=AEn+DQBFKwAgACABWIHUGj4u+PIggYXcR5JF0gYk3dCRioBW8uJq9H4mKAAIAAEAAQABAANAEnB1YmxpYy50bHMtZWNoLmRldgAA
TLSA 3 1 1 d2abde240d7cd3ee6b4b28c54df034b97983a1d16e8a410e4561cb106618e971
TXT "plain" "Upper Case"
TXT ""
TXT "with \"quotes\" and \\backslash\\ and ; semicolon and $ORIGIN @ (x)"
TXT "\000\001\255\200\127 tab\009" "\123x" "caf\195\169"
URI 10 1 "https://example.com/a?b=c&d=%20"
'''

LONG = {'TXT': ' '.join(['"' + 'x' * 255 + '"'] * 40), 'TLSA': '3 0 0 ' + 'ab' * 400, 'OPENPGPKEY': 'AAEC' * 500}


def a_zone(text: str = '', number: int = 1, name: str = 'example.com.') -> Zone:
    """A zone with a SOA of the serial *number*, NS records, and *text* in the form of a zone file."""
    head = (f'$TTL 300\n@ SOA ns1 hostmaster {number} 3600 600 86400 300\n@ NS ns1.example.net.\n'
            '@ NS ns2.example.net.\n')
    parsed = dns.zone.from_text(head + text, name, relativize=False, check_origin=False)
    found = Zone(name)
    for owner, rdatas in parsed.iterate_rdatasets():
        found.add_record(rrset(owner.to_text(), rdatas.rdtype.name, rdatas.ttl, [each.to_text() for each in rdatas]))
    return found


def many(count: int) -> str:
    """So many A records."""
    return ''.join(f'h{number} A 192.0.2.{number % 250}\n' for number in range(count))


def provider_of(server: PowerDns, **options: Any) -> PdnsProvider:
    return PdnsProvider('ns1', **{'api_key': server.api_key, 'api_url': server.api_url} | options)


def ask(server: PowerDns, verb: str, path: str, body: object = None) -> Any:
    """What the API says to somebody else."""
    answer = PdnsServer(server.api_url, server.api_key).ask(verb, path, Deadline(10), body)
    assert answer.status < 300, answer
    return answer.json


def put(server: PowerDns, name: str, rtype: str, *contents: str, **more: Any) -> None:
    """Somebody else changes an RRset of example.com."""
    records = [{'content': each, 'disabled': each in more.get('off', ())} for each in contents]
    change = {'name': name, 'type': rtype, 'ttl': 300, 'changetype': 'REPLACE', 'records': records}
    change |= {'comments': more['comments']} if 'comments' in more else {}
    ask(server, 'PATCH', '/zones/example.com.', {'rrsets': [change]})


def there(server: PowerDns, rtype: str, name: str = 'www.example.com.') -> dict[str, Any]:
    """An RRset of example.com. as the API has it."""
    for each in ask(server, 'GET', '/zones/example.com.')['rrsets']:
        if (each['name'], each['type']) == (name, rtype):
            return dict(each)
    return {}


@pytest.fixture
def server(powerdns: Start) -> PowerDns:
    return powerdns()


@pytest.fixture
def provider(server: PowerDns) -> PdnsProvider:
    return provider_of(server)


def requests(provider: PdnsProvider, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is asked of the API from here on: verb and path."""
    found: list[tuple[str, str]] = []
    real = provider._server._ask_once

    def watched(verb: str, path: str, *rest: Any) -> PdnsAnswer:
        found.append((verb, path))
        return real(verb, path, *rest)

    monkeypatch.setattr(provider._server, '_ask_once', watched)
    return found


def test_first_sync_second_sync_changes_and_the_end(server: PowerDns, provider: PdnsProvider) -> None:
    first = a_zone('www A 192.0.2.1\nold A 192.0.2.9\n', 7)
    assert len(bring(provider, first).changes) == 4
    assert server.serial('example.com.') == 7
    assert server.texts('www.example.com.', 'A') == ['192.0.2.1']
    assert sorted(server.texts('example.com.', 'NS')) == ['ns1.example.net.', 'ns2.example.net.']
    assert ask(server, 'GET', '/zones/example.com.?rrsets=false')['soa_edit_api'] == ''
    assert len(bring(provider, a_zone('www 600 A 192.0.2.1\nwww A 192.0.2.2\nnew AAAA 2001:db8::1\n', 8)).changes) == 4
    assert server.serial('example.com.') == 8
    assert server.texts('www.example.com.', 'A') == ['192.0.2.1', '192.0.2.2']
    assert server.texts('old.example.com.', 'A') == []
    assert server.texts('new.example.com.', 'AAAA') == ['2001:db8::1']
    for _ in range(2):
        provider.delete_zone('example.com.')
        assert server.serial('example.com.') is None
    assert len(bring(provider, first).changes) == 4


def test_a_zone_is_never_served_without_its_records(server: PowerDns, provider: PdnsProvider,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    asked = requests(provider, monkeypatch)
    bring(provider, a_zone('www A 192.0.2.1\nbelow NS ns1.below\nns1.below A 192.0.2.2\n', 7))
    assert [verb for verb, _ in asked if verb != 'GET'] == ['POST']
    assert server.serial('example.com.') == 7
    assert server.texts('www.example.com.', 'A') == ['192.0.2.1']
    assert not server.query('x.below.example.com.', 'A').answer
    assert server.query('x.below.example.com.', 'A').authority[0].name.to_text() == 'below.example.com.'


def test_a_new_zone_has_the_records_that_are_not_refused(server: PowerDns, provider: PdnsProvider) -> None:
    plan = planned(provider, a_zone('www A 192.0.2.1\nat\\@sign A 192.0.2.1\n', 7))
    result = provider.apply(plan)
    assert (result.applied, result.failed) == (2, 1) and len(result.errors) == 1
    assert server.serial('example.com.') == 6
    assert server.texts('www.example.com.', 'A') == ['192.0.2.1']


def test_every_type_comes_back_as_it_was_given(server: PowerDns, provider: PdnsProvider) -> None:
    lines = EVERY_TYPE.strip().splitlines() + [f'{rtype} {text}' for rtype, text in LONG.items()]
    desired = a_zone(''.join(f'n{number} {line}\n' for number, line in enumerate(lines)))
    assert {each.type for each in desired} == provider.SUPPORTS
    bring(provider, desired)
    read = Zone('example.com.')
    assert PdnsProvider('source', server.api_key, server.api_url).populate(read)
    assert read == desired
    for each in desired:
        if each.name != 'example.com.' and each.type != 'NS':
            answer = server.query(each.name, each.type, tcp=True).answer
            assert rrset(each.name, each.type, 300, [rdata.to_text() for found in answer if
                                                     found.rdtype.name == each.type for rdata in found]) == each


def test_one_bad_record_does_not_keep_the_others_back(server: PowerDns, provider: PdnsProvider) -> None:
    """The refusal names it.  The serial stays until all of the zone is there."""
    bring(provider, a_zone('www A 192.0.2.1\n', 1))
    text = ''.join(f'h{number} A 192.0.2.1\n' for number in range(50)) + 'www A 192.0.2.2\n'
    desired = a_zone(text + 'at\\@sign A 192.0.2.1\nodd SRV 0 0 0 a\\(b\n', 2)
    for applied in (51, 0):
        plan = planned(provider, desired)
        result = provider.apply(plan)
        assert (result.applied, result.failed, result.skipped) == (applied, 2, 1)
        assert sorted(result.errors) == [
            "at\\@sign.example.com. A: Name 'at@sign.example.com.' contains unsupported characters (422)",
            'odd.example.com. SRV: RRset odd.example.com. IN SRV non-hostname content a(b.example.com. (422)']
        assert server.texts('h49.example.com.', 'A') == ['192.0.2.1']
        assert server.serial('example.com.') == 1
    assert len(bring(provider, a_zone(text, 3)).changes) == 1
    assert server.serial('example.com.') == 3
    refuse_cname_beside_mail(provider, a_zone(text, 4))


def test_the_mark_of_a_wildcard_is_taken_and_its_record_changes_and_goes(provider: PdnsProvider) -> None:
    registry = TxtRegistry('pool', wildcard=provider.MARK_WILDCARD)
    for text in ('* A 192.0.2.1\n', '* A 192.0.2.2\n', ''):
        bring(provider, a_zone(text), [Ownership('ownership', registry)])


def test_what_only_powerdns_knows_is_left_alone(server: PowerDns, provider: PdnsProvider) -> None:
    bring(provider, a_zone('www A 192.0.2.1\n', 1))
    put(server, 'lua.example.com.', 'LUA', 'A "ifportup(443, {\'192.0.2.1\'})"')
    put(server, 'alias.example.com.', 'ALIAS', 'www.example.com.')
    put(server, 'odd.example.com.', 'TYPE65280', '\\# 2 abcd')
    assert provider.plan(a_zone('www A 192.0.2.1\n', 1)) is None
    bring(provider, a_zone('', 2))
    kept = {each['name'] for each in ask(server, 'GET', '/zones/example.com.')['rrsets']}
    assert kept == {'example.com.', 'lua.example.com.', 'alias.example.com.', 'odd.example.com.'}


def test_what_powerdns_takes_and_nobody_else_reads_is_replaced(server: PowerDns, provider: PdnsProvider) -> None:
    bring(provider, a_zone('www HTTPS 1 . alpn=h2\n', 1))
    put(server, 'www.example.com.', 'HTTPS', '1 . ipv4hint=auto')
    with pytest.raises(SourceError, match='ns1 cannot be read: example.com.: HTTPS: .*ipv4hint=auto'):
        provider.populate(Zone('example.com.'))
    bring(provider, a_zone('www HTTPS 1 . alpn=h2\n', 1))


def test_records_that_are_disabled_are_not_there_and_are_kept(server: PowerDns, provider: PdnsProvider) -> None:
    bring(provider, a_zone('www A 192.0.2.1\n', 1))
    put(server, 'www.example.com.', 'A', '192.0.2.1', '192.0.2.7', off=['192.0.2.7'])
    put(server, 'off.example.com.', 'A', '192.0.2.8', off=['192.0.2.8'])
    assert provider.plan(a_zone('www A 192.0.2.1\n', 1)) is None
    bring(provider, a_zone('www A 192.0.2.2\noff A 192.0.2.9\n', 2))
    held = {each['content']: each['disabled'] for each in there(server, 'A')['records']}
    assert held == {'192.0.2.2': False, '192.0.2.7': True}
    bring(provider, a_zone('www A 192.0.2.7\n', 3))
    assert there(server, 'A')['records'] == [{'content': '192.0.2.7', 'disabled': False}]
    assert there(server, 'A', 'off.example.com.')['records'] == [{'content': '192.0.2.8', 'disabled': True}]
    assert server.texts('off.example.com.', 'A') == []


def test_comments_are_kept(server: PowerDns, provider: PdnsProvider) -> None:
    bring(provider, a_zone('www A 192.0.2.1\n', 1))
    comments = [{'account': 'ops', 'content': 'the web', 'modified_at': 1}]
    put(server, 'www.example.com.', 'A', '192.0.2.1', comments=comments)
    bring(provider, a_zone('www A 192.0.2.2\n', 2))
    assert there(server, 'A')['comments'] == comments


@pytest.mark.parametrize(('megabytes', 'count', 'pieces'), [('1', 500, 2), ('20', 500, 1)])
def test_what_does_not_fit_into_one_request_goes_in_several_and_the_serial_last(
        powerdns: Start, monkeypatch: pytest.MonkeyPatch, megabytes: str, count: int, pieces: int) -> None:
    server = powerdns(settings={'webserver-max-bodysize': megabytes})
    provider = provider_of(server)
    long = ' '.join([f'"{"x" * 250}"'] * 8)
    desired = a_zone(''.join(f'h{number} TXT {long}\n' for number in range(count)), 9)
    seen = []
    real = provider.patch

    def then_look(*given: Any) -> PdnsAnswer:
        answer = real(*given)
        seen.append(server.serial('example.com.'))
        return answer

    monkeypatch.setattr(provider, 'patch', then_look)
    plan = planned(provider, desired)
    assert provider.apply(plan).applied == count + 2
    assert seen == [8] * (pieces - 1) + [9]
    assert provider.plan(desired) is None


@pytest.mark.parametrize('kind', ['Slave', 'Producer'])
def test_a_zone_of_another_kind_is_an_operator_s_own(server: PowerDns, provider: PdnsProvider, kind: str) -> None:
    ask(server, 'POST', '/zones', {'name': 'example.com.', 'kind': kind, 'masters': ['192.0.2.1']})
    desired = a_zone('www A 192.0.2.1\n')
    for act in (lambda: provider.plan(desired), lambda: provider.create_zone(desired),
                lambda: provider.delete_zone('example.com.')):
        with pytest.raises(BackendError, match=f'example.com. already exists there, as a {kind} zone: ') as found:
            act()
        assert found.value.reason is Reason.CONFLICT
    assert provider.zones(['example.com.']) == ({}, True)
    assert provider.populate(Zone('example.com.'))
    assert provider.list_zones() == ['example.com.']


def test_zones_are_listed_with_their_serials(server: PowerDns, provider: PdnsProvider) -> None:
    for number, name in enumerate(['example.com.', '_sip._tcp.example.org.', '0/26.2.0.192.in-addr.arpa.'], 5):
        bring(provider, a_zone('', number, name))
    serials, complete = provider.zones(['never.example.'])
    assert complete
    assert serials == {'example.com.': 5, '_sip._tcp.example.org.': 6, '0/26.2.0.192.in-addr.arpa.': 7}


@pytest.mark.parametrize(('given', 'called'), [('Native', 'Native'), ('Primary', 'Master'), ('master', 'Master')])
def test_kind_of_zones_that_are_made(server: PowerDns, given: str, called: str) -> None:
    bring(provider_of(server, kind=given), a_zone())
    assert ask(server, 'GET', '/zones/example.com.?rrsets=false')['kind'] == called


def test_a_serial_there_that_is_newer_is_not_wound_back(server: PowerDns, provider: PdnsProvider) -> None:
    bring(provider, a_zone('www A 192.0.2.1\n', 100))
    assert provider.plan(a_zone('www A 192.0.2.1\n', 5)) is None
    bring(provider, a_zone('www A 192.0.2.2\n', 6))
    assert server.serial('example.com.') == 101
    other = a_zone('www A 192.0.2.2\n', 7)
    soa = other.get('example.com.', 'SOA')
    assert soa is not None
    other.add_record(rrset('example.com.', 'SOA', 60, soa.rdatas), replace=True)
    bring(provider, other)
    assert server.serial('example.com.') == 102
    bring(provider, a_zone('', 103))
    assert server.serial('example.com.') == 103


@pytest.mark.parametrize(('counting', 'numbers'), [('INCREASE', [101, 102]), ('DEFAULT', None), ('OFF', [100, 101])])
def test_a_zone_that_counts_its_serial_itself(server: PowerDns, provider: PdnsProvider, counting: str,
                                              numbers: list[int] | None) -> None:
    bring(provider, a_zone('www A 192.0.2.1\n', 99))
    pdnsutil(server, 'set-meta', 'example.com', 'SOA-EDIT-API', counting)
    found = []
    for number, address in ((100, '192.0.2.2'), (101, '192.0.2.3')):
        bring(provider, a_zone(f'www A {address}\n', number))
        found.append(server.serial('example.com.') or 0)
    assert found[0] < found[1]
    assert numbers is None or all(there >= wanted for there, wanted in zip(found, numbers, strict=True))


def test_a_zone_that_counts_its_serial_so_that_ours_is_never_reached(server: PowerDns, provider: PdnsProvider) -> None:
    bring(provider, a_zone('www A 192.0.2.1\n', 1))
    pdnsutil(server, 'set-meta', 'example.com', 'SOA-EDIT-API', 'EPOCH')
    epoch = int(time.time())
    plan = planned(provider, a_zone('www A 192.0.2.2\n', epoch + 1_000_000))
    result = provider.apply(plan)
    assert result.failed == 1
    assert "the zone's SOA-EDIT-API is EPOCH, which set the serial to" in result.errors[0]
    assert 'pdnsutil set-meta example.com SOA-EDIT-API OFF' in result.errors[0]
    pdnsutil(server, 'set-meta', 'example.com', 'SOA-EDIT-API', 'OFF')
    bring(provider, a_zone('www A 192.0.2.2\n', epoch + 1_000_000))


def test_where_no_soa_is_given_powerdns_keeps_its_own_and_counts(server: PowerDns, provider: PdnsProvider) -> None:
    def without(text: str) -> Zone:
        zone = a_zone(text)
        soa = zone.get('example.com.', 'SOA')
        assert soa is not None
        zone.remove_record(soa)
        return zone

    bring(provider, without('www A 192.0.2.1\n'))
    first = server.serial('example.com.') or 0
    bring(provider, without('www A 192.0.2.2\n'))
    second = server.serial('example.com.') or 0
    pdnsutil(server, 'set-meta', 'example.com', 'SOA-EDIT-API', 'OFF')
    bring(provider, without('www A 192.0.2.3\n'))
    assert first < second < (server.serial('example.com.') or 0)


def pdnsutil(server: PowerDns, *arguments: str) -> None:
    subprocess.run([binary('pdnsutil'), f'--config-dir={server.folder}', *arguments], check=True, capture_output=True)


def test_a_signed_zone(server: PowerDns, provider: PdnsProvider) -> None:
    bring(provider, a_zone('www A 192.0.2.1\n', 1))
    pdnsutil(server, 'secure-zone', 'example.com')
    assert provider.plan(a_zone('www A 192.0.2.1\n', 1)) is None
    bring(provider, a_zone('www A 192.0.2.2\nnew A 192.0.2.3\n', 2))
    server.restart()
    answer = server.query('new.example.com.', 'A', tcp=True)
    assert [each.to_text() for each in answer.answer[0]] == ['192.0.2.3']
    assert server.texts('example.com.', 'DNSKEY')


def test_a_zone_is_made_with_the_serial_before_its_own(server: PowerDns, provider: PdnsProvider) -> None:
    """Interrupted after that, the empty zone is not taken for the full one; again, and it is there."""
    desired = a_zone('www A 192.0.2.1\n', 1)
    provider.create_zone(desired)
    assert server.serial('example.com.') == 0
    provider.create_zone(desired)
    plan = planned(provider, desired)
    assert plan.exists
    assert [change.kind for change in plan.changes] == ['Update', 'Create']
    bring(provider, desired)
    assert server.serial('example.com.') == 1


def test_killed_after_the_request_before_the_answer_and_again(server: PowerDns, provider: PdnsProvider,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """It was done all the same: the plan is applied again without harm, and the next one is empty."""
    bring(provider, a_zone('www A 192.0.2.1\nold A 192.0.2.1\n', 1))
    desired = a_zone('www A 192.0.2.2\nnew A 192.0.2.1\n', 2)
    plan = planned(provider, desired)
    real = provider.patch

    def lost(*given: Any) -> PdnsAnswer:
        real(*given)
        server.kill()
        raise ConnectionResetError(104, 'Connection reset by peer')

    monkeypatch.setattr(provider, 'patch', lost)
    with pytest.raises(ConnectionResetError):
        provider.apply(plan)
    monkeypatch.undo()
    server.start()
    assert server.serial('example.com.') == 2
    assert provider.apply(plan).ok
    assert provider.plan(desired) is None


def test_somebody_else_changes_the_same_rrset_between_plan_and_apply(server: PowerDns, provider: PdnsProvider) -> None:
    """That change fails, and is seen by the next plan."""
    bring(provider, a_zone('www A 192.0.2.1\n', 1))
    desired = a_zone('www A 192.0.2.2\nnew A 192.0.2.1\n', 2)
    plan = provider.plan(desired)
    put(server, 'www.example.com.', 'A', '192.0.2.3')
    assert plan is not None
    result = provider.apply(plan)
    assert result == ApplyResult(1, 1, 1, (
        'www.example.com. A: it was changed by somebody else after the plan was made',))
    assert server.texts('www.example.com.', 'A') == ['192.0.2.3']
    assert server.serial('example.com.') == 1
    bring(provider, desired)


def test_the_zone_is_deleted_between_plan_and_apply(server: PowerDns, provider: PdnsProvider) -> None:
    bring(provider, a_zone('www A 192.0.2.1\n', 1))
    desired = a_zone('www A 192.0.2.2\n', 2)
    plan = provider.plan(desired)
    ask(server, 'DELETE', '/zones/example.com.')
    assert plan is not None
    with pytest.raises(BackendError, match='does not have the zone example.com. any more'):
        provider.apply(plan)
    bring(provider, desired)


def test_somebody_else_makes_the_zone_between_plan_and_apply(server: PowerDns, provider: PdnsProvider) -> None:
    desired = a_zone('www A 192.0.2.2\n', 2)
    plan = provider.plan(desired)
    ask(server, 'POST', '/zones', {'name': 'example.com.', 'kind': 'Native', 'nameservers': ['ns9.example.net.']})
    assert plan is not None and not plan.exists
    result = provider.apply(plan)
    assert result.errors == ('example.com. NS: it was changed by somebody else after the plan was made',)
    assert provider.plan(desired) is not None


@pytest.mark.parametrize(('options', 'why'), [
    ({'api_key': 'wrong'}, 'refuses the api_key'),
    ({'server_id': 'elsewhere'}, "no API for a server 'elsewhere'")])
def test_what_no_retry_can_mend(server: PowerDns, options: dict[str, str], why: str) -> None:
    desired = a_zone()
    plan = planned(provider_of(server), desired)
    provider = provider_of(server, **options)
    for act in (lambda: provider.plan(desired), lambda: provider.create_zone(desired), provider.ping,
                lambda: provider.apply(plan), lambda: provider.delete_zone('example.com.'),
                lambda: provider.zones([]), provider.settings):
        with pytest.raises(BackendRefused, match=why):
            act()
    assert server.zones() == {}


def test_trouble_inside_the_server_leaves_nothing_half_done(server: PowerDns, provider: PdnsProvider) -> None:
    bring(provider, a_zone('www A 192.0.2.1\n', 1))
    desired = a_zone('www A 192.0.2.2\nnew A 192.0.2.2\n', 2)
    plan = provider.plan(desired)
    with contextlib.closing(sqlite3.connect(server.database, timeout=10)) as database, database:
        database.execute("CREATE TRIGGER no_more BEFORE INSERT ON records WHEN NEW.name = 'new.example.com' "
                         "BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    assert plan is not None
    with pytest.raises(BackendError, match=r'change example.com.: Internal Server Error \(500\)'):
        provider.apply(plan)
    assert server.texts('www.example.com.', 'A') == ['192.0.2.1']
    with contextlib.closing(sqlite3.connect(server.database, timeout=10)) as database, database:
        database.execute('DROP TRIGGER no_more')
    bring(provider, desired)
