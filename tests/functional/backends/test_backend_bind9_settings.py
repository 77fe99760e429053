"""What the bind9 driver does with zones that a BIND has already: made earlier, by hand, or by its configuration."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator

import dns.rcode
import pytest

from designate_pool.model import CallResult, Endpoint, Server, TsigKey
from designate_pool.testing import NOWHERE, ODD_NAMES, a_domain, opened
from testing.bind import Named
from testing.processes import wait_until
from tests.fixtures.nameservers import Primary, zone_text
from tests.fixtures.rigs import KEY

Start = Callable[..., Named]
OTHER_KEY = TsigKey('other.example.', 'hmac-sha512', 'YW5vdGhlciBrZXkgb25seSBmb3IgdGVzdHM=')
DEAD = Endpoint('::1', 9)


@pytest.fixture
def keyed() -> Iterator[tuple[Primary, Primary]]:
    """Two more primaries, with keys."""
    with Primary(keys=[KEY, OTHER_KEY]) as one, Primary(keys=[KEY, OTHER_KEY]) as other:
        yield one, other


def create(server: Server, name: str = 'example.com.', generation: int = 1) -> CallResult:
    with opened(server) as backend:
        return backend.create_domain(a_domain(name, generation))


def delete(server: Server, name: str = 'example.com.') -> CallResult:
    with opened(server) as backend:
        return backend.delete_domain(a_domain(name))


def wait_for(server: Named, serial: int) -> None:
    wait_until(lambda: server.serial('example.com.') == serial, f'serial {serial} is served')


def settings(server: Named, name: str = 'example.com.', view: str = '_default') -> str:
    return ' '.join(server.command(f'showzone "{name}" IN {view}').text.split())


def test_created_again_with_other_primaries_and_another_key(named: Start, primary: Primary,
                                                            keyed: tuple[Primary, Primary]) -> None:
    second = keyed[0]
    primary.publish('example.com.', zone_text(1))
    second.publish('example.com.', zone_text(2))
    server = named(keys=[KEY, OTHER_KEY])
    assert create(server.server([DEAD, primary.endpoint])).ok
    wait_for(server, 1)
    primary.stop()

    assert create(server.server([DEAD, second.endpoint], tsig_key=KEY)).ok
    assert server.serial('example.com.') in (1, 2)
    wait_for(server, 2)
    assert f'primaries {{ ::1 port 9 key "transfer.example."; 127.0.0.1 port {second.port} key' in settings(server)

    assert create(server.server([second.endpoint], tsig_key=OTHER_KEY)).ok
    assert f'primaries {{ 127.0.0.1 port {second.port} key "other.example."; }};' in settings(server)
    second.publish('example.com.', zone_text(3))
    wait_until(lambda: server.follows('example.com.', 3), 'it is fetched with the other key')
    assert "TSIG 'other.example'" in server.log

    server.restart()  # which may lose what was not yet written to its disk, but not where it fetches
    second.publish('example.com.', zone_text(4))
    wait_until(lambda: server.follows('example.com.', 4), 'it still fetches from there')
    assert 'other.example.' in settings(server)


def test_created_again_with_the_same_settings_changes_nothing(named: Start, primary: Primary) -> None:
    primary.publish('example.com.', zone_text(1))
    server = named(keys=[KEY])
    facts = server.server([primary.endpoint, DEAD], tsig_key=KEY)
    for name in ('example.com.', *ODD_NAMES.values()):
        assert create(facts, name).ok
        assert create(facts, name, generation=2).ok
    server.restart()
    for name in ('example.com.', *ODD_NAMES.values()):
        assert create(facts, name, generation=3).ok
    assert 'modzone' not in server.log


def test_zone_moves_to_another_folder_when_named_starts_next(named: Start, primary: Primary,
                                                             tmp_path: pathlib.Path) -> None:
    primary.publish('example.com.', zone_text(1))
    folder = tmp_path / 'zones'
    folder.mkdir()
    server = named()
    assert create(server.server([primary.endpoint])).ok
    wait_for(server, 1)
    facts = server.server([primary.endpoint], zone_file_folder=str(folder))
    assert create(facts, generation=2).ok
    assert server.serial('example.com.') == 1
    assert f'file "{folder}/example.com.1.db"' in settings(server)
    server.restart()
    wait_until((folder / 'example.com.1.db').exists, 'the zone is written where it is to be')
    assert delete(facts).ok
    wait_until(lambda: not list(folder.iterdir()), 'named has removed the file')


def test_moved_zone_is_deleted_before_named_has_moved_its_file(named: Start, primary: Primary) -> None:
    primary.publish('example.com.', zone_text(1))
    server = named()
    assert create(server.server([primary.endpoint])).ok
    wait_until((server.folder / 'example.com.1.db').exists, 'the zone is written')
    facts = server.server([primary.endpoint], zone_file_folder=str(server.folder / 'zones'))
    assert create(facts).ok
    assert delete(facts).ok
    wait_until(lambda: not (server.folder / 'example.com.1.db').exists(), 'named has removed the file')
    assert server.running


@pytest.mark.parametrize('file', ['', 'file "x.db"; '])
def test_zone_added_by_hand_gets_the_primaries_and_keeps_the_rest(named: Start, primary: Primary, file: str) -> None:
    primary.publish('example.com.', zone_text(1))
    server = named()
    rest = 'allow-transfer { 192.0.2.1/32; key "rndc-key"; }; max-records 99; '
    assert server.command(f'addzone "example.com" {{ type secondary; {file}{rest}primaries {{ ::1; }}; }};').result == 0
    facts = server.server([primary.endpoint])
    assert create(facts).ok
    wait_until(lambda: server.follows('example.com.', 1), 'it is fetched')
    assert create(facts).ok
    for statement in (*file.split('; '), *rest.split('; '), f'primaries {{ 127.0.0.1 port {primary.port}'):
        assert statement in settings(server)
    assert delete(facts).ok
    wait_until(lambda: server.query('example.com.').rcode() == dns.rcode.REFUSED, 'the zone is gone')
    assert server.running
    assert (server.folder / 'x.db').exists() == bool(file)


@pytest.mark.parametrize('situation', ['loaded', 'other primaries', 'never loaded'])
def test_zone_of_the_configuration_has_to_be_taken_out_of_it(named: Start, primary: Primary, situation: str) -> None:
    primary.publish('example.com.', zone_text(1))
    source = primary.endpoint if situation == 'loaded' else NOWHERE
    statement = f'zone "example.com" {{ type secondary; primaries {{ 127.0.0.1 port {source.port}; }}; }};'
    server = named(statements=statement)
    if situation == 'loaded':
        wait_for(server, 1)
    facts = server.server([primary.endpoint if situation == 'other primaries' else source])
    for result in (create(facts), delete(facts)):
        assert str(result.error) == "example.com. is configured in named.conf there: remove it and run 'rndc reconfig'"
        assert result.retryable
    server.reconfigure(statement, '')
    assert create(facts).ok
    assert 'file "example.com.1.db"' in settings(server)
    assert delete(facts).ok


def test_member_of_a_catalog_zone_has_to_be_taken_from_it(named: Start, primary: Primary) -> None:
    primary.publish('catalog.example.', zone_text(1, 'version TXT "2"', 'one.zones PTR example.com.'))
    primary.publish('example.com.', zone_text(1))
    server = named(catalog=('catalog.example.', [primary.endpoint], None))
    wait_for(server, 1)
    facts = server.server([primary.endpoint])
    for result in (create(facts), delete(facts)):
        assert 'example.com. is a member of a catalog zone there' in str(result.error)
        assert result.retryable
    assert server.serial('example.com.') == 1
    server.reconfigure('catalog-zones {', '# {')
    assert create(facts).ok
    wait_for(server, 1)
    assert delete(facts).ok


def test_zone_that_named_has_lost_from_its_list_is_put_back_or_deleted_with_its_file(
        named: Start, primary: Primary) -> None:
    primary.publish('example.com.', zone_text(1))
    server = named()
    facts = server.server([primary.endpoint])
    assert create(facts).ok
    wait_for(server, 1)
    server.lose_from_list('example.com')
    assert create(facts).ok
    assert settings(server).count(f'127.0.0.1 port {primary.port}') == 1
    server.restart()
    wait_for(server, 1)
    primary.publish('example.com.', zone_text(2))
    wait_until(lambda: server.follows('example.com.', 2), 'it follows')
    server.lose_from_list('example.com')
    assert delete(facts).ok
    wait_until(lambda: server.query('example.com.').rcode() == dns.rcode.REFUSED, 'the zone is gone')
    wait_until(lambda: not list(server.folder.glob('example.com.*')), 'its file is gone')
    assert create(facts, generation=2).ok
    wait_for(server, 2)


def test_zone_lost_from_the_list_before_it_was_served_is_added_anew(named: Start, primary: Primary) -> None:
    server = named()
    assert create(server.server([NOWHERE])).ok
    server.lose_from_list('example.com')
    facts = server.server([primary.endpoint])
    primary.publish('example.com.', zone_text(1))
    first = create(facts)
    assert first.error == ('example.com. was not served, and not in the list of zones that named has added; it has been'
                           ' deleted, and the next try adds it')
    assert first.retryable
    wait_until(lambda: create(facts).ok and 'file "example.com.1.db"' in settings(server), 'it is added')
    wait_for(server, 1)


def test_automatic_empty_zone_has_to_be_disabled(named: Start) -> None:
    server = named(statements='view "all" { recursion yes; empty-zones-enable yes; };')
    facts = server.server([NOWHERE], view='all')
    for _ in range(2):
        assert '\'disable-empty-zone "10.in-addr.arpa.";\'' in str(create(facts, '10.in-addr.arpa.').error)
        assert delete(facts, '10.in-addr.arpa.').ok
    server.reconfigure('recursion yes;', 'recursion yes; disable-empty-zone "10.in-addr.arpa.";')
    assert create(facts, '10.in-addr.arpa.').ok
    assert delete(facts, '10.in-addr.arpa.').ok
    assert server.running


def test_one_name_in_two_views_of_one_machine(named: Start, keyed: tuple[Primary, Primary]) -> None:
    for serial, primary in enumerate(keyed, 1):
        primary.publish('example.com.', zone_text(serial))
    server = named(keys=[KEY, OTHER_KEY], statistics=True, statements='''
        view "inside" { match-clients { key "transfer.example."; }; };
        view "outside" { match-clients { any; }; };''')
    inside = server.server([keyed[1].endpoint], view='inside', tsig_key=KEY)
    outside = server.server([keyed[0].endpoint], view='outside', tsig_key=OTHER_KEY)

    def serials() -> tuple[int | None, int | None]:
        listed = []
        for facts in (inside, outside):
            with opened(facts) as asked:
                listed.append(asked.list_zones(['example.com.']).serials.get('example.com.'))
        return listed[0], listed[1]

    for facts in (inside, outside):
        assert create(facts).ok
        assert create(facts).ok
    wait_until(lambda: serials() == (2, 1), 'each view serves its own')
    assert server.query('example.com.', key=KEY).answer[0][0].serial == 2
    assert server.query('example.com.', key=OTHER_KEY).answer[0][0].serial == 1
    assert 'file "example.com@inside.1.db"' in settings(server, view='inside')
    assert delete(inside).ok
    wait_until(lambda: serials() == (None, 1), 'it is gone from the one')
    assert server.query('example.com.', key=OTHER_KEY).answer[0][0].serial == 1
    assert delete(inside).ok
    assert create(inside).ok
    wait_until(lambda: serials() == (2, 1), 'it is back')
    server.restart()
    wait_until(lambda: serials() == (2, 1), 'both have survived')
    assert delete(inside).ok
    assert delete(outside).ok
    wait_until(lambda: serials() == (None, None), 'both are gone')


@pytest.mark.parametrize('statistics', [False, True])
def test_zones_and_their_serials_are_listed(named: Start, primary: Primary, statistics: bool) -> None:
    primary.publish('example.com.', zone_text(2 ** 32 - 1))
    server = named(statistics=statistics, statements='''
        zone "own.example" { type primary; file "own.db"; };
        zone "hint.example" { type forward; };''')
    (server.folder / 'own.db').write_text(zone_text(1))
    server.command('reload')
    wait_until(lambda: server.serial('own.example.') == 1, 'its own zone is loaded')
    facts = server.server([primary.endpoint], **({'statistics_url': server.statistics_url} if statistics else {}))
    names = ['example.com.', *ODD_NAMES.values()]
    with opened(facts) as backend:
        for name in names:
            assert backend.create_domain(a_domain(name)).ok
        wait_for(server, 2 ** 32 - 1)
        listing = backend.list_zones(['EXAMPLE.com.', *names, 'own.example.', 'never.example.com.'])
        assert listing.result.ok
        assert listing.complete is statistics
        assert listing.serials['example.com.'] == 2 ** 32 - 1
        assert len(listing.serials) == len(names)
        assert set(listing.serials.values()) == {2 ** 32 - 1, None}
        for name in names:
            assert backend.delete_domain(a_domain(name)).ok
        wait_until(lambda: backend.list_zones(names).serials == {}, 'none is left')
        server.restart()
        assert backend.list_zones(names).serials == {}
        server.stop()
        assert backend.list_zones(names).result.unreachable


def test_statistics_that_leave_zones_out_are_not_believed(named: Start) -> None:
    server = named(statistics=True, options='zone-statistics none;')
    with opened(server.server([NOWHERE], statistics_url=server.statistics_url)) as backend:
        assert backend.list_zones(['example.com.']).complete
        assert backend.create_domain(a_domain()).ok
        listing = backend.list_zones(['example.com.'])
    assert "named.conf must not have 'zone-statistics none'" in str(listing.result.error)
    assert not listing.complete
