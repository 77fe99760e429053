"""The fields of requests: a table of fields per kind of request, and the function that reads by it.

A field that is not in the table is a mistake, and every mistake is an :class:`~designate_pool.errors.InvalidField`
with the field's name.  Only the form of values is checked here, by the JSON Schema that the API's document shows; what
they *mean* (is this a domain name, is the TTL allowed) Central checks.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any, TypeVar

from designate_pool.api.schema.json_types import MESSAGE, NOT_BLANK, ONE_LINE, JsonType, nullable, printable
from designate_pool.errors import InvalidField
from designate_pool.serial import SPACE

__all__ = ['RequestField', 'JsonType', 'MESSAGE', 'read', 'read_query', 'schema_of', 'printable']

T = TypeVar('T')
#: Items after which other green threads may run.
YIELD_EVERY = 1000

MAX_NUMBER = (1 << 31) - 1
#: Attributes of a zone, and characters of the name or the value of one.
MOST_ATTRIBUTES, LONGEST_ATTRIBUTE = 20, 50
_HEX = '[0-9a-fA-F]'
_UUID = f'{_HEX}{{32}}|{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}'
_BEGINNING = re.compile('[0-9a-f]{4,32}')
_WHOLE = re.compile('-?[0-9]{1,30}')
_DECIMAL = re.compile('-?[0-9]{1,30}([.][0-9]{1,30})?')


@dataclasses.dataclass(frozen=True)
class RequestField:
    """One field of a request.

    :ivar kind: its type
    :ivar nullable: whether it may be null, passed on as None
    :ivar key: its name in Central's contract, if another; '' if it is not passed on
    :ivar example: for the document
    """

    kind: JsonType
    required: bool = False
    nullable: bool = False
    key: str | None = None
    example: str | int | tuple[str, ...] | None = None

    @property
    def schema(self) -> dict[str, Any]:
        schema = nullable(self.kind.schema) if self.nullable else dict(self.kind.schema)
        if self.example is not None:
            schema['examples'] = [list(self.example) if isinstance(self.example, tuple) else self.example]
        return schema


Table = Mapping[str, RequestField]


def schema_of(table: Table) -> dict[str, Any]:
    """The JSON Schema of an object that a table describes."""
    schema: dict[str, Any] = {'type': 'object', 'additionalProperties': False,
                              'properties': {name: field.schema for name, field in table.items()}}
    required = [name for name, field in table.items() if field.required]
    if required:
        schema['required'] = required
    return schema


def in_turns(items: Iterable[T]) -> Iterator[T]:
    """*items*, of which there may be many; other green threads run in between."""
    for number, value in enumerate(items, 1):
        yield value
        if not number % YIELD_EVERY:
            time.sleep(0)


def read(given: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """The values of *given* under Central's names.

    :raises InvalidField: for the first field that is unknown, missing or of the wrong kind
    """
    type_of(tuple(table.items())).check(given)
    return _converted('', given, table)


def read_query(given: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """As :func:`read`, for the parameters of a query, which are all texts: numbers and flags are converted."""
    return read({name: _typed(value, table[name].schema) if name in table else value
                 for name, value in given.items()}, table)


def _typed(value: str, schema: Mapping[str, Any]) -> Any:
    types = schema.get('type', ())
    if types == 'number' and _DECIMAL.fullmatch(value):
        return float(value)
    if 'integer' in types and _WHOLE.fullmatch(value):
        return int(value)
    if 'boolean' in types and value.lower() in ('true', 'false'):
        return value.lower() == 'true'
    return value


@functools.lru_cache(maxsize=256)
def type_of(fields: tuple[tuple[str, RequestField], ...]) -> JsonType:
    """The type of an object with these fields."""
    return JsonType(schema_of(dict(fields)))


def _converted(name: str, given: Mapping[str, Any], table: Table) -> dict[str, Any]:
    values = {}
    for field_name, field in table.items():
        if field_name not in given:
            continue
        value = given[field_name]
        if value is not None and field.kind.convert is not None:
            value = field.kind.convert(f'{name}.{field_name}' if name else field_name, value)
        key = field_name if field.key is None else field.key
        if key:
            values[key] = value
    return values


# The conversions of types.

def _whole(name: str, value: Any) -> int:
    # 1.0 is a whole number in JSON
    return int(value)


def _document(name: str, value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        raise InvalidField(field=name, why='holds a number that JSON has not') from None
    except RecursionError:
        raise InvalidField(field=name, why='is nested too deeply') from None


def _moment(name: str, value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise InvalidField(field=name, why=str(_MOMENT[MESSAGE])) from None


def _plan_id(name: str, value: Any) -> str:
    plain = str(value).replace('-', '').lower()
    if not _BEGINNING.fullmatch(plain):
        raise InvalidField(field=name, why=str(_PLAN_ID[MESSAGE]))
    return plain


_MOMENT = {'type': 'string', 'pattern': r'^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+(Z|[+-][0-9:]+)?)?$',
           MESSAGE: 'must be a time in the form of ISO 8601'}
_PLAN_ID = {'type': 'string', 'pattern': f'^{_HEX}[0-9a-fA-F-]{{3,35}}$',
            MESSAGE: 'must be a UUID, or its first digits, four at least'}
_LINES = r'^[^\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]*$'

text = JsonType({'type': 'string', 'pattern': ONE_LINE})
some_text = JsonType({'type': 'string', 'pattern': NOT_BLANK})
#: A text that may have more than one line.
lines = JsonType({'type': 'string', 'pattern': _LINES})
#: A name; names are stored in lower case.
lower_text = JsonType(some_text.schema, lambda name, value: value.lower())
#: A record type; types are stored in upper case.
upper_text = JsonType(some_text.schema, lambda name, value: value.upper())
number = JsonType({'type': 'integer', 'minimum': 0, 'maximum': MAX_NUMBER}, _whole)
serial = JsonType({'type': 'integer', 'minimum': 0, 'maximum': SPACE - 1,
                   MESSAGE: f'must be a whole number from 0 to {SPACE - 1}'}, _whole)
flag = JsonType({'type': 'boolean'})
#: The data of a record: Central says which types may have more than one line.
_record = {'type': 'string', 'minLength': 1, 'pattern': _LINES}
texts = JsonType({'type': 'array', 'items': _record, 'minItems': 1})
#: The records of a changed recordset; an empty list deletes it.
records = JsonType({'type': 'array', 'items': _record})
#: Names or addresses; the list may be empty.
names = JsonType({'type': 'array', 'items': some_text.schema})
#: A JSON object, given to Central as text.
document = JsonType({'type': 'object'}, _document)
#: A time, in UTC unless it has another time zone.
moment = JsonType(_MOMENT, _moment)
#: A plan's id or the beginning of it, as 4 to 32 digits.
plan_id = JsonType(_PLAN_ID, _plan_id)
#: A UUID with or without dashes, as the 32 digits that the rest of the project uses.
identifier = JsonType({'type': 'string', 'pattern': f'^({_UUID})$', MESSAGE: 'must be a UUID'},
                      lambda name, value: uuid.UUID(value).hex)
#: The region and the id of a floating IP.
floating_ip = JsonType({'type': 'string',
                        'pattern': f'^[A-Za-z0-9._-]{{1,100}}:{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}$',
                        MESSAGE: 'must be REGION:UUID'})
#: The id of a project, as tokens have it.
project = JsonType({'type': 'string', 'pattern': '^[A-Za-z0-9_.-]{1,36}$',
                    MESSAGE: 'must be 1 to 36 letters, digits, dots, dashes or underscores'})
#: What cannot be changed: it may be named as it is.
fixed = JsonType({'readOnly': True, 'description': 'It may be named as it is, and cannot be changed.'})


def one_of(*words: str) -> JsonType:
    """A string out of a fixed list."""
    return JsonType({'type': 'string', 'enum': list(words), MESSAGE: f'must be one of {", ".join(words)}'})


def number_from(least: int, most: int) -> JsonType:
    """An integer between two bounds, both allowed."""
    return JsonType({'type': 'integer', 'minimum': least, 'maximum': most}, _whole)


def seconds_up_to(most: int) -> JsonType:
    return JsonType({'type': 'number', 'minimum': 0, 'maximum': most,
                     MESSAGE: f'must be a number of seconds from 0 to {most}'}, lambda name, value: float(value))


def objects(table: Table) -> JsonType:
    """A list of objects that are each read by a table."""
    def convert(name: str, value: Any) -> list[dict[str, Any]]:
        return [_converted(f'{name}.{index}', line, table) for index, line in enumerate(in_turns(value))]
    return JsonType({'type': 'array', 'items': schema_of(table)}, convert)


def one_object(table: Table) -> JsonType:
    """An object that is read by a table."""
    return JsonType(schema_of(table), lambda name, value: _converted(name, value, table))


_attributes = {
    'type': 'object', 'maxProperties': MOST_ATTRIBUTES,
    'propertyNames': {'minLength': 1, 'maxLength': LONGEST_ATTRIBUTE, 'pattern': ONE_LINE,
                      MESSAGE: f'names of attributes have 1 to {LONGEST_ATTRIBUTE} characters'},
    'additionalProperties': {'type': 'string', 'maxLength': LONGEST_ATTRIBUTE, 'pattern': ONE_LINE}}
#: What the scheduler compares with the attributes of zones.
pool_attributes = JsonType(_attributes, _document)
#: What the scheduler is told of a zone; as in Designate ``pool_id`` chooses the pool.
attributes = JsonType({**_attributes, 'properties': {'pool_id': identifier.schema}}, _document)
#: A flag in a header or a query; an empty one is as none.
flag_word = JsonType({'type': 'string', 'pattern': '^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])?$',
                      MESSAGE: 'must be true or false'})
#: What every query may have; the authentication reads it.
EVERYWHERE: Table = dict.fromkeys(('all_projects', 'all_tenants', 'edit_managed_records'), RequestField(flag_word))


RECORDSET_CREATE = {
    'name': RequestField(some_text, required=True, example='www.example.com.'),
    'type': RequestField(some_text, required=True, example='A'),
    'records': RequestField(texts, required=True, example=('192.0.2.1',)),
    'ttl': RequestField(number, nullable=True, example=300),
    'description': RequestField(text, nullable=True),
}
_POOL = {
    'description': RequestField(text, nullable=True),
    'ns_records': RequestField(objects({
        'hostname': RequestField(some_text, required=True, example='ns1.example.com.'),
        'priority': RequestField(number_from(1, 10000), required=True, example=1),
    })),
    'name_servers': RequestField(names, example=('ns1.example.com.', 'ns2.example.com.')),
    'attributes': RequestField(pool_attributes),
    'also_notifies': RequestField(names, example=('192.0.2.53:53',)),
}
POOL_CREATE = {
    'name': RequestField(some_text, required=True, example='silver'),
    'project_id': RequestField(project, nullable=True),
    **_POOL,
}
POOL_UPDATE = {
    'name': RequestField(some_text, example='silver'),
    **_POOL,
    **dict.fromkeys(('id', 'project_id', 'created_at', 'updated_at'), RequestField(fixed)),
}
ZONE_CREATE = {
    'name': RequestField(some_text, required=True, example='example.com.'),
    'email': RequestField(some_text, nullable=True, example='hostmaster@example.com'),
    'ttl': RequestField(number, nullable=True, example=3600),
    'description': RequestField(text, nullable=True),
    'type': RequestField(one_of('PRIMARY', 'SECONDARY')),
    'masters': RequestField(names),
    'attributes': RequestField(attributes),
    'recordsets': RequestField(objects(RECORDSET_CREATE)),
}
ZONE_UPDATE = {
    'email': RequestField(some_text, example='hostmaster@example.com'),
    'ttl': RequestField(number, example=3600),
    'description': RequestField(text, nullable=True),
    'attributes': RequestField(attributes),
    'masters': RequestField(names),
    **dict.fromkeys(('id', 'name', 'type', 'pool_id', 'project_id', 'serial', 'status', 'action', 'version',
                     'created_at', 'updated_at', 'transferred_at', 'shared'), RequestField(fixed)),
}
RECORDSET_UPDATE = {
    'records': RequestField(texts, example=('192.0.2.1', '192.0.2.2')),
    'ttl': RequestField(number, nullable=True, example=300),
    'description': RequestField(text, nullable=True),
    **dict.fromkeys(('id', 'name', 'type', 'zone_id', 'zone_name', 'project_id', 'status', 'action', 'version',
                     'created_at', 'updated_at'), RequestField(fixed)),
}
ZONE_CHANGES = {
    'changes': RequestField(objects({
        'name': RequestField(some_text, required=True, example='www.example.com.'),
        'type': RequestField(some_text, required=True, example='A'),
        'records': RequestField(records, required=True, example=('192.0.2.1',)),
        'ttl': RequestField(number, nullable=True),
    }), required=True),
    'serial': RequestField(serial, nullable=True),
}
PLAN_CREATE = {
    'id': RequestField(identifier),
    'pool_name': RequestField(some_text),
    'zone_name': RequestField(some_text, required=True, key='zone', example='example.com.'),
    'target': RequestField(some_text, required=True, example='pool'),
    'desired_digest': RequestField(text),
    'existing_digest': RequestField(text),
    **dict.fromkeys(('creates', 'updates', 'deletes'), RequestField(number)),
    'why': RequestField(lines, nullable=True),
    'document': RequestField(document, required=True),
    'expires_at': RequestField(moment, nullable=True),
}
PLAN_SETTLE = {
    'state': RequestField(one_of('APPLIED', 'FAILED', 'DROPPED'), required=True),
    'why': RequestField(lines, nullable=True),
}
SERVER_DRAIN = {'delete_zones': RequestField(flag)}
SERVER_RESYNC = {
    'fix': RequestField(flag),
    'delete_extra': RequestField(number, nullable=True),
    'contents': RequestField(flag),
    'primary': RequestField(flag),
}

#: Central's criteria are texts.
_number_as_text = JsonType(number.schema, lambda name, value: str(_whole(name, value)))
PLAN_FILTERS = {
    'state': RequestField(upper_text),
    'zone': RequestField(lower_text),
    'server': RequestField(identifier, key='server_id'),
}
ZONE_FILTERS = {
    'name': RequestField(lower_text),
    'email': RequestField(some_text),
    'status': RequestField(upper_text),
    'pool_id': RequestField(identifier),
    'type': RequestField(upper_text),
    'ttl': RequestField(_number_as_text),
    'description': RequestField(some_text),
}
RECORDSET_FILTERS = {
    'name': RequestField(lower_text),
    'type': RequestField(upper_text),
    'data': RequestField(some_text),
    'status': RequestField(upper_text),
    'ttl': RequestField(_number_as_text),
    'description': RequestField(some_text),
}
#: The variable parts of paths that are not ids.
PATH_PARTS = {'floating_ip': floating_ip, 'plan_id': plan_id, 'project_id': project, 'report': some_text,
              'zone': some_text}
