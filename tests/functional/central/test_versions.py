"""Zones as they were at a serial or a time, for whom they belonged to then."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central.purger import Purger
from designate_pool.central.service import Central
from designate_pool.model import ChangedSet, Context, ZoneHead
from designate_pool.settings import CentralSettings
from designate_pool.storage import queries
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import versions
from tests.fixtures.central import WHO, WWW, Caller, Clock, create, started

RED, BLUE, GREEN = (Context(project_id=project) for project in ('red', 'blue', 'green'))
HOUR = timedelta(hours=1)


class Past:
    """A domain, with the addresses of www that it had when, and whose it was."""

    def __init__(self, central: Central, database: Storage, clock: Clock) -> None:
        self.central, self.database, self.clock = central, database, clock
        self.had: list[tuple[datetime, int, set[str], Context]] = []
        self.domain = create(central, 'example.com.', WWW, who=RED)
        self.owner = RED
        self.addresses = set(WWW[2])

    def remember(self) -> None:
        self.clock.now += 1800
        serial = self.central.get_domain(WHO, self.domain.id).serial
        self.had.append((self.clock.moment(), serial, self.addresses, self.owner))
        self.clock.now += 1800

    def put(self, *addresses: str) -> None:
        self.central.apply_changes(self.owner, self.domain.id, [
            {'name': 'www.example.com.', 'type': 'A', 'records': list(addresses)}])
        self.addresses = set(addresses)
        self.remember()

    def give(self, to: Context) -> None:
        self.central.give_domain(WHO, self.domain.id, to.project_id)
        self.owner = to
        self.remember()

    def rows(self, at: str, who: Context = WHO, name: str | None = None) -> tuple[ZoneHead, list[queries.ZoneRow]]:
        return self.database.read(queries.use_rows_at, who, self.domain.id, *self.central.version_at('at', at),
                                  lambda head, rows: (head, list(rows)), name)

    def at(self, at: str, who: Context = WHO) -> tuple[ZoneHead, set[str]]:
        head, rows = self.rows(at, who)
        www = [row for row in rows if row[0] == 'www.example.com.']
        assert www == sorted(www) == self.rows(at, who, 'www.example.com.')[1]
        return head, {data for _, _, _, data in www}

    def why(self, at: str, who: Context = WHO) -> str:
        with pytest.raises(errors.NotFound) as refusal:
            self.rows(at, who)
        return refusal.value.type if refusal.value.type == 'zone_not_found' else str(refusal.value)

    def changes(self, who: Context, first: str, second: str) -> tuple[ZoneHead, ZoneHead, list[ChangedSet]]:
        return self.database.read(queries.changes_between, who, self.domain.id,
                                  self.central.version_at('from', first)[0], *self.central.version_at('to', second))

    def check(self) -> None:
        """At every time, by its serial, ISO and as an age: for its owner and for administrators, and for no other."""
        serials = {(serial, owner.project_id) for _, serial, _, owner in self.had}
        owners = {owner.project_id for _, _, _, owner in self.had}
        for moment, serial, addresses, owner in self.had:
            age = f'{(self.clock.moment() - moment) // timedelta(seconds=1)}s'
            for at in (str(serial), moment.isoformat(), age):
                for who in (WHO, owner):
                    head, had = self.at(at, who)
                    assert (head.serial, had) == (serial, addresses)
                for other in (RED, BLUE):
                    if other != owner and not (at.isdigit() and (serial, other.project_id) in serials):
                        why = self.why(at, other)
                        assert 'are not known: ' in why if other.project_id in owners else why == 'zone_not_found'
                assert self.why(at, GREEN) == 'zone_not_found'


@pytest.fixture
def past(central: Central, database: Storage, clock: Clock) -> Iterator[Past]:
    past = Past(central, database, clock)
    past.remember()
    yield past


@pytest.mark.all_databases
def test_at_every_time_for_the_owner_of_that_time(past: Past) -> None:
    past.put('192.0.2.1')
    past.give(BLUE)
    past.put('192.0.2.1', '192.0.2.2')
    past.check()
    past.give(RED)
    past.put('192.0.2.3')
    past.check()
    past.central.share_domain(RED, past.domain.id, {'target_project_id': 'green'})
    with pytest.raises(errors.Forbidden):
        past.rows('1s', GREEN)
    assert past.why('2000-01-01').endswith(f'it was created at {past.domain.created_at:%Y-%m-%d %H:%M:%S} UTC.')
    assert past.why('7').startswith('The contents of example.com. at serial 7 are not known: they are kept since ')


def test_a_ttl_of_its_own_that_is_the_zone_s_is_part_of_the_version(past: Past, central: Central) -> None:
    """Before, the recordset had the zone's, which was another one once."""
    central.update_domain(RED, past.domain.id, {'ttl': 300})
    past.remember()
    central.apply_changes(RED, past.domain.id, [
        {'name': 'www.example.com.', 'type': 'A', 'records': WWW[2], 'ttl': 300}])
    past.remember()
    assert [{row[2] for row in past.rows(str(serial), name='www.example.com.')[1]} for _, serial, *_ in past.had] == [
        {None}, {None}, {300}]
    (_, first, *_), (_, second, *_), (_, third, *_) = past.had
    www, = [changed for changed in past.changes(WHO, str(first), str(third))[2] if changed.type == 'A']
    assert (www.former_ttl, www.ttl) == (past.domain.ttl, 300)
    span = versions.Span(past.domain.id, second, third)
    step, = (past.database.read(versions.steps, [span], 1000) or {})[span]
    assert (step.serial, [*step.gone], [*step.added]) == (third, [], []), 'what servers have is the same'


@pytest.mark.all_databases
def test_while_it_is_deleted_and_when_it_was_restored(past: Past, clock: Clock) -> None:
    past.put('192.0.2.1')
    past.central.delete_domain(RED, past.domain.id)
    clock.now += 3600
    while_deleted = (clock.moment() - HOUR / 2).isoformat()
    past.check()
    assert ': it was deleted at 20' in past.why(while_deleted, RED) and past.why('0s', RED)
    past.central.restore_domain(RED, past.domain.id)
    past.remember()
    past.put('192.0.2.2')
    past.check()
    assert ': it was deleted at 20' in past.why(while_deleted, RED)
    past.central.delete_domain(RED, past.domain.id)
    past.central.purge_domain(RED, past.domain.id)
    assert past.why('2h', RED).endswith('the zone was deleted, and then its records.')


@pytest.mark.all_databases
def test_versions_that_are_not_kept_any_more(database: Storage, clock: Clock) -> None:
    settings = CentralSettings(history_days=1)
    with started(database, Caller(), history_days=1) as central:
        past = Past(central, database, clock)
        past.remember()
        past.put('192.0.2.1')
        serial = past.had[-1][1]
        clock.now += 86400
        past.put('192.0.2.2')
        while Purger(database, settings).purge():
            pass
        past.had = past.had[-1:]
        past.check()
        head, addresses = past.at('23h')
        assert (head.serial, addresses) == (serial, {'192.0.2.1'}) == (past.at(str(serial))[0].serial, addresses)
        expired = clock.moment() - timedelta(days=1)
        assert f': they are kept since serial {serial} of {expired:%Y-%m-%d %H:%M:%S} UTC.' in past.why('25h')


def test_others_versions_are_told_of_in_one_way(past: Past, clock: Clock) -> None:
    """To a former owner it is the same whether the later one changed the zone or deleted it, and when."""
    past.give(BLUE)
    past.put('192.0.2.1')
    past.central.delete_domain(BLUE, past.domain.id)
    clock.now += 7200
    texts = {past.why(at, RED).partition(' are not known: ')[2] for at in ('1s', '2h', '150m', '3h')}
    assert texts == {'it was not of this project then.'}
    assert {past.why(at, BLUE).partition(' are not known: ')[2] for at in ('1w', '7')} == {
        f'it was created at {past.domain.created_at:%Y-%m-%d %H:%M:%S} UTC.', 'it was not of this project then.'}
    assert {past.why(str(serial), RED).partition(' known: ')[2] for serial in (7, past.had[-1][1])} == {
        f'they are kept since serial {past.domain.serial} of {past.domain.created_at:%Y-%m-%d %H:%M:%S} UTC.'}


@pytest.mark.all_databases
def test_what_differs_between_two_versions(past: Past) -> None:
    first = str(past.had[-1][1])
    past.put('192.0.2.2', '192.0.2.3')
    past.central.apply_changes(RED, past.domain.id, [
        {'name': 'a.example.com.', 'type': 'TXT', 'records': ['"b; c"', '"a"'], 'ttl': 60},
        {'name': 'b.example.com.', 'type': 'AAAA', 'records': ['2001:db8::1']}])
    past.put('192.0.2.3')
    second = str(past.had[-1][1])
    past.central.apply_changes(RED, past.domain.id, [{'name': 'b.example.com.', 'type': 'AAAA', 'records': []}])

    def changes(one: str, other: str, but_soa: bool = True) -> list[tuple[Any, ...]]:
        *heads, sets = past.changes(RED, one, other)
        assert sets[0].type == 'SOA' and [str(head.serial) for head in heads] == [one, other]
        return [(changed.name[:3], *dataclasses.astuple(changed)[1:]) for changed in sets[but_soa:]]

    assert changes(first, second) == [
        ('a.e', 'TXT', ('"a"', '"b; c"'), 60, (), None), ('b.e', 'AAAA', ('2001:db8::1',), 3600, (), None),
        ('www', 'A', ('192.0.2.3',), 3600, ('192.0.2.1', '192.0.2.2'), 3600)]
    assert changes(second, first) == [(name, rtype, former, former_ttl, records, ttl) for
                                      name, rtype, records, ttl, former, former_ttl in changes(first, second)]
    past.central.update_domain(RED, past.domain.id, {'ttl': 300})
    third = str(past.central.get_domain(RED, past.domain.id).serial)
    assert [(name, former, ttl) for name, _, _, ttl, _, former in changes(second, third, False)] == [
        ('exa', 3600, 300), ('b.e', 3600, None), ('exa', 3600, 300), ('www', 3600, 300)]
    assert past.changes(RED, third, third)[2] == []
    past.central.delete_domain(RED, past.domain.id)
    assert len(changes(first, second)) == 3
    with pytest.raises(errors.DomainNotFound):
        past.changes(BLUE, first, second)


def test_texts_are_made_only_of_what_differs(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    past.central.apply_changes(RED, past.domain.id, [
        {'name': 'own.example.com.', 'type': 'TXT', 'records': ['"own TTL"'], 'ttl': 60}])
    past.remember()
    past.central.update_domain(RED, past.domain.id, {'ttl': 300})
    texts: list[str] = []
    monkeypatch.setattr(versions, 'text_of_wire', lambda rtype, wire: texts.append(rtype) or rtype)
    assert [changed.type for changed in past.changes(RED, str(past.had[-1][1]), '0s')[2]] == ['SOA', 'NS', 'A']
    assert 'A' in texts and 'TXT' not in texts


@pytest.mark.parametrize('at', ['', 'yesterday', '2 h', '-1', '4294967296', '1y', 'h', '2030-13-01', '99999999w', '١',
                                '20300131512', '20300131051200'])
def test_what_is_no_serial_and_no_time_is_refused(central: Central, at: str) -> None:
    with pytest.raises(errors.InvalidField, match='at: not a serial, nor a time'):
        central.version_at('at', at)


@pytest.mark.parametrize('at, age', [('0d', timedelta(0)), ('1w2d3h4m5s', timedelta(9, 11045)), ('90m', HOUR * 1.5)])
def test_ages(central: Central, clock: Clock, at: str, age: timedelta) -> None:
    assert central.version_at('at', at)[0] == clock.moment() - age


@pytest.mark.parametrize('at', ['2030-01-31T12:00+05:00', '2030-01-31 07:00', '20300131T070000Z'])
def test_times(central: Central, at: str) -> None:
    assert central.version_at('at', at)[0] == datetime(2030, 1, 31, 7, tzinfo=timezone.utc)


def test_serials(central: Central) -> None:
    assert [central.version_at('at', at)[0] for at in ('0', '4294967295', '20300131')] == [0, 4294967295, 20300131]
