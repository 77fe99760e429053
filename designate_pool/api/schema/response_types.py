"""Functions that make the schemas of answers, and schemas that many answers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from designate_pool.model import Action, PlanState, Reason, ServerState, Status

Schema = dict[str, Any]

ID: Schema = {'type': 'string', 'format': 'uuid'}
TEXT: Schema = {'type': 'string'}
TEXTS: Schema = {'type': 'array', 'items': TEXT}
FLAG: Schema = {'type': 'boolean'}
COUNT: Schema = {'type': 'integer', 'minimum': 0}
SERIAL: Schema = {'type': 'integer', 'minimum': 0, 'maximum': (1 << 32) - 1}
#: In UTC, without saying so, as Designate does.
MOMENT: Schema = {'type': 'string', 'pattern': r'^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$',
                  'description': 'A time in UTC.'}
STATUS: Schema = {'type': 'string', 'enum': [status.value for status in Status]}
ACTION: Schema = {'type': 'string', 'enum': [action.value for action in Action]}
SERVER_STATE: Schema = {'type': 'string', 'enum': [state.value for state in ServerState]}
PLAN_STATE: Schema = {'type': 'string', 'enum': [state.value for state in PlanState]}
#: Beside a sentence.
REASON: Schema = {'type': ['string', 'null'], 'enum': [*(reason.value for reason in Reason), None],
                  'description': 'Why, for programs; null where that is not known.'}
LINK: Schema = {'type': 'string', 'format': 'uri-reference'}


def maybe(schema: Mapping[str, Any]) -> Schema:
    """*schema*, or null."""
    result = {**schema, 'type': [schema['type'], 'null']}
    if 'enum' in schema:
        result['enum'] = [*schema['enum'], None]
    return result


def shape(properties: Mapping[str, Any], *optional: str, description: str | None = None) -> Schema:
    """An object that has these properties and no other; all of them but the optional ones."""
    result: Schema = {'type': 'object', 'additionalProperties': False, 'properties': dict(properties),
                      'required': [property_ for property_ in properties if property_ not in optional]}
    return result if description is None else {'description': description, **result}


def links(*names: str, optional: tuple[str, ...] = ()) -> Schema:
    return shape(dict.fromkeys((*names, *optional), LINK), *optional)


def ref(name: str) -> Schema:
    """A reference to one of the document's named schemas."""
    return {'$ref': f'#/components/schemas/{name}'}


def listed(name: str, of: str) -> Schema:
    """One page of a list; how many there are in all is not counted (that takes as long as the list is)."""
    return shape({name: {'type': 'array', 'items': ref(of)}, 'links': links('self', optional=('next',))})


FAULT = shape({
    'code': {'type': 'integer', 'minimum': 400, 'maximum': 599, 'description': 'The HTTP status.'},
    'type': {'type': 'string', 'description': 'The kind of error, for programs.'},
    'message': {'type': 'string', 'description': 'What is wrong, as a sentence.'},
    'request_id': {'type': 'string', 'description': 'The id of the request in the logs.'},
    'errors': shape({'errors': {'type': 'array', 'items': shape({'path': TEXTS, 'message': TEXT})}}),
}, 'errors', description='An error.')
