"""Comparing the contents of one server: several zones at a time, each of them once."""

from __future__ import annotations

import dataclasses
import functools
import threading

import pytest

from designate_pool.model import Action, Context, utcnow
from designate_pool.pool_manager.dispatch.zone_compare import Match
from designate_pool.pool_manager.verify.server_compare import HIDDEN, THREADS, ServerCompare
from designate_pool.runtime import Threads
from designate_pool.storage.zones import domains
from tests.unit.pool_manager.conftest import D, EditablePool, some


def filled(editable: EditablePool, count: int) -> list[str]:
    """The names of so many domains that a server which can be asked for its zones has."""
    names = sorted(domain.name for domain in some(editable, count))
    editable.join(D)
    return names


def test_as_many_zones_are_compared_at_a_time_as_may(editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    names = filled(editable, 2 * THREADS)
    together = threading.Barrier(THREADS)

    def match(self, worker, domain, *rest):
        together.wait(30)  # until all the others are at one, too
        return (Match.OTHER, 'other ones') if domain.name == names[3] else (
            Match.SILENT, 'no answer') if domain.name in (names[1], names[0]) else (Match.SAME, '')

    monkeypatch.setattr(ServerCompare, '_match', match)
    found = ServerCompare(editable.manager, Threads()).compare(D, fix=False, delete_extra=None, contents=True)
    assert found.other == ((names[3], 'other ones'),)
    assert found.unchecked == ((names[0], 'no answer'), (names[1], 'no answer'))


def test_what_fails_ends_the_comparison(editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(editable, 50)
    begun = []

    def match(self, worker, domain, *rest):
        begun.append(domain.name)
        raise RuntimeError('the database is gone')

    monkeypatch.setattr(ServerCompare, '_match', match)
    with pytest.raises(RuntimeError, match='the database is gone'):
        ServerCompare(editable.manager, Threads()).compare(D, fix=False, delete_extra=None, contents=True)
    assert len(begun) <= THREADS


def test_when_the_time_is_over_the_rest_is_not_compared(editable: EditablePool) -> None:
    names = filled(editable, 3)
    comparing = ServerCompare(editable.manager, Threads(), seconds=0.0)
    found = comparing.compare(D, fix=False, delete_extra=None, contents=True)
    assert found.unchecked == tuple((name, '0 s were over') for name in names)


def test_zones_that_the_requester_may_not_see_are_counted_and_not_named(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    names = filled(editable, 4)
    zones = editable.servers[D].zones
    del zones[names[0]]
    zones[names[1]], zones['stranger.example.'] = 1, 7
    monkeypatch.setattr(ServerCompare, '_match', lambda self, worker, domain, *rest: (
        Match.OTHER, f'e.g. www.{domain.name} A') if domain.name == names[2] else (Match.SILENT, 'no answer'))
    compare = functools.partial(ServerCompare(editable.manager, Threads()).compare, D, False, None, True)
    own = [domain for domain in editable.storage.read(domains.live_by_name, names).values() if domain.name == names[0]]
    editable.storage.run(domains.assign_project, own[0].id, 'mine', utcnow())
    everything, mine, nothing = (compare(context) for context in (
        Context(all_projects=True), Context(project_id='mine'), Context(project_id='other')))
    assert everything.extra == ('stranger.example.',) and everything.missing == (names[0],)
    assert mine == dataclasses.replace(
        everything, behind=((HIDDEN, *everything.behind[0][1:]),), extra=(HIDDEN,), other=((HIDDEN, HIDDEN),),
        unchecked=((HIDDEN, HIDDEN),))
    assert nothing == dataclasses.replace(mine, missing=(HIDDEN,))


def test_what_has_changed_since_it_was_compared_is_not_transferred_again(editable: EditablePool,
                                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = filled(editable, 2)
    by_name = editable.storage.read(domains.live_by_name, [first, second])

    def match(self, worker, domain, *rest):
        if domain.name == first:
            editable.change(domain)  # and the server has it already
        return Match.OTHER, 'other ones'

    monkeypatch.setattr(ServerCompare, '_match', match)
    found = ServerCompare(editable.manager, Threads()).compare(D, fix=True, delete_extra=None, contents=True)
    assert found.mending == 1
    rows = [editable.rows(by_name[name])[D, Action.UPDATE] for name in (first, second)]
    assert [row.diverged for row in rows] == [False, True]
