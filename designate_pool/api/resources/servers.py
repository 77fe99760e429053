"""``/v2/servers``: the servers of all pools, and commands to them."""

from __future__ import annotations

import falcon

from designate_pool.api.auth.identity import pool_requester
from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.zone_servers import StatusReader
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (ACTION, COUNT, FLAG, ID, MOMENT, REASON, SERIAL, TEXT, TEXTS, VERSIONED,
                                               AnswerForm, Json, ListAnswer, maybe, rows)
from designate_pool.api.schema.operation import OPERATOR, ApiOperation
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.api.views.zone_servers import SERVER_IDENTITY
from designate_pool.errors import Conflict
from designate_pool.model import PoolServer, ServerReport, dashed
from designate_pool.rpc.pool_manager import PoolManagerClient

_ONE = '/v2/servers/{server_id}'
FILTERS = {'pool_id': RequestField(request_fields.identifier)}
_SERVER = {
    **SERVER_IDENTITY,
    'pool_id': ID,
    'key_name': maybe(TEXT).about('Of the TSIG key that the configuration gives it.'),
    'verify': TEXTS.of(lambda server: server.verify.split(',') if server.verify else []).about(
        'The addresses that are asked which serials it serves; empty for its own.'),
    'joined_at': maybe(MOMENT),
    'filling': FLAG.of('is_filling').about('Whether it joins and is still being given the zones of the pool.'),
    'filled': COUNT.about('How many zones have been started on it since it began to join.'),
    'dismissed': FLAG.about('Drained by command: it stays out of the pool although its section is still in the '
                            'configuration.'),
    'delete_zones': FLAG.about('Whether draining deletes its zones.'),
    'note': maybe(TEXT),
    'reason': REASON.about('Why, for programs, where the note tells of a failure.'),
    **VERSIONED,
}
SERVER = AnswerForm('Server', _SERVER, {'self': lambda server: f'/v2/servers/{dashed(server.id)}'})
_WHY = {'zone_name': TEXT, 'why': TEXT}
SERVER_REPORT = AnswerForm('ServerReport', {
    **_SERVER,
    'domains': COUNT.about('Zones of its pool.'),
    'rows': maybe(COUNT).about('Operations on record for it, done ones too; null if not counted.'),
    'waiting': COUNT.about('Operations still to be done on it.'),
    'failing': COUNT.about('The waiting operations that are in ERROR.'),
    'in_hand': COUNT.about('The waiting operations that are under way.'),
    'oldest_due_at': maybe(MOMENT).of('oldest'),
    'failures': rows({'zone_name': TEXT, 'action': ACTION, 'error': maybe(TEXT)}),
}, {'self': lambda report: f'/v2/servers/{dashed(report.server.id)}'})
SERVERS = ListAnswer('Servers', 'servers', SERVER_REPORT)
COMPARISON = AnswerForm('Comparison', {
    'server_id': ID,
    'total': COUNT,
    'missing': TEXTS.about('Zones that it should have and has not.'),
    'behind': rows({'zone_name': TEXT, 'serial': maybe(SERIAL), 'expected_serial': SERIAL}).about(
        'Zones that it serves at an older serial.'),
    'extra': maybe(TEXTS).about('Zones that it has and should not have; null if not known.'),
    'extra_complete': FLAG.of(lambda comparison: comparison.extra is not None and comparison.extra_complete).about(
        'Whether it listed its zones; otherwise extra names only zones that the pool had before.'),
    'other': maybe(rows(_WHY)).about('Zones with the right serial and different contents; null if not compared.'),
    'unchecked': rows(_WHY).about('Zones whose contents could not be compared.'),
    'primary': maybe(TEXTS).about('Primary zones that it has and that are no zones here; null if not asked for.'),
    'mending': COUNT.about('Operations that were started to repair it.'),
    'deleted': COUNT.about('Extra zones that were deleted.'),
}, {'server': lambda comparison: f'/v2/servers/{dashed(comparison.server_id)}'})
RELOADED = AnswerForm('Reloaded', dict.fromkeys(('joined', 'changed', 'draining'), TEXTS))
OPERATIONS = (
    ApiOperation('list_servers', 'GET', '/v2/servers', 'List the servers of all pools with their state', OPERATOR,
                 {200: SERVERS}, query=FILTERS),
    ApiOperation('reload_servers', 'POST', '/v2/servers/reload', "Read a pool's servers from its configuration again",
                 OPERATOR, {200: RELOADED}, body=FILTERS, body_optional=True),
    ApiOperation('show_server', 'GET', _ONE, 'Show a server with its state and failures', OPERATOR,
                 {200: SERVER_REPORT}),
    ApiOperation('rest_server', 'POST', _ONE + '/maintenance', 'Put a server into maintenance until it is resumed',
                 OPERATOR, {202: SERVER}, body={}, body_optional=True),
    ApiOperation('resume_server', 'POST', _ONE + '/resume', 'Resume a server: it catches up and counts again', OPERATOR,
                 {202: SERVER}, body={}, body_optional=True),
    ApiOperation('drain_server', 'POST', _ONE + '/drain', 'Drain a server: take it out of the pool', OPERATOR,
                 {202: SERVER}, body=request_fields.SERVER_DRAIN, body_optional=True),
    ApiOperation('resync_server', 'POST', _ONE + '/resync',
                 'Compare a server with the database, and repair it if asked to', OPERATOR,
                 {200: COMPARISON, 202: COMPARISON}, body=request_fields.SERVER_RESYNC, body_optional=True),
)


class ServersResource:
    """
    :param pool_name: the pool whose configuration is read again when none is named
    """

    def __init__(self, status_reader: StatusReader, pool_managers: PoolManagerClient, pool_name: str) -> None:
        self._status_reader = status_reader
        self._pool_managers = pool_managers
        self._pool_name = pool_name

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        pool_id = request.query(req, FILTERS).get('pool_id')
        central, context = self._status_reader.central, requester(req)
        pools = self._status_reader.pools(context) if pool_id is None else [central.get_pool(context, pool_id)]
        reports = [report for pool in pools for report in central.report_servers(context, pool.name)]
        answer(resp, {'servers': [_reported(report, req.prefix) for report in reports],
                      'links': {'self': req.url}})

    def on_post_reload(self, req: falcon.Request, resp: falcon.Response) -> None:
        pool_id = request.body(req, FILTERS, optional=True).get('pool_id')
        name = self._pool_name
        if pool_id is not None:
            pool = self._status_reader.central.get_pool(requester(req), pool_id)
            if pool.published_at is None:
                raise Conflict(why=f'no pool manager was ever started for the pool {pool.name}')
            name = pool.name
        answer(resp, RELOADED.show(self._pool_managers.reload_servers(requester(req), name)))


class ServerResource:
    """One server; a command is stored when it is answered, and carried out afterwards."""

    def __init__(self, status_reader: StatusReader, pool_managers: PoolManagerClient) -> None:
        self._status_reader = status_reader
        self._central = status_reader.central
        self._pool_managers = pool_managers

    def on_get(self, req: falcon.Request, resp: falcon.Response, server_id: str) -> None:
        report = self._central.report_server(pool_requester(req), server_id)
        answer(resp, _reported(report, req.prefix))

    def on_post_maintenance(self, req: falcon.Request, resp: falcon.Response, server_id: str) -> None:
        request.body(req, {}, optional=True)
        _accept(req, resp, self._central.rest_server(requester(req), server_id))

    def on_post_resume(self, req: falcon.Request, resp: falcon.Response, server_id: str) -> None:
        request.body(req, {}, optional=True)
        _accept(req, resp, self._central.resume_server(requester(req), server_id))

    def on_post_drain(self, req: falcon.Request, resp: falcon.Response, server_id: str) -> None:
        options = request.body(req, request_fields.SERVER_DRAIN, optional=True)
        _accept(req, resp,
                self._central.drain_server(requester(req), server_id, **options))

    def on_post_resync(self, req: falcon.Request, resp: falcon.Response, server_id: str) -> None:
        options = request.body(req, request_fields.SERVER_RESYNC, optional=True)
        pool_name = self._status_reader.pool_of_server(requester(req), server_id)
        comparison = self._pool_managers.compare_server(pool_requester(req), pool_name, server_id, **options)
        answer(resp, COMPARISON.show(comparison, req.prefix), 202 if comparison.mending else 200)


def _accept(req: falcon.Request, resp: falcon.Response, server: PoolServer) -> None:
    answer(resp, SERVER.show(server, req.prefix), 202)


def _reported(report: ServerReport, base: str) -> Json:
    return SERVER_REPORT.show(report, base, **SERVER.show(report.server))
