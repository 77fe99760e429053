"""Zones, changes and a target, from DNS text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.zone import changes as changes_
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import NO_EXTRA, Extra, RRset, rrset

ORIGIN = 'example.com.'


def records(text: str, extra: Extra = NO_EXTRA, origin: str = ORIGIN) -> list[RRset]:
    """A line for each record: name, TTL, type, data; ``@`` is *origin*, and names without a dot are below it."""
    found: dict[tuple[str, str, int], list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, ttl, rtype, data = line.split(None, 3)
        name = origin if name == '@' else name if name.endswith('.') else f'{name}.{origin}'
        found.setdefault((name, rtype, int(ttl)), []).append(data)
    return [rrset(name, rtype, ttl, datas, extra) for (name, rtype, ttl), datas in found.items()]


def record(text: str, extra: Extra = NO_EXTRA) -> RRset:
    (found,) = records(text, extra)
    return found


def zone(text: str = '', *extra: RRset, origin: str = ORIGIN, lenient: bool = False) -> Zone:
    made = Zone(origin)
    for each in (*records(text, origin=origin), *extra):
        made.add_record(each, lenient=lenient)
    return made


def hosts(count: int, first: int = 0) -> str:
    """*count* A records: h00, h01, ..."""
    return '\n'.join(f'h{number:02} 300 A 192.0.2.{number}' for number in range(first, first + count))


def text_of(found: Zone | Iterable[RRset]) -> list[str]:
    return sorted(map(str, found))


def told(found: Iterable[Change]) -> list[str]:
    """Changes as text, in their order, example.com. left out of names."""
    return [str(each).replace(f'.{ORIGIN}', '') for each in found]


def plan(existing: Zone, desired: Zone, exists: bool = True, update: float = 0.3, delete: float = 0.3) -> Plan:
    return Plan(existing, desired, changes_.between(existing, desired), exists, update, delete, target_id='target')


class Source(BaseSource):
    """Gives what it was made with."""

    def __init__(self, contents: Zone) -> None:
        super().__init__('source')
        self.contents = contents

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        for each in self.contents:
            zone.add_record(each, lenient=lenient)
        return True


class Target(BaseProvider):
    """A target in memory.

    :ivar has: what it has; None while the zone is not there
    :ivar breaks_after: how many changes it makes before it breaks
    """

    def __init__(self, has: Zone | None = None, id: str = 'target', **options: object) -> None:
        super().__init__(id, **{'root_ns_warnings': False, **options})  # type: ignore[arg-type]
        self.has = has
        self.breaks_after: int | None = None

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        for each in self.has or ():
            zone.add_record(each, lenient=lenient)
        return self.has is not None

    def _apply(self, plan: Plan) -> ApplyResult:
        made = plan.changes[:self.breaks_after]
        self.has = changes_.apply(self.has or Zone(plan.zone), made)
        return ApplyResult(len(made), skipped=len(plan.changes) - len(made))


def synced(target: BaseProvider, desired: Zone, processors: Sequence[BaseProcessor] = ()) -> Plan | None:
    """The plan for *target* after all processors; *desired* is what the sources gave."""
    desired = desired.copy()
    for each in processors:
        desired = each.process_source_zone(desired, ())
    found = target.plan(desired, processors)
    for each in processors:
        found = each.process_plan(found, (), target)
    return found
