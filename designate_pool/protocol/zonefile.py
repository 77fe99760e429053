"""The records of a zone file (RFC 1035 section 5, RFC 2308 section 4), one by one, and its mistakes.

The invariant: the records are those that dnspython reads, or there is an error with the line.  $GENERATE alone is read
as by BIND: a blank owner after it is the one before.

Nearly all lines of nearly all files have a plain form, and are read with a few regular expressions.  Any other line,
with the lines that continue it, is parsed by dnspython.
"""

from __future__ import annotations

import codecs
import functools
import itertools
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from socket import AF_INET6, inet_aton, inet_ntop, inet_pton
from typing import Any, Generic, TypeVar, cast

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.tokenizer
import dns.transaction
import dns.zonefile
from dns.rdtypes.ANY.SOA import SOA

from designate_pool.errors import BadInput, InvalidField
from designate_pool.protocol.names_and_rdata import (LONGEST, LONGEST_NAME, MAX_TTL, PLAIN, SINGLE, given_name, lies_in,
                                                     normal_name, parse_rdata, split_strings, why_not_ascii,
                                                     why_not_data)

#: The result of converting rdata that is not plain text.
T = TypeVar('T')

#: How many mistakes are reported, and how many characters of a wrong line are shown.
MOST_MISTAKES, _SHOWN = 20, 60

#: Where a mistake is (``line 3``), and why it is one.
Mistake = tuple[str, str]
#: The most characters of a record, also of several lines; rdata of 65535 octets, each written as four characters, takes
#: nearly all of them.  It is parsed as a whole, without a turn for others.
LONGEST_RECORD = 300_000
#: The most records of one $GENERATE; a line that would make more is a mistake, or an attempt to exhaust the memory.
MOST_GENERATED = 65_536
_GENERATE = re.compile(r'\$GENERATE[ \t]+([0-9]{1,10})-([0-9]{1,10})(?:/([1-9][0-9]{0,9}))?[ \t]+(.*)',
                       re.IGNORECASE | re.DOTALL)
#: The rest of a $GENERATE whose data is quoted: that is how BIND takes data of several words.
_QUOTED_DATA = re.compile(r'([^"]+[ \t])"((?:[^"\\]|\\.)*)"[ \t]*(?:;.*)?', re.DOTALL)
_PLACE = re.compile(r'\\.|\$\$|\$(?:\{([^}]{0,20}\}?))?', re.DOTALL)
#: Offset, width and base of a place; longer numbers are too long for any name.
_MODIFIER = re.compile(r'([+-]?[0-9]{1,10})(?:,([0-9]{1,3})(?:,([doxXnN]))?)?\}')
_ALONE = tuple(f'\t{rtype}' for rtype in SINGLE)

#: Owner, TTL before or after the class, and type with data.  A line that matches may be plain; its parts are checked
#: later.
_HEAD = r'([^\s"$();\\]+)?[ \t]+(?:([0-9]{1,10})[ \t]+(?:IN[ \t]+)?|IN[ \t]+(?:([0-9]{1,10})[ \t]+)?)?'
_LINE = re.compile(rf'{_HEAD}(A|AAAA|CNAME|MX|NS|PTR|SRV|TXT)[ \t]+(?![ \t])(.*[^ \t\r\n])')
_OWNER = PLAIN['NS']
#: A directive with a number of seconds or an absolute name.
_DIRECTIVE = re.compile(r'\$(?:TTL[ \t]+([0-9]{1,9})|ORIGIN[ \t]+([a-z0-9_.-]+))[ \t\r]*').fullmatch
#: An SOA with absolute names, once comments are removed.
_SOA = re.compile(rf'{_HEAD}SOA[ \t]+([a-z0-9_.-]+)[ \t]+([a-z0-9_.-]+)(?:[ \t]+|[ \t]*(\()[ \t\n]*)'
                  r'([0-9]{1,10}(?:[ \t\n]+[0-9]{1,10}){4})[ \t\n]*(?(6)\)[ \t]*)').fullmatch
_COMMENT = re.compile(';.*')
#: Words without quotes, escapes, parentheses and comments.
_WORDS = re.compile(r"[!#-'*-:<-\[\]-~ \t]+").fullmatch
_HEXADECIMAL = re.compile(r'[0-9A-Fa-f:]{2,39}').fullmatch
#: Types whose data ends with a name.
_NAME_LAST = frozenset({'CNAME', 'MX', 'NS', 'PTR', 'SRV'})

#: A line without a record.
_NOTHING = re.compile(r'[ \t\r\n]*(?:;.*)?[\r\n]*').fullmatch
#: Text in which parentheses have no meaning.
_QUOTED = re.compile(r'\\.|"(?:[^"\\]|\\.)*"|;.*')
_STRINGS = re.compile('"([^"]*)"').findall
_WHERE = re.compile(r'\A<string>:\d+: ')


class ZoneFileErrors:
    """The mistakes that were found in a zone file.

    :param error: returns the error that reports them
    :param most: after this many, the rest of the file is not read
    """

    def __init__(self, error: Callable[[Sequence[Mistake]], Exception], most: int = MOST_MISTAKES) -> None:
        self._error = error
        self._most = most
        self._found: list[Mistake] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, where: str, why: str, line: str | None = None) -> None:
        """Add a mistake.

        :param line: the text of the line
        :raises Exception: as :meth:`refuse`, when there are as many as the limit
        """
        self._found.append((where, why if line is None else f'{why}: {_shown(line)}'))
        if len(self._found) >= self._most:
            if self._most > 1:
                self._found.append(('zone file', f'after {self._most} mistakes the rest was not read'))
            self.refuse()

    def mention(self, word: str) -> bool:
        """Whether one of them is about a line that contains *word*."""
        return any(word in why.upper().split() for _, why in self._found)

    def refuse(self) -> None:
        """Refuse the file because of the mistakes so far.

        :raises Exception: when there are any
        """
        if self._found:
            raise self._error(self._found) from None


def line_field(number: int) -> str:
    """The name of a line in errors."""
    return f'line {number}'


def _shown(line: str) -> str:
    line = line.strip()
    return repr(line if len(line) <= _SHOWN else f'{line[:_SHOWN]}…')


class ZoneFileRecords(Generic[T]):
    """The records of a zone file, in its order.

    :param lines: its text, or its lines
    :param origin: the zone's name; None for that of the SOA, and then nothing is outside the zone
    :param mistakes: collects the mistakes of single records
    :param convert: converts rdata that is not plain, given its type; an InvalidField, or an exception of dnspython,
        becomes a mistake
    :param outside: called with a sentence for a record that is outside the zone, which is left out; if None, such a
        record is a mistake
    :ivar zone: the zone's name in normal form; the root if it was not given
    :ivar given_name: the last record's name as the file has it, if with upper case
    :ivar number: of the line in which the last record begins
    :ivar line: its text
    :ivar has_soa: whether the SOA has been read
    """

    def __init__(self, lines: str | Iterable[str], origin: str | None, mistakes: ZoneFileErrors,
                 convert: Callable[[str, dns.rdata.Rdata], T],
                 outside: Callable[[str], object] | None = None) -> None:
        self.zone = '.' if origin is None else normal_name(origin)
        self._lines = iter(lines.split('\n') if isinstance(lines, str) else lines)
        self._mistakes = mistakes
        self._convert = convert
        self._outside = outside
        self.given_name: str | None = None
        self.number = 0
        self._further = 0
        self.line = ''
        self.has_soa = False
        self._any_zone = origin is None
        self._made = _Collector()
        # dnspython drops records outside its zone without an error, so its zone is the root.
        self._reader: Any = dns.zonefile.Reader(
            dns.tokenizer.Tokenizer(''), dns.rdataclass.IN, cast(dns.transaction.Transaction, self._made),
            allow_directives=('$ORIGIN', '$TTL'))
        self._reader.current_origin = self._reader.last_name = _name(self.zone)

    def __iter__(self) -> Iterator[tuple[str, int, str | T]]:
        """Key, TTL and data; data in normal form, of the types of
        :data:`~designate_pool.protocol.names_and_rdata.PLAIN`, is text.
        """
        reader, is_inside = self._reader, self._is_inside
        suffix, default_ttl, last_ttl = _suffix_of(self.zone), None, None
        owner, written, inside, given_suffix = self.zone, '', True, suffix
        for line in self._lines:
            self.number += 1
            self.line = line
            match = _LINE.match(line)
            if match is not None:
                name, before, after, rtype, data = match.groups()
                if name is None or name == written:
                    full_owner = owner
                else:
                    full_owner = _plain_owner(name, suffix)
                digits = before or after
                ttl = int(digits) if digits else last_ttl if default_ttl is None else default_ttl
                if full_owner and ttl is not None and ttl <= MAX_TTL:
                    plain = self._plain_data(rtype, data, suffix)
                    if plain is not None:
                        if digits:
                            last_ttl = ttl
                        if full_owner is not owner:
                            owner, written, inside = full_owner, name, is_inside(full_owner)
                            self.given_name = given_name(_absolute(name, given_suffix), owner)
                        if not inside:
                            self._leave_out(owner, rtype)
                        elif plain:
                            yield f'{owner}\t{rtype}', ttl, plain
                        continue
            directive = _DIRECTIVE(line)
            if directive is not None and (directive[1] or _is_name(directive[2])):
                written = ''
                if directive[1]:
                    default_ttl = reader.default_ttl = int(directive[1])
                    reader.default_ttl_known, reader.default_ttl_from_soa = True, False
                else:
                    suffix = given_suffix = _suffix_of(directive[2])
                    reader.current_origin, self._made.origin_is_said = _name(directive[2]), True
            elif not _NOTHING(line):
                reader.last_name, reader.last_ttl = _name(self.given_name or owner), last_ttl or 0
                reader.last_ttl_known = last_ttl is not None
                yield from self._read(line)
                owner, written = reader.last_name.canonicalize().to_text(), ''
                self.given_name = given_name(reader.last_name.to_text(), owner)
                given_suffix = _suffix_of(reader.current_origin.to_text())
                inside, suffix = is_inside(owner), given_suffix.lower()
                last_ttl = reader.last_ttl if reader.last_ttl_known else None
                default_ttl = None
                if reader.default_ttl_known and not getattr(reader, 'default_ttl_from_soa', False):
                    default_ttl = reader.default_ttl

    def check_soa(self) -> None:
        """Add a mistake if no SOA has been read."""
        if not self.has_soa:
            self._mistakes.add('', no_record('SOA', self.zone))

    def check_alone(self, key: str) -> None:
        """Add a mistake if there cannot be a second record with this key."""
        if key.endswith(_ALONE):
            name, _, rtype = key.partition('\t')
            self.refuse(f'a second {rtype} record of {name}, and there can be one only')

    def refuse(self, why: str) -> None:
        """Add a mistake about the last record."""
        self._mistakes.add(line_field(self.number), why, self.line)

    def _plain_data(self, rtype: str, data: str, suffix: str) -> str | T | None:
        """*data* with absolute names; None if dnspython must parse it, empty for a mistake."""
        if len(data) > LONGEST.get(rtype, LONGEST_NAME):
            return None
        if PLAIN[rtype](data):
            return data
        if rtype == 'AAAA' and (address := _ipv6_address(data)):
            return address
        # In a zone file each word without quotes is a string; for parse_rdata the whole value would be one.
        absolute = None if rtype == 'TXT' else _with_absolute_name(rtype, data, suffix)
        if absolute is None:
            return None
        if len(absolute) <= LONGEST_NAME and PLAIN[rtype](absolute):
            return absolute
        try:
            return self._convert(rtype, parse_rdata(rtype, absolute))
        except (dns.exception.DNSException, ValueError, InvalidField) as error:
            self.refuse(_why(error) if isinstance(error, InvalidField) else why_not_data(rtype, data, error))
            return ''

    def _read(self, line: str) -> Iterator[tuple[str, int, T]]:
        """The records that dnspython reads from *line* and the lines that continue it."""
        try:
            whole, last_name = self._whole(line), self._reader.last_name
            for text in _generated(whole):
                if not self._read_soa(text):
                    self._parse(text)
                for name, ttl, rdata in self._made.records:
                    if ttl > MAX_TTL:
                        raise ValueError(f'its TTL {ttl} is more than {MAX_TTL}')
                    owner, rtype = name.canonicalize().to_text(), dns.rdatatype.to_text(rdata.rdtype)
                    self.given_name = given_name(name.to_text(), owner)
                    if not self._is_inside(owner):
                        self._leave_out(owner, rtype)
                        continue
                    if rtype == 'SOA':
                        if owner != self.zone and not self._any_zone:
                            raise ValueError(f'a SOA record of {owner}, and the zone is {self.zone}')
                        self.has_soa = True
                        if self._any_zone and not self._made.origin_is_said:
                            self._reader.current_origin, self._made.origin_is_said = name, True
                    yield f'{owner}\t{rtype}', ttl, self._convert(rtype, rdata)
                self._made.records.clear()
                if text is not whole:
                    self._reader.last_name = last_name
        except _WrongLine as error:
            number, why, wrong = error.args
            self._mistakes.add(line_field(number), why, wrong)
        except (dns.exception.DNSException, ValueError, InvalidField) as error:
            match = _LINE.match(self.line)
            self.refuse(why_not_data(match[4], match[5], error)
                        if match and match[4] in ('A', 'AAAA') and 'malformed' in str(error)
                        else _why(error))
        finally:
            self._made.records.clear()
            self.number += self._further
            self._further = 0

    def _read_soa(self, text: str) -> bool:
        """Read *text* if it is an SOA record of the usual form: dnspython takes as long as the rest of a small file."""
        reader, match = self._reader, _SOA(_COMMENT.sub('', text))
        if match is None or not reader.default_ttl_known or getattr(reader, 'default_ttl_from_soa', False):
            return False
        owner, before, after, primary, mail, _, numbers = match.groups()
        if not (_is_name(primary) and _is_name(mail) and (owner in (None, '@') or _is_name(owner))):
            return False
        try:
            soa = SOA(  # type: ignore[no-untyped-call]
                dns.rdataclass.IN, dns.rdatatype.SOA, _name(primary), _name(mail), *map(int, numbers.split()))
        except ValueError:
            return False  # the error is found again by dnspython
        if owner is not None:
            reader.last_name = reader.current_origin if owner == '@' else _name(owner)
        if digits := before or after:
            reader.last_ttl, reader.last_ttl_known = int(digits), True
        self._made.add(reader.last_name, reader.last_ttl if digits else reader.default_ttl, soa)
        return True

    def _parse(self, text: str) -> None:
        try:
            self._reader.tok = dns.tokenizer.Tokenizer(text)
            self._reader.read()
        except dns.exception.SyntaxError as error:
            if 'string too long' not in str(error):
                raise
            self._made.records.clear()
            self._reader.tok = dns.tokenizer.Tokenizer(split_strings(text))
            self._reader.read()

    def _whole(self, line: str) -> str:
        """*line* with the following ones until all parentheses are closed."""
        parts: list[str] = []
        deep = length = 0
        while True:
            line = line.rstrip('\r\n')
            if self.number == 1:  # Windows writes a byte order mark
                line = line.removeprefix('\ufeff')
            parts.append(line)
            length += len(line)
            _check_length(length)
            bare, number = _QUOTED.sub('', line), self.number + self._further
            if '"' in bare:
                raise _WrongLine(number, 'a quoted string has no end', line)
            if not bare.isascii():
                raise _WrongLine(number, why_not_ascii(bare), line)
            deep += bare.count('(') - bare.count(')')
            if deep <= 0:
                return '\n'.join(parts)
            following = next(self._lines, None)
            if following is None:
                raise ValueError('a parenthesis is not closed before the file ends')
            line = following
            self._further += 1

    def _is_inside(self, owner: str) -> bool:
        return lies_in(owner, self.zone)

    def _leave_out(self, owner: str, rtype: str) -> None:
        why = f'{owner} {rtype} is not inside the zone {self.zone}'
        if self._outside is None:
            self.refuse(why)
        else:
            self._outside(f'{line_field(self.number)}: {why} and is left out')


class _WrongLine(ValueError):
    """A mistake in one line of a record of several: the line's number, why, and its text."""


class _Collector:
    """The part of a transaction to which :class:`dns.zonefile.Reader` writes."""

    manager: Any

    def __init__(self) -> None:
        self.manager = self
        self.records: list[tuple[dns.name.Name, int, dns.rdata.Rdata]] = []
        self.origin_is_said = False

    def origin_information(self) -> tuple[dns.name.Name, bool, dns.name.Name]:
        return dns.name.root, False, dns.name.root

    def check_put_rdataset(self, check: object) -> None:
        """Nothing: records are checked when they are added to a zone."""

    def _set_origin(self, origin: dns.name.Name) -> None:
        self.origin_is_said = True

    def add(self, name: dns.name.Name, ttl: int, rdata: dns.rdata.Rdata) -> None:
        self.records.append((name, ttl, rdata))


def _why(error: Exception) -> str:
    if isinstance(error, InvalidField):
        return str(error.kwargs['why'])
    return _WHERE.sub('', ' '.join(str(error).split()).rstrip('.')) or 'it is not the line of a zone file'


def validated(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces of a zone file.

    :raises BadInput: when it is not UTF-8, has a NUL, or is empty
    """
    decoder = codecs.getincrementaldecoder('utf-8')()
    before, something = 0, False
    for piece in itertools.chain(pieces, (b'',)):
        incomplete = len(decoder.getstate()[0])
        try:
            text = decoder.decode(piece, not piece)
        except UnicodeDecodeError as error:
            raise BadInput(why=f'the zone file is not UTF-8 (byte {before - incomplete + error.start})') from None
        if '\0' in text:
            raise BadInput(why='the zone file has a NUL in it')
        something = something or bool(text.strip())
        before += len(piece)
        if piece:
            yield piece
    if not something:
        raise BadInput(why='the zone file is empty')


def no_record(rtype: str, zone: str) -> str:
    """The reason to refuse a zone without its SOA or NS records."""
    return f'it has no {rtype} record{"s" if rtype == "NS" else ""} of {zone}'


def _check_length(length: int) -> None:
    if length > LONGEST_RECORD:
        raise ValueError(f'a record of more than {LONGEST_RECORD} characters; a parenthesis may not be closed')


def _generated(text: str) -> Iterator[str]:
    """*text*, of one record or directive; in place of a $GENERATE the records that it makes.

    :raises ValueError: for a $GENERATE of another form, of too many records, or with a width that would take too much
        memory
    """
    if text.lstrip(' \t(')[:9].upper() != '$GENERATE':
        yield text
        return
    match = _GENERATE.fullmatch(text)
    if match is None or int(match[1]) > int(match[2]):
        raise ValueError('a $GENERATE has to be written as $GENERATE FIRST-LAST[/STEP] NAME [TTL] TYPE DATA')
    first, last, step, template = match.groups()
    numbers = range(int(first), int(last) + 1, int(step or 1))
    if len(numbers) > MOST_GENERATED:
        raise ValueError(f'one $GENERATE makes more than {MOST_GENERATED} records')
    quoted = _QUOTED_DATA.fullmatch(template)
    if quoted is not None:
        template = quoted[1] + re.sub(r'\\(.)', lambda escape: escape[1] if escape[1] == '"' else escape[0], quoted[2])
    else:  # what looks like a place in a comment is none
        template = _QUOTED.sub(lambda piece: '' if piece[0][0] == ';' else piece[0], template)
    for number in numbers:
        line = _PLACE.sub(functools.partial(_number_in, number), template)
        _check_length(len(line))
        yield line


def _number_in(number: int, place: re.Match[str]) -> str:
    """What stands for *number* at a place of a $GENERATE: ``$`` or ``${offset[,width[,base]]}``."""
    if place[0][1:2] == '$' or place[0][0] == '\\':
        return '$' if place[0] == '$$' else place[0]
    modifier = _MODIFIER.fullmatch('0}' if place[1] is None else place[1])
    if modifier is None:
        raise ValueError(f'{place[0][:20]} in $GENERATE is not ${{OFFSET[,WIDTH[,BASE]]}}, or has a number that is too '
                         'long')
    value, width, base = number + int(modifier[1]), int(modifier[2] or 0), modifier[3] or 'd'
    if base not in 'nN':
        return format(value, base).zfill(width)
    digits = format(value, 'x' if base == 'n' else 'X').zfill((width + 1) // 2)
    return '.'.join(reversed(digits)) + '.' * (width > 0 and width % 2 == 0)


#: Names that dnspython is given, often the same ones.
_name = functools.lru_cache(maxsize=1000)(dns.name.from_text)


def _is_name(text: str) -> bool:
    """Whether it is a plain absolute name."""
    return len(text) < LONGEST_NAME and _OWNER(text) is not None


def _suffix_of(origin: str) -> str:
    """The text that makes a relative name absolute."""
    return '.' if origin == '.' else f'.{origin}'


def _absolute(name: str, suffix: str) -> str:
    return name if name[-1] == '.' else suffix[1:] or '.' if name == '@' else name + suffix


def _with_absolute_name(rtype: str, data: str, suffix: str) -> str | None:
    """*data* without its comment and with an absolute name at its end; None if dnspython must parse it."""
    data = data.partition(';')[0].rstrip(' \t')
    if not _WORDS(data):
        return None
    words = data.split()
    if rtype in _NAME_LAST:
        words[-1] = _absolute(words[-1], suffix)
    return ' '.join(words)


def _ipv6_address(data: str) -> str:
    """An IPv6 address as dnspython writes it; empty if dnspython must parse it, which takes many times as long."""
    if not _HEXADECIMAL(data):
        return ''
    try:
        address = inet_ntop(AF_INET6, inet_pton(AF_INET6, data))
    except OSError:
        return ''
    return '' if address.startswith('::') else address  # the end of these may be written as of IPv4


def _plain_owner(name: str, suffix: str) -> str:
    """*name* absolute and in normal form; empty if dnspython must parse it."""
    if not _OWNER(name):
        if not name.isascii():
            return ''
        name = _absolute(name.lower(), suffix)
        if not _OWNER(name):
            return ''
    return name if len(name) < LONGEST_NAME else ''


def wire_of(rtype: str, text: str) -> bytes:
    """The wire form (RFC 1035 sections 3.3 and 3.4, RFC 3596, RFC 2782) of *text* that an entry of
    :data:`~designate_pool.protocol.names_and_rdata.PLAIN` matches.

    The invariant: it is the wire form that dnspython makes, without the time that dnspython takes.
    """
    return _WIRE[rtype](text)


def _name_wire(text: str) -> bytes:
    return b''.join([bytes((len(label),)) + label for label in text.encode('ascii').split(b'.')])


def _mx(text: str) -> bytes:
    preference, _, exchange = text.partition(' ')
    return struct.pack('!H', int(preference)) + _name_wire(exchange)


def _srv(text: str) -> bytes:
    priority, weight, port, target = text.split(' ')
    return struct.pack('!HHH', int(priority), int(weight), int(port)) + _name_wire(target)


def _txt(text: str) -> bytes:
    return b''.join([bytes((len(string),)) + string.encode('ascii') for string in _STRINGS(text)])


_WIRE: dict[str, Callable[[str], bytes]] = {
    'A': inet_aton,
    'AAAA': functools.partial(inet_pton, AF_INET6),
    'MX': _mx,
    'SRV': _srv,
    'TXT': _txt,
    **{rtype: _name_wire for rtype in ('CNAME', 'DNAME', 'NS', 'PTR')},
}
