"""The language of named.conf, as far as a secondary zone needs it: written for named, and read from its answers.

Nothing that is written here can end the string it stands in, or mean anything to the parser around it.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Sequence

import dns.name

from designate_pool import model
from designate_pool.errors import BackendError, InvalidField

#: A statement's words, without the semicolon that ends it.
Statement = tuple[str, ...]
#: The statements that :func:`secondary` gives a zone, and what some of them were called before.
SETTINGS = ('type', 'file', 'primaries', 'masters')

_PLAIN_OCTETS = frozenset(b'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_')
_PLAIN_NAME = re.compile(r'[a-z0-9_][a-z0-9_.-]{0,179}')
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[{};]|[^\s{};"]+', re.DOTALL)
_SECONDARY = ('secondary', 'slave')


def escaped(name: dns.name.Name) -> str:
    """*name* with every octet but letters, digits, hyphen and underscore as ``\\DDD``."""
    labels = (''.join(chr(octet) if octet in _PLAIN_OCTETS else f'\\{octet:03d}' for octet in label)
              for label in name.labels[:-1])
    return '.'.join(labels) + '.'


def quoted(text: str, field: str) -> str:
    """*text* as a string.

    :raises InvalidField: when it holds what cannot stand there
    """
    if any(character in '"\\' or not ' ' <= character <= '~' for character in text):
        raise InvalidField(field=field, why='it may hold printable ASCII only, and no quotation mark or backslash')
    return f'"{text}"'


def primaries(endpoints: Sequence[model.Endpoint], key: model.TsigKey | None) -> str:
    """The statement that names them, each with the key that its transfers are signed with.

    :raises InvalidField: for one that is no IP address
    """
    signed = f' key {quoted(key.name, "tsig_key")}' if key else ''
    each = ' '.join(f'{_address(endpoint)} port {endpoint.port}{signed};' for endpoint in endpoints)
    return f'primaries {{ {each} }}'


def file_stem(zone: dns.name.Name, view: str) -> str:
    """The part of a zone's file name that is the same for every generation of the zone.

    Names too long or too odd for a file are hashed; 64 digits are longer than a label can be, so no zone is called like
    another one's hash.
    """
    plain = zone.to_text(omit_final_dot=True).lower()
    if not _PLAIN_NAME.fullmatch(plain) or '..' in plain:
        plain = hashlib.sha256(zone.to_digestable()).hexdigest()
    return plain if view == '_default' else f'{plain}@{view}'


def file_name(zone: dns.name.Name, view: str, generation: int) -> str:
    """The zone's file: always of plain characters, and another one for each zone, view and generation.

    named removes the file of a deleted zone some time after it has confirmed the deletion; the generation keeps that
    from hitting a zone of the same name created meanwhile.
    """
    return f'{file_stem(zone, view)}.{generation}.db'


def is_file_of(path: str, zone: dns.name.Name, view: str) -> bool:
    """Whether *path* is what :func:`file_name` says, for any generation and in any folder."""
    return re.fullmatch(f'(.*/)?{re.escape(file_stem(zone, view))}[.][0-9]+[.]db', path) is not None


def read_zone(text: str) -> list[Statement]:
    """The statements in a ``zone`` statement.

    :raises BackendError: when it is none
    """
    words = _WORD.findall(text)
    found: list[Statement] = []
    statement: list[str] = []
    depth = 0
    for word in words:
        depth += (word == '{') - (word == '}')
        if depth < 1 or depth == 1 and word == '{':
            continue
        if depth == 1 and word == ';':
            found.append(tuple(statement))
            statement = []
        else:
            statement.append(word)
    if words[:1] != ['zone'] or depth or statement or not found:
        raise BackendError(why=f'this is no zone statement: {" ".join(text.split())[:200]}')
    return found


def zone_type(statements: Sequence[Statement]) -> str:
    """``secondary``, ``primary`` and so on; the old word ``slave`` is answered as ``secondary``."""
    word = _value('type', statements)
    return 'secondary' if word in _SECONDARY else word


def zone_file(statements: Sequence[Statement]) -> str:
    """Empty when the zone has none."""
    return _value('file', statements).strip('"')


def secondary(source: str, file: str) -> list[Statement]:
    """What a secondary zone has in its ``zone`` statement.

    :param source: its primaries, as :func:`primaries` writes them
    :param file: empty for none
    """
    stored = [('file', quoted(file, 'zone_file_folder'))] if file else []
    return [('type', 'secondary'), *stored, tuple(_WORD.findall(source))]


def written(statements: Sequence[Statement]) -> str:
    """The braces of a ``zone`` statement and what is in them."""
    return f"{{ {' '.join(' '.join(statement) + ';' for statement in statements)} }}"


def _value(word: str, statements: Sequence[Statement]) -> str:
    return next((statement[1] for statement in statements if len(statement) == 2 and statement[0] == word), '')


def _address(endpoint: model.Endpoint) -> str:
    try:
        return str(ipaddress.ip_address(endpoint.host))
    except ValueError as error:
        raise InvalidField(field='primaries', why=f"'{endpoint.host}' is not an IP address") from error
