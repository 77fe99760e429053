"""The lines of a zone file (RFC 1035 section 5, RFC 2308 section 4), read one record after the other.

The invariant: what is read is what dnspython reads, or an error that names the line.

Nearly all lines are of a plain form, and these are read with a few regular expressions, a hundred times as quickly.
Whatever is not certain to be plain is gathered to a whole record and left to dnspython.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.tokenizer
import dns.transaction
import dns.zonefile

from designate_pool.central.validation.fields import MAX_TTL
from designate_pool.central.validation.names_and_rdata import Rdata, as_rdata, record_type
from designate_pool.errors import InvalidField
from designate_pool.protocol.rrset import LONGEST, LONGEST_NAME, PLAIN
from designate_pool.protocol.zonefile import reader
from designate_pool.protocol.zonefile.errors import Mistake, ZoneFileErrors, line_field
from designate_pool.protocol.zonefile.reader import (LINE, NOTHING, QUOTED, checked_generate, plain_owner, suffix_of,
                                                     with_absolute_name)

#: Characters of a record, also where it has several lines: rdata of 65535 octets, each written as four characters,
#: takes a quarter of them.
LONGEST_RECORD = 1 << 20
_DIRECTIVES = ('$ORIGIN', '$TTL', '$GENERATE')
#: Records after which green threads that wait get their turn, and how many of them one that is not plain is worth.
_TURN, _SLOW = 2000, 40

#: Takes name, type, TTL and data of a record, and the line in which it begins; data is text where it is plain.
Take = Callable[[str, str, int, str | Rdata, int], None]
#: Takes name, TTL and data of an SOA, and the line in which it begins.
TakeSoa = Callable[[str, int, dns.rdata.Rdata, int], None]


def invalid(found: Sequence[Mistake]) -> InvalidField:
    """The error of what is wrong with a zone file: the first, and all of it as its ``all``."""
    field, why = found[0]
    return InvalidField(field=field, why=why, **({'all': found} if len(found) > 1 else {}))


class ZoneFileLines:
    """
    :param lines: of the zone file
    :param most: how many records there may be
    :param mistakes: takes what is wrong with single records; without it the first is raised
    """

    def __init__(self, lines: Iterable[str], most: int, take: Take, take_soa: TakeSoa,
                 mistakes: ZoneFileErrors | None = None) -> None:
        self._mistakes = mistakes
        self._lines = iter(lines)
        self._most = most
        self._take = take
        self._take_soa = take_soa
        self._number = 0
        self._first = 0
        self._count = 0
        self._made = 0
        self._work = 0
        self._origin_known = False
        self._types: dict[int, str] = {}
        # To dnspython everything is inside the root: what is outside the zone it would drop without a word.
        self._reader: Any = dns.zonefile.Reader(
            dns.tokenizer.Tokenizer(''), dns.rdataclass.IN, cast(dns.transaction.Transaction, self),
            allow_directives=_DIRECTIVES)
        self._last_name: tuple[dns.name.Name | None, str] = (None, '')

    def read(self) -> None:
        """Read them all.

        :raises InvalidField: for more records than there may be, or more mistakes than are told
        """
        reader, take, match, plain_data = self._reader, self._take, LINE.match, _plain_data
        suffix, default_ttl, last_ttl = '.', None, None
        owner, written = '', ''
        for line in self._lines:
            self._number += 1
            found = match(line)
            if found is not None:
                name, before, after, rtype, data = found.groups()
                there = owner if name is None or name == written else plain_owner(name, suffix)
                digits = before or after
                ttl = int(digits) if digits else last_ttl if default_ttl is None else default_ttl
                if there and ttl is not None and ttl <= MAX_TTL:
                    plain = plain_data(rtype, data, suffix)
                    if plain is not None:
                        if digits:
                            last_ttl = ttl
                        if name is not None:
                            owner, written = there, name
                        self._count_one(self._number)
                        take(owner, rtype, ttl, plain, self._number)
                        continue
            if not NOTHING(line):
                if owner:
                    reader.last_name = dns.name.from_text(owner)
                reader.last_ttl, reader.last_ttl_known = last_ttl or 0, last_ttl is not None
                try:
                    self._read(line)
                except InvalidField as error:
                    if self._mistakes is None or self._count > self._most:
                        raise
                    self._mistakes.add(error.kwargs['field'], error.kwargs['why'], line)
                owner, written = reader.last_name.canonicalize().to_text(), ''
                suffix = suffix_of(reader.current_origin.canonicalize().to_text())
                last_ttl = reader.last_ttl if reader.last_ttl_known else None
                default_ttl = None
                if reader.default_ttl_known and not getattr(reader, 'default_ttl_from_soa', False):
                    default_ttl = reader.default_ttl

    def _read(self, line: str) -> None:
        """Have dnspython read *line* and those that belong to it."""
        self._first = self._number
        self._made = self._count
        try:
            text = checked_generate('\n'.join(self._whole(line)) + '\n')
            self._reader.tok = dns.tokenizer.Tokenizer(text, 'line')
            self._reader.read()
        except (dns.exception.DNSException, ValueError) as error:
            words = re.sub(r'^line:\d+: ', '', ' '.join(str(error).split()))
            raise InvalidField(field=line_field(self._first), why=words.rstrip('.') or 'not a record') from None

    def _whole(self, line: str) -> Iterator[str]:
        """*line* with those after it until all parentheses are closed; what is wrong with them dnspython tells."""
        deep = length = 0
        while True:
            line = line.rstrip('\r\n')
            length += len(line)
            if length > LONGEST_RECORD:
                raise InvalidField(field=line_field(self._first), why=f'a record of more than {LONGEST_RECORD} '
                                   'characters; a parenthesis may not be closed')
            yield line
            bare = QUOTED.sub('', line)
            deep += bare.count('(') - bare.count(')')
            if deep <= 0 or '"' in bare:
                return
            following = next(self._lines, None)
            if following is None:
                return
            line = following
            self._number += 1

    def _count_one(self, line: int, work: int = 1) -> None:
        self._count += 1
        self._work += work
        if self._count > self._most:
            raise InvalidField(field=line_field(line), why=f'more than {self._most} records')
        if self._work >= _TURN:
            self._work = 0
            time.sleep(0)

    # What dns.zonefile.Reader calls, of its transactions and their managers

    @property
    def manager(self) -> ZoneFileLines:
        return self

    def origin_information(self) -> tuple[dns.name.Name, bool, dns.name.Name]:
        return dns.name.root, False, dns.name.root

    def check_put_rdataset(self, check: object) -> None:
        """The reader offers a check of CNAMEs; ours comes later and knows the field."""

    def _set_origin(self, origin: dns.name.Name) -> None:
        self._origin_known = True

    def add(self, name: dns.name.Name, ttl: int, parsed: dns.rdata.Rdata) -> None:
        self._count_one(self._first, _SLOW)
        if self._count - self._made > reader.MOST_GENERATED:
            raise ValueError(f'one $GENERATE makes more than {reader.MOST_GENERATED} records')
        if parsed.rdtype == dns.rdatatype.SOA:
            self._take_soa(self._text(name), ttl, parsed, self._first)
            if not self._origin_known:
                self._reader.current_origin, self._origin_known = name, True
            return
        rtype = self._types.get(parsed.rdtype)
        if rtype is None:
            rtype = record_type(line_field(self._first), dns.rdatatype.to_text(parsed.rdtype))
            self._types[parsed.rdtype] = rtype
        self._take(self._text(name), rtype, ttl, as_rdata(line_field(self._first), parsed), self._first)

    def _text(self, name: dns.name.Name) -> str:
        if name is not self._last_name[0]:
            self._last_name = (name, name.canonicalize().to_text())
        return self._last_name[1]


def _plain_data(rtype: str, data: str, suffix: str) -> str | None:
    """*data* with absolute names, if it is certain that dnspython would write it so too; else None."""
    if len(data) > LONGEST.get(rtype, LONGEST_NAME):
        return None
    if PLAIN[rtype](data):
        return data
    absolute = with_absolute_name(rtype, data, suffix)
    return absolute if absolute and len(absolute) <= LONGEST_NAME and PLAIN[rtype](absolute) else None
