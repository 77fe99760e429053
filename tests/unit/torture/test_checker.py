"""The checker of the torture kit: each rule with histories that keep it and histories that break it."""

from __future__ import annotations

import math

import pytest

from tests.torture import checker
from tests.torture.history import GONE
from tests.unit.torture.conftest import BELOW, ZONE, Story

ONE, TWO, THREE = '10.0.0.1', '10.0.0.2', '10.0.0.3'


def healed(story: Story, life: int, serial: int, *records: str) -> Story:
    """The end of a history: the zone as the API and the servers have it."""
    story.heal()
    story.show(life, serial)
    story.hand_over('xyz', life, serial, *records)
    return story


def test_which_names_have_a_zone_in_the_end(story: Story) -> None:
    story.create(1, 10)
    story.create(2, 10, zone=BELOW)
    story.delete(3, 2, 11, zone=BELOW)
    story.heal()
    story.show(1, 10)
    story.show(2, None, GONE, zone=BELOW)
    assert checker.living(story.events) == ([ZONE], [BELOW])


def test_a_whole_life_breaks_no_rule(story: Story) -> None:
    story.create(1, 10)
    story.serve('xyz', None, None)
    story.show(1, 10, 'PENDING')
    story.serve('xy', 1, 10)
    story.show(1, 10)
    story.write(2, 1, ONE, 11)
    story.hand_over('x', 1, 11, ONE)
    story.write(3, 1, TWO, 12)
    story.hand_over('yz', 1, 12, TWO)
    story.show(1, 12)
    story.delete(4, 1, 13)
    story.serve('xyz', None, None)
    story.show(1, None, GONE)
    story.create(5, 14)
    story.write(6, 5, THREE, 15)
    assert checker.check(healed(story, 5, 15, THREE).events) == []


# lost

def test_an_acknowledged_change_is_there_in_the_end(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE)
    assert healed(story, 1, 11, ONE).rules() == set()


def test_an_acknowledged_change_that_is_missing_is_lost(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE)
    breaches = checker.check(healed(story, 1, 11).events)
    assert {each.rule for each in breaches} == {'lost'}
    assert 'x has no w.a.example. A at serial 11; what was left is that of operation 2' in str(breaches[0])


def test_a_zone_without_any_records_is_judged_unless_it_is_being_deleted(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, 11)
    story.hand_over('x', 1, 11)
    assert story.rules() == {'lost'}


def test_a_server_that_deletes_the_zone_may_hand_over_an_empty_one(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, 11)
    story.invoke(3, 'delete_zone', 1)
    story.hand_over('x', 1, 11)
    story.end(3, serial=12)
    assert story.rules() == set()


def test_the_later_of_two_changes_wins(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE)
    story.write(3, 1, TWO)
    assert healed(story, 1, 12, TWO).rules() == set()


def test_a_change_that_comes_back_after_a_later_one_is_lost(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE)
    story.write(3, 1, TWO)
    assert healed(story, 1, 12, ONE).rules() == {'lost'}


@pytest.mark.parametrize('winner', [ONE, TWO])
def test_of_two_changes_at_once_either_may_win(story: Story, winner: str) -> None:
    story.create(1, 10)
    for op, record in ((2, ONE), (3, TWO)):
        story.invoke(op, 'change', 1, (f'w.{ZONE}', 'A', record))
    story.end(2)
    story.end(3)
    assert healed(story, 1, 12, winner).rules() == set()


@pytest.mark.parametrize(('winner', 'broken'), [(ONE, {'lost'}), (TWO, set())])
def test_of_two_changes_at_once_the_one_with_the_newer_serial_wins(story: Story, winner: str,
                                                                   broken: set[str]) -> None:
    story.create(1, 10)
    for op, record in ((2, ONE), (3, TWO)):
        story.invoke(op, 'change', 1, (f'w.{ZONE}', 'A', record))
    story.end(3, serial=12)
    story.end(2, serial=11)
    assert healed(story, 1, 12, winner).rules() == broken


@pytest.mark.parametrize('records', [(), (ONE,)])
def test_a_change_of_unknown_outcome_may_have_happened_or_not(story: Story, records: tuple[str, ...]) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, how='unknown')
    assert healed(story, 1, 11, *records).rules() == set()


def test_a_change_of_unknown_outcome_may_happen_after_a_later_one(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, how='unknown')
    story.write(3, 1, TWO)
    assert healed(story, 1, 12, ONE).rules() == set()


def test_a_change_of_unknown_outcome_that_was_seen_cannot_vanish(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, how='unknown')
    story.hand_over('x', 1, 11, ONE)
    story.show(1, 12)
    assert healed(story, 1, 12).rules() == {'lost'}


def test_a_change_of_unknown_outcome_that_was_seen_does_not_come_back(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, how='unknown')
    story.hand_over('x', 1, 11, ONE)
    story.write(3, 1, TWO)
    assert healed(story, 1, 12, ONE).rules() == {'lost'}


@pytest.mark.parametrize(('before', 'after', 'broken'), [
    (None, None, set()), (ONE, TWO, set()), (ONE, None, {'lost'}), (None, TWO, {'lost'})])
def test_what_one_operation_changes_is_changed_together(story: Story, before: str | None, after: str | None,
                                                        broken: set[str]) -> None:
    story.create(1, 10)
    story.invoke(2, 'change', 1, (f'v.{ZONE}', 'A', ONE), (f'w.{ZONE}', 'A', TWO))
    story.end(2, 'unknown')
    story.hand_over('x', 1, 11)
    story.events[-1]['rrsets'] += [[f'{name}.{ZONE}', 'A', 60, [record]]
                                   for name, record in (('v', before), ('w', after)) if record]
    assert story.rules() == broken


@pytest.mark.parametrize(('records', 'broken'), [((), set()), ((ONE,), {'lost'})])
def test_what_was_deleted_is_not_there(story: Story, records: tuple[str, ...], broken: set[str]) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE)
    story.write(3, 1, '')
    assert healed(story, 1, 12, *records).rules() == broken


def test_an_older_serial_need_not_have_a_later_change(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, 11)
    story.write(3, 1, TWO, 12)
    story.hand_over('x', 1, 11, ONE)
    story.hand_over('y', 1, 10)
    assert healed(story, 1, 12, TWO).rules() == set()


@pytest.mark.parametrize('records', [(), (TWO,)])
def test_a_serial_has_what_was_changed_up_to_it(story: Story, records: tuple[str, ...]) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, 11)
    story.write(3, 1, TWO, 12)
    story.hand_over('x', 1, 11, *records)
    assert story.rules() == {'lost'}


@pytest.mark.parametrize(('serial', 'broken'), [(10, set()), (11, {'lost'})])
def test_a_change_without_serial_is_below_what_was_told_next(story: Story, serial: int, broken: set[str]) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE)
    story.show(1, 11, 'PENDING')
    story.hand_over('x', 1, serial)
    assert story.rules() == broken


def test_what_nobody_wrote_is_nowhere(story: Story) -> None:
    story.create(1, 10)
    story.hand_over('x', 1, 10, '192.0.2.1')
    assert story.rules() == {'lost'}


def test_another_ttl_is_another_content(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE)
    healed(story, 1, 11, ONE).events[-1]['rrsets'][1][2] = 61
    assert story.rules() == {'lost', 'equal'}


def test_a_zone_that_nobody_deleted_does_not_vanish(story: Story) -> None:
    story.create(1, 10)
    story.show(1, None, GONE)
    assert story.rules() == {'lost'}


def test_a_zone_that_could_not_be_created_is_not_missed(story: Story) -> None:
    story.create(1, how='fail')
    story.create(2, how='unknown')
    story.heal()
    story.serve('xyz', None, None)
    assert story.rules() == set()


def test_a_deleted_zone_does_not_come_back(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1)
    story.show(1, None, GONE)
    story.show(1, 11, 'PENDING')
    assert story.rules() == {'lost'}


@pytest.mark.parametrize(('how', 'broken'), [('fail', set()), ('unknown', set()), ('ok', {'lost'})])
def test_no_change_is_acknowledged_after_the_deletion(story: Story, how: str, broken: set[str]) -> None:
    story.create(1, 10)
    story.delete(2, 1, 11)
    story.write(3, 1, ONE, how=how)
    assert story.rules() == broken


def test_a_change_may_be_acknowledged_during_the_deletion(story: Story) -> None:
    story.create(1, 10)
    story.invoke(2, 'delete_zone', 1)
    story.write(3, 1, ONE, 11)
    story.end(2, serial=12)
    assert story.rules() == set()


# refused

def test_what_was_refused_is_nowhere(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, how='fail')
    story.hand_over('x', 1, 11, ONE)
    assert story.rules() == {'refused'}


@pytest.mark.parametrize(('first', 'second'), [('ok', 'fail'), ('fail', 'ok'), ('fail', 'unknown')])
def test_what_was_refused_may_be_what_another_operation_has_written(story: Story, first: str, second: str) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, how=first)
    story.write(3, 1, ONE, how=second)
    story.hand_over('x', 1, 11, ONE)
    assert story.rules() == set()


# serials

def test_the_api_tells_no_older_serial(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 11, 'PENDING')
    story.show(1, 10, 'PENDING')
    assert story.rules() == {'serials'}


def test_answers_that_overtake_each_other_are_no_step_back(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 11, 'PENDING')
    story.show(1, 10, 'PENDING', asked=story.events[-1]['t'] - 0.5)
    assert story.rules() == set()


@pytest.mark.parametrize(('before', 'after', 'broken'), [
    (4294967295, 0, set()), (4294967295, 5, set()), (5, 4294967295, {'serials'}), (0, 2147483647, set())])
def test_serials_go_round(story: Story, before: int, after: int, broken: set[str]) -> None:
    story.create(1, before)
    story.show(1, after, 'PENDING')
    assert story.rules() == broken


@pytest.mark.parametrize(('serial', 'broken'), [(12, set()), (11, {'serials'}), (1, {'serials'})])
def test_the_next_zone_of_a_name_begins_above_the_former(story: Story, serial: int, broken: set[str]) -> None:
    story.create(1, 10)
    story.delete(2, 1, 11)
    story.create(3, serial)
    assert story.rules() == broken


def test_the_former_zone_may_be_asked_for_while_it_is_deleted(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1, 11)
    story.create(3, 12)
    story.show(1, 11, 'PENDING')
    assert story.rules() == set()


def test_two_changes_have_two_serials(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, 11)
    story.write(3, 1, TWO, 11, name='v')
    assert story.rules() == {'serials'}


def test_a_server_serves_no_older_serial(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 12, 'PENDING')
    story.serve('x', 1, 12)
    story.serve('x', 1, 11)
    assert story.rules() == {'serials'}


def test_each_server_has_its_own_pace(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 12, 'PENDING')
    story.serve('x', 1, 12)
    story.serve('y', 1, 11)
    assert story.rules() == set()


def test_a_server_that_lost_the_zone_begins_no_earlier(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 12, 'PENDING')
    story.serve('x', 1, 12)
    story.serve('x', None, None)
    story.serve('x', 1, 11)
    assert story.rules() == {'serials'}


@pytest.mark.parametrize(('target', 'broken'), [('x', set()), ('y', {'serials'}), ('x-y', {'serials'})])
def test_a_fault_of_a_server_excuses_that_one(story: Story, target: str, broken: set[str]) -> None:
    story.create(1, 10)
    story.show(1, 12, 'PENDING')
    story.serve('x', 1, 12)
    story.fault(target, 'begin')
    story.fault(target, 'end')
    story.serve('x', 1, 11)
    assert story.rules() == broken


def test_a_fault_before_excuses_nothing(story: Story) -> None:
    story.create(1, 10)
    story.fault('x', 'begin')
    story.fault('x', 'end')
    story.show(1, 12, 'PENDING')
    story.serve('x', 1, 12)
    story.serve('x', 1, 11)
    assert story.rules() == {'serials'}


@pytest.mark.parametrize(('serial', 'broken'), [(11, set()), (12, {'serials'})])
def test_no_server_is_ahead_of_what_the_api_tells_afterwards(story: Story, serial: int, broken: set[str]) -> None:
    story.create(1, 10)
    story.serve('x', 1, serial)
    story.show(1, 11, 'PENDING')
    assert story.rules() == broken


# active

def test_active_needs_enough_servers(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 10)
    story.serve('x', 1, 10)
    story.serve('yz', None, None)
    assert story.rules() == {'active'}


def test_active_needs_no_more_than_enough(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 10)
    story.serve('xy', 1, 10)
    story.serve('z', None, None)
    assert story.rules() == set()


@pytest.mark.parametrize(('servers', 'broken'), [('x', set()), ('z', {'active'}), ('', {'active'})])
def test_a_server_that_has_moved_does_not_count_until_it_is_filled(servers: str, broken: set[str]) -> None:
    story = Story('xyz', 50)
    story.create(1, 10)
    story.fault('z', 'begin', fault='move')
    story.fault('z', 'end', fault='move')
    story.write(2, 1, ONE, 11)
    story.show(1, 11)
    story.serve(servers, 1, 11)
    story.serve(sorted(set('xyz') - set(servers)), 1, 10)
    assert story.rules() == broken


def test_an_older_serial_is_not_enough(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, 11)
    story.show(1, 11)
    story.serve('yz', 1, 10)
    assert story.rules() == {'active'}


def test_a_newer_serial_is_enough(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 10)
    story.write(2, 1, ONE, 11)
    story.serve('yz', 1, 11)
    assert story.rules() == set()


def test_silence_is_no_evidence(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 10)
    story.serve('yz', None, None, why='no answer')
    assert story.rules() == set()


def test_an_answer_from_before_is_no_evidence(story: Story) -> None:
    story.create(1, 10)
    story.serve('yz', None, None)
    story.show(1, 10)
    assert story.rules() == set()


def test_an_answer_that_was_asked_for_before_is_no_evidence(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 10)
    for server in 'yz':
        story.add('served', asked=story.events[2]['t'], server=server, zone=ZONE, life=None, serial=None)
    assert story.rules() == set()


@pytest.mark.parametrize('spoils', [False, True])
def test_a_server_may_lose_the_zone_by_a_fault_after_it_was_active(story: Story, spoils: bool) -> None:
    story.create(1, 10)
    story.show(1, 10)
    story.fault('y', 'begin', spoils)
    story.fault('y', 'end', spoils)
    story.serve('yz', None, None)
    assert story.rules() == set()


def test_a_server_that_only_stood_still_has_no_excuse(story: Story) -> None:
    story.create(1, 10)
    story.fault('y', 'begin', excuses=False)
    story.show(1, 10)
    story.fault('y', 'end', excuses=False)
    story.serve('yz', None, None)
    assert story.rules() == {'active'}


def test_a_fault_from_before_the_serial_was_new_excuses_nothing(story: Story) -> None:
    story.create(1, 10)
    story.fault('y', 'begin')
    story.fault('y', 'end')
    story.show(1, 10, 'PENDING')
    story.write(2, 1, ONE, 11)
    story.show(1, 11)
    story.serve('yz', 1, 10)
    assert story.rules() == {'active'}


def test_a_zone_that_is_being_deleted_may_be_gone(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 10)
    story.invoke(2, 'delete_zone', 1)
    story.serve('yz', None, None)
    assert story.rules() == set()


def test_the_former_zone_does_not_make_the_next_one_active(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1, 11)
    story.create(3, 12)
    story.show(3, 12)
    story.serve('yz', 1, 10)
    assert story.rules() == {'active'}


# deleted

def test_gone_means_that_enough_servers_have_dropped_it(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1)
    story.show(1, None, GONE)
    story.serve('yz', 1, 10)
    assert story.rules() == {'deleted'}


def test_one_server_may_still_serve_what_is_gone(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1)
    story.show(1, None, GONE)
    story.serve('z', 1, 10)
    story.serve('xy', None, None)
    assert story.rules() == set()


def test_a_server_that_came_back_with_what_is_gone_is_excused(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1)
    story.show(1, None, GONE)
    story.fault('y', 'begin')
    story.serve('yz', 1, 10)
    assert story.rules() == set()


def test_the_next_zone_of_a_name_may_replace_what_is_gone(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1, 11)
    story.create(3, 12)
    story.show(1, None, GONE)
    story.serve('yz', 1, 10)
    assert story.rules() == set()


# former

def test_a_server_does_not_return_to_the_former_zone(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1, 11)
    story.create(3, 12)
    story.serve('x', 3, 12)
    story.serve('x', 1, 10)
    assert story.rules() == {'former', 'serials'}


def test_a_server_may_serve_the_former_zone_until_it_has_the_next(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1, 11)
    story.create(3, 12)
    story.serve('x', 1, 10)
    story.serve('x', 3, 12)
    assert story.rules() == set()


def test_the_next_zone_has_no_record_of_the_former(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, 11)
    story.delete(3, 1, 12)
    story.create(4, 13)
    story.hand_over('x', 4, 13, ONE)
    assert story.rules() == {'former'}


# tenants

@pytest.mark.parametrize(('tenant', 'broken'), [('alpha', set()), ('beta', {'tenants'})])
def test_a_zone_is_shown_to_its_owner(story: Story, tenant: str, broken: set[str]) -> None:
    story.create(1, 10)
    story.show(1, 10, 'PENDING', tenant)
    assert story.rules() == broken


@pytest.mark.parametrize(('how', 'broken'), [('fail', set()), ('ok', {'tenants'})])
def test_a_zone_is_changed_by_its_owner(story: Story, how: str, broken: set[str]) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, how=how, tenant='beta')
    assert story.rules() == broken


def test_the_next_zone_has_no_record_of_another_tenant(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, 11)
    story.delete(3, 1, 12)
    story.create(4, 13, tenant='beta')
    story.hand_over('x', 4, 13, ONE)
    assert story.rules() == {'tenants'}


@pytest.mark.parametrize('first', [ZONE, BELOW])
@pytest.mark.parametrize(('tenant', 'broken'), [('alpha', set()), ('beta', {'tenants'})])
def test_no_zone_lies_below_or_above_anothers(story: Story, first: str, tenant: str, broken: set[str]) -> None:
    second = BELOW if first == ZONE else ZONE
    story.create(1, 10, zone=first)
    story.create(2, 10, zone=second, tenant=tenant)
    assert story.rules() == broken


def test_a_zone_below_anothers_that_may_be_deleted_already_is_no_breach(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1, how='unknown')
    story.create(3, 10, zone=BELOW, tenant='beta')
    assert story.rules() == set()


def test_what_a_trespasser_was_told_is_a_breach(story: Story) -> None:
    story.add('foreign', tenant='beta', what='GET /v2/zones/1 was answered with 200')
    assert story.rules() == {'tenants'}


# twice

def test_a_name_is_one_zone(story: Story) -> None:
    story.create(1, 10)
    story.create(2, 11)
    assert 'twice' in story.rules()


def test_of_two_creations_at_once_both_cannot_be_told_from_one_after_a_deletion(story: Story) -> None:
    story.create(1, 10)
    story.invoke(2, 'delete_zone', 1)
    story.create(3, 12)
    story.end(2, serial=11)
    assert story.rules() == set()


# equal

def test_contents_at_a_serial_are_the_same_everywhere(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, how='unknown')
    story.write(3, 1, TWO, how='unknown')
    story.hand_over('x', 1, 12, ONE)
    story.hand_over('y', 1, 12, TWO)
    assert story.rules() == {'equal'}


def test_a_server_that_was_made_to_lie_is_believed_at_the_end_alone(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE, 11)
    story.fault('x', 'begin', spoils=True)
    story.hand_over('x', 1, 11)
    story.fault('x', 'end', spoils=True)
    story.hand_over('x', 1, 11)
    story.heal()
    story.show(1, 11)
    story.hand_over('x', 1, 11)
    story.hand_over('xyz', 1, 11, ONE)
    assert story.rules() == set()
    story.hand_over('x', 1, 11)
    assert story.rules() == {'lost', 'equal'}


def test_a_server_that_was_made_to_lie_is_not_believed_of_a_zone_that_is_going(story: Story) -> None:
    story.create(1, 10)
    story.fault('x', 'begin', spoils=True)
    story.fault('x', 'end', spoils=True)
    story.delete(2, 1)
    story.heal()
    story.hand_over('x', 1, 10, ONE)
    assert not story.rules() & {'lost', 'equal'}


# healed

def test_in_the_end_every_server_has_the_serial(story: Story) -> None:
    story.create(1, 10)
    healed(story, 1, 10)
    story.hand_over('z', 1, 9)
    assert 'healed' in story.rules()


@pytest.mark.parametrize('status', ['PENDING', 'ERROR'])
def test_in_the_end_every_zone_is_active(story: Story, status: str) -> None:
    story.create(1, 10)
    healed(story, 1, 10)
    story.show(1, 10, status)
    assert story.rules() == {'healed'}


def test_in_the_end_what_was_deleted_is_gone_everywhere(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1)
    story.heal()
    story.serve('xy', None, None)
    story.serve('z', 1, 10)
    assert story.rules() == {'healed'}
    story.serve('z', None, None)
    assert story.rules() == set()


def test_in_the_end_what_was_deleted_is_not_shown(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1, 11)
    story.heal()
    story.serve('xyz', None, None)
    story.show(1, 11, 'PENDING')
    assert story.rules() == {'healed'}


def test_in_the_end_a_zone_of_unknown_deletion_is_as_shown(story: Story) -> None:
    story.create(1, 10)
    story.delete(2, 1, how='unknown')
    assert healed(story, 1, 10).rules() == set()


def test_a_server_that_says_nothing_in_the_end_is_not_healed(story: Story) -> None:
    story.create(1, 10)
    story.heal()
    story.show(1, 10)
    story.hand_over('xy', 1, 10)
    assert story.rules() == {'healed'}
    story.hand_over('z', 1, 10)
    assert story.rules() == set()


def test_what_comes_after_the_bound_is_too_late(story: Story) -> None:
    story.create(1, 10)
    story.heal()
    story.show(1, 10)
    story.hand_over('xy', 1, 10)
    story.serve('z', None, None, why='no answer')
    story.events[-1]['t'] += 60
    story.hand_over('z', 1, 10)
    assert story.rules() == {'healed'}


def test_a_zone_that_nobody_looked_at_is_not_called_healed(story: Story) -> None:
    story.create(1, 10)
    story.heal()
    assert story.rules() == {'healed'}


def test_how_long_it_took_to_heal(story: Story) -> None:
    story.create(1, 10)
    story.heal()
    begun = story.events[-1]['t']
    story.show(1, 10, 'PENDING')
    story.hand_over('xy', 1, 10)
    assert checker.seconds_to_consistent(story.events) is None
    story.show(1, 10)
    story.serve('z', None, None)
    story.hand_over('z', 1, 10)
    assert checker.seconds_to_consistent(story.events) == story.events[-1]['t'] - begun
    assert checker.unsettled(story.events) == []


# foreign

@pytest.fixture
def shared() -> Story:
    """A zone with one record into which somebody else writes on the server x, which is fed by records."""
    story = Story(fed='x')
    story.create(1, 10)
    story.write(2, 1, ONE, 11)
    story.write_foreign('x')
    return story


@pytest.mark.parametrize(('stays', 'broken'), [(True, set()), (False, {'foreign'})])
def test_what_somebody_else_wrote_stays(shared: Story, stays: bool, broken: set[str]) -> None:
    shared.hand_over('yz', 1, 11, ONE)
    shared.hand_over('x', 1, 11, ONE, foreign=stays)
    assert shared.rules() == broken


@pytest.mark.parametrize('fault', ['wipe', 'lose_zones', 'kill'])
def test_what_somebody_else_wrote_goes_with_the_zones_that_a_server_loses(shared: Story, fault: str) -> None:
    shared.fault('x', 'begin', fault=fault)
    shared.serve('x', None, None)
    shared.fault('x', 'end', fault=fault)
    shared.hand_over('x', 1, 11, ONE)
    assert shared.rules() == ({'foreign'} if fault == 'kill' else set())


def test_what_somebody_else_wrote_for_sure_must_stay_and_other_may(story: Story) -> None:
    story.create(1, 10)
    story.write_foreign('x', written=False)
    story.hand_over('x', 1, 10, foreign=True)
    story.hand_over('x', 1, 10)
    assert story.rules() == set()


def test_what_somebody_else_wrote_on_another_server_is_nowhere_else(shared: Story) -> None:
    shared.hand_over('y', 1, 11, ONE, foreign=True)
    assert shared.rules() == {'lost'}


@pytest.mark.parametrize(('records', 'foreign', 'broken'), [
    ((), True, set()), ((), False, {'foreign'}), ((ONE,), True, {'healed'})])
def test_a_deleted_zone_stays_with_what_somebody_else_wrote_alone(
        shared: Story, records: tuple[str, ...], foreign: bool, broken: set[str]) -> None:
    shared.delete(3, 1, 12)
    shared.serve('yz', None, None)
    shared.show(1, None, GONE)
    shared.hand_over('x', 1, 11, *records, foreign=foreign)
    shared.heal()
    shared.show(1, None, GONE)
    shared.serve('yz', None, None)
    shared.hand_over('x', 1, 11, *records, foreign=foreign)
    assert shared.rules() == broken
    assert checker.shared(shared.events) == {('x', ZONE)}


def test_a_deleted_zone_does_not_go_with_what_somebody_else_wrote(shared: Story) -> None:
    shared.delete(3, 1, 12)
    shared.heal()
    shared.show(1, None, GONE)
    shared.serve('xyz', None, None)
    assert shared.rules() == {'foreign'}


def test_what_somebody_else_writes_while_the_zone_is_deleted_may_go_with_it(story: Story) -> None:
    story.create(1, 10)
    story.invoke(2, 'delete_zone', 1)
    story.write_foreign('x')
    story.end(2, serial=11)
    story.serve('x', None, None)
    assert story.rules() == set()


@pytest.mark.parametrize(('fed', 'serial', 'broken'), [
    ('x', 9, set()), ('', 9, {'lost'}), ('x', 11, {'lost'})], ids=['made', 'transferred', 'right serial'])
def test_a_server_that_is_fed_makes_an_empty_zone_with_a_serial_before_first(fed: str, serial: int,
                                                                             broken: set[str]) -> None:
    story = Story(fed=fed)
    story.invoke(1, 'create_zone', None, (f'w.{ZONE}', 'A', ONE))
    story.end(1, serial=10)
    story.show(1, 11, 'PENDING')
    story.hand_over('x', 1, serial)
    assert story.rules() == broken


# leftover

def test_what_is_left_over_is_a_breach(story: Story) -> None:
    story.add('leftover', where='pool_manager_status', what='a row of a zone that is gone')
    assert story.rules() == {'leftover'}


def test_how_many_servers_are_needed() -> None:
    for servers, threshold, needed in (('xyz', 100, 3), ('xyz', 67, 3), ('xyz', 66, 2), ('xyz', 1, 1), ('xyzw', 50, 2)):
        past = checker.Past(Story(servers, threshold).events)
        assert needed == max(1, math.ceil(len(servers) * threshold / 100))
        assert past.are_enough(servers[:needed], 0) and not past.are_enough(servers[1:needed], 0)
