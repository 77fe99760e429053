"""What clients did, what servers and the API were seen to answer, and which faults there were: a list of events.

An event is a JSON object with ``t``, the seconds since the run began, and ``e``, its kind; see :data:`FIELDS`.  A life
is a zone from its creation to its deletion; its number is that of the operation that created it.  The workload puts it
into the zone's mail address, so that the API tells it, and every server in the SOA.  A restored zone has a new life, of
the serials above that of its deletion.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import json
import math
import pathlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

Event = dict[str, Any]
#: An RRset's name and type, and what it holds: TTL and sorted rdata; None for no such RRset.
Key = tuple[str, str]
Value = tuple[int, tuple[str, ...]] | None

#: What an event of each kind has besides ``t`` and ``e``.  A ``served`` whose serial is null means that the server does
#: not have the zone, or, with ``why``, that it did not say; ``shown`` as GONE means that the API has no such zone, as
#: ``signed`` that somebody asked for its signing.  ``signatures`` is a digest of what a signer makes, null where there
#: is nothing of it, and ``invalid`` what is wrong with it.  A
#: ``foreign_rrset`` is about to be written on a server by somebody else, or was, if ``written``.  A ``released`` zone
#: got the serial as its staged release was held, so that servers have former contents under it, or as it went on.
FIELDS = {
    'run': ('seed', 'servers', 'fed', 'threshold', 'bound'),
    'invoke': ('op', 'client', 'tenant', 'type', 'zone', 'life', 'changes', 'deleted_serial'),
    'ok': ('op', 'zone_id', 'serial', 'code'),
    'fail': ('op', 'code', 'why'),
    'unknown': ('op', 'code', 'why'),
    'shown': ('asked', 'tenant', 'zone', 'zone_id', 'life', 'status', 'action', 'serial', 'signed'),
    'served': ('asked', 'server', 'zone', 'life', 'serial', 'why'),
    'contents': ('asked', 'server', 'zone', 'life', 'serial', 'rrsets', 'signatures', 'invalid'),
    'fault': ('id', 'fault', 'target', 'phase', 'spoils', 'excuses', 'detail'),
    'healed': (),
    'leftover': ('where', 'what'),
    'foreign': ('tenant', 'what'),
    'foreign_rrset': ('asked', 'server', 'zone', 'written'),
    'freeze': ('phase',),
    'stages': ('phase', 'canary', 'bake'),
    'released': ('zone', 'serial'),
}
CREATE, CHANGE, DELETE, RESTORE = 'create_zone', 'change', 'delete_zone', 'restore_zone'
GONE = 'GONE'
#: Faults with which a server loses zones, with all that is in them.
_EMPTYING = ('wipe', 'lose_zones', 'move')
_HALF, _SPACE = 1 << 31, 1 << 32
_NEVER = math.inf


class History:
    """Takes events from any thread and appends them to a file of JSON lines.

    :param path: None to keep them in memory alone
    """

    def __init__(self, path: pathlib.Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._events: list[Event] = []
        self._lock = threading.Lock()
        self._file = None if path is None else path.open('a', encoding='utf-8', buffering=1)

    def now(self) -> float:
        """Seconds since the run began."""
        return round(self._clock() - self._start, 6)

    def add(self, kind: str, **fields: Any) -> Event:
        """Append an event that happens now."""
        assert fields.keys() <= set(FIELDS[kind]) or kind == 'run', f'{kind}: {fields}'
        with self._lock:
            event = {'t': self.now(), 'e': kind, **fields}
            self._events.append(event)
            if self._file is not None:
                self._file.write(json.dumps(event) + '\n')
        return event

    def events(self) -> list[Event]:
        """All events so far, in order."""
        with self._lock:
            return list(self._events)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def newer(one: int, other: int) -> bool:
    """Whether a serial is newer than another (RFC 1982 section 3.2)."""
    return 0 < (one - other) % _SPACE < _HALF


def at_least(one: int, other: int) -> bool:
    return one == other or newer(one, other)


def foreign_rrset(zone: str) -> tuple[Key, tuple[int, tuple[str, ...]]]:
    """What somebody else writes into a zone on a server that is fed by records."""
    return (f'foreign.{zone}', 'TXT'), (300, ('"not of the pool"',))


def value_of(ttl: int | None, records: Iterable[str]) -> Value:
    found = tuple(sorted(records))
    return (ttl or 0, found) if found else None


@dataclasses.dataclass(slots=True)
class Change:
    """One operation of a client.

    :ivar life: that it is about; its own number if it creates one
    :ivar changes: the RRsets that it sets
    :ivar ended: when its answer came, or, if the outcome was unknown, when its effect was first seen; infinity before
    :ivar outcome: ``ok``, also when its effect was seen, ``fail`` or ``unknown``
    :ivar answered: whether the API acknowledged it
    :ivar serial: that it gave the zone, if it is known
    :ivar seen_serial: the oldest serial at which a server had its records
    """

    number: int
    tenant: str
    type: str
    zone: str
    life: int
    changes: dict[Key, Value]
    invoked: float
    events: list[Event]
    ended: float = _NEVER
    outcome: str = 'unknown'
    answered: bool = False
    serial: int | None = None
    seen_serial: int | None = None

    def name(self) -> str:
        how = 'acknowledged' if self.answered else 'of unknown outcome' if self.outcome == 'unknown' else 'seen'
        return f'operation {self.number} ({self.type}, {"refused" if self.outcome == "fail" else how})'


@dataclasses.dataclass(slots=True)
class Life:
    """A zone from its creation to its deletion.

    :ivar former: that which it continues, restored
    :ivar readings: serials that the API told: (asked, told, serial, event), by the time told
    :ivar seen_at: when it was first seen to exist; infinity before
    """

    create: Change
    former: Life | None = None
    changes: list[Change] = dataclasses.field(default_factory=list)
    deletions: list[Change] = dataclasses.field(default_factory=list)
    readings: list[tuple[float, float, int, Event]] = dataclasses.field(default_factory=list)
    shown: list[Event] = dataclasses.field(default_factory=list)
    seen_at: float = _NEVER

    @property
    def number(self) -> int:
        return self.create.number

    @property
    def zone(self) -> str:
        return self.create.zone

    @property
    def tenant(self) -> str:
        return self.create.tenant

    @property
    def was_created(self) -> bool:
        return self.create.outcome == 'ok'

    @property
    def written_by(self) -> list[Change]:
        """The operations that may have written what it has, also in lives that it continues."""
        return [*(self.former.written_by if self.former else ()), self.create, *self.changes]

    @property
    def may_be_deleted_from(self) -> float:
        """When the first operation that may have deleted it was begun."""
        late = [each for each in (self.former.deletions if self.former else ()) if each.ended > self.create.invoked]
        return min((each.invoked for each in (*self.deletions, *late) if each.outcome != 'fail'), default=_NEVER)

    @property
    def deleted_at(self) -> float:
        """When its deletion was first known to be acknowledged."""
        return min((each.ended for each in self.deletions if each.outcome == 'ok'), default=_NEVER)

    def is_before(self, other: Life) -> bool:
        """Whether it certainly began before *other*, a life of the same name."""
        return self.create.ended < other.create.invoked

    def serial_before(self, moment: float) -> int | None:
        """The newest serial that was told before *moment*."""
        index = bisect.bisect_left(self.readings, moment, key=lambda reading: reading[1])
        return self._newest[index - 1] if index else None

    def serial_after(self, moment: float) -> int | None:
        """The oldest serial that was told to who asked after *moment*."""
        index = bisect.bisect_left(self._by_asked, moment, key=lambda reading: reading[0])
        return self._oldest[index] if index < len(self._by_asked) else None

    def index(self) -> None:
        """Put what was read in order; nothing may be added afterwards."""
        self.readings.sort(key=lambda reading: reading[1])
        self._newest = _running(each[2] for each in self.readings)
        self._by_asked = sorted(self.readings, key=lambda reading: reading[0])
        self._oldest = _running((each[2] for each in reversed(self._by_asked)), oldest=True)[::-1]

    _newest: list[int] = dataclasses.field(default_factory=list)
    _by_asked: list[tuple[float, float, int, Event]] = dataclasses.field(default_factory=list)
    _oldest: list[int] = dataclasses.field(default_factory=list)


def _running(serials: Iterable[int], oldest: bool = False) -> list[int]:
    """The newest, or oldest, of all serials up to each."""
    found: list[int] = []
    for serial in serials:
        found.append(found[-1] if found and newer(serial, found[-1]) is oldest and serial != found[-1] else serial)
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a server itself.

    :ivar spoils: whether it leaves other contents on the server, which takes until the end of the run to be mended
    :ivar excuses: whether the server may fall back behind what it has served; not when it is only slow or silent
    :ivar empties: whether the server loses zones
    """

    begin: float
    end: float
    spoils: bool
    excuses: bool
    empties: bool


@functools.lru_cache(64)
def needed(servers: int, threshold: int) -> int:
    """How many of *servers* must serve a change before it is ACTIVE."""
    return max(1, -(-servers * threshold // 100))


class Past:
    """The events of a history by what they are about.

    :ivar fed: the servers that are fed by records
    :ivar healed: when all faults had ended; when a server that hung by itself was started anew, if that was later
    :ivar observed: by server and zone; without what somebody else wrote there, and with ``foreign`` whether it is there
    :ivar foreign: when somebody else wrote into a zone on a server, by server and zone: (begun, written); not written
        for sure at infinity
    :ivar released: names and serials of zones whose staged releases were held or went on, see :data:`FIELDS`
    :ivar freezes: when the pool was certainly frozen: (begin, end); *stages*: when changes were certainly released in
        stages: (begin, end, how)
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.run = next((each for each in events if each['e'] == 'run'), {})
        self.servers: list[str] = list(self.run.get('servers', ()))
        self.fed = set(self.run.get('fed', ()))
        self.threshold = int(self.run.get('threshold', 100))
        self.bound = float(self.run.get('bound', _NEVER))
        self.healed: float | None = next((each['t'] for each in reversed(events) if each['e'] == 'healed'), None)
        self.changes: dict[int, Change] = {}
        self.lives: dict[int, Life] = {}
        self.by_name: dict[str, list[Life]] = {}
        self.origins: dict[tuple[str, str], list[Change]] = {}
        self.observed: dict[tuple[str, str], list[Event]] = {}
        self.foreign: dict[tuple[str, str], list[tuple[float, float]]] = {}
        self.others: list[Event] = []
        self.released: set[tuple[str, int]] = set()
        self.freezes: list[tuple[float, float]] = []
        self.stages: list[tuple[float, float, Event]] = []
        self._faults: dict[str, list[Fault]] = {}
        self._moved: dict[str, float] = {}
        self._restored: dict[int, list[tuple[int, int]]] = {}
        began: dict[str, Event] = {}
        for event in events:
            self._take(event, began)
        for event in began.values():
            self._add_fault(event, _NEVER)
        for key in self.foreign:
            self.observed[key] = [_without_foreign(each) for each in self.observed.get(key, ())]
        self._resolve()
        for life in self.lives.values():
            life.index()

    def are_enough(self, servers: Collection[str], at: float) -> bool:
        """Whether it takes no more than these servers for a change to be ACTIVE.

        A server that has moved joins the pool anew: it does not count until it has all zones.
        """
        others = [each for each in self.servers if self._moved.get(each, _NEVER) > at]
        return any(len(set(counted).intersection(servers)) >= needed(len(counted), self.threshold)
                   for counted in (self.servers, others))

    def is_disturbed(self, server: str, since: float, until: float) -> bool:
        """Whether a fault that excuses the server was in effect at some time between these."""
        return any(fault.excuses and fault.begin <= until and fault.end >= since
                   for fault in self._faults.get(server, ()))

    def is_spoilt(self, server: str, at: float) -> bool:
        """Whether a fault may have left other contents on the server by then."""
        return any(fault.spoils and fault.begin <= at for fault in self._faults.get(server, ()))

    def has_lost_zones(self, server: str, since: float, until: float) -> bool:
        """Whether a fault took zones from the server at some time between these."""
        return any(fault.empties and fault.begin <= until and fault.end >= since
                   for fault in self._faults.get(server, ()))

    def after_healing(self, events: Iterable[Event]) -> list[Event]:
        """Those of *events* that were asked for after the faults had ended, within the bound."""
        if self.healed is None:
            return []
        return [each for each in events if each['asked'] >= self.healed and each['t'] <= self.healed + self.bound]

    def _take(self, event: Event, began: dict[str, Event]) -> None:
        kind = event['e']
        event = self._with_life(event)
        if kind == 'invoke':
            self._begin(event)
        elif kind in ('ok', 'fail', 'unknown'):
            change = self.changes[event['op']]
            change.events.append(event)
            change.outcome, change.answered, change.serial = kind, kind == 'ok', event.get('serial')
            if kind == 'ok':
                change.ended = event['t']
        elif kind in ('served', 'contents'):
            self.observed.setdefault((event['server'], event['zone']), []).append(event)
        elif kind == 'fault' and event['phase'] == 'begin':
            began[event['id']] = event
            if event['fault'] == 'move':
                self._moved.setdefault(event['target'], event['t'])
        elif kind == 'fault':
            self._add_fault(began.pop(event['id'], event), event['t'])
        elif kind == 'shown' and event.get('life') in self.lives:
            self.lives[event['life']].shown.append(event)
        elif kind == 'foreign_rrset':
            self.foreign.setdefault((event['server'], event['zone']), []).append(
                (event['asked'], event['t'] if event['written'] else _NEVER))
        elif kind == 'released':
            self.released.add((event['zone'], event['serial']))
        elif kind == 'freeze' and event['phase'] == 'begin':
            self.freezes.append((event['t'], _NEVER))
        elif kind == 'freeze':
            self.freezes[-1] = self.freezes[-1][0], event['t']
        elif kind == 'stages' and event['phase'] == 'begin':
            self.stages.append((event['t'], _NEVER, event))
        elif kind == 'stages':
            self.stages[-1] = self.stages[-1][0], event['t'], self.stages[-1][2]
        elif kind in ('leftover', 'foreign', 'shown'):
            self.others.append(event)

    def _with_life(self, event: Event) -> Event:
        """The event; where a zone has been restored, with the life that its serial is of."""
        if event['e'] in ('served', 'contents', 'shown') and event['serial'] is not None:
            for deleted_at, life in self._restored.get(event.get('life') or 0, ()):
                if newer(event['serial'], deleted_at):
                    event = {**event, 'life': life}
        return event

    def _begin(self, event: Event) -> None:
        begins = event['type'] in (CREATE, RESTORE)
        life = event['op'] if begins else event['life']
        changes = {(name, rtype): value_of(ttl, records) for name, rtype, ttl, records in event.get('changes', ())}
        change = Change(event['op'], event['tenant'], event['type'], event['zone'], life, changes, event['t'], [event])
        self.changes[change.number] = change
        if begins:
            former = self.lives[event['life']] if event['type'] == RESTORE else None
            self.lives[life] = Life(change, former)
            while former is not None:
                self._restored.setdefault(former.number, []).append((event['deleted_serial'], life))
                former = former.former
            self.by_name.setdefault(change.zone, []).append(self.lives[life])
        elif life in self.lives:
            of = self.lives[life]
            (of.deletions if event['type'] == DELETE else of.changes).append(change)
        for (_, rtype), value in changes.items():
            for rdata in value[1] if value else ():
                self.origins.setdefault((rtype, rdata), []).append(change)

    def _add_fault(self, event: Event, end: float) -> None:
        fault = Fault(event['t'], end, event.get('spoils', True), event.get('excuses', True),
                      event.get('fault') in _EMPTYING)
        self._faults.setdefault(event['target'], []).append(fault)

    def _resolve(self) -> None:
        """Take operations of unknown outcome whose effect was seen for done, and collect what was told of serials."""
        for life in self.lives.values():
            for event in life.shown:
                possible = [each for each in life.deletions if each.outcome != 'fail']
                if len(possible) == 1 and (event['status'] == GONE and life.seen_at <= event['t']
                                           or event.get('action') == 'DELETE'):
                    _see(possible[0], event['t'])
                if event['status'] != GONE:
                    life.seen_at = min(life.seen_at, event['t'])
                    life.readings.append((event['asked'], event['t'], event['serial'], event))
        for events in self.observed.values():
            for event in events:
                if event.get('life') in self.lives:
                    life = self.lives[event['life']]
                    life.seen_at = min(life.seen_at, event['t'])
                if event['e'] == 'contents' and not self.is_spoilt(event['server'], event['t']):
                    self._see_contents(event)
        for life in self.lives.values():
            if life.seen_at < _NEVER:
                _see(life.create, life.seen_at)
            for each in (life.create, *life.changes, *life.deletions):
                if each.answered and each.serial is not None:
                    life.readings.append((each.invoked, each.ended, each.serial, each.events[-1]))

    def _see_contents(self, event: Event) -> None:
        for _, rtype, _, rdatas in event['rrsets']:
            for rdata in rdatas:
                possible = [each for each in self.origins.get((rtype, rdata), ()) if each.life == event['life']]
                if len(possible) == 1:
                    change, = possible
                    _see(change, event['t'])
                    if change.seen_serial is None or newer(change.seen_serial, event['serial']):
                        change.seen_serial = event['serial']


def _without_foreign(event: Event) -> Event:
    if event['e'] != 'contents':
        return event
    key, (ttl, rdatas) = foreign_rrset(event['zone'])
    rest = [each for each in event['rrsets'] if tuple(each[:2]) != key]
    return {**event, 'rrsets': rest, 'foreign': [*key, ttl, list(rdatas)] in event['rrsets']}


def _see(change: Change, at: float) -> None:
    if change.outcome in ('unknown', 'ok') and not change.answered:
        change.outcome, change.ended = 'ok', min(change.ended, at)


@functools.lru_cache(4096)
def lies_below(name: str, other: str) -> bool:
    """Whether a domain name is below another."""
    return name != other and name.endswith(f'.{other}')


def of_zone(events: Sequence[Event], names: Mapping[str, Any] | Iterable[str]) -> list[Event]:
    """Those events that are about these zones, or about no zone."""
    wanted = set(names)
    numbers = {each['op'] for each in events if each['e'] == 'invoke' and each['zone'] in wanted}
    return [each for each in events if each.get('zone', next(iter(wanted), '')) in wanted
            and ('op' not in each or each['op'] in numbers)]
