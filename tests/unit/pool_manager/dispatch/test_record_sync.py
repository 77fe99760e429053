"""A server that is fed by records beside two that transfer: one threshold, plans that are parked, whatever fails.

Everything is real but for the servers: the one that is fed is a provider in memory that does as the test says.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest

from designate_pool.backends.base import Backend
from designate_pool.backends.records import Octodns, RecordBackend
from designate_pool.errors import BackendUnreachable, InvalidField
from designate_pool.model import (Action, Answer, Domain, Outcome, PageRequest, PlanState, PollResult, PoolServer,
                                  RecordChange, Server, ServerState, ServerStatus, Status, StoredPlan, new_id, utcnow)
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.targets.fake import FakeProvider
from designate_pool.planner.zone.zone import Zone
from designate_pool.pool_manager.dispatch.record_sync import RecentCreates
from designate_pool.pool_manager.periodic.join_and_drain import JoinAndDrain
from designate_pool.pool_manager.verify.server_compare import ServerCompare
from designate_pool.protocol.rrset import rrset
from designate_pool.storage.operations import pool_servers, rrset_ownership
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains, plans
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, Clock, ScriptedPool, later

FED = SERVERS[2]
NAME = 'example.com.'


class Recorded(FakeProvider):
    """Remembers what it was asked to do."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.calls: list[str] = []

    def _effective(self, operation: str) -> bool:
        self.calls.append(operation)
        return super()._effective(operation)


class FedServer(RecordBackend):
    """Fed by records, in memory."""

    provider: Recorded

    def _new_provider(self) -> Recorded:
        return Recorded('fed')

    # What the pool of the other tests asks of a server.
    zones: dict[str, int | None] = {}


class FedPool(ScriptedPool):
    """Two servers that transfer and one that is fed.

    :ivar fed: the latter
    """

    options: dict[str, Any] = {}

    def __init__(self, storage: Storage, folder: pathlib.Path, threshold: int, clock: Clock) -> None:
        super().__init__(storage, folder, threshold, clock)
        self.refit()

    def refit(self, **options: Any) -> None:
        """Have the fed server begin again with these options; what it holds stays."""
        before = getattr(self, 'fed', None)
        self.fed = FedServer(Server(FED, 'fed', '192.0.2.1', 55, max_in_flight=1, call_timeout=5, options=options))
        if before is not None:
            for name in before.provider.zones(())[0]:
                self.fed.provider.put(before.provider.zone(name))
        self.servers[FED] = self.fed  # type: ignore[assignment]
        workers = {**self.manager.all_workers, FED: self.manager.new_worker(self.fed.server, self.fed)}
        self.manager.reconciler.set_servers(self.manager.members, workers)

    def poll(self, request: Any) -> Any:
        assert request.server_id != FED, 'a server that is fed is not told to transfer'
        return super().poll(request)

    def apply(self, domain: Domain, *records: str) -> Domain:
        """Change RRsets: each "name [TTL type data]"; without data it goes."""
        changes = []
        for each in records:
            name, rtype, *data = each.split(' ', 2)
            changes.append(RecordChange(name, rtype, tuple(data[0].split(', ')) if data else ()))
        changed = self.central.apply_changes(CONTEXT, domain.id, changes)
        self.deliver()
        return changed

    def fill(self, count: int = 20) -> Domain:
        """A domain with so many hosts."""
        return self.apply(self.create(), *(f'h{number}.{NAME} A 192.0.2.{number}' for number in range(count)))

    def row(self, domain: Domain, action: Action = Action.UPDATE) -> ServerStatus:
        return self.rows(domain)[FED, action]

    def there(self) -> list[str]:
        """What the fed server holds, but for the SOA."""
        zone = self.fed.provider.zone(NAME)
        return [] if zone is None else sorted(str(each) for each in zone if each.type != 'SOA')

    def served_serial(self) -> int | None:
        return self.fed.provider.zones(())[0].get(NAME)

    def hosts(self) -> list[str]:
        """The A records that the fed server holds."""
        return [line for line in self.there() if ' A ' in line]

    def live(self, domain: Domain) -> StoredPlan | None:
        return self.storage.read(plans.live, domain.id, FED, utcnow())

    def parked(self, domain: Domain) -> StoredPlan:
        plan = self.live(domain)
        assert plan is not None and plan.state is PlanState.PARKED
        return plan

    def fill_and_park(self) -> tuple[Domain, StoredPlan]:
        """A domain with twenty hosts, and the parked plan that deletes ten of them."""
        domain = self.apply(self.fill(), *(f'h{number}.{NAME} A' for number in range(10)))
        return domain, self.parked(domain)

    def approve(self, plan: StoredPlan, clock: Clock) -> None:
        self.central.approve_plan(CONTEXT, plan.id)
        later(self, clock, 0)

    def state_of(self, plan: StoredPlan) -> PlanState:
        return self.storage.read(plans.get, plan.id).state

    def share(self, ownership: str, *records: str) -> Domain:
        """A domain with these records on a server where others may have records in its zone."""
        self.refit(ownership=ownership, policy='sync')
        return self.apply(self.create(), *records)


@pytest.fixture(params=[100])
def pool(emptied_sqlite: Storage, tmp_path: pathlib.Path, clock: Clock, request: pytest.FixtureRequest) -> FedPool:
    return FedPool(emptied_sqlite, tmp_path, request.param, clock)


two_of_three = pytest.mark.parametrize('pool', [66], indirect=True)


def is_settled(pool: FedPool, domain: Domain) -> bool:
    return pool.get(domain).status is Status.ACTIVE and pool.row(domain).status is Outcome.SUCCESS


def test_it_counts_only_when_what_was_applied_is_read_back(pool: FedPool, clock: Clock) -> None:
    domain = pool.create()
    pool.fed.provider.behave('apply', 'lie')
    changed = pool.apply(domain, f'www.{NAME} A 192.0.2.1')
    assert pool.get(domain).status is Status.PENDING
    assert 'but the zone read back still needs 2' in (pool.row(domain).last_error or '')
    pool.fed.provider.behave('apply', 'succeed')
    later(pool, clock, 2.1)
    assert is_settled(pool, domain) and pool.row(domain).serial_number == changed.serial


@two_of_three
def test_one_that_is_down_costs_the_others_nothing_and_gets_it_when_it_is_back(
        pool: FedPool, clock: Clock) -> None:
    domain = pool.create()
    for operation in ('populate', 'ping'):
        pool.fed.provider.behave(operation, 'unreachable')
    changed = pool.apply(domain, f'www.{NAME} A 192.0.2.1')
    assert pool.get(domain).status is Status.ACTIVE
    assert pool.row(domain).serial_number == domain.serial
    for _ in range(4):
        later(pool, clock, 2.1)
    assert pool.manager.workers[FED].control.is_open
    assert pool.row(domain).status is Outcome.ERROR
    for operation in ('populate', 'ping'):
        pool.fed.provider.behave(operation, 'succeed')
    later(pool, clock, 3)
    assert is_settled(pool, domain) and pool.served_serial() == changed.serial


@pytest.mark.parametrize('step', range(6))
def test_interrupted_at_every_step_then_again(pool: FedPool, clock: Clock, step: int) -> None:
    domain = pool.apply(pool.create(), f'c.{NAME} CNAME x.{NAME}', f'd.{NAME} A 192.0.2.1', f'u.{NAME} A 192.0.2.1',
                        *(f'h{number}.{NAME} A 192.0.2.9' for number in range(9)))
    pool.fed.provider.fail_after = step
    changed = pool.apply(domain, f'c.{NAME} A 192.0.2.1', f'c.{NAME} CNAME', f'd.{NAME} A', f'u.{NAME} A 192.0.2.2',
                         f'n.{NAME} A 192.0.2.1')
    done = step > 4  # delete, replace, two updates (one is the SOA's), create
    assert (pool.row(domain).status is Outcome.SUCCESS) is done
    if not done:
        assert f'{step} of 5 changes were made' in (pool.row(domain).last_error or '')
    pool.fed.provider.fail_after = None
    later(pool, clock, 2.1)
    assert is_settled(pool, domain) and pool.served_serial() == changed.serial
    assert [line for line in pool.there() if line.startswith(('c.', 'd.', 'n.', 'u.'))] == [
        f'c.{NAME} 3600 A 192.0.2.1', f'n.{NAME} 3600 A 192.0.2.1', f'u.{NAME} 3600 A 192.0.2.2']


@two_of_three
def test_a_dangerous_plan_is_parked_while_the_others_go_on(pool: FedPool, clock: Clock) -> None:
    domain = pool.fill()
    before = pool.there()
    changed = pool.apply(domain, *(f'h{number}.{NAME} A' for number in range(10)))
    assert pool.get(domain).status is Status.ACTIVE
    assert pool.there() == before
    parked = pool.parked(domain)
    assert (parked.deletes, parked.zone) == (10, NAME)
    row = pool.row(domain)
    assert row.status is Outcome.ERROR
    assert parked.id in (row.last_error or '') and '10 of 21 RRsets would be deleted, over 30 %' in str(row.last_error)

    later(pool, clock, 400)
    assert pool.live(domain) == parked, 'looked at again, it is the same plan'

    pool.approve(parked, clock)
    assert is_settled(pool, domain) and pool.row(domain).serial_number == changed.serial
    assert len(pool.there()) == 11
    assert pool.state_of(parked) is PlanState.APPLIED
    assert pool.storage.read(plans.deletes_since, 'default', utcnow() - timedelta(hours=1)) == 10
    assert pool.live(domain) is None


@two_of_three
def test_an_approved_plan_that_was_interrupted_is_finished(pool: FedPool, clock: Clock) -> None:
    domain, parked = pool.fill_and_park()
    pool.fed.provider.fail_after = 2
    pool.approve(parked, clock)
    assert len(pool.there()) == 19
    pool.fed.provider.fail_after = None
    later(pool, clock, 400)
    assert is_settled(pool, domain) and len(pool.there()) == 11
    assert pool.state_of(parked) is PlanState.APPLIED


@two_of_three
def test_an_approval_is_for_that_plan_only(pool: FedPool, clock: Clock) -> None:
    domain, parked = pool.fill_and_park()
    pool.fed.provider.behave('populate', 'fail')
    pool.approve(parked, clock)
    pool.fed.provider.behave('populate', 'succeed')
    pool.apply(domain, f'h10.{NAME} A')
    assert len(pool.there()) == 21, 'eleven are not the ten that were approved'
    assert pool.parked(domain).deletes == 11
    assert pool.state_of(parked) is PlanState.DROPPED


@two_of_three
def test_an_approval_holds_when_only_the_serial_has_moved_since(pool: FedPool, clock: Clock) -> None:
    domain, parked = pool.fill_and_park()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'email': 'other@example.com'})
    pool.deliver()
    later(pool, clock, 400)
    assert changed.serial != domain.serial and pool.live(domain) == parked
    pool.approve(parked, clock)
    assert is_settled(pool, domain) and pool.served_serial() == changed.serial, pool.row(domain).last_error
    assert pool.state_of(parked) is PlanState.APPLIED


@two_of_three
def test_a_parked_plan_that_is_no_longer_needed_is_dropped(pool: FedPool, clock: Clock) -> None:
    domain, parked = pool.fill_and_park()
    pool.apply(domain, *(f'h{number}.{NAME} A 192.0.2.{number}' for number in range(10)))
    later(pool, clock, 0)
    assert is_settled(pool, domain)
    assert pool.live(domain) is None
    assert pool.state_of(parked) is PlanState.DROPPED


def test_deletes_of_an_hour_are_limited_across_the_pool(pool: FedPool, clock: Clock) -> None:
    limit_deletes(pool, 3)
    domain = pool.fill()
    pool.apply(domain, f'h1.{NAME} A', f'h2.{NAME} A')
    assert is_settled(pool, domain)
    pool.apply(domain, f'h3.{NAME} A', f'h4.{NAME} A')
    parked = pool.parked(domain)
    assert '2 deletes, after 2 in the last hour, exceed the limit of 3' in str(parked.why)
    later(pool, clock, 3601)
    assert is_settled(pool, domain)


def policy_of(pool: FedPool, policy: str) -> Domain:
    domain = pool.fill(3)
    pool.refit(policy=policy)
    return domain


@two_of_three
def test_what_the_policy_keeps_back_is_told_and_never_done_and_the_rest_is(pool: FedPool) -> None:
    domain = policy_of(pool, 'upsert-only')
    before = pool.there()
    pool.apply(domain, f'h1.{NAME} A', f'n.{NAME} A 192.0.2.7')
    assert pool.there() == [*before, f'n.{NAME} 3600 A 192.0.2.7']
    row = pool.row(domain)
    assert row.status is Outcome.ERROR and 'Delete h1' in str(row.last_error) and 'upsert-only' in str(row.last_error)
    assert pool.get(domain).status is Status.ACTIVE, 'the other two have it'


def test_a_zone_is_not_made_where_the_policy_forbids_it(pool: FedPool) -> None:
    pool.refit(policy='update-only')
    domain = pool.create()
    assert pool.fed.provider.zone(NAME) is None
    assert pool.get(domain).status is Status.ERROR
    assert 'the policy update-only does not allow create' in str(pool.row(domain, Action.CREATE).last_error)


def test_a_domain_is_not_deleted_where_the_policy_forbids_it(pool: FedPool) -> None:
    domain = policy_of(pool, 'upsert-only')
    pool.delete(domain)
    assert pool.fed.provider.zone(NAME) is not None
    assert pool.get(domain).status is Status.ERROR
    assert 'forbids deleting example.com.' in str(pool.row(domain, Action.DELETE).last_error)


def foreign(pool: FedPool, *records: Sequence[Any]) -> None:
    """Somebody else has put records into the zone there."""
    zone = pool.fed.provider.zone(NAME) or Zone(NAME)
    for name, rtype, data in records:
        zone.add_record(rrset(f'{name}.{NAME}', rtype, 60, [data]), replace=True)
    pool.fed.provider.put(zone)


@pytest.mark.parametrize('ownership', ['database', 'txt'])
def test_a_zone_that_is_shared(pool: FedPool, clock: Clock, ownership: str) -> None:
    with pytest.raises(InvalidField, match='policy'):
        pool.refit(ownership=ownership)
    domain = pool.share(ownership, f'ours.{NAME} A 192.0.2.1')
    assert is_settled(pool, domain)
    foreign(pool, ('theirs', 'A', '198.51.100.1'), ('both', 'A', '198.51.100.2'))
    domain = pool.apply(domain, f'ours.{NAME} A 192.0.2.2', f'more.{NAME} A 192.0.2.3')
    assert is_settled(pool, domain), pool.row(domain).last_error
    lines = pool.there()
    assert f'ours.{NAME} 3600 A 192.0.2.2' in lines and f'theirs.{NAME} 60 A 198.51.100.1' in lines

    pool.apply(domain, f'both.{NAME} A 192.0.2.4')
    assert f'both.{NAME} 60 A 198.51.100.2' in pool.there()
    assert f'Update both.{NAME}' in str(pool.row(domain).last_error)

    pool.apply(domain, f'both.{NAME} A', f'ours.{NAME} A')
    later(pool, clock, 0)
    assert is_settled(pool, domain)
    assert [line for line in pool.there() if line.startswith(('ours', 'both', 'theirs'))] == [
        f'both.{NAME} 60 A 198.51.100.2', f'theirs.{NAME} 60 A 198.51.100.1']


def meddle(provider: FakeProvider, meddler: Callable[[Zone], None]) -> None:
    """Let *meddler* change the zone, as somebody else would, right before the next plan is applied."""
    apply = provider._apply

    def meddled(plan: Plan) -> ApplyResult | None:
        vars(provider)['_apply'] = apply
        meddler(provider._zones[plan.zone])
        return apply(plan)

    vars(provider)['_apply'] = meddled


@pytest.mark.parametrize('ownership', ['database', 'txt'])
def test_what_others_create_while_a_plan_is_applied_stays_theirs(pool: FedPool, clock: Clock, ownership: str) -> None:
    domain = pool.share(ownership, f'ours.{NAME} A 192.0.2.1')
    theirs = rrset(f'both.{NAME}', 'A', 60, ['198.51.100.2'])
    meddle(pool.fed.provider, lambda zone: zone.add_record(theirs))
    pool.apply(domain, f'both.{NAME} A 192.0.2.4', f'more.{NAME} A 192.0.2.3')
    for seconds in (10, 400):
        later(pool, clock, seconds)
        assert f'more.{NAME} 3600 A 192.0.2.3' in pool.there()
        assert str(theirs) in pool.there(), 'it was overwritten'
    assert f'Update both.{NAME}' in str(pool.row(domain).last_error)
    pool.delete(domain)
    assert str(theirs) in pool.there()


def test_the_mark_of_what_others_create_while_a_plan_is_applied_stays(pool: FedPool) -> None:
    domain = pool.share('txt', f'ours.{NAME} A 192.0.2.1')
    theirs = [rrset(f'both.{NAME}', 'A', 60, ['198.51.100.2']),
              rrset(f'a-both.{NAME}', 'TXT', 60, ['"heritage=external-dns,external-dns/owner=other"'])]

    def add_theirs(zone: Zone) -> None:
        for each in theirs:
            zone.add_record(each)

    meddle(pool.fed.provider, add_theirs)
    pool.apply(domain, f'both.{NAME} A 192.0.2.4', f'more.{NAME} A 192.0.2.3')
    assert {*map(str, theirs)} <= {*pool.there()}


def test_what_others_create_after_the_server_has_refused_ours_is_theirs(pool: FedPool, clock: Clock) -> None:
    pool.refit(ownership='database', policy='sync')
    domain = pool.create()
    pool.fed.provider.behave('apply', 'refuse')
    pool.apply(domain, f'both.{NAME} A 192.0.2.4')
    foreign(pool, ('both', 'A', '198.51.100.2'))
    pool.fed.provider.behave('apply', 'succeed')
    later(pool, clock, 4000)
    assert f'both.{NAME} 60 A 198.51.100.2' in pool.there(), 'it was overwritten'
    assert f'Update both.{NAME}' in str(pool.row(domain).last_error)


def test_what_is_shown_late_and_refused_a_second_time_stays_ours(
        pool: FedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FedServer, 'capabilities', Octodns.capabilities)
    domain = pool.share('database', f'ours.{NAME} A 192.0.2.1')
    provider, populate = pool.fed.provider, pool.fed.provider._populate

    def populate_late(zone: Zone, target: bool, lenient: bool) -> bool:
        is_there = populate(zone, target, lenient)
        for record in [record for record in zone if record.name == f'late.{NAME}']:
            zone.remove_record(record)
        return is_there

    vars(provider)['_populate'] = populate_late
    pool.apply(domain, f'late.{NAME} A 192.0.2.2')
    assert 'the zone read back still needs 1' in str(pool.row(domain).last_error)
    provider.behave('apply', 'refuse')  # it is there already
    later(pool, clock, 400)
    assert 'refuses' in str(pool.row(domain).last_error)
    del vars(provider)['_populate']
    provider.behave('apply', 'succeed')
    pool.apply(domain, f'late.{NAME} A 192.0.2.3')
    later(pool, clock, 4000)
    assert f'late.{NAME} 3600 A 192.0.2.3' in pool.there(), pool.row(domain).last_error


def test_what_is_shown_late_of_a_plan_that_failed_is_not_others(
        pool: FedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """One record is created, another one fails; it is shown after it was deleted from the pool's zone."""
    monkeypatch.setattr(FedServer, 'capabilities', Octodns.capabilities)
    domain = pool.share('database', f'ours.{NAME} A 192.0.2.1')
    meddle(pool.fed.provider, lambda zone: zone.add_record(rrset(f'both.{NAME}', 'A', 60, ['198.51.100.2'])))
    apply = pool.fed.provider._apply

    def apply_late(plan: Plan) -> ApplyResult | None:
        result = apply(plan)
        zone = pool.fed.provider._zones[NAME]
        zone.remove_record(zone[f'late.{NAME}\tA'])
        return result

    vars(pool.fed.provider)['_apply'] = apply_late
    pool.apply(domain, f'both.{NAME} A 192.0.2.4', f'late.{NAME} A 192.0.2.2')
    assert '1 failed' in str(pool.row(domain).last_error)
    pool.apply(domain, f'both.{NAME} A', f'late.{NAME} A')
    later(pool, clock, 0)
    assert is_settled(pool, domain), pool.row(domain).last_error
    foreign(pool, ('late', 'A', '192.0.2.2'))
    pool.apply(domain, f'more.{NAME} A 192.0.2.3')
    assert not [line for line in pool.there() if line.startswith('late')], 'ours is deleted'
    foreign(pool, ('late', 'A', '192.0.2.2'))
    pool.apply(domain, f'more.{NAME} A 192.0.2.4')
    assert is_settled(pool, domain), pool.row(domain).last_error
    assert f'late.{NAME} 60 A 192.0.2.2' in pool.there(), 'whoever creates it after that owns it'


def test_what_was_created_recently_is_ours_with_its_data_alone_and_for_some_time() -> None:
    recent, now = RecentCreates(), utcnow()
    ours = rrset(f'late.{NAME}', 'A', 60, ['192.0.2.2'])
    for server, minutes in (('one', 0), ('two', 2), ('one', 4)):
        recent.note(server, NAME, now + timedelta(minutes=minutes), [ours] if minutes != 4 else [])
    for server, minutes, data, is_ours in (
            ('one', 9, '192.0.2.2', True), ('one', 9, '192.0.2.3', False), ('one', 10, '192.0.2.2', False),
            ('two', 11, '192.0.2.2', True), ('two', 12, '192.0.2.2', False), ('three', 0, '192.0.2.2', False)):
        zone = Zone(NAME)
        zone.add_record(ours._replace(rdatas=(data,)))
        assert bool(recent.shown(server, NAME, now + timedelta(minutes=minutes), zone)) is is_ours
    recent.note('three', NAME, now + timedelta(minutes=12), [ours])
    assert [server for server, _ in recent._created] == ['three'], 'what is old takes no memory'


@pytest.mark.parametrize('fails', ['in part', 'without an answer'])
def test_what_was_deleted_by_a_plan_that_failed_is_not_ours_any_more(pool: FedPool, clock: Clock, fails: str) -> None:
    domain = pool.share('database', f'gone.{NAME} A 192.0.2.1')
    provider = pool.fed.provider
    whole = provider._apply

    def unheard(plan: Plan) -> ApplyResult | None:
        vars(provider).pop('_apply')
        whole(plan)
        raise BackendUnreachable(why='no answer')

    if fails == 'in part':
        meddle(provider, lambda zone: zone.add_record(rrset(f'both.{NAME}', 'A', 60, ['198.51.100.2'])))
    else:
        vars(provider)['_apply'] = unheard
    pool.apply(domain, f'gone.{NAME} A', f'both.{NAME} A 192.0.2.4')
    if fails != 'in part':
        later(pool, clock, 3)
        assert is_settled(pool, domain), pool.row(domain).last_error
    foreign(pool, ('gone', 'A', '198.51.100.1'))
    pool.apply(domain, f'more.{NAME} A 192.0.2.3')
    later(pool, clock, 400)
    assert f'more.{NAME} 3600 A 192.0.2.3' in pool.there()
    assert f'gone.{NAME} 60 A 198.51.100.1' in pool.there(), "another's was deleted"


def test_what_the_server_cannot_hold_is_an_error_or_left_out(pool: FedPool) -> None:
    vars(pool.fed.provider)['SUPPORTS'] = frozenset({'A', 'NS'})
    domain = pool.apply(pool.create(), f't.{NAME} TXT "x"')
    assert f'it cannot hold t.{NAME} TXT' in str(pool.row(domain).last_error)
    pool.refit(lenient_supports=True)
    vars(pool.fed.provider)['SUPPORTS'] = frozenset({'A', 'NS'})
    pool.apply(domain, f'a.{NAME} A 192.0.2.1')
    assert is_settled(pool, domain)
    assert pool.there() == [f'a.{NAME} 3600 A 192.0.2.1', f'{NAME} 3600 NS ns1.example.org.']


def test_types_that_are_not_managed_are_left_alone_there(pool: FedPool) -> None:
    pool.refit(managed_types='a, mx')
    domain = pool.create()
    foreign(pool, ('theirs', 'TXT', '"x"'))
    pool.apply(domain, f'www.{NAME} A 192.0.2.1', f'ours.{NAME} TXT "y"')
    assert is_settled(pool, domain), pool.row(domain).last_error
    assert pool.there() == [f'theirs.{NAME} 60 TXT "x"', f'www.{NAME} 3600 A 192.0.2.1']
    pool.delete(domain)
    assert pool.get(domain).status is Status.DELETED
    assert pool.there() == [f'theirs.{NAME} 60 TXT "x"']
    with pytest.raises(InvalidField, match='managed_types.*NOTYPE'):
        pool.refit(managed_types='A, notype')


def test_drift_is_found_by_reading_again_and_mended(pool: FedPool, clock: Clock) -> None:
    domain = pool.apply(pool.create(), f'www.{NAME} A 192.0.2.1')
    foreign(pool, ('www', 'A', '198.51.100.66'), ('extra', 'A', '198.51.100.1'))
    sweep(pool, clock, 3000)
    assert f'www.{NAME} 60 A 198.51.100.66' in pool.there(), 'it is not time yet'
    sweep(pool, clock, 700)
    assert is_settled(pool, domain)
    assert pool.there() == [f'{NAME} 3600 NS ns1.example.org.', f'www.{NAME} 3600 A 192.0.2.1']
    calls = len(pool.fed.provider.calls)
    sweep(pool, clock, 60)
    assert len(pool.fed.provider.calls) == calls


def sweep(pool: FedPool, clock: Clock, seconds: float) -> None:
    clock.offset += timedelta(seconds=seconds)
    pool.sweep()
    pool.asked = [each for each in pool.asked if each.server_id != FED]
    pool.deliver()


def test_a_driver_whose_serials_say_nothing_is_not_polled(pool: FedPool, clock: Clock,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    pool.create()
    for keeps in (True, False):
        for driver in (Backend, RecordBackend):
            monkeypatch.setattr(driver, 'capabilities', dataclasses.replace(driver.capabilities, keeps_serial=keeps))
        pool.pages.clear()
        pool.sweep(answered=False)
        assert any(FED in server_ids for _, server_ids, _ in pool.pages) is keeps


def test_what_a_poll_says_of_a_server_that_counts_serials_of_its_own_means_nothing(
        pool: FedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FedServer, 'capabilities', dataclasses.replace(FedServer.capabilities, keeps_serial=False))
    domain = pool.create()
    for server, counts in ((FED, False), (SERVERS[0], True)):
        before = pool.rows(domain)[server, Action.UPDATE]
        pool.endpoint.update_statuses(CONTEXT, [PollResult(
            domain.id, server, Outcome.ERROR, Answer.BAD, 1, 'an old serial', domain.serial)])
        assert (pool.rows(domain)[server, Action.UPDATE] != before) is counts


def test_a_change_while_the_zone_is_made_there_is_brought_as_well(pool: FedPool) -> None:
    changed: list[Domain] = []

    def change_meanwhile(zone: Zone) -> None:
        domain = next(iter(pool.storage.read(domains.live_by_name, [NAME]).values()))
        changed.append(pool.central.apply_changes(CONTEXT, domain.id, [
            RecordChange(f'www.{NAME}', 'A', ('192.0.2.1',))]))

    meddle(pool.fed.provider, change_meanwhile)
    domain = pool.create()
    assert is_settled(pool, domain)
    assert pool.row(domain).serial_number == changed[0].serial
    assert f'www.{NAME} 3600 A 192.0.2.1' in pool.there()


@pytest.mark.parametrize('ownership', ['database', 'txt'])
def test_deleting_a_domain_leaves_what_others_have_in_a_shared_zone(pool: FedPool, clock: Clock,
                                                                    ownership: str) -> None:
    domain = pool.share(ownership, f'ours.{NAME} A 192.0.2.1')
    theirs = [('theirs', 'A', '198.51.100.1'), ('mail', 'MX', '10 mx.example.net.')]
    foreign(pool, *theirs)
    pool.delete(domain)
    assert pool.get(domain).status is Status.DELETED
    left = [line for line in pool.there() if 'TXT' not in line]
    assert left == [f'{NAME} 3600 NS ns1.example.org.', f'mail.{NAME} 60 MX 10 mx.example.net.',
                    f'theirs.{NAME} 60 A 198.51.100.1']
    assert pool.storage.read(rrset_ownership.keys, FED, domain.id) == ({f'{NAME}\tNS'} if ownership == 'database'
                                                                       else frozenset())

    # Made anew, what stayed because the zone needs it is still ours.
    domain = pool.apply(pool.create(), f'ours.{NAME} A 192.0.2.2')
    assert is_settled(pool, domain), pool.row(domain).last_error
    zone = pool.fed.provider.zone(NAME)
    for name, rtype, _ in theirs:
        zone.remove_record(zone.get(f'{name}.{NAME}', rtype))
    pool.fed.provider.put(zone)
    pool.delete(domain)
    assert pool.get(domain).status is Status.DELETED
    assert pool.fed.provider.zone(NAME) is None, 'nobody else has anything in it any more'


@pytest.mark.parametrize('ownership', ['database', 'txt'])
def test_a_zone_that_others_made_stays_when_the_domain_is_deleted(pool: FedPool, ownership: str) -> None:
    zone = Zone(NAME)
    zone.add_record(rrset(NAME, 'NS', 3600, ['ns1.example.org.']))
    zone.add_record(rrset(NAME, 'SOA', 300, ['ns.example.net. hostmaster.example.net. 1 3600 600 86400 300']))
    pool.fed.provider.put(zone)
    domain = pool.share(ownership, f'ours.{NAME} A 192.0.2.1')
    assert is_settled(pool, domain), pool.row(domain).last_error
    pool.delete(domain)
    assert pool.there() == [f'{NAME} 3600 NS ns1.example.org.']


def test_deleting_a_domain_keeps_within_the_deletes_of_an_hour(pool: FedPool, clock: Clock) -> None:
    limit_deletes(pool, 10)
    domain = pool.fill()
    pool.delete(domain)
    parked = pool.parked(domain)
    assert '21 deletes, after 0 in the last hour, exceed the limit of 10' in str(parked.why)
    assert parked.id in str(pool.row(domain, Action.DELETE).last_error)
    assert len(pool.there()) == 21
    pool.approve(parked, clock)
    assert pool.get(domain).status is Status.DELETED
    assert pool.fed.provider.zone(NAME) is None
    assert pool.state_of(parked) is PlanState.APPLIED


def limit_deletes(pool: FedPool, limit: int) -> None:
    record_sync: Any = pool.manager.record_sync
    record_sync._settings = dataclasses.replace(pool.manager.settings, max_deletes_per_hour=limit)


@pytest.mark.parametrize('ownership', ['database', 'txt', 'zone'])
def test_a_name_deleted_and_made_anew_at_once_serves_nothing_of_the_former(pool: FedPool, clock: Clock,
                                                                           ownership: str) -> None:
    former = pool.share(ownership, f'old.{NAME} A 192.0.2.66', f'www.{NAME} A 192.0.2.1')
    foreign(pool, *[('theirs', 'A', '198.51.100.1')] if ownership != 'zone' else [])
    pool.lose_casts = True
    gone = pool.central.delete_domain(CONTEXT, former.id)
    domain = pool.central.create_domain(CONTEXT, {'name': NAME, 'email': 'hostmaster@example.com'})
    pool.lose_casts = False
    pool.manager.queue_changes([gone.id, domain.id])
    pool.deliver()
    # A name that was there before, with other data.
    pool.apply(domain, f'www.{NAME} A 192.0.2.9')
    assert is_settled(pool, domain), pool.row(domain).last_error
    assert pool.get(gone).status is Status.DELETED
    hosts = pool.hosts()
    assert hosts == [f'theirs.{NAME} 60 A 198.51.100.1'] * (ownership != 'zone') + [f'www.{NAME} 3600 A 192.0.2.9']


def test_a_zone_that_comes_back_before_its_server_has_deleted_it_is_managed_again(pool: FedPool) -> None:
    domain = pool.share('database', f'old.{NAME} A 192.0.2.66', f'www.{NAME} A 192.0.2.1')
    silver = pool.central.create_pool(CONTEXT, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
    for name, key in (('default', FED), ('silver', new_id())):
        servers = [PoolServer(key, '', f'fake:{key}', 'fake', ServerState.ACTIVE)]
        pool.storage.run(pool_servers.register, name, servers, False, True, utcnow())
    pool.lose_casts = True
    moved = pool.central.move_domain(CONTEXT, domain.id, silver.id)
    pool.central.update_status(CONTEXT, moved, Outcome.SUCCESS, moved.serial)
    old, = pool.central.find_recordsets(CONTEXT, domain.id, PageRequest({'name': f'old.{NAME}'}))
    pool.central.delete_recordset(CONTEXT, domain.id, old.id)
    back = pool.central.move_domain(CONTEXT, domain.id, domain.pool_id)
    pool.lose_casts = False
    pool.manager.queue_changes([back.id])
    pool.deliver()
    assert is_settled(pool, domain), pool.row(domain).last_error
    assert pool.hosts() == [f'www.{NAME} 3600 A 192.0.2.1']


def test_a_server_is_drained_as_fast_as_the_deletes_of_an_hour_allow(pool: FedPool) -> None:
    domain = pool.fill()
    limit_deletes(pool, 10)
    failed, waiting = JoinAndDrain(pool.manager, cast(Any, None))._delete(pool.fed, [domain])
    assert (failed, waiting) == ([], {domain.id}) and len(pool.there()) == 21
    pool.central.approve_plan(CONTEXT, pool.parked(domain).id)
    failed, waiting = JoinAndDrain(pool.manager, cast(Any, None))._delete(pool.fed, [domain])
    assert (failed, waiting) == ([], set()) and pool.there() == []


@pytest.mark.parametrize(('options', 'left'), [
    ({'ownership': 'database', 'policy': 'sync'}, 3), ({'ownership': 'txt', 'policy': 'sync'}, 3),
    ({'managed_types': 'MX'}, 2), ({}, 0)])
def test_an_extra_zone_is_deleted_as_far_as_it_is_ours(pool: FedPool, options: dict[str, Any], left: int) -> None:
    pool.refit(**options)
    foreign(pool, ('theirs', 'A', '198.51.100.1'), ('more', 'A', '198.51.100.1'), ('more', 'MX', '0 mx.example.net.'))
    found = ServerCompare(pool.manager, pool.runtime).compare(FED, fix=False, delete_extra=1)
    assert (found.extra, found.deleted) == ((NAME,), 0 if left else 1)
    assert len(pool.there()) == left


def test_what_was_begun_and_never_ended_counts_until_it_is_tried_again(pool: FedPool, clock: Clock) -> None:  # noqa: E501
    limit_deletes(pool, 3)
    domain = pool.fill()
    pool.fed.provider.behave('apply', 'hang', 1)
    vars(pool.fed.provider)['timeout'] = 0.01
    pool.apply(domain, f'h1.{NAME} A', f'h2.{NAME} A')
    since = utcnow() - timedelta(hours=1)
    assert pool.storage.read(plans.deletes_since, 'default', since) == 2
    later(pool, clock, 2.1)
    assert is_settled(pool, domain), pool.row(domain).last_error
    assert pool.storage.read(plans.deletes_since, 'default', since) == 2, 'the same two, once'


def test_extra_zones_that_were_begun_count_each_until_they_are_tried_again(pool: FedPool) -> None:
    """A server that deletes and does not answer in time must not have more deleted than the limit."""
    limit_deletes(pool, 3)
    for name in ('a.example.', 'b.example.', 'c.example.'):
        zone = Zone(name)
        for host in ('one', 'two'):
            zone.add_record(rrset(f'{host}.{name}', 'A', 60, ['192.0.2.1']))
        pool.fed.provider.put(zone)
    delete_whole = pool.fed.provider.delete_zone

    def late(name: str) -> None:
        delete_whole(name)
        raise BackendUnreachable(why='no answer')

    vars(pool.fed.provider)['delete_zone'] = late
    for _ in range(3):
        ServerCompare(pool.manager, pool.runtime).compare(
            FED, fix=False, delete_extra=len(pool.fed.provider.list_zones()))
    assert len(pool.fed.provider.list_zones()) == 2, 'two and two are more than three'


def another_goes_on(pool: FedPool, clock: Clock, domain: Domain, address: str) -> Domain:
    """The claim runs out, and another pool manager brings the next change while the first is still at it."""
    other = pool.new_manager('two')
    pool.lose_casts = True
    changed = pool.central.apply_changes(CONTEXT, domain.id, [RecordChange(f'www.{NAME}', 'A', (address,))])
    pool.lose_casts = False
    clock.offset += timedelta(seconds=31)
    other.queue_changes([domain.id])
    assert pool.fed.provider.zone(NAME).get(f'www.{NAME}', 'A').rdatas == (address,)
    return changed


def test_who_was_too_slow_writes_nothing_any_more(pool: FedPool, clock: Clock) -> None:
    domain = pool.apply(pool.create(), f'www.{NAME} A 192.0.2.1')
    provider, changed = pool.fed.provider, []
    plan_here = provider.plan

    def slow(*args: Any, **options: Any) -> Plan | None:
        found = plan_here(*args, **options)
        if not changed:
            changed.append(domain)
            changed.append(another_goes_on(pool, clock, domain, '192.0.2.3'))
            provider.calls.clear()
        return found

    vars(provider)['plan'] = slow
    pool.apply(domain, f'www.{NAME} A 192.0.2.2')
    assert f'www.{NAME} 3600 A 192.0.2.3' in pool.there()
    assert 'apply' not in provider.calls
    later(pool, clock, 3)
    assert is_settled(pool, domain) and pool.served_serial() == changed[1].serial


@pytest.mark.parametrize('fails', [True, False])
def test_what_is_written_too_late_is_not_left_standing(pool: FedPool, clock: Clock, fails: bool) -> None:
    """A server that cannot be told what has to be there before takes the older contents over the newer."""
    domain = pool.apply(pool.create(), f'www.{NAME} A 192.0.2.1')
    provider, changed = pool.fed.provider, []

    def late(plan: Plan) -> ApplyResult | None:
        first = not changed
        if first:
            changed.append(domain)
            changed.append(another_goes_on(pool, clock, domain, '192.0.2.3'))
        provider.put(plan.desired)
        if first and fails:
            raise BackendUnreachable(why='no answer')
        return None

    vars(provider)['_apply'] = late
    pool.apply(domain, f'www.{NAME} A 192.0.2.2')
    assert f'www.{NAME} 3600 A 192.0.2.3' in pool.there()
    later(pool, clock, 3)
    assert is_settled(pool, domain) and pool.served_serial() == changed[1].serial


@pytest.mark.parametrize('anew', [False, True], ids=['deleted', 'created again as a secondary zone'])
def test_what_is_written_after_the_domain_was_deleted_goes_again(
        pool: FedPool, clock: Clock, anew: bool) -> None:
    domain = pool.apply(pool.create(), f'www.{NAME} A 192.0.2.1')
    provider, done = pool.fed.provider, []

    def late(plan: Plan) -> ApplyResult | None:
        if not done:
            done.append(plan)
            other = pool.new_manager('two')
            pool.lose_casts = True
            pool.central.delete_domain(CONTEXT, domain.id)
            pool.lose_casts = False
            clock.offset += timedelta(seconds=31)
            other.queue_changes([domain.id])
            assert provider.zone(NAME) is None
            if anew:
                pool.create_secondary()
        provider.put(plan.desired)
        return None

    vars(provider)['_apply'] = late
    pool.apply(domain, f'www.{NAME} A 192.0.2.2')
    assert done and provider.zone(NAME) is None


def test_what_a_server_had_before_it_lost_the_zone_stays_ours_when_it_is_back(pool: FedPool, clock: Clock) -> None:
    pool.refit(ownership='database', policy='sync')
    provider = pool.fed.provider
    domain = pool.apply(pool.create(), f'old.{NAME} A 192.0.2.1', f'www.{NAME} A 192.0.2.2')
    zone = provider.zone(NAME)
    assert zone is not None
    provider.makes_zones = False  # as by RFC 2136
    provider.delete_zone(NAME)
    pool.apply(domain, f'new.{NAME} A 192.0.2.3')
    assert 'does not have the zone' in str(pool.row(domain).last_error)
    zone.add_record(rrset(f'new.{NAME}', 'A', 60, ['198.51.100.1']))  # by another program
    provider.put(zone)
    pool.apply(domain, f'old.{NAME} A', f'www.{NAME} A 192.0.2.4')
    later(pool, clock, 4000)
    assert pool.hosts() == [
        f'new.{NAME} 60 A 198.51.100.1', f'www.{NAME} 3600 A 192.0.2.4']
    assert f'Update new.{NAME}' in str(pool.row(domain).last_error)


def test_what_a_former_domain_had_is_deleted_though_a_secondary_one_waits_for_its_master(
        pool: FedPool, clock: Clock) -> None:
    domain = pool.share('database', f'www.{NAME} A 192.0.2.1')
    pool.fed.provider.behave('populate', 'unreachable')
    pool.delete(domain)
    pool.create_secondary()
    pool.deliver()
    pool.fed.provider.behave('populate', 'succeed')
    for seconds in (3, 400):
        later(pool, clock, seconds)
    assert pool.there() == []


def test_a_secondary_domain_owns_what_is_left_of_a_former_one_from_its_first_transfer_on(
        pool: FedPool) -> None:
    domain = pool.share('database', f'www.{NAME} A 192.0.2.1')
    keys = pool.storage.read(rrset_ownership.keys, FED, domain.id)
    pool.fed.provider.behave('populate', 'unreachable')
    pool.delete(domain)
    secondary = pool.create_secondary()
    assert pool.storage.read(rrset_ownership.keys, FED, secondary.id) == frozenset()
    pool.transfer(4_000_000_000)
    assert pool.storage.read(rrset_ownership.keys, FED, secondary.id) == keys
    assert f'www.{NAME}\tA' in keys
