"""What a provider is when nothing is said, and what its hooks may do."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import octodns.processor.base
import octodns.provider.base
import pytest

from designate_pool.errors import SupportsException
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.processors.filters import TypeAllow, TypeReject
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource, plan_for
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import Extra, rrset
from tests.fixtures.plans import planned
from tests.unit.planner.values import Target, record, text_of, told, zone

A, ALIAS = 'www 300 A 192.0.2.1', 'www 300 CNAME a.example.net.'


def test_the_settings_of_a_provider_and_their_defaults() -> None:
    """P-01."""
    made = BaseProvider('plain')
    assert isinstance(made, BaseSource)
    settings = {'apply_disabled': False, 'update_pcent_threshold': 0.3, 'delete_pcent_threshold': 0.3,
                'strict_supports': True, 'root_ns_warnings': True}
    assert made.id == 'plain' and {name: getattr(made, name) for name in settings} == settings
    assert list(inspect.signature(BaseProvider).parameters)[:6] == ['id', *settings]
    other = BaseProvider('other', True, 0.1, 0.2, False, False)
    assert [getattr(other, name) for name in settings] == [True, 0.1, 0.2, False, False]


@pytest.mark.parametrize(('theirs', 'ours', 'hooks'), [
    (octodns.provider.base.BaseProvider, BaseProvider, (
        'plan', 'apply', '_apply', '_process_desired_zone', '_process_existing_zone', '_include_change',
        '_extra_changes', '_plan_meta', 'supports_warn_or_except', 'populate')),
    (octodns.processor.base.BaseProcessor, BaseProcessor, (
        'process_source_zone', 'process_target_zone', 'process_source_and_target_zones', 'process_plan'))])
def test_hooks_are_called_as_those_of_octodns_are(theirs: type, ours: type, hooks: Sequence[str]) -> None:
    for hook in hooks:
        assert list(inspect.signature(getattr(ours, hook)).parameters) == list(
            inspect.signature(getattr(theirs, hook)).parameters)


def test_hooks_that_are_not_written_let_everything_pass_and_add_nothing() -> None:
    """P-07, P-11, P-12, P-13."""
    plain, desired, change = BaseProvider('plain'), zone(A), changes.create(record(A))
    assert plain._include_change(change)
    assert list(plain._extra_changes(zone(), desired, [change])) == []
    assert plain._plan_meta(zone(), desired, [change]) is None
    assert plain._process_desired_zone(desired) is desired
    existing = zone(A)
    assert plain._process_existing_zone(existing, desired) is existing
    assert text_of(desired) == text_of(existing) == text_of(zone(A))


@pytest.mark.parametrize('name', ['SUPPORTS', 'SUPPORTS_GEO', 'SUPPORTS_DYNAMIC', 'SUPPORTS_POOL_VALUE_STATUS',
                                  'SUPPORTS_DYNAMIC_SUBNETS', 'SUPPORTS_MULTIVALUE_PTR', 'SUPPORTS_ROOT_NS'])
def test_what_a_class_can_hold_is_said_by_the_class(name: str) -> None:
    """P-22."""
    said = frozenset({'A'}) if name == 'SUPPORTS' else not getattr(BaseProvider, name)
    made = type('Other', (Target,), {name: said})()
    assert getattr(made, name) == said and getattr(BaseProvider('plain'), name) != said
    assert made.supports(record(A)) and BaseProvider('plain').supports(record('www 300 TXT "x"'))
    assert made.supports(record('www 300 TXT "x"')) is (name != 'SUPPORTS')


POOLS = {'one': {'values': [{'value': '192.0.2.1', 'status': 'up'}, {'value': '192.0.2.2'}], 'fallback': 'two'},
         'two': {'values': [{'value': '192.0.2.3', 'status': 'obey'}]}, 'three': {'values': [{'value': '192.0.2.4'}]}}
RULES = [{'pool': 'three', 'subnets': ['198.51.100.0/24']},
         {'pool': 'one', 'geos': ['EU'], 'subnets': ['192.0.2.0/24']},
         {'pool': 'two'}]
ALL = ('SUPPORTS_GEO', 'SUPPORTS_DYNAMIC', 'SUPPORTS_POOL_VALUE_STATUS', 'SUPPORTS_DYNAMIC_SUBNETS')


@pytest.mark.parametrize(('without', 'expected', 'why'), [
    ('', {'pools': POOLS, 'rules': RULES, 'geo': {'EU': ['192.0.2.9']}}, ''),
    ('SUPPORTS_GEO', {'pools': POOLS, 'rules': RULES}, 'geo answers'),
    ('SUPPORTS_DYNAMIC', {'geo': {'EU': ['192.0.2.9']}}, 'dynamic answers'),
    ('SUPPORTS_POOL_VALUE_STATUS', {
        'pools': {**POOLS, 'one': {'values': [{'value': '192.0.2.1'}, {'value': '192.0.2.2'}], 'fallback': 'two'}},
        'rules': RULES, 'geo': {'EU': ['192.0.2.9']}}, 'a status of values in pools one'),
    ('SUPPORTS_DYNAMIC_SUBNETS', {
        'pools': {name: POOLS[name] for name in ('one', 'two')},
        'rules': [{'pool': 'one', 'geos': ['EU']}, {'pool': 'two'}], 'geo': {'EU': ['192.0.2.9']}},
     'subnets in rules 1, 2'),
])
def test_what_a_class_cannot_hold_of_dynamic_answers_is_an_error_or_made_simpler(
        without: str, expected: dict[str, object], why: str) -> None:
    """P-22: what octoDNS does with each of the features."""
    kind = type('Other', (Target,), {name: name != without for name in ALL})
    extra = Extra(dynamic={'pools': POOLS, 'rules': RULES, 'geo': {'EU': ['192.0.2.9']}})
    desired = zone()
    desired.add_record(record(A)._replace(extra=extra))
    plan = kind(strict_supports=False).plan(desired)
    assert plan is not None
    (change,) = plan.changes
    assert change.record.extra.dynamic == expected and change.record.rdatas == ('192.0.2.1',)
    (there,) = desired
    assert there.extra == extra, 'what was given is as it was'
    if why:
        with pytest.raises(SupportsException, match=why):
            kind().plan(desired)


@pytest.mark.parametrize(('processors', 'supports', 'managed'), [
    ([], None, None), ([], {'A', 'MX'}, {'A', 'MX'}), ([TypeAllow('only', ['a', 'txt'])], None, {'A', 'TXT'}),
    ([TypeAllow('only', ['a', 'txt'])], {'A', 'MX'}, {'A'}), ([TypeReject('not', ['MX'])], {'A', 'MX'}, {'A'})])
def test_a_plan_knows_the_types_that_are_managed(processors: list[BaseProcessor], supports: set[str] | None,
                                                 managed: set[str] | None) -> None:
    """E-09."""
    kind = type('Other', (Target,), {'SUPPORTS': None if supports is None else frozenset(supports)})
    plan = plan_for(kind(zone()), zone(A), processors)
    assert plan is not None and plan.managed_types == managed
    assert plan.document()['managed_types'] == (None if managed is None else sorted(managed))


def test_what_was_applied_is_added_up_as_a_number() -> None:
    """Z-35, P-16: who adds up what targets applied gets the number of changes."""
    total = 0
    for text in (A, f'{A}\nmore 60 A 192.0.2.2'):
        target = Target(zone())
        plan = planned(target, zone(text))
        total += target.apply(plan)
    assert total == 3 and sum([ApplyResult(2), ApplyResult(3, 1)]) == 5 and int(ApplyResult(4, 1, 1)) == 4


@pytest.mark.parametrize('lenient', [False, True])
def test_a_hook_may_change_what_is_there_and_break_a_rule_only_leniently(lenient: bool) -> None:
    """P-10."""
    class Adding(Target):
        def _process_existing_zone(self, existing: Zone, desired: Zone, lenient: bool = False) -> Zone:
            existing = super()._process_existing_zone(existing, desired, lenient)
            existing.remove_record(record('hidden 300 A 192.0.2.1'))
            existing.add_record(record(ALIAS), lenient=lenient)
            return existing

    target, desired = Adding(zone(f'{A}\nhidden 300 A 192.0.2.1')), zone(A)
    if not lenient:
        with pytest.raises(Exception, match='CNAME must be the only record'):
            target.plan(desired)
        return
    plan = planned(target, desired, lenient=True)
    assert told(plan.changes) == ['Delete www 300 CNAME a.example.net.']


def test_a_record_cannot_be_changed_in_place() -> None:
    """P-08, Q-09: another takes its place, in the zone that is given and in no copy of it."""
    made = zone(A)
    copy = made.copy()
    (found,) = made
    for field, value in (('ttl', 60), ('rdatas', ('192.0.2.9',)), ('name', 'other.example.com.')):
        with pytest.raises(AttributeError):
            setattr(found, field, value)
    copy.add_record(found._replace(ttl=60), replace=True)
    assert text_of(made) == ['www.example.com. 300 A 192.0.2.1']
    assert text_of(copy) == ['www.example.com. 60 A 192.0.2.1']


def test_a_processors_plan_stands_for_what_the_target_has() -> None:
    """Q-13: the zones in a plan need not fit its changes."""
    target = Target(zone(A))
    plan = Plan(zone(A), zone(), [changes.create(rrset('new.example.com.', 'A', 60, ['192.0.2.7']))], True)
    assert target.apply(plan).applied == 1
    assert target.has is not None and text_of(target.has) == ['new.example.com. 60 A 192.0.2.7',
                                                              'www.example.com. 300 A 192.0.2.1']
