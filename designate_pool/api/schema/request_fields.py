"""The fields of requests: a table of fields per kind of request, and the types of their values as JSON Schemas.

A field that is not in the table is a mistake, and every mistake is an :class:`~designate_pool.errors.InvalidField`
with the field's name.  The schema (2020-12) of a type is in the API's document and, compiled, checks requests: there is
no second description that could differ.  Only the form of values is checked here; what they *mean* (is this a domain
name, is the TTL allowed) Central checks.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any, TypeVar

import jsonschema_rs

from designate_pool.api.schema.answers import nullable, shape
from designate_pool.errors import InvalidField
from designate_pool.serial import SPACE

#: Characters that a database column or a zone file cannot hold, that end a line, or that control a terminal.
_CONTROL = re.compile('[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_NO_CONTROL = r'[^\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]*'
_SURROGATE = re.compile('[\ud800-\udfff]')
#: A text of one line, and one that is more than blanks.
ONE_LINE = f'^{_NO_CONTROL}$'
NOT_BLANK = rf'^{_NO_CONTROL}[^\u0000-\u0020\u007f-\u009f\s]{_NO_CONTROL}$'
#: The keyword for the message about a wrong value; an extension, so that it may be in the document.
MESSAGE = 'x-message'
#: Mistakes that are reported at once, and the values up to which a request has more than the first one reported: the
#: checker copies the surroundings of each.
MOST_MISTAKES, FEW_VALUES = 20, 200

_TYPES = {'string': 'a text', 'integer': 'a whole number', 'number': 'a number', 'boolean': 'true or false',
          'array': 'a list', 'object': 'an object'}
_FIRST = {'additionalProperties': 0, 'required': 1}
Path = tuple[str, ...]
Convert = Callable[[str, Any], Any]


def printable(name: str, longest: int = 100) -> str:
    """A name from outside, cut and with control characters replaced."""
    return _CONTROL.sub('?', name)[:longest] or "''"


class JsonType:
    """The type of a value that a client sends.  Called with a name and a value it returns the value to use.

    :ivar schema: JSON Schema; ``x-message`` in it is the message about wrong values
    :ivar convert: from a valid value to the one that Central takes; may raise InvalidField too
    """

    def __init__(self, schema: Mapping[str, Any], convert: Convert | None = None) -> None:
        self.schema = schema
        self.convert = convert
        # The patterns need no backtracking, and this engine takes linear time for any text.
        self._validator = jsonschema_rs.Draft202012Validator(dict(schema), pattern_options=jsonschema_rs.RegexOptions())

    def __call__(self, name: str, value: Any) -> Any:
        """The value to use.

        :param name: of the value; empty for the whole request
        :raises InvalidField: with the first mistake, and with all of them where *value* is small
        """
        try:
            is_valid = self._validator.is_valid(value)
            errors = [] if is_valid else self._errors(value)
        except UnicodeEncodeError:
            field = next(_unencodable(name, value), name) or 'body'
            raise InvalidField(field=field, why='has characters in it that do not exist') from None
        except ValueError:
            raise InvalidField(field=name or 'body', why='is nested too deeply') from None
        if is_valid:
            return value if self.convert is None else self.convert(name, value)
        # The first mistake of each field: a value of a wrong type is not in the enum either.
        mistake_by_field: dict[str, str] = {}
        for field, why in itertools.chain.from_iterable(self._mistakes(name, error) for error in errors):
            mistake_by_field.setdefault(field, why)
        raise InvalidField.of(list(mistake_by_field.items())[:MOST_MISTAKES])

    def _errors(self, value: Any) -> list[Any]:
        if _count(value, FEW_VALUES) < FEW_VALUES:
            return sorted(self._validator.iter_errors(value), key=lambda error: _FIRST.get(error.schema_path[-1], 2))
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return [error]
        raise AssertionError('a value is neither valid nor invalid')

    def _mistakes(self, name: str, error: Any) -> Iterable[tuple[str, str]]:
        at = tuple(str(step) for step in error.instance_path)
        schema: Any = self.schema
        for step in error.schema_path[:-1]:
            schema = schema[step]
        keyword = error.schema_path[-1]
        if keyword == 'required':
            return [(_dotted(name, (*at, error.kind.property)), 'missing')]
        if keyword == 'additionalProperties':
            names = [property_ for property_, of in schema['properties'].items() if not of.get('readOnly')]
            why = f'not known here; known are {", ".join(names)}' if names else 'not known here; nothing is'
            return [(_dotted(name, (*at, printable(name_))), why) for name_ in error.kind.unexpected]
        return [(_dotted(name, at), _why(schema, keyword, error.instance))]


def _why(schema: Mapping[str, Any], keyword: str, value: Any) -> str:
    """What is wrong with *value* by the *keyword* of *schema*, in words."""
    if MESSAGE in schema:
        return str(schema[MESSAGE])
    if keyword == 'type':
        types = schema['type'] if isinstance(schema['type'], list) else [schema['type']]
        why = 'must be ' + ' or '.join(_TYPES[json_type] for json_type in types if json_type != 'null')
        of = schema.get('items', {}).get('type')
        return why + {'string': ' of texts', 'object': ' of objects'}.get(of, '')
    if keyword in ('minimum', 'maximum'):
        return f'must be from {schema["minimum"]} to {schema["maximum"]}'
    if keyword == 'enum':
        return f'must be one of {", ".join(str(choice) for choice in schema["enum"] if choice is not None)}'
    if keyword == 'pattern' and not _CONTROL.search(value) or keyword in ('minItems', 'minLength'):
        return 'must not be empty'
    if keyword == 'pattern':
        return 'has control characters in it'
    if keyword in ('maxItems', 'maxLength', 'maxProperties'):
        return f'must not have more than {schema[keyword]} {"characters" if keyword == "maxLength" else "entries"}'
    return f'does not fit ({keyword})'


def _dotted(name: str, path: Path) -> str:
    return '.'.join([name, *path] if name else path) or 'body'


def _count(value: Any, enough: int) -> int:
    """How many values *value* contains, counted until there are *enough*."""
    waiting, count = [value], 0
    while waiting and count < enough:
        item = waiting.pop()
        inner = list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else []
        count += len(inner)
        waiting.extend(inner[:enough])
    return count


def _unencodable(name: str, value: Any) -> Iterator[str]:
    """The names in *value* of texts with half a surrogate pair, which is JSON, but no text in any encoding."""
    if isinstance(value, str) and _SURROGATE.search(value):
        yield name
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        inner = _dotted(name, (printable(str(key)),))
        yield from _unencodable(inner, key)
        yield from _unencodable(inner, item)


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
        """The JSON schema of its values, with the example."""
        schema = nullable(self.kind.schema) if self.nullable else dict(self.kind.schema)
        if self.example is not None:
            schema['examples'] = [list(self.example) if isinstance(self.example, tuple) else self.example]
        return schema


Table = Mapping[str, RequestField]


def optional(**kinds: JsonType) -> dict[str, RequestField]:
    """A table of fields that may be left out, and are passed on by their own names."""
    return {name: RequestField(kind) for name, kind in kinds.items()}


def schema_of(table: Table) -> dict[str, Any]:
    """The JSON Schema of an object that a table describes."""
    return shape({name: field.schema for name, field in table.items()},
                 *(name for name, field in table.items() if not field.required))


def in_turns(items: Iterable[T]) -> Iterator[T]:
    """*items*, of which there may be many; other green threads run in between."""
    for number, value in enumerate(items, 1):
        yield value
        if not number % YIELD_EVERY:
            time.sleep(0)


def read_query(given: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """The values of the parameters of a query, which are all texts: numbers and flags are converted."""
    return type_of(tuple(table.items()))('', {name: _typed(value, table[name].schema) if name in table else value
                                              for name, value in given.items()})


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
    """The type of an object with these fields, which becomes their values under Central's names."""
    return one_object(dict(fields))


def _converted(table: Table, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
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
        raise InvalidField(field=name, why=f'{_PLAN_ID[MESSAGE]}: {value}')
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
                      lambda name, value: value.replace('-', '').lower())
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
    """A number of seconds from 0 to *most*, passed on as a float."""
    return JsonType({'type': 'number', 'minimum': 0, 'maximum': most,
                     MESSAGE: f'must be a number of seconds from 0 to {most}'}, lambda name, value: float(value))


def objects(table: Table) -> JsonType:
    """A list of objects that are each read by a table."""
    def convert(name: str, value: Any) -> list[dict[str, Any]]:
        return [_converted(table, f'{name}.{index}', line) for index, line in enumerate(in_turns(value))]
    return JsonType({'type': 'array', 'items': schema_of(table)}, convert)


def one_object(table: Table) -> JsonType:
    """An object that is read by a table."""
    return JsonType(schema_of(table), functools.partial(_converted, table))


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
#: The header of a condition on what a request changes (RFC 9110 section 13.1.1).
IF_MATCH = 'If-Match'
_TAG = r'(W/)?"[!#-~]*"'
#: For an operation's headers.
CONDITION: Table = {IF_MATCH: RequestField(JsonType({
    'type': 'string', 'pattern': rf'^\s*(\*|{_TAG}(\s*,\s*{_TAG})*)\s*$',
    'description': 'The ETag of what is changed, several with commas, or * for whatever it is now.',
    MESSAGE: 'must be *, or entity tags in double quotes with commas between them'}))}
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
    **optional(type=one_of('PRIMARY', 'SECONDARY'), masters=names, attributes=attributes,
               recordsets=objects(RECORDSET_CREATE)),
}
ZONE_UPDATE = {
    'email': RequestField(some_text, example='hostmaster@example.com'),
    'ttl': RequestField(number, example=3600),
    'description': RequestField(text, nullable=True),
    'attributes': RequestField(attributes),
    **optional(masters=names, requires_approval=flag),
    **dict.fromkeys(('id', 'name', 'type', 'pool_id', 'project_id', 'serial', 'status', 'action', 'version',
                     'created_at', 'updated_at', 'transferred_at', 'shared', 'freeze', 'release', 'lock_reason',
                     'locked_by_admin', 'locked_recordsets'), RequestField(fixed)),
}
RECORDSET_UPDATE = {
    'records': RequestField(texts, example=('192.0.2.1', '192.0.2.2')),
    'ttl': RequestField(number, nullable=True, example=300),
    'description': RequestField(text, nullable=True),
    **dict.fromkeys(('id', 'name', 'type', 'zone_id', 'zone_name', 'project_id', 'status', 'action', 'version',
                     'created_at', 'updated_at', 'lock_reason', 'locked_by_admin', 'managed'), RequestField(fixed)),
}
LOCK = {'reason': RequestField(some_text, required=True, example='moving to a new mail server until Friday')}
UNFREEZE = {'reason': RequestField(some_text, required=True, example='the record that the incident is about')}
FREEZE = {'reason': RequestField(some_text, required=True, example='an incident'),
          'until': RequestField(some_text, nullable=True, example='2h')}
ZONE_CHANGES = {
    'changes': RequestField(objects({
        'name': RequestField(some_text, required=True, example='www.example.com.'),
        'type': RequestField(some_text, required=True, example='A'),
        'records': RequestField(records, required=True, example=('192.0.2.1',)),
        'ttl': RequestField(number, nullable=True),
    }), required=True),
    'serial': RequestField(serial, nullable=True),
}
ZONE_REVERT = {
    'to': RequestField(some_text, required=True, example='2h'),
    'name': RequestField(lower_text, example='www.example.com.'),
    'type': RequestField(upper_text, example='A'),
    **optional(serial=serial, dry_run=flag),
}
PLAN_CREATE = {
    **optional(id=identifier, pool_name=some_text),
    'zone_name': RequestField(some_text, required=True, key='zone', example='example.com.'),
    'target': RequestField(some_text, required=True, example='pool'),
    **optional(desired_digest=text, existing_digest=text, creates=number, updates=number, deletes=number),
    'why': RequestField(lines, nullable=True),
    'document': RequestField(document, required=True),
    'expires_at': RequestField(moment, nullable=True),
}
PLAN_SETTLE = {
    'state': RequestField(one_of('APPLIED', 'FAILED', 'DROPPED'), required=True),
    'why': RequestField(lines, nullable=True),
}
SERVER_DRAIN = {'delete_zones': RequestField(flag)}
SERVER_RESYNC = {**optional(fix=flag, contents=flag, primary=flag),
                 'delete_extra': RequestField(number, nullable=True)}

#: Central's criteria are texts.
_number_as_text = JsonType(number.schema, lambda name, value: str(_whole(name, value)))
PLAN_FILTERS = {
    'state': RequestField(upper_text),
    'zone': RequestField(lower_text),
    'server': RequestField(identifier, key='server_id'),
}
CHANGE_FILTERS = {
    'state': RequestField(upper_text),
    'zone_id': RequestField(identifier, key='domain_id'),
}
CHANGE_REFUSE = {'reason': RequestField(lines, nullable=True, key='why')}
ZONE_FILTERS = optional(name=lower_text, email=some_text, status=upper_text, pool_id=identifier, type=upper_text,
                        ttl=_number_as_text, description=some_text)
RECORDSET_FILTERS = optional(name=lower_text, type=upper_text, data=some_text, status=upper_text, ttl=_number_as_text,
                             description=some_text, managed=one_of('true', 'false'))
#: The variable parts of paths that are not ids.
PATH_PARTS = {'at': some_text, 'change_id': plan_id, 'floating_ip': floating_ip, 'plan_id': plan_id,
              'project_id': project, 'report': some_text, 'to': some_text, 'zone': some_text}
