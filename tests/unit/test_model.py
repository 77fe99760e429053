"""Differences of zones, versions that a freeze permits, serials (RFC 1982 section 3.2) and ids (RFC 9562)."""

from __future__ import annotations

import dataclasses
import itertools
import math
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

import dns.serial
import pytest
from hypothesis import given, strategies as st

from designate_pool.api.services.wait_verdict import WaitTarget, WaitVerdict, ZoneState, judge
from designate_pool.backoff import Backoff
from designate_pool.model import (NOTHING, Action, Domain, Freeze, ZoneHead, ZoneRecord, differences, hold, new_ids,
                                  permitted)
from designate_pool.model.differences import RecordDifference
from designate_pool.serial import HALF, SPACE, at_least, distance, newer, next_serial, within

KEYS = st.tuples(st.sampled_from(['example.com.', 'www.example.com.', r'\000\"[.example.com.']),
                 st.sampled_from(['A', 'TXT']), st.binary(max_size=3))
#: The TTL of each record that a zone has.
ZONES = st.dictionaries(KEYS, st.none() | st.integers(0, 2))


def records(zone: dict[tuple[str, str, bytes], int | None]) -> set[ZoneRecord]:
    return {(name, rtype, ttl, wire) for (name, rtype, wire), ttl in zone.items()}


@given(ZONES, ZONES)
def test_what_is_packed_comes_back(gone: dict[tuple[str, str, bytes], int | None],
                                   added: dict[tuple[str, str, bytes], int | None]) -> None:
    unpacked = differences.unpack(differences.pack(records(gone), records(added)))
    assert [set(unpacked.gone), set(unpacked.added)] == [records(gone), records(added)]
    resolved = differences.unpack(differences.pack(records(gone), ()), 7)
    assert set(resolved.gone) == {(name, rtype, 7 if ttl is None else ttl, wire)
                                  for name, rtype, ttl, wire in records(gone)}


def test_a_long_one_is_compressed() -> None:
    record = 'www.example.com.', 'TXT', None, bytes(60_000)
    packed = differences.pack((), [record])
    assert len(packed) < 1000 and differences.unpack(packed).added == [record]
    assert differences.pack((), ()) == b'' and differences.unpack(b'') == ((), ())


@given(st.lists(ZONES, min_size=1, max_size=5))
def test_what_is_undone_is_as_it_was(zones: list[dict[tuple[str, str, bytes], int | None]]) -> None:
    contents = [records(zone) for zone in zones]
    steps = [RecordDifference(list(former - new), list(new - former)) for former, new in zip(contents, contents[1:])]
    for number, before in enumerate(contents):
        undone = list(differences.undo(contents[-1], reversed(steps[number:])))
        assert len(undone) == len(before) and set(undone) == before
        present = [(name, rtype, ttl, wire, wire.hex()) for (name, rtype, wire), ttl in sorted(zones[-1].items())]
        assert list(differences.undo_in_order(present, reversed(steps[number:]), lambda _, wire: wire.hex())) == [
            (name, rtype, ttl, wire.hex()) for (name, rtype, wire), ttl in sorted(zones[number].items())]


SINCE = datetime(2030, 1, 31, 12, tzinfo=timezone.utc)
FREEZE = Freeze('f' * 32, 'an incident', SINCE, SINCE + timedelta(hours=2), 'admin')
FREE = Domain('d' * 32, 'example.com.', 'p' * 32, 'default', 'h@example.com', 300, 7, Action.NONE, reported_serial=7)
FROZEN = dataclasses.replace(FREE, freeze=FREEZE.text)
HEAD = ZoneHead(FREE.id, FREE.name, 'default', 'new@example.com', 60, 9, 1, 2, 3, 4, ('ns1.example.net.',))


def changed(domain: Domain, **values: Any) -> Domain:
    return dataclasses.replace(domain, **hold(domain), **{'serial': domain.serial + 1, **values})


@pytest.mark.parametrize('freeze', [FREEZE, dataclasses.replace(FREEZE, until=None)], ids=['until', 'for ever'])
def test_a_freeze_is_read_as_it_was_written(freeze: Freeze) -> None:
    assert Freeze.parse(freeze.text) == freeze and Freeze.parse(None) is None
    assert [freeze.is_over(SINCE + timedelta(hours=hours)) for hours in (1, 2)] == [False, freeze.until is not None]


def test_servers_get_the_version_before_the_first_change() -> None:
    assert hold(FREE) == {} and changed(FREE).permitted == changed(FREE) and FROZEN.permitted is FROZEN
    later = changed(changed(FROZEN, ttl=60), email='new@example.com')
    assert later.permitted == dataclasses.replace(later, serial=7, ttl=300, email='h@example.com')
    head = permitted(HEAD, later.version_before)
    assert head is not None and (head.serial, head.ttl, head.email, head.refresh) == (
        7, 300, 'h@example.com', FREE.refresh)
    assert (later.waits_for, permitted(HEAD, None)) == (FREEZE, HEAD)


@pytest.mark.parametrize('domain', [
    dataclasses.replace(FROZEN, held_by=FREEZE.id, version_before=NOTHING),
    changed(FROZEN, action=Action.DELETE, generation=2),
    changed(changed(FROZEN, action=Action.DELETE, generation=2), action=Action.CREATE, generation=3),
    changed(dataclasses.replace(FROZEN, awaits_transfer=True), awaits_transfer=False)],
    ids=['created', 'deleted', 'restored', 'transferred for the first time'])
def test_nothing_is_done_about_a_domain_that_servers_should_not_see_change(domain: Domain) -> None:
    assert domain.permitted is None and domain.waits_for == FREEZE


@pytest.mark.parametrize('freeze', [None, dataclasses.replace(FREEZE, id='e' * 32).text], ids=['none', 'another one'])
def test_nothing_waits_when_the_freeze_has_ended(freeze: str | None) -> None:
    domain = dataclasses.replace(changed(FROZEN), freeze=freeze)
    assert domain.permitted is domain and domain.waits_for is None
    assert ('held_by' in hold(domain)) is (freeze is not None)


@pytest.mark.parametrize(('serial', 'deletion', 'domain', 'verdict'), [
    (7, False, changed(FROZEN), WaitVerdict(done=True)),
    (7, False, dataclasses.replace(changed(FROZEN), reported_serial=6), WaitVerdict()),
    (8, False, changed(FROZEN), WaitVerdict(waits=True)),
    (8, True, changed(FROZEN, action=Action.DELETE, generation=2), WaitVerdict(waits=True)),
    (8, False, changed(FREE), WaitVerdict()),
], ids=['reached', 'on its way', 'waits', 'deletion', 'not frozen'])
def test_a_wait_for_what_waits_is_over_at_once(serial: int, deletion: bool, domain: Domain,
                                               verdict: WaitVerdict) -> None:
    assert judge(WaitTarget(domain.id, serial, deletion=deletion), ZoneState(domain)) == verdict


SERIALS = st.integers(0, SPACE - 1)


@given(SERIALS, SERIALS)
def test_newer_is_what_dnspython_calls_greater(a: int, b: int) -> None:
    assert newer(a, b) == (dns.serial.Serial(a) > dns.serial.Serial(b))


@given(SERIALS, SERIALS)
def test_distance_leads_from_one_to_the_other_by_the_shorter_way(a: int, b: int) -> None:
    assert (a + distance(a, b)) % SPACE == b
    assert -HALF < distance(a, b) <= HALF


@given(SERIALS)
def test_serials_half_the_circle_apart_have_no_order(a: int) -> None:
    b = (a + HALF) % SPACE
    assert not newer(a, b) and not newer(b, a) and not at_least(a, b) and not at_least(b, a)


@given(SERIALS, SERIALS, SERIALS)
def test_within_goes_forward_from_the_first_to_the_last(first: int, serial: int, last: int) -> None:
    assert within(first, first, last) and within(first, last, last)
    assert within(first, serial, last) == ((serial - first) % SPACE <= (last - first) % SPACE)


@given(st.none() | SERIALS, st.floats(0, 1e11))
def test_the_next_serial_is_always_newer(previous: int | None, now: float) -> None:
    serial = next_serial(previous, now)
    assert 0 <= serial < SPACE
    assert previous is None or newer(serial, previous)


@pytest.mark.parametrize(('previous', 'now', 'serial'), [
    (None, 1000.9, 1000), (5, 1000, 1000), (1000, 1000, 1001), (2000, 1000, 2001), (SPACE - 1, SPACE - 5, 0),
    (SPACE - 3, 7, 7)])
def test_next_serial(previous: int | None, now: float, serial: int) -> None:
    assert next_serial(previous, now) == serial


def test_they_are_different_ascending_and_uuids_of_version_7() -> None:
    ids = [*new_ids(1000), *new_ids(1000)]
    assert len(set(ids)) == 2000 and all(len(each) == 32 for each in ids)
    assert ids[:1000] == sorted(ids[:1000]) and ids[0][:12] <= ids[-1][:12]
    assert {(uuid.UUID(each).version, uuid.UUID(each).variant) for each in ids} == {(7, uuid.RFC_4122)}


def test_none() -> None:
    assert new_ids(0) == []


def test_delays_double_up_to_the_cap() -> None:
    assert list(itertools.islice(Backoff(0.02, cap=0.25).delays(), 6)) == [0.02, 0.04, 0.08, 0.16, 0.25, 0.25]


def test_another_factor() -> None:
    assert list(itertools.islice(Backoff(1, 1.5).delays(), 3)) == [1, 1.5, 2.25]


@pytest.mark.parametrize('number', [5000, 10 ** 9])
def test_after_very_many_failures_it_is_the_cap(number: int) -> None:
    assert Backoff(5.0, cap=300.0).delay(number) == 300.0
    assert Backoff(5.0).delay(number) == math.inf
    assert Backoff(1.0, factor=1.0).delay(number) == 1.0


@pytest.mark.parametrize(('chance', 'delay'), [(0.0, 7.5), (0.5, 10.0), (1.0, 12.5)])
def test_jitter_is_of_the_delay_and_comes_after_the_cap(chance: float, delay: float) -> None:
    assert Backoff(5.0, cap=10.0, jitter=(0.75, 1.25)).delay(3, chance) == delay


def test_each_delay_has_its_own_chance() -> None:
    chances = iter([0.0, 1.0, 0.5])
    delays = Backoff(4.0, jitter=(0.5, 1.0)).delays(lambda: next(chances))
    assert list(itertools.islice(delays, 3)) == [2.0, 8.0, 12.0]
