"""Connections kept between calls."""

from __future__ import annotations

import time

import pytest

from designate_pool.backends.connection_pool import ConnectionPool
from designate_pool.deadline import Deadline


class Line:
    """A connection that counts what is done with it, or raises."""

    def __init__(self) -> None:
        self.uses = 0
        self.closed = False
        self.error: BaseException | None = None

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def made() -> list[Line]:
    return []


@pytest.fixture
def lines(made: list[Line]) -> ConnectionPool[Line]:
    def connect(deadline: Deadline) -> Line:
        made.append(Line())
        return made[-1]

    return ConnectionPool(connect, keep=2)


def use(line: Line, deadline: Deadline) -> Line:
    if line.error is not None:
        raise line.error
    line.uses += 1
    return line


def test_one_call_after_the_other_shares_a_connection(lines: ConnectionPool[Line], made: list[Line]) -> None:
    for _ in range(3):
        lines.use(use, Deadline(1))
    assert [line.uses for line in made] == [3]


def test_calls_at_once_have_one_each_and_only_some_are_kept(lines: ConnectionPool[Line], made: list[Line]) -> None:
    def nested(line: Line, deadline: Deadline) -> None:
        if len(made) < 4:
            lines.use(nested, deadline)

    lines.use(nested, Deadline(1))
    assert len(made) == 4
    assert [line.closed for line in made].count(False) == 2


def test_a_dead_kept_connection_is_replaced_once(lines: ConnectionPool[Line], made: list[Line]) -> None:
    lines.use(use, Deadline(1))
    made[0].error = ConnectionResetError()
    lines.use(use, Deadline(1))
    assert [line.uses for line in made] == [1, 1]
    assert made[0].closed


def test_a_new_connection_that_fails_is_not_replaced(lines: ConnectionPool[Line], made: list[Line]) -> None:
    def fail(line: Line, deadline: Deadline) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        lines.use(fail, Deadline(1))
    assert [line.closed for line in made] == [True]


@pytest.mark.parametrize('error', [TimeoutError(), ValueError(), KeyboardInterrupt()])
def test_after_any_other_failure_nobody_gets_the_connection(lines: ConnectionPool[Line], made: list[Line],
                                                            error: BaseException) -> None:
    lines.use(use, Deadline(1))
    made[0].error = error
    with pytest.raises(type(error)):
        lines.use(use, Deadline(1))
    assert made[0].closed
    lines.use(use, Deadline(1))
    assert len(made) == 2


def test_an_idle_one_is_not_used_after_a_while(lines: ConnectionPool[Line], made: list[Line],
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, 'monotonic', lambda: clock[0])
    lines.use(use, Deadline(1))
    clock[0] += 19
    lines.use(use, Deadline(1))
    clock[0] += 21
    lines.use(use, Deadline(1))
    assert [line.uses for line in made] == [2, 1]
    assert made[0].closed


def test_close_closes_the_idle_ones(lines: ConnectionPool[Line], made: list[Line]) -> None:
    lines.use(use, Deadline(1))
    lines.close()
    assert made[0].closed
    lines.use(use, Deadline(1))
    assert len(made) == 2
