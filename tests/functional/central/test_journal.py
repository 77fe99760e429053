"""What is written down of changes leads from every serial that the journal reaches to the zone as it is now."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
import sqlalchemy as sa

from designate_pool import errors
from designate_pool.central.purger import Purger
from designate_pool.central.rules import pools as pool_rules
from designate_pool.central.service import Central
from designate_pool.central.validation.names_and_rdata import rdatas
from designate_pool.model import Change, ChangeKind, Domain, PageRequest, Status, Task, ZoneStep, new_id, utcnow
from designate_pool.settings import CentralSettings
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import domains, records, recordsets, zone_versions
from designate_pool.storage.zones import versions
from tests.fixtures.central import SERVERS, WHO, WWW, Caller, Clock, create, started

MOST = 1000


class Zone:
    """A domain, and what it served at each of its serials."""

    def __init__(self, central: Central, database: Storage, domain: Domain) -> None:
        self.central = central
        self.database = database
        self.id = domain.id
        self.name = domain.name
        self.served: dict[int, set[Change]] = {}
        self.remember()

    def remember(self) -> int:
        serial = self.central.get_domain(WHO, self.id).serial
        self.served[serial] = self.database.read(contents, self.id)
        return serial

    def apply(self, *changes: tuple[str, str, list[str], int | None]) -> int:
        self.central.apply_changes(WHO, self.id, [
            {'name': f'{label}{self.name}', 'type': rtype, 'records': data, 'ttl': ttl}
            for label, rtype, data, ttl in changes])
        return self.remember()

    def put(self, label: str, *addresses: str) -> int:
        return self.apply((label, 'A', list(addresses), None))

    def since(self, have: int) -> list[ZoneStep]:
        """Read together with those of a zone that there is not."""
        span = versions.Span(self.id, have, next(reversed(self.served)))
        together = self.database.read(versions.steps, [span, span._replace(domain_id=new_id())], MOST)
        assert together is not None and list(together) == [span]
        return together[span]

    def leads_from(self, have: int) -> bool:
        """Whether the journal leads from *have* to now; then it has to lead there rightly."""
        steps = self.since(have)
        zone = set(self.served[have])
        for step in steps:
            assert zone >= set(step.gone) and len(set(step.gone)) == len(step.gone)
            zone -= set(step.gone)
            assert not zone & set(step.added)
            zone |= set(step.added)
            assert zone == self.served[step.serial]
        assert not steps or steps[-1].serial == next(reversed(self.served))
        return bool(steps) or have == next(reversed(self.served))

    def rows(self) -> int:
        return self.database.read(lambda tx: tx.execute(
            sa.select(sa.func.coalesce(sa.func.sum(zone_versions.c.gone + zone_versions.c.added), 0))
            .where(zone_versions.c.domain_id == self.id, zone_versions.c.difference.is_not(None))).scalar_one())


def unordered(steps: Iterable[ZoneStep]) -> list[tuple[int, set[Change], set[Change]]]:
    """Serial and records of each step; the order of its records is the database's."""
    return [(each.serial, set(each.gone), set(each.added)) for each in steps]


def contents(tx: Tx, domain_id: str) -> set[Change]:
    """What is to be served now, read in the plainest way."""
    return {(name, rtype, ttl, wire) for name, rtype, ttl, wire in tx.execute(
        sa.select(recordsets.c.name, recordsets.c.type, sa.func.coalesce(recordsets.c.ttl, domains.c.ttl),
                  records.c.wire)
        .join_from(recordsets, domains, domains.c.id == recordsets.c.domain_id)
        .join(records, records.c.recordset_id == recordsets.c.id)
        .where(domains.c.id == domain_id, records.c.task != Task.DELETE, records.c.status != Status.DELETED))}


@pytest.fixture
def zone(central: Central, database: Storage) -> Zone:
    return Zone(central, database, create(central, 'example.com.', WWW))


@pytest.fixture
def small(database: Storage, clock: Clock) -> Iterator[Central]:
    """A Central that keeps 20 changed records of a domain."""
    with started(database, Caller(), journal_records=20) as service:
        yield service


def test_a_new_domain_has_nothing_to_tell_but_its_present_serial(zone: Zone) -> None:
    (serial,) = zone.served
    assert zone.rows() == 0
    assert zone.since(serial) == []


@pytest.mark.all_databases
def test_random_changes_lead_from_every_serial_to_now(zone: Zone, clock: Clock) -> None:
    dice = random.Random(1995)
    held: dict[tuple[str, str], list[str]] = {}
    for _ in range(60):
        clock.now += dice.choice((0, 0, 1, 100))
        wanted = {}
        for _ in range(dice.randint(1, 4)):
            key = dice.choice(('a.', 'b.', '*.c.', 'd.')), dice.choice(('A', 'TXT', 'MX'))
            values = {'A': [f'192.0.2.{number}' for number in range(1, 5)], 'TXT': ['"one"', '"two"', r'"\003"'],
                      'MX': ['10 mail.example.net.', '20 a.example.com.']}[key[1]]
            data = dice.sample(values, dice.randint(0 if held.get(key) else 1, len(values)))
            wanted[key] = data, dice.choice((None, 60, 300))
        zone.apply(*((label, rtype, data, ttl) for (label, rtype), (data, ttl) in wanted.items()))
        held.update({key: data for key, (data, _) in wanted.items()})
    assert len(zone.served) > 40
    assert all(zone.leads_from(serial) for serial in zone.served)


def test_a_description_is_no_change(zone: Zone) -> None:
    zone.put('a.', '192.0.2.1')
    rows = zone.rows()
    (found,) = zone.central.find_recordsets(WHO, zone.id, PageRequest({'name': 'a.*'}))
    zone.central.update_recordset(WHO, zone.id, found.id, {'description': 'first'})
    assert zone.rows() == rows == 1


@pytest.mark.parametrize('values', [{'email': 'other@example.com'}, {'ttl': 77}])
def test_what_changes_the_soa_cuts_the_journal(zone: Zone, values: dict[str, object]) -> None:
    before = [zone.put('a.', '192.0.2.1'), zone.put('a.', '192.0.2.2')]
    zone.central.update_domain(WHO, zone.id, values)
    cut = zone.remember()
    assert not any(zone.leads_from(serial) for serial in before)
    zone.put('a.', '192.0.2.3')
    assert not any(zone.leads_from(serial) for serial in before)
    assert zone.leads_from(cut)


@pytest.mark.all_databases
def test_serials_go_round(zone: Zone) -> None:
    def near_the_end(tx: Tx) -> None:
        tx.execute(sa.update(domains).where(domains.c.id == zone.id).values(serial=4294967294))

    zone.database.run(near_the_end)
    zone.served.clear()
    zone.remember()
    for number in range(1, 6):
        zone.put('a.', f'192.0.2.{number}')
    assert min(zone.served) < 4294967294 == max(zone.served)
    assert all(zone.leads_from(serial) for serial in zone.served)
    assert zone.since(4294967295) == []


def test_a_serial_that_the_zone_never_had_tells_nothing(zone: Zone, clock: Clock) -> None:
    first = zone.put('a.', '192.0.2.1')
    clock.now += 1000
    zone.put('a.', '192.0.2.2')
    for serial in (first + 1, first - 1000, first + 5000, 0):
        assert zone.since(serial) == []


def test_until_a_domain_has_a_serial_for_a_new_primary_nothing_leads_to_its_present_one(
        zone: Zone, clock: Clock) -> None:
    first = zone.put('a.', '192.0.2.1')
    pool_id = zone.central.get_domain(WHO, zone.id).pool_id
    zone.database.run(pool_rules.update, WHO, pool_id, {'name_servers': ['ns9.example.net.', *SERVERS]}, utcnow(),
                      new_id())
    clock.now += 10
    second = zone.put('a.', '192.0.2.2')
    assert not zone.leads_from(first)
    clock.now += pool_rules.CLAIM.total_seconds() + 10
    zone.central.backlog.resume_renewals()
    third = zone.remember()
    assert third != second and not zone.leads_from(second)
    zone.put('a.', '192.0.2.3')
    assert zone.leads_from(third)


def test_name_servers_with_the_same_primary_leave_the_journal_as_it_is(zone: Zone, clock: Clock) -> None:
    first = zone.put('a.', '192.0.2.1')
    pool_id = zone.central.get_domain(WHO, zone.id).pool_id
    zone.database.run(pool_rules.update, WHO, pool_id, {'name_servers': [*SERVERS, 'ns9.example.net.']}, utcnow(),
                      new_id())
    clock.now += 10
    zone.put('a.', '192.0.2.2')
    assert zone.leads_from(first)


@pytest.mark.all_databases
def test_differences_of_several_zones_are_read_together(central: Central, database: Storage, clock: Clock) -> None:
    zones = [Zone(central, database, create(central, f'{label}.example.com.')) for label in 'abc']
    for number in range(1, 8):
        clock.now += 60
        for zone in zones[number % 3:]:
            zone.put('a.', f'192.0.2.{number}')
    spans = [versions.Span(zone.id, serial, max(zone.served)) for zone in zones for serial in zone.served]
    together = database.read(versions.steps, spans, MOST)
    alone = {span: (database.read(versions.steps, [span], MOST) or {})[span] for span in spans}
    assert together is not None
    assert {span: unordered(steps) for span, steps in together.items()} == {
        span: unordered(steps) for span, steps in alone.items()}
    records = sum(zone.rows() for zone in zones)
    assert database.read(versions.steps, spans, records) == together
    assert database.read(versions.steps, spans, records - 1) is None


@pytest.mark.all_databases
def test_a_difference_longer_than_wanted_is_not_read(zone: Zone) -> None:
    first = zone.put('a.', '192.0.2.1')
    second = zone.put('b.', *(f'192.0.2.{number}' for number in range(1, 11)))
    span = versions.Span(zone.id, first, max(zone.served))
    assert zone.database.read(versions.steps, [span], 10) == {span: zone.since(first)}
    assert zone.database.read(versions.steps, [span], 9) is None
    zone.put('c.', '192.0.2.1')
    span = versions.Span(zone.id, second, max(zone.served))
    assert zone.database.read(versions.steps, [span], 9) == {span: zone.since(second)}


@pytest.mark.all_databases
def test_no_journal_is_longer_than_the_configuration_says(small: Central, database: Storage) -> None:
    zone = Zone(small, database, create(small, 'example.com.', WWW))
    for number in range(1, 60):
        zone.put('a.', f'192.0.2.{number}')
        assert small.get_domain(WHO, zone.id).journal_records <= 20
    serials = list(zone.served)
    assert not zone.leads_from(serials[0])
    reached = [serial for serial in serials if zone.leads_from(serial)]
    assert reached == serials[-len(reached):] and 5 < len(reached) <= 11


def test_a_change_larger_than_a_whole_journal_cuts_it(small: Central, database: Storage) -> None:
    zone = Zone(small, database, create(small, 'example.com.', WWW))
    before = zone.put('a.', '192.0.2.1')
    large = zone.put('b.', *(f'192.0.2.{number}' for number in range(1, 22)))
    assert not zone.leads_from(before)
    zone.put('a.', '192.0.2.2')
    assert zone.leads_from(large)
    (found,) = zone.central.find_recordsets(WHO, zone.id, PageRequest({'name': 'b.*'}))
    zone.central.delete_recordset(WHO, zone.id, found.id)
    zone.remember()
    assert not zone.leads_from(large)


@pytest.mark.all_databases
def test_what_is_too_old_goes_and_the_rest_still_leads(zone: Zone, database: Storage, clock: Clock) -> None:
    old = [zone.put('a.', f'192.0.2.{number}') for number in range(1, 6)]
    clock.now += 3000
    new = [zone.put('a.', f'192.0.2.{number}') for number in range(6, 11)]
    keeper = Purger(database, CentralSettings(deleted_retention=1000, history_days=1))
    keeper.purge()
    assert zone.rows() == 19 and all(zone.leads_from(serial) for serial in old)
    clock.now += 85000
    while keeper.purge():
        pass
    assert zone.rows() == zone.central.get_domain(WHO, zone.id).journal_records == 10
    assert [zone.leads_from(serial) for serial in old] == [False] * 4 + [True]
    assert all(zone.leads_from(serial) for serial in new)
    clock.now += 90000
    while keeper.purge():
        pass
    assert zone.rows() == 0 and zone.leads_from(new[-1])
    last = zone.put('a.', '192.0.2.99')
    assert zone.leads_from(new[-1]) and not zone.leads_from(new[0])
    assert zone.leads_from(last)


def test_a_change_by_one_who_keeps_no_journal_leaves_no_gap(zone: Zone) -> None:
    before = zone.put('a.', '192.0.2.1')
    zone.put('a.', '192.0.2.2')

    def change(tx: Tx) -> None:
        tx.execute(sa.update(domains).where(domains.c.id == zone.id).values(serial=domains.c.serial + 1))

    zone.database.run(change)
    after = zone.remember()
    assert not zone.leads_from(before)
    zone.put('a.', '192.0.2.3')
    assert not zone.leads_from(before) and zone.leads_from(after)


class History(Zone):
    """A domain, with its TTL at each of its serials."""

    def remember(self) -> int:
        serial = super().remember()
        self.ttls = getattr(self, 'ttls', {}) | {serial: self.central.get_domain(WHO, self.id).ttl}
        return serial

    def contents_at(self, serial: int) -> set[Change]:
        return self.database.read(self._contents_at, serial)

    def _contents_at(self, tx: Tx, serial: int) -> set[Change]:
        head, rows = versions.rows_at(tx, self.id, serial)
        assert (head.serial, head.ttl) == (serial, self.ttls[serial])
        return {(name, rtype, head.ttl if ttl is None else ttl, rdatas('records', rtype, [data])[0].wire)
                for name, rtype, ttl, data in rows}


@pytest.mark.all_databases
def test_contents_are_known_at_every_serial_whatever_changed_them(central: Central, database: Storage,
                                                                  clock: Clock) -> None:
    dice = random.Random(2038)
    zone = History(central, database, create(central, 'example.com.', WWW))
    pool_id = central.get_domain(WHO, zone.id).pool_id
    for number in range(40):
        clock.now += 10
        kind = dice.choice(('records', 'records', 'records', 'ttl', 'name servers', 'serial', 'project'))
        if kind == 'records':
            zone.apply((dice.choice('ab') + '.', 'A', [f'192.0.2.{dice.randint(1, 3)}', f'192.0.2.{10 + number}'],
                        dice.choice((None, 60, 300))))
        elif kind == 'ttl':
            central.update_domain(WHO, zone.id, {'ttl': dice.choice((60, 300, 3600))})
        elif kind == 'name servers':
            central.update_pool(WHO, {'id': pool_id, 'name_servers': dice.sample([*SERVERS, 'ns3.example.net.'], 2)})
        elif kind == 'serial':
            central.raise_serial_above(WHO, zone.id, central.get_domain(WHO, zone.id).serial + 5)
        else:
            central.give_domain(WHO, zone.id, dice.choice(('red', 'blue')))
        zone.remember()
    assert len(zone.served) > 25
    for serial, former in zone.served.items():
        assert zone.contents_at(serial) == former
    found = database.read(versions.find, zone.id)
    assert [version.serial for version in found][-1] == min(zone.served) and len(found) > 30
    assert found[-1].kind is ChangeKind.CREATE and found[0].number > found[1].number
    pages = [database.read(versions.find, zone.id, 7)]
    while len(pages[-1]) == 7:
        pages.append(database.read(versions.find, zone.id, 7, pages[-1][-1].number))
    assert [version for page in pages for version in page] == found
    last = max(zone.served)
    central.delete_domain(WHO, zone.id)
    assert zone.contents_at(last) == zone.served[last]
    assert database.read(versions.find, zone.id, 1)[0].kind is ChangeKind.DELETE
    central.restore_domain(WHO, zone.id)
    zone.remember()
    zone.put('c.', '192.0.2.1')
    assert all(zone.contents_at(serial) == former for serial, former in zone.served.items())
    assert [version.kind for version in database.read(versions.find, zone.id, 3)] == [
        ChangeKind.API, ChangeKind.RESTORE, ChangeKind.DELETE]


def test_contents_before_what_is_not_kept_are_refused(database: Storage, clock: Clock) -> None:
    with started(database, Caller(), history_records=5) as service:
        zone = History(service, database, create(service, 'example.com.', WWW))
        first = zone.put('a.', '192.0.2.1')
        large = zone.put('b.', *(f'192.0.2.{number}' for number in range(1, 8)))
        last = zone.put('a.', '192.0.2.2')
        assert zone.contents_at(large) == zone.served[large] and zone.contents_at(last) == zone.served[last]
        with pytest.raises(errors.ContentsNotKept, match=f'since serial {large} '):
            zone.contents_at(first)
        for number in range(3, 9):
            zone.put('a.', f'192.0.2.{number}')
        assert zone.rows() == service.get_domain(WHO, zone.id).history_records <= 5
        with pytest.raises(errors.ContentsNotKept):
            zone.contents_at(large)
