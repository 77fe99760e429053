"""Whose request is next, and how many one client may hold."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from designate_pool.api.http.fair_queue import FairQueue


def task(address: str, token: str, name: str) -> SimpleNamespace:
    return SimpleNamespace(addr=(address, 1), requests=[SimpleNamespace(headers={'X_AUTH_TOKEN': token})], name=name)


def test_addresses_take_turns_and_the_tokens_of_each() -> None:
    turns = FairQueue(threading.Condition(), 10, 10)
    for each in (*(task('192.0.2.1', 'a', f'a{number}') for number in range(4)), task('192.0.2.1', 'b', 'b'),
                 task('192.0.2.2', 'c', 'c1'), task('192.0.2.2', 'c', 'c2')):
        turns.append(each)
    assert len(turns) == 7
    assert [turns.popleft().task.name for _ in range(7)] == ['a0', 'c1', 'b', 'c2', 'a1', 'a2', 'a3']
    assert not turns


def test_the_ipv6_addresses_of_a_network_have_one_turn() -> None:
    turns = FairQueue(threading.Condition(), 10, 3)
    for number in range(4):
        turns.append(task(f'2001:db8::{number}', f't{number}', f'a{number}'))
    for each in ('2001:db8:0:1::1', 'fe80::1%eth0', '::ffff:192.0.2.1', '192.0.2.1'):
        turns.append(task(each, 'b', each))
    assert [turns.popleft().task.name for _ in range(6)] == [
        'a0', '2001:db8:0:1::1', 'fe80::1%eth0', '::ffff:192.0.2.1', 'a1', '192.0.2.1']
    assert (turns.popleft().task.name, bool(turns), len(turns)) == ('a2', False, 1)


def test_nobody_holds_more_than_a_share() -> None:
    changed = threading.Condition()
    turns = FairQueue(changed, 2, 3)
    for each in (*(task('192.0.2.1', 'a', f'a{number}') for number in range(4)), task('192.0.2.1', 'b', 'b1'),
                 task('192.0.2.1', 'b', 'b2'), task('192.0.2.2', 'a', 'a4')):
        turns.append(each)
    held = [turns.popleft() for _ in range(3)]
    assert [each.task.name for each in held] == ['a0', 'a4', 'b1']
    held.append(turns.popleft())
    assert (held[-1].task.name, bool(turns), len(turns)) == ('b2', False, 3)  # the address holds three, the token two
    with pytest.raises(KeyError):
        turns.popleft()
    held[1].assign_to('project blue')
    assert not turns
    with held[0].released():
        assert turns.popleft().task.name == 'a1'
    assert not turns
