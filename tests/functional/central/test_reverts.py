"""The contents of a zone as they were at an older serial, as a new change, on each database."""

from __future__ import annotations

import dataclasses
import random

import pytest

from designate_pool import errors
from designate_pool.central.purger import Purger
from designate_pool.central.service import Central
from designate_pool.model import ChangeKind, Context, Domain, Outcome, PageRequest, Revert
from designate_pool.settings import CentralSettings
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import recordsets, versions
from tests.fixtures.central import SERVERS, WHO, Clock, contents, create, refused

RED, BLUE = Context(project_id='red'), Context(project_id='blue')


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
