"""The records of a zone file (RFC 1035 section 5, RFC 2308 section 4), one by one.

The invariant: what is read is what dnspython reads, or an error that names the line.

Nearly all lines of nearly all files are of a plain form, and these are read with a few regular expressions.  Whatever
is not certain to be plain is gathered to a whole record and left to dnspython.
"""

from __future__ import annotations

import re
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

from designate_pool.errors import InvalidField, SourceError, WrongSource
from designate_pool.protocol.rrset import (LONGEST, LONGEST_NAME, LOWER, MAX_TTL, PLAIN, lies_in, normal_name,
                                           normal_rdata)
from designate_pool.protocol.zonefile.errors import Mistake, ZoneFileErrors, line_field, shown

#: A record: its key, TTL and data.
Record = tuple[str, int, str]

#: What one $GENERATE may make; a line that asks for more is a mistake, or meant to fill the memory.
MOST_GENERATED = 65_536
#: In a $GENERATE: numbers beyond what any name has, and widths beyond the length of any.
_IMMENSE = re.compile(r'\$GENERATE[ \t(]+\S*[0-9]{11}|\$\{[^}]*[0-9]{11}|\$\{[^},]*,[^},]*[0-9]{4}', re.IGNORECASE)
#: Types of which a name has one record at most.
_ALONE = ('\tCNAME', '\tDNAME', '\tSOA')

#: Owner, TTL before or after the class, type, data.  It matches what may be plain; the rest tells whether it is.
LINE = re.compile(r'([^\s"$();\\]+)?[ \t]+(?:([0-9]{1,10})[ \t]+(?:IN[ \t]+)?|IN[ \t]+(?:([0-9]{1,10})[ \t]+)?)?'
                  r'(A|AAAA|CNAME|MX|NS|PTR|SRV|TXT)[ \t]+(.*[^ \t\r\n])')
_OWNER = PLAIN['NS']
#: Words without quotes, escapes, parentheses and comments.
WORDS = re.compile(r"[!#-'*-:<-\[\]-~ \t]+").fullmatch
#: Types whose data ends with a name.
NAME_LAST = frozenset({'CNAME', 'MX', 'NS', 'PTR', 'SRV'})

#: A line without a record.
NOTHING = re.compile(r'[ \t\r\n]*(?:;.*)?[\r\n]*').fullmatch
#: Whose parentheses are none.
QUOTED = re.compile(r'\\.|"(?:[^"\\]|\\.)*"|;.*')
_WHERE = re.compile(r'\A<string>:\d+: ')


class ZoneFileRecords:
    """The records of a zone file, in its order.

    :param lines: its text, or its lines
    :param origin: the zone's name
    :param file: what errors call it
    :param outside: called with a sentence for a record that is outside the zone and left out; None makes it an error
    :param mistakes: takes what is wrong with single records; without it the first is raised
    :ivar zone: the zone's name in normal form
    :ivar number: of the line of the record that came last
    :ivar line: its text
    :ivar has_soa: whether the SOA has come
    """

    def __init__(self, lines: str | Iterable[str], origin: str, file: str,
                 outside: Callable[[str], object] | None = None, mistakes: ZoneFileErrors | None = None) -> None:
        self.zone = normal_name(origin)
        self._lines = iter(lines.split('\n') if isinstance(lines, str) else lines)
        self._file = file
        self._outside = outside
        self._mistakes = mistakes
        self.number = 0
        self.line = ''
        self.has_soa = False
        self._made: list[tuple[dns.name.Name, int, dns.rdata.Rdata]] = []
        # To dnspython everything is inside the root: what is outside the zone it would drop without a word.
        self._reader: Any = dns.zonefile.Reader(
            dns.tokenizer.Tokenizer(''), dns.rdataclass.IN, cast(dns.transaction.Transaction, _Collector(self._made)),
            allow_directives=('$GENERATE', '$ORIGIN', '$TTL'))
        self._reader.current_origin = self._reader.last_name = dns.name.from_text(self.zone)

    def __iter__(self) -> Iterator[Record]:
        """
        :raises SourceError: for what cannot be read
        """
        reader, is_inside = self._reader, self._is_inside
        suffix, default_ttl, last_ttl = suffix_of(self.zone), None, None
        owner, written, inside = self.zone, '', True
        for line in self._lines:
            self.number += 1
            self.line = line
            found = LINE.match(line)
            if found is not None:
                name, before, after, rtype, data = found.groups()
                if name is None or name == written:
                    there = owner
                else:
                    there = plain_owner(name, suffix)
                digits = before or after
                ttl = int(digits) if digits else last_ttl if default_ttl is None else default_ttl
                if there and ttl is not None and ttl <= MAX_TTL:
                    plain = self._plain_data(rtype, data, suffix)
                    if plain is not None:
                        if digits:
                            last_ttl = ttl
                        if there is not owner:
                            owner, written, inside = there, name, is_inside(there)
                        if not inside:
                            self._leave_out(owner, rtype)
                        elif plain:
                            yield f'{owner}\t{rtype}', ttl, plain
                        continue
            if not NOTHING(line):
                reader.last_name, reader.last_ttl = dns.name.from_text(owner), last_ttl or 0
                reader.last_ttl_known = last_ttl is not None
                yield from self._read(line)
                owner, written = reader.last_name.canonicalize().to_text(), ''
                inside, suffix = is_inside(owner), suffix_of(reader.current_origin.canonicalize().to_text())
                last_ttl = reader.last_ttl if reader.last_ttl_known else None
                default_ttl = None
                if reader.default_ttl_known and not getattr(reader, 'default_ttl_from_soa', False):
                    default_ttl = reader.default_ttl

    def check_soa(self) -> None:
        """
        :raises SourceError: when there was no SOA so far
        """
        if not self.has_soa:
            raise SourceError(source=self._file, why=no_record('SOA', self.zone))

    def check_alone(self, key: str) -> None:
        """
        :raises SourceError: as :meth:`refuse`, when there cannot be a second record of this key
        """
        if key.endswith(_ALONE):
            name, _, rtype = key.partition('\t')
            self.refuse(f'a second {rtype} record of {name}, and there can be one only')

    def refuse(self, why: str) -> None:
        """Say what is wrong with the record that came last.

        :raises SourceError: where nobody takes all mistakes
        """
        self._wrong(why, self.number, self.line)

    def _wrong(self, why: str, number: int, line: str) -> None:
        if self._mistakes is None:
            raise SourceError(source=f'{self._file}, {line_field(number)}', why=f'{why}: {shown(line)}') from None
        self._mistakes.add(line_field(number), why, line)

    def _plain_data(self, rtype: str, data: str, suffix: str) -> str | None:
        """*data* in normal form; None for what is to be left to dnspython, and empty for what is wrong."""
        if len(data) > LONGEST.get(rtype, LONGEST_NAME):
            return None
        if PLAIN[rtype](data):
            return data
        # Words without quotes are a string each here, and one string in a value that stands by itself.
        absolute = None if rtype == 'TXT' else with_absolute_name(rtype, data, suffix)
        if absolute is None:
            return None
        try:
            return normal_rdata(rtype, absolute)
        except InvalidField as error:
            self.refuse(str(error).rstrip('.'))
            return ''

    def _read(self, line: str) -> Iterator[Record]:
        """What dnspython reads from *line* and those that belong to it."""
        first, made = self.number, self._made
        try:
            self._reader.tok = dns.tokenizer.Tokenizer(checked_generate(self._whole(line)))
            self._reader.read()
            for name, ttl, rdata in made:
                rdata.to_wire()
                if ttl > MAX_TTL:
                    raise ValueError(f'its TTL {ttl} is more than {MAX_TTL}')
                owner, rtype = name.canonicalize().to_text(), dns.rdatatype.to_text(rdata.rdtype)
                if not self._is_inside(owner):
                    self._leave_out(owner, rtype)
                    continue
                if rtype == 'SOA':
                    self._check_apex(owner)
                data = rdata.to_text()
                yield f'{owner}\t{rtype}', ttl, data.lower() if rtype in LOWER else data
        except _WrongLine as error:
            self.refuse(str(error))
        except (dns.exception.DNSException, ValueError) as error:
            words = _WHERE.sub('', ' '.join(str(error).split()).rstrip('.'))
            self._wrong(words or 'it is not the line of a zone file', first, line)
        finally:
            made.clear()

    def _whole(self, line: str) -> str:
        """*line* with those after it until all parentheses are closed."""
        parts: list[str] = []
        deep = 0
        while True:
            line = line.rstrip('\r\n')
            parts.append(line)
            bare = QUOTED.sub('', line)
            if '"' in bare:
                raise _WrongLine('a quoted string has no end')
            if not bare.isascii():
                raise _WrongLine("it has letters that are not ASCII; write international names as 'xn--…'")
            deep += bare.count('(') - bare.count(')')
            if deep <= 0:
                return '\n'.join(parts)
            following = next(self._lines, None)
            if following is None:
                raise ValueError('a parenthesis is not closed before the file ends')
            self.line = line = following
            self.number += 1

    def _is_inside(self, owner: str) -> bool:
        return lies_in(owner, self.zone)

    def _leave_out(self, owner: str, rtype: str) -> None:
        why = f'{owner} {rtype} is not inside the zone {self.zone}'
        if self._outside is None:
            self.refuse(why)
        else:
            self._outside(f'{self._file}, {line_field(self.number)}: {why} and is left out')

    def _check_apex(self, owner: str) -> None:
        if owner != self.zone:
            raise ValueError(f'a SOA record of {owner}, and the zone is {self.zone}')
        self.has_soa = True


class _WrongLine(ValueError):
    """A line that is wrong by itself, whatever record it belongs to."""


class _Collector:
    """What :class:`dns.zonefile.Reader` writes to, of its transactions."""

    manager: Any

    def __init__(self, made: list[tuple[dns.name.Name, int, dns.rdata.Rdata]]) -> None:
        self.manager = self
        self._made = made

    def origin_information(self) -> tuple[dns.name.Name, bool, dns.name.Name]:
        return dns.name.root, False, dns.name.root

    def check_put_rdataset(self, check: object) -> None:
        """What the zone checks is checked where the zone is."""

    def _set_origin(self, origin: dns.name.Name) -> None:
        """The reader keeps it."""

    def add(self, name: dns.name.Name, ttl: int, rdata: dns.rdata.Rdata) -> None:
        if len(self._made) >= MOST_GENERATED:
            raise ValueError(f'one $GENERATE makes more than {MOST_GENERATED} records')
        self._made.append((name, ttl, rdata))


def source_error(file: str, found: Sequence[Mistake]) -> SourceError:
    """The error of all that is wrong with *file*.

    :param found: where and why; where is '' for the file as a whole
    """
    if len(found) > 1:
        return WrongSource(source=file, why=''.join(
            f'\n  {where}: {why}' if where else f'\n  {why}' for where, why in found))
    [(where, why)] = found
    return SourceError(source=f'{file}, {where}' if where else file, why=why)


def no_record(rtype: str, zone: str) -> str:
    return f'it has no {rtype} record{"s" if rtype == "NS" else ""} of {zone}'


def checked_generate(text: str) -> str:
    """*text*, of one record or directive.

    :raises ValueError: when it is a $GENERATE with a number or a width that would cost memory, or have no end
    """
    if text.lstrip(' \t')[:9].upper() == '$GENERATE' and _IMMENSE.search(text):
        raise ValueError('a number in $GENERATE has more than 10 digits, or a width more than 3')
    return text


def suffix_of(origin: str) -> str:
    """What makes a relative name absolute."""
    return '.' if origin == '.' else f'.{origin}'


def with_absolute_name(rtype: str, data: str, suffix: str) -> str | None:
    """*data* without its comment, the name at its end absolute; None for what is to be left to dnspython.

    :param suffix: see :func:`suffix_of`
    """
    data = data.partition(';')[0].rstrip(' \t')
    if not WORDS(data):
        return None
    words = data.split()
    if rtype in NAME_LAST and words[-1][-1] != '.':
        words[-1] = suffix[1:] or '.' if words[-1] == '@' else words[-1] + suffix
    return ' '.join(words)


def plain_owner(name: str, suffix: str) -> str:
    """*name* absolute and in normal form; empty for what is to be left to dnspython."""
    if not _OWNER(name):
        if not name.isascii():
            return ''
        name = name.lower()
        if name[-1] != '.':
            name = suffix[1:] if name == '@' else name + suffix
        if not _OWNER(name):
            return ''
    return name if len(name) < LONGEST_NAME else ''
