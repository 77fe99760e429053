from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.cli.commands.pools import servers
from designate_pool.cli.commands.pools.servers import Bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv('COLUMNS', '60')


def test_a_terminal_has_one_line_that_is_redrawn(clock):
    stream = Terminal()
    bar = Bar(stream, clock)
    bar.show(0, 4, 'none')
    clock.now = 1
    bar.show(1, 4, 'one')
    bar.end()
    assert stream.getvalue() == ('\r[' + '-' * 30 + ']   0 %  none\033[K'
                                 '\r[' + '#' * 7 + '-' * 23 + ']  25 %  one\033[K\n')


def test_a_terminal_is_not_redrawn_for_every_step_and_ends_with_the_last(clock):
    stream = Terminal()
    bar = Bar(stream, clock)
    for step in range(101):
        bar.show(step, 100, f'step {step}')
        clock.now += 0.001
    assert stream.getvalue().count('\r') == 2
    bar.end()
    assert stream.getvalue().endswith('100 %  step 100\033[K\n')


def test_elsewhere_a_line_every_few_seconds(clock):
    stream = io.StringIO()
    bar = Bar(stream, clock)
    for step in range(13):
        bar.show(step, 12, f'step {step}')
        clock.now += 1
    bar.end()
    assert stream.getvalue().splitlines() == ['0 %  step 0', '41 %  step 5', '83 %  step 10', '100 %  step 12']
    bar.end()
    assert stream.getvalue().count('\n') == 4


def test_used_a_second_time_it_begins_at_once(clock):
    stream = io.StringIO()
    bar = Bar(stream, clock)
    for name in ('one', 'two'):
        bar.show(1, 1, name)
        bar.end()
    assert stream.getvalue() == '100 %  one\n100 %  two\n'


def test_nothing_shown_is_nothing_written(clock):
    for stream in (Terminal(), io.StringIO()):
        Bar(stream, clock).end()
        assert stream.getvalue() == ''


@given(done=st.integers(0, 10**7), total=st.integers(0, 10**7), text=st.text('abc ', max_size=90),
       width=st.integers(0, 200))
def test_it_never_breaks_into_two_lines(done, total, text, width):
    assert len(servers.drawn(done, total, text, width)) <= max(0, width - 1)


@given(done=st.integers(0, 10**7), total=st.integers(0, 10**7))
def test_only_all_is_all(done, total):
    assert 0 <= servers.percent(done, total) <= 100
    assert (servers.percent(done, total) == 100) == (done >= total)
