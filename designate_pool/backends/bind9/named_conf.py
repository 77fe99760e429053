"""Writes the ``zone`` statements of secondary zones in named.conf's language, and reads those in named's answers.

Names and paths are quoted so that they can neither end their string nor be taken for syntax.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import dns.name

from designate_pool import model
from designate_pool.backends.base import ip_address
from designate_pool.errors import BackendError, InvalidField

#: The words of a statement, without the semicolon at its end.
Statement = tuple[str, ...]
#: The statements that :func:`secondary` writes, with their former names.
SETTINGS = ('type', 'file', 'primaries', 'masters')

#: The octets of a name that need no escape.
PLAIN_OCTETS = frozenset(b'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_')

_PLAIN_NAME = re.compile(r'[a-z0-9_][a-z0-9_.-]{0,179}')
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[{};]|[^\s{};"]+', re.DOTALL)
_FORMER_TYPES = {'slave': 'secondary', 'master': 'primary'}
#: Statements that only a primary zone can have.
_PRIMARY_ONLY = ('allow-update', 'update-policy', 'serial-update-method', 'auto-dnssec', 'check-integrity')


def quoted(text: str, field: str) -> str:
    """*text* as a quoted string; InvalidField for characters that it cannot have."""
    if any(character in '"\\' or not ' ' <= character <= '~' for character in text):
        raise InvalidField(field=field, why='only printable ASCII without quotation marks and backslashes is allowed')
    return f'"{text}"'


def primaries(endpoints: Sequence[model.Endpoint], key: model.TsigKey | None, tls: str = '') -> str:
    """The statement with the primaries, each with the *key* of transfers from it and the name of a *tls* statement."""
    signed = f' key {quoted(key.name, "tsig_key")}' if key else ''
    over = f' tls {quoted(tls, "primaries_tls")}' if tls else ''
    addresses = ' '.join(f'{ip_address(endpoint)} port {endpoint.port}{signed}{over};' for endpoint in endpoints)
    return f'primaries {{ {addresses} }}'


def file_stem(zone: dns.name.Name, view: str) -> str:
    """The part of a zone's file name that is the same for every generation of the zone.

    Names that are too long or contain special characters are hashed, to 64 digits: more than a label can have.
    """
    plain = zone.to_text(omit_final_dot=True).lower()
    if not _PLAIN_NAME.fullmatch(plain) or '..' in plain:
        plain = hashlib.sha256(zone.to_digestable()).hexdigest()
    return plain if view == '_default' else f'{plain}@{view}'


def file_name(zone: dns.name.Name, view: str, generation: int) -> str:
    """The name of the zone's file: plain characters, and unique for each zone, view and generation.

    named removes the file of a deleted zone some time after it has confirmed the deletion; with the generation in its
    name this cannot be the file of a zone of the same name that was created meanwhile.
    """
    return f'{file_stem(zone, view)}.{generation}.db'


def is_file_of(path: str, zone: dns.name.Name, view: str) -> bool:
    """Whether *path* is a file that :func:`file_name` has named, for any generation and in any folder."""
    return re.fullmatch(f'(.*/)?{re.escape(file_stem(zone, view))}[.][0-9]+[.]db', path) is not None


def read_zone(text: str) -> list[Statement]:
    """The statements inside a ``zone`` statement; BackendError for anything else."""
    words = _WORD.findall(text)
    statements: list[Statement] = []
    statement: list[str] = []
    depth = 0
    for word in words:
        depth += (word == '{') - (word == '}')
        if depth < 1 or depth == 1 and word == '{':
            continue
        if depth == 1 and word == ';':
            statements.append(tuple(statement))
            statement = []
        else:
            statement.append(word)
    if words[:1] != ['zone'] or depth or statement or not statements:
        raise BackendError(why=f'named answered something else than a zone statement: {" ".join(text.split())[:200]}')
    return statements


def zone_type(statements: Sequence[Statement]) -> str:
    """``secondary``, ``primary`` and so on, also for their former names."""
    word = _value('type', statements)
    return _FORMER_TYPES.get(word, word)


def converted(statements: Sequence[Statement]) -> list[Statement]:
    """The *statements* that a secondary zone can have; those of a primary one so that it can read the same file."""
    if zone_type(statements) != 'primary':
        return list(statements)
    kept = [statement for statement in statements if statement[0] not in _PRIMARY_ONLY]
    has_format = any(statement[0] == 'masterfile-format' for statement in kept)
    return kept if has_format else [*kept, ('masterfile-format', 'text')]


def zone_file(statements: Sequence[Statement]) -> str:
    """The path of the zone's file; empty when it has none."""
    return _value('file', statements).strip('"')


def secondary(source: str, file: str) -> list[Statement]:
    """The statements of a secondary zone with *source*, from :func:`primaries`, and its *file*, if any."""
    stored = [('file', quoted(file, 'zone_file_folder'))] if file else []
    return [('type', 'secondary'), *stored, tuple(_WORD.findall(source))]


def written(statements: Sequence[Statement]) -> str:
    """*statements* as text, in the braces of a ``zone`` statement."""
    return f"{{ {' '.join(' '.join(statement) + ';' for statement in statements)} }}"


def _value(word: str, statements: Sequence[Statement]) -> str:
    return next((statement[1] for statement in statements if len(statement) == 2 and statement[0] == word), '')
