"""Waiting until a server has caught up, is drained, or is in maintenance, with its progress."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from designate_pool.backoff import Backoff
from designate_pool.cli.http.client import Client
from designate_pool.cli.http.errors import ApiRefusal, Json
from designate_pool.cli.render.progress import Bar
from designate_pool.cli.wait.poll import poll
from designate_pool.cli.wait.zone_wait import DELETED_MEANWHILE, DONE, FAILED, TIMED_OUT, WaitOutcome

PAUSES = Backoff(0.1, 1.3, cap=2.0)
#: Seconds for which every waiting operation must have failed before the wait is given up: a retry may be under way.
STUCK = 15.0
#: Seconds after which every pool manager that the broker reaches knows a server's new state.
STATE_KNOWN = 2.0


@dataclasses.dataclass(frozen=True)
class ServerProgress:
    """How far a server is: *done* of *total*, in words, and how the wait ended if it is over."""

    done: int
    total: int
    text: str
    outcome: WaitOutcome | None = None


#: Reads the progress from what ``/v2/servers/{id}`` shows: None once the server is gone.
Measure = Callable[[Json | None], ServerProgress]


def follow(client: Client, server: Json, measure: Measure, seconds: float, bar: Bar,
           pauses: Backoff = PAUSES) -> WaitOutcome:
    """Wait until *measure* says that it is over, or *seconds* are.

    :param pauses: from one look to the next
    """
    progress: ServerProgress | None = None

    def look() -> WaitOutcome | None:
        nonlocal progress
        progress = measure(_fetch(client, server))
        bar.show(progress.done, progress.total, f'{server["name"]}: {progress.text}')
        return progress.outcome

    try:
        outcome, failure = poll(look, time.monotonic() + seconds, pauses)
    finally:
        bar.end()
    why = str(failure).rstrip('.') if progress is None or failure is not None else progress.text
    return outcome or WaitOutcome(TIMED_OUT, f'{server["name"]} is not done after {seconds:g} s: {why}.')


def _fetch(client: Client, server: Json) -> Json | None:
    try:
        return client.get(f'/v2/servers/{server["id"]}')
    except ApiRefusal as refused:
        if refused.status == 404:
            return None
        raise


class CatchUpProgress:
    """Over when no operation waits for the server, when all that wait keep failing, or when somebody stops it.

    :param name: the server's
    :param must_count: whether it has to be active as well
    :param clock: seconds from anywhere
    """

    def __init__(self, name: str, must_count: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._must_count = must_count
        self._clock = clock
        self._most = 0
        self._stuck: tuple[int, float] | None = None

    def __call__(self, shown: Json | None) -> ServerProgress:
        if shown is None:
            return ServerProgress(0, 1, 'removed',
                                  WaitOutcome(DELETED_MEANWHILE, f'{self._name} was removed by someone else.'))
        self._most = max(self._most, shown['waiting'])
        if shown['filling']:
            done, total, text = shown['filled'], shown['domains'], filling(shown)
        else:
            done, total, text = self._most - shown['waiting'], self._most, 'nothing is waiting'
        if shown['waiting']:
            text = f'{text}, ' if shown['filling'] else ''
            text += f'{shown["waiting"]} waiting'
        if shown['failing']:
            text += f', {shown["failing"]} failing'
        return ServerProgress(done, total, text, self._outcome(shown))

    def _outcome(self, shown: Json) -> WaitOutcome | None:
        state = shown['state']
        if state not in ('joining', 'active'):
            return WaitOutcome(DELETED_MEANWHILE, f'{self._name} is {state_of(shown)}, and nothing is sent to it.')
        if shown['filling']:
            return None
        if not shown['waiting']:
            return None if self._must_count and state != 'active' else WaitOutcome(
                DONE, f'{self._name} is {state_of(shown)} and nothing waits for it.')
        if not self._is_stuck(shown):
            return None
        first = ''.join(f': {each["zone_name"]} {each["action"]} ({each["error"]})' for each in shown['failures'][:1])
        return WaitOutcome(FAILED, f'{shown["failing"]} operations on {self._name} have failed and will be tried '
                           f'again{first}.')

    def _is_stuck(self, shown: Json) -> bool:
        if shown['failing'] < shown['waiting']:
            self._stuck = None
            return False
        if self._stuck is None or self._stuck[0] != shown['waiting']:
            self._stuck = shown['waiting'], self._clock()
        return self._clock() - self._stuck[1] >= STUCK


class DrainProgress:
    """Over when the server is removed, or when somebody has resumed it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._most = 0

    def __call__(self, shown: Json | None) -> ServerProgress:
        if shown is None or shown['state'] == 'removed':
            return ServerProgress(1, 1, 'removed',
                                  WaitOutcome(DONE, f'{self._name} is drained and removed from the pool.'))
        left = shown['rows'] or 0
        self._most = max(self._most, left)
        text = f'{left} of {self._most} entries left' if left else 'nothing is left'
        outcome = None if shown['state'] == 'draining' else WaitOutcome(
            DELETED_MEANWHILE, f'{self._name} is {state_of(shown)} again: someone else resumed it.')
        return ServerProgress(self._most - left, max(1, self._most), text, outcome)


class MaintenanceProgress:
    """Over when nothing is under way on the server any more, or when somebody has resumed it.

    Pool managers are told of the states of servers; until they know them, they may begin something.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._known_at = clock() + STATE_KNOWN
        self._most = 0

    def __call__(self, shown: Json | None) -> ServerProgress:
        if shown is None or shown['state'] != 'maintenance':
            return ServerProgress(0, 1, 'not in maintenance', WaitOutcome(
                DELETED_MEANWHILE, f'{self._name} is not in maintenance any more: someone else resumed or drained it.'))
        self._most = max(self._most, shown['in_hand'])
        outcome = None if shown['in_hand'] or self._clock() < self._known_at else WaitOutcome(
            DONE, f'{self._name} is in maintenance, and nothing is under way on it.')
        return ServerProgress(self._most - shown['in_hand'], max(1, self._most), f'{shown["in_hand"]} under way',
                              outcome)


def filling(shown: Json) -> str:
    return f'{shown["filled"]} of {shown["domains"]} zones started'


def state_of(shown: Json) -> str:
    """A server's state as an adjective."""
    return 'in maintenance' if shown['state'] == 'maintenance' else str(shown['state'])
