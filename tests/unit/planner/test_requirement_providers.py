"""What a provider is when nothing is said, and what its hooks may do."""

from __future__ import annotations

import inspect

import pytest

from designate_pool.planner import changes
from designate_pool.planner.plan import Plan
from designate_pool.planner.providers import BaseProvider, BaseSource
from designate_pool.planner.records import rrset
from designate_pool.planner.zone import Zone
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
        with pytest.raises(Exception, match='CNAME must be alone'):
            target.plan(desired)
        return
    plan = target.plan(desired, lenient=True)
    assert plan is not None and told(plan.changes) == ['Delete www 300 CNAME a.example.net.']


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
