"""One run: what happens in which order, to which zones, and what does not; and plans that are stored."""

from __future__ import annotations

import datetime
import json
import threading

import pytest

from designate_pool.errors import InvalidField, PlanMoved, PlanNotFound, SourceError, UnsafePlan, WrongPlanState
from designate_pool.model import utcnow
from designate_pool.planner.engine import ZoneSetting
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.plan.plan_store import FolderStore
from designate_pool.planner.providers.base import BaseProcessor
from designate_pool.planner.targets.fake import FakeProvider
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import rrset
from tests.unit.planner.conftest import AFTER, BEFORE, CHANGES, Diarist, Memory, Showing, StoredPlanCase, manager
from tests.unit.planner.values import ORIGIN, zone

TWO = 'www 300 A 192.0.2.1\nmail 300 A 192.0.2.2'
MANY = '\n'.join(f'h{number} 300 A 192.0.2.{number}' for number in range(10))


def setting(*targets: str, source: str = 'source', **more: object) -> ZoneSetting:
    return ZoneSetting(sources=(source,), targets=targets, **more)  # type: ignore[arg-type]


def test_the_whole_life_of_a_zone_is_in_order() -> None:
    """Z-03 to Z-24, Z-27, Z-29, Z-33, Z-37, Q-03, Q-11."""
    diary: list[str] = []
    more = Memory('more', diary).has('more 300 A 192.0.2.9')
    source = Memory('source', diary).has(TWO)
    a, b = Memory('a', diary).has('www 300 A 192.0.2.1'), Memory('b', diary)
    run = manager(source, more, a, b, zones={ORIGIN: ZoneSetting(('source', 'more'), ('a', 'b'), ('own',))},
                  processors={each: Diarist(each, diary) for each in ('first', 'own', 'last')},
                  first_processors=('first',), last_processors=('last',), outputs=[Showing(diary)])
    assert run.sync(dry_run=False).applied == 5
    per_target = [['populate existing example.com.', 'desired', 'existing'], ['include'] * 2 + ['extra', 'meta']]
    expected = ['source: populate desired example.com.', 'more: populate desired example.com.',
                'first: source zone from 2', 'own: source zone from 2', 'last: source zone from 2']
    for target, count in (('a', 2), ('b', 3)):
        expected += [f'{target}: {each}' for each in per_target[0]]
        expected += [f'{each}: target zone' for each in ('first', 'own', 'last')]
        expected += [f'{each}: both zones' for each in ('first', 'own', 'last')]
        expected += [f'{target}: {each}' for each in ['include'] * count + ['extra', 'meta']]
        expected += [f'{each}: plan {count}' for each in ('first', 'own', 'last')]
    assert diary == [*expected, 'output', 'a: apply example.com.', 'b: apply example.com.']


def test_a_second_run_finds_nothing_to_do_and_its_processors_see_none() -> None:
    diary: list[str] = []
    source, target = Memory('source').has(TWO), Memory('target')
    run = manager(source, target, processors={'own': Diarist('own', diary)}, first_processors=('own',))
    first = run.sync(dry_run=False)
    assert (first.changes, first.applied, first.failed) == (2, 2, [])
    assert target.zones[ORIGIN] == source.zones[ORIGIN]
    diary.clear()
    second = run.sync(dry_run=False)
    assert [(result.plan, result.result) for result in second.results] == [(None, None)]
    assert (second.changes, second.applied, second.failed) == (0, 0, [])
    assert 'own: plan None' in diary and len(target.made) == 2


def test_a_dry_run_changes_nothing_and_says_what_it_would() -> None:
    source, target = Memory('source').has(TWO), Memory('target')
    outcome = manager(source, target).sync()
    assert (outcome.changes, outcome.applied) == (2, 0) and outcome.results[0].result is None
    assert target.zones == {}


def test_a_source_that_breaks_off_fails_its_zone_and_the_others_go_on() -> None:
    good, bad, target = Memory('good').has(TWO), Memory('bad').has(TWO, 'example.net.'), Memory('target')
    target.has(MANY, 'example.net.')
    bad.broken = 'it broke off'
    run = manager(good, bad, target, zones={'example.net.': setting('target', source='bad'),
                                            'example.com.': setting('target', source='good')})
    outcome = run.sync(dry_run=False)
    assert [(result.zone, result.error) for result in outcome.failed] == [
        ('example.net.', 'bad cannot be read: it broke off.')]
    assert outcome.applied == 2 and len(target.zones['example.net.']) == 10
    bad.broken = None
    with pytest.raises(UnsafePlan):
        run.sync(dry_run=False)


def test_a_server_that_is_a_source_and_fails_is_not_taken_for_the_target() -> None:
    server = FakeProvider('server', on_populate='unreachable', on_list='unreachable')
    zones = {name: setting('target', source='server') for name in (ORIGIN, '*')}
    run = manager(server, Memory('target'), zones=zones)
    why = 'server cannot be read: the fake server cannot be reached, as configured.'
    assert [result.error for result in run.sync().results] == [why] * 2
    with pytest.raises(SourceError, match=why):
        run.compare(['server'], ['target'], ORIGIN)


def test_an_error_that_nobody_expected_fails_alone_too() -> None:
    class Wrong(Memory):
        def _plan_meta(self, *_: object) -> None:
            raise LookupError('a bug')

    outcome = manager(Memory('source').has(TWO), Wrong('wrong'), Memory('good')).sync(dry_run=False)
    assert [result.error for result in outcome.results] == ['LookupError: a bug', None]


def test_a_target_that_fails_half_way_does_not_keep_the_others_and_is_done_the_next_time() -> None:
    """A69."""
    source, bad, good = Memory('source').has(TWO), Memory('bad'), Memory('good')
    bad.fails_at = 1
    run = manager(source, bad, good)
    outcome = run.sync(dry_run=False)
    assert [(result.target_id, result.error, result.result and result.result.ok) for result in outcome.results] == [
        ('bad', 'the connection broke', False), ('good', None, True)]
    assert outcome.applied == 2 and [result.target_id for result in outcome.failed] == ['bad']
    bad.fails_at = None
    assert run.sync(dry_run=False).applied == 1
    assert bad.zones[ORIGIN] == good.zones[ORIGIN] == source.zones[ORIGIN]


def test_what_is_unsafe_keeps_everything_from_being_applied_and_is_shown_before() -> None:
    """Z-29 to Z-32, A68."""
    source = Memory('source').has('h0 300 A 192.0.2.0\nh1 300 A 192.0.2.1').has(TWO, 'example.net.')
    target, showing = Memory('target').has(MANY), Showing()
    run = manager(source, target, zones={each: setting('target') for each in ('example.net.', ORIGIN)},
                  outputs=[showing])
    with pytest.raises(UnsafePlan, match='8 of 10'):
        run.sync(dry_run=False)
    assert list(target.zones) == [ORIGIN] and not target.made
    assert [[result.is_unsafe for result in results] for results in showing.shown] == [[True, False]]
    dry = run.sync()
    assert [result.zone for result in dry.unsafe] == [ORIGIN]
    with pytest.raises(UnsafePlan):
        run.sync(dry_run=False, force=['example.net.'])
    assert not target.made
    outcome = run.sync(dry_run=False, force=[ORIGIN])
    assert outcome.applied == 10 and outcome.unsafe == []
    assert run.sync(dry_run=False, force=()).applied == 0


def test_force_may_be_true_for_all_zones_of_the_run() -> None:
    source, target = Memory('source').has(''), Memory('target').has(TWO)
    run = manager(source, target)
    with pytest.raises(UnsafePlan):
        run.sync(dry_run=False, force=False)
    outcome = run.sync(dry_run=False, force=True)
    assert outcome.applied == 2
    with pytest.raises(InvalidField, match='True for all'):
        run.sync(force=ORIGIN)


def test_force_is_for_this_run_and_its_zones_only() -> None:
    run = manager(Memory('source').has(TWO), Memory('target'))
    with pytest.raises(InvalidField, match='force: this run does not change example.org.'):
        run.sync(force=['example.org.'])
    with pytest.raises(InvalidField, match='the final dot is missing'):
        run.sync(force=['example.com'])


def test_an_empty_source_is_told_from_one_that_has_less() -> None:
    target = Memory('target').has(TWO)
    run = manager(Memory('source').has('@ 300 NS ns.example.net.'), target)
    found = run.sync().results[0].dangers
    assert found[0].kind == 'empty_source'

    class Adding(BaseProcessor):
        def process_source_zone(self, desired, sources, lenient=False):  # type: ignore[no-untyped-def]
            desired.add_record(rrset('meta.example.com.', 'TXT', 60, ['"x"']))
            return desired

    run = manager(Memory('source'), target, processors={'adding': Adding('adding')}, first_processors=('adding',))
    assert [each.kind for each in run.sync().results[0].dangers] == ['empty_source', 'everything_deleted']


def test_a_zone_that_is_only_planned_is_not_applied_and_endangers_nothing() -> None:
    source = Memory('source').has('h0 300 A 192.0.2.0').has(TWO, 'example.net.')
    target = Memory('target').has(MANY)
    run = manager(source, target, zones={ORIGIN: setting('target', always_dry_run=True),
                                         'example.net.': setting('target')})
    outcome = run.sync(dry_run=False)
    assert outcome.applied == 2 and outcome.changes == 11 and len(target.zones[ORIGIN]) == 10


def test_policies_of_zone_and_target_intersect_and_what_they_keep_back_is_seen() -> None:
    """E-05 to E-10, E-17, A66."""
    source = Memory('source').has('www 60 A 192.0.2.1\nnew 300 A 192.0.2.5')
    everything, some, few = (Memory(id).has(TWO) for id in ('everything', 'some', 'few'))
    run = manager(source, everything, some, few, zones={ORIGIN: setting('everything', 'some', 'few')},
                  target_policies={'some': ('upsert-only',), 'few': ('create-only', 'upsert-only')})
    results = run.sync(dry_run=False).results
    assert [[each.kind for each in result.plan.changes] for result in results if result.plan] == [
        ['Delete', 'Update', 'Create'], ['Update', 'Create'], ['Create']]
    assert [len(result.plan.blocked) for result in results if result.plan] == [0, 1, 2]
    assert everything.zones[ORIGIN] == source.zones[ORIGIN]
    assert few.zones[ORIGIN] == zone(f'{TWO}\nnew 300 A 192.0.2.5')
    again = run.sync(dry_run=False)
    assert again.applied == 0 and [result.changes for result in again.results] == [0, 0, 0]


def test_the_policy_of_the_setup_is_for_zones_that_say_none() -> None:
    source, target = Memory('source').has(TWO).has(TWO, 'example.net.'), Memory('target')
    target.has('old 300 A 192.0.2.7').has('old 300 A 192.0.2.7', 'example.net.')
    run = manager(source, target, policy=('create-only',),
                  zones={ORIGIN: setting('target'), 'example.net.': setting('target', policy=('sync',))})
    run.sync(dry_run=False, force=['example.net.'])
    assert len(target.zones[ORIGIN]) == 3 and len(target.zones['example.net.']) == 2


def test_a_zone_that_a_policy_keeps_back_whole_is_not_made() -> None:
    target = Memory('target')
    run = manager(Memory('source').has(TWO), target, policy=('update-only',))
    assert run.sync(dry_run=False).applied == 0 and target.zones == {}


def test_an_alias_has_the_records_of_the_other_zone_and_its_own_settings() -> None:
    """A70."""
    diary: list[str] = []
    source = Memory('source').has('@ 300 MX 10 mail.example.com.\nwww 300 A 192.0.2.1')
    a, b = Memory('a'), Memory('b')
    zones = {'example.net.': ZoneSetting(alias=ORIGIN, processors=('of_alias',), targets=('b',), lenient=True),
             'example.org.': ZoneSetting(alias=ORIGIN),
             ORIGIN: setting('a', processors=('of_zone',))}
    run = manager(source, a, b, zones=zones,
                  processors={each: Diarist(each, diary) for each in ('of_alias', 'of_zone')})
    run.sync(dry_run=False)
    assert list(b.zones) == ['example.net.'] and sorted(a.zones) == [ORIGIN, 'example.org.']
    assert b.zones['example.net.'] == zone('@ 300 MX 10 mail.example.com.\nwww 300 A 192.0.2.1', origin='example.net.')
    assert [each for each in diary if 'source zone' in each] == [
        'of_zone: source zone from 1', 'of_alias: source zone from 0 leniently']
    assert source.diary == ['source: populate desired example.com.']


def test_an_alias_alone_reads_the_other_zone_and_leaves_that_as_it_is() -> None:
    source, target = Memory('source').has(TWO), Memory('target')
    run = manager(source, target, zones={'example.net.': ZoneSetting(alias=ORIGIN), ORIGIN: setting('target')})
    assert [result.zone for result in run.sync(['example.net.'], dry_run=False).results] == ['example.net.']
    assert list(target.zones) == ['example.net.']
    assert run.dump('example.net.') == target.zones['example.net.']
    source.broken = 'it broke off'
    failed = run.sync(['example.net.'])
    assert [result.error for result in failed.results] == ['example.com. cannot be read: it failed itself.']


def test_an_alias_is_as_strict_as_it_says() -> None:
    source = Memory('source').has('www 300 A 192.0.2.1\nwww 300 CNAME mail.example.com.')
    run = manager(source, Memory('target', strict_supports=False), zones={
        ORIGIN: setting('target', lenient=True), 'example.net.': ZoneSetting(alias=ORIGIN),
        'example.org.': ZoneSetting(alias=ORIGIN, lenient=True)})
    assert [(result.zone, result.has_failed) for result in run.sync().results] == [
        (ORIGIN, False), ('example.net.', True), ('example.org.', False)]


def test_an_alias_of_nothing_or_of_an_alias_is_refused() -> None:
    zones = {'a.example.': ZoneSetting(alias='b.example.'), 'b.example.': ZoneSetting(alias='c.example.')}
    with pytest.raises(InvalidField, match='a.example.: it is an alias of b.example., which is an alias itself'):
        manager(Memory('source'), zones=zones).sync(['a.example.'])
    with pytest.raises(InvalidField, match='b.example.: it is an alias of c.example., and there is no such zone'):
        manager(Memory('source'), zones=zones).sync(['b.example.'])


def test_a_star_stands_for_the_zones_that_sources_list() -> None:
    source = Memory('source')
    for name in ('example.com.', 'a.example.com.', 'example.net.', '2.0.192.in-addr.arpa.'):
        source.has('www 300 TXT "x"', name)
    target, arpa, other = Memory('target'), Memory('arpa'), Memory('other')
    zones = {'*': setting('target'), '*.arpa': setting('arpa', glob='*.arpa.'), 'example.net.': setting('other')}
    zones = {'*.arpa': zones['*.arpa'], **zones}
    run = manager(source, target, arpa, other, zones=zones)
    assert run.sync(dry_run=False).applied == 4
    assert sorted(target.zones) == ['a.example.com.', 'example.com.'] and list(other.zones) == ['example.net.']
    assert list(arpa.zones) == ['2.0.192.in-addr.arpa.']
    assert run.get_zone('example.com.').sub_zones == {'a.example.com.'}
    source.has('www 300 TXT "x"', 'example.org.')
    assert run.sync(dry_run=False).applied == 1 and 'example.org.' in target.zones


def test_a_star_whose_source_cannot_list_fails_visibly_and_named_zones_go_on() -> None:
    bad, good, target = Memory('bad'), Memory('good').has(TWO), Memory('target')
    bad.broken = 'no answer'
    run = manager(bad, good, target, zones={'*': setting('target', source='bad'),
                                            ORIGIN: setting('target', source='good')})
    outcome = run.sync(dry_run=False)
    assert [(result.zone, result.error) for result in outcome.failed] == [('*', 'bad cannot be read: no answer.')]
    assert outcome.applied == 2
    assert run.sync([ORIGIN]).failed == []


def test_zones_below_are_their_own_and_come_first() -> None:
    """Z-02."""
    source, target = Memory('source').has(TWO).has('www 300 A 192.0.2.9', 'a.example.com.'), Memory('target')
    zones = {each: setting('target') for each in (ORIGIN, 'a.example.com.', 'xexample.com.')}
    run = manager(source, target, zones=zones)
    assert run.get_zone(ORIGIN).sub_zones == {'a.example.com.'}
    assert [result.zone for result in run.sync(dry_run=False).results] == ['a.example.com.', ORIGIN, 'xexample.com.']
    source.has(f'{TWO}\nwww.a 300 A 192.0.2.9\na 300 NS ns.example.net.')
    assert run.sync().failed[0].error == \
        'www.a.example.com. A belongs to the zone a.example.com., which is configured on its own.'


def test_what_a_source_has_of_zones_below_can_be_left_out() -> None:
    source, target = Memory('source').has(f'{TWO}\nwww.a 300 A 192.0.2.9\na 300 NS ns.example.net.'), Memory('target')
    run = manager(source, target, zones={ORIGIN: setting('target', ignore_subzone_adds=True),
                                         'a.example.com.': setting('target')})
    run.sync([ORIGIN], dry_run=False)
    assert target.zones[ORIGIN] == zone(f'{TWO}\na 300 NS ns.example.net.')


def test_a_run_can_be_for_some_zones_sources_and_targets() -> None:
    one, two = Memory('one').has(TWO), Memory('two').has(TWO, 'example.net.')
    a, b = Memory('a'), Memory('b')
    zones = {ORIGIN: setting('a', 'b', source='one'), 'example.net.': setting('a', source='two')}
    run = manager(one, two, a, b, zones=zones)

    def pairs(*args: object) -> list[tuple[str, str]]:
        return [(result.zone, result.target_id) for result in run.sync(*args).results]  # type: ignore[arg-type]

    assert pairs() == [(ORIGIN, 'a'), (ORIGIN, 'b'), ('example.net.', 'a')]
    assert pairs(['example.net.']) == [('example.net.', 'a')]
    assert pairs((), ['one']) == [(ORIGIN, 'a'), (ORIGIN, 'b')]
    assert pairs((), (), ['b']) == [(ORIGIN, 'b')]
    assert pairs(['example.net.'], (), ['b']) == []
    for args, why in ((([ORIGIN, 'nowhere.'],), 'zones: there is no nowhere.'), (((), ['three']), 'sources: .* three'),
                      (((), (), ['c', 'd']), 'targets: there is no c and no d')):
        with pytest.raises(InvalidField, match=why):
            pairs(*args)


def test_zones_are_planned_at_once_and_told_in_order() -> None:
    names = [f'{letter}.example.' for letter in 'dacb']
    together = threading.Barrier(4, timeout=10)

    class Slow(Memory):
        def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
            together.wait()
            return super()._populate(zone, target, lenient)

    source, target = Slow('source'), Memory('target')
    for name in names:
        source.has(TWO, name)
    outcome = manager(source, target, zones={each: setting('target') for each in names}, max_workers=4).sync(
        dry_run=False)
    assert [result.zone for result in outcome.results] == sorted(names) and outcome.applied == 8


def test_targets_are_changed_at_once_and_the_zones_of_one_in_turn() -> None:
    together = threading.Barrier(2, timeout=10)
    source, a, b = Memory('source').has(TWO).has(TWO, 'example.net.'), Memory('a'), Memory('b')
    for each in (a, b):
        each.before_apply = lambda plan: together.wait()
    run = manager(source, a, b, zones={each: setting('a', 'b') for each in (ORIGIN, 'example.net.')}, max_workers=2)
    assert run.sync(dry_run=False).applied == 8
    assert [each for each in a.diary if 'apply' in each] == ['a: apply example.com.', 'a: apply example.net.']


def test_a_provider_that_keeps_what_it_read_is_asked_anew_by_each_run() -> None:
    class Keeping(Memory):
        def close(self) -> None:
            self.diary[:] = ['closed']

    source = Keeping('source').has(TWO)
    run = manager(source, Memory('target'))
    for read in (run.sync, lambda: run.compare(['source'], ['target'], ORIGIN), run.validate):
        source.diary.clear()
        read()
        assert source.diary == ['closed', 'source: populate desired example.com.']


def test_a_zone_is_dumped_as_sources_and_processors_make_it() -> None:
    other, source = Memory('other').has('www 60 A 192.0.2.8'), Memory('source').has(TWO)
    run = manager(source, Memory('target'), other, zones={ORIGIN: setting('target')})
    assert run.dump(ORIGIN) == source.zones[ORIGIN]
    assert run.dump(ORIGIN, ['other']) == other.zones[ORIGIN]
    with pytest.raises(InvalidField, match='source: there is no nobody'):
        run.dump(ORIGIN, ['nobody'])
    with pytest.raises(InvalidField, match='zone: there is no example.org.'):
        run.dump('example.org.')
    source.has('www 60 A 192.0.2.8\nwww 60 CNAME mail.example.com.')
    with pytest.raises(Exception, match='CNAME must be the only record'):
        run.dump(ORIGIN)
    assert len(run.dump(ORIGIN, lenient=True)) == 2


def test_two_sides_are_compared_in_what_both_can_hold() -> None:
    class Addresses(Memory):
        SUPPORTS = frozenset({'A'})

    a = Memory('a').has('www 300 A 192.0.2.1\nwww 300 TXT "only here"')
    b = Addresses('b').has('www 300 A 192.0.2.2\nold 300 A 192.0.2.3')
    found = manager(a, b).compare(['a'], ['b'], ORIGIN)
    assert list(map(str, found)) == [
        'Delete old.example.com. 300 A 192.0.2.3',
        'Update www.example.com. 300 A 192.0.2.2 -> www.example.com. 300 A 192.0.2.1']


def test_validating_reads_every_source_and_tells_all_that_is_wrong() -> None:
    source, bad = Memory('source').has(TWO), Memory('bad').has(TWO, 'example.net.')
    zones = {ORIGIN: setting('source'), 'example.net.': setting('source', source='bad'),
             'example.org.': ZoneSetting(alias='example.info.'), '*': setting('source', source='bad')}
    run = manager(source, bad, zones=zones)
    bad.broken = 'it broke off'
    assert run.validate() == ['zones.*: bad cannot be read: it broke off.',
                              'zones.example.net.: bad cannot be read: it broke off.',
                              'zones.example.org.: example.org.: it is an alias of example.info., and there is no such '
                              'zone.']
    bad.broken = None
    assert manager(source, bad, zones={ORIGIN: setting('source'), '*': setting('source', source='bad')}
                   ).validate() == []


def test_a_source_that_cannot_be_written_is_no_target() -> None:
    from designate_pool.planner.providers.base import BaseSource
    with pytest.raises(InvalidField, match='target: only can only be read from'):
        manager(Memory('source'), BaseSource('only')).sync()


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
