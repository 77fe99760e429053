"""``/status``: the status pages and their data."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import falcon

from designate_pool.api.auth.identity import pool_requester
from designate_pool.api.http import request
from designate_pool.api.resources.base import available
from designate_pool.api.resources.zone_servers import StatusReader
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import ANYONE, OPERATOR, READER, ApiOperation
from designate_pool.api.status import pages
from designate_pool.errors import SHARED, DomainNotFound, Forbidden, InvalidField, PoolError
from designate_pool.model import Audit, Context, Domain, PageRequest, dashed, utcnow
from designate_pool.storage.operations import sweeps
from designate_pool.storage.reporting import dashboard
from designate_pool.storage.sql.database import Storage, Tx

HTML = 'text/html; charset=utf-8'
#: A page may load its own style and script, and itself again; nothing from other sites.
POLICY = ("default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
          "form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
CHANGES, FAILURES, PROGRAMS = 50, 20, 100
#: Zones of one name that are looked at.
_PAGE = 100
_FILES = {'style.css': 'text/css; charset=utf-8', 'refresh.js': 'text/javascript; charset=utf-8'}
_POOL_QUERY = {'pool': request_fields.RequestField(request_fields.some_text)}
_SEARCH = {'name': request_fields.RequestField(request_fields.some_text, required=True)}

OPERATIONS = (
    ApiOperation('show_status', 'GET', '/status', 'Show the status page of a pool', OPERATOR, {200: None},
                 query=_POOL_QUERY, answer_media='text/html'),
    ApiOperation('find_status_of_zone', 'GET', '/status/zones', "Redirect to a zone's status page", READER, {303: None},
                 query=_SEARCH),
    ApiOperation('show_status_of_zone', 'GET', '/status/zones/{zone}',
                 'Show the status page of a zone, by its name or id', READER, {200: None}, answer_media='text/html'),
    ApiOperation('show_status_style', 'GET', '/status/style.css', 'Fetch the style sheet of the status pages', ANYONE,
                 {200: None}, answer_media='text/css'),
    ApiOperation('show_status_script', 'GET', '/status/refresh.js', 'Fetch the script that refreshes the status pages',
                 ANYONE, {200: None}, answer_media='text/javascript'),
)


def as_page(work: Callable[..., None]) -> Callable[..., None]:
    """Answer errors of *work* as a page with the same status, if the client is a browser."""
    @functools.wraps(work)
    def answered(self: Any, req: falcon.Request, resp: falcon.Response, **given: Any) -> None:
        try:
            work(self, req, resp, **given)
        except PoolError as error:
            if 'text/html' not in (req.get_header('Accept') or ''):
                raise
            title = 'This cannot be shown' if error.code < 500 else 'The pool cannot be asked'
            _send(resp, pages.fault_page(title, str(error), req.root_path, utcnow()), error.code)
    return answered


class PoolPage:
    """
    :param pool_name: the pool that is shown unless another is asked for
    """

    def __init__(self, status_reader: StatusReader, storage: Storage | None, pool_name: str) -> None:
        self._status_reader = status_reader
        self._storage = storage
        self._pool_name = pool_name

    @as_page
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        name = request.query(req, _POOL_QUERY).get('pool', self._pool_name)
        storage = available(self._storage)
        central, context = self._status_reader.central, pool_requester(req)
        reports = central.report_servers(context, name)
        others = {pool.name: central.report_servers(context, pool.name) for pool in self._status_reader.pools(context)
                  if pool.name != name}
        programs = central.find_service_statuses(context, PageRequest(limit=PROGRAMS))
        server_ids = [report.server.id for report in reports]
        changes, failures, rounds = storage.read(_read, name, server_ids, context.scope)
        _send(resp, pages.pool_page(pages.PoolState(name, reports, changes, failures, programs, rounds, others),
                                    req.root_path, utcnow()))


class ZonePage:
    def __init__(self, status_reader: StatusReader, storage: Storage | None) -> None:
        self._status_reader = status_reader
        self._storage = storage

    @as_page
    def on_get(self, req: falcon.Request, resp: falcon.Response, zone: str) -> None:
        request.query(req, {})
        domain = self._find(pool_requester(req), zone)
        if not pool_requester(req).sees(domain.project_id):
            raise Forbidden(what=f'see the state of {domain.name}', why=SHARED)
        explained = self._status_reader.explained(pool_requester(req), domain, req.prefix)
        count = None if self._storage is None else self._storage.read(dashboard.count_recordsets, domain.id,
                                                                      pages.COUNTED)
        _send(resp, pages.zone_page(domain, explained, count, req.root_path, utcnow()))

    def _find(self, context: Context, zone: str) -> Domain:
        try:
            return self._status_reader.central.get_domain(context, request_fields.identifier('zone', zone))
        except InvalidField:
            return find_by_name(self._status_reader, context, zone)


class ZoneSearch:
    """Redirects from a name that was typed to the page of the zone."""

    def __init__(self, status_reader: StatusReader) -> None:
        self._status_reader = status_reader

    @as_page
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        name = request.query(req, _SEARCH)['name'].strip()
        domain = find_by_name(self._status_reader, pool_requester(req), name)
        resp.status = 303
        resp.location = f'{req.root_path}/status/zones/{quote(dashed(domain.id))}'


class Files:
    """The style and the script."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        name = req.path.rpartition('/')[2]
        resp.content_type = _FILES[name]
        resp.set_header('Cache-Control', 'max-age=300')
        resp.set_header('X-Content-Type-Options', 'nosniff')
        resp.text = _content(name)


def find_by_name(status_reader: StatusReader, context: Context, name: str) -> Domain:
    """The requester's zone of a name, for the status pages.

    :raises DomainNotFound: when the requester sees none of this name
    """
    zone_name = name.lower().rstrip('.') + '.'
    # A star would match anything; no zone has one in its name.  Besides the zone that lives there may be some that are
    # still being deleted.
    page = PageRequest({'name': zone_name}, limit=_PAGE, sort_key='created_at', sort_dir='desc')
    matches = [] if '*' in zone_name else status_reader.central.find_domains(context, page)
    if not matches:
        raise DomainNotFound(domain=request_fields.printable(name))
    return max(matches, key=lambda each: each.generation)


@functools.cache
def _content(name: str) -> str:
    return importlib.resources.files('designate_pool.api.status').joinpath(name).read_text('utf-8')


def _read(tx: Tx, pool_name: str, server_ids: Sequence[str], project_id: str | None
          ) -> tuple[list[dashboard.RecentChange], list[dashboard.RecentFailure], list[Audit]]:
    return (dashboard.recent_changes(tx, pool_name, CHANGES, project_id),
            dashboard.failures(tx, server_ids, FAILURES, project_id),
            sweeps.of_pool(tx, pool_name))


def _send(resp: falcon.Response, page: str, status: int = 200) -> None:
    resp.status = status
    resp.content_type = HTML
    resp.set_header('Content-Security-Policy', POLICY)
    resp.set_header('X-Content-Type-Options', 'nosniff')
    resp.set_header('Referrer-Policy', 'same-origin')
    resp.set_header('Cache-Control', 'no-store')
    resp.text = page
