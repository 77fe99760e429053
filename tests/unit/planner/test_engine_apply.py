"""Stored plans: applied exactly, refused, interrupted and applied again."""

from __future__ import annotations

import datetime
import json

import pytest

from designate_pool.errors import InvalidField, PlanMoved, PlanNotFound, UnsafePlan, WrongPlanState
from designate_pool.model import utcnow
from designate_pool.planner.engine import ZoneSetting
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.plan.plan_store import FolderStore
from tests.unit.planner.conftest import AFTER, BEFORE, CHANGES, Memory, StoredPlanCase, manager
from tests.unit.planner.values import ORIGIN, zone


def test_exactly_what_was_stored_is_applied_and_only_once(case: StoredPlanCase) -> None:
    assert case.state == 'STORED' and not case.is_done
    outcome = case.apply()
    assert (outcome.applied, outcome.failed, outcome.plan_id) == (2 * CHANGES, [], case.plan_id)
    assert case.is_done and case.state == 'APPLIED'
    made = [list(target.made) for target in case.targets]
    with pytest.raises(WrongPlanState, match='is APPLIED since .* UTC: it is not applied; make a new one'):
        case.apply()
    assert [target.made for target in case.targets] == made and case.state == 'APPLIED'


def test_the_stored_plan_tells_what_it_will_do(case: StoredPlanCase, store: FolderStore) -> None:
    stored = store.get(case.plan_id)
    assert (stored.zone, stored.target) == (ORIGIN, 'a, b')
    assert (stored.creates, stored.updates, stored.deletes) == (2, 4, 2)
    first, second = json.loads(stored.document)['parts']
    assert [first[each] for each in ('zone', 'target')] == [ORIGIN, 'a'] and second['target'] == 'b'
    assert first['existing_digest'] == zone(BEFORE).digest()
    assert first['source_digest'] == zone(AFTER).digest() == case.source.zones[ORIGIN].digest()


def test_nothing_to_do_is_not_stored(store: FolderStore) -> None:
    source, target = Memory('source').has(AFTER), Memory('a').has(AFTER)
    assert manager(source, target).sync(store=store).plan_id is None and store.find() == []


@pytest.mark.parametrize('step', range(2 * CHANGES))
def test_interrupted_at_any_step_and_then_again(case: StoredPlanCase, step: int) -> None:
    """The process ends in the middle of a change: nothing is settled, and nothing is done twice."""

    class Killed(BaseException):
        pass

    class Dying(list[str]):
        def append(self, change: str) -> None:
            super().append(change)
            if sum(len(target.made) for target in case.targets) == step + 1:
                raise Killed

    for target in case.targets:
        target.made = Dying()
    with pytest.raises(Killed):
        case.apply()
    assert case.state == 'STORED'
    again = case.apply()
    assert case.is_done and case.state == 'APPLIED'
    assert again.applied == 2 * CHANGES - step - 1
    assert sum(result.applied_before for result in again.results) == step + 1
    assert [sorted(target.made) for target in case.targets] == [sorted(set(target.made)) for target in case.targets]
    assert sum(len(target.made) for target in case.targets) == 2 * CHANGES


@pytest.mark.parametrize('step', range(CHANGES))
def test_a_target_that_fails_leaves_a_plan_that_can_be_applied_again(
        case: StoredPlanCase, store: FolderStore, step: int) -> None:
    bad, good = case.targets
    bad.fails_at = step
    outcome = case.apply()
    assert [result.target_id for result in outcome.failed] == ['a'] and outcome.applied == CHANGES
    assert good.zones[ORIGIN] == zone(AFTER)
    assert case.state == 'FAILED'
    assert store.get(case.plan_id).why == 'example.com. on a: the connection broke'
    bad.fails_at = None
    assert case.apply().applied == CHANGES - step
    assert case.is_done and case.state == 'APPLIED'


def test_a_replacement_that_stopped_between_its_halves_is_finished(case: StoredPlanCase) -> None:
    half = case.targets[0].zones[ORIGIN]
    half.remove_record(half.at('alias.example.com.')[0])
    assert case.apply().applied == 2 * CHANGES and case.is_done


def test_an_interruption_before_the_plan_was_settled_is_finished_without_changes(case: StoredPlanCase) -> None:
    for target in case.targets:
        target.has(AFTER)
    outcome = case.apply()
    assert (outcome.applied, [result.applied_before for result in outcome.results]) == (0, [CHANGES, CHANGES])
    assert case.state == 'APPLIED' and not case.targets[0].made


@pytest.mark.parametrize(('side', 'text', 'why'), [
    ('source', f'{AFTER}\nmore 60 A 192.0.2.7', 'example.com. on a: the sources have changed since planning; '
                                                'example.com. on b: the sources have changed since planning'),
    ('a', BEFORE.replace('192.0.2.1', '192.0.2.77'), 'example.com. on a: the zone has changed since planning '
                                                     '(www.example.com. A)'),
    ('b', f'{BEFORE}\nnew 300 TXT "other"', 'example.com. on b: the zone has changed since planning (new.example.com. '
                                            'TXT)'),
    ('b', BEFORE.replace('192.0.2.4', '192.0.2.5'),
     'example.com. on b: the zone has changed since planning, in records the plan does not touch'),
    ('a', f'{BEFORE}\nstranger 60 A 192.0.2.7',
     'example.com. on a: the zone has changed since planning, in records the plan does not touch'),
])
def test_a_side_that_moved_is_named_and_nothing_is_applied(
        case: StoredPlanCase, store: FolderStore, side: str, text: str, why: str) -> None:
    next(each for each in (case.source, *case.targets) if each.id == side).has(text)
    with pytest.raises(PlanMoved) as caught:
        case.apply()
    assert str(caught.value) == f'The plan {case.plan_id} is not applied: {why}.'
    assert not any(target.made for target in case.targets)
    assert (case.state, store.get(case.plan_id).why) == ('DROPPED', why)
    with pytest.raises(WrongPlanState, match='is DROPPED'):
        case.apply()


def test_what_came_since_on_a_target_that_had_nothing_to_do_is_not_applied(store: FolderStore) -> None:
    source, a, b = Memory('source').has(AFTER), Memory('a').has(BEFORE), Memory('b').has(AFTER)
    run = manager(source, a, b)
    plan_id = run.sync(store=store).plan_id or ''
    b.has(BEFORE)
    assert run.apply(plan_id, store).applied == CHANGES
    assert b.zones[ORIGIN] == zone(BEFORE)


def test_a_plan_that_the_configuration_would_not_make_any_more_is_refused(
        case: StoredPlanCase, store: FolderStore) -> None:
    strict = manager(case.source, *case.targets, policy=('upsert-only',))
    with pytest.raises(PlanMoved, match=r'the configuration gives other changes now \(alias.example.com. A, '
                                        r'alias.example.com. CNAME, old.example.com. A\)'):
        strict.apply(case.plan_id, store)
    other = StoredPlanCase(store)
    gone = manager(other.source, other.targets[0])
    with pytest.raises(PlanMoved, match='b is not configured any more'):
        gone.apply(other.plan_id, store)
    third = StoredPlanCase(store)
    elsewhere = manager(third.source, *third.targets, zones={'example.net.': ZoneSetting(('source',), ('a',))})
    with pytest.raises(PlanMoved, match='example.com. is not configured any more'):
        elsewhere.apply(third.plan_id, store)
    fourth = StoredPlanCase(store)
    apart = manager(fourth.source, *fourth.targets, zones={ORIGIN: ZoneSetting(('source',), ('a',))})
    with pytest.raises(PlanMoved, match='example.com. on b: it is not configured any more'):
        apart.apply(fourth.plan_id, store)
    assert not any(target.made for each in (case, other, third, fourth) for target in each.targets)


def test_a_plan_that_is_too_old_is_refused(store: FolderStore) -> None:
    case = StoredPlanCase(store, plan_lifetime=datetime.timedelta(hours=2))
    case.manager.now = lambda: utcnow() + datetime.timedelta(hours=1, minutes=59)
    kept = store.get(case.plan_id)
    assert kept.expires_at is not None and kept.created_at is not None
    assert kept.expires_at - kept.created_at == datetime.timedelta(hours=2)
    case.manager.now = lambda: kept.expires_at or utcnow()
    with pytest.raises(PlanMoved, match='it could be applied until .* UTC'):
        case.apply()
    assert case.state == 'DROPPED' and not case.targets[0].made


def test_a_side_that_cannot_be_read_keeps_the_plan_for_later(case: StoredPlanCase) -> None:
    case.targets[1].broken = 'no answer'
    outcome = case.apply()
    assert [result.error for result in outcome.failed] == ['b cannot be read: no answer.']
    assert outcome.applied == 0 and case.state == 'STORED' and not case.targets[0].made
    case.targets[1].broken = None
    case.source.broken = 'it broke off'
    assert len(case.apply().failed) == 2 and case.state == 'STORED'
    case.source.broken = None
    assert case.apply().applied == 2 * CHANGES and case.is_done


def test_zones_that_cannot_be_listed_keep_the_plan_for_later(store: FolderStore) -> None:
    source, target = Memory('source').has('a 300 A 192.0.2.1'), Memory('target').has('')
    run = manager(source, target, zones={'*': ZoneSetting(('source',), ('target',))})
    plan_id = run.sync(store=store).plan_id or ''
    source.broken = 'no answer'
    outcome = run.apply(plan_id, store, force=[ORIGIN])
    assert [(result.zone, result.error) for result in outcome.failed] == [('*', 'source cannot be read: no answer.')]
    assert store.get(plan_id).state == 'STORED'
    source.broken = None
    assert run.apply(plan_id, store).applied == 1
    source.has('a 300 A 192.0.2.2')
    plan_id = run.sync(store=store).plan_id or ''
    source.zones.clear()
    with pytest.raises(PlanMoved, match='not configured any more'):
        run.apply(plan_id, store)
    assert store.get(plan_id).state == 'DROPPED'


def test_an_unsafe_plan_needs_force_for_its_zone_and_can_then_be_applied(store: FolderStore) -> None:
    source, target = Memory('source').has('a 300 A 192.0.2.1'), Memory('target').has('b 300 A 192.0.2.2')
    run = manager(source, target)
    plan_id = run.sync(store=store).plan_id or ''
    assert (store.get(plan_id).why or '').startswith('example.com. on target: all of its 1 RRsets would be deleted')
    with pytest.raises(UnsafePlan):
        run.apply(plan_id, store)
    with pytest.raises(InvalidField, match='force: this run does not change example.net.'):
        run.apply(plan_id, store, force=['example.net.'])
    assert store.get(plan_id).state == 'STORED' and not target.made
    assert run.apply(plan_id, store, force=[ORIGIN]).applied == 2
    assert store.get(plan_id).state == 'APPLIED'


class WithSoa(Memory):
    SUPPORTS_SOA = True


SOA = '@ 300 SOA ns.example.net. hostmaster.example.com. {} 3600 600 86400 300\n'


def test_a_serial_that_the_server_raised_meanwhile_does_not_count(store: FolderStore) -> None:
    source, target = WithSoa('source').has(SOA.format(9) + AFTER), WithSoa('target').has(SOA.format(1) + BEFORE)
    run = manager(source, target)
    plan_id = run.sync(store=store).plan_id or ''

    def dying(plan: Plan) -> None:
        target.has(SOA.format(2) + BEFORE.replace('old 300 A 192.0.2.3\n', ''))
        raise KeyboardInterrupt

    target.before_apply = dying
    with pytest.raises(KeyboardInterrupt):
        run.apply(plan_id, store)
    target.before_apply = lambda plan: None
    run.apply(plan_id, store)
    assert target.zones[ORIGIN] == source.zones[ORIGIN] and store.get(plan_id).state == 'APPLIED'


def test_a_serial_that_the_plan_did_not_have_is_not_slipped_in(store: FolderStore) -> None:
    source, target = WithSoa('source').has(SOA.format(1) + AFTER), WithSoa('target').has(SOA.format(1) + BEFORE)
    run = manager(source, target)
    plan_id = run.sync(store=store).plan_id or ''
    source.has(SOA.format(2) + AFTER)
    assert run.apply(plan_id, store).applied == CHANGES
    assert target.zones[ORIGIN] == zone(SOA.format(1) + AFTER)


def test_a_zone_that_is_new_on_the_target_is_made_and_half_made_then_finished(store: FolderStore) -> None:
    source, target = Memory('source').has(AFTER), Memory('target')
    run = manager(source, target)
    plan_id = run.sync(store=store).plan_id or ''
    target.fails_at = 1
    assert run.apply(plan_id, store).failed
    target.fails_at = None
    assert run.apply(plan_id, store).applied == 3 and target.zones[ORIGIN] == source.zones[ORIGIN]


def test_a_run_that_applies_with_a_store_leaves_a_note_of_what_became_of_it(store: FolderStore) -> None:
    source, target = Memory('source').has(AFTER), Memory('target')
    run = manager(source, target)
    target.fails_at = 0
    failed = run.sync(dry_run=False, store=store)
    target.fails_at = None
    done = run.sync(dry_run=False, store=store)
    assert [store.get(each.plan_id or '').state for each in (failed, done)] == ['FAILED', 'APPLIED']


def test_many_zones_are_one_plan(store: FolderStore) -> None:
    source, target = Memory('source').has(AFTER).has(AFTER, 'example.net.'), Memory('target').has(BEFORE)
    zones = {each: ZoneSetting(('source',), ('target',)) for each in (ORIGIN, 'example.net.')}
    run = manager(source, target, zones=zones, max_workers=2)
    plan_id = run.sync(store=store).plan_id or ''
    assert store.get(plan_id).zone == '2 zones'
    assert run.apply(plan_id, store).applied == 8 and set(target.zones) == set(zones)


def test_very_many_targets_are_counted(store: FolderStore) -> None:
    targets = [Memory(f'target-{number}') for number in range(30)]
    plan_id = manager(Memory('source').has(AFTER), *targets).sync(store=store).plan_id or ''
    assert store.get(plan_id).target == '30 targets'


def test_no_such_plan_and_no_plan_of_a_run(case: StoredPlanCase, store: FolderStore) -> None:
    with pytest.raises(PlanNotFound):
        case.manager.apply('f' * 32, store)
    kept = store.get(case.plan_id)
    for document, why in (('{}', 'not that of a run'), ('{"version": 2, "parts": []}', 'version 2'), ('x', 'not that')):
        object.__setattr__(kept, 'document', document)
        store.put(kept)
        with pytest.raises(InvalidField, match=why):
            case.apply()
