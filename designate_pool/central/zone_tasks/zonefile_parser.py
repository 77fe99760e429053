"""Parses zone files (RFC 1035 section 5) into requests, and writes them.

``$INCLUDE`` is refused, since it would read files of this host; ``$GENERATE`` counts towards the limit of records.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Iterator, Sequence

import dns.name
import dns.rdata
from dns.rdtypes.ANY.SOA import SOA

from designate_pool.central.rules.quotas import ProjectQuotas, check
from designate_pool.central.validation import fields, names_and_rdata
from designate_pool.central.validation.names_and_rdata import Rdata
from designate_pool.central.validation.requests import NewDomain, WantedRecordSet
from designate_pool.errors import InvalidField
from designate_pool.model import Domain
from designate_pool.protocol import soa_rdata
from designate_pool.protocol.names_and_rdata import SINGLE, lies_in
from designate_pool.protocol.zonefile import plain_rdata, writer
from designate_pool.protocol.zonefile.errors import ZoneFileErrors, line_field
from designate_pool.protocol.zonefile.reader import ZoneFileRecords

#: Records of a zone file, the SOA among them; a million take a third of a gigabyte of memory.
MAX_RECORDS = 2_000_000
#: Recordsets created at once.
PART = 2000
#: After this many records other green threads get a turn; one that needs dnspython's parser counts as this many.
_TURN, _SLOW = 2000, 40

#: The TTL of a recordset, the line of its first record, and its data: of one record, or of several by their text.
#: Plain data is only its text, since a zone of a million records is held in memory in this form.
_Set = tuple[int, int, str | Rdata | dict[str, str | Rdata]]


def parse(text: str | Iterable[str], limits: ProjectQuotas = ProjectQuotas()) -> tuple[NewDomain, ZoneFileContents]:
    """The domain and the recordsets of a zone file.

    The owner of the SOA names the domain; its TTL is the domain's.  The file's SOA and apex NS are not among the
    recordsets, since these are generated from the pool.  Repeated records count once; of several TTLs in a recordset
    the lowest is used (RFC 2181 section 5.2).

    :param text: or its lines
    :param limits: reading stops when they are exceeded
    :raises InvalidField: with the line, for what cannot be parsed or may not be in a zone; all mistakes as its ``all``
    :raises OverQuota: for more than *limits* allow
    """
    zone, mistakes = _Zone(limits), ZoneFileErrors(InvalidField.of)
    zone.read(ZoneFileRecords(fields.text('text', text) if isinstance(text, str) else text, None, mistakes, _converted))
    if zone.soa is None:
        mistakes.refuse()
        raise InvalidField(field='text', why='there is no SOA record')
    try:
        domain = _domain(zone)
    except InvalidField as error:
        mistakes.add(error.kwargs['field'], error.kwargs['why'])
        mistakes.refuse()
        raise
    _, _, servers = zone.sets.pop(f'{domain.name}\tNS', (0, 0, {}))
    _check(zone.sets, domain, mistakes)
    mistakes.refuse()
    return domain, ZoneFileContents(zone.sets, domain, [_text(each) for each in _each(servers)])


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
    soa, soa_ttl, line = zone.soa
    field = line_field(line)
    return NewDomain(
        name=names_and_rdata.domain_name(field, zone.apex), email=_email(field, soa.rname),
        ttl=fields.ttl(field, soa_ttl), refresh=_interval(field, soa.refresh), retry=_interval(field, soa.retry),
        expire=_interval(field, soa.expire), minimum=_interval(field, soa.minimum), lowest_serial=soa.serial)


class ZoneFileContents:
    """The recordsets of a zone file, made anew by each iteration.

    :ivar name_servers: the file's NS data at the apex, which is not among them
    """

    def __init__(self, sets: dict[str, _Set], domain: NewDomain, name_servers: Sequence[str]) -> None:
        self.name_servers = name_servers
        self._sets = sets
        self._ttl = domain.ttl

    def __len__(self) -> int:
        return len(self._sets)

    def __iter__(self) -> Iterator[WantedRecordSet]:
        for key, (ttl, line, data) in self._sets.items():
            name, _, rtype = key.partition('\t')
            rdatas = tuple([Rdata(each, plain_rdata.of(rtype, each)) if isinstance(each, str) else each
                            for each in _each(data)])
            yield WantedRecordSet(name, rtype, rdatas, ttl=None if ttl == self._ttl else ttl, description=None,
                                  prefix=f'{line_field(line)}, ')

    def parts(self) -> Iterator[Sequence[WantedRecordSet]]:
        """The recordsets, :data:`PART` at a time; a name may be in two parts."""
        part: list[WantedRecordSet] = []
        for each in self:
            part.append(each)
            if len(part) == PART:
                yield part
                part = []
                time.sleep(0)  # let other green threads run
        if part:
            yield part


class _Zone:
    """The recordsets read so far."""

    def __init__(self, limits: ProjectQuotas) -> None:
        self._limits = limits
        self._records = self._recordsets = 0
        self.sets: dict[str, _Set] = {}
        self.soa: tuple[SOA, int, int] | None = None
        self.apex = ''

    def read(self, records: ZoneFileRecords[Rdata | SOA]) -> None:
        """
        :raises InvalidField: for more than :data:`MAX_RECORDS`
        :raises OverQuota: for more than the limits allow
        """
        count = work = 0
        for key, ttl, data in records:
            count += 1
            if count > MAX_RECORDS:
                raise InvalidField(field=line_field(records.number), why=f'more than {MAX_RECORDS} records')
            work += 1 if isinstance(data, str) else _SLOW
            if work >= _TURN:
                work = 0
                time.sleep(0)
            if isinstance(data, SOA):
                self._take_soa(key.removesuffix('\tSOA'), ttl, data, records)
            else:
                self.take(key, ttl, data, records.number)

    def take(self, key: str, ttl: int, data: str | Rdata, line: int) -> None:
        found = self.sets.get(key)
        if found is None:
            self.sets[key] = (ttl, line, data)
            self._count(key, 1)
            return
        lowest, first, held = found
        if not isinstance(held, dict):
            held = {_text(held): held}
        before = len(held)
        held[_text(data)] = data
        self.sets[key] = (min(lowest, ttl), first, held)
        if len(held) > before:
            self._count(key, len(held))

    def _count(self, key: str, size: int) -> None:
        """Check the quotas; NS records that may be those of the apex, which come from the pool, do not count."""
        if key.endswith('\tNS') and (not self.apex or key == f'{self.apex}\tNS'):
            return
        self._records += 1
        self._recordsets += size == 1
        check('recordset_records', self._limits.recordset_records, size)
        check('zone_recordsets', self._limits.zone_recordsets, self._recordsets)
        check('zone_records', self._limits.zone_records, self._records)

    def _take_soa(self, name: str, ttl: int, soa: SOA, records: ZoneFileRecords[Rdata | SOA]) -> None:
        if self.soa is None:
            self.soa, self.apex = (soa, ttl, records.number), name
        elif (soa, name) != (self.soa[0], self.apex):  # a transfer saved as text has it at both ends
            records.refuse(f'a second SOA record; the first is in line {self.soa[2]}')


def _each(data: str | Rdata | dict[str, str | Rdata]) -> Iterable[str | Rdata]:
    return data.values() if isinstance(data, dict) else (data,)


def _text(data: str | Rdata) -> str:
    return data if isinstance(data, str) else data.text


def _check(sets: dict[str, _Set], domain: NewDomain, mistakes: ZoneFileErrors) -> None:
    aliases = set()
    for key, found in sets.items():
        _, line, data = found
        name, _, rtype = key.partition('\t')
        if not lies_in(name, domain.name):
            mistakes.add(line_field(line), f'{name} is not inside the zone {domain.name}', _first(key, found))
        if rtype in SINGLE:
            if isinstance(data, dict) and len(data) > 1:
                mistakes.add(line_field(line), f'{name} has more than one {rtype} record', _first(key, found))
            if rtype == 'CNAME':
                aliases.add(name)
    if aliases:
        _check_aliases(sets, aliases, mistakes)


def _check_aliases(sets: dict[str, _Set], aliases: set[str], mistakes: ZoneFileErrors) -> None:
    """A CNAME must be alone at its name; checked here, since the parts are checked separately later."""
    types: dict[str, set[str]] = {}
    for key in sets:
        name, _, rtype = key.partition('\t')
        if name in aliases:
            types.setdefault(name, set()).add(rtype)
    for key, found in sets.items():
        name, _, rtype = key.partition('\t')
        if len(types.get(name, ())) > 1:
            others = ', '.join(sorted(types[name] - {rtype}))
            mistakes.add(f'{line_field(found[1])}, type',
                         f'{name} has {others} already; a CNAME must be the only record at its name',
                         _first(key, found))


def _first(key: str, found: _Set) -> str:
    """The first record of a set as text."""
    name, _, rtype = key.partition('\t')
    ttl, _, data = found
    return f'{name} {ttl} {rtype} {_text(next(iter(_each(data))))}'


def _email(field: str, name: dns.name.Name) -> str:
    if len(name.labels) < 3:
        raise InvalidField(field=field, why=f'{name} in the SOA is not an e-mail address')
    local = name.labels[0].decode('ascii', 'replace')
    return names_and_rdata.email(field, f'{local}@{dns.name.Name(name.labels[1:]).to_text(omit_final_dot=True)}')


def _interval(field: str, seconds: int) -> int:
    return fields.ttl(field, seconds)


def render(domain: Domain, primary: str, rows: Iterable[tuple[str, str, int | None, str]]) -> str:
    """A zone file that :func:`parse` reads back.

    :param primary: the pool's first name server
    :param rows: name, type, TTL and data of every record but the SOA
    """
    return ''.join(writer.lines(domain.name, domain.ttl, soa_rdata.text(domain, primary), rows))
