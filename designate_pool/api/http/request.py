"""Values out of HTTP requests; every mistake is an error that names the field."""

from __future__ import annotations

import collections
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import falcon

from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import ApiOperation
from designate_pool.errors import BadInput, InvalidField, InvalidUuid, Refused, WrongContentType

JSON_LIMIT = 1 << 20
PAGE = 20
LARGEST_PAGE = 1000
#: Counts the JSON objects that are read.
_OBJECTS = itertools.count(1)
PAGING: request_fields.Table = {
    'marker': request_fields.RequestField(request_fields.identifier),
    'limit': request_fields.RequestField(request_fields.JsonType(
        {'type': ['integer', 'string'], 'minimum': 1, 'maximum': sys.maxsize, 'pattern': '^max$',
         request_fields.MESSAGE: f'must be a whole number from 1 to {LARGEST_PAGE}, or max'},
        lambda name, value: LARGEST_PAGE if value == 'max' else min(LARGEST_PAGE, int(value)))),
    'sort_key': request_fields.RequestField(request_fields.some_text),
    'sort_dir': request_fields.RequestField(request_fields.one_of('asc', 'desc')),
}


def body(req: falcon.Request, limit: int = JSON_LIMIT, of: Callable[[], object] | None = None) -> dict[str, Any]:
    """The JSON object in the body, checked by the operation's table.

    :param limit: how many bytes it may have
    :param of: what the request is about is read by it; called before a body with wrong fields is refused, since 404
        comes first
    """
    operation: ApiOperation = req.context.operation
    table = operation.other_body or {} if operation.body is None else operation.body
    if req.content_type or req.content_length:
        # Without a type a page of another site could send a body without a preflight request.
        media(req, 'application/json')
    content = b''.join(pieces(req, limit))
    if operation.body_optional and not content:
        return {}
    try:
        value = json.loads(content.decode('utf-8'), object_pairs_hook=_make_object, parse_constant=_no_number)
    except UnicodeDecodeError:
        raise BadInput(why='the body is not UTF-8') from None
    except RecursionError:
        raise BadInput(why='the body is nested too deeply') from None
    except ValueError as error:
        raise BadInput(why=f'the body is not JSON ({error})') from None
    if operation.body_optional and value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInput(why='the body must be a JSON object')
    try:
        values: dict[str, Any] = request_fields.type_of(tuple(table.items()))('', value)
    except InvalidField:
        if of is not None:
            of()
        raise
    return values


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if not next(_OBJECTS) % request_fields.YIELD_EVERY:
        time.sleep(0)  # other green threads may run
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = collections.Counter(name for name, _ in pairs)
        repeated = next(name for name, count in counts.items() if count > 1)
        raise InvalidField(field=request_fields.printable(repeated), why='given more than once')
    return members


def changes(req: falcon.Request, current: Callable[[], Mapping[str, Any]] = dict) -> dict[str, Any]:
    """The body of a request that changes something, without what it names and cannot change.

    :param current: reads what is changed, as it is shown; called only where its existence or its values matter
    :raises BadInput: when it is empty, or has another value for what cannot be changed
    """
    values = body(req, of=current)
    if not values:
        raise BadInput(why='the body has nothing to change')
    fixed = [name for name in values if req.context.operation.body[name].kind is request_fields.fixed]
    shown = current() if fixed else {}
    wrong = [(name, 'cannot be changed') for name in fixed if not _is_same(values.pop(name), shown.get(name))]
    if wrong:
        raise InvalidField.of(wrong)
    return values


def _is_same(given: Any, shown: Any) -> bool:
    """Whether they are equal; in names, types and ids the case does not matter."""
    return given == shown or isinstance(given, str) and isinstance(shown, str) and given.lower() == shown.lower()


def flag(req: falcon.Request, header: str, *in_query: str) -> bool:
    """Whether a header, or what stands for it in the query, is true."""
    values = {header: req.get_header(header) or '', **{name: req.params.get(name, '') for name in in_query}}
    for name, value in values.items():
        if str(value).lower() not in ('', 'true', 'false'):
            raise InvalidField(field=name, why='must be true or false')
    return any(str(value).lower() == 'true' for value in values.values())


def condition(req: falcon.Request) -> str:
    """The header If-Match, where the operation takes it; '' without."""
    field = req.context.operation and req.context.operation.headers.get(request_fields.IF_MATCH)
    value = req.get_header(request_fields.IF_MATCH)
    return '' if field is None or value is None else str(field.kind(request_fields.IF_MATCH, value)).strip()


def path_part(name: str, value: str) -> Any:
    """A variable part of the path, checked and converted, ids into 32 digits."""
    if name == 'zone':
        return value  # as it was typed: its page says that there is none
    kind = request_fields.PATH_PARTS.get(name, request_fields.identifier)
    try:
        return kind(name, value)
    except InvalidField as error:
        if kind is not request_fields.identifier:
            raise
        raise InvalidUuid(**error.kwargs, given=request_fields.printable(value)) from None


def media(req: falcon.Request, *accepted: str) -> str:
    """The type of the body without parameters.

    :raises WrongContentType: when it is none of *accepted*, the usual one first
    """
    media_type = (req.content_type or '').partition(';')[0].strip().lower()
    if media_type not in accepted:
        raise WrongContentType(wanted=accepted[0],
                               found=request_fields.printable(media_type) if media_type else 'without a type')
    return media_type


def pieces(req: falcon.Request, limit: int, size: int = JSON_LIMIT) -> Iterator[bytes]:
    """The body in pieces of *size* bytes.

    :raises Refused: when it has more than *limit* bytes: by the header, or once more was read
    """
    room = limit if (req.content_length or 0) <= limit else -1
    while room >= 0 and (piece := req.bounded_stream.read(min(size, room + 1))):
        room -= len(piece)
        if room >= 0:
            yield piece
    if room < 0:
        raise Refused('body_too_large', f'The body must not be longer than {limit} bytes.', 413)


def _no_number(word: str) -> None:
    raise ValueError(f'{word} is no number in it')


def query(req: falcon.Request) -> dict[str, Any]:
    """The parameters after the question mark, checked by the operation's table."""
    operation: ApiOperation = req.context.operation
    for name, value in req.params.items():
        if isinstance(value, list):
            raise InvalidField(field=request_fields.printable(name), why='given more than once')
    return request_fields.read_query({name: value for name, value in req.params.items()
                                      if name not in request_fields.EVERYWHERE},
                                     {**operation.query, **(PAGING if operation.is_list else {})})
