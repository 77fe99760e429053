"""The checker of the torture kit: each rule with histories that keep it and histories that break it."""

from __future__ import annotations

import math

import pytest

from tests.torture import checker
from tests.torture.history import GONE
from tests.unit.torture.conftest import BELOW, ONE, TWO, ZONE, Story

#: The rules that are broken, by what is tried: steps as :meth:`Story.tell` takes them.
CASES = {
    # lost
    'an acknowledged change is there in the end': [
        ('', 'create 1 10, write 2 1 ONE, healed 1 11 ONE')],
    'a zone without any records is judged unless it is being deleted': [
        ('lost', 'create 1 10, write 2 1 ONE 11, hand_over x 1 11')],
    'a server that deletes the zone may hand over an empty one': [
        ('', 'create 1 10, write 2 1 ONE 11, invoke 3 delete_zone 1, hand_over x 1 11, end 3 serial=12')],
    'the later of two changes wins': [
        ('', 'create 1 10, write 2 1 ONE, write 3 1 TWO, healed 1 12 TWO')],
    'a change that comes back after a later one is lost': [
        ('lost', 'create 1 10, write 2 1 ONE, write 3 1 TWO, healed 1 12 ONE')],
    'a change of unknown outcome may have happened or not': [
        ('', 'create 1 10, write 2 1 ONE how=unknown, healed 1 11'),
        ('', 'create 1 10, write 2 1 ONE how=unknown, healed 1 11 ONE')],
    'a change of unknown outcome may happen after a later one': [
        ('', 'create 1 10, write 2 1 ONE how=unknown, write 3 1 TWO, healed 1 12 ONE')],
    'a change of unknown outcome that was seen cannot vanish': [
        ('lost', 'create 1 10, write 2 1 ONE how=unknown, hand_over x 1 11 ONE, show 1 12, healed 1 12')],
    'a change of unknown outcome that was seen does not come back': [
        ('lost', 'create 1 10, write 2 1 ONE how=unknown, hand_over x 1 11 ONE, write 3 1 TWO, healed 1 12 ONE')],
    'what was deleted is not there': [
        ('', "create 1 10, write 2 1 ONE, write 3 1 '', healed 1 12"),
        ('lost', "create 1 10, write 2 1 ONE, write 3 1 '', healed 1 12 ONE")],
    'an older serial need not have a later change': [
        ('', 'create 1 10, write 2 1 ONE 11, write 3 1 TWO 12, hand_over x 1 11 ONE, hand_over y 1 10, healed '
         '1 12 TWO')],
    'a serial has what was changed up to it': [
        ('lost', 'create 1 10, write 2 1 ONE 11, write 3 1 TWO 12, hand_over x 1 11'),
        ('lost', 'create 1 10, write 2 1 ONE 11, write 3 1 TWO 12, hand_over x 1 11 TWO')],
    'a change without serial is below what was told next': [
        ('', 'create 1 10, write 2 1 ONE, show 1 11 PENDING, hand_over x 1 10'),
        ('lost', 'create 1 10, write 2 1 ONE, show 1 11 PENDING, hand_over x 1 11')],
    'what nobody wrote is nowhere': [
        ('lost', 'create 1 10, hand_over x 1 10 192.0.2.1')],
    'a zone that nobody deleted does not vanish': [
        ('lost', 'create 1 10, show 1 None GONE')],
    'a zone that could not be created is not missed': [
        ('', 'create 1 how=fail, create 2 how=unknown, heal, serve xyz None None')],
    'a deleted zone does not come back': [
        ('lost', 'create 1 10, delete 2 1, show 1 None GONE, show 1 11 PENDING')],
    'no change is acknowledged after the deletion': [
        ('', 'create 1 10, delete 2 1 11, write 3 1 ONE how=fail'),
        ('', 'create 1 10, delete 2 1 11, write 3 1 ONE how=unknown'),
        ('lost', 'create 1 10, delete 2 1 11, write 3 1 ONE how=ok')],
    'a change may be acknowledged during the deletion': [
        ('', 'create 1 10, invoke 2 delete_zone 1, write 3 1 ONE 11, end 2 serial=12')],
    'of two changes at once either may win': [
        ('', 'create 1 10, begin 2 ONE, begin 3 TWO, end 2, end 3, healed 1 12 ONE'),
        ('', 'create 1 10, begin 2 ONE, begin 3 TWO, end 2, end 3, healed 1 12 TWO')],
    'of two changes at once the one with the newer serial wins': [
        ('lost', 'create 1 10, begin 2 ONE, begin 3 TWO, end 3 serial=12, end 2 serial=11, healed 1 12 ONE'),
        ('', 'create 1 10, begin 2 ONE, begin 3 TWO, end 3 serial=12, end 2 serial=11, healed 1 12 TWO')],
    # refused
    'what was refused is nowhere': [
        ('refused', 'create 1 10, write 2 1 ONE how=fail, hand_over x 1 11 ONE')],
    'what was refused may be what another operation has written': [
        ('', 'create 1 10, write 2 1 ONE how=ok, write 3 1 ONE how=fail, hand_over x 1 11 ONE'),
        ('', 'create 1 10, write 2 1 ONE how=fail, write 3 1 ONE how=ok, hand_over x 1 11 ONE'),
        ('', 'create 1 10, write 2 1 ONE how=fail, write 3 1 ONE how=unknown, hand_over x 1 11 ONE')],
    # serials
    'the api tells no older serial': [
        ('serials', 'create 1 10, show 1 11 PENDING, show 1 10 PENDING')],
    'answers that overtake each other are no step back': [
        ('', 'create 1 10, show 1 11 PENDING, show 1 10 PENDING asked=2')],
    'serials go round': [
        ('', 'create 1 4294967295, show 1 0 PENDING'),
        ('', 'create 1 4294967295, show 1 5 PENDING'),
        ('serials', 'create 1 5, show 1 4294967295 PENDING'),
        ('', 'create 1 0, show 1 2147483647 PENDING')],
    'the next zone of a name begins above the former': [
        ('', 'create 1 10, delete 2 1 11, create 3 12'),
        ('serials', 'create 1 10, delete 2 1 11, create 3 11'),
        ('serials', 'create 1 10, delete 2 1 11, create 3 1')],
    'the former zone may be asked for while it is deleted': [
        ('', 'create 1 10, delete 2 1 11, create 3 12, show 1 11 PENDING')],
    'two changes have two serials': [
        ('serials', 'create 1 10, write 2 1 ONE 11, write 3 1 TWO 11 name=v')],
    'a server serves no older serial': [
        ('serials', 'create 1 10, show 1 12 PENDING, serve x 1 12, serve x 1 11')],
    'each server has its own pace': [
        ('', 'create 1 10, show 1 12 PENDING, serve x 1 12, serve y 1 11')],
    'a server that lost the zone begins no earlier': [
        ('serials', 'create 1 10, show 1 12 PENDING, serve x 1 12, serve x None None, serve x 1 11')],
    'a fault of a server excuses that one': [
        ('', 'create 1 10, show 1 12 PENDING, serve x 1 12, fault x begin, fault x end, serve x 1 11'),
        ('serials', 'create 1 10, show 1 12 PENDING, serve x 1 12, fault y begin, fault y end, serve x 1 11'),
        ('serials', 'create 1 10, show 1 12 PENDING, serve x 1 12, fault x-y begin, fault x-y end, serve x 1 11')],
    'a fault before excuses nothing': [
        ('serials', 'create 1 10, fault x begin, fault x end, show 1 12 PENDING, serve x 1 12, serve x 1 11')],
    'no server is ahead of what the api tells afterwards': [
        ('', 'create 1 10, serve x 1 11, show 1 11 PENDING'),
        ('serials', 'create 1 10, serve x 1 12, show 1 11 PENDING')],
    # active
    'active needs enough servers': [
        ('active', 'create 1 10, show 1 10, serve x 1 10, serve yz None None')],
    'active needs no more than enough': [
        ('', 'create 1 10, show 1 10, serve xy 1 10, serve z None None')],
    'an older serial is not enough': [
        ('active', 'create 1 10, write 2 1 ONE 11, show 1 11, serve yz 1 10')],
    'a newer serial is enough': [
        ('', 'create 1 10, show 1 10, write 2 1 ONE 11, serve yz 1 11')],
    'silence is no evidence': [
        ('', 'create 1 10, show 1 10, serve yz None None why=silent')],
    'an answer from before is no evidence': [
        ('', 'create 1 10, serve yz None None, show 1 10')],
    'a server may lose the zone by a fault after it was active': [
        ('', 'create 1 10, show 1 10, fault y begin False, fault y end False, serve yz None None'),
        ('', 'create 1 10, show 1 10, fault y begin True, fault y end True, serve yz None None')],
    'a server that only stood still has no excuse': [
        ('active', 'create 1 10, fault y begin excuses=False, show 1 10, fault y end excuses=False, serve yz None '
         'None')],
    'a fault from before the serial was new excuses nothing': [
        ('active', 'create 1 10, fault y begin, fault y end, show 1 10 PENDING, write 2 1 ONE 11, show 1 11, serve '
         'yz 1 10')],
    'a zone that is being deleted may be gone': [
        ('', 'create 1 10, show 1 10, invoke 2 delete_zone 1, serve yz None None')],
    'the former zone does not make the next one active': [
        ('active', 'create 1 10, delete 2 1 11, create 3 12, show 3 12, serve yz 1 10')],
    # deleted
    'gone means that enough servers have dropped it': [
        ('deleted', 'create 1 10, delete 2 1, show 1 None GONE, serve yz 1 10')],
    'one server may still serve what is gone': [
        ('', 'create 1 10, delete 2 1, show 1 None GONE, serve z 1 10, serve xy None None')],
    'a server that came back with what is gone is excused': [
        ('', 'create 1 10, delete 2 1, show 1 None GONE, fault y begin, serve yz 1 10')],
    'the next zone of a name may replace what is gone': [
        ('', 'create 1 10, delete 2 1 11, create 3 12, show 1 None GONE, serve yz 1 10')],
    # former
    'a server does not return to the former zone': [
        ('former serials', 'create 1 10, delete 2 1 11, create 3 12, serve x 3 12, serve x 1 10')],
    'a server may serve the former zone until it has the next': [
        ('', 'create 1 10, delete 2 1 11, create 3 12, serve x 1 10, serve x 3 12')],
    'the next zone has no record of the former': [
        ('former', 'create 1 10, write 2 1 ONE 11, delete 3 1 12, create 4 13, hand_over x 4 13 ONE')],
    # tenants
    'a zone is shown to its owner': [
        ('', 'create 1 10, show 1 10 PENDING alpha'),
        ('tenants', 'create 1 10, show 1 10 PENDING beta')],
    'a zone is changed by its owner': [
        ('', 'create 1 10, write 2 1 ONE how=fail tenant=beta'),
        ('tenants', 'create 1 10, write 2 1 ONE how=ok tenant=beta')],
    'the next zone has no record of another tenant': [
        ('tenants', 'create 1 10, write 2 1 ONE 11, delete 3 1 12, create 4 13 tenant=beta, hand_over x 4 13 ONE')],
    'a zone below anothers that may be deleted already is no breach': [
        ('', 'create 1 10, delete 2 1 how=unknown, create 3 10 zone=BELOW tenant=beta')],
    'no zone lies below or above anothers': [
        ('', 'create 1 10, create 2 10 zone=BELOW'),
        ('', 'create 1 10 zone=BELOW, create 2 10'),
        ('tenants', 'create 1 10, create 2 10 zone=BELOW tenant=beta'),
        ('tenants', 'create 1 10 zone=BELOW, create 2 10 tenant=beta')],
    'what a trespasser was told is a breach': [
        ('tenants', 'add foreign tenant=beta what=answered')],
    # twice
    'a name is one zone': [
        ('twice', 'create 1 10, create 2 11')],
    'of two creations at once both cannot be told from one after a deletion': [
        ('', 'create 1 10, invoke 2 delete_zone 1, create 3 12, end 2 serial=11')],
    # equal
    'contents at a serial are the same everywhere': [
        ('equal', 'create 1 10, write 2 1 ONE how=unknown, write 3 1 TWO how=unknown, hand_over x 1 12 ONE, '
         'hand_over y 1 12 TWO')],
    'a server that was made to lie is believed at the end alone': [
        ('', 'create 1 10, write 2 1 ONE 11, fault x begin True, hand_over x 1 11, fault x end True, hand_over x 1 11, '
         'heal, show 1 11, hand_over x 1 11, hand_over xyz 1 11 ONE'),
        ('lost equal', 'create 1 10, write 2 1 ONE 11, fault x begin True, fault x end True, heal, show 1 11, '
         'hand_over xyz 1 11 ONE, hand_over x 1 11')],
    'a server that was made to lie is not believed of a zone that is going': [
        ('healed', 'create 1 10, fault x begin True, fault x end True, delete 2 1, heal, hand_over x 1 10 ONE')],
    # healed
    'in the end every server has the serial': [
        ('serials healed', 'create 1 10, healed 1 10, hand_over z 1 9')],
    'in the end what was deleted is gone everywhere': [
        ('healed', 'create 1 10, delete 2 1, heal, serve xy None None, serve z 1 10'),
        ('', 'create 1 10, delete 2 1, heal, serve xy None None, serve z 1 10, serve z None None')],
    'a server that says nothing in the end is not healed': [
        ('healed', 'create 1 10, heal, show 1 10, hand_over xy 1 10'),
        ('', 'create 1 10, heal, show 1 10, hand_over xy 1 10, hand_over z 1 10')],
    'in the end every zone is active': [
        ('healed', 'create 1 10, healed 1 10, show 1 10 PENDING'),
        ('healed', 'create 1 10, healed 1 10, show 1 10 ERROR')],
    'in the end what was deleted is not shown': [
        ('healed', 'create 1 10, delete 2 1 11, heal, serve xyz None None, show 1 11 PENDING')],
    'in the end a zone of unknown deletion is as shown': [
        ('', 'create 1 10, delete 2 1 how=unknown, healed 1 10')],
    'a zone that nobody looked at is not called healed': [
        ('healed', 'create 1 10, heal')],
    # foreign, leftover
    'what somebody else wrote for sure must stay and other may': [
        ('', 'create 1 10, write_foreign x False, hand_over x 1 10 foreign=True, hand_over x 1 10')],
    'what somebody else writes while the zone is deleted may go with it': [
        ('', 'create 1 10, invoke 2 delete_zone 1, write_foreign x, end 2 serial=11, serve x None None')],
    'what is left over is a breach': [
        ('leftover', 'add leftover where=here what=something')],
}


@pytest.mark.parametrize(('broken', 'steps'), [
    pytest.param(*case, id=what) for what, cases in CASES.items() for case in cases])
def test_rules(story: Story, broken: str, steps: str) -> None:
    story.tell(steps)
    assert story.rules() == set(broken.split())


def test_which_names_have_a_zone_in_the_end(story: Story) -> None:
    story.create(1, 10)
    story.create(2, 10, zone=BELOW)
    story.delete(3, 2, 11, zone=BELOW)
    story.heal()
    story.show(1, 10)
    story.show(2, None, GONE, zone=BELOW)
    assert checker.living(story.events) == ([ZONE], [BELOW])


def test_an_acknowledged_change_that_is_missing_is_lost(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE)
    story.healed(1, 11)
    breaches = checker.check(story.events)
    assert {each.rule for each in breaches} == {'lost'}
    assert 'x has no w.a.example. A at serial 11; what was left is that of operation 2' in str(breaches[0])


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


def test_another_ttl_is_another_content(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE)
    story.healed(1, 11, ONE)
    story.events[-1]['rrsets'][1][2] = 61
    assert story.rules() == {'lost', 'equal'}


def test_signatures_are_valid_and_equal(story: Story) -> None:
    story.create(1, 10)
    story.write(2, 1, ONE)
    story.healed(1, 11, ONE)
    story.events[-1] |= {'signatures': 'others', 'invalid': 'an NSEC is missing'}
    assert story.rules() == {'equal', 'valid'}


def test_a_version_of_a_signed_zone_that_no_change_made_need_not_be_served(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 12)
    story.serve('xyz', 1, 10)
    assert story.rules() == {'active'}
    next(event for event in story.events if event['e'] == 'shown')['signed'] = True
    assert story.rules() == set()


@pytest.mark.parametrize(('canary', 'is_deleted', 'waits', 'broken'), [
    ('x', True, 'y', set()), ('x', False, 'y', {'serials'}), ('z', True, 'y', {'serials'}),
    ('x', True, '', {'serials'})])
def test_a_canary_that_has_deleted_a_zone_may_have_to_wait_as_the_others_do(
        story: Story, canary: str, is_deleted: bool, waits: str, broken: set[str]) -> None:
    story.create(1, 10)
    story.show(1, 12)
    story.add('stages', phase='begin', canary=canary, bake=0)
    story.serve(waits, 1, 11)
    story.serve('x', 1, 12)
    if is_deleted:
        story.serve('x', None, None)
    story.add('stages', phase='end')
    story.serve('x', 1, 11)
    assert story.rules() - {'active'} == broken


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


def test_an_answer_that_was_asked_for_before_is_no_evidence(story: Story) -> None:
    story.create(1, 10)
    story.show(1, 10)
    for server in 'yz':
        story.add('served', asked=story.events[2]['t'], server=server, zone=ZONE, life=None, serial=None)
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


@pytest.mark.parametrize(('fed', 'then', 'broken'), [
    ('x', 12, set()), ('', 12, {'lost'}), ('x', 10, {'lost'})], ids=['torn', 'transferred', 'no later serial'])
def test_fed_servers_transfer_the_records_of_their_next_serial(fed: str, then: int, broken: set[str]) -> None:
    story = Story(fed=fed)
    story.create(1, 10, ONE)
    story.write(2, 1, TWO, 12)
    story.hand_over('x', 1, 10, TWO)
    story.serve('x', 1, then)
    assert story.rules() == broken


def test_how_many_servers_are_needed() -> None:
    for servers, threshold, needed in (('xyz', 100, 3), ('xyz', 67, 3), ('xyz', 66, 2), ('xyz', 1, 1), ('xyzw', 50, 2)):
        past = checker.Past(Story(servers, threshold).events)
        assert needed == max(1, math.ceil(len(servers) * threshold / 100))
        assert past.are_enough(servers[:needed], 0) and not past.are_enough(servers[1:needed], 0)
