"""Plans that are kept, and which RRsets on a server are ours, on each database."""

from __future__ import annotations

import dataclasses
import json
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool import errors
from designate_pool.central.purger import Purger
from designate_pool.central.rules import plans as rules
from designate_pool.central.service import Central
from designate_pool.model import (Action, Context, Domain, Outcome, PageRequest, PlanState, PoolServer, ServerState,
                                  ServerStatus, StoredPlan, new_id, utcnow)
from designate_pool.settings import CentralSettings
from designate_pool.storage.operations import pool_servers, rrset_ownership, server_statuses
from designate_pool.storage.reporting import gauges
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import plans
from testing.databases import count_statements
from tests.fixtures.central import WHO, Caller, Clock, create

ONE, TWO = '1' * 32, '2' * 32
STORED, PARKED, APPROVED, APPLIED, FAILED, DROPPED = PlanState
HOUR = timedelta(hours=1)
TENANT, OTHER = Context(project_id='tenant'), Context(project_id='other')


def at(clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock.now, timezone.utc)


def stored(**facts: Any) -> StoredPlan:
    """An operator's plan."""
    return StoredPlan(**{'id': new_id(), 'pool_name': 'default', 'zone': 'example.com.', 'target': 'ns1, ns2',
                         'state': STORED, 'document': '{"parts": []}', **facts})


def parked(domain: Domain, server_id: str = ONE, **facts: Any) -> StoredPlan:
    """A pool manager's plan."""
    return stored(**{'zone': domain.name, 'target': f'fake:{server_id[0]}', 'state': PARKED, 'domain_id': domain.id,
                     'server_id': server_id, 'why': 'all of it would be deleted', **facts})


def put(database: Storage, plan: StoredPlan, now: datetime) -> StoredPlan:
    return database.run(plans.put, plan, now)


def states(database: Storage, *kept: StoredPlan) -> list[PlanState]:
    found = [database.read(plans.get, each.id) for each in kept]
    return [each.state for each in found if each is not None]


class TestKept:
    def test_every_column_comes_back_as_it_was_written(self, central: Central, database: Storage, clock: Clock) -> None:
        now = at(clock)
        plan = parked(create(central), desired_digest='a' * 64, existing_digest='b' * 64, creates=1, updates=2,
                      deletes=3, why='zu viel\n多すぎる', document='{"zone": "münchen"}', asked_by='tenant',
                      expires_at=now + HOUR, applied_at=now - HOUR)
        kept = put(database, plan, now)
        assert kept == dataclasses.replace(plan, created_at=now, updated_at=now)
        assert database.read(plans.get, plan.id) == kept
        assert database.read(plans.get, new_id()) is None

    def test_who_asked_is_cut_to_its_column(self, central: Central) -> None:
        central.put_plan(dataclasses.replace(WHO, user='u' * 300), kept := stored())
        assert central.get_plan(WHO, kept.id).asked_by == 'u' * 255  # SQLite would take it all

    def test_a_pool_keeps_its_plans_under_another_name(self, central: Central, database: Storage, clock: Clock) -> None:
        domain, now = create(central), at(clock)
        put(database, parked(domain, expires_at=now + HOUR), now)
        put(database, parked(domain, TWO, state=APPLIED, deletes=3, applied_at=now), now)
        central.update_pool(WHO, {'id': domain.pool_id, 'name': 'renamed'})
        assert database.read(gauges.parked_plans, 'renamed', now) == 1
        assert database.read(plans.deletes_since, 'renamed', now) == 3

    def test_one_that_is_kept_stays_as_it_is(self, central: Central, database: Storage, clock: Clock) -> None:
        kept = put(database, parked(create(central)), at(clock))
        assert kept.expires_at == at(clock) + plans.DEFAULT_LIFE
        again = put(database, dataclasses.replace(kept, state=DROPPED, why='x'), at(clock) + HOUR)
        assert again == kept == database.read(plans.get, kept.id)

    def test_a_plan_that_deletes_all_of_a_large_zone_is_kept(self, database: Storage, clock: Clock) -> None:
        document = json.dumps({'changes': [{'kind': 'Delete', 'existing': [{
            'name': f'host-{number}.example.com.', 'type': 'A', 'ttl': 300, 'records': [f'10.0.0.{number % 256}']}],
            'new': []} for number in range(200_000)]})
        assert len(document) > 16 << 20
        kept = put(database, stored(document=document), at(clock))
        assert database.read(plans.get, kept.id) == kept
        (listed,) = database.read(plans.find, PageRequest())
        assert listed == dataclasses.replace(kept, document='')

    def test_what_cannot_be_made_short_enough_is_refused(self, database: Storage, clock: Clock) -> None:
        noise = json.dumps({'noise': random.Random(1).randbytes(plans.MAX_DOCUMENT // 2).hex()})
        with pytest.raises(errors.InvalidField, match='document: it is too long'):
            put(database, stored(document=noise * 2), at(clock))
        assert database.read(plans.find, PageRequest()) == []

    @pytest.mark.all_databases
    def test_a_plan_is_of_a_domain_that_exists(self, database: Storage, clock: Clock) -> None:
        with pytest.raises(sa.exc.IntegrityError):
            put(database, stored(domain_id=new_id(), server_id=ONE), at(clock))


class TestLive:
    def test_the_newest_that_waits_and_has_not_expired(self, central: Central, database: Storage, clock: Clock) -> None:
        domain, now = create(central), at(clock)
        put(database, parked(domain, state=DROPPED), now + 5 * HOUR)
        first = put(database, parked(domain), now)
        second = put(database, parked(domain, state=APPROVED, expires_at=now + HOUR), now + timedelta(seconds=1))
        put(database, parked(domain, TWO), now + 2 * HOUR)

        def live(when: datetime) -> StoredPlan | None:
            return database.read(plans.live, domain.id, ONE, when)

        assert live(now) == second
        assert live(now + HOUR) == first
        assert live(now + plans.DEFAULT_LIFE) is None

    def test_dropping_what_waits_on_a_server_and_again(self, central: Central, database: Storage, clock: Clock) -> None:
        domain, now = create(central), at(clock)
        here = [put(database, parked(domain, state=state), now) for state in (PARKED, APPROVED, APPLIED)]
        there = put(database, parked(domain, TWO), now)
        assert database.run(plans.drop_live, domain.id, ONE, 'the zone moved', now + HOUR) == 2
        assert states(database, *here, there) == [DROPPED, DROPPED, APPLIED, PARKED]
        gone = database.read(plans.get, here[0].id)
        assert gone is not None and (gone.why, gone.updated_at) == ('the zone moved', now + HOUR)
        assert database.run(plans.drop_live, domain.id, ONE, 'the zone moved', now) == 0

    @pytest.mark.all_databases
    def test_of_many_who_settle_one_plan_one_does(self, central: Central, database: Storage, clock: Clock) -> None:
        plan = put(database, parked(create(central), state=APPROVED), at(clock))

        def settle(number: int) -> bool:
            return database.run(plans.change_state, plan.id, (PARKED, APPROVED), APPLIED, None, at(clock), f'w{number}')

        with ThreadPoolExecutor(4) as threads:
            won = list(threads.map(settle, range(8)))
        found = database.read(plans.get, plan.id)
        assert won.count(True) == 1 and found is not None
        assert (found.state, found.asked_by, found.applied_at, found.why) == (
            APPLIED, f'w{won.index(True)}', at(clock), plan.why)

    def test_deletes_of_the_last_hour(self, central: Central, database: Storage, clock: Clock) -> None:
        domain, now = create(central), at(clock)
        for state, ago, deletes, facts in ((APPLIED, 10, 5, {}), (FAILED, 60, 7, {}), (APPLIED, 61, 100, {}),
                                           (DROPPED, 1, 200, {}), (APPLIED, 1, 400, {'pool_name': 'other'})):
            put(database, parked(domain, state=state, deletes=deletes, applied_at=now - timedelta(minutes=ago),
                                 **facts), now)
        put(database, stored(state=APPLIED, deletes=800, applied_at=now), now)
        assert database.read(plans.deletes_since, 'default', now - HOUR) == 12
        assert database.read(plans.deletes_since, 'none', now - HOUR) == 0
        put(database, parked(domain, state=APPROVED, deletes=1600), now)
        assert database.read(plans.deletes_since, 'default', now - HOUR) == 1612, 'what is approved is about to go'

    @pytest.mark.all_databases
    def test_many_who_reserve_at_once_stay_within_the_limit_together(self, central: Central,
                                                                     database: Storage) -> None:
        now, domains = utcnow(), [create(central, f'd{number}.example.com.') for number in range(12)]
        database.run(pool_servers.register, 'default',
                     [PoolServer(each, '', each[0], 'fake', ServerState.ACTIVE, 'f' * 64)
                      for each in (ONE, TWO)], False, True, now)

        def reserve(domain: Domain) -> int | None:
            return database.run(plans.reserve, parked(domain, deletes=10), 55, now - HOUR, now)

        with ThreadPoolExecutor(6) as threads:
            found = list(threads.map(reserve, domains))
        assert found.count(None) == 5 and {each for each in found if each is not None} == {50}
        assert database.read(plans.deletes_since, 'default', now - HOUR) == 50
        # Those that never ended give way to their own next try.
        assert [reserve(domain) for domain in domains] == found

    def test_what_was_reserved_and_ended_counts_beside_the_next(self, central: Central, database: Storage) -> None:
        now, domain = utcnow(), create(central)
        first = parked(domain, deletes=10)
        assert database.run(plans.reserve, first, 15, now - HOUR, now) is None
        assert database.run(plans.change_state, first.id, (FAILED,), APPLIED, '', now)
        assert database.run(plans.reserve, parked(domain, deletes=10), 15, now - HOUR, now) == 10

    def test_zones_without_a_domain_each_keep_what_they_reserved(self, central: Central, database: Storage) -> None:
        now, domain = utcnow(), create(central)

        def reserve(**facts: Any) -> int | None:
            return database.run(plans.reserve, parked(domain, deletes=10, **facts), 25, now - HOUR, now)

        first, second, third = ({'domain_id': None, 'zone': f'{each}.example.net.'} for each in 'abc')
        assert (reserve(**first), reserve(**second), reserve(**third), reserve()) == (None, None, 20, 20)
        assert (reserve(**first), reserve(**second)) == (None, None), 'the next try of each is in place of its last'
        assert database.read(plans.deletes_since, 'default', now - HOUR) == 20


class TestFinding:
    def test_the_newest_first_in_pages(self, database: Storage, clock: Clock) -> None:
        kept = [put(database, stored(zone=f'{number}.example.com.'), at(clock) + timedelta(seconds=number))
                for number in range(5)]
        newest = [each.zone for each in reversed(kept)]
        first = database.read(plans.find, PageRequest(limit=3))
        assert [each.zone for each in first] == newest[:3]
        assert [each.zone for each in database.read(plans.find, PageRequest(marker=first[-1].id))] == newest[3:]
        assert [each.zone for each in database.read(plans.find, PageRequest(sort_key='zone'))] == newest[::-1]

    def test_by_what_is_known_of_them(self, central: Central, database: Storage, clock: Clock) -> None:
        domain, now = create(central), at(clock)
        here, there = put(database, parked(domain), now), put(database, parked(domain, TWO, state=APPROVED), now)
        operators = put(database, stored(zone='2 zones'), now)

        def found(**criterion: str) -> set[str]:
            return {each.id for each in database.read(plans.find, PageRequest(criterion))}

        assert found() == {here.id, there.id, operators.id}
        assert found(state='PARKED') == {here.id}
        assert found(state='approved, STORED') == {there.id, operators.id}
        assert found(zone='*.com.') == found(domain_id=domain.id) == {here.id, there.id}
        assert found(server_id=TWO) == found(zone='example.com.', server_id=TWO) == {there.id}
        assert found(pool_name='other') == set()
        for wrong in ({'state': 'NEW'}, {'colour': 'red'}, {'zone': 7}):
            with pytest.raises(errors.InvalidField, match=next(iter(wrong))):
                database.read(plans.find, PageRequest(wrong))


class TestHousekeeping:
    def turn(self, database: Storage, clock: Clock, retention: float = 1000) -> None:
        keeper = Purger(database, CentralSettings(deleted_retention=retention))
        while keeper.purge():
            pass

    def test_an_expired_plan_stays_for_a_while(self, central: Central, database: Storage, clock: Clock) -> None:
        domain, now = create(central), at(clock)
        kept = [put(database, parked(domain, state=state, expires_at=now + HOUR), now) for state in PlanState]
        later = put(database, parked(domain, expires_at=now + 100 * HOUR), now)
        clock.now += 2.9 * 3600
        self.turn(database, clock)
        assert len(states(database, *kept)) == len(kept)
        clock.now += 1800
        self.turn(database, clock)
        assert states(database, *kept, later) == [PARKED]

    def test_what_was_applied_just_now_still_counts_though_nothing_is_retained(
            self, central: Central, database: Storage, clock: Clock) -> None:
        plan = put(database, parked(create(central), deletes=3, expires_at=at(clock)), at(clock))
        clock.now += 100_000
        assert database.run(plans.change_state, plan.id, (PARKED,), APPLIED, None, at(clock))
        clock.now += 3000
        self.turn(database, clock, retention=0)
        assert database.read(plans.deletes_since, 'default', at(clock) - HOUR) == 3


class TestOwned:
    KEYS = ('example.com.\tMX', 'www.example.com.\tA', 'www.example.com.\tAAAA', '\\000\\\\.example.com.\tTXT')

    def keys(self, database: Storage, server_id: str, domain: Domain) -> frozenset[str]:
        return database.read(rrset_ownership.keys, server_id, domain.id)

    def test_what_was_made_is_ours_until_it_is_deleted(self, central: Central, database: Storage) -> None:
        domain, other = create(central), create(central, 'example.org.')
        for _ in range(2):
            database.run(rrset_ownership.note, ONE, domain.id, self.KEYS, ())
            assert self.keys(database, ONE, domain) == set(self.KEYS)
        assert self.keys(database, TWO, domain) == self.keys(database, ONE, other) == frozenset()
        for _ in range(2):
            database.run(rrset_ownership.note, ONE, domain.id, ['new.example.com.\tA', self.KEYS[0]], self.KEYS[1:])
            assert self.keys(database, ONE, domain) == {'new.example.com.\tA', self.KEYS[0]}

    @pytest.mark.all_databases
    def test_a_whole_large_zone_in_few_statements(self, central: Central, database: Storage) -> None:
        domain = create(central)
        many = {f'h{number}.example.com.\tA' for number in range(20_000)}
        with count_statements(database) as statements:
            database.run(rrset_ownership.note, ONE, domain.id, many, ())
        assert statements.total() < 100
        assert self.keys(database, ONE, domain) == many
        database.run(rrset_ownership.note, ONE, domain.id, (), many)
        assert self.keys(database, ONE, domain) == frozenset()

    @pytest.mark.all_databases
    def test_two_who_note_the_same_at_once(self, central: Central, database: Storage,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
        """The other one's rows come between our looking and our writing."""
        domain = create(central)
        database.run(rrset_ownership.note, ONE, domain.id, self.KEYS, ())
        monkeypatch.setattr(rrset_ownership, '_known', lambda *args: set())
        with pytest.raises(errors.LostRace):
            database.run(rrset_ownership.note, ONE, domain.id, [*self.KEYS, 'new.example.com.\tA'], ())
        monkeypatch.undo()
        assert self.keys(database, ONE, domain) == set(self.KEYS)

    def test_a_name_made_anew_in_the_same_pool_inherits(self, central: Central, database: Storage) -> None:
        former = create(central)
        database.run(rrset_ownership.note, ONE, former.id, self.KEYS, ())
        gone = central.delete_domain(WHO, former.id)
        central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
        domain = create(central)
        assert self.keys(database, ONE, domain) == set(self.KEYS)
        assert self.keys(database, ONE, former) == frozenset()

        gone = central.delete_domain(WHO, domain.id)
        central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
        pool = central.create_pool(WHO, {'name': 'second', 'name_servers': ['ns1.example.net.']})
        elsewhere = central.create_domain(WHO, {'name': 'example.com.', 'email': 'hostmaster@example.com',
                                                'pool_id': pool.id})
        assert self.keys(database, ONE, elsewhere) == frozenset()
        assert self.keys(database, ONE, domain) == set(self.KEYS), 'the other pool still has to take them away'


class TestApproving:
    def row(self, database: Storage, domain: Domain, now: datetime, **facts: Any) -> ServerStatus:
        row = ServerStatus(**{
            'server_id': ONE, 'domain_id': domain.id, 'action': Action.UPDATE, 'expected_serial': domain.serial,
            'status': Outcome.ERROR, 'next_attempt_at': now + HOUR, 'claimed_by': 'manager',
            'claimed_until': now + HOUR, 'version': 4, **facts})
        database.run(server_statuses.write, [row], now)
        return row

    def rows(self, database: Storage, domain: Domain) -> dict[tuple[str, Action], ServerStatus]:
        found = database.read(server_statuses.for_domains, [domain.id])[domain.id]
        return {(each.server_id, each.action): each for each in found}

    def test_its_server_is_tried_now(self, central: Central, database: Storage, caller: Caller, clock: Clock) -> None:
        domain, now = create(central), at(clock)
        self.row(database, domain, now)
        self.row(database, domain, now, server_id=TWO)
        self.row(database, domain, now, action=Action.CREATE, status=Outcome.SUCCESS, next_attempt_at=None)
        plan = put(database, parked(domain), now)
        caller.cast_domains.clear()
        before = self.rows(database, domain)
        approved = central.approve_plan(WHO, plan.id)
        assert approved == dataclasses.replace(plan, state=APPROVED, updated_at=now)
        rows = self.rows(database, domain)
        woken = rows[ONE, Action.UPDATE]
        assert (woken.next_attempt_at, woken.claimed_by, woken.claimed_until, woken.version, woken.status) == (
            now, 'manager', now + HOUR, 5, Outcome.ERROR), 'a call that is under way ends first'
        assert {key: row for key, row in rows.items() if row != before[key]} == {(ONE, Action.UPDATE): woken}
        assert [(method, each.id) for method, each in caller.cast_domains] == [('create_domain', domain.id)]

    def test_a_server_that_never_had_the_zone(self, central: Central, database: Storage, clock: Clock) -> None:
        domain, now = create(central), at(clock)
        self.row(database, domain, now, action=Action.CREATE)
        central.approve_plan(WHO, put(database, parked(domain), now).id)
        assert self.rows(database, domain)[ONE, Action.CREATE].next_attempt_at == now

    def test_twice_is_once(self, central: Central, database: Storage, clock: Clock) -> None:
        who = Context(project_id='tenant')
        plan = put(database, parked(create(central, who=who)), at(clock))
        approved = central.approve_plan(who, plan.id)
        clock.now += 1
        assert central.approve_plan(who, plan.id) == approved
        assert approved.asked_by == 'tenant'

    @pytest.mark.parametrize('state', [STORED, APPLIED, FAILED, DROPPED])
    def test_not_what_is_not_parked(self, central: Central, database: Storage, clock: Clock, state: PlanState) -> None:
        plan = put(database, parked(create(central), state=state), at(clock))
        with pytest.raises(errors.WrongPlanState, match=f'{plan.id} is {state}'):
            central.approve_plan(WHO, plan.id)
        assert states(database, plan) == [state]

    def test_not_what_has_expired(self, central: Central, database: Storage, clock: Clock) -> None:
        plan = put(database, parked(create(central), expires_at=at(clock) + HOUR), at(clock))
        clock.now += 3600
        with pytest.raises(errors.WrongPlanState, match='expired'):
            central.approve_plan(WHO, plan.id)

    def test_of_a_domain_that_goes_the_plans_are_dropped(self, central: Central, database: Storage,
                                                         clock: Clock) -> None:
        domain = create(central)
        plan = put(database, parked(domain), at(clock))
        central.delete_domain(WHO, domain.id)
        assert states(database, plan) == [DROPPED]

    def test_of_a_domain_that_goes_the_deletion_is_approved(self, central: Central, database: Storage, caller: Caller,
                                                            clock: Clock) -> None:
        domain = create(central)
        central.delete_domain(WHO, domain.id)
        later = at(clock) + HOUR
        database.run(server_statuses.write, [ServerStatus(ONE, domain.id, action, domain.serial, next_attempt_at=when,
                                                          status=outcome, version=1)
                                             for action, when, outcome in (
                                          (Action.DELETE, later, Outcome.ERROR), (Action.UPDATE, None, None))], later)
        plan = put(database, parked(domain), at(clock))
        central.approve_plan(WHO, plan.id)
        assert states(database, plan) == [APPROVED]
        due = {row.action: row.next_attempt_at
               for row in database.read(server_statuses.for_domains, [domain.id])[domain.id]}
        assert due == {Action.DELETE: at(clock), Action.UPDATE: None}

    def test_dropped_and_dropped_again(self, central: Central, database: Storage, clock: Clock) -> None:
        plan = put(database, parked(create(central), state=APPROVED), at(clock))
        dropped = central.drop_plan(WHO, plan.id)
        assert (dropped.state, dropped.why) == (DROPPED, 'dropped by command')
        clock.now += 1
        assert central.drop_plan(WHO, plan.id) == dropped
        with pytest.raises(errors.WrongPlanState):
            central.approve_plan(WHO, plan.id)

    @pytest.mark.parametrize('state', [APPLIED, FAILED])
    def test_what_was_applied_is_not_dropped(self, central: Central, database: Storage, clock: Clock,
                                             state: PlanState) -> None:
        plan = put(database, parked(create(central), state=state), at(clock))
        with pytest.raises(errors.WrongPlanState):
            central.drop_plan(WHO, plan.id)
        assert states(database, plan) == [state]


class TestOperatorsPlans:
    def test_stored_and_applied(self, central: Central, clock: Clock) -> None:
        plan = central.put_plan(WHO, stored(pool_name='', creates=4))
        assert (plan.pool_name, plan.created_at, plan.expires_at) == (
            'default', at(clock), at(clock) + plans.DEFAULT_LIFE)
        assert central.get_plan(WHO, plan.id) == central.put_plan(WHO, plan) == plan
        clock.now += 1
        failed = central.settle_plan(WHO, plan.id, FAILED, 'ns2: refused')
        assert (failed.state, failed.why, failed.applied_at) == (FAILED, 'ns2: refused', at(clock))
        clock.now += 1
        applied = central.settle_plan(Context(project_id='other', all_projects=True), plan.id, APPLIED)
        assert (applied.state, applied.asked_by, applied.applied_at) == (APPLIED, 'other', at(clock))
        clock.now += 1
        assert central.settle_plan(WHO, plan.id, APPLIED) == applied
        with pytest.raises(errors.WrongPlanState, match='cannot become FAILED'):
            central.settle_plan(WHO, plan.id, FAILED)

    def test_a_pool_managers_plan_is_settled_by_none_else(self, central: Central, database: Storage,
                                                          clock: Clock) -> None:
        plan = put(database, parked(create(central)), at(clock))
        with pytest.raises(errors.WrongPlanState, match='pool manager'):
            central.settle_plan(WHO, plan.id, APPLIED)

    def test_another_plan_of_the_same_id(self, central: Central) -> None:
        plan = central.put_plan(WHO, stored())
        with pytest.raises(errors.Conflict):
            central.put_plan(WHO, dataclasses.replace(plan, document='{"parts": [1]}'))

    @pytest.mark.parametrize(('field', 'facts'), [
        ('zone', {'zone': None}), ('zone', {'zone': 'münchen.example.'}), ('target', {'target': 't' * 301}),
        ('document', {'document': None}), ('why', {'why': 7}), ('desired_digest', {'desired_digest': 'd' * 97}),
    ])
    def test_what_cannot_be(self, central: Central, field: str, facts: dict[str, Any]) -> None:
        with pytest.raises(errors.InvalidField, match=f'^{field}: '):
            central.put_plan(WHO, stored(**facts))
        assert central.find_plans(WHO) == []


class TestWhoSeesWhat:
    def test_a_domains_plan_is_seen_with_the_domain(self, central: Central, database: Storage, clock: Clock) -> None:
        plan = put(database, parked(create(central, who=TENANT)), at(clock))
        operators = central.put_plan(TENANT, stored())
        for who in (WHO, Context(project_id='other', all_projects=True)):
            assert {each.id for each in central.find_plans(who)} == {plan.id, operators.id}
            assert central.get_plan(who, operators.id).id == operators.id
        assert [each.id for each in central.find_plans(TENANT)] == [plan.id]
        assert central.get_plan(TENANT, plan.id).id == plan.id
        assert central.find_plans(OTHER) == []
        for given in (operators.id, operators.id[:8]):
            with pytest.raises(errors.PlanNotFound):
                central.get_plan(TENANT, given)
        for ask in (central.get_plan, central.approve_plan, central.drop_plan):
            for given in (plan.id, plan.id[:8]):
                with pytest.raises(errors.PlanNotFound):
                    ask(OTHER, given)
        assert states(database, plan) == [PARKED]


def test_a_lost_approval_is_found_by_who_tries_next(central: Central, database: Storage, clock: Clock) -> None:
    """The cast that follows an approval may be lost; the row is due all the same."""
    domain, now = create(central), at(clock)
    row = ServerStatus(ONE, domain.id, Action.UPDATE, domain.serial, status=Outcome.ERROR,
                       next_attempt_at=now + HOUR, version=1)
    database.run(server_statuses.write, [row], now)
    plan = put(database, parked(domain), now)
    database.run(rules.approve, WHO, plan.id, now)
    (due,) = database.run(server_statuses.claim_due, {ONE: 5}, utcnow() + timedelta(seconds=1), 'manager', now + HOUR)
    assert due.domain_id == domain.id
    live = database.read(plans.live, domain.id, ONE, now)
    assert live is not None and live.state is APPROVED
