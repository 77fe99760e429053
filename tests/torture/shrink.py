"""The least that shows a breach, by halving: of a history, and of anything that can be tried again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.torture import checker
from tests.torture.checker import Breach
from tests.torture.history import Event, of_zone

T = TypeVar('T')
#: What is kept, since it tells what the rest means.
_KEPT = ('run', 'healed', 'fault')


def smallest(items: Sequence[T], shows: Callable[[list[T]], bool], tries: int = 40) -> list[T]:
    """Some of *items*, in order, which show it, and of which none can be left out as far as *tries* have told.

    :param shows: whether these show it; all of them do
    """
    found, parts = list(items), 2
    while found and tries > 0:
        size = -(-len(found) // parts)
        for start in range(0, len(found), size):
            rest = found[:start] + found[start + size:]
            tries -= 1
            if shows(rest):
                found, parts = rest, max(2, parts - 1)
                break
            if tries <= 0:
                return found
        else:
            if size == 1:
                break
            parts = min(len(found), parts * 2)
    return found


def history(events: Sequence[Event], breach: Breach, tries: int = 4000) -> list[Event]:
    """Those of *events* that show *breach*, the very same, an operation with its answer or without both.

    What is about other zones is left out first, where that shows it.
    """
    zones = {each['zone'] for each in breach.events if 'zone' in each} | ({breach.zone} if breach.zone else set())
    near = of_zone(events, zones) if zones else list(events)
    if breach not in checker.check(near):
        near = list(events)
    units: dict[object, list[Event]] = {}
    for index, event in enumerate(near):
        if event['e'] not in _KEPT:
            units.setdefault(event['op'] if 'op' in event else ('', index), []).append(event)
    kept = [each for each in near if each['e'] in _KEPT]

    def put_together(some: Sequence[list[Event]]) -> list[Event]:
        return sorted([*kept, *(event for unit in some for event in unit)], key=lambda event: event['t'])

    least = smallest(list(units.values()), lambda some: breach in checker.check(put_together(some)), tries)
    return put_together(least)
