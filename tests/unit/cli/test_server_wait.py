"""Where a server stands while it is waited for: one test per situation."""

from __future__ import annotations

import io

import pytest

from designate_pool.backoff import Backoff
from designate_pool.cli.commands import servers
from designate_pool.cli.commands.servers import CatchUpProgress, DrainProgress, MaintenanceProgress, Progress, follow
from designate_pool.cli.connection import CliError
from tests.unit.cli.test_app import Terminal

NAME = 'fake:192.0.2.1:53'


def server(state='active', **values):
    return {'id': '1' * 32, 'name': NAME, 'state': state, 'filling': False, 'filled': 0, 'zones': 1000, 'rows': 0,
            'waiting': 0, 'failing': 0, 'in_hand': 0, 'failures': [], **values}


def caught_up(*seen, must_count=True):
    """Where it stands at the last of what was seen."""
    measure = CatchUpProgress(NAME, must_count)
    return [measure(each) for each in seen][-1]


def ended(stand):
    return None if stand.outcome is None else (stand.outcome.code, stand.outcome.line)


@pytest.mark.parametrize('seen, expected', [
    ([server('joining', filling=True, filled=512, waiting=3, failing=1)],
     (512, 1000, '512 of 1000 zones started, 3 waiting, 1 failing')),
    ([server('joining', waiting=40), server('joining', waiting=10)], (30, 40, '10 waiting')),
    ([server(filling=True, filled=7)], (7, 1000, '7 of 1000 zones started')),
    ([server('joining')], (0, 0, 'nothing is waiting')),
], ids=['filled', 'the last are under way', 'active and filled', 'it has everything but does not count yet'])
def test_it_catches_up(seen, expected):
    stand = caught_up(*seen)
    assert (stand.done, stand.total, stand.text, stand.outcome) == (*expected, None)


def test_it_has_everything():
    assert ended(caught_up(server('joining'), must_count=False)) == (0, f'{NAME} is joining and nothing waits for it.')
    assert ended(caught_up(server(waiting=2), server())) == (0, f'{NAME} is active and nothing waits for it.')


FAILURES = [{'zone_name': 'example.com.', 'action': 'CREATE', 'error': 'refused'}] * 2


@pytest.mark.parametrize('later, over', [
    (server(waiting=2, failing=2, failures=FAILURES), True),
    (server(waiting=3, failing=2, failures=FAILURES), False),
    (server(waiting=1, failing=1, failures=FAILURES[:1]), False),
    (server(waiting=2, failing=2, failures=FAILURES, filling=True), False),
], ids=['all keep failing', 'one has not failed', 'one has succeeded', 'more is to come'])
def test_what_is_left_fails(later, over):
    now = [100.0]
    measure = CatchUpProgress(NAME, True, lambda: now[0])
    assert measure(server(waiting=2, failing=2, failures=FAILURES)).outcome is None
    now[0] += servers.STUCK
    assert ended(measure(later)) == ((3, f'2 operations on {NAME} have failed and will be tried again: example.com. '
                                         'CREATE (refused).') if over else None)


def test_a_try_that_is_under_way_again_begins_the_patience_anew():
    now = [100.0]
    measure = CatchUpProgress(NAME, True, lambda: now[0])
    for failing in (2, 1, 2):
        assert measure(server(waiting=2, failing=failing)).outcome is None
        now[0] += servers.STUCK - 1


@pytest.mark.parametrize('seen, told', [
    (None, f'{NAME} was removed by someone else.'),
    (server('maintenance', waiting=3), f'{NAME} is in maintenance, and nothing is sent to it.'),
    (server('draining'), f'{NAME} is draining, and nothing is sent to it.'),
])
def test_someone_stops_it(seen, told):
    assert ended(caught_up(server(waiting=3), seen)) == (1, told)


def test_it_is_drained():
    measure = DrainProgress(NAME)
    first, second, third = (measure(server('draining', rows=rows)) for rows in (400, 100, 0))
    assert (first.done, first.total, first.outcome) == (0, 400, None)
    assert (second.done, second.total, second.text) == (300, 400, '100 of 400 entries left')
    assert (third.done, third.outcome) == (400, None)
    for last in (server('removed'), None):
        assert ended(measure(last)) == (0, f'{NAME} is drained and removed from the pool.')


def test_someone_takes_it_back_while_it_drains():
    assert ended(DrainProgress(NAME)(server('joining'))) == (1, f'{NAME} is joining again: someone else resumed it.')


def test_nothing_is_under_way_on_it_any_more():
    now = [0.0]
    measure = MaintenanceProgress(NAME, lambda: now[0])
    first, second = (measure(server('maintenance', in_hand=count)) for count in (3, 0))
    assert (first.done, first.total, first.text, first.outcome) == (0, 3, '3 under way', None)
    assert (second.done, second.outcome) == (3, None), 'a pool manager may not know yet'
    now[0] = 2.0
    assert measure(server('maintenance', in_hand=1)).outcome is None
    assert ended(measure(server('maintenance'))) == (0, f'{NAME} is in maintenance, and nothing is under way on it.')
    assert ended(measure(server('active')))[0] == 1


class Answers:
    """A client that is answered so, the last answer again and again."""

    def __init__(self, *answers):
        self._answers = list(answers)

    def get(self, path):
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


QUICK = Backoff(0.001, 1.0)


def test_the_api_stumbles_and_is_back():
    stream = io.StringIO()
    client = Answers(server(waiting=1), CliError('It is away.'), server())
    assert follow(client, server(), CatchUpProgress(NAME, True), 60, Progress(stream), QUICK).code == 0
    assert stream.getvalue() == f'0 %  {NAME}: 1 waiting\n100 %  {NAME}: nothing is waiting\n'


@pytest.mark.parametrize('answer, told', [(server(waiting=7), '7 waiting'), (CliError('It is away.'), 'It is away')])
def test_the_time_is_over(answer, told):
    ending = follow(Answers(answer), server(), CatchUpProgress(NAME, True), 0.02, Progress(io.StringIO()), QUICK)
    assert (ending.code, ending.line) == (4, f'{NAME} is not done after 0.02 s: {told}.')


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv('COLUMNS', '60')
    monkeypatch.setenv('TERM', 'xterm')


def test_a_terminal_has_one_line_that_is_redrawn():
    stream = Terminal()
    bar = Progress(stream)
    bar.show(0, 4, 'none')
    bar.show(1, 4, 'one')
    bar.end()
    assert stream.getvalue() == '\r0 %  none\033[K\n\033[J\033[1A\r25 %  one\033[K\n\033[J'


def test_elsewhere_a_line_every_few_seconds():
    stream, now = io.StringIO(), [0.0]
    bar = Progress(stream, lambda: now[0])
    for step in range(13):
        bar.show(step, 12, f'step {step}')
        now[0] += 1
    bar.end()
    assert stream.getvalue().splitlines() == ['0 %  step 0', '41 %  step 5', '83 %  step 10', '100 %  step 12']
    bar.end()
    assert stream.getvalue().count('\n') == 4


def test_nothing_shown_is_nothing_written():
    for stream in (Terminal(), io.StringIO()):
        Progress(stream).end()
        assert stream.getvalue() == ''
