"""``/status``: the status pages and their data."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import falcon

from designate_pool.api.auth.identity import pool_requester
from designate_pool.api.http import envelope, request
from designate_pool.api.resources.base import Api
from designate_pool.api.resources.zone_servers import explain_domain
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import ANYONE, OPERATOR, READER, Operations
from designate_pool.api.status import pages
from designate_pool.errors import SHARED, DomainNotFound, Forbidden, InvalidField, PoolError
from designate_pool.model import Audit, Context, Domain, Freeze, PageRequest, dashed, utcnow
from designate_pool.storage.operations import sweeps
from designate_pool.storage.reporting import dashboard
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import pools as pool_store, quotas

HTML = 'text/html; charset=utf-8'
#: A page may load its own style and script, and itself again; nothing from other sites.
POLICY = ("default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
          "form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
CHANGES, FAILURES, PROGRAMS, VERSIONS = 50, 20, 100, 10
#: Zones of one name that are looked at.
_PAGE = 100
OPERATIONS = Operations('status')


def answer_error(req: falcon.Request, resp: falcon.Response, error: PoolError, params: Any) -> None:
    """As :func:`designate_pool.api.http.envelope.answer_error`; of the status pages, as a page if it is a browser."""
    envelope.answer_error(req, resp, error, params)
    if f'{req.path}/'.startswith('/status/') and 'text/html' in (req.get_header('Accept') or ''):
        title = 'This cannot be shown' if error.code < 500 else 'The pool cannot be asked'
        _send(resp, pages.fault_page(title, str(error), req.root_path, utcnow()))


@OPERATIONS.add('GET', '/status', 'Show the status page of a pool', OPERATOR, {200: None}, answer_media='text/html',
                query={'pool': request_fields.RequestField(request_fields.some_text)})
def show_status(api: Api, req: falcon.Request, resp: falcon.Response) -> None:
    name, context = request.query(req).get('pool', api.pool_name), pool_requester(req)
    reports = api.central.report_servers(context, name)
    pools = {pool.name: pool for pool, _ in api.storage.read(pool_store.every)}
    others = {other: (api.central.report_servers(context, other), len(api.storage.read(
        dashboard.in_error, other, FAILURES, context.scope))) for other in pools if other != name}
    freeze = Freeze.parse(pools[name].freeze) if name in pools else None
    programs = api.central.find_service_statuses(context, PageRequest(limit=PROGRAMS))
    server_ids = [report.server.id for report in reports]
    changes, failures, rounds, in_error = api.storage.read(_read, name, server_ids, context.scope)
    _send(resp, pages.pool_page(pages.PoolState(name, reports, changes, failures, programs, rounds, others, freeze,
                                                in_error), req.root_path, utcnow()))


@OPERATIONS.add('GET', '/status/zones', "Redirect to a zone's status page", READER, {303: None}, query={
    'name': request_fields.RequestField(request_fields.some_text, required=True)})
def find_status_of_zone(api: Api, req: falcon.Request, resp: falcon.Response) -> None:
    domain = _find_by_name(api, pool_requester(req), request.query(req)['name'].strip())
    resp.location = f'{req.root_path}/status/zones/{quote(dashed(domain.id))}'


@OPERATIONS.add('GET', '/status/zones/{zone}', 'Show the status page of a zone, by its name or id', READER, {200: None},
                answer_media='text/html')
def show_status_of_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone: str) -> None:
    request.query(req)
    context = pool_requester(req)
    try:
        domain = api.central.get_domain(context, request_fields.identifier('zone', zone))
    except InvalidField:
        domain = _find_by_name(api, context, zone)
    if not context.sees(domain.project_id):
        raise Forbidden(what=f'see the state of {domain.name}', why=SHARED)
    explained = explain_domain(api, context, domain, req.prefix)
    count = api.storage.read(quotas.count_recordsets, domain.id, pages.COUNTED, True)
    versions = api.central.find_versions(context, domain.id, VERSIONS)
    _send(resp, pages.zone_page(domain, explained, count, versions, req.root_path, utcnow()))


@OPERATIONS.add('GET', '/status/refresh.js', 'Fetch the script that refreshes the status pages', ANYONE, {200: None},
                'show_status_script', answer_media='text/javascript')
@OPERATIONS.add('GET', '/status/style.css', 'Fetch the style sheet of the status pages', ANYONE, {200: None},
                'show_status_style', answer_media='text/css')
def show_file(api: Api, req: falcon.Request, resp: falcon.Response) -> None:
    resp.content_type = f'{req.context.operation.answer_media}; charset=utf-8'
    resp.set_header('Cache-Control', 'max-age=300')
    resp.set_header('X-Content-Type-Options', 'nosniff')
    resp.text = _content(req.path.rpartition('/')[2])


def _find_by_name(api: Api, context: Context, name: str) -> Domain:
    zone_name = name.lower().rstrip('.') + '.'
    # A star would match anything; no zone has one in its name.  Besides the zone that lives there may be some that are
    # still being deleted.
    page = PageRequest({'name': zone_name}, limit=_PAGE, sort_key='created_at', sort_dir='desc')
    matches = [] if '*' in zone_name else api.central.find_domains(context, page)
    if not matches:
        raise DomainNotFound(domain=request_fields.printable(name))
    return max(matches, key=lambda domain: domain.generation)


@functools.cache
def _content(name: str) -> str:
    return importlib.resources.files('designate_pool.api.status').joinpath(name).read_text('utf-8')


def _read(tx: Tx, pool_name: str, server_ids: Sequence[str], project_id: str | None
          ) -> tuple[list[dashboard.RecentChange], list[dashboard.RecentFailure], list[Audit], list[tuple[str, str]]]:
    return (dashboard.recent_changes(tx, pool_name, CHANGES, project_id),
            dashboard.failures(tx, server_ids, FAILURES, project_id),
            sweeps.of_pool(tx, pool_name),
            dashboard.in_error(tx, pool_name, FAILURES, project_id))


def _send(resp: falcon.Response, page: str) -> None:
    resp.content_type = HTML
    resp.set_header('Content-Security-Policy', POLICY)
    resp.set_header('X-Content-Type-Options', 'nosniff')
    resp.set_header('Referrer-Policy', 'same-origin')
    resp.set_header('Cache-Control', 'no-store')
    resp.text = page
