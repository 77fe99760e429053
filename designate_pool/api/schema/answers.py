"""What the API answers: one table of fields per answer, from which its schema and its JSON are made."""

from __future__ import annotations

import dataclasses
import enum
import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from designate_pool.model import Action, PlanState, Reason, ServerState, Status, dashed

Schema = Mapping[str, Any]
Json = dict[str, Any]
#: Read in place of a value: the optional field is left out.
ABSENT = object()


@dataclasses.dataclass(frozen=True)
class AnswerField:
    """A field of an answer.

    :ivar convert: from the model's value to JSON's; None stays None
    :ivar source: the attribute it is read from, or a function of the shown value; None for the attribute of its name
    :ivar part: the named answer that it consists of
    """

    schema: Schema
    convert: Callable[[Any], Any] | None = None
    source: str | Callable[[Any], Any] | None = None
    part: AnswerForm | None = None

    def of(self, source: str | Callable[[Any], Any]) -> AnswerField:
        """This field, read from *source*."""
        return dataclasses.replace(self, source=source)

    def about(self, description: str) -> AnswerField:
        """This field, with a description in the document."""
        return dataclasses.replace(self, schema={**self.schema, 'description': description})


class AnswerForm:
    """An object that the API answers: it has these fields and no other.

    :ivar name: of its schema in the document
    :ivar has_etag: whether what it shows has an entity tag, which is sent with it
    :param links: name to a function of the value that gives the path, or None for no link
    :param optional: fields and links that may be missing
    """

    def __init__(self, name: str, fields: Mapping[str, AnswerField],
                 links: Mapping[str, Callable[[Any], str | None]] | None = None, *optional: str,
                 description: str | None = None, has_etag: bool = False) -> None:
        self.name = name
        self.has_etag = has_etag
        self.fields = dict(fields)
        self._links = links or {}
        if links is not None:
            self.fields['links'] = AnswerField(
                shape(dict.fromkeys(links, LINK.schema), *(link for link in links if link in optional)))
        self._readers = [(field_name, field.source if callable(field.source) else
                          operator.attrgetter(field.source or field_name), field.convert)
                         for field_name, field in fields.items()]
        properties = {field_name: field.schema for field_name, field in self.fields.items()}
        self.schema: Json = shape(properties, *(field for field in optional if field in fields))
        if description is not None:
            self.schema['description'] = description

    def show(self, value: Any, base: str = '', **given: Any) -> Json:
        """The answer about a value of the model.

        :param base: the URL of the API
        :param given: the fields that are not read from the value
        """
        shown = {}
        for name, read, convert in self._readers:
            if name in given:
                shown[name] = given[name]
            elif (content := read(value)) is not ABSENT:
                shown[name] = content if convert is None or content is None else convert(content)
        if self._links:
            shown['links'] = {name: f'{base}{path}' for name, link in self._links.items()
                              if (path := link(value)) is not None}
        return shown

    def with_parts(self) -> Iterator[AnswerForm]:
        """The answer, and those that are named in it."""
        yield self
        for field in self.fields.values():
            if field.part is not None:
                yield from field.part.with_parts()


class ListAnswer(AnswerForm):
    """One page of a list; how many there are in all is not counted (that takes as long as the list is).

    :ivar key: the name of the list in the answer
    :ivar entry: what it consists of
    """

    def __init__(self, name: str, key: str, entry: AnswerForm) -> None:
        super().__init__(name, {key: many(one(entry))}, {'self': str, 'next': str}, 'next')
        self.key = key
        self.entry = entry


def shape(properties: Mapping[str, Schema], *optional: str) -> Json:
    """The schema of an object that has these properties, all of them but the optional ones."""
    return {'type': 'object', 'properties': dict(properties), 'additionalProperties': False,
            'required': [name for name in properties if name not in optional]}


def nullable(schema: Schema) -> Json:
    """*schema*, or null."""
    types = schema['type'] if isinstance(schema['type'], list) else [schema['type']]
    result = {**schema, 'type': [*types, 'null']}
    if 'enum' in schema:
        result['enum'] = [*schema['enum'], None]
    return result


def ref(name: str) -> Schema:
    """A reference to one of the document's named schemas."""
    return {'$ref': f'#/components/schemas/{name}'}


def maybe(field: AnswerField) -> AnswerField:
    """*field*, or null."""
    is_named = '$ref' in field.schema
    return dataclasses.replace(field, schema={'anyOf': [field.schema, {'type': 'null'}]} if is_named else
                               nullable(field.schema))


def one(answer: AnswerForm) -> AnswerField:
    """A field that is an answer of its own."""
    return AnswerField(ref(answer.name), answer.show, part=answer)


def inline(answer: AnswerForm) -> AnswerField:
    """A field that is an object which the document does not name."""
    return AnswerField(answer.schema, answer.show)


def many(field: AnswerField) -> AnswerField:
    """A list of such fields."""
    convert = field.convert
    return AnswerField({'type': 'array', 'items': field.schema},
                       list if convert is None else lambda values: [convert(value) for value in values],
                       part=field.part)


def rows(fields: Mapping[str, AnswerField]) -> AnswerField:
    """A list of objects, which are tuples in the model."""
    return AnswerField({'type': 'array', 'items': shape({name: field.schema for name, field in fields.items()})},
                       lambda values: [dict(zip(fields, value)) for value in values])


def choice(*words: str) -> AnswerField:
    """One of these words."""
    return AnswerField({'type': 'string', 'enum': list(words)})


def member(kind: type[enum.Enum]) -> AnswerField:
    """The value of a member of an enumeration."""
    values = {word: word.value for word in kind}
    return AnswerField({'type': 'string', 'enum': list(values.values())}, values.__getitem__)


def moment(value: datetime | None) -> str | None:
    """A time in UTC without a time zone, as Designate writes it."""
    if value is None:
        return None
    if value.tzinfo is not timezone.utc:
        value = value.astimezone(timezone.utc)
    return value.isoformat('T', 'microseconds')[:-6]  # without +00:00


def read_moment(text: str) -> datetime:
    """A time that :func:`moment` has written."""
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def zone_path(domain_id: str) -> str:
    """The path of a zone's resource."""
    return f'/v2/zones/{dashed(domain_id)}'


ID = AnswerField({'type': 'string', 'format': 'uuid'}, dashed)
TEXT = AnswerField({'type': 'string'})
TEXTS = many(TEXT)
TEXT_BY_NAME = AnswerField({'type': 'object', 'additionalProperties': {'type': 'string'}})
FLAG = AnswerField({'type': 'boolean'})
COUNT = AnswerField({'type': 'integer', 'minimum': 0})
SECONDS = AnswerField({'type': 'number', 'minimum': 0}, lambda seconds: round(seconds, 3))
SERIAL = AnswerField({'type': 'integer', 'minimum': 0, 'maximum': (1 << 32) - 1})
#: In UTC, without saying so, as Designate does.
MOMENT = AnswerField({'type': 'string', 'pattern': r'^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$',
                      'description': 'A time in UTC.'}, moment)
STATUS, ACTION, SERVER_STATE, PLAN_STATE = (member(kind) for kind in (Status, Action, ServerState, PlanState))
#: Beside a sentence.
REASON = maybe(member(Reason)).about('Why, for programs; null where that is not known.')
LINK = AnswerField({'type': 'string', 'format': 'uri-reference'})
VERSIONED = {'version': COUNT, 'created_at': maybe(MOMENT), 'updated_at': maybe(MOMENT)}
#: Of an answer that says how it will be, once the change is approved: the change.
CHANGE_LINK: dict[str, Callable[[Any], str | None]] = {'change': lambda value: None}
LOCK = {'lock_reason': maybe(TEXT).about('Why it may not be changed; null where it is not locked.'),
        'locked_by_admin': FLAG.about('Whether only an administrator may unlock it.')}

FREEZE = AnswerForm('Freeze', {
    'reason': TEXT,
    'since': MOMENT,
    'until': maybe(MOMENT).about('When it ends by itself; null for never.'),
}, description='Servers of the pool get no version of a zone that was written since.')
WAITS_FOR = maybe(inline(FREEZE)).of('waits_for').about(
    'The freeze of its pool that has to end before servers get its newest changes; null where none waits.')
RELEASE = maybe(inline(AnswerForm('Release', {
    'stage': COUNT.about('Servers of this stage, and of those before, may have what is released.'),
    'held': maybe(TEXT).of(lambda release: release.held or None).about('What has failed; null while it goes on.'),
    'turned_back': maybe(SERIAL).about('The serial under which these servers have the contents before again.'),
    'changed': FLAG.of(lambda release: release.version is not None).about('Whether later changes wait for its end.'),
}))).about('Its release in stages; null where there is none.')

FAULT: Schema = {**shape({
    'code': {'type': 'integer', 'minimum': 400, 'maximum': 599, 'description': 'The HTTP status.'},
    'type': TEXT.about('The kind of error, for programs.').schema,
    'message': TEXT.about('What is wrong, as a sentence.').schema,
    'request_id': TEXT.about('The id of the request in the logs.').schema,
    'errors': shape({'errors': rows({'path': TEXTS, 'message': TEXT}).schema}),
}, 'errors'), 'description': 'An error.'}
