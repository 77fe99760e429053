"""The API's OpenAPI 3.1 document, made of the operations; requests are checked by the schemas that it shows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Any

import falcon

from designate_pool import __version__
from designate_pool.api.auth import middleware
from designate_pool.api.http import request
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import FAULT, AnswerForm, Schema, ref
from designate_pool.api.schema.operation import ANYONE, ApiOperation
from designate_pool.api.schema.request_fields import RequestField

#: The headers that every request with a token may have.
HEADERS = {
    **dict.fromkeys((middleware.ALL, middleware.EDIT_MANAGED, middleware.HARD_DELETE),
                    RequestField(request_fields.flag_word)),
    middleware.CHANGE_KIND: RequestField(middleware.KINDS),
    **dict.fromkeys((middleware.SUDO, middleware.SUDO_TENANT), RequestField(request_fields.JsonType({
        **request_fields.project.schema, 'pattern': '^[A-Za-z0-9_.-]{0,36}$'}))),
}
_ERRORS = {
    400: 'The request is wrong; errors names the fields.',
    401: 'The token is missing or wrong.',
    403: 'The policy does not allow it.',
    404: 'There is no such thing, or it is another project\'s.',
    406: "The client accepts neither this answer's type nor JSON.",
    409: 'It conflicts with what exists.',
    412: 'What is changed is not as If-Match says.',
    413: 'The body is too long, or a quota is used up.',
    415: 'The body has the wrong type.',
    429: 'Too many requests; Retry-After says when to come again.',
    500: 'Something failed; the logs show it with the request id.',
    501: 'It needs what is not configured or not installed.',
    502: 'Another service answers wrongly.',
    503: 'A service or the database does not answer.',
}
_ABOUT = '''DNS zones, and the state of each on every server of the pool.

The resources of Designate v2 are as in its API reference; servers, plans, changes, and the paths servers, explain, wait
and changes below a zone are additions. Lists are read in pages: follow links.next. The total number of entries is not
given, since counting takes longer the more there are.'''
_ETAG = {'description': 'For If-Match in a later request.', 'schema': {'type': 'string'}}
_REQUEST_ID = {'description': 'The id of the request in the logs.', 'schema': {'type': 'string'}}


def make_document(operations: Iterable[ApiOperation]) -> dict[str, Any]:
    """The OpenAPI document of all operations.

    :raises ValueError: when two different answers have one name
    """
    paths: dict[str, dict[str, Any]] = {}
    answers: dict[str, AnswerForm] = {}
    bodies: dict[str, Schema] = {}
    for operation in operations:
        for answer in itertools.chain.from_iterable(form.with_parts() for form in operation.answers.values() if form):
            if answers.setdefault(answer.name, answer) is not answer:
                raise ValueError(f'there are two answers named {answer.name}')
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, bodies)
    return {
        'openapi': '3.1.0',
        'info': {'title': 'designate-pool', 'version': __version__, 'description': _ABOUT,
                 'license': {'name': 'Apache-2.0', 'identifier': 'Apache-2.0'}},
        'servers': [{'url': '/'}],
        'paths': paths,
        'components': {
            'schemas': {'Fault': FAULT, **{name: answer.schema for name, answer in answers.items()}, **bodies},
            'responses': {f'Error{status}': _answer(words, 'application/json', ref('Fault'))
                          for status, words in _ERRORS.items()},
            'headers': {'RequestId': _REQUEST_ID},
            'securitySchemes': {'token': {'type': 'apiKey', 'in': 'header', 'name': middleware.TOKEN}},
        },
    }


def _operation(each: ApiOperation, bodies: dict[str, Schema]) -> dict[str, Any]:
    document: dict[str, Any] = {
        'operationId': each.name,
        'summary': each.summary,
        'description': f'Least role: {each.role}. The policy rule is {each.name}.',
        'tags': [each.tag],
        'parameters': _parameters(each),
        'responses': {str(status): answer for status, answer in sorted(_answers(each).items())},
        'security': [] if each.role == ANYONE else [{'token': []}],
    }
    fields = each.body if each.body is not None else each.other_body
    if fields is not None:
        name = ''.join(word.capitalize() for word in each.name.split('_')) + 'Body'
        bodies[name] = request_fields.type_of(tuple(fields.items())).schema
    if each.body is not None:
        schema = {'anyOf': [ref(name), {'type': 'null'}]} if each.body_optional else ref(name)
        document['requestBody'] = {'required': not each.body_optional, 'content': {each.media: {'schema': schema}}}
    elif each.media != 'application/json':
        content: dict[str, Any] = {each.media: {'schema': {'type': 'string', 'minLength': 1}}}
        if each.other_body is not None:
            content['application/json'] = {'schema': ref(name)}
        document['requestBody'] = {'required': True, 'content': content}
    return document


def _parameters(each: ApiOperation) -> list[dict[str, Any]]:
    path = {name: RequestField(request_fields.PATH_PARTS.get(name, request_fields.identifier), required=True)
            for name in re.findall(r'\{(\w+)\}', each.path)}
    query = {**each.query, **(request.PAGING if each.is_list else {}),
             **(request_fields.EVERYWHERE if each.role != ANYONE else {})}
    headers = {**each.headers, **(HEADERS if each.role != ANYONE else {})}
    return [{'name': name, 'in': place, 'required': field.required, 'schema': field.schema}
            for place, fields in (('path', path), ('query', query), ('header', headers))
            for name, field in fields.items()]


def _answers(each: ApiOperation) -> dict[int, dict[str, Any]]:
    wrong = {400, 406, 429, 500, 503, *each.errors}
    if each.role != ANYONE:
        wrong |= {401, 403, 404}
    if each.method != 'GET':
        wrong |= {409}
    if each.body is not None or each.media != 'application/json':
        wrong |= {413, 415}
    if request_fields.IF_MATCH in each.headers:
        wrong |= {412}
    responses: dict[int, dict[str, Any]] = {
        status: {'$ref': f'#/components/responses/Error{status}'} for status in wrong}
    for status, form in each.answers.items():
        schema = {'type': 'string'} if form is None else ref(form.name)
        has_body = form is not None or each.answer_media != 'application/json'
        responses[status] = _answer(falcon.code_to_http_status(status), each.answer_media if has_body else None, schema)
        if form is not None and form.has_etag:
            responses[status]['headers']['ETag'] = _ETAG
    return responses


def _answer(words: str, media: str | None, schema: Schema) -> dict[str, Any]:
    response: dict[str, Any] = {'description': words, 'headers': {
        'X-Openstack-Request-Id': {'$ref': '#/components/headers/RequestId'}}}
    if media is not None:
        response['content'] = {media: {'schema': schema}}
    return response
