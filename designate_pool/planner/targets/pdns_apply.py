"""Applies a plan to a PowerDNS: the requests, and how a refused request is divided.

The invariant: the SOA is sent with the last request, and takes effect only if all other changes have.
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

#: Octets of a request for which the setting ``webserver-max-bodysize`` (2 MB by default) need not be read.
SURE_SIZE = 900_000
#: The number of refused requests after which the rest of a plan is not tried.
MOST_REFUSALS = 60

_REFUSED = (413, 422)

Entry = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class HeldRRset:
    """An RRset on the server.

    :ivar rrset: its records that are served; None if all are disabled
    :ivar disabled: the data of its disabled records, which are not served, in the API's form
    """

    key: str
    ttl: int
    rrset: RRset | None
    disabled: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class RequestPart:
    """A change in the API's form; its entries must be sent in one request."""

    change: Change
    entries: tuple[Entry, ...]


def held(given: Iterator[Mapping[str, Any]], read: Callable[[str, str], str],
         keys: Collection[str] | None = None) -> Iterator[HeldRRset]:
    """The RRsets in an answer of the API, without those whose types are left alone.

    :param read: converts data of a type to normal form
    :param keys: only the RRsets with these keys; None for all
    :raises InvalidField: if *read* does
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
    """The entry of a request that replaces the RRset of this name and type with *new*."""
    records = [{'content': pdns_rdata.of_rdata(new.type, each), 'disabled': False} for each in new.rdatas]
    given = {record['content'] for record in records}
    return {'name': new.name, 'type': new.type, 'ttl': new.ttl, 'changetype': 'REPLACE',
            'records': records + [{'content': each, 'disabled': True} for each in disabled if each not in given]}


def announced(desired: Zone) -> RRset | None:
    """The SOA of *desired* with the serial before its own, so that the still empty zone is not taken for complete."""
    soa = desired.get(desired.name, 'SOA')
    return None if soa is None else with_serial(soa, serial_of(soa) - 1)


def soa_to_write(plan: Plan, current: RRset | None, is_incremented: bool) -> RRset | None:
    """The SOA that is sent with the changes of *plan*; None if it is not changed.

    The serial is never decreased: secondaries of this server would not see the change.

    :param current: the SOA on the server
    :param is_incremented: whether the server increments the serial by itself
    """
    wanted = plan.desired.get(plan.zone, 'SOA')
    if wanted is not None and any(each.record.type == 'SOA' for each in plan.changes):
        behind = current is not None and serial.newer(serial_of(current), serial_of(wanted))
        return with_serial(wanted, serial_of(current) + 1) if behind and current is not None else wanted
    if current is None or is_incremented or not plan.changes:
        return None
    if wanted is None or serial.newer(serial_of(current), serial_of(wanted)):
        return with_serial(current, serial_of(current) + 1)
    return None


class PdnsApply:
    """Applies one plan.

    :param there: the RRsets on the server that the plan changes, by key
    :param soa: the SOA that is sent last
    :param patch: makes one request
    :param most_octets: the size limit of a request; called only for a large plan
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
        :raises BackendError: when nothing was changed, and not because of a bad record
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
        """All changes but that of the SOA, in the API's form; a change of an RRset that is not as planned fails."""
        for change in self._plan.changes:
            if change.record.type == 'SOA':
                continue
            old, new = ({each.key: each for each in side} for side in (change.existing, change.new))
            if all(self._is_old_or_new(key, old.get(key), new.get(key)) for key in old.keys() | new.keys()):
                gone = [self._removal(each) for key, each in old.items() if key not in new]
                yield RequestPart(change, (*gone, *(entry(each, self._disabled(key)) for key, each in new.items())))
            else:
                self._fail(change, 'it was changed by somebody else after the plan was made')

    def _is_old_or_new(self, key: str, old: RRset | None, new: RRset | None) -> bool:
        there = self._there.get(key)
        now = there.rrset.packed if there is not None and there.rrset is not None else None
        return now in (old.packed if old is not None else None, new.packed if new is not None else None)

    def _removal(self, old: RRset) -> Entry:
        disabled = self._disabled(old.key)
        if disabled:  # they belong to somebody else, and stay
            return entry(old._replace(rdatas=()), disabled)
        return {'name': old.name, 'type': old.type, 'changetype': 'DELETE'}

    def _disabled(self, key: str) -> tuple[str, ...]:
        there = self._there.get(key)
        return there.disabled if there is not None else ()

    def _cut(self, parts: list[RequestPart]) -> Iterator[list[RequestPart]]:
        """*parts* divided into requests; one empty list if there are none, for the SOA alone."""
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
        # PowerDNS processes them in order, and refuses a CNAME beside other data that is deleted later.
        answer = self._patch(sorted(entries, key=lambda each: bool(each.get('records'))))
        if answer.status in _REFUSED:
            self._refusals += 1
            self._divide(parts, soa, answer.words)
        else:
            self._applied += len(parts) + (self._planned_soa if soa is not None else 0)

    def _divide(self, parts: list[RequestPart], soa: RRset | None, words: str) -> None:
        """Queue the parts of a refused request again without the bad ones; in halves if these are not known."""
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
    """Whether the error message of a refusal names *record*."""
    name = pdns_rdata.of_name(record.name)
    return f' {name}/{record.type} ' in words or f' {name} IN {record.type}' in words or f"'{name}'" in words
