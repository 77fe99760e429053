"""Parses zone files (RFC 1035 section 5) into requests.

``$INCLUDE`` is refused, since it would read files of this host; ``$GENERATE`` counts towards the limit of records.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import json
import operator
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import dns.name
import dns.rdata
from dns.rdtypes.ANY.SOA import SOA

from designate_pool.central.rules.quotas import ProjectQuotas, check
from designate_pool.central.validation import fields, names_and_rdata
from designate_pool.central.validation.names_and_rdata import Rdata
from designate_pool.central.validation.requests import NewDomain, WantedRecordSet
from designate_pool.deadline import Turns
from designate_pool.errors import InvalidField
from designate_pool.protocol import rules, soa_rdata
from designate_pool.protocol.names_and_rdata import SINGLE, lies_in, without_case
from designate_pool.protocol.zonefile import MOST_MISTAKES, ZoneFileErrors, ZoneFileRecords, line_field, wire_of

#: Records of a zone file, the SOA among them.
MAX_RECORDS = 2_000_000
#: Recordsets created at once, and records in these after which there are no more.
PART, PART_RECORDS = 2000, 10_000

#: Octets of records in memory, and how many of them a record takes beside its name and data.
MOST_HELD, _OVERHEAD = 20_000_000, 250
#: Stands between the parts of a line in a temporary file, and before all that a name can have.
_END = '\0'
#: Before data that is only a text.
_TEXT = '='

#: Data of one record, or of several by their text with names in lower case.  Plain data is only its text, as most
#: records of a large zone are.
Data = str | Rdata | dict[str, str | Rdata]
#: The lowest TTL of a recordset, the line of its first record, its data, and how its name is written there.
SpooledSet = tuple[int, int, Data, str | None]
#: A name and its recordsets by type.
NamedSets = tuple[str, dict[str, SpooledSet]]


class NotInOrder(Exception):
    """A zone file cannot be read name by name: they are in none of the orders for that, or there is a DNAME."""


def parse(text: str | Iterable[str], limits: ProjectQuotas = ProjectQuotas()) -> tuple[NewDomain, ZoneFileContents]:
    """The domain and the recordsets of a zone file.

    The owner of the SOA names the domain; its TTL is the domain's.  The file's SOA and apex NS are not among the
    recordsets, since these are generated from the pool.  Repeated records count once; of several TTLs in a recordset
    the lowest is used (RFC 2181 section 5.2).

    :param text: or its lines
    :param limits: reading stops when they are exceeded
    :returns: contents that may have mistakes, found by their iteration, if the file is large
    :raises InvalidField: with the line, for what cannot be parsed or may not be in a zone; all mistakes as its ``all``
    :raises OverQuota: for more than *limits* allow
    """
    zone, mistakes = _Zone(limits), ZoneFileErrors(InvalidField.of)
    lines = fields.text('text', text).split('\n') if isinstance(text, str) else text
    zone.take(ZoneFileRecords(Turns().between(lines), None, mistakes, _converted))
    if zone.soa is None:
        mistakes.refuse()
        raise InvalidField(field='text', why='there is no SOA record')
    try:
        domain = _domain(zone)
    except InvalidField as error:
        mistakes.add(error.kwargs['field'], error.kwargs['why'])
        mistakes.refuse()
        raise
    contents = ZoneFileContents(lambda: _by_name(Turns().between(zone.sets)), domain, zone.sets.mixed_ttls, zone.dnames)
    # A large file is checked while it is written, since most have no mistakes, and it takes long to read it twice.
    if zone.sets.is_in_memory or mistakes:
        contents.check(mistakes)
    return domain, contents


def stream(lines: Callable[[], Iterable[str]],
           limits: ProjectQuotas = ProjectQuotas()) -> tuple[NewDomain, ZoneFileContents]:
    """As :func:`parse` for a file with its names in order, read while its recordsets are used.

    The order is that of DNSSEC (RFC 4034 section 6.1), in which name servers write zones, or that of the text; in both
    the apex may be anywhere, once.

    :param lines: reads the file from its beginning; called here and by each iteration of the contents
    :param limits: of one recordset, which is in memory as a whole; whoever creates it counts the others
    :raises NotInOrder: by the iteration as well
    :raises InvalidField: likewise, for one mistake; :func:`parse` finds all
    :raises OverQuota: by the iteration
    """
    zone = _Zone(ProjectQuotas())
    next(zone.records(_one_mistake(lines())), None)
    if zone.soa is None:
        raise NotInOrder
    domain = _domain(zone)
    mixed_ttls = dict[str, None]()
    return domain, ZoneFileContents(lambda: _in_order(lines(), domain.name, limits, mixed_ttls), domain, mixed_ttls)


def _one_mistake(lines: Iterable[str]) -> ZoneFileRecords[Rdata | SOA]:
    return ZoneFileRecords(Turns().between(lines), None, ZoneFileErrors(InvalidField.of, 1), _converted)


def _converted(rtype: str, parsed: dns.rdata.Rdata) -> Rdata | SOA:
    if isinstance(parsed, SOA):
        return parsed
    _check_type(rtype)
    return names_and_rdata.as_rdata('data', parsed)


@functools.cache
def _check_type(rtype: str) -> None:
    names_and_rdata.record_type('type', rtype)


def _domain(zone: _Zone) -> NewDomain:
    assert zone.soa is not None
    soa, soa_ttl, line, given_name = zone.soa
    field = line_field(line)
    if zone.apex == '.':
        raise InvalidField(field=field, why="the SOA is that of the root; where the file has no $ORIGIN, give the "
                                            "zone's name, with $ORIGIN or 'zone import --name'")
    soa_rdata.check_expire(field, soa.expire, soa.refresh)
    return NewDomain(
        name=names_and_rdata.domain_name(field, zone.apex), given_name=given_name,
        email=soa_rdata.check_mailbox(field, soa.rname.labels),
        ttl=fields.ttl(field, soa_ttl), refresh=fields.ttl(field, soa.refresh), retry=fields.ttl(field, soa.retry),
        expire=fields.ttl(field, soa.expire), minimum=fields.ttl(field, soa.minimum), lowest_serial=soa.serial)


class ZoneFileContents:
    """The recordsets of a zone file, made anew by each iteration; one at a time.

    :ivar name_servers: the file's NS data at the apex, which is not among them; known after an iteration
    :ivar mixed_ttls: names and types of some recordsets that have several TTLs in the file; known after an iteration
    """

    def __init__(self, names: Callable[[], Iterator[NamedSets]], domain: NewDomain,
                 mixed_ttls: Mapping[str, None], dnames: Collection[str] = ()) -> None:
        self.name_servers: Sequence[str] = ()
        self.mixed_ttls = mixed_ttls
        self._dnames = dnames
        self._names = names
        self._domain = domain
        self._is_checked = False
        self._count = 0

    def __len__(self) -> int:
        """How many the last iteration has made, or the check has found."""
        return self._count

    def __iter__(self) -> Iterator[WantedRecordSet]:
        """Make the recordsets.

        :raises InvalidField: as :meth:`check` does, at the end, if the file was too large to be checked before
        """
        usual, turns = self._domain.ttl, Turns()
        for name, rtype, (ttl, line, data, given_name) in self._read(ZoneFileErrors(InvalidField.of)):
            rdatas = tuple([Rdata(rdata, wire_of(rtype, rdata)) if isinstance(rdata, str) else rdata
                            for rdata in (turns.between(data.values()) if isinstance(data, dict) else (data,))])
            yield WantedRecordSet(name, rtype, rdatas, None if ttl == usual else ttl, None, f'{line_field(line)}, ',
                                  given_name)

    def parts(self) -> Iterator[Sequence[WantedRecordSet]]:
        """The recordsets, :data:`PART` at a time or fewer large ones; a name may be in two parts."""
        part: list[WantedRecordSet] = []
        records = 0
        for recordset in self:
            part.append(recordset)
            records += len(recordset.rdatas)
            if len(part) == PART or records >= PART_RECORDS:
                yield part
                part, records = [], 0
        if part:
            yield part

    def check(self, mistakes: ZoneFileErrors) -> None:
        """Check all recordsets.

        :raises InvalidField: for *mistakes* found before, and for recordsets that may not be in the zone
        """
        for _ in self._read(mistakes):
            pass
        self._is_checked = True

    def _read(self, mistakes: ZoneFileErrors) -> Iterator[tuple[str, str, SpooledSet]]:
        """Name, type and data; after a mistake there are no more, and at the end there is an error."""
        self._count, domain = 0, self._domain.name
        checks = None if self._is_checked else _SetMistakes(domain, self._dnames)
        for name, sets in self._names():
            if name == domain and 'NS' in sets:
                self.name_servers = [text_of(data) for data in rdatas_of(sets.pop('NS')[2])]
            self._count += len(sets)
            if checks is None or checks.has_none(name, sets):
                for rtype, part in sets.items():
                    yield name, rtype, part
        if checks is not None:
            checks.add_to(mistakes)
            mistakes.refuse()


def _by_name(sets: Iterable[tuple[str, SpooledSet]]) -> Iterator[NamedSets]:
    """Recordsets grouped by their names; *sets* are in the order of their keys."""
    for name, same in itertools.groupby(sets, key=lambda found: found[0].partition('\t')[0]):
        yield name, {key[len(name) + 1:]: part for key, part in same}


def _note_ttls(mixed_ttls: dict[str, None], key: str, first: int, second: int) -> None:
    """Note that a recordset has two TTLs, if it has, of the first recordsets."""
    if first != second and len(mixed_ttls) < MOST_MISTAKES:
        mixed_ttls[key.replace('\t', ' ')] = None


def _in_order(lines: Iterable[str], apex: str, limits: ProjectQuotas,
              mixed_ttls: dict[str, None]) -> Iterator[NamedSets]:
    """Each name of a zone file when the next one begins.

    :raises NotInOrder: for a name that may have been there before
    :raises OverQuota: for a recordset of more records than *limits* allow
    """
    records, order = _one_mistake(lines), _NameOrder(apex)
    name, sets = '', dict[str, SpooledSet]()
    for key, ttl, data in _Zone(ProjectQuotas()).records(records):
        owner, _, rtype = key.partition('\t')
        if rtype == 'DNAME':  # names below it may have come before
            raise NotInOrder
        if owner != name:
            if sets:
                yield name, sets
            order.follow(owner)
            name, sets = owner, {}
        first, further = sets.get(rtype), (ttl, records.number, data, records.given_name)
        if first is None:
            sets[rtype] = further
            continue
        _note_ttls(mixed_ttls, key, first[0], ttl)
        sets[rtype] = both = merge_sets(rtype, first, further)
        if rtype != 'NS' or owner != apex:  # those come from the pool
            check('recordset_records', limits.recordset_records, len(both[2]), False)
    if sets:
        yield name, sets


class _NameOrder:
    """Sees that no name comes a second time, by the order of the labels or of the text: it need not remember them."""

    def __init__(self, apex: str) -> None:
        self._apex = apex
        self._is_apex_there = False
        self._name: str | None = ''  # None if they are not in the order of the text
        self._labels: list[str] | None = []  # from the last to the first; None if they are not in their order

    def follow(self, name: str) -> None:
        """Refuse a *name* that may have come before, as :class:`NotInOrder`."""
        if name == self._apex and not self._is_apex_there:  # it is often the first
            self._is_apex_there = True
            return
        if self._name is not None:
            self._name = name if name > self._name else None
        if self._labels is not None:
            labels = name.split('.')[::-1]
            self._labels = labels if labels > self._labels else None
        if self._name is None and self._labels is None or name == self._apex:
            raise NotInOrder


class RecordSetSpool:
    """The recordsets of a zone file, of which a bounded part is in memory.

    Beyond that they are written to temporary files, each in the order of the names, which are merged when they are
    read (an external merge sort).

    :ivar is_in_memory: whether all recordsets are, so far
    :ivar mixed_ttls: of some recordsets that have several TTLs, name and type
    """

    def __init__(self) -> None:
        self.mixed_ttls = dict[str, None]()
        self._sets: dict[str, SpooledSet] = {}
        self._size = 0
        self._files: list[IO[str]] = []

    @property
    def is_in_memory(self) -> bool:
        """Whether all recordsets are in memory, so far."""
        return not self._files

    def add(self, key: str, ttl: int, line: int, data: str | Rdata, given_name: str | None = None) -> int:
        """Add a record; how many its recordset has with it, 0 if it was there already, as far as they are in memory.

        :param key: the name, a tab, and the type
        """
        size = _OVERHEAD + len(key) + len(text_of(data)) + len(given_name or '')
        former = self._sets.get(key)
        if former is None:
            if self._size + size > MOST_HELD:
                self._write()
            self._sets[key] = ttl, line, data, given_name
            self._size += size
            return 1
        _note_ttls(self.mixed_ttls, key, former[0], ttl)
        before = len(former[2]) if isinstance(former[2], dict) else 1
        merged = merge_sets(key.rpartition('\t')[2], former, (ttl, line, data, given_name))
        _, _, rdatas, _ = self._sets[key] = merged
        if len(rdatas) == before:
            return 0
        self._size += size
        return len(rdatas)

    def __iter__(self) -> Iterator[tuple[str, SpooledSet]]:
        """Keys and recordsets in the order of the keys; one iteration at a time, and nothing is added afterwards."""
        if not self._files:
            for key in sorted(self._sets):
                yield key, self._sets[key]
            return
        self._write()
        for file in self._files:
            file.seek(0)
        lines = (row.split(_END, 4) for row in heapq.merge(*self._files))
        for key, parts in itertools.groupby(lines, key=operator.itemgetter(0)):
            rtype = key.rpartition('\t')[2]
            yield key, functools.reduce(functools.partial(merge_sets, rtype), (
                (int(ttl), int(number), packed[1:-1] if packed[0] == _TEXT else _unpacked(rtype, json.loads(packed)),
                 given_name or None) for _, number, ttl, given_name, packed in parts))

    def _write(self) -> None:
        if not self._sets:
            return
        sets, self._sets, self._size = self._sets, {}, 0
        file = tempfile.TemporaryFile('w+', encoding='utf-8', newline='\n')
        self._files.append(file)
        for key in Turns().between(sorted(sets)):
            ttl, line, data, given_name = sets[key]
            packed = f'{_TEXT}{data}' if isinstance(data, str) else json.dumps(_packed(data))
            # The number of the line has a fixed width, so that records of one recordset stay in their order.
            file.write(f'{key}{_END}{line:010}{_END}{ttl}{_END}{given_name or str()}{_END}{packed}\n')


class _Zone:
    """The recordsets read so far."""

    def __init__(self, limits: ProjectQuotas) -> None:
        self._limits = limits
        self._records = self._recordsets = 0
        self.sets = RecordSetSpool()
        self.dnames = set[str]()
        self.soa: tuple[SOA, int, int, str | None] | None = None
        self.apex = ''

    def take(self, records: ZoneFileRecords[Rdata | SOA]) -> None:
        """Read all recordsets, as far as the limits allow."""
        for key, ttl, data in self.records(records):
            if key.endswith('\tDNAME'):
                self.dnames.add(key.partition('\t')[0])
            size = self.sets.add(key, ttl, records.number, data, records.given_name)
            if size and self.sets.is_in_memory:  # later some may be counted twice; what is created is counted again
                self._count(key, size)

    def records(self, records: ZoneFileRecords[Rdata | SOA]) -> Iterator[tuple[str, int, str | Rdata]]:
        """Key, TTL and data of each record but the SOA.

        :raises InvalidField: for more than :data:`MAX_RECORDS`
        """
        count = 0
        for key, ttl, data in Turns().between(records):
            count += 1
            if count > MAX_RECORDS:
                raise InvalidField(field=line_field(records.number), why=f'more than {MAX_RECORDS} records')
            if isinstance(data, SOA):
                self._take_soa(key.removesuffix('\tSOA'), ttl, data, records)
            else:
                yield key, ttl, data

    def _count(self, key: str, size: int) -> None:
        """Check the quotas; NS records that may be those of the apex, which come from the pool, do not count."""
        if key.endswith('\tNS') and (not self.apex or key == f'{self.apex}\tNS'):
            return
        self._records += 1
        self._recordsets += size == 1
        check('recordset_records', self._limits.recordset_records, size, False)
        check('zone_recordsets', self._limits.zone_recordsets, self._recordsets, False)
        check('zone_records', self._limits.zone_records, self._records, False)

    def _take_soa(self, name: str, ttl: int, soa: SOA, records: ZoneFileRecords[Rdata | SOA]) -> None:
        if self.soa is None:
            self.soa, self.apex = (soa, ttl, records.number, records.given_name), name
        elif (soa, name) != (self.soa[0], self.apex):  # a transfer saved as text has it at both ends
            records.refuse(f'a second SOA record; the first is in line {self.soa[2]}')


class _SetMistakes:
    """Recordsets that may not be in a zone, whose names with a DNAME are *dnames*."""

    def __init__(self, zone: str, dnames: Collection[str]) -> None:
        self._zone = zone
        self._dnames = dnames
        self._found: list[tuple[bool, int, str, str]] = []

    def has_none(self, name: str, sets: Mapping[str, SpooledSet]) -> bool:
        """Check all recordsets of a name, by type; whether none of any name may not be there.

        The rules about all recordsets of a name are asked here, since the parts are checked separately later.
        """
        is_outside = not lies_in(name, self._zone)
        if is_outside or self._dnames or not rules.PLACED.isdisjoint(sets):
            for rtype, part in sets.items():
                if is_outside:
                    self._add(name, rtype, part, f'{name} is not inside the zone {self._zone}')
                if rtype in SINGLE and isinstance(part[2], dict) and len(part[2]) > 1:
                    self._add(name, rtype, part, f'{name} has more than one {rtype} record')
            for violation in rules.at_name(self._zone, name, dict.fromkeys(sets, ()), self._dnames):
                self._add(name, violation.type, sets[violation.type], violation.why, violation.field == 'type')
        return not self._found

    def add_to(self, mistakes: ZoneFileErrors) -> None:
        """In the order of the zone file, and those about CNAMEs last."""
        for of_type, line, why, first in self._in_order():
            mistakes.add(f'{line_field(line)}, type' if of_type else line_field(line), why, first)

    def _add(self, name: str, rtype: str, found: SpooledSet, why: str, of_type: bool = False) -> None:
        ttl, line, data, _ = found
        self._found.append((of_type, line, why, f'{name} {ttl} {rtype} {text_of(next(iter(rdatas_of(data))))}'))
        if len(self._found) > 50 * MOST_MISTAKES:
            self._found = self._in_order()[:MOST_MISTAKES]

    def _in_order(self) -> list[tuple[bool, int, str, str]]:
        return sorted(self._found, key=operator.itemgetter(0, 1))


def rdatas_of(data: Data) -> Iterable[str | Rdata]:
    """The data of each record of a recordset."""
    return data.values() if isinstance(data, dict) else (data,)


def text_of(data: str | Rdata) -> str:
    """The text of a record's data."""
    return data if isinstance(data, str) else data.text


def merge_sets(rtype: str, first: SpooledSet,
               second: SpooledSet) -> tuple[int, int, dict[str, str | Rdata], str | None]:
    """Merge two parts of a recordset: the lower TTL, and all data; what differs only in the case of names once."""
    ttl, line, data, given_name = first
    merged = data if isinstance(data, dict) else {without_case(rtype, text_of(data)): data}
    for rdata in rdatas_of(second[2]):
        merged.setdefault(without_case(rtype, text_of(rdata)), rdata)
    return min(ttl, second[0]), min(line, second[1]), merged, given_name


def _packed(data: Data) -> Any:
    """As JSON has it: a text, text and wire form of what is not plain, or a list of these for several."""
    if isinstance(data, str):
        return data
    if isinstance(data, dict):
        return [_packed(rdata) for rdata in data.values()]
    return {'text': data.text, 'wire': data.wire.hex()}


def _unpacked(rtype: str, packed: Any) -> Any:
    """The inverse of :func:`_packed`."""
    if isinstance(packed, list):
        return {without_case(rtype, text_of(rdata)): rdata for one in packed for rdata in [_unpacked(rtype, one)]}
    return packed if isinstance(packed, str) else Rdata(packed['text'], bytes.fromhex(packed['wire']))
