"""What administrators keep lists of: ``/v2/tlds``, ``/v2/blacklists`` and ``/v2/tsigkeys``.

Zones lie below the top-level domains, if there are any; only those may create zones whose names match the patterns of
the blacklists who may use blacklisted names; the keys may transfer zones from MiniDNS, and their secrets are never
shown.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, show_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import ID, TEXT, VERSIONED, AnswerForm, Json, ListAnswer, choice, maybe, member
from designate_pool.api.schema.operation import ADMIN, Operations
from designate_pool.api.schema.request_fields import RequestField, Table
from designate_pool.central.entries import Entries
from designate_pool.model import HIDDEN_SECRET, TSIG_ALGORITHMS, KeyScope, dashed

_FIXED = dict.fromkeys(('id', 'version', 'created_at', 'updated_at'), RequestField(request_fields.fixed))
_DESCRIPTION = {'description': RequestField(request_fields.text, nullable=True)}
_EXAMPLE = r'^([a-z0-9_-]+\.)*example\.com\.$'
_KEY = {
    'name': request_fields.some_text,
    'algorithm': request_fields.one_of(*TSIG_ALGORITHMS),
    'secret': request_fields.some_text,
    'scope': request_fields.one_of(*(scope.value for scope in KeyScope)),
    'resource_id': request_fields.identifier,
}
OPERATIONS = Operations('')


def _add_operations(name: str, page: ListAnswer, filters: Table, creation: Table, change: Table, to_list: str,
                    to_create: str, to_show: str, to_change: str, to_delete: str) -> None:
    """Add the operations of a kind of values that are listed, created, changed and deleted alike.

    :param name: of one; its plural is in paths, and an attribute of Central
    :param to_list: what the document says of that operation
    """
    tag, entry = f'{name}s', page.entry
    every, one = f'/v2/{tag}', f'/v2/{tag}/{{{name}_id}}'
    entries: Callable[[Api], Entries[Any]] = operator.attrgetter(f'central.{tag}')

    @OPERATIONS.add('GET', every, to_list, ADMIN, {200: page}, f'list_{tag}', tag, query=filters, is_list=True)
    def list_all(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
        return show_page(req, entries(api).find)

    @OPERATIONS.add('POST', every, to_create, ADMIN, {201: entry}, f'create_{name}', tag, body=creation,
                    has_location=True)
    def create(api: Api, req: falcon.Request, resp: falcon.Response) -> Any:
        return entries(api).create(requester(req), request.body(req))

    @OPERATIONS.add('GET', one, to_show, ADMIN, {200: entry}, f'show_{name}', tag)
    def show_one(api: Api, req: falcon.Request, resp: falcon.Response, **path: str) -> Any:
        return entries(api).get(requester(req), *path.values())

    @OPERATIONS.add('PATCH', one, to_change, ADMIN, {200: entry}, f'update_{name}', tag, body=change)
    def update(api: Api, req: falcon.Request, resp: falcon.Response, **path: str) -> Any:
        (entry_id,) = path.values()
        values = request.changes(req, lambda: entry.show(entries(api).get(requester(req), entry_id), req.prefix))
        return entries(api).update(requester(req), entry_id, values)

    @OPERATIONS.add('DELETE', one, to_delete, ADMIN, {204: None}, f'delete_{name}', tag)
    def delete(api: Api, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        entries(api).delete(requester(req), *path.values())


_add_operations(
    'tsigkey',
    ListAnswer('TsigKeys', 'tsigkeys', AnswerForm('TsigKey', {
        'id': ID,
        'name': TEXT,
        'algorithm': choice(*TSIG_ALGORITHMS),
        'secret': dataclasses.replace(TEXT, schema={'type': 'string', 'const': HIDDEN_SECRET,
                                                    'description': 'It is never shown.'},
                                      source=lambda tsigkey: HIDDEN_SECRET),
        'scope': member(KeyScope),
        'resource_id': ID,
        **VERSIONED,
    }, {'self': lambda tsigkey: f'/v2/tsigkeys/{dashed(tsigkey.id)}'})),
    request_fields.optional(name=request_fields.some_text, algorithm=request_fields.some_text,
                            scope=request_fields.upper_text, resource_id=request_fields.identifier),
    {name: RequestField(kind, required=True) for name, kind in _KEY.items()},
    {**request_fields.optional(**_KEY), **_FIXED},
    'List TSIG keys', 'Create a TSIG key that may transfer the zones of a pool, or one zone',
    'Show a TSIG key without its secret', 'Change a TSIG key', 'Delete a TSIG key')
_add_operations(
    'tld',
    ListAnswer('Tlds', 'tlds', AnswerForm('Tld', {'id': ID, 'name': TEXT, 'description': maybe(TEXT), **VERSIONED}, {
        'self': lambda tld: f'/v2/tlds/{dashed(tld.id)}'})),
    {'name': RequestField(request_fields.lower_text), 'description': RequestField(request_fields.some_text)},
    {'name': RequestField(request_fields.some_text, required=True, example='com'), **_DESCRIPTION},
    {'name': RequestField(request_fields.some_text, example='com'), **_DESCRIPTION, **_FIXED},
    'List the top-level domains that zones may lie below',
    'Add a top-level domain; with the first, zones lie below one of them', 'Show a top-level domain',
    'Change a top-level domain', 'Remove a top-level domain; the zones below it stay')
_add_operations(
    'blacklist',
    ListAnswer('Blacklists', 'blacklists', AnswerForm('Blacklist', {
        'id': ID, 'pattern': TEXT, 'description': maybe(TEXT), **VERSIONED}, {
        'self': lambda blacklist: f'/v2/blacklists/{dashed(blacklist.id)}'})),
    {'pattern': RequestField(request_fields.some_text), 'description': RequestField(request_fields.some_text)},
    {'pattern': RequestField(request_fields.some_text, required=True, example=_EXAMPLE), **_DESCRIPTION},
    {'pattern': RequestField(request_fields.some_text, example=_EXAMPLE), **_DESCRIPTION, **_FIXED},
    'List the patterns of names that zones may not have',
    'Add a pattern of names that zones may not have', 'Show a pattern of names that zones may not have',
    'Change a pattern of names that zones may not have',
    'Remove a pattern of names that zones may not have')
