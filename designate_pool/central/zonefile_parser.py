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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from designate_pool.protocol.names_and_rdata import SINGLE, lies_in
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

#: Data of one record, or of several by their text.  Plain data is only its text, as most records of a large zone are.
Data = str | Rdata | dict[str, str | Rdata]
#: The lowest TTL of a recordset, the line of its first record, its data, and how its name is written there.
SpooledSet = tuple[int, int, Data, str | None]


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
    contents = ZoneFileContents(zone.sets, domain, zone.dnames)
    # A large file is checked while it is written, since most have no mistakes, and it takes long to read it twice.
    if zone.sets.is_in_memory or mistakes:
        contents.check(mistakes)
    return domain, contents


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
    return NewDomain(
        name=names_and_rdata.domain_name(field, zone.apex), given_name=given_name,
        email=soa_rdata.check_mailbox(field, soa.rname.labels),
        ttl=fields.ttl(field, soa_ttl), refresh=fields.ttl(field, soa.refresh), retry=fields.ttl(field, soa.retry),
        expire=fields.ttl(field, soa.expire), minimum=fields.ttl(field, soa.minimum), lowest_serial=soa.serial)


class ZoneFileContents:
    """The recordsets of a zone file, made anew by each iteration; one at a time.

    :ivar name_servers: the file's NS data at the apex, which is not among them; known after an iteration
    :ivar mixed_ttls: names and types of some recordsets that have several TTLs in the file
    """

    def __init__(self, sets: RecordSetSpool, domain: NewDomain, dnames: Collection[str]) -> None:
        self.name_servers: Sequence[str] = ()
        self.mixed_ttls: Mapping[str, None] = sets.mixed_ttls
        self._dnames = dnames
        self._sets = sets
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
                            for rdata in turns.between(rdatas_of(data))])
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
        for name, sets in Turns().between(_by_name(self._sets)):
            if name == domain and 'NS' in sets:
                self.name_servers = [text_of(data) for data in rdatas_of(sets.pop('NS')[2])]
            self._count += len(sets)
            if checks is None or checks.has_none(name, sets):
                for rtype, part in sets.items():
                    yield name, rtype, part
        if checks is not None:
            checks.add_to(mistakes)
            mistakes.refuse()


def _by_name(sets: Iterable[tuple[str, SpooledSet]]) -> Iterator[tuple[str, dict[str, SpooledSet]]]:
    """Recordsets grouped by their names; *sets* are in the order of their keys."""
    for name, same in itertools.groupby(sets, key=lambda found: found[0].partition('\t')[0]):
        yield name, {key[len(name) + 1:]: part for key, part in same}


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
        if former[0] != ttl and len(self.mixed_ttls) < MOST_MISTAKES:
            self.mixed_ttls[key.replace('\t', ' ')] = None
        before = len(former[2]) if isinstance(former[2], dict) else 1
        _, _, rdatas, _ = self._sets[key] = merge_sets(former, (ttl, line, data, given_name))
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
            yield key, functools.reduce(merge_sets, (
                (int(ttl), int(number), packed[1:-1] if packed[0] == _TEXT else _unpacked(json.loads(packed)),
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
        """Read all recordsets, as far as the limits allow.

        :raises InvalidField: for more than :data:`MAX_RECORDS`
        """
        for count, (key, ttl, data) in enumerate(Turns().between(records), 1):
            if count > MAX_RECORDS:
                raise InvalidField(field=line_field(records.number), why=f'more than {MAX_RECORDS} records')
            if isinstance(data, SOA):
                self._take_soa(key.removesuffix('\tSOA'), ttl, data, records)
                continue
            if key.endswith('\tDNAME'):
                self.dnames.add(key.partition('\t')[0])
            size = self.sets.add(key, ttl, records.number, data, records.given_name)
            if size and self.sets.is_in_memory:  # later some may be counted twice; what is created is counted again
                self._count(key, size)

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
        if is_outside or self._dnames or len(sets) > 1 and 'CNAME' in sets or not rules.PLACED.isdisjoint(sets):
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


def merge_sets(first: SpooledSet, second: SpooledSet) -> tuple[int, int, dict[str, str | Rdata], str | None]:
    """Merge two parts of a recordset: all data, the lower TTL."""
    ttl, line, data, given_name = first
    merged = data if isinstance(data, dict) else {text_of(data): data}
    for rdata in rdatas_of(second[2]):
        merged[text_of(rdata)] = rdata
    return min(ttl, second[0]), min(line, second[1]), merged, given_name


def _packed(data: Data) -> Any:
    """As JSON has it: a text, text and wire form of what is not plain, or a list of these for several."""
    if isinstance(data, str):
        return data
    if isinstance(data, dict):
        return [_packed(rdata) for rdata in data.values()]
    return {'text': data.text, 'wire': data.wire.hex()}


def _unpacked(packed: Any) -> Any:
    """The inverse of :func:`_packed`."""
    if isinstance(packed, list):
        return {text_of(rdata): rdata for rdata in map(_unpacked, packed)}
    return packed if isinstance(packed, str) else Rdata(packed['text'], bytes.fromhex(packed['wire']))
