"""Waiting until a server has what it is to have, or has been drained, and telling how far it is."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from designate_pool.cli.http.client import ApiRefusal, Client, CliError
from designate_pool.cli.render.progress import Bar
from designate_pool.cli.wait.zone_wait import DELETED_MEANWHILE, DONE, FAILED, TIMED_OUT, WaitOutcome

Json = dict[str, Any]
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
#: So many seconds all that waits must have failed before the wait is given up: the next try may be under way.
STUCK = 15.0
#: Seconds after which every pool manager knows a server's new state.
NOTICED = 2.0


@dataclasses.dataclass(frozen=True)
class ServerProgress:
    """How far a server is: *done* of *total*, in words, and whether the wait is over with that."""

    done: int
    total: int
    text: str
    ending: WaitOutcome | None = None


#: Where a server stands, from what ``/v2/servers/{id}`` shows, which is None once the server is gone.
Measure = Callable[[Json | None], ServerProgress]


def follow(client: Client, server: Json, measure: Measure, seconds: float, bar: Bar) -> WaitOutcome:
    """Wait until *measure* says that it is over, or *seconds* are."""
    end = time.monotonic() + seconds
    told = 'the API did not answer'
    pause = FIRST_PAUSE
    try:
        while True:
            try:
                stand = measure(_look(client, server))
            except CliError as failure:  # the API may be back before the time is over
                told = str(failure)
            else:
                told = stand.text
                bar.show(stand.done, stand.total, f'{server["name"]}: {told}')
                if stand.ending is not None:
                    return stand.ending
            left = end - time.monotonic()
            if left <= 0:
                return WaitOutcome(TIMED_OUT, f'{server["name"]} is not done after {seconds:g} s: {told.rstrip(".")}.')
            time.sleep(min(pause, left))
            pause = min(pause * 1.3, LONGEST_PAUSE)
    finally:
        bar.end()


def _look(client: Client, server: Json) -> Json | None:
    try:
        return client.get(f'/v2/servers/{server["id"]}')
    except ApiRefusal as refused:
        if refused.status == 404:
            return None
        raise


class CaughtUp:
    """Over when nothing waits for the server any more, when all that does keeps failing, or when somebody stops it.

    :param name: the server's
    :param must_count: whether it has to be active too, not only filled as far as it is
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
            done, total, text = shown['filled'], shown['domains'], filled(shown)
        else:
            done, total, text = self._most - shown['waiting'], self._most, 'nothing is waiting'
        if shown['waiting']:
            text = f'{text}, ' if shown['filling'] else ''
            text += f'{shown["waiting"]} waiting'
        if shown['failing']:
            text += f', {shown["failing"]} failing'
        return ServerProgress(done, total, text, self._ending(shown))

    def _ending(self, shown: Json) -> WaitOutcome | None:
        state = shown['state']
        if state not in ('joining', 'active'):
            return WaitOutcome(DELETED_MEANWHILE, f'{self._name} is {standing(shown)}, and nothing is sent to it.')
        if shown['filling']:
            return None
        if not shown['waiting']:
            return None if self._must_count and state != 'active' else WaitOutcome(
                DONE, f'{self._name} is {standing(shown)} and nothing waits for it.')
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


class Drained:
    """Over when the server is removed, or when somebody has it join again."""

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
        ending = None if shown['state'] == 'draining' else WaitOutcome(
            DELETED_MEANWHILE, f'{self._name} is {standing(shown)} again: someone else resumed it.')
        return ServerProgress(self._most - left, max(1, self._most), text, ending)


class Rested:
    """Over when nothing is under way on the server any more, or when somebody has it work again.

    The pool managers look once a second whether a server is to rest; until they have, they may begin something.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._known_at = clock() + NOTICED
        self._most = 0

    def __call__(self, shown: Json | None) -> ServerProgress:
        if shown is None or shown['state'] != 'maintenance':
            return ServerProgress(0, 1, 'not in maintenance', WaitOutcome(
                DELETED_MEANWHILE, f'{self._name} is not in maintenance any more: someone else resumed or drained it.'))
        self._most = max(self._most, shown['in_hand'])
        ending = None if shown['in_hand'] or self._clock() < self._known_at else WaitOutcome(
            DONE, f'{self._name} is in maintenance, and nothing is under way on it.')
        return ServerProgress(self._most - shown['in_hand'], max(1, self._most), f'{shown["in_hand"]} under way',
                              ending)


def filled(shown: Json) -> str:
    return f'{shown["filled"]} of {shown["domains"]} zones begun'


def standing(shown: Json) -> str:
    """A server's state as it is said."""
    return 'in maintenance' if shown['state'] == 'maintenance' else str(shown['state'])
