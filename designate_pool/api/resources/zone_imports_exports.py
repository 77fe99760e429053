"""Imports and exports of zone files: ``/v2/zones/tasks/imports``, ``/v2/zones/tasks/exports``.

The API stores the file of an import, and a Central claims the import and carries it out; the file of an export is made
when it is fetched.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import IO

import falcon

from designate_pool.api.auth.identity import check_rule, zone_creator
from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, show_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (ID, LINK, TEXT, VERSIONED, AnswerForm, Json, ListAnswer, many, maybe,
                                               member, one, zone_path)
from designate_pool.api.schema.operation import CREATE_IN_POOL, MEMBER, READER, Operations
from designate_pool.api.services.zone_task_store import PIECE, WAIT_SECONDS, missing, write_zone, write_zone_file
from designate_pool.errors import BadInput, DomainNotFound, InvalidField, NotFound
from designate_pool.model import Context, ZoneTask, ZoneTaskKind, ZoneTaskStatus, dashed
from designate_pool.protocol.zonefile import validated
from designate_pool.storage import queries
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import zone_tasks

#: The attribute that names the pool of a zone.
POOL_ID = 'pool_id'
_FILTERS = request_fields.optional(status=request_fields.upper_text, zone_id=request_fields.identifier,
                                   message=request_fields.some_text)
#: An import as JSON, as Designate has it since version 2.4.
_WITH_ATTRIBUTES = {
    'zonefile': request_fields.RequestField(request_fields.JsonType({'type': 'string'}), required=True,
                                            example='$ORIGIN example.com.'),
    'attributes': request_fields.RequestField(request_fields.attributes),
}
#: Several zone files at once; how many of them, and how many bytes each may have.
BATCH, TINY = zone_tasks.BATCH, zone_tasks.TINY
_SEVERAL = {
    'zonefiles': request_fields.RequestField(request_fields.JsonType({
        'type': 'array', 'items': {'type': 'string', 'minLength': 1, 'maxLength': TINY}, 'minItems': 1,
        'maxItems': BATCH}), required=True, example=('$ORIGIN example.com.', '$ORIGIN example.net.')),
    'attributes': request_fields.RequestField(request_fields.attributes),
}
_IMPORTS, _EXPORTS = '/v2/zones/tasks/imports', '/v2/zones/tasks/exports'
_IMPORT, _EXPORT = f'{_IMPORTS}/{{import_id}}', f'{_EXPORTS}/{{export_id}}'
_TASK = {
    'id': ID,
    'status': member(ZoneTaskStatus),
    'message': maybe(TEXT),
    'zone_id': maybe(ID).of('domain_id'),
    'project_id': TEXT,
    **VERSIONED,
}
IMPORT = AnswerForm('ZoneImport', _TASK, {
    'self': lambda task: f'{_IMPORTS}/{dashed(task.id)}',
    'zone': lambda task: None if task.domain_id is None else zone_path(task.domain_id),
}, 'zone')
IMPORTS = ListAnswer('ZoneImports', 'imports', IMPORT)
IMPORT_BATCH = AnswerForm('ZoneImportBatch', {'imports': many(one(IMPORT))})
EXPORT = AnswerForm('ZoneExport', {**_TASK, 'location': maybe(LINK)}, {
    'self': lambda task: f'{_EXPORTS}/{dashed(task.id)}',
    'export': lambda task: f'{_EXPORTS}/{dashed(task.id)}/export' if task.status is ZoneTaskStatus.COMPLETE else None,
}, 'export')
EXPORTS = ListAnswer('ZoneExports', 'exports', EXPORT)
OPERATIONS = Operations('zone_imports_exports')


@OPERATIONS.add('GET', _IMPORTS, 'List imports', READER, {200: IMPORTS}, query=_FILTERS, is_list=True)
def list_zone_imports(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    return show_page(req, functools.partial(api.tasks.find, ZoneTaskKind.IMPORT))


@OPERATIONS.add('POST', _IMPORTS, 'Create a zone from a zone file', MEMBER, {202: IMPORT}, has_location=True,
                media='text/dns', other_body=_WITH_ATTRIBUTES, query={
                    'pool_id': request_fields.RequestField(request_fields.identifier)})
def create_zone_import(api: Api, req: falcon.Request, resp: falcon.Response) -> ZoneTask:
    context = zone_creator(req)
    pool_id = request.query(req).get('pool_id')
    attributes, pieces = '', request.pieces(req, api.settings.max_body, PIECE)
    if request.media(req, 'text/dns', 'application/json') == 'application/json':
        body = request.body(req, api.whole_zone_limit)
        attributes, pieces = body.get('attributes', ''), iter([body['zonefile'].encode('utf-8', 'surrogatepass')])
        pool_id = _named_pool(attributes) or pool_id
    _check_pool(api, req, context, pool_id)
    task = api.tasks.store_import(context, validated(pieces), pool_id, attributes)
    api.central.announce_import(context)
    return api.tasks.wait_for(task)


@OPERATIONS.add('POST', '/v2/zones/tasks/import_batches', 'Create zones from several small zone files', MEMBER,
                {202: IMPORT_BATCH}, body=_SEVERAL, default_rule='rule:create_zone_import')
def create_zone_import_batch(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    context = zone_creator(req)
    body = request.body(req, api.whole_zone_limit)
    zone_files = [_small_file(f'zonefiles.{index}', text) for index, text in enumerate(body['zonefiles'])]
    attributes = body.get('attributes', '')
    pool_id = _named_pool(attributes)
    _check_pool(api, req, context, pool_id)
    tasks = api.tasks.store_imports(context, zone_files, pool_id, attributes)
    api.central.announce_import(context)
    return {'imports': [IMPORT.show(task, req.prefix) for task in api.tasks.wait_for_all(tasks, WAIT_SECONDS)]}


@OPERATIONS.add('GET', _IMPORT, 'Show the state of an import', READER, {200: IMPORT})
def show_zone_import(api: Api, req: falcon.Request, resp: falcon.Response, import_id: str) -> ZoneTask:
    return api.tasks.get(ZoneTaskKind.IMPORT, requester(req), import_id)


@OPERATIONS.add('DELETE', _IMPORT, 'Forget an import; the zone that it made stays', MEMBER, {204: None})
def delete_zone_import(api: Api, req: falcon.Request, resp: falcon.Response, import_id: str) -> None:
    api.tasks.remove(ZoneTaskKind.IMPORT, requester(req), import_id)


@OPERATIONS.add('GET', _EXPORTS, 'List exports', READER, {200: EXPORTS}, query=_FILTERS, is_list=True)
def list_zone_exports(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    return show_page(req, functools.partial(api.tasks.find, ZoneTaskKind.EXPORT), show=_exported)


@OPERATIONS.add('POST', '/v2/zones/{zone_id}/tasks/export', 'Export a zone as a zone file', MEMBER, {202: EXPORT},
                has_location=True, errors=(413,))
def create_zone_export(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Json:
    domain = api.central.check_export(requester(req), zone_id)
    return _exported(api.tasks.store_export(requester(req), domain), req.prefix)


@OPERATIONS.add('GET', _EXPORT, 'Show an export', READER, {200: EXPORT})
def show_zone_export(api: Api, req: falcon.Request, resp: falcon.Response, export_id: str) -> Json:
    return _exported(api.tasks.get(ZoneTaskKind.EXPORT, requester(req), export_id), req.prefix)


@OPERATIONS.add('DELETE', _EXPORT, 'Forget an export', MEMBER, {204: None})
def delete_zone_export(api: Api, req: falcon.Request, resp: falcon.Response, export_id: str) -> None:
    api.tasks.remove(ZoneTaskKind.EXPORT, requester(req), export_id)


@OPERATIONS.add('GET', f'{_EXPORT}/export', 'Fetch the zone file of an export', READER, {200: None},
                answer_media='text/dns', errors=(413,))
def fetch_zone_export(api: Api, req: falcon.Request, resp: falcon.Response, export_id: str) -> None:
    """The id may also be a zone's: a client that fetches zones often need not leave exports behind."""
    try:
        domain_id = api.tasks.get(ZoneTaskKind.EXPORT, requester(req), export_id).domain_id or ''
    except NotFound:
        domain_id = export_id
        try:
            api.central.check_export(requester(req), domain_id)
        except DomainNotFound:
            raise missing(ZoneTaskKind.EXPORT, export_id) from None
    else:
        # The zone may have grown since, or been given to another project, so it is checked too.
        api.central.check_export(requester(req), domain_id)
    send_zone_file(api, resp, domain_id)


@OPERATIONS.add('GET', '/v2/zones/{zone_id}/versions/{at}/export', 'Fetch a zone as it was as a zone file', READER,
                {200: None}, answer_media='text/dns', errors=(413,))
def export_zone_version(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str, at: str) -> None:
    send_version(api, req, resp, zone_id, at, write_zone_file, 'text/dns')


def send_version(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str, at: str,
                 write: Callable[..., None], media: str, name: str | None = None) -> None:
    """Answer what *write* makes of a version of a zone; it is called with a file, the head, and the rows."""
    moment, expired = api.central.version_at('at', at)
    if name is None:
        api.storage.read(api.central.creator.allowance.check_export_of_version, requester(req), zone_id)

    def read(tx: Tx, file: IO[bytes]) -> None:
        queries.use_rows_at(tx, requester(req), zone_id, moment, expired, functools.partial(write, file), name)

    resp.set_stream(*api.tasks.spooled(read))
    resp.content_type = media


def send_zone_file(api: Api, resp: falcon.Response, domain_id: str) -> None:
    """Answer a zone as a zone file."""
    resp.set_stream(*api.tasks.spooled(write_zone, domain_id))
    resp.content_type = 'text/dns'


def _exported(task: ZoneTask, base: str) -> Json:
    """An export; its file is made when it is fetched."""
    shown = EXPORT.show(task, base, location=None)
    return {**shown, 'location': shown['links'].get('export')}


def _check_pool(api: Api, req: falcon.Request, context: Context, pool_id: str | None) -> None:
    if pool_id is not None:
        api.central.get_pool(context, pool_id)
        check_rule(req, CREATE_IN_POOL, 'choose the pool of a zone')


def _named_pool(attributes: str) -> str | None:
    """The pool that *attributes*, as JSON, name."""
    named = json.loads(attributes or '{}').get(POOL_ID)
    return request_fields.identifier(f'attributes.{POOL_ID}', named) if named else None


def _small_file(field: str, text: str) -> bytes:
    content = text.encode('utf-8', 'surrogatepass')
    if len(content) > TINY:
        raise InvalidField(field=field, why=f'larger than {TINY} bytes; import it by itself')
    try:
        return b''.join(validated([content]))
    except BadInput as error:
        raise InvalidField(field=field, why=error.kwargs['why']) from None
