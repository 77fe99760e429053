"""What administrators keep lists of: ``/v2/tlds``, ``/v2/blacklists`` and ``/v2/tsigkeys``.

Zones lie below the top-level domains, if there are any; only those may create zones whose names match the patterns of
the blacklists who may use blacklisted names; the keys may transfer zones from MiniDNS, and their secrets are never
shown.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, answer_created, requester
from designate_pool.api.resources.base import answer_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import ID, TEXT, VERSIONED, AnswerForm, ListAnswer, choice, maybe, member
from designate_pool.api.schema.operation import ADMIN, ApiOperation
from designate_pool.api.schema.request_fields import RequestField, Table
from designate_pool.central.entries import Entries
from designate_pool.central.service import Central
from designate_pool.model import HIDDEN_SECRET, TSIG_ALGORITHMS, KeyScope, dashed


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of values that are listed, created, changed and deleted alike.

    :ivar name: of one; its plural is in paths, and an attribute of Central
    """

    name: str
    page: ListAnswer
    filters: Table
    create: Table
    update: Table


_FIXED = dict.fromkeys(('id', 'version', 'created_at', 'updated_at'), RequestField(request_fields.fixed))
_DESCRIPTION = {'description': RequestField(request_fields.text, nullable=True)}
_EXAMPLE = r'^([a-z0-9_-]+\.)*example\.com\.$'
TLDS = Kind(
    'tld',
    ListAnswer('Tlds', 'tlds', AnswerForm('Tld', {'id': ID, 'name': TEXT, 'description': maybe(TEXT), **VERSIONED}, {
        'self': lambda tld: f'/v2/tlds/{dashed(tld.id)}'})),
    {'name': RequestField(request_fields.lower_text), 'description': RequestField(request_fields.some_text)},
    {'name': RequestField(request_fields.some_text, required=True, example='com'), **_DESCRIPTION},
    {'name': RequestField(request_fields.some_text, example='com'), **_DESCRIPTION, **_FIXED},
)
BLACKLISTS = Kind(
    'blacklist',
    ListAnswer('Blacklists', 'blacklists', AnswerForm('Blacklist', {
        'id': ID, 'pattern': TEXT, 'description': maybe(TEXT), **VERSIONED}, {
        'self': lambda blacklist: f'/v2/blacklists/{dashed(blacklist.id)}'})),
    {'pattern': RequestField(request_fields.some_text), 'description': RequestField(request_fields.some_text)},
    {'pattern': RequestField(request_fields.some_text, required=True, example=_EXAMPLE), **_DESCRIPTION},
    {'pattern': RequestField(request_fields.some_text, example=_EXAMPLE), **_DESCRIPTION, **_FIXED},
)
_KEY = {
    'name': request_fields.some_text,
    'algorithm': request_fields.one_of(*TSIG_ALGORITHMS),
    'secret': request_fields.some_text,
    'scope': request_fields.one_of(*(scope.value for scope in KeyScope)),
    'resource_id': request_fields.identifier,
}
TSIGKEYS = Kind(
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
    {
        'name': RequestField(request_fields.some_text),
        'algorithm': RequestField(request_fields.some_text),
        'scope': RequestField(request_fields.upper_text),
        'resource_id': RequestField(request_fields.identifier),
    },
    {name: RequestField(kind, required=True) for name, kind in _KEY.items()},
    {**{name: RequestField(kind) for name, kind in _KEY.items()}, **_FIXED},
)
KINDS = (TSIGKEYS, TLDS, BLACKLISTS)


def _operations(kind: Kind, to_list: str, to_create: str, to_show: str, to_change: str,
                to_delete: str) -> tuple[ApiOperation, ...]:
    """The operations of a kind, with what the document says of each."""
    name, tag, page, entry = kind.name, f'{kind.name}s', kind.page, kind.page.entry
    every, one = f'/v2/{tag}', f'/v2/{tag}/{{{name}_id}}'
    return (
        ApiOperation(f'list_{tag}', 'GET', every, to_list, ADMIN, {200: page}, query=kind.filters, is_list=True,
                     tag=tag),
        ApiOperation(f'create_{name}', 'POST', every, to_create, ADMIN, {201: entry}, body=kind.create, tag=tag),
        ApiOperation(f'show_{name}', 'GET', one, to_show, ADMIN, {200: entry}, tag=tag),
        ApiOperation(f'update_{name}', 'PATCH', one, to_change, ADMIN, {200: entry}, body=kind.update, tag=tag),
        ApiOperation(f'delete_{name}', 'DELETE', one, to_delete, ADMIN, {204: None}, tag=tag),
    )


OPERATIONS = (
    *_operations(TSIGKEYS, 'List TSIG keys', 'Create a TSIG key that may transfer the zones of a pool, or one zone',
                 'Show a TSIG key without its secret', 'Change a TSIG key', 'Delete a TSIG key'),
    *_operations(TLDS, 'List the top-level domains that zones may lie below',
                 'Add a top-level domain; with the first, zones lie below one of them', 'Show a top-level domain',
                 'Change a top-level domain', 'Remove a top-level domain; the zones below it stay'),
    *_operations(BLACKLISTS, 'List the patterns of names that zones may not have',
                 'Add a pattern of names that zones may not have', 'Show a pattern of names that zones may not have',
                 'Change a pattern of names that zones may not have',
                 'Remove a pattern of names that zones may not have'),
)


class _EntryResource:
    def __init__(self, central: Central, kind: Kind) -> None:
        self._kind = kind
        self._entries: Entries[Any] = getattr(central, f'{kind.name}s')


class KindResource(_EntryResource):
    """All values of a kind."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, self._kind.page, self._kind.filters, self._entries.find)

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        created = self._entries.create(requester(req), request.body(req, self._kind.create))
        answer_created(req, resp, self._kind.page.entry, created)


class OneOfKindResource(_EntryResource):
    """One value of a kind, by its id."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        answer(resp, self._shown(req, *path.values()))

    def on_patch(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        entry_id, = path.values()
        values = request.changes(req, self._kind.update, lambda: self._shown(req, entry_id))
        changed = self._entries.update(requester(req), entry_id, values)
        answer(resp, self._kind.page.entry.show(changed, req.prefix))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        self._entries.delete(requester(req), *path.values())
        resp.status = 204

    def _shown(self, req: falcon.Request, value_id: str) -> dict[str, Any]:
        return self._kind.page.entry.show(self._entries.get(requester(req), value_id), req.prefix)
