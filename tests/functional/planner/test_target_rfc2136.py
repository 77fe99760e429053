"""Planning for real servers that take DNS UPDATE, and applying to them."""

from __future__ import annotations

import pathlib
import time
import types
from collections.abc import Callable, Iterator

import dns.query
import dns.rcode
import dns.tsig
import dns.update
import pytest

from designate_pool import deadline
from designate_pool.errors import BackendError, BackendRefused
from designate_pool.planner.plan.safety import dangers
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider
from designate_pool.planner.targets.fake import zone_of
from designate_pool.planner.targets.rfc2136 import Rfc2136Provider
from designate_pool.planner.zone.zone import Zone
from testing.bind import Named
from testing.daemon import Daemon
from tests.fixtures import plans
from tests.fixtures.plans import contents, planned
from tests.fixtures.updates import KEY, NEW, SOA, LossyWay, knotd_with, named_with, provider

NAME = 'example.com.'
ALL_TYPES = '''
@        300 NS    ns1.example.net.
@        300 NS    ns2.example.net.
@        300 MX    10 mail
@        300 TXT   "v=spf1 -all" "a \\"quoted\\" \\\\ and \\195\\164 one"
@        300 CAA   0 issue "ca.example.net"
@        300 HTTPS 1 . alpn="h2,h3" ipv4hint=192.0.2.1
www       60 A     192.0.2.1
www       60 A     192.0.2.2
www      300 AAAA  2001:db8::1
alias    300 CNAME www
*.wild   300 A     192.0.2.9
_sip._tcp 300 SRV  0 5 5060 sip.example.org.
_443._tcp.www 300 TLSA 3 1 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
_https.svc 300 SVCB 1 svc.example.net. port=8443
host     300 SSHFP 4 2 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
host     300 LOC   52 22 23.000 N 4 53 32.000 E -2.00m 1m 10000m 10m
host     300 NAPTR 100 10 "U" "E2U+sip" "!^.*$!sip:info@example.com!" .
host     300 URI   10 1 "ftp://ftp.example.com/public"
host     300 RP    admin.example.com. txt.example.com.
ptr      300 PTR   host.example.net.
ptr      300 PTR   other.example.net.
old      300 DNAME new.example.net.
mail     300 A     192.0.2.3
a\\.b    300 TXT   "a dot in a label"
sub      300 NS    ns.sub
sub      300 DS    12345 13 2 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
ns.sub   300 A     192.0.2.53
key      300 OPENPGPKEY AQIDBA==
odd      300 TYPE65280 \\# 4 c0000201
'''


def zone(text: str, serial: int | None = 1000) -> Zone:
    return zone_of(NAME, (SOA.format(serial=serial) if serial is not None else '') + text)


def many(count: int, net: str = '10.0', serial: int | None = 1000) -> Zone:
    lines = [f'host{number} 300 A {net}.{number >> 8}.{number & 255}' for number in range(count)]
    return zone('@ 300 NS ns1.example.net.\n' + '\n'.join(lines), serial)


def bring(target: Rfc2136Provider, desired: Zone) -> None:
    plans.bring(target, desired)
    assert contents(target) == desired


@pytest.fixture
def bind(named: Callable[..., Named], tmp_path: pathlib.Path) -> Named:
    return named_with(named, tmp_path, {NAME: NEW.format(serial=5)})


@pytest.fixture(params=['bind', 'knot'])
def server(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Daemon:
    zones = {NAME: NEW.format(serial=5)}
    if request.param == 'bind':
        return named_with(request.getfixturevalue('named'), tmp_path, zones, options='max-records-per-type 0;')
    return knotd_with(request.getfixturevalue('knotd'), tmp_path, zones)


@pytest.fixture
def way(bind: Named) -> Iterator[LossyWay]:
    made = LossyWay(bind.port)
    yield made
    made.stop()


def by_hand(server: Daemon, *steps: tuple[str, ...]) -> None:
    """Change the zone behind the provider's back: ``('add', 'www', 60, 'A', '192.0.2.1')``, ``('delete', 'www')``."""
    update = dns.update.UpdateMessage(NAME)
    update.use_tsig(dns.tsig.Key(KEY.name, KEY.secret, KEY.algorithm))
    for verb, *words in steps:
        getattr(update, verb)(*words)
    assert dns.query.tcp(update, server.host, 5, server.port).rcode() == dns.rcode.NOERROR


class TestEveryServer:
    def test_all_record_types_come_change_and_go(self, server: Daemon) -> None:
        target = provider(server)
        bring(target, zone(ALL_TYPES, 1000))
        assert server.serial(NAME) == 1000
        assert server.texts('www.example.com.', 'A') == ['192.0.2.1', '192.0.2.2']
        assert server.texts('alias.example.com.', 'CNAME') == ['www.example.com.']
        bring(target, zone(ALL_TYPES.replace(' 300 ', ' 400 ').replace(' 60 ', ' 70 '), 2000))
        bring(target, zone('@ 300 NS ns1.example.net.', 3000))
        assert server.serial(NAME) == 3000

    def test_names_in_data_in_another_case_are_the_same(self, server: Daemon) -> None:
        target = provider(server)
        records = ('@ 300 NS ns1.example.net.\nsip 300 NAPTR 100 10 "U" "E2U+sip" "" Sip.Example.NET.\n'
                   'www 300 HTTPS 1 Svc.Example.NET. alpn="h2"\n')
        bring(target, zone(records, 10))
        assert target.plan(zone(records, 10)) is None
        for name, rtype, data in (('sip', 'NAPTR', '100 10 "U" "E2U+sip" "" SIP.Example.NET.'),
                                  ('www', 'HTTPS', '1 SVC.Example.NET. alpn="h2"')):
            by_hand(server, ('delete', name, rtype), ('add', name, 300, rtype, data))
        bring(target, zone(records.replace('alpn="h2"', 'alpn="h3"').replace('sip 300', 'sip 400'), 4000))

    def test_an_alias_gives_way_to_an_address_and_comes_back(self, server: Daemon) -> None:
        target = provider(server)
        ns = '@ 300 NS ns1.example.net.\n'
        bring(target, zone(ns + 'www 60 CNAME mail', 10))
        bring(target, zone(ns + 'www 60 A 192.0.2.1\nwww 60 TXT "beside"', 20))
        bring(target, zone(ns + 'www 60 CNAME mail', 30))
        assert server.texts('www.example.com.', 'CNAME') == ['mail.example.com.']
        plans.refuse_cname_beside_mail(target, zone(ns, 40))

    def test_none_of_the_own_name_servers_stays(self, server: Daemon) -> None:
        target = provider(server)
        bring(target, zone('@ 300 NS a.example.net.\n@ 300 NS b.example.net.', 10))
        bring(target, zone('@ 600 NS c.example.net.', 20))

    def test_somebody_else_was_faster_and_the_second_round_mends_it(self, server: Daemon) -> None:
        target = provider(server)
        ns = '@ 300 NS ns1.example.net.\n'
        bring(target, zone(ns + 'www 60 A 192.0.2.1\nmail 60 A 192.0.2.2\ngone 60 A 192.0.2.3', 10))
        desired = zone(ns + 'www 60 A 192.0.2.11\nmail 60 A 192.0.2.12\nnew 60 A 192.0.2.13', 20)
        plan = planned(target, desired)
        by_hand(server, ('replace', 'www', '60', 'A', '192.0.2.99'), ('add', 'gone', '60', 'A', '192.0.2.99'),
                ('add', 'new', '60', 'CNAME', 'mail'))
        result = target.apply(plan)
        assert (result.applied, result.failed, result.skipped) == (1, 3, 1), result
        assert sum('somebody else changed it meanwhile' in error for error in result.errors) == 2
        assert 'the server has CNAME there' in ''.join(result.errors)
        assert server.texts('mail.example.com.', 'A') == ['192.0.2.12']
        assert server.texts('www.example.com.', 'A') == ['192.0.2.99']
        assert server.serial(NAME) not in (10, 20)
        bring(target, desired)
        assert server.serial(NAME) == 20

    def test_names_in_capitals_on_the_server(self, server: Daemon) -> None:
        target = provider(server)
        by_hand(server, ('add', 'WWW', '60', 'CNAME', 'Mail.Example.NET.'),
                ('add', '@', '60', 'MX', '10 Mail.Example.NET.'),
                ('add', 'WWW2', '60', 'SRV', '0 0 1 Mail.Example.NET.'))
        text = ('@ 300 NS ns1.example.net.\nwww 60 CNAME mail.example.net.\n@ 60 MX 10 mail.example.net.\n'
                'www2 60 SRV 0 0 1 mail.example.net.\n')
        assert target.plan(zone(text, 5)) is None
        bring(target, zone(text.replace(' 60 ', ' 70 ').replace('SRV 0 0 1 mail.example.net.', 'A 192.0.2.1'), 20))

    def test_a_zone_is_emptied_and_emptied_again(self, server: Daemon) -> None:
        target = provider(server)
        desired = zone(ALL_TYPES + 'ns9 300 A 192.0.2.9\n@ 300 NS ns9\n', 10)
        bring(target, desired)
        for _ in range(2):
            target.delete_zone(NAME)
            left = {each.key for each in contents(target)}
            assert left == {f'{NAME}\tSOA', f'{NAME}\tNS', f'ns9.{NAME}\tA'}
        bring(target, zone(ALL_TYPES, 5000))

    def test_a_zone_that_is_not_there(self, server: Daemon) -> None:
        target = provider(server)
        desired = zone_of('other.example.', SOA.format(serial=1) + '@ 300 NS ns1.example.net.\n')
        plan = planned(target, desired)
        assert not plan.exists
        with pytest.raises(BackendRefused, match='does not have the zone other.example.*create it there by hand'):
            target.apply(plan)
        target.delete_zone('other.example.')
        target.create_zone(zone('', 1))

    def test_zones_and_their_serials(self, server: Daemon) -> None:
        target = provider(server)
        names = [NAME, 'other.example.', 'www.example.com.', *(f'z{number}.example.' for number in range(200))]
        assert target.zones(names) == ({NAME: 5}, False)
        assert target.zones([]) == ({}, False)
        target.ping()

    def test_more_data_than_a_message_holds(self, server: Daemon) -> None:
        target = provider(server)
        ns = '@ 300 NS ns1.example.net.\n'

        def big(net: str, ttl: int) -> str:
            return ns + '\n'.join(f'big {ttl} A {net}.{number >> 8}.{number & 255}' for number in range(2100))

        bring(target, zone(big('10.0', 60), 100))
        bring(target, zone(big('10.1', 60), 200))
        bring(target, zone(ns + 'big 60 CNAME www', 400))


def test_a_zone_with_nothing_in_it_counts_as_new(bind: Named) -> None:
    """Somebody had to make up its NS records; with anything else in it, a change of these is one to be asked for."""
    target = provider(bind)
    desired = zone('@ 60 NS ns.other.example.\nwww 60 A 192.0.2.1')
    plan = planned(target, desired)
    assert not plan.exists and not dangers(plan)
    by_hand(bind, ('add', 'old', '60', 'A', '192.0.2.9'))

    class HidesAll(BaseProcessor):
        def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
            return existing.empty()

    for processors in ((), (HidesAll('others own it'),)):
        plan = planned(target, desired, processors)
        assert plan.exists
    target.delete_zone(NAME)
    plan = planned(target, desired)
    assert target.apply(plan).ok
    assert target.plan(desired) is None


class TestManyChanges:

    def test_others_run_while_a_large_zone_is_read(self, bind: Named, monkeypatch: pytest.MonkeyPatch) -> None:
        target, rests = provider(bind), []
        bring(target, many(3000))
        monkeypatch.setattr(deadline, 'TURN', 0.0)
        monkeypatch.setattr(deadline, 'time', types.SimpleNamespace(sleep=rests.append, monotonic=time.monotonic))
        assert len(contents(target)) == 3002
        assert len(rests) > 1 and not any(rests)

    def test_the_new_serial_comes_with_the_last_message(self, bind: Named, way: LossyWay) -> None:
        seen: list[int | None] = []
        way.before = lambda number: seen.append(bind.serial(NAME))
        bring(provider(bind, port=way.port), many(2000, serial=1000))
        assert seen == [5 + number for number in range(len(seen))] and len(seen) > 2
        assert bind.serial(NAME) == 1000

    def test_own_name_servers_and_mail_hosts_move_with_their_addresses(self, bind: Named, way: LossyWay) -> None:
        """After each message BIND refuses a zone whose name servers have no address in it, and MX without one."""
        target = provider(bind, port=way.port)

        def of(name: str, net: str, serial: int) -> Zone:
            found = many(1500, net, serial)
            return zone_of(NAME, '\n'.join(
                f'{each.name} {each.ttl} {each.type} {data}' for each in found if each.type != 'NS'
                for data in each.rdatas) + f'\n@ 300 NS {name}\n{name} 300 A 192.0.2.1\n@ 300 MX 10 mx.{name}\n'
                           f'mx.{name} 300 A 192.0.2.1\n')

        bring(target, of('aaa', '10.0', 100))
        way.updates.clear()
        bring(target, of('zzz', '10.1', 200))
        assert len(way.updates) > 2
        bring(target, of('aaa', '10.2', 300))


class TestSerial:
    def test_a_server_that_is_ahead_is_left_there(self, bind: Named) -> None:
        target = provider(bind)
        text = '@ 300 NS ns1.example.net.\n'
        bring(target, zone(text, 2000))
        assert target.plan(zone(text, 1999)) is None
        plan = planned(target, zone(text + 'www 60 A 192.0.2.1', 1999))
        assert [each.name for each in plan.changes] == ['www.example.com.']
        assert target.apply(plan).ok
        assert bind.serial(NAME) == 2001
        assert target.plan(zone(text + 'www 60 A 192.0.2.1', 1999)) is None

    def test_sources_without_a_soa_leave_the_serial_to_the_server(self, bind: Named) -> None:
        target = provider(bind)
        desired = zone('@ 300 NS ns1.example.net.\nwww 60 A 192.0.2.1', None)
        plan = planned(target, desired)
        assert len(plan.changes) == 1
        assert target.apply(plan).ok
        assert bind.serial(NAME) == 6
        assert target.plan(desired) is None


class TestRefusals:
    def test_no_key(self, bind: Named) -> None:
        with pytest.raises(BackendRefused, match='the server does not let example.com. be transferred'):
            provider(bind, None).plan(zone(''))

    def test_clocks_that_differ(self, bind: Named, monkeypatch: pytest.MonkeyPatch) -> None:
        target = provider(bind)
        late = types.SimpleNamespace(time=lambda: time.time() - 1000)
        for module in ('dns.message', 'designate_pool.protocol.tcp_client'):
            monkeypatch.setattr(f'{module}.time', late)
        for call in (target.ping, lambda: target.plan(zone(''))):
            with pytest.raises(BackendError, match='differs .* it is (999|100.) s ahead of ours .BADTIME') as caught:
                call()
            assert caught.value.retryable

    def test_an_mx_to_an_alias_is_named_and_the_rest_is_made(self, bind: Named) -> None:
        """BIND's default, check-integrity, refuses the message that has it."""
        target = provider(bind)
        ns = '@ 300 NS ns1.example.net.\n' + ''.join(f'host{number} 60 A 192.0.2.{number}\n' for number in range(40))
        desired = zone(ns + 'www 60 CNAME host1\n@ 60 MX 10 www\nhost1 60 MX 10 host2\nhost2 60 MX 10 nowhere')
        result = target.apply(planned(target, desired))
        assert (result.failed, result.skipped) == (2, 1), result
        whys = ('www.example.com., which is a CNAME', 'nowhere.example.com., which has no address')
        for error, why in zip(sorted(result.errors), whys, strict=True):
            assert 'MX: the server refuses the update (REFUSED)' in error and f'BIND takes no MX to {why}' in error
        again = planned(target, desired)
        assert sorted(change.name for change in again.changes if 'MX' in change.types) == [NAME, f'host2.{NAME}']
        with pytest.raises(BackendRefused, match='^example.com. MX: .* host2.example.com. MX: .*nowhere'):
            target.apply(again)

    def test_a_policy_that_forbids_the_serial(self, named: Callable[..., Named], tmp_path: pathlib.Path) -> None:
        """update-policy without types leaves out SOA and NS: the message with the SOA is refused, with all in it."""
        server = named_with(named, tmp_path, {NAME: NEW.format(serial=5)},
                            'update-policy { grant update.example. zonesub; };'
                            ' allow-transfer { key "update.example."; };')
        target = provider(server)
        desired = many(2000, serial=6)
        plan = planned(target, desired)
        result = target.apply(plan)
        assert result.applied > 500 and result.failed and 'including SOA and NS' in result.errors[0]


def test_a_zone_that_the_server_signs(named: Callable[..., Named], tmp_path: pathlib.Path) -> None:
    """What the server makes for DNSSEC is neither read nor touched, and its own serials are no difference."""
    server = named_with(named, tmp_path, {NAME: NEW.format(serial=5)}, (
        'dnssec-policy default; allow-update { key "update.example."; }; allow-transfer { key "update.example."; };'))
    target = provider(server)
    ns = '@ 300 NS ns1.example.net.\n'
    for text, serial in ((ns + 'www 60 A 192.0.2.1', 1000), (ns + 'www 60 CNAME mail', 2000),
                         (ns + 'www 60 A 192.0.2.1\nnew 60 CNAME www', 3000), (ns, 4000)):
        plan = planned(target, zone(text, serial))
        assert target.apply(plan).ok
        assert target.plan(zone(text, serial)) is None
    assert server.texts(NAME, 'DNSKEY')
