"""The requests that carry out a plan on a PowerDNS, and what becomes of those that are refused.

The invariant: the SOA goes with the last request, and only if everything before and beside it went.
"""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from designate_pool import serial
from designate_pool.errors import BackendError
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.targets import pdns_rdata
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.powerdns import PdnsAnswer, absolute
from designate_pool.protocol.rrset import RRset
from designate_pool.protocol.soa_rdata import serial_of, with_serial

#: Octets of a request that every server takes, whatever its ``webserver-max-bodysize``, which is 2 MB by default.
SURE_SIZE = 900_000
#: Refusals of parts of one plan, after which the rest of it is not tried.
MOST_REFUSALS = 60

_REFUSED = (413, 422)

Entry = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class HeldRRset:
    """An RRset as the server has it.

    :ivar rrset: what it serves of it; None where all its records are disabled
    :ivar disabled: the data of records that it keeps and does not serve, as the API has it
    """

    key: str
    ttl: int
    rrset: RRset | None
    disabled: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class RequestPart:
    """A change as the API takes it; its entries go in one request."""

    change: Change
    entries: tuple[Entry, ...]


def held(given: Iterator[Mapping[str, Any]], read: Callable[[str, str], str],
         keys: Collection[str] | None = None) -> Iterator[HeldRRset]:
    """The RRsets that the API gave, but for those of types that are left alone.

    :param read: makes the normal form of a type's data
    :param keys: these alone
    :raises InvalidField: what *read* raises
    """
    for each in given:
        rtype, ttl, records = str(each['type']), int(each['ttl']), each['records']
        key = f'{absolute(each["name"])}\t{rtype}'
        if rtype not in pdns_rdata.TYPES or keys is not None and key not in keys:
            continue
        served = {read(rtype, record['content']) for record in records if not record['disabled']}
        found = RRset(key.partition('\t')[0], rtype, ttl, tuple(sorted(served))) if served else None
        yield HeldRRset(key, ttl, found, tuple(record['content'] for record in records if record['disabled']))


def entry(new: RRset, disabled: Sequence[str] = ()) -> Entry:
    """What has the server hold *new* in the place of what it holds of its name and type."""
    records = [{'content': pdns_rdata.of_rdata(new.type, each), 'disabled': False} for each in new.rdatas]
    given = {record['content'] for record in records}
    return {'name': new.name, 'type': new.type, 'ttl': new.ttl, 'changetype': 'REPLACE',
            'records': records + [{'content': each, 'disabled': True} for each in disabled if each not in given]}


def announced(desired: Zone) -> RRset | None:
    """The SOA of *desired* with the serial before its own: nobody is to take the empty zone for the full one."""
    soa = desired.get(desired.name, 'SOA')
    return None if soa is None else with_serial(soa, serial_of(soa) - 1)


def soa_to_write(plan: Plan, current: RRset | None, counted: bool) -> RRset | None:
    """The SOA that goes with the changes of *plan*; None when it stays.

    A serial is never wound back: whoever transfers the zone from there would not see the change.

    :param current: what is there now
    :param counted: whether the server counts up the serial by itself
    """
    wanted = plan.desired.get(plan.zone, 'SOA')
    if wanted is not None and any(each.record.type == 'SOA' for each in plan.changes):
        behind = current is not None and serial.newer(serial_of(current), serial_of(wanted))
        return with_serial(wanted, serial_of(current) + 1) if behind and current is not None else wanted
    if current is None or counted or not plan.changes:
        return None
    if wanted is None or serial.newer(serial_of(current), serial_of(wanted)):
        return with_serial(current, serial_of(current) + 1)
    return None


class PdnsApply:
    """One plan being carried out.

    :param there: what the server has now of all that the plan changes, by key
    :param soa: what goes last
    :param patch: makes one request
    :param most_octets: how long a request may be; asked only where it matters
    """

    def __init__(self, plan: Plan, there: Mapping[str, HeldRRset], soa: RRset | None,
                 patch: Callable[[Sequence[Entry]], PdnsAnswer], most_octets: Callable[[], int]) -> None:
        self._plan = plan
        self._there = there
        self._soa = soa
        self._patch = patch
        self._most_octets = most_octets
        self._planned_soa = sum(each.record.type == 'SOA' for each in plan.changes)
        self._queue: collections.deque[list[RequestPart]] = collections.deque()
        self._applied = self._failed = self._refusals = 0
        self._errors: list[str] = []

    def run(self) -> ApplyResult:
        """
        :raises BackendError: when nothing was done, for a reason that is in no record
        :raises OSError: likewise
        """
        self._queue.extend(self._cut(list(self._parts())))
        try:
            while self._queue and self._refusals < MOST_REFUSALS:
                self._send(self._queue.popleft())
        except (BackendError, OSError) as error:
            if not self._applied:
                raise
            self._errors.append(str(error) or 'no answer in time')
        skipped = max(len(self._plan.changes) - self._applied - self._failed, 0)
        if self._queue and self._refusals >= MOST_REFUSALS:
            self._errors.append(f'after {self._refusals} refusals the other changes were not tried')
        return ApplyResult(self._applied, self._failed, skipped, tuple(self._errors))

    def _parts(self) -> Iterator[RequestPart]:
        """All changes but the SOA's, as requests have them; what was changed there meanwhile has failed."""
        for change in self._plan.changes:
            if change.record.type == 'SOA':
                continue
            old, new = ({each.key: each for each in side} for side in (change.existing, change.new))
            if all(self._is_either(key, old.get(key), new.get(key)) for key in old.keys() | new.keys()):
                gone = [self._removal(each) for key, each in old.items() if key not in new]
                yield RequestPart(change, (*gone, *(entry(each, self._disabled(key)) for key, each in new.items())))
            else:
                self._fail(change, 'it was changed by somebody else after the plan was made')

    def _is_either(self, key: str, old: RRset | None, new: RRset | None) -> bool:
        there = self._there.get(key)
        now = there.rrset.packed if there is not None and there.rrset is not None else None
        return now in (old.packed if old is not None else None, new.packed if new is not None else None)

    def _removal(self, old: RRset) -> Entry:
        disabled = self._disabled(old.key)
        if disabled:  # they are somebody's, and not served
            return entry(old._replace(rdatas=()), disabled)
        return {'name': old.name, 'type': old.type, 'changetype': 'DELETE'}

    def _disabled(self, key: str) -> tuple[str, ...]:
        there = self._there.get(key)
        return there.disabled if there is not None else ()

    def _cut(self, parts: list[RequestPart]) -> Iterator[list[RequestPart]]:
        """*parts* as they fit into requests; one empty list when there are none, for the SOA."""
        sizes = [len(json.dumps(part.entries)) + 2 for part in parts]
        most = SURE_SIZE if sum(sizes) <= SURE_SIZE else self._most_octets()
        piece: list[RequestPart] = []
        octets = 0
        for part, size in zip(parts, sizes, strict=True):
            if piece and octets + size > most:
                yield piece
                piece, octets = [], 0
            piece.append(part)
            octets += size
        yield piece

    def _send(self, parts: list[RequestPart]) -> None:
        soa = self._soa if not self._queue and not self._failed else None
        entries = [each for part in parts for each in part.entries]
        if soa is not None:
            entries.append(entry(soa))
        if not entries:
            return
        # PowerDNS goes through them in their order, and sees a CNAME beside other data as soon as there is one.
        answer = self._patch(sorted(entries, key=lambda each: bool(each.get('records'))))
        if answer.status in _REFUSED:
            self._refusals += 1
            self._part_from_what_is_bad(parts, soa, answer.words)
        else:
            self._applied += len(parts) + (self._planned_soa if soa is not None else 0)

    def _part_from_what_is_bad(self, parts: list[RequestPart], soa: RRset | None, words: str) -> None:
        if soa is not None and (not parts or _named(soa, words)):
            self._soa = None
            self._fail(soa, words)
            self._queue.extend([parts] if parts else [])
            return
        bad = parts if len(parts) == 1 else [part for part in parts if _is_named(part.change, words)]
        good = [part for part in parts if not any(part is each for each in bad)]
        for part in bad:
            self._fail(part.change, words)
        middle = len(parts) // 2
        self._queue.extend(each for each in ([good] if bad else [parts[:middle], parts[middle:]]) if each)

    def _fail(self, what: Change | RRset, why: str) -> None:
        record = what.record if isinstance(what, Change) else what
        self._failed += 1
        self._errors.append(f'{record.name} {record.type}: {why}')


def _is_named(change: Change, words: str) -> bool:
    return any(_named(each, words) for each in (*change.existing, *change.new))


def _named(record: RRset, words: str) -> bool:
    """Whether a refusal is about *record*, by its words."""
    name = pdns_rdata.of_name(record.name)
    return f' {name}/{record.type} ' in words or f' {name} IN {record.type}' in words or f"'{name}'" in words
