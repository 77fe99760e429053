"""Conversion of record data between octoDNS's YAML and zone files: a table with a line for each type.

Quoted strings keep the escapes of zone files, as octoDNS has it for CAA, NAPTR and URI.  TXT and SPF are the exception:
their value is all strings joined, with only semicolons escaped.
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

from designate_pool.protocol import names_and_rdata

_WORD = re.compile(r'(?:[^\s"\\]|\\.|"(?:[^"\\]|\\.)*")+')
_PLAIN_TEXT = re.compile(r'[ !#-\[\]-~]{0,255}').fullmatch
#: By which octoDNS finds semicolons that are not escaped, or escaped twice.
_BARE_SEMICOLON = re.compile(r'\w;')
_DOUBLE_ESCAPE = re.compile(r'\\\\;')
#: Characters that an unquoted SVCB parameter cannot contain.
_NOT_BARE = re.compile(r'[\s"();]')

_SVC_LISTS = frozenset({'alpn', 'ipv4hint', 'ipv6hint', 'mandatory'})
#: Parameters that dnspython names and octoDNS does not (RFC 9461 section 5, RFC 9540 section 4).
_SVC_NUMBERS = {'dohpath': 'key7', 'ohttp': 'key8'}
#: The default size and precisions of LOC (RFC 1876 section 3).
_LOC_DEFAULTS = ('1.00m', '10000.00m', '10.00m')
#: Former names of DS fields in octoDNS.
_OLD_DS_NAMES = {'key_tag': 'flags', 'algorithm': 'protocol', 'digest_type': 'algorithm', 'digest': 'public_key'}


class _FieldType(NamedTuple):
    """Converts a field between YAML and a word of a zone file."""

    to_word: Callable[[Any], str]
    from_word: Callable[[str], Any]


class _Field(NamedTuple):
    """A field of a type's data; *also* is its other name in YAML, and one without *default* is required."""

    name: str
    kind: _FieldType
    also: str | None = None
    default: Any = None


def types() -> frozenset[str]:
    """The types that both octoDNS's YAML and DNS have."""
    return frozenset(_SINGLE_VALUE) | frozenset(_FIELDS)


def to_rdata(rtype: str, value: Any, lenient: bool = False) -> str:
    """Data of *rtype* as in a zone file, not in normal form.

    :raises ValueError: for invalid data
    """
    if rtype in TEXT_TYPES:
        return text_to_rdata(value, lenient)
    if rtype in _SINGLE_VALUE:
        return _SINGLE_VALUE[rtype].to_word(value)
    if not isinstance(value, Mapping):
        raise ValueError(f'{value!r} is not a mapping of fields')
    if rtype == 'DS' and ('public_key' in value or 'flags' in value):
        value = {new: value[old] for new, old in _OLD_DS_NAMES.items() if old in value}
    words = [_word(field, value) for field in _FIELDS[rtype]]
    return ' '.join([*words, *_parameters(value.get('svcparams'))] if rtype in _SVCB_TYPES else words)


def from_rdata(rtype: str, text: str) -> Any:
    """The inverse of :func:`to_rdata`, for data in normal form; ValueError for data that YAML cannot represent."""
    if rtype in TEXT_TYPES:
        return rdata_to_text(text)
    if rtype in _SINGLE_VALUE:
        return _SINGLE_VALUE[rtype].from_word(text)
    words = _WORD.findall(text)
    fields = _FIELDS[rtype]
    fields_: dict[str, Any] = {}
    if rtype in _SVCB_TYPES:
        fields_['svcparams'] = _from_parameters(words[len(fields):])
    elif rtype == 'LOC':
        words += _LOC_DEFAULTS[len(words) - len(fields):] if len(words) < len(fields) else ()
    else:
        # Long hexadecimal data is in groups.
        words = [*words[:len(fields) - 1], ''.join(words[len(fields) - 1:])]
    fields_.update((field.name, field.kind.from_word(word)) for field, word in zip(fields, words, strict=False))
    if not fields_.get('svcparams', True):
        del fields_['svcparams']
    return fields_


def text_to_rdata(value: Any, lenient: bool = False) -> str:
    """A TXT value with escaped semicolons as strings of at most 255 octets.

    :raises ValueError: when it is no string, or octoDNS would not accept it and *lenient* is not set
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
    return f'"{text}"' if _PLAIN_TEXT(text) else txt_rdata(text.encode())


def txt_rdata(octets: bytes) -> str:
    """TXT data of strings of at most 255 octets."""
    strings = [octets[start:start + 255] for start in range(0, len(octets), 255)]
    return TXT(dns.rdataclass.IN, dns.rdatatype.TXT, strings or [b'']).to_text()


def rdata_to_text(rdata: str) -> str:
    """The inverse of :func:`text_to_rdata`; the division into strings is lost.

    :raises ValueError: for octets that are not UTF-8, and for quotes and escapes that octoDNS would misread
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
    """Whether octoDNS accepts a value of :func:`from_rdata` only leniently."""
    if rtype in TEXT_TYPES:
        return not value.isascii()
    return any(value[name] not in allowed for name, allowed in _OCTODNS_RANGES.get(rtype, {}).items())


def ascii_name(text: Any) -> str:
    """A name in lower case, with international labels as ``xn--…``; else ValueError."""
    text = _text(text)
    try:
        return text.lower() if text.isascii() else names_and_rdata.ascii_name(text)
    except idna.IDNAError as error:
        raise ValueError(f'{text!r} is not a domain name ({error})') from None


def unicode_name(name: str) -> str:
    """The inverse of :func:`ascii_name`; *name* itself if it has no inverse."""
    if 'xn--' not in name:
        return name
    try:
        decoded = '.'.join(idna.decode(label) if label.startswith('xn--') else label for label in name.split('.'))
        return decoded if ascii_name(decoded) == name else name
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
    # YAML reads digits alone as a number.
    return str(value).lower() if isinstance(value, int) and not isinstance(value, bool) else _text(value).lower()


def _unquoted_word(value: Any) -> str:
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
    return [key if parameter is None else f'{key}={_parameter(parameter)}' for key, parameter in value.items()]


def _parameter(value: Any) -> str:
    text = ','.join(map(str, value)) if isinstance(value, list) else str(value)
    return f'"{text}"' if _NOT_BARE.search(text) and not text.startswith('"') else text


def _from_parameters(words: list[str]) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for word in words:
        key, sign, value = word.partition('=')
        # octoDNS does not quote the value, so characters that would end it are escaped.
        text = re.sub(r'\\"|[ ;()]', lambda end: f'\\{ord(end[0][-1]):03}', _unquoted(value))
        parameters[_SVC_NUMBERS.get(key, key)] = None if not sign else text.split(',') if key in _SVC_LISTS else text
    return parameters


NUMBER = _FieldType(_number, int)
NAME = _FieldType(ascii_name, str)
WORD = _FieldType(_unquoted_word, str)
CAPITALS = _FieldType(lambda value: _quoted(value).upper(), lambda word: _unquoted(word).upper())
DIRECTION = _FieldType(lambda value: _unquoted_word(value).upper(), str)
QUOTED = _FieldType(_quoted, _unquoted)
DIGITS = _FieldType(_digits, str)
SECONDS = _FieldType(lambda value: _decimal(value, ''), float)
METRES = _FieldType(lambda value: _decimal(value, 'm'), lambda word: float(word.removesuffix('m')))

#: octoDNS's ranges of fields that have a larger range in DNS.
_OCTODNS_RANGES: dict[str, dict[str, Container[Any]]] = {
    'NAPTR': {'flags': frozenset('SAUP')},
    'SSHFP': {'algorithm': range(1, 5), 'fingerprint_type': range(1, 3)},
    'TLSA': {'certificate_usage': range(4), 'selector': range(2), 'matching_type': range(3)},
}
TEXT_TYPES = frozenset({'SPF', 'TXT'})
_SVCB_TYPES = frozenset({'HTTPS', 'SVCB'})
#: Types whose data is a single value.
_SINGLE_VALUE: dict[str, _FieldType] = {
    'A': WORD, 'AAAA': WORD, 'CNAME': NAME, 'DNAME': NAME, 'NS': NAME, 'PTR': NAME,
    'OPENPGPKEY': _FieldType(_text, lambda text: text.replace(' ', '')),
    'SPF': _FieldType(text_to_rdata, rdata_to_text), 'TXT': _FieldType(text_to_rdata, rdata_to_text),
}
_SERVICE = (_Field('svcpriority', NUMBER), _Field('targetname', NAME))
_ANGLE = (('degrees', NUMBER), ('minutes', NUMBER), ('seconds', SECONDS), ('direction', DIRECTION))
#: Types whose data has several fields, in their order.
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
