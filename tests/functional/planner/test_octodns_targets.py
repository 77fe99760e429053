"""octoDNS's own providers, sources and processors in our plans, against real servers."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, SourceError
from designate_pool.planner.octodns.adapter import AdaptedProvider, OctodnsServer, adapt_provider
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.targets.fake import zone_of
from designate_pool.planner.zone.zone import Zone
from testing.bind import Named
from testing.pdns import PowerDns
from testing.processes import free_port
from tests.fixtures.plans import bring, contents, planned
from tests.fixtures.updates import KEY, NEW, named_with

#: octodns-bind and octodns-powerdns use what octoDNS 1.22 calls old.
pytestmark = pytest.mark.filterwarnings('ignore::DeprecationWarning')
NAME = 'example.com.'
#: octodns-bind cannot read a LOC record with the usual size and precisions, which dnspython leaves out.
BIND, PDNS = 'octodns_bind.Rfc2136Provider', 'octodns_powerdns.PowerDnsProvider'
RECORDS = '''
@        300 NS    ns1.example.net.
@        300 MX    10 mail
@        300 TXT   "v=spf1 -all"
@        300 CAA   0 issue "ca.example.net"
@        300 HTTPS 1 . alpn="h2,h3" ipv4hint=192.0.2.1
www       60 A     192.0.2.1
www       60 A     192.0.2.2
www      300 AAAA  2001:db8::1
alias    300 CNAME www
*.wild   300 A     192.0.2.9
dkim     300 TXT   "v=DKIM1; k=rsa; p=MIGf"
_sip._tcp 300 SRV  0 5 5060 sip.example.org.
_443._tcp.www 300 TLSA 3 1 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
host     300 SSHFP 4 2 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
host     300 LOC   52 22 23.000 N 4 53 32.000 E -2.00m 2m 10000m 10m
host     300 NAPTR 100 10 "U" "E2U+sip" "!^.*$!sip:info@example.com!" .
ptr      300 PTR   host.example.net.
ptr      300 PTR   other.example.net.
mail     300 A     192.0.2.3
sub      300 NS    ns.sub
sub      300 DS    12345 13 2 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
ns.sub   300 A     192.0.2.53
'''


def zone(text: str = RECORDS) -> Zone:
    return zone_of(NAME, text)


def of_bind(server: Named, **settings: object) -> AdaptedProvider:
    return OctodnsServer('bind', _class(BIND), {
        'host': server.host, 'port': server.port, 'key_name': KEY.name, 'key_secret': KEY.secret,
        'key_algorithm': KEY.algorithm, 'timeout': 5, **settings})


def of_pdns(server: PowerDns, **settings: object) -> AdaptedProvider:
    return OctodnsServer('pdns', _class(PDNS), {
        'host': server.host, 'port': server.api_port, 'api_key': server.api_key, **settings})


def _class(path: str) -> type:
    module, _, name = path.rpartition('.')
    found: type = getattr(__import__(module), name)
    return found


@pytest.fixture(params=['bind', 'pdns'])
def target(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> AdaptedProvider:
    if request.param == 'bind':
        return of_bind(named_with(request.getfixturevalue('named'), tmp_path, {NAME: NEW.format(serial=5)}))
    return of_pdns(request.getfixturevalue('powerdns')())


def test_a_zone_follows_from_one_state_to_the_next(target: AdaptedProvider) -> None:
    """Records come, change and go; a CNAME takes the place of addresses, and these its place."""
    other = zone(RECORDS.replace('alias    300 CNAME www', 'alias 300 A 192.0.2.5')
                 .replace('mail     300 A     192.0.2.3', 'mail 300 CNAME mx.example.net.'))
    after = zone(RECORDS.replace('60 A     192.0.2.1', '60 A     192.0.2.77').replace('mail     300 A', 'mail 60 A')
                 .replace('dkim ', 'dkom '))
    for desired, counts in ((zone(), None), (other, (0, 2, 0)), (zone(), (0, 2, 0)), (after, (1, 2, 1))):
        plan = bring(target, desired)
        assert counts in (None, plan.counts)
        assert contents(target) == desired


def test_a_plan_that_lost_octodns_side_is_applied_all_the_same(target: AdaptedProvider) -> None:
    bring(target, zone())
    after = zone(RECORDS.replace('192.0.2.3', '192.0.2.4').replace('dkim ', 'dkom '))
    found = planned(target, after)
    plain = Plan(found.existing, found.desired, found.changes, found.exists, target_id=found.target_id)
    assert target.apply(plain).applied == 3
    assert target.plan(after) is None
    assert contents(target) == after


def test_a_zone_is_deleted_by_deleting_its_records_and_may_be_deleted_again(target: OctodnsServer) -> None:
    bring(target, zone())
    target.delete_zone(NAME)
    # A server may keep the NS records that a zone must have (RFC 2136 section 3.4.2.4).
    assert {each.type for each in contents(target)} <= {'NS'}
    target.delete_zone(NAME)
    bring(target, zone())
    assert contents(target) == zone()


def test_a_refused_key_and_a_server_that_is_away_are_told_apart(powerdns: Callable[..., PowerDns]) -> None:
    server = powerdns()
    target = of_pdns(server)
    wrong = of_pdns(server, api_key='another')
    with pytest.raises(BackendError, match='unauthorized'):
        wrong.plan(zone())
    with pytest.raises(BackendRefused):
        wrong.ping()  # type: ignore[attr-defined]
    plan = planned(target, zone())
    server.stop()
    with pytest.raises(BackendUnreachable, match='refused'):
        target.plan(zone())
    with pytest.raises(BackendUnreachable, match='refused'):
        target.apply(plan)
    with pytest.raises(BackendUnreachable):
        target.ping()  # type: ignore[attr-defined]
    server.start()
    target.ping()  # type: ignore[attr-defined]
    bring(target, zone())


def test_bind_that_refuses_the_key_or_is_away_is_an_error_and_never_an_empty_zone(
        named: Callable[..., Named], tmp_path: pathlib.Path) -> None:
    server = named_with(named, tmp_path, {NAME: NEW.format(serial=5)})
    source = adapt_provider('source', 'octodns_bind.AxfrSource', {'host': server.host, 'port': server.port})
    found = zone()
    with pytest.raises(SourceError, match='source cannot be read: Unable to Perform Zone Transfer'):
        source.populate(found)
    assert found == zone()
    away = of_bind(server, port=free_port())
    with pytest.raises(BackendUnreachable):
        away.plan(zone())
