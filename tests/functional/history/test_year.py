"""A year of changes by three projects, against a model of the zones that keeps every version whole.

Each ``--at``, each difference and each history is as the model has it, for administrators, for whoever owned the zone
then, and for nobody else.
"""

from __future__ import annotations

import dataclasses
import os
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central.purger import Purger
from designate_pool.central.service import Central
from designate_pool.model import ChangeKind, Context, Domain, PageRequest, ZoneHead
from designate_pool.serial import newer
from designate_pool.settings import CentralSettings
from designate_pool.storage import queries
from designate_pool.storage.sql.database import Storage
from tests.fixtures.central import SERVERS, WHO, Clock, import_zone

pytestmark = pytest.mark.all_databases
#: How many things are done, in a quarter of the year: some zones are purged.  The long form sets the number.
STEPS = int(os.environ.get('YEAR_STEPS', 800))
QUARTER = 90 * 86400
YEAR = timedelta(days=365)
PROJECTS = [Context(project_id=project, user=f'{project}er', may_nest=False) for project in ('red', 'blue', 'green')]
NAMES = [f'z{number}.example.com.' for number in range(16)]
LABELS = ('a', 'b', 'c', 'www', '_x._tcp', '*.any', 'mail')
VALUES = {'A': [f'192.0.2.{number}' for number in range(1, 7)], 'TXT': [f'"{number}"' for number in range(5)],
          'MX': ['10 mail.example.net.', '20 MX.example.net.'], 'AAAA': ['2001:db8::1', '2001:db8::2']}
TTLS = (None, None, 60, 300)

Key = tuple[str, str]
Sets = Mapping[Key, tuple[int | None, frozenset[str]]]


@dataclasses.dataclass(frozen=True)
class Past:
    """A version as the model keeps it; *is_there* if the zone was not deleted with it."""

    at: datetime
    kind: str
    user: str
    project: str
    serial: int
    ttl: int
    email: str
    sets: Sets
    is_there: bool = True

    def served(self) -> dict[Key, tuple[int, list[str]]]:
        return {key: (self.ttl if ttl is None else ttl, sorted(texts)) for key, (ttl, texts) in self.sets.items()}

    def records(self) -> set[tuple[str, str, int | None, str]]:
        return {(*key, ttl, text) for key, (ttl, texts) in self.sets.items() for text in texts}


class Zone:
    """A zone by the model; *past* has all of its versions."""

    def __init__(self, name: str, domain_id: str) -> None:
        self.name = name
        self.id = domain_id
        self.past: list[Past] = []
        self.is_purged = False

    @property
    def now(self) -> Past:
        return self.past[-1]

    def add(self, at: datetime, kind: str, who: Context, serial: int, **changed: Any) -> None:
        former = self.past[-1] if self.past else Past(at, kind, '', who.project_id, serial, 3600, '', {})
        self.past.append(dataclasses.replace(former, at=at, kind=kind, user=who.user, serial=serial, **{
            'is_there': True, **changed}))

    def at(self, moment: datetime) -> Past | None:
        return next((past for past in reversed(self.past) if past.at <= moment), None)


class Year:
    """The service and the model side by side."""

    def __init__(self, central: Central, database: Storage, clock: Clock, seed: int, steps: int) -> None:
        self.central, self.database, self.clock = central, database, clock
        self.pauses = (0, 1, 60, 3600, 4 * QUARTER // steps)
        self.dice = random.Random(seed)
        self.zones: list[Zone] = []
        self.serials: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    # What is done

    def step(self) -> None:
        self.clock.now += self.dice.choice(self.pauses)
        works: Sequence[tuple[int, Callable[[Context, str], str]]] = (
            (50, self.change), (14, self.change_one), (2, self.create), (2, self.imports), (4, self.delete),
            (8, self.restore), (8, self.revert), (3, self.give), (3, self.edit))
        work, = self.dice.choices([work for _, work in works], [weight for weight, _ in works])
        name = self.dice.choice(NAMES)
        owned = self.living(name) if self.dice.random() < 0.9 else None
        done = work(self.dice.choice([who for who in PROJECTS if owned is None or (
            (owned.now.project == who.project_id) is not (work == self.give))]), name)
        self.counts[done] = self.counts.get(done, 0) + 1

    def living(self, name: str) -> Zone | None:
        return next((zone for zone in reversed(self.zones) if zone.name == name and zone.now.is_there), None)

    def own(self, who: Context, name: str) -> Zone | None:
        """The zone, if it is the project's; otherwise the project is told that there is none."""
        zone = self.living(name)
        if zone is not None and zone.now.project != who.project_id:
            with pytest.raises(errors.DomainNotFound):
                self.central.apply_changes(who, zone.id, [])
            return None
        return zone

    def wrote(self, zone: Zone, who: Context, domain: Domain, kind: str, **changed: Any) -> str:
        """Keep the version that a write made; its serial is above all that the name ever had."""
        last = self.serials.get(zone.name)
        assert last is None or newer(domain.serial, last)
        self.serials[zone.name] = domain.serial
        zone.add(self.clock.moment(), kind, who, domain.serial, **changed)
        return kind

    def new_sets(self, zone: Zone | None, name: str, most: int) -> dict[Key, tuple[int | None, frozenset[str]]]:
        """Some recordsets as they shall be; without records, those that are to go."""
        sets: dict[Key, tuple[int | None, frozenset[str]]] = {}
        for _ in range(self.dice.randint(1, most)):
            rtype = self.dice.choice([*VALUES])
            key = f'{self.dice.choice(LABELS)}.{name}', rtype
            fewest = 0 if zone is not None and key in zone.now.sets else 1
            texts = frozenset(self.dice.sample(VALUES[rtype], self.dice.randint(fewest, len(VALUES[rtype]) - 1)))
            sets[key] = self.dice.choice(TTLS) if texts else None, texts
        return sets

    def change(self, who: Context, name: str) -> str:
        zone = self.own(who, name)
        if zone is None:
            return 'in vain'
        sets = self.new_sets(zone, name, 4)
        domain = self.central.apply_changes(who, zone.id, [
            {'name': owner, 'type': rtype, 'records': sorted(texts), 'ttl': ttl}
            for (owner, rtype), (ttl, texts) in sets.items()])
        return self.changed_to(zone, who, domain, 'API', {**zone.now.sets, **sets})

    def changed_to(self, zone: Zone, who: Context, domain: Domain, kind: str, sets: Sets) -> str:
        sets = {key: value for key, value in sets.items() if value[1]}
        if sets == zone.now.sets:
            assert domain.serial == zone.now.serial
            return 'no change'
        return self.wrote(zone, who, domain, kind, sets=sets)

    def change_one(self, who: Context, name: str) -> str:
        """Create, update or delete one recordset, as Designate's clients do."""
        zone = self.own(who, name)
        if zone is None:
            return 'in vain'
        (key, (ttl, texts)), = self.new_sets(zone, name, 1).items()
        if key not in zone.now.sets:
            self.central.create_recordset(who, zone.id, {
                'name': key[0], 'type': key[1], 'records': sorted(texts), 'ttl': ttl})
        else:
            recordset, = self.central.find_recordsets(who, zone.id, PageRequest({'name': key[0], 'type': key[1]}))
            if texts:
                self.central.update_recordset(who, zone.id, recordset.id, {'records': sorted(texts), 'ttl': ttl})
            else:
                self.central.delete_recordset(who, zone.id, recordset.id)
        domain = self.central.get_domain(who, zone.id)
        return self.changed_to(zone, who, domain, 'API', {**zone.now.sets, key: (ttl, texts)})

    def create(self, who: Context, name: str) -> str:
        return self._create(who, name, 'CREATE', lambda sets: self.central.create_domain(
            who, {'name': name, 'email': 'first@example.com', 'ttl': 3600},
            [{'name': owner, 'type': rtype, 'records': sorted(texts), 'ttl': ttl}
             for (owner, rtype), (ttl, texts) in sets.items()]))

    def imports(self, who: Context, name: str) -> str:
        def write(sets: Sets) -> Domain:
            head = f'$TTL 3600\n{name} IN SOA ns.example.net. first.example.com. 1 3600 600 86400 300\n'
            return import_zone(self.central, dataclasses.replace(who, kind=ChangeKind.IMPORT), head + ''.join(
                f'{owner} {"" if ttl is None else ttl} IN {rtype} {text}\n'
                for (owner, rtype), (ttl, texts) in sets.items() for text in texts))

        return self._create(who, name, 'IMPORT', write)

    def _create(self, who: Context, name: str, kind: str, write: Callable[[Sets], Domain]) -> str:
        sets = self.new_sets(None, name, 6)
        if self.living(name) is not None:
            with pytest.raises((errors.DuplicateDomain, errors.NameTaken)):
                write(sets)
            return 'in vain'
        domain = write(sets)
        zone = Zone(name, domain.id)
        self.zones.append(zone)
        return self.wrote(zone, who, domain, kind, sets=sets, email='first@example.com')

    def delete(self, who: Context, name: str) -> str:
        zone = self.own(who, name)
        if zone is None:
            return 'in vain'
        return self.wrote(zone, who, self.central.delete_domain(who, zone.id), 'DELETE', is_there=False)

    def restore(self, who: Context, name: str) -> str:
        """One of the name's deleted zones, by its owner, or in vain by who is not, or while the name is taken."""
        zones = [zone for zone in self.zones if zone.name == name and not zone.now.is_there and not zone.is_purged]
        if not zones:
            return 'in vain'
        zone = self.dice.choice(zones)
        if zone.now.project != who.project_id and self.dice.random() < 0.8:
            who, = (project for project in PROJECTS if project.project_id == zone.now.project)
        if zone.now.project != who.project_id:
            assert self.refusal(who, zone) == 'deleted_zone_not_found'
            return 'in vain'
        taken = self.living(name)
        if taken is not None:
            assert self.refusal(who, zone) in ('duplicate_zone', 'name_taken')
            return 'in vain'
        return self.wrote(zone, who, self.central.restore_domain(who, zone.id), 'RESTORE')

    def refusal(self, who: Context, zone: Zone) -> str:
        with pytest.raises(errors.PoolError) as refused:
            self.central.restore_domain(who, zone.id)
        return refused.value.type

    def revert(self, who: Context, name: str) -> str:
        """To a serial or a time at which it was the project's, all of the zone, a name, or a type."""
        zone = self.own(who, name)
        if zone is None:
            return 'in vain'
        to = self.dice.choice([past for past in zone.past if past.is_there and past.project == who.project_id])
        at = zone.at(to.at) or to
        is_time = at is to and self.dice.random() < 0.5
        only = self.dice.choice(((None, None), (None, None), (f'{self.dice.choice(LABELS)}.{name}', None), (None, 'A')))
        planned = self.central.plan_revert(who, zone.id, to.at.isoformat() if is_time else str(to.serial), *only)
        domain = self.central.revert_domain(who, zone.id, planned)

        def concerns(key: Key) -> bool:
            return all(part in (None, value) for part, value in zip(only, key))

        sets = {key: value for key, value in zone.now.sets.items() if not concerns(key)}
        sets |= {key: value for key, value in to.sets.items() if concerns(key)}
        return self.changed_to(zone, who, domain, 'UNDO', sets)

    def give(self, who: Context, name: str) -> str:
        zone = self.living(name)
        if zone is None or zone.now.project == who.project_id:
            return 'in vain'
        domain = self.central.give_domain(WHO, zone.id, who.project_id)
        assert domain.serial == zone.now.serial
        zone.add(self.clock.moment(), 'OWNER', WHO, domain.serial, project=who.project_id)
        return 'OWNER'

    def edit(self, who: Context, name: str) -> str:
        """The zone's own fields."""
        zone = self.own(who, name)
        if zone is None:
            return 'in vain'
        new = {'ttl': self.dice.choice((300, 600, 3600)), 'email': self.dice.choice(('a@example.com', 'b@example.com'))}
        domain = self.central.update_domain(who, zone.id, new)
        if new == {'ttl': zone.now.ttl, 'email': zone.now.email}:
            assert domain.serial == zone.now.serial
            return 'no change'
        return self.wrote(zone, who, domain, 'API', **new)

    # What is asked

    def purge(self) -> None:
        """Delete for good what was deleted for longer than it is kept, after a last look at it."""
        settings = CentralSettings()
        before = self.clock.moment() - timedelta(seconds=settings.deleted_retention)
        going = [zone for zone in self.zones if not zone.now.is_there and not zone.is_purged and zone.now.at < before]
        for zone in going:
            self.check(zone)
            self.central.update_status(WHO, self.central.get_deleted_domain(WHO, zone.id), 'SUCCESS', zone.now.serial)
        keeper = Purger(self.database, settings)
        while keeper.purge():
            pass
        for zone in going:
            zone.is_purged = True
            assert self.refusal(WHO, zone) == 'deleted_zone_not_found'
            self.check_at(zone, str(zone.past[0].serial), None)

    def history(self, who: Context, zone: Zone) -> list[Any]:
        pages: list[Any] = []
        while page := self.central.find_versions(who, zone.id, 50, pages[-1].number if pages else None):
            pages += page
        return pages

    def check_history(self, zone: Zone) -> None:
        """As administrators see it, and as each project does."""
        for who in (WHO, *PROJECTS):
            versions = [(past, former) for former, past in zip([None, *zone.past], zone.past)
                        if who is WHO or past.project == who.project_id]
            if not versions and who is not WHO:
                with pytest.raises(errors.DomainNotFound):
                    self.history(who, zone)
                continue
            told = self.history(who, zone)
            assert [(version.created_at, version.kind.value, version.serial, version.actor.user, version.project_id)
                    for version in told] == [(past.at, past.kind, past.serial, past.user, past.project)
                                             for past, _ in reversed(versions)]
            for version, (past, former) in zip(reversed(told), versions):
                if former is not None and past.kind in ('API', 'UNDO'):
                    assert (version.gone, version.added) == (
                        len(former.records() - past.records()), len(past.records() - former.records())), (
                            past.ttl, former.records() ^ past.records())

    def check_at(self, zone: Zone, at: str, past: Past | None) -> None:
        """As administrators see it, and as each project does; None if it was not there."""
        for who in (WHO, *PROJECTS):
            def ask() -> tuple[ZoneHead, list[Any]]:
                return self.database.read(queries.use_rows_at, who, zone.id, *self.central.version_at('at', at),
                                          lambda head, rows: (head, list(rows)))

            if past is None or not past.is_there or who is not WHO and not self._was_of(zone, who, past, at):
                with pytest.raises((errors.ContentsNotKept, errors.DomainNotFound)):
                    ask()
                continue
            head, rows = ask()
            assert (head.serial, head.ttl, head.email) == (past.serial, past.ttl, past.email)
            assert {row for row in rows if row[:2] != (zone.name, 'NS')} == past.records()
            assert sorted(row[3] for row in rows if row[:2] == (zone.name, 'NS')) == SERVERS
            if who is WHO and self.dice.random() < 0.9:
                break

    @staticmethod
    def _was_of(zone: Zone, who: Context, past: Past, at: str) -> bool:
        """A serial that a zone had when it was given is that of both."""
        return any(other.project == who.project_id and other.is_there for other in zone.past
                   if (other.serial == past.serial if at.isdigit() else other is past))

    def check_difference(self, zone: Zone, one: Past, other: Past) -> None:
        former, new, sets = self.database.read(
            queries.changes_between, WHO, zone.id, *(self.central.version_at('at', str(past.serial))[0]
                                                     for past in (one, other)), self.clock.moment() - YEAR)
        assert (former.serial, new.serial) == (one.serial, other.serial)
        before, after = one.served(), other.served()
        assert {(changed.name, changed.type): ((changed.former_ttl, list(changed.former_records)),
                                               (changed.ttl, list(changed.records)))
                for changed in sets if changed.type not in ('SOA', 'NS')} == {
            key: (before.get(key, (None, [])), after.get(key, (None, [])))
            for key in before.keys() | after.keys() if before.get(key) != after.get(key)}

    def check(self, zone: Zone, some: float = 1.0) -> None:
        """Each version, or some of them, by serial and by time."""
        self.check_history(zone)
        for former, past in zip([None, *zone.past], () if zone.is_purged else zone.past):
            if self.dice.random() > some:
                continue
            if past.is_there:
                self.check_at(zone, str(past.serial), past)
                if former is not None and former.is_there and former.serial != past.serial:
                    self.check_difference(zone, former, past)
                if self.dice.random() < 0.2:
                    self.check_difference(zone, past, self.dice.choice([each for each in zone.past if each.is_there]))
            moment = past.at + timedelta(seconds=self.dice.choice((0, 1, 30, 1800)))
            if moment <= self.clock.moment() and self.dice.random() < 0.3:
                self.check_at(zone, moment.isoformat(), zone.at(moment))
        if zone.past[0].at > self.clock.moment() - YEAR:
            self.check_at(zone, (zone.past[0].at - timedelta(seconds=1)).isoformat(), None)


def test_a_year_of_three_projects(central: Central, database: Storage, clock: Clock) -> None:
    clock.now = float(int(clock.now) - 365 * 86400)
    steps = STEPS if database.engine.dialect.name == 'sqlite' else STEPS // 2  # the servers take twice as long
    year = Year(central, database, clock, 2025, steps)
    for name in NAMES:
        year.create(year.dice.choice(PROJECTS), name)
    for number in range(steps):
        year.step()
        if number % (steps // 50) == 0:
            year.check(year.dice.choice(year.zones), some=0.02)
        if number % (steps // 12) == 0:
            year.purge()
    for zone in year.zones:
        year.check(zone)
    assert min(year.counts.get(kind, 0) for kind in (
        'API', 'CREATE', 'IMPORT', 'DELETE', 'RESTORE', 'UNDO', 'OWNER', 'in vain')) > 0, year.counts
    assert any(zone.is_purged for zone in year.zones)
