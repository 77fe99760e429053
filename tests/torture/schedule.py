"""Which faults begin when: by a seed, overlapping, and as JSON, so that a run can be repeated and cut short."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterable, Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class FaultKind:
    """
    :ivar targets: what it can be done to
    :ivar group: of the faults of a group one at a time is done to a target
    :ivar alone: whether one of them at a time is done to all targets, such as the nodes of a cluster
    :ivar shortest: seconds
    :ivar longest: seconds
    :ivar weight: how often it comes, beside the others
    """

    name: str
    targets: tuple[str, ...]
    group: str
    shortest: float
    longest: float
    weight: float = 1.0
    alone: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedFault:
    """
    :ivar at: seconds after the beginning
    :ivar seconds: that it lasts
    :ivar number: its place in the schedule, which seeds what it does at random
    """

    at: float
    seconds: float
    fault: str
    target: str
    number: int


#: How much likelier a favoured fault is than its weight has it.
_FAVOURED = 20.0


def make(kinds: Sequence[FaultKind], seed: int, seconds: float, at_once: float = 3.0, favoured: str = ''
         ) -> list[PlannedFault]:
    """A schedule.

    :param seconds: in which all faults have ended
    :param at_once: how many there are at the same time, in the mean
    :param favoured: the name of a fault that comes early, and more often than others
    """
    chance = random.Random(f'{seed}/schedule')
    free: dict[tuple[str, str], float] = {}
    found: list[PlannedFault] = []
    last = dict.fromkeys((kind.name for kind in kinds), 0)
    mean = sum(kind.weight * (kind.shortest + kind.longest) / 2 for kind in kinds) / sum(each.weight for each in kinds)
    at = chance.uniform(0, mean / at_once)
    while at < seconds:
        # One that has come less often than others is likelier, so that a few runs have all.
        kind = chance.choices(kinds, [each.weight * (_FAVOURED if each.name == favoured else 1)
                                      / (1 + last[each.name]) ** 2 for each in kinds])[0]
        target = chance.choice(kind.targets)
        lasts = min(chance.uniform(kind.shortest, kind.longest), seconds - at)
        place = kind.group, '' if kind.alone else target
        if free.get(place, 0.0) <= at and lasts >= kind.shortest:
            found.append(PlannedFault(round(at, 1), round(lasts, 1), kind.name, target, len(found)))
            free[place] = at + lasts + 1
            last[kind.name] += 1
        at += chance.expovariate(at_once / mean)
    return found


def to_json(schedule: Iterable[PlannedFault]) -> str:
    return '[\n' + ',\n'.join(json.dumps(dataclasses.asdict(each)) for each in schedule) + '\n]'


def from_json(text: str) -> list[PlannedFault]:
    return [PlannedFault(**each) for each in json.loads(text)]
