"""``/v2/zones/{zone_id}/wait``: answers as soon as enough servers have a change."""

from __future__ import annotations

import time
from collections.abc import Callable

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.http.limits import PLACE, Place
from designate_pool.api.resources.base import available
from designate_pool.api.resources.zones.zone_servers import StatusReader
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import READER, ApiOperation, Schema
from designate_pool.api.schema.response_types import COUNT, FLAG, ID, SERIAL, TEXT, TEXTS
from designate_pool.api.services import wait_verdict
from designate_pool.api.services.wait_verdict import WaitTarget, WaitVerdict, ZoneState
from designate_pool.api.services.zone_watcher import ZoneWatcher
from designate_pool.api.views.designate import Json
from designate_pool.errors import DomainNotFound, InvalidField, ServiceUnavailable, TooManyWaits
from designate_pool.model import Context, Domain, ServerState, Status, dashed

MOST_SECONDS = 300
DEFAULT_SECONDS = 30.0
#: Seconds after which to ask again when too many are waiting.
RETRY_AFTER = 5

QUERY = {
    'serial': request_fields.RequestField(request_fields.serial),
    'servers': request_fields.RequestField(request_fields.number_from(1, 9999)),
    'timeout': request_fields.RequestField(request_fields.seconds_up_to(MOST_SECONDS)),
}
OPERATIONS = (
    ApiOperation('wait_for_zone', 'GET', '/v2/zones/{zone_id}/wait',
                 'Wait until enough servers serve a serial of a zone, or until a zone that is being deleted is gone',
                 READER, {200: 'ZoneWait'}, query=QUERY),
)
SCHEMAS: dict[str, Schema] = {
    'ZoneWait': {
        'type': 'object',
        'description': 'How a wait ended. One that ended with none of done, failed and timed_out does not exist.',
        'required': ['zone_id', 'zone_name', 'serial', 'zone_serial', 'reported_serial', 'status', 'action', 'needed',
                     'current', 'servers_current', 'done', 'timed_out', 'failed', 'seconds'],
        'properties': {
            'zone_id': ID,
            'zone_name': TEXT,
            'serial': {**SERIAL, 'description': 'What was waited for.'},
            'zone_serial': {**SERIAL, 'description': "The zone's own by now."},
            'reported_serial': {'type': ['integer', 'null'], 'description': 'The newest that the pool agreed on.'},
            'status': {'enum': [status.value for status in Status]},
            'action': {'enum': ['NONE', 'CREATE', 'UPDATE', 'DELETE']},
            'needed': {'type': ['integer', 'null'], 'minimum': 1,
                       'description': 'How many servers were waited for; null where the threshold is not known.'},
            'current': {**COUNT, 'description': 'How many of the servers that count have what was waited for.'},
            'servers_current': {**TEXTS, 'description': 'Their names.'},
            'done': FLAG,
            'timed_out': FLAG,
            'failed': {'type': 'boolean',
                       'description': 'The pool says ERROR, or the zone is being deleted meanwhile.'},
            'seconds': {'type': 'number', 'minimum': 0, 'description': 'How long the wait took.'},
        },
    },
}


class ZoneWaitResource:
    """
    :param watcher: None where the API has no database
    """

    def __init__(self, status_reader: StatusReader, watcher: ZoneWatcher | None) -> None:
        self._central = status_reader.central
        self._watcher = watcher

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        began = time.monotonic()
        parameters = request.query(req, QUERY)
        watcher = available(self._watcher)
        domain = self._domain(watcher, requester(req), zone_id)
        self._refuse_too_many(requester(req), domain, parameters.get('servers'))
        deletion = domain.is_going
        target = WaitTarget(zone_id, domain.serial if deletion else parameters.get('serial', domain.serial),
                            parameters.get('servers'), deletion)
        place: Place | None = req.env.get(PLACE)
        if place is not None:
            place.leave()
        try:
            state, verdict = watcher.wait(target, parameters.get('timeout', DEFAULT_SECONDS), _is_gone(req),
                                          requester(req).project_id)
        except (TooManyWaits, ServiceUnavailable):
            resp.set_header('Retry-After', str(RETRY_AFTER))
            raise
        answer(resp, self._shown(target, domain, state, verdict, time.monotonic() - began))

    def _domain(self, watcher: ZoneWatcher, context: Context, domain_id: str) -> Domain:
        """The zone that the requester may see, also if it has been deleted just now."""
        try:
            return self._central.get_domain(context, domain_id)
        except DomainNotFound:
            last = watcher.state_of(domain_id).domain
            if last is None or last.status is not Status.DELETED or not context.sees(last.project_id):
                raise
            return last

    def _refuse_too_many(self, context: Context, domain: Domain, wanted: int | None) -> None:
        if wanted is None:
            return
        servers = [server for server in self._central.find_servers(context, domain.pool_name)
                   if server.state not in (ServerState.DRAINING, ServerState.REMOVED)]
        if wanted > len(servers):
            raise InvalidField(field='servers',
                               why=f'the pool of {domain.name} has no more than {len(servers)} servers')

    def _shown(self, wanted: WaitTarget, before: Domain, state: ZoneState, verdict: WaitVerdict,
               waited: float) -> Json:
        domain = state.domain or before
        have = wait_verdict.current(wanted, state)
        gone = state.domain is None or domain.status is Status.DELETED
        return {
            'zone_id': dashed(domain.id),
            'zone_name': domain.name,
            'serial': wanted.serial,
            'zone_serial': domain.serial,
            'reported_serial': domain.reported_serial,
            'status': Status.DELETED.value if gone else domain.status.value,
            'action': domain.action.value,
            'needed': wanted.servers or wait_verdict.needed(state),
            'current': len(have),
            'servers_current': [server.label for server in have],
            'done': verdict.done,
            'timed_out': not verdict.over,
            'failed': verdict.failed,
            'seconds': round(waited, 3),
        }


def _is_gone(req: falcon.Request) -> Callable[[], bool]:
    asked: Callable[[], bool] = req.env.get('waitress.client_disconnected', lambda: False)
    return asked
