"""A server that is fed by records beside two that transfer: one threshold, plans that are parked, whatever fails.

Everything is real but for the servers: the one that is fed is a provider in memory that does as the test says.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest

from designate_pool.backends.base import Backend
from designate_pool.backends.records.base import RecordBackend
from designate_pool.central.purger import Purger
from designate_pool.errors import BackendUnreachable, InvalidField
from designate_pool.model import (Action, Answer, Domain, Outcome, PlanState, PollResult, RecordChange, Server,
                                  ServerStatus, Status, StoredPlan, utcnow)
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.targets.fake import FakeProvider
from designate_pool.planner.zone.zone import Zone
from designate_pool.pool_manager.dispatch import record_sync
from designate_pool.pool_manager.periodic.join_and_drain import JoinAndDrain
from designate_pool.pool_manager.verify.server_compare import ServerCompare
from designate_pool.protocol.rrset import rrset
from designate_pool.storage.operations import rrset_ownership, server_statuses
from designate_pool.storage.zones import domains, plans
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, Clock, World, later

FED = SERVERS[2]
NAME = 'example.com.'


class FedServer(RecordBackend):
    """Fed by records, in memory."""

    provider: FakeProvider

    def _new_provider(self) -> FakeProvider:
        return FakeProvider('fed')

    # What the world of the other tests asks of a server.
    zones: dict[str, int | None] = {}


class FedWorld(World):
    """Two servers that transfer and one that is fed.

    :ivar fed: the latter
    """

    options: dict[str, Any] = {}

    def __init__(self, folder: pathlib.Path, threshold: int, clock: Clock) -> None:
        super().__init__(folder, threshold, clock)
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

    def live(self, domain: Domain) -> StoredPlan | None:
        return self.storage.read(plans.live, domain.id, FED, utcnow())


@pytest.fixture(params=[100])
def world(tmp_path: pathlib.Path, clock: Clock, request: pytest.FixtureRequest) -> Iterator[FedWorld]:
    made = FedWorld(tmp_path, request.param, clock)
    yield made
    made.storage.close()


two_of_three = pytest.mark.parametrize('world', [66], indirect=True)


def is_settled(world: FedWorld, domain: Domain) -> bool:
    return world.get(domain).status is Status.ACTIVE and world.row(domain).status is Outcome.SUCCESS


def test_create_change_and_delete(world: FedWorld) -> None:
    domain = world.create()
    assert is_settled(world, domain)
    assert world.there() == [f'{NAME} 3600 NS ns1.example.org.']
    assert world.served_serial() == domain.serial

    changed = world.apply(domain, f'www.{NAME} A 192.0.2.1, 192.0.2.2', f'a.{NAME} CNAME www.{NAME}')
    assert is_settled(world, domain)
    assert world.there() == [f'a.{NAME} 3600 CNAME www.{NAME}', f'{NAME} 3600 NS ns1.example.org.',
                             f'www.{NAME} 3600 A 192.0.2.1, 192.0.2.2']
    assert (world.served_serial(), world.get(domain).reported_serial) == (changed.serial, changed.serial)

    world.delete(domain)
    assert world.get(domain).status is Status.DELETED
    assert world.fed.provider.zone(NAME) is None


def test_the_same_cast_once_more_reads_nothing(world: FedWorld) -> None:
    domain = world.create()
    calls = len(world.fed.provider.calls)
    world.endpoint.create_domain(CONTEXT, domain)
    assert len(world.fed.provider.calls) == calls


def test_it_counts_only_when_what_was_applied_is_read_back(world: FedWorld, clock: Clock) -> None:
    domain = world.create()
    world.fed.provider.behave('apply', 'lie')
    changed = world.apply(domain, f'www.{NAME} A 192.0.2.1')
    assert world.get(domain).status is Status.PENDING
    assert 'it said yes to all, and 2 changes are still to be made' in (world.row(domain).last_error or '')
    world.fed.provider.behave('apply', 'succeed')
    later(world, clock, 2.1)
    assert is_settled(world, domain) and world.row(domain).serial_number == changed.serial


@two_of_three
def test_one_that_is_down_costs_the_others_nothing_and_gets_it_when_it_is_back(
        world: FedWorld, clock: Clock) -> None:
    domain = world.create()
    for operation in ('populate', 'ping'):
        world.fed.provider.behave(operation, 'unreachable')
    changed = world.apply(domain, f'www.{NAME} A 192.0.2.1')
    assert world.get(domain).status is Status.ACTIVE
    assert world.row(domain).serial_number == domain.serial
    for _ in range(4):
        later(world, clock, 2.1)
    assert world.manager.workers[FED].control.is_open
    assert world.row(domain).status is Outcome.ERROR
    for operation in ('populate', 'ping'):
        world.fed.provider.behave(operation, 'succeed')
    later(world, clock, 3)
    assert is_settled(world, domain) and world.served_serial() == changed.serial


@pytest.mark.parametrize('step', range(6))
def test_interrupted_at_every_step_then_again(world: FedWorld, clock: Clock, step: int) -> None:
    domain = world.apply(world.create(), f'c.{NAME} CNAME x.{NAME}', f'd.{NAME} A 192.0.2.1', f'u.{NAME} A 192.0.2.1',
                         *(f'h{number}.{NAME} A 192.0.2.9' for number in range(9)))
    world.fed.provider.fail_after = step
    changed = world.apply(domain, f'c.{NAME} A 192.0.2.1', f'c.{NAME} CNAME', f'd.{NAME} A', f'u.{NAME} A 192.0.2.2',
                          f'n.{NAME} A 192.0.2.1')
    done = step > 4  # delete, replace, two updates (one is the SOA's), create
    assert (world.row(domain).status is Outcome.SUCCESS) is done
    if not done:
        assert f'{step} of 5 changes were made' in (world.row(domain).last_error or '')
    world.fed.provider.fail_after = None
    later(world, clock, 2.1)
    assert is_settled(world, domain) and world.served_serial() == changed.serial
    assert [line for line in world.there() if line.startswith(('c.', 'd.', 'n.', 'u.'))] == [
        f'c.{NAME} 3600 A 192.0.2.1', f'n.{NAME} 3600 A 192.0.2.1', f'u.{NAME} 3600 A 192.0.2.2']


@two_of_three
def test_a_dangerous_plan_is_parked_while_the_others_go_on(world: FedWorld, clock: Clock) -> None:
    domain = world.fill()
    before = world.there()
    changed = world.apply(domain, *(f'h{number}.{NAME} A' for number in range(10)))
    assert world.get(domain).status is Status.ACTIVE
    assert world.there() == before
    parked = world.live(domain)
    assert parked is not None and parked.state is PlanState.PARKED
    assert (parked.deletes, parked.zone) == (10, NAME)
    row = world.row(domain)
    assert row.status is Outcome.ERROR
    assert parked.id in (row.last_error or '') and '10 of 21 RRsets would be deleted, over 30 %' in str(row.last_error)

    later(world, clock, 400)
    assert world.live(domain) == parked, 'looked at again, it is the same plan'

    world.central.approve_plan(CONTEXT, parked.id)
    later(world, clock, 0)
    assert is_settled(world, domain) and world.row(domain).serial_number == changed.serial
    assert len(world.there()) == 11
    assert world.storage.read(plans.get, parked.id).state is PlanState.APPLIED
    assert world.storage.read(plans.deletes_since, 'default', utcnow() - timedelta(hours=1)) == 10
    assert world.live(domain) is None


@two_of_three
def test_an_approved_plan_that_was_interrupted_is_finished(world: FedWorld, clock: Clock) -> None:
    domain = world.fill()
    world.apply(domain, *(f'h{number}.{NAME} A' for number in range(10)))
    parked = world.live(domain)
    assert parked is not None
    world.fed.provider.fail_after = 2
    world.central.approve_plan(CONTEXT, parked.id)
    later(world, clock, 0)
    assert len(world.there()) == 19
    world.fed.provider.fail_after = None
    later(world, clock, 400)
    assert is_settled(world, domain) and len(world.there()) == 11
    assert world.storage.read(plans.get, parked.id).state is PlanState.APPLIED


@two_of_three
def test_an_approval_is_for_that_plan_only(world: FedWorld, clock: Clock) -> None:
    domain = world.fill()
    world.apply(domain, *(f'h{number}.{NAME} A' for number in range(10)))
    parked = world.live(domain)
    assert parked is not None
    world.fed.provider.behave('populate', 'fail')
    world.central.approve_plan(CONTEXT, parked.id)
    later(world, clock, 0)
    world.fed.provider.behave('populate', 'succeed')
    world.apply(domain, f'h10.{NAME} A')
    assert len(world.there()) == 21, 'eleven are not the ten that were approved'
    second = world.live(domain)
    assert second is not None and (second.state, second.deletes) == (PlanState.PARKED, 11)
    assert world.storage.read(plans.get, parked.id).state is PlanState.DROPPED


@two_of_three
def test_a_parked_plan_that_is_no_longer_needed_is_dropped(world: FedWorld, clock: Clock) -> None:
    domain = world.fill()
    world.apply(domain, *(f'h{number}.{NAME} A' for number in range(10)))
    parked = world.live(domain)
    assert parked is not None
    world.apply(domain, *(f'h{number}.{NAME} A 192.0.2.{number}' for number in range(10)))
    later(world, clock, 0)
    assert is_settled(world, domain)
    assert world.live(domain) is None
    assert world.storage.read(plans.get, parked.id).state is PlanState.DROPPED


def test_deletes_of_an_hour_are_limited_across_the_pool(world: FedWorld, clock: Clock,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    limit_deletes(world, 3)
    domain = world.fill()
    world.apply(domain, f'h1.{NAME} A', f'h2.{NAME} A')
    assert is_settled(world, domain)
    world.apply(domain, f'h3.{NAME} A', f'h4.{NAME} A')
    parked = world.live(domain)
    assert parked is not None and '2 deletes after 2 in the last hour are more than 3' in str(parked.why)
    monkeypatch.setattr(record_sync, 'utcnow', lambda: utcnow() + timedelta(hours=1, seconds=1))
    later(world, clock, 400)
    assert is_settled(world, domain)


def policy_of(world: FedWorld, policy: str) -> Domain:
    domain = world.fill(3)
    world.refit(policy=policy)
    return domain


@two_of_three
@pytest.mark.parametrize(('policy', 'change', 'kept'), [
    ('upsert-only', f'h1.{NAME} A', 'Delete h1'),
    ('create-only', f'h1.{NAME} A 192.0.2.99', 'Update h1'),
    ('create+update', f'h1.{NAME} A', 'Delete h1'),
])
def test_what_the_policy_keeps_back_is_told_and_never_done(world: FedWorld, policy: str, change: str,
                                                           kept: str) -> None:
    domain = policy_of(world, policy)
    before = world.there()
    world.apply(domain, change)
    assert world.there() == before
    row = world.row(domain)
    assert row.status is Outcome.ERROR and kept in str(row.last_error) and policy in str(row.last_error)
    assert world.get(domain).status is Status.ACTIVE, 'the other two have it'


@two_of_three
def test_what_the_policy_allows_is_done_beside_what_it_keeps_back(world: FedWorld) -> None:
    domain = policy_of(world, 'upsert-only')
    world.apply(domain, f'h1.{NAME} A', f'n.{NAME} A 192.0.2.7')
    assert f'n.{NAME} 3600 A 192.0.2.7' in world.there()
    assert world.row(domain).status is Outcome.ERROR


def test_a_zone_is_not_made_where_the_policy_forbids_it(world: FedWorld) -> None:
    world.refit(policy='update-only')
    domain = world.create()
    assert world.fed.provider.zone(NAME) is None
    assert world.get(domain).status is Status.ERROR
    assert 'the policy update-only does not allow create' in str(world.row(domain, Action.CREATE).last_error)


def test_a_domain_is_not_deleted_where_the_policy_forbids_it(world: FedWorld) -> None:
    domain = policy_of(world, 'upsert-only')
    world.delete(domain)
    assert world.fed.provider.zone(NAME) is not None
    assert world.get(domain).status is Status.ERROR
    assert 'does not let example.com. be deleted' in str(world.row(domain, Action.DELETE).last_error)


def foreign(world: FedWorld, *records: Sequence[Any]) -> None:
    """Somebody else has put records into the zone there."""
    zone = world.fed.provider.zone(NAME) or Zone(NAME)
    for name, rtype, data in records:
        zone.add_record(rrset(f'{name}.{NAME}', rtype, 60, [data]), replace=True)
    world.fed.provider.put(zone)


@pytest.mark.parametrize('ownership', ['database', 'txt'])
def test_a_zone_that_is_shared(world: FedWorld, clock: Clock, ownership: str) -> None:
    with pytest.raises(InvalidField, match='policy'):
        world.refit(ownership=ownership)
    world.refit(ownership=ownership, policy='sync')
    domain = world.apply(world.create(), f'ours.{NAME} A 192.0.2.1')
    assert is_settled(world, domain)
    foreign(world, ('theirs', 'A', '198.51.100.1'), ('both', 'A', '198.51.100.2'))
    domain = world.apply(domain, f'ours.{NAME} A 192.0.2.2', f'more.{NAME} A 192.0.2.3')
    assert is_settled(world, domain), world.row(domain).last_error
    lines = world.there()
    assert f'ours.{NAME} 3600 A 192.0.2.2' in lines and f'theirs.{NAME} 60 A 198.51.100.1' in lines

    world.apply(domain, f'both.{NAME} A 192.0.2.4')
    assert f'both.{NAME} 60 A 198.51.100.2' in world.there()
    assert f'Update both.{NAME}' in str(world.row(domain).last_error)

    world.apply(domain, f'both.{NAME} A', f'ours.{NAME} A')
    later(world, clock, 0)
    assert is_settled(world, domain)
    assert [line for line in world.there() if line.startswith(('ours', 'both', 'theirs'))] == [
        f'both.{NAME} 60 A 198.51.100.2', f'theirs.{NAME} 60 A 198.51.100.1']


def test_what_the_server_cannot_hold_is_an_error_or_left_out(world: FedWorld) -> None:
    vars(world.fed.provider)['SUPPORTS'] = frozenset({'A', 'NS'})
    domain = world.apply(world.create(), f't.{NAME} TXT "x"')
    assert f'it cannot hold t.{NAME} TXT' in str(world.row(domain).last_error)
    world.refit(lenient_supports=True)
    vars(world.fed.provider)['SUPPORTS'] = frozenset({'A', 'NS'})
    world.apply(domain, f'a.{NAME} A 192.0.2.1')
    assert is_settled(world, domain)
    assert world.there() == [f'a.{NAME} 3600 A 192.0.2.1', f'{NAME} 3600 NS ns1.example.org.']


def test_types_that_are_not_managed_are_left_alone_there(world: FedWorld) -> None:
    world.refit(managed_types='a, mx')
    domain = world.create()
    foreign(world, ('theirs', 'TXT', '"x"'))
    world.apply(domain, f'www.{NAME} A 192.0.2.1', f'ours.{NAME} TXT "y"')
    assert is_settled(world, domain), world.row(domain).last_error
    assert world.there() == [f'theirs.{NAME} 60 TXT "x"', f'www.{NAME} 3600 A 192.0.2.1']
    with pytest.raises(InvalidField, match='managed_types.*NOTYPE'):
        world.refit(managed_types='A, notype')


def test_drift_is_found_by_reading_again_and_mended(world: FedWorld, clock: Clock) -> None:
    domain = world.apply(world.create(), f'www.{NAME} A 192.0.2.1')
    foreign(world, ('www', 'A', '198.51.100.66'), ('extra', 'A', '198.51.100.1'))
    sweep(world, clock, 3000)
    assert f'www.{NAME} 60 A 198.51.100.66' in world.there(), 'it is not time yet'
    sweep(world, clock, 700)
    assert is_settled(world, domain)
    assert world.there() == [f'{NAME} 3600 NS ns1.example.org.', f'www.{NAME} 3600 A 192.0.2.1']
    calls = len(world.fed.provider.calls)
    sweep(world, clock, 60)
    assert len(world.fed.provider.calls) == calls


def sweep(world: FedWorld, clock: Clock, seconds: float) -> None:
    clock.offset += timedelta(seconds=seconds)
    world.sweep()
    world.asked = [each for each in world.asked if each.server_id != FED]
    world.deliver()


def test_a_driver_whose_serials_say_nothing_is_not_polled(world: FedWorld, clock: Clock,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    world.create()
    for keeps in (True, False):
        for driver in (Backend, RecordBackend):
            monkeypatch.setattr(driver, 'capabilities', dataclasses.replace(driver.capabilities, keeps_serial=keeps))
        world.pages.clear()
        world.sweep(answered=False)
        assert any(FED in server_ids for _, server_ids, _ in world.pages) is keeps


def test_what_a_poll_says_of_a_server_that_counts_serials_of_its_own_means_nothing(
        world: FedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FedServer, 'capabilities', dataclasses.replace(FedServer.capabilities, keeps_serial=False))
    domain = world.create()
    for server, counts in ((FED, False), (SERVERS[0], True)):
        before = world.rows(domain)[server, Action.UPDATE]
        world.endpoint.update_statuses(CONTEXT, [PollResult(
            domain.id, server, Outcome.ERROR, Answer.BAD, 1, 'an old serial', domain.serial)])
        assert (world.rows(domain)[server, Action.UPDATE] != before) is counts


def test_a_row_that_was_claimed_by_one_that_died_is_taken_by_the_next(world: FedWorld, clock: Clock) -> None:  # noqa: E501
    domain = world.create()
    row = world.row(domain)
    taken = dataclasses.replace(row, claimed_by='dead', claimed_until=utcnow() + timedelta(seconds=30),
                                next_attempt_at=utcnow(), version=row.version + 1)
    world.storage.run(server_statuses.write, [taken], utcnow())
    foreign(world, ('extra', 'A', '198.51.100.1'))
    later(world, clock, 10)
    assert len(world.there()) == 2
    later(world, clock, 25)
    assert is_settled(world, domain) and len(world.there()) == 1


def test_a_change_while_the_zone_is_made_there_is_brought_as_well(world: FedWorld) -> None:
    changed: list[Domain] = []

    def change_meanwhile(zone: Zone) -> None:
        domain = next(iter(world.storage.read(domains.live_by_name, [NAME]).values()))
        changed.append(world.central.apply_changes(CONTEXT, domain.id, [
            RecordChange(f'www.{NAME}', 'A', ('192.0.2.1',))]))

    world.fed.provider.meddle(change_meanwhile)
    domain = world.create()
    assert is_settled(world, domain)
    assert world.row(domain).serial_number == changed[0].serial
    assert f'www.{NAME} 3600 A 192.0.2.1' in world.there()


def test_a_zone_that_was_made_there_by_hand_is_taken_over(world: FedWorld) -> None:
    zone = Zone(NAME)
    zone.add_record(rrset(NAME, 'NS', 300, ['ns.example.net.']))
    zone.add_record(rrset(NAME, 'SOA', 300, ['ns.example.net. hostmaster.example.net. 1 3600 600 86400 300']))
    world.fed.provider.put(zone)
    assert is_settled(world, world.create())
    assert world.there() == [f'{NAME} 3600 NS ns1.example.org.']


@pytest.mark.parametrize('ownership', ['database', 'txt'])
def test_deleting_a_domain_leaves_what_others_have_in_a_shared_zone(world: FedWorld, clock: Clock,
                                                                    ownership: str) -> None:
    world.refit(ownership=ownership, policy='sync')
    domain = world.apply(world.create(), f'ours.{NAME} A 192.0.2.1')
    theirs = [('theirs', 'A', '198.51.100.1'), ('mail', 'MX', '10 mx.example.net.')]
    foreign(world, *theirs)
    world.delete(domain)
    assert world.get(domain).status is Status.DELETED
    left = [line for line in world.there() if 'TXT' not in line]
    assert left == [f'{NAME} 3600 NS ns1.example.org.', f'mail.{NAME} 60 MX 10 mx.example.net.',
                    f'theirs.{NAME} 60 A 198.51.100.1']

    # Made anew, what stayed because the zone needs it is still ours.
    domain = world.apply(world.create(), f'ours.{NAME} A 192.0.2.2')
    assert is_settled(world, domain), world.row(domain).last_error
    zone = world.fed.provider.zone(NAME)
    for name, rtype, _ in theirs:
        zone.remove_record(zone.get(f'{name}.{NAME}', rtype))
    world.fed.provider.put(zone)
    world.delete(domain)
    assert world.get(domain).status is Status.DELETED
    assert world.fed.provider.zone(NAME) is None, 'nobody else has anything in it any more'


@pytest.mark.parametrize('ownership', ['database', 'txt'])
def test_a_zone_that_others_made_stays_when_the_domain_is_deleted(world: FedWorld, ownership: str) -> None:
    zone = Zone(NAME)
    zone.add_record(rrset(NAME, 'NS', 3600, ['ns1.example.org.']))
    zone.add_record(rrset(NAME, 'SOA', 300, ['ns.example.net. hostmaster.example.net. 1 3600 600 86400 300']))
    world.fed.provider.put(zone)
    world.refit(ownership=ownership, policy='sync')
    domain = world.apply(world.create(), f'ours.{NAME} A 192.0.2.1')
    assert is_settled(world, domain), world.row(domain).last_error
    world.delete(domain)
    assert world.there() == [f'{NAME} 3600 NS ns1.example.org.']


def test_deleting_a_domain_leaves_types_that_are_not_managed(world: FedWorld) -> None:
    world.refit(managed_types='a, mx')
    domain = world.create()
    foreign(world, ('theirs', 'TXT', '"x"'))
    world.apply(domain, f'www.{NAME} A 192.0.2.1')
    world.delete(domain)
    assert world.get(domain).status is Status.DELETED
    assert world.there() == [f'theirs.{NAME} 60 TXT "x"']


def test_deleting_a_domain_keeps_within_the_deletes_of_an_hour(world: FedWorld, clock: Clock) -> None:
    limit_deletes(world, 10)
    domain = world.fill()
    world.delete(domain)
    parked = world.live(domain)
    assert parked is not None and '21 deletes after 0 in the last hour are more than 10' in str(parked.why)
    assert parked.id in str(world.row(domain, Action.DELETE).last_error)
    assert len(world.there()) == 21
    world.central.approve_plan(CONTEXT, parked.id)
    later(world, clock, 0)
    assert world.get(domain).status is Status.DELETED
    assert world.fed.provider.zone(NAME) is None
    assert world.storage.read(plans.get, parked.id).state is PlanState.APPLIED


def limit_deletes(world: FedWorld, limit: int) -> None:
    record_sync: Any = world.manager.record_sync
    record_sync._settings = dataclasses.replace(world.manager.settings, max_deletes_per_hour=limit)


@pytest.mark.parametrize('ownership', ['database', 'txt', 'zone'])
def test_a_name_deleted_and_made_anew_at_once_serves_nothing_of_the_former(world: FedWorld, clock: Clock,
                                                                           ownership: str) -> None:
    world.refit(ownership=ownership, policy='sync')
    former = world.apply(world.create(), f'old.{NAME} A 192.0.2.66', f'www.{NAME} A 192.0.2.1')
    foreign(world, *[('theirs', 'A', '198.51.100.1')] if ownership != 'zone' else [])
    world.lose_casts = True
    gone = world.central.delete_domain(CONTEXT, former.id)
    domain = world.central.create_domain(CONTEXT, {'name': NAME, 'email': 'hostmaster@example.com'})
    world.lose_casts = False
    world.manager.change([gone.id, domain.id])
    world.deliver()
    # A name that was there before, with other data.
    world.apply(domain, f'www.{NAME} A 192.0.2.9')
    assert is_settled(world, domain), world.row(domain).last_error
    assert world.get(gone).status is Status.DELETED
    hosts = [line for line in world.there() if ' A ' in line]
    assert hosts == [f'theirs.{NAME} 60 A 198.51.100.1'] * (ownership != 'zone') + [f'www.{NAME} 3600 A 192.0.2.9']


def test_what_a_former_domain_owned_before_an_upgrade_is_managed_again(
        world: FedWorld, clock: Clock) -> None:
    world.refit(ownership='database', policy='sync')
    former = world.apply(world.create(), f'old.{NAME} A 192.0.2.66', f'www.{NAME} A 192.0.2.1')
    foreign(world, ('theirs', 'A', '198.51.100.1'))
    world.lose_casts = True
    gone = world.central.delete_domain(CONTEXT, former.id)
    domain = world.central.create_domain(CONTEXT, {'name': NAME, 'email': 'hostmaster@example.com'})
    # Former versions left it to the domain that is gone.
    world.storage.run(rrset_ownership.inherit, domain.id, former.id)
    world.lose_casts = False
    world.manager.change([gone.id, domain.id])
    world.deliver()
    world.apply(domain, f'www.{NAME} A 192.0.2.9')
    assert f'Update www.{NAME}' in str(world.row(domain).last_error)

    Purger(world.storage, 1000, lambda: utcnow().timestamp()).reassign_ownership()
    later(world, clock, 3600)
    assert is_settled(world, domain), world.row(domain).last_error
    assert [line for line in world.there() if ' A ' in line] == [
        f'theirs.{NAME} 60 A 198.51.100.1', f'www.{NAME} 3600 A 192.0.2.9']


def test_a_drained_server_keeps_what_others_have_in_a_shared_zone(world: FedWorld) -> None:
    world.refit(ownership='database', policy='sync')
    domain = world.apply(world.create(), f'ours.{NAME} A 192.0.2.1')
    foreign(world, ('theirs', 'A', '198.51.100.1'))
    failed, waiting = JoinAndDrain(world.manager, cast(Any, None))._delete(world.fed, [domain])
    assert not failed and not waiting
    assert [line for line in world.there() if ' A ' in line] == [f'theirs.{NAME} 60 A 198.51.100.1']


def test_a_server_is_drained_as_fast_as_the_deletes_of_an_hour_allow(world: FedWorld) -> None:
    domain = world.fill()
    limit_deletes(world, 10)
    failed, waiting = JoinAndDrain(world.manager, cast(Any, None))._delete(world.fed, [domain])
    assert (failed, waiting) == ([], {domain.id}) and len(world.there()) == 21
    parked = world.live(domain)
    assert parked is not None
    world.central.approve_plan(CONTEXT, parked.id)
    failed, waiting = JoinAndDrain(world.manager, cast(Any, None))._delete(world.fed, [domain])
    assert (failed, waiting) == ([], set()) and world.there() == []


@pytest.mark.parametrize(('options', 'left'), [
    ({'ownership': 'database', 'policy': 'sync'}, 3), ({'ownership': 'txt', 'policy': 'sync'}, 3),
    ({'managed_types': 'MX'}, 2), ({}, 0)])
def test_an_extra_zone_is_deleted_as_far_as_it_is_ours(world: FedWorld, options: dict[str, Any], left: int) -> None:
    world.refit(**options)
    foreign(world, ('theirs', 'A', '198.51.100.1'), ('more', 'A', '198.51.100.1'), ('more', 'MX', '0 mx.example.net.'))
    found = ServerCompare(world.manager, world.runtime).compare(FED, fix=False, delete_extra=1)
    assert (found.extra, found.deleted) == ((NAME,), 0 if left else 1)
    assert len(world.there()) == left


def test_an_extra_zone_is_not_deleted_beyond_the_deletes_of_an_hour(world: FedWorld) -> None:
    limit_deletes(world, 1)
    foreign(world, ('theirs', 'A', '198.51.100.1'), ('more', 'A', '198.51.100.1'))
    assert ServerCompare(world.manager, world.runtime).compare(FED, fix=False, delete_extra=1).deleted == 0
    assert len(world.there()) == 2


def test_those_who_delete_at_the_same_time_keep_within_the_hour_together(world: FedWorld) -> None:
    """The second begins when the first has been let pass and has not deleted anything yet."""
    limit_deletes(world, 3)
    domain = world.fill()
    other = world.create('other.example.')
    world.apply(other, *(f'h{number}.other.example. A 192.0.2.1' for number in range(12)))
    second: list[Domain] = []

    def meanwhile(zone: Zone) -> None:
        second.append(world.central.apply_changes(CONTEXT, other.id, [
            RecordChange(f'h{number}.other.example.', 'A', ()) for number in range(2)]))
        world.manager.record_sync.sync(world.fed, world.get(other))

    provider = world.fed.provider
    whole = provider._apply

    def apply(plan: Plan) -> ApplyResult | None:
        if plan.zone == NAME and not second:
            meanwhile(plan.existing)
        return whole(plan)

    vars(provider)['_apply'] = apply
    world.apply(domain, f'h1.{NAME} A', f'h2.{NAME} A')
    assert len(world.there()) == 19
    kept = provider.zone('other.example.')
    assert kept is not None and len(kept) == 14, 'two and two are more than three'
    parked = world.live(other)
    assert parked is not None and '2 deletes after 2 in the last hour are more than 3' in str(parked.why)
    assert world.storage.read(plans.deletes_since, 'default', utcnow() - timedelta(hours=1)) == 2


def test_what_was_begun_and_never_ended_counts_until_it_is_tried_again(world: FedWorld, clock: Clock) -> None:  # noqa: E501
    limit_deletes(world, 3)
    domain = world.fill()
    world.fed.provider.behave('apply', 'hang', 1)
    vars(world.fed.provider)['timeout'] = 0.01
    world.apply(domain, f'h1.{NAME} A', f'h2.{NAME} A')
    since = utcnow() - timedelta(hours=1)
    assert world.storage.read(plans.deletes_since, 'default', since) == 2
    later(world, clock, 2.1)
    assert is_settled(world, domain), world.row(domain).last_error
    assert world.storage.read(plans.deletes_since, 'default', since) == 2, 'the same two, once'


def another_goes_on(world: FedWorld, clock: Clock, domain: Domain, address: str) -> Domain:
    """The claim runs out, and another pool manager brings the next change while the first is still at it."""
    other = world.new_manager('two')
    world.lose_casts = True
    changed = world.central.apply_changes(CONTEXT, domain.id, [RecordChange(f'www.{NAME}', 'A', (address,))])
    world.lose_casts = False
    clock.offset += timedelta(seconds=31)
    other.change([domain.id])
    assert world.fed.provider.zone(NAME).get(f'www.{NAME}', 'A').rdatas == (address,)
    return changed


def test_who_was_too_slow_writes_nothing_any_more(world: FedWorld, clock: Clock,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_sync, 'utcnow', clock)
    domain = world.apply(world.create(), f'www.{NAME} A 192.0.2.1')
    provider, changed = world.fed.provider, []
    plan_here = provider.plan

    def slow(*args: Any, **options: Any) -> Plan | None:
        found = plan_here(*args, **options)
        if not changed:
            changed.append(domain)
            changed.append(another_goes_on(world, clock, domain, '192.0.2.3'))
            provider.calls.clear()
        return found

    vars(provider)['plan'] = slow
    world.apply(domain, f'www.{NAME} A 192.0.2.2')
    assert f'www.{NAME} 3600 A 192.0.2.3' in world.there()
    assert not [call for call in provider.calls if call.operation == 'apply']
    later(world, clock, 3)
    assert is_settled(world, domain) and world.served_serial() == changed[1].serial


@pytest.mark.parametrize('fails', [True, False])
def test_what_is_written_too_late_is_not_left_standing(world: FedWorld, clock: Clock,
                                                       monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """A server that cannot be told what has to be there before takes the older contents over the newer."""
    monkeypatch.setattr(record_sync, 'utcnow', clock)
    domain = world.apply(world.create(), f'www.{NAME} A 192.0.2.1')
    provider, changed = world.fed.provider, []

    def late(plan: Plan) -> ApplyResult | None:
        first = not changed
        if first:
            changed.append(domain)
            changed.append(another_goes_on(world, clock, domain, '192.0.2.3'))
        provider.put(plan.desired)
        if first and fails:
            raise BackendUnreachable(why='no answer')
        return None

    vars(provider)['_apply'] = late
    world.apply(domain, f'www.{NAME} A 192.0.2.2')
    assert f'www.{NAME} 3600 A 192.0.2.3' in world.there()
    later(world, clock, 3)
    assert is_settled(world, domain) and world.served_serial() == changed[1].serial


def test_what_is_written_after_the_domain_was_deleted_goes_again(world: FedWorld, clock: Clock,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_sync, 'utcnow', clock)
    domain = world.apply(world.create(), f'www.{NAME} A 192.0.2.1')
    provider, done = world.fed.provider, []

    def late(plan: Plan) -> ApplyResult | None:
        if not done:
            done.append(plan)
            other = world.new_manager('two')
            world.lose_casts = True
            world.central.delete_domain(CONTEXT, domain.id)
            world.lose_casts = False
            clock.offset += timedelta(seconds=31)
            other.change([domain.id])
            assert provider.zone(NAME) is None
        provider.put(plan.desired)
        return None

    vars(provider)['_apply'] = late
    world.apply(domain, f'www.{NAME} A 192.0.2.2')
    assert done and provider.zone(NAME) is None
