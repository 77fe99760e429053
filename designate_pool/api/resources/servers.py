"""``/v2/servers``: the servers of all pools, and commands to them."""

from __future__ import annotations

import falcon

from designate_pool.api.auth.identity import pool_requester
from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, calls
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (ACTION, COUNT, FLAG, ID, MOMENT, REASON, SERIAL, TEXT, TEXTS, VERSIONED,
                                               AnswerForm, Json, ListAnswer, maybe, rows)
from designate_pool.api.schema.operation import OPERATOR, Operations
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.api.views.zone_servers import SERVER_IDENTITY
from designate_pool.errors import Conflict
from designate_pool.model import Comparison, Reloaded, ServerReport, dashed
from designate_pool.storage.zones import pools as pool_store

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
    'zones': COUNT.of('domains').about('Zones of its pool.'),
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
OPERATIONS = Operations('servers')
OPERATIONS.add('POST', f'{_ONE}/maintenance', 'Put a server into maintenance until it is resumed', OPERATOR,
               {202: SERVER}, 'rest_server', body={}, body_optional=True)(calls(lambda central: central.rest_server))
OPERATIONS.add('POST', f'{_ONE}/resume', 'Resume a server: it catches up and counts again', OPERATOR, {202: SERVER},
               'resume_server', body={}, body_optional=True)(calls(lambda central: central.resume_server))
OPERATIONS.add('POST', f'{_ONE}/drain', 'Drain a server: take it out of the pool', OPERATOR, {202: SERVER},
               'drain_server', body=request_fields.SERVER_DRAIN, body_optional=True)(
    calls(lambda central: central.drain_server))


@OPERATIONS.add('GET', '/v2/servers', 'List the servers of all pools with their state', OPERATOR, {200: SERVERS},
                query=FILTERS)
def list_servers(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    pool_id, context = request.query(req).get('pool_id'), requester(req)
    pools = [pool for pool, _ in api.storage.read(pool_store.every)] if pool_id is None else [
        api.central.get_pool(context, pool_id)]
    reports = [report for pool in pools for report in api.central.report_servers(context, pool.name)]
    return {'servers': [_reported(report, req.prefix) for report in reports], 'links': {'self': req.url}}


@OPERATIONS.add('POST', '/v2/servers/reload', "Read a pool's servers from its configuration again", OPERATOR,
                {200: RELOADED}, body=FILTERS, body_optional=True)
def reload_servers(api: Api, req: falcon.Request, resp: falcon.Response) -> Reloaded:
    pool_id = request.body(req).get('pool_id')
    name = api.pool_name
    if pool_id is not None:
        pool = api.central.get_pool(requester(req), pool_id)
        if pool.published_at is None:
            raise Conflict(why=f'no pool manager was ever started for the pool {pool.name}')
        name = pool.name
    return api.pool_managers.reload_servers(requester(req), name)


@OPERATIONS.add('GET', _ONE, 'Show a server with its state and failures', OPERATOR, {200: SERVER_REPORT})
def show_server(api: Api, req: falcon.Request, resp: falcon.Response, server_id: str) -> Json:
    return _reported(api.central.report_server(pool_requester(req), server_id), req.prefix)


@OPERATIONS.add('POST', _ONE + '/resync', 'Compare a server with the database, and repair it if asked to', OPERATOR,
                {200: COMPARISON, 202: COMPARISON}, body=request_fields.SERVER_RESYNC, body_optional=True)
def resync_server(api: Api, req: falcon.Request, resp: falcon.Response, server_id: str) -> Comparison:
    options = request.body(req)
    server = api.central.report_server(requester(req), server_id).server
    pool = api.central.get_pool(requester(req), server.pool_id)
    comparison = api.pool_managers.compare_server(pool_requester(req), pool.name, server_id, **options)
    if comparison.mending:
        resp.status = 202
    return comparison


def _reported(report: ServerReport, base: str) -> Json:
    return SERVER_REPORT.show(report, base, **SERVER.show(report.server))
