"""Zones as they were at a serial or a time, for whom they belonged to then; and back to these contents."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central.purger import Purger
from designate_pool.central.service import Central
from designate_pool.model import ChangedSet, ChangeKind, Context, Domain, Outcome, PageRequest, Revert, ZoneHead
from designate_pool.settings import CentralSettings
from designate_pool.storage import queries
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import recordsets, versions
from tests.fixtures.central import SERVERS, WHO, WWW, Caller, Clock, contents, create, refused, started

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


def change(central: Central, domain: Domain, label: str, *addresses: str, ttl: int | None = None,
           who: Context = RED) -> int:
    return central.apply_changes(who, domain.id, [
        {'name': f'{label}.{domain.name}', 'type': 'A', 'records': addresses, 'ttl': ttl}]).serial


def revert(central: Central, domain: Domain, serial: int, *only: str, who: Context = RED) -> Revert:
    """The revert, which was done."""
    planned = central.plan_revert(who, domain.id, str(serial), *only)
    central.revert_domain(who, domain.id, planned)
    return planned


def served_at(database: Storage, domain: Domain, serial: int) -> set[tuple[str, str, int | None, str]]:
    """What is not the pool's."""
    return database.read(lambda tx: {record for record in versions.rows_at(tx, domain.id, serial)[1]
                                     if record[:2] != (domain.name, 'NS')})


@pytest.mark.all_databases
def test_a_reverted_zone_has_the_contents_that_it_had(central: Central, database: Storage, clock: Clock) -> None:
    dice = random.Random(2025)
    domain = create(central, 'example.com.', ('mail.example.com.', 'MX', ['10 MX.example.net.']), who=RED)
    pool_id = domain.pool_id
    serials = [domain.serial]
    values = {'A': ['192.0.2.1', '192.0.2.2', '192.0.2.3'], 'TXT': ['"one"', '"two" "three"', r'"\003"'],
              'SRV': ['0 0 443 Host.example.com.', '0 0 443 .'], 'TYPE65280': [r'\# 1 01', r'\# 2 0203']}
    for _ in range(40):
        clock.now += 10
        kind = dice.choice(('records',) * 5 + ('name servers', 'revert', 'restore'))
        if kind == 'records':
            rtype = dice.choice([*values])
            name = f'{dice.choice(("a", "b", "*.c"))}.example.com.'
            present = any(line.startswith(f'{name} {rtype} ') for line in contents(central, domain))
            central.apply_changes(RED, domain.id, [{
                'name': name, 'type': rtype, 'ttl': dice.choice((None, 60, 300)),
                'records': dice.sample(values[rtype], dice.randint(0 if present else 1, 2))}])
        elif kind == 'name servers':
            central.update_pool(WHO, {'id': pool_id, 'name_servers': dice.sample([*SERVERS, 'ns3.example.net.'], 2)})
        elif kind == 'restore':
            central.delete_domain(RED, domain.id)
            central.restore_domain(RED, domain.id)
        else:
            to = dice.choice(serials)
            planned = revert(central, domain, to)
            assert {(name, rtype) for name, rtype, _ in planned.unchanged} <= {('example.com.', 'NS')}
            now = central.get_domain(RED, domain.id)
            assert (now.serial != planned.serial) is bool(planned.changes)
            assert served_at(database, domain, now.serial) == served_at(database, domain, to)
            assert revert(central, domain, to).changes == []
        serials.append(central.get_domain(RED, domain.id).serial)
    kinds = [version.kind for version in central.find_versions(RED, domain.id, 1000)]
    assert kinds.count(ChangeKind.UNDO) > 2


def test_only_of_a_name_and_of_a_type(central: Central, clock: Clock) -> None:
    domain = create(central, 'example.com.', ('www.example.com.', 'TXT', ['"v1"']), who=RED)
    for address in ('192.0.2.1', '192.0.2.2'):
        clock.now += 10
        central.apply_changes(RED, domain.id, [
            {'name': 'www.example.com.', 'type': 'A', 'records': [address]},
            {'name': 'www.example.com.', 'type': 'TXT', 'records': [f'"{address}"']},
            {'name': 'api.example.com.', 'type': 'A', 'records': [address]}])
    planned = revert(central, domain, domain.serial, 'www.example.com.')
    assert [(each.name, each.type, each.records, each.former_records) for each in planned.changes] == [
        ('www.example.com.', 'A', (), ('192.0.2.2',)), ('www.example.com.', 'TXT', ('"v1"',), ('"192.0.2.2"',))]
    assert [each.name for each in central.plan_revert(RED, domain.id, str(domain.serial), None, 'A').changes] == [
        'api.example.com.']
    assert central.plan_revert(RED, domain.id, str(domain.serial), 'api.example.com.', 'TXT').changes == []


@pytest.mark.parametrize('only, field', [
    (('www',), 'name'), (('www.example.com',), 'name'), (('www.example.net.',), 'name'),
    ((None, 'B'), 'type'), ((None, 'ANY'), 'type')], ids=str)
def test_what_no_recordset_can_be_is_refused(central: Central, only: tuple[str, ...], field: str) -> None:
    domain = create(central, who=RED)
    with pytest.raises(errors.InvalidField, match=f'{field}: '):
        central.plan_revert(RED, domain.id, str(domain.serial), *only)


def test_the_conditions_hold_where_nothing_changes(central: Central) -> None:
    domain = create(central, who=RED)
    planned = central.plan_revert(RED, domain.id, str(domain.serial), is_checked=False)
    assert central.revert_domain(RED, domain.id, planned) == domain
    stale = dataclasses.replace(planned, serial=planned.serial - 1)
    assert refused(central.revert_domain, RED, domain.id, stale) == 'serial_moved'
    other = dataclasses.replace(RED, if_match='"1-x"')
    assert refused(central.revert_domain, other, domain.id, planned) == 'precondition_failed'
    assert refused(central.plan_revert, other, domain.id, str(domain.serial)) == 'precondition_failed'


def test_the_plan_changes_nothing_and_another_change_makes_it_stale(central: Central, clock: Clock) -> None:
    domain = create(central, who=RED)
    change(central, domain, 'www', '192.0.2.1')
    before = central.get_domain(RED, domain.id)
    planned = central.plan_revert(RED, domain.id, str(domain.serial))
    assert central.get_domain(RED, domain.id) == before and planned.serial == before.serial
    clock.now += 10
    last = change(central, domain, 'www', '192.0.2.2')
    assert refused(central.revert_domain, RED, domain.id, planned) == 'serial_moved'
    assert central.get_domain(RED, domain.id).serial == last


def test_a_plan_is_refused_where_the_change_would_be(central: Central, database: Storage, clock: Clock) -> None:
    domain = create(central, who=RED)
    empty = domain.serial
    clock.now += 10
    full = central.apply_changes(RED, domain.id, [
        {'name': f'www{number}.example.com.', 'type': 'A', 'records': ['192.0.2.1']} for number in range(4)]).serial
    central.set_quotas(WHO, 'red', {'deletes_per_hour': 3})
    assert refused(central.plan_revert, RED, domain.id, str(empty)) == 'over_quota'
    central.set_quotas(WHO, 'red', {'deletes_per_hour': 8, 'zone_records': 2})
    central.plan_revert(RED, domain.id, str(empty))
    assert len(revert(central, domain, empty).changes) == 4  # the plans are not counted as deletes
    assert refused(central.plan_revert, RED, domain.id, str(full)) == 'over_quota'
    central.reset_quotas(WHO, 'red')
    sub = create(central, 'www1.example.com.', who=RED)
    assert refused(central.plan_revert, RED, domain.id, str(full)) == 'invalid_object'
    central.delete_domain(RED, sub.id)
    central.set_lock(RED, domain.id, 'closed')
    assert refused(central.plan_revert, RED, domain.id, str(full)) == 'locked'
    central.set_lock(RED, domain.id, None)
    domain = central.apply_changes(RED, domain.id, [
        {'name': 'www0.example.com.', 'type': 'A', 'records': ['192.0.2.9']}])
    www, = central.find_recordsets(RED, domain.id, PageRequest({'type': 'A'}))
    central.set_recordset_lock(RED, domain.id, www.id, 'the monitoring asks for it')
    assert refused(central.plan_revert, RED, domain.id, str(full)) == 'locked'
    assert len(revert(central, domain, full, 'www1.example.com.').changes) == 1


def test_what_others_have_is_left_to_them(central: Central, clock: Clock) -> None:
    domain = create(central, 'example.com.', *(
        (f'{label}.example.com.', 'A', ['192.0.2.1']) for label in ('both', 'own')), who=RED)
    central.share_domain(RED, domain.id, {'target_project_id': 'blue'})
    clock.now += 10
    shared = change(central, domain, 'guest', '192.0.2.7', who=BLUE)
    change(central, domain, 'both')
    change(central, domain, 'own')
    clock.now += 10
    for label, address in (('guest', '192.0.2.8'), ('both', '192.0.2.9'), ('late', '192.0.2.6')):
        change(central, domain, label, address, who=BLUE)
    others = 'it belongs to another project'
    planned = revert(central, domain, shared)
    assert [(each.name, each.records) for each in planned.changes] == [('own.example.com.', ('192.0.2.1',))]
    assert planned.unchanged == [(f'{label}.example.com.', 'A', others) for label in ('both', 'guest', 'late')]
    # A guest gets back what was its own, and nothing that was somebody else's.
    guest = revert(central, domain, shared, who=BLUE)
    assert [(each.name, each.records) for each in guest.changes] == [
        ('guest.example.com.', ('192.0.2.7',)), ('late.example.com.', ())]
    assert guest.unchanged == []
    change(central, domain, 'guest', who=BLUE)
    assert revert(central, domain, shared).unchanged[-1] == ('guest.example.com.', 'A', others)
    assert [each.name for each in revert(central, domain, shared, who=BLUE).changes] == ['guest.example.com.']
    sets = {each.name: each.project_id for each in central.find_recordsets(WHO, domain.id, PageRequest({'type': 'A'}))}
    assert sets == {'own.example.com.': None, 'guest.example.com.': 'blue', 'both.example.com.': 'blue'}


def test_records_of_other_services_are_left_to_them(central: Central, clock: Clock) -> None:
    first, second = ({'region': 'one', 'id': each, 'address': '198.51.100.10'} for each in ('f-1', 'f-2'))
    central.set_floating_ip(RED, first, {'ptrdname': 'a.example.com.'})
    zone, = central.find_domains(WHO)
    clock.now += 10
    central.unset_floating_ip(RED, 'one', 'f-1')
    planned = revert(central, zone, zone.serial, who=WHO)
    assert planned.changes == []
    (name, rtype, why), = planned.unchanged
    assert (name, rtype) == ('10.100.51.198.in-addr.arpa.', 'PTR') and 'floating IP' in why
    central.set_floating_ip(BLUE, second, {'ptrdname': 'b.example.com.'})
    assert revert(central, zone, zone.serial, who=WHO).unchanged == planned.unchanged


def test_strangers_former_owners_and_other_kinds_of_zones(central: Central, clock: Clock) -> None:
    domain = create(central, who=RED)
    clock.now += 10
    former = change(central, domain, 'www', '192.0.2.1')
    assert refused(central.plan_revert, BLUE, domain.id, str(domain.serial)) == 'zone_not_found'
    central.give_domain(WHO, domain.id, 'blue')
    clock.now += 10
    change(central, domain, 'www', '192.0.2.2', who=BLUE)
    assert refused(central.plan_revert, RED, domain.id, str(former)) == 'zone_not_found'
    assert refused(central.plan_revert, BLUE, domain.id, str(domain.serial)) == 'contents_not_kept'
    assert len(revert(central, domain, former, who=BLUE).changes) == 1
    assert len(revert(central, domain, domain.serial, who=WHO).changes) == 1
    central.delete_domain(BLUE, domain.id)
    assert refused(central.plan_revert, BLUE, domain.id, str(former)) in ('zone_not_found', 'domain_being_deleted')


@pytest.mark.all_databases
def test_what_others_had_is_known_as_long_as_the_contents(central: Central, database: Storage, clock: Clock) -> None:
    domain = create(central, 'example.com.', ('own.example.com.', 'A', ['192.0.2.1']), who=RED)
    central.share_domain(RED, domain.id, {'target_project_id': 'blue'})
    shared = change(central, domain, 'guest', '192.0.2.7', who=BLUE)
    for label, who in (('guest', BLUE), ('own', RED)):
        clock.now += 10
        change(central, domain, label, who=who)
    central.update_status(WHO, central.get_domain(RED, domain.id), Outcome.SUCCESS,
                          central.get_domain(RED, domain.id).serial)
    keeper = Purger(database, CentralSettings())
    clock.now += 30 * 86400
    while keeper.purge():
        pass
    planned = central.plan_revert(RED, domain.id, str(shared))
    assert [each.name for each in planned.changes] == ['own.example.com.']
    assert [name for name, *_ in planned.unchanged] == ['guest.example.com.']
    clock.now += 366 * 86400
    while keeper.purge():
        pass
    assert database.read(recordsets.last_deleted, domain.id, ['guest.example.com.', 'own.example.com.']) == {}
