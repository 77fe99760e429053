"""Zone files (RFC 1035 section 5) to what is to be created, and back.

``$INCLUDE`` is refused, since it would read files of this host; ``$GENERATE`` counts towards the limit of records.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from typing import Any

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rdtypes.ANY.SOA
import dns.tokenizer
import dns.zonefile

from designate_pool.central import dnstext, fields
from designate_pool.central.dnstext import Rdata
from designate_pool.central.domains import soa_text
from designate_pool.central.validation import NewDomain, Wanted
from designate_pool.errors import InvalidField
from designate_pool.model import Domain

MAX_RECORDS = 1_000_000
_DIRECTIVES = ('$ORIGIN', '$TTL', '$GENERATE')


def parse(text: str) -> tuple[NewDomain, list[Wanted]]:
    """The domain and the recordsets of a zone file.

    The owner of the SOA names the domain; its TTL is the domain's.  The file's SOA and apex NS are not among the
    recordsets, for these are made from the pool.  Records said twice count once; of several TTLs in a recordset the
    lowest counts (RFC 2181 section 5.2).

    :raises InvalidField: with the line, for what cannot be read or may not be in a zone
    """
    zone = _read(fields.text('text', text))
    if zone.soa is None:
        raise InvalidField(field='text', why='there is no SOA record')
    soa, soa_ttl, line = zone.soa
    field = _line(line)
    domain = NewDomain(
        name=dnstext.domain_name(field, zone.apex), email=_email(field, soa.rname),
        ttl=fields.ttl(field, soa_ttl), refresh=_interval(field, soa.refresh), retry=_interval(field, soa.retry),
        expire=_interval(field, soa.expire), minimum=_interval(field, soa.minimum), lowest_serial=soa.serial)
    return domain, list(_wanted(zone, domain))


def render(domain: Domain, primary: str, rows: Iterable[tuple[str, str, int | None, str]]) -> str:
    """A zone file that :func:`parse` reads back.

    :param primary: the pool's first name server
    :param rows: name, type, TTL and data of every record but the SOA
    """
    lines = [f'$ORIGIN {domain.name}', f'$TTL {domain.ttl}',
             f'{domain.name} {domain.ttl} IN SOA {soa_text(domain, primary)}']
    lines.extend(f'{name} {domain.ttl if ttl is None else ttl} IN {rtype} {data}' for name, rtype, ttl, data in rows)
    return '\n'.join(lines) + '\n'


@dataclasses.dataclass(slots=True)
class _Set:
    """A recordset while it is read; *line* is that of its first record."""

    ttl: int
    line: int
    rdatas: dict[str, Rdata]


class _Tokenizer(dns.tokenizer.Tokenizer):
    """Knows in which line the present record begins; the reader may have read on to the next one."""

    begun = 1

    def get(self, want_leading: bool = False, want_comment: bool = False) -> dns.tokenizer.Token:
        token = super().get(want_leading, want_comment)
        if want_leading:
            self.begun = self.line_number
        return token


class _Zone:
    """Takes the records from dnspython's reader in place of a zone, which would cost twice the time."""

    def __init__(self, tokenizer: _Tokenizer) -> None:
        self.manager = self
        self.reader: dns.zonefile.Reader | None = None
        self.sets: dict[tuple[str, str], _Set] = {}
        self.soa: tuple[dns.rdtypes.ANY.SOA.SOA, int, int] | None = None
        self.apex = ''
        self._tokenizer = tokenizer
        self._origin_known = False
        self._count = 0
        self._types: dict[int, str] = {}
        self._last_name: tuple[dns.name.Name | None, str] = (None, '')

    def origin_information(self) -> tuple[dns.name.Name, bool, dns.name.Name]:
        # With the root as its origin the reader leaves nothing out as being outside the zone: that is told, not hidden.
        return dns.name.root, False, dns.name.root

    def check_put_rdataset(self, check: object) -> None:
        """The reader offers a check of CNAMEs; ours comes later and knows the field."""

    def _set_origin(self, origin: dns.name.Name) -> None:
        self._origin_known = True

    def add(self, name: dns.name.Name, ttl: int, parsed: dns.rdata.Rdata) -> None:
        line = self._tokenizer.begun
        self._count += 1
        if self._count > MAX_RECORDS:
            raise InvalidField(field=_line(line), why=f'more than {MAX_RECORDS} records')
        if parsed.rdtype == dns.rdatatype.SOA:
            self._add_soa(name, ttl, parsed, line)
            return
        rtype = self._types.get(parsed.rdtype)
        if rtype is None:
            rtype = dnstext.record_type(_line(line), dns.rdatatype.to_text(parsed.rdtype))
            self._types[parsed.rdtype] = rtype
        rdata = dnstext.as_rdata(_line(line), parsed)
        key = (self._text(name), rtype)
        found = self.sets.get(key)
        if found is None:
            self.sets[key] = _Set(ttl, line, {rdata.text: rdata})
        else:
            found.ttl = min(found.ttl, ttl)
            found.rdatas[rdata.text] = rdata

    def _add_soa(self, name: dns.name.Name, ttl: int, parsed: Any, line: int) -> None:
        if self.soa is not None:
            if self.soa[0] == parsed and self._text(name) == self.apex:
                return  # a transfer that was saved as text ends with the SOA that it began with
            raise InvalidField(field=_line(line), why=f'a second SOA record; the first is in line {self.soa[2]}')
        self.soa = (parsed, ttl, line)
        self.apex = self._text(name)
        if not self._origin_known and self.reader is not None:
            self.reader.current_origin = name

    def _text(self, name: dns.name.Name) -> str:
        # Records come sorted by name mostly; the reader hands over the same object while the name lasts.
        if name is not self._last_name[0]:
            self._last_name = (name, name.canonicalize().to_text())
        return self._last_name[1]


def _read(text: str) -> _Zone:
    tokenizer = _Tokenizer(text if text.endswith('\n') else f'{text}\n', 'line')
    zone = _Zone(tokenizer)
    reader = dns.zonefile.Reader(tokenizer, dns.rdataclass.IN, zone,  # type: ignore[arg-type]
                                 allow_directives=_DIRECTIVES)
    zone.reader = reader
    try:
        reader.read()
    except dns.exception.DNSException as error:
        words = re.sub(r'^line:\d+: ', '', ' '.join(str(error).split()))
        raise InvalidField(field=_line(tokenizer.begun), why=words.rstrip('.') or 'not a record') from None
    return zone


def _wanted(zone: _Zone, domain: NewDomain) -> Iterator[Wanted]:
    for (name, rtype), found in zone.sets.items():
        field = _line(found.line)
        if not (name == domain.name or name.endswith(f'.{domain.name}')):
            raise InvalidField(field=field, why=f'{name} is not inside the domain {domain.name}')
        if name == domain.name and rtype == 'NS':
            continue
        if rtype in dnstext.SINGLE and len(found.rdatas) > 1:
            raise InvalidField(field=field, why=f'{name} has more than one {rtype} record')
        ttl = fields.ttl(field, found.ttl)
        yield Wanted(name, rtype, tuple(found.rdatas.values()), ttl=None if ttl == domain.ttl else ttl,
                     description=None, prefix=f'{field}, ')


def _email(field: str, name: dns.name.Name) -> str:
    if len(name.labels) < 3:
        raise InvalidField(field=field, why=f'{name} in the SOA is not an e-mail address')
    local = name.labels[0].decode('ascii', 'replace')
    return dnstext.email(field, f'{local}@{dns.name.Name(name.labels[1:]).to_text(omit_final_dot=True)}')


def _interval(field: str, seconds: int) -> int:
    return fields.ttl(field, seconds)


def _line(number: int) -> str:
    return f'line {number}'
