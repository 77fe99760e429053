"""Which version of a zone servers may have while its pool is frozen."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from designate_pool.api.services.wait_verdict import WaitTarget, WaitVerdict, ZoneState, judge
from designate_pool.model import NOTHING, Action, Domain, Freeze, ZoneHead, hold, permitted

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
