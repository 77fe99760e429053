"""Types of values as JSON Schemas, which the document shows and requests are checked by.

The schema (2020-12) of a type is in the API's document and, compiled, checks requests: there is no second description
that could differ.  The messages of mistakes are made here.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jsonschema_rs

from designate_pool.errors import InvalidField

#: Characters that a database column or a zone file cannot hold, that end a line, or that control a terminal.
_CONTROL = re.compile('[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_NO_CONTROL = r'[^\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]*'
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


@dataclasses.dataclass(frozen=True, eq=False)
class JsonType:
    """The type of a value that a client sends.  Called with a name and a value it returns the value to use.

    :ivar schema: JSON Schema; ``x-message`` in it is the message about wrong values
    :ivar convert: from a valid value to the one that Central takes; may raise InvalidField too
    """

    schema: Mapping[str, Any]
    convert: Convert | None = None

    def __call__(self, name: str, value: Any) -> Any:
        self.check(value, name)
        return value if self.convert is None else self.convert(name, value)

    @functools.cached_property
    def _validator(self) -> jsonschema_rs.Draft202012Validator:
        # The patterns need no backtracking, and this engine takes linear time for any text.
        return jsonschema_rs.Draft202012Validator(dict(self.schema), pattern_options=jsonschema_rs.RegexOptions())

    def check(self, value: Any, name: str = '') -> None:
        """Compare a value with the schema.

        :param name: of the value, where it is not the whole request
        :raises InvalidField: with the first mistake, and with all of them where *value* is small
        """
        try:
            if self._validator.is_valid(value):
                return
            errors = self._errors(value)
        except UnicodeEncodeError:
            # Half a surrogate pair is JSON, but no text in any encoding.
            at = next(_unencodable(value, ()), ())
            raise InvalidField(field=_dotted(name, at), why='has characters in it that do not exist') from None
        except ValueError:
            raise InvalidField(field=name or 'body', why='is nested too deeply') from None
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


def nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """*schema*, or null."""
    types = schema['type'] if isinstance(schema['type'], list) else [schema['type']]
    result = {**schema, 'type': [*types, 'null']}
    if 'enum' in schema:
        result['enum'] = [*schema['enum'], None]
    return result


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


def _unencodable(value: Any, path: Path) -> Iterator[Path]:
    """Where in *value* texts are that cannot be encoded."""
    if isinstance(value, str) and _CONTROL.search(value):
        yield path
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unencodable(item, (*path, str(index)))
    elif isinstance(value, dict):
        for name, item in value.items():
            if _CONTROL.search(name):
                yield (*path, printable(name))
            yield from _unencodable(item, (*path, printable(name)))
