"""What a request may hold: one table of fields per kind of request, and the one function that reads by it.

A field that is not in the table is a mistake, and every mistake is an :class:`~designate_pool.errors.InvalidField`
with the field's name.  What a value *means* (is this a domain name, is the TTL allowed) is for Central to judge; here
only its shape is.
"""

from __future__ import annotations

import dataclasses
import json
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from designate_pool.errors import InvalidField
from designate_pool.model import Status
from designate_pool.serial import SPACE

MAX_NUMBER = (1 << 31) - 1
#: Neither a database column nor a zone file can hold these.
_UNFIT = re.compile('[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]')
_BEGINNING = re.compile('[0-9a-f]{4,32}')
_ID = re.compile('[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}')
Check = Callable[[str, Any], Any]


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a request.

    :ivar check: ``check(name, value)`` gives the value to use or raises InvalidField
    :ivar nullable: whether null may stand in its place, and is passed on as None
    :ivar key: its name in Central's contract, when it is another one; '' keeps it from Central
    """

    check: Check
    required: bool = False
    nullable: bool = False
    key: str | None = None


def read(given: Mapping[str, Any], fields: Mapping[str, Field]) -> dict[str, Any]:
    """The values of *given* under Central's names.

    :raises InvalidField: for the first field that is unknown, missing or of the wrong kind
    """
    for name in given:
        if name not in fields:
            raise InvalidField(field=shown(name), why=f'not known here; known are {", ".join(fields)}')
    values = {}
    for name, field in fields.items():
        if name not in given:
            if field.required:
                raise InvalidField(field=name, why='missing')
            continue
        value = given[name]
        if value is None and field.nullable:
            checked = None
        else:
            checked = field.check(name, value)
        key = name if field.key is None else field.key
        if key:
            values[key] = checked
    return values


def shown(name: str) -> str:
    """A name that came from outside, fit to be shown."""
    return _UNFIT.sub('?', name)[:100] or "''"


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidField(field=name, why='must be a text')
    if _UNFIT.search(value):
        raise InvalidField(field=name, why='has control characters in it')
    return value


def some_text(name: str, value: Any) -> str:
    if not text(name, value).strip():
        raise InvalidField(field=name, why='must not be empty')
    return str(value)


def lower_text(name: str, value: Any) -> str:
    """A name; they are all kept in lower case."""
    return some_text(name, value).lower()


def upper_text(name: str, value: Any) -> str:
    """A record type; they are all kept in upper case."""
    return some_text(name, value).upper()


def number(name: str, value: Any) -> int:
    # bool is a kind of int in Python, not in JSON
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidField(field=name, why='must be a whole number')
    if not 0 <= value <= MAX_NUMBER:
        raise InvalidField(field=name, why=f'must be from 0 to {MAX_NUMBER}')
    return value


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidField(field=name, why='must be true or false')
    return value


def texts(name: str, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise InvalidField(field=name, why='must be a list of texts')
    if not value:
        raise InvalidField(field=name, why='must not be empty')
    return [some_text(f'{name}.{index}', each) for index, each in enumerate(value)]


def lines(name: str, value: Any) -> str:
    """A text that may have more than one line."""
    if isinstance(value, str):
        for line in value.split('\n'):
            text(name, line)
        return value
    return text(name, value)


def objects(fields: Mapping[str, Field]) -> Check:
    """A list of objects that are each read by a table."""
    def check(name: str, value: Any) -> list[dict[str, Any]]:
        if not isinstance(value, list):
            raise InvalidField(field=name, why='must be a list of objects')
        return [_object(f'{name}.{index}', each, fields) for index, each in enumerate(value)]
    return check


def _object(name: str, value: Any, fields: Mapping[str, Field]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidField(field=name, why='must be an object')
    try:
        return read(value, fields)
    except InvalidField as error:
        raise InvalidField(field=f'{name}.{error.kwargs["field"]}', why=error.kwargs['why']) from None


def records(name: str, value: Any) -> list[str]:
    """The records that a change gives; none means that the recordset goes."""
    return [] if value == [] else texts(name, value)


def document(name: str, value: Any) -> str:
    """A JSON object, as text."""
    if not isinstance(value, dict):
        raise InvalidField(field=name, why='must be an object')
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        raise InvalidField(field=name, why='holds a number that JSON has not') from None
    except RecursionError:
        raise InvalidField(field=name, why='is nested too deeply') from None


def serial(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < SPACE:
        raise InvalidField(field=name, why=f'must be a whole number from 0 to {SPACE - 1}')
    return value


def moment(name: str, value: Any) -> datetime:
    """A time in UTC; where it says no zone it is that, as in what the API shows."""
    try:
        found = datetime.fromisoformat(text(name, value))
        return found.replace(tzinfo=timezone.utc) if found.tzinfo is None else found.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise InvalidField(field=name, why='must be a time in the form of ISO 8601') from None


def plan_id(name: str, value: Any) -> str:
    """A plan's id or the beginning of it, as 4 to 32 digits."""
    plain = value.replace('-', '').lower() if isinstance(value, str) else ''
    if not _BEGINNING.fullmatch(plain):
        raise InvalidField(field=name, why='must be a UUID, or its first digits, four at least')
    return plain


def identifier(name: str, value: Any) -> str:
    """A UUID with or without dashes, as the 32 digits that the rest of the project uses."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise InvalidField(field=name, why='must be a UUID')
    return uuid.UUID(value).hex


def fixed(name: str, value: Any) -> Any:
    raise InvalidField(field=name, why='cannot be changed')


def one_of(*words: str) -> Check:
    def check(name: str, value: Any) -> str:
        if value not in words:
            raise InvalidField(field=name, why=f'must be one of {", ".join(words)}')
        return str(value)
    return check


def nothing(name: str, value: Any) -> None:
    if value not in ([], {}):
        raise InvalidField(field=name, why='must be empty; only primary zones are kept here')


def pool_choice(name: str, value: Any) -> str | None:
    """Designate's way to choose a pool: ``attributes`` with a ``pool_id``."""
    if not isinstance(value, dict):
        raise InvalidField(field=name, why='must be an object')
    return read(value, {'pool_id': Field(identifier)}).get('pool_id')


RECORDSET_CREATE = {
    'name': Field(some_text, required=True),
    'type': Field(some_text, required=True),
    'records': Field(texts, required=True),
    'ttl': Field(number, nullable=True),
    'description': Field(text, nullable=True),
}
ZONE_CREATE = {
    'name': Field(some_text, required=True),
    'email': Field(some_text, required=True),
    'ttl': Field(number, nullable=True),
    'description': Field(text, nullable=True),
    'type': Field(one_of('PRIMARY'), key=''),
    'masters': Field(nothing, key=''),
    'attributes': Field(pool_choice, key='pool_id'),
    'recordsets': Field(objects(RECORDSET_CREATE)),
}
ZONE_UPDATE = {
    'email': Field(some_text),
    'ttl': Field(number),
    'description': Field(text, nullable=True),
    **dict.fromkeys(('id', 'name', 'type', 'pool_id', 'project_id', 'serial', 'status', 'action', 'masters',
                     'attributes', 'version'), Field(fixed)),
}
RECORDSET_UPDATE = {
    'records': Field(texts),
    'ttl': Field(number, nullable=True),
    'description': Field(text, nullable=True),
    **dict.fromkeys(('id', 'name', 'type', 'zone_id', 'zone_name', 'status', 'action', 'version'), Field(fixed)),
}
ZONE_CHANGES = {
    'changes': Field(objects({
        'name': Field(some_text, required=True),
        'type': Field(some_text, required=True),
        'records': Field(records, required=True),
        'ttl': Field(number, nullable=True),
    }), required=True),
    'serial': Field(serial, nullable=True),
}
PLAN_CREATE = {
    'id': Field(identifier),
    'pool_name': Field(some_text),
    'zone_name': Field(some_text, required=True, key='zone'),
    'target': Field(some_text, required=True),
    'desired_digest': Field(text),
    'existing_digest': Field(text),
    'creates': Field(number),
    'updates': Field(number),
    'deletes': Field(number),
    'why': Field(lines, nullable=True),
    'document': Field(document, required=True),
    'expires_at': Field(moment, nullable=True),
}
PLAN_SETTLE = {
    'state': Field(one_of('APPLIED', 'FAILED', 'DROPPED'), required=True),
    'why': Field(lines, nullable=True),
}
SERVER_DRAIN = {
    'delete_zones': Field(flag),
}
SERVER_RESYNC = {
    'fix': Field(flag),
    'delete_extra': Field(number, nullable=True),
}

_STATUS = Field(one_of(*(status.value for status in Status)))
PLAN_FILTERS = {
    'state': Field(upper_text),
    'zone': Field(lower_text),
    'server': Field(identifier, key='server_id'),
}
ZONE_FILTERS = {
    'name': Field(lower_text),
    'email': Field(some_text),
    'status': _STATUS,
    'pool_id': Field(identifier),
}
RECORDSET_FILTERS = {
    'name': Field(lower_text),
    'type': Field(upper_text),
    'data': Field(some_text),
    'status': _STATUS,
}
