"""Data of records as octoDNS's YAML has it, to and from the text of zone files: a table, a line for each type.

Texts inside quotes keep the escapes of zone files, as octoDNS has it for CAA, NAPTR and URI.  TXT and SPF are the
exception: a value there is the text itself, all strings of it in one, with only its semicolons escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple

import dns.rdata
import dns.rdataclass
import dns.rdatatype
import idna
from dns.rdtypes.ANY.TXT import TXT

_WORD = re.compile(r'(?:[^\s"\\]|\\.|"(?:[^"\\]|\\.)*")+')
_PLAIN_TEXT = re.compile(r'[ !#-\[\]-~]{0,255}').fullmatch
#: What octoDNS takes for a semicolon that should have been escaped, and for one that is so twice.
_BARE_SEMICOLON = re.compile(r'\w;')
_DOUBLE_ESCAPE = re.compile(r'\\\\;')
#: What cannot stand in a parameter of SVCB as it is, outside of quotes.
_NOT_BARE = re.compile(r'[\s"();]')

_SVC_LISTS = frozenset({'alpn', 'ipv4hint', 'ipv6hint', 'mandatory'})
#: Parameters that dnspython has a word for and octoDNS has not (RFC 9461 section 5, RFC 9540 section 4).
_SVC_NUMBERS = {'dohpath': 'key7', 'ohttp': 'key8'}
#: What LOC has where nothing is said (RFC 1876 section 3).
_LOC_DEFAULTS = ('1.00m', '10000.00m', '10.00m')
#: The names that DS's fields had in octoDNS before.
_OLD_DS = {'key_tag': 'flags', 'algorithm': 'protocol', 'digest_type': 'algorithm', 'digest': 'public_key'}


class _Kind(NamedTuple):
    """A kind of field: from YAML to a word of a zone file, and back."""

    to_word: Callable[[Any], str]
    from_word: Callable[[str], Any]


class _Field(NamedTuple):
    """A field of a type's data.

    :ivar also: another name that it may have in YAML
    :ivar default: what it is when it is missing; without one it has to be there
    """

    name: str
    kind: _Kind
    also: str | None = None
    default: Any = None


def types() -> frozenset[str]:
    """The types that octoDNS's YAML has and DNS has as well."""
    return frozenset(_WHOLE) | frozenset(_FIELDS)


def to_rdata(rtype: str, value: Any, lenient: bool = False) -> str:
    """Data of *rtype* as a zone file has it, not yet in normal form.

    :param lenient: whether TXT may have what octoDNS does not take without being told so
    :raises ValueError: when it is not such data, with a sentence
    """
    if rtype in _TEXTS:
        return text_to_rdata(value, lenient)
    if rtype in _WHOLE:
        return _WHOLE[rtype].to_word(value)
    if not isinstance(value, Mapping):
        raise ValueError(f'{value!r} is not a mapping of fields')
    if rtype == 'DS' and ('public_key' in value or 'flags' in value):
        value = {new: value[old] for new, old in _OLD_DS.items() if old in value}
    words = [_word(field, value) for field in _FIELDS[rtype]]
    return ' '.join([*words, *_parameters(value.get('svcparams'))] if rtype in _SERVICES else words)


def from_rdata(rtype: str, text: str) -> Any:
    """The inverse of :func:`to_rdata`, for data in normal form.

    :raises ValueError: for data that YAML cannot have
    """
    if rtype in _TEXTS:
        return rdata_to_text(text)
    if rtype in _WHOLE:
        return _WHOLE[rtype].from_word(text)
    words = _WORD.findall(text)
    fields = _FIELDS[rtype]
    found: dict[str, Any] = {}
    if rtype in _SERVICES:
        found['svcparams'] = _from_parameters(words[len(fields):])
    elif rtype == 'LOC':
        words += _LOC_DEFAULTS[len(words) - len(fields):] if len(words) < len(fields) else ()
    else:
        # Long hexadecimal digits come in groups.
        words = [*words[:len(fields) - 1], ''.join(words[len(fields) - 1:])]
    found.update((field.name, field.kind.from_word(word)) for field, word in zip(fields, words, strict=False))
    if not found.get('svcparams', True):
        del found['svcparams']
    return found


def text_to_rdata(value: Any, lenient: bool = False) -> str:
    """A TXT value, its semicolons escaped, as strings of at most 255 octets.

    :raises ValueError: when it is no text, or octoDNS would not take it and it is not *lenient*
    """
    text = _text(value)
    if not lenient:
        if _BARE_SEMICOLON.search(text) or _DOUBLE_ESCAPE.search(text):
            raise ValueError(rf"{text!r} has a semicolon that is not escaped as '\;', or escaped twice")
        if not text.isascii():
            raise ValueError(f'{text!r} has letters that are not ASCII')
    if text[:1] == '"':
        if len(text) < 2 or text[-1] != '"':
            raise ValueError(f'{text!r} begins with a quote and does not end with one')
        text = text[1:-1]
    text = text.replace('" "', '').replace('\\;', ';')
    if _PLAIN_TEXT(text):
        return f'"{text}"'
    return txt_rdata(text.encode())


def txt_rdata(octets: bytes) -> str:
    """TXT data of strings of at most 255 octets."""
    strings = [octets[start:start + 255] for start in range(0, len(octets), 255)]
    return TXT(dns.rdataclass.IN, dns.rdatatype.TXT, strings or [b'']).to_text()


def rdata_to_text(rdata: str) -> str:
    """The inverse of :func:`text_to_rdata`; how the text is divided into strings is lost.

    :raises ValueError: for octets that are no UTF-8, and for quotes and escapes that octoDNS would take for others
    """
    parsed: Any = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.TXT, rdata)
    try:
        text = str(b''.join(parsed.strings), 'utf-8')
    except UnicodeDecodeError:
        raise ValueError(f'{rdata} is no text in UTF-8') from None
    escaped = text.replace(';', '\\;')
    if text[:1] == '"' or '" "' in text or _DOUBLE_ESCAPE.search(escaped):
        raise ValueError(f'{rdata} has quotes or backslashes where octoDNS reads them as something else')
    return escaped


def needs_leniency(rtype: str, value: Any) -> bool:
    """Whether octoDNS takes a value that :func:`from_rdata` made only when it is told to be lenient."""
    if rtype in _TEXTS:
        return not value.isascii()
    return any(value[name] not in known for name, known in _KNOWN.get(rtype, {}).items())


def ascii_name(text: Any) -> str:
    """A name as DNS has it: in lower case, international labels as ``xn--…``.

    :raises ValueError: for what cannot be a name
    """
    text = _text(text).lower()
    if text.isascii():
        return text
    try:
        return '.'.join(label if label.isascii() else idna.encode(label).decode() for label in text.split('.'))
    except idna.IDNAError as error:
        raise ValueError(f'{text!r} is not a domain name ({error})') from None


def unicode_name(name: str) -> str:
    """The name that :func:`ascii_name` makes into *name*, for people; *name* itself where there is none."""
    if 'xn--' not in name:
        return name
    try:
        found = '.'.join(idna.decode(label) if label.startswith('xn--') else label for label in name.split('.'))
        return found if ascii_name(found) == name else name
    except (idna.IDNAError, ValueError):
        return name


def _text(value: Any) -> str:
    if value is None or value == '' and not isinstance(value, str):
        raise ValueError('a value is missing')
    if not isinstance(value, str):
        raise ValueError(f'{value!r} is not a text; put it in quotes')
    return value


def _word(field: _Field, value: Mapping[str, Any]) -> str:
    for name in (field.name, field.also):
        if name is not None and value.get(name) is not None:
            try:
                return field.kind.to_word(value[name])
            except (ValueError, TypeError) as error:
                raise ValueError(f"'{name}' is wrong: {error}") from None
    if field.default is None:
        raise ValueError(f"'{field.name}' is missing")
    return field.kind.to_word(field.default)


def _number(value: Any) -> str:
    if isinstance(value, bool) or not (isinstance(value, int) or isinstance(value, str) and value.strip().isdecimal()):
        raise ValueError(f'{value!r} is not a whole number')
    return str(int(value))


def _decimal(value: Any, unit: str) -> str:
    return f'{float(value):.2f}m' if unit else f'{float(value):.3f}'


def _digits(value: Any) -> str:
    # Digits alone are a number to YAML.
    return str(value).lower() if isinstance(value, int) and not isinstance(value, bool) else _text(value).lower()


def _bare(value: Any) -> str:
    text = _text(value)
    if not text or _NOT_BARE.search(text):
        raise ValueError(f'{text!r} is not one word')
    return text


def _quoted(value: Any) -> str:
    text = _text(value)
    if not text.isascii():
        raise ValueError(f'{text!r} has letters that are not ASCII')
    return f'"{text}"'


def _unquoted(word: str) -> str:
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] == '"' else word


def _parameters(value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise ValueError("'svcparams' is not a mapping")
    return [key if each is None else f'{key}={_parameter(each)}' for key, each in value.items()]


def _parameter(value: Any) -> str:
    text = ','.join(map(str, value)) if isinstance(value, list) else str(value)
    return f'"{text}"' if _NOT_BARE.search(text) and not text.startswith('"') else text


def _from_parameters(words: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in words:
        key, sign, value = word.partition('=')
        # octoDNS writes what is here without quotes: what would end it there is escaped.
        text = re.sub(r'\\"|[ ;()]', lambda end: f'\\{ord(end[0][-1]):03}', _unquoted(value))
        found[_SVC_NUMBERS.get(key, key)] = None if not sign else text.split(',') if key in _SVC_LISTS else text
    return found


NUMBER = _Kind(_number, int)
NAME = _Kind(ascii_name, str)
WORD = _Kind(_bare, str)
CAPITALS = _Kind(lambda value: _quoted(value).upper(), lambda word: _unquoted(word).upper())
DIRECTION = _Kind(lambda value: _bare(value).upper(), str)
QUOTED = _Kind(_quoted, _unquoted)
DIGITS = _Kind(_digits, str)
SECONDS = _Kind(lambda value: _decimal(value, ''), float)
METRES = _Kind(lambda value: _decimal(value, 'm'), lambda word: float(word.removesuffix('m')))

#: What octoDNS knows of what fields may hold, where there is more in DNS.
_KNOWN: dict[str, dict[str, Container[Any]]] = {
    'NAPTR': {'flags': frozenset('SAUP')},
    'SSHFP': {'algorithm': range(1, 5), 'fingerprint_type': range(1, 3)},
    'TLSA': {'certificate_usage': range(4), 'selector': range(2), 'matching_type': range(3)},
}
_TEXTS = frozenset({'SPF', 'TXT'})
_SERVICES = frozenset({'HTTPS', 'SVCB'})
#: Types whose data is one value.
_WHOLE: dict[str, _Kind] = {
    'A': WORD, 'AAAA': WORD, 'CNAME': NAME, 'DNAME': NAME, 'NS': NAME, 'PTR': NAME,
    'OPENPGPKEY': _Kind(_text, lambda text: text.replace(' ', '')),
    'SPF': _Kind(text_to_rdata, rdata_to_text), 'TXT': _Kind(text_to_rdata, rdata_to_text),
}
_SERVICE = (_Field('svcpriority', NUMBER), _Field('targetname', NAME))
_ANGLE = (('degrees', NUMBER), ('minutes', NUMBER), ('seconds', SECONDS), ('direction', DIRECTION))
#: Types whose data is fields, in their order.
_FIELDS: dict[str, tuple[_Field, ...]] = {
    'CAA': (_Field('flags', NUMBER, default=0), _Field('tag', WORD), _Field('value', QUOTED)),
    'DS': (_Field('key_tag', NUMBER), _Field('algorithm', NUMBER), _Field('digest_type', NUMBER),
           _Field('digest', DIGITS)),
    'HTTPS': _SERVICE,
    'LOC': (*(_Field(f'lat_{name}', kind) for name, kind in _ANGLE),
            *(_Field(f'long_{name}', kind) for name, kind in _ANGLE),
            *(_Field(name, METRES) for name in ('altitude', 'size', 'precision_horz', 'precision_vert'))),
    'MX': (_Field('preference', NUMBER, also='priority'), _Field('exchange', NAME, also='value')),
    'NAPTR': (_Field('order', NUMBER), _Field('preference', NUMBER), _Field('flags', CAPITALS),
              _Field('service', QUOTED), _Field('regexp', QUOTED), _Field('replacement', WORD)),
    'SRV': (_Field('priority', NUMBER), _Field('weight', NUMBER), _Field('port', NUMBER), _Field('target', NAME)),
    'SSHFP': (_Field('algorithm', NUMBER), _Field('fingerprint_type', NUMBER), _Field('fingerprint', DIGITS)),
    'SVCB': _SERVICE,
    'TLSA': (_Field('certificate_usage', NUMBER), _Field('selector', NUMBER), _Field('matching_type', NUMBER),
             _Field('certificate_association_data', DIGITS)),
    'URI': (_Field('priority', NUMBER), _Field('weight', NUMBER), _Field('target', QUOTED)),
}
