"""What is wrong with one domain, and that nothing is with one that is at rest, under way, or going."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from designate_pool.consensus import Members
from designate_pool.model import Action, Domain, Outcome, PoolServer, ServerState, ServerStatus, Status, utcnow
from designate_pool.pool_manager.verify import invariants
from designate_pool.storage.reporting.invariants import DomainRows

NOW = utcnow()
LONG_AGO = NOW - timedelta(hours=1)
DOMAIN = Domain('d' * 32, 'example.com.', 'p' * 32, 'default', 'hostmaster@example.com', 3600, 10, Action.NONE,
                Status.ACTIVE, reported_serial=10)
PENDING = dataclasses.replace(DOMAIN, action=Action.UPDATE, status=Status.PENDING, reported_serial=9)
GOING = dataclasses.replace(DOMAIN, action=Action.DELETE, status=Status.PENDING)
GONE = dataclasses.replace(DOMAIN, status=Status.DELETED)
NOT_TRANSFERRED = dataclasses.replace(DOMAIN, action=Action.CREATE, status=Status.ERROR, reported_serial=None,
                                      masters='192.0.2.1:53', awaits_transfer=True)
MEMBERS = Members.of(PoolServer(server, 'p' * 32, f'fake:{server}', 'fake', ServerState.ACTIVE) for server in 'ab')


def row(server: str, action: Action, status: Outcome | None = Outcome.SUCCESS, **values: Any) -> ServerStatus:
    return ServerStatus(server, DOMAIN.id, action, 10, status=status, **values)


def right(server: str, **values: Any) -> list[ServerStatus]:
    return [row(server, Action.CREATE), row(server, Action.UPDATE, **{'serial_number': 10, **values})]


def deleted(server: str, status: Outcome | None = Outcome.SUCCESS, **values: Any) -> list[ServerStatus]:
    return [*right(server), row(server, Action.DELETE, status, **values)]


def told(domain: Domain, *rows: ServerStatus, newest: int = 1, undone: int = 0, **values: frozenset[str]) -> list[str]:
    return list(invariants.breaches(DomainRows(domain, rows, newest, undone, **values), MEMBERS, 100,
                                    timedelta(seconds=60), NOW))


WAITING = right('b', status=None, serial_number=9, next_attempt_at=NOW)


@pytest.mark.parametrize(('domain', 'rows'), [
    (DOMAIN, [*right('a'), *right('b')]),
    (DOMAIN, [*right('a'), *right('b', status=Outcome.ERROR, diverged=True, next_attempt_at=NOW)]),
    (PENDING, [*right('a'), *WAITING]),
    (PENDING, [*right('a'), row('b', Action.CREATE, None, next_attempt_at=NOW), row('b', Action.UPDATE, None)]),
    (GOING, [*right('a'), *deleted('a'), *deleted('b', None, next_attempt_at=NOW)]),
    (GOING, [*deleted('a'), row('b', Action.CREATE, None), row('b', Action.DELETE, None, next_attempt_at=NOW)]),
    (NOT_TRANSFERRED, []),
    (GONE, []), (GONE, [*deleted('a'), *deleted('b', Outcome.ERROR, next_attempt_at=NOW)])])
def test_what_is_right(domain: Domain, rows: list[ServerStatus]) -> None:
    assert told(domain, *rows) == []


def test_a_moved_zone_is_kept_by_the_servers_of_its_former_pool() -> None:
    moved = dataclasses.replace(DOMAIN, former_pool_id='q' * 32)
    rows = [*right('a'), *right('b'), *right('x')]
    assert told(moved, *rows, former_servers=frozenset('x')) == []
    assert set(told(moved, *rows, former_servers=frozenset('y'))) == {
        f'{action} on x: the pool has no such server' for action in ('CREATE', 'UPDATE')}


@pytest.mark.parametrize(('shared', 'targets', 'guests', 'words'), [
    (True, {'red'}, {'red'}, []), (False, (), (), []),
    (True, (), (), ['it is marked as shared, and has no shares']),
    (False, {'red'}, (), ['it is not marked as shared, and has 1 shares']),
    (True, {'own', 'red'}, (), ['it is shared with its own project own']),
    (True, {'red'}, {'red', 'blue'}, ['it has recordsets of the project blue, which it is not shared with'])])
def test_shares(shared: bool, targets: Iterable[str], guests: Iterable[str], words: list[str]) -> None:
    domain = dataclasses.replace(DOMAIN, project_id='own', shared=shared)
    assert told(domain, *right('a'), *right('b'), targets=frozenset(targets), guests=frozenset(guests)) == words


@pytest.mark.parametrize(('domain', 'rows', 'words'), [
    (DOMAIN, [*right('a'), *right('x')], 'the pool has no such server'),
    (DOMAIN, [*right('a')], 'nothing was ever begun on fake:b'),
    (DOMAIN, [*right('a'), *right('b', serial_number=9)], 'which 1 of 2 servers serve, and nothing is due'),
    (DOMAIN, [*right('a'), *right('b', serial_number=11)], 'serial 11 was seen, which is ahead of the zone, 10'),
    (DOMAIN, [*right('a'), *right('b', claimed_by='one')], 'claimed by nobody, or for no time'),
    (DOMAIN, [*right('a'), *deleted('b')], 'it exists, and the zone is not being deleted'),
    (PENDING, [*right('a'), *right('b', status=None)], 'UPDATE on fake:b: it is PENDING and waits for nothing'),
    (PENDING, [*right('a'), *right('b', status=Outcome.ERROR)], 'UPDATE on fake:b: it is ERROR and waits for nothing'),
    (PENDING, [*right('a'), *right('b')], 'it is PENDING, and nothing is due on any server'),
    (PENDING, [*right('a'), *right('b', status=None, next_attempt_at=LONG_AGO)], 'nobody has taken it'),
    (GOING, [*deleted('a'), *right('b')], 'its deletion was never begun on b'),
    (GOING, [*deleted('a'), *deleted('b')], 'every server has confirmed its deletion, and it is not DELETED'),
    (GONE, [*deleted('a'), *deleted('b')], 'every server has confirmed its deletion, and its rows are still there'),
    (GONE, [*deleted('a'), *deleted('b', None)], 'DELETE on fake:b: it is PENDING and waits for nothing'),
    (GONE, [*deleted('a'), *deleted('x')], 'the pool has no such server'),
    (dataclasses.replace(DOMAIN, reported_serial=9), [*right('a'), *right('b')], 'serial 9 reported'),
    (dataclasses.replace(DOMAIN, reported_serial=11), [*right('a'), *right('b')], 'ahead of its own, 10')])
def test_what_is_wrong(domain: Domain, rows: list[ServerStatus], words: str) -> None:
    assert any(words in each for each in told(domain, *rows)), told(domain, *rows)


def test_what_contradicts_the_name_or_the_records() -> None:
    assert told(DOMAIN, *right('a'), *right('b'), newest=3) == [
        'it lives at generation 1, and its name was at 3 already']
    assert told(DOMAIN, *right('a'), *right('b'), undone=2) == ['it is ACTIVE, and 2 of its records are not']
