"""``/v2/zones/{zone_id}/wait``: an answer as soon as enough servers have a change."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, asker
from designate_pool.api.http.server import ASIDE
from designate_pool.api.resources.zones.zone_servers import StatusReader
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import READER, ApiOperation, Schema
from designate_pool.api.services import wait_verdict
from designate_pool.api.services.wait_verdict import WaitTarget, WaitVerdict, ZoneState
from designate_pool.api.services.zone_watcher import ZoneWatcher
from designate_pool.api.views.designate import Json, dashed
from designate_pool.errors import DomainNotFound, InvalidField, ServiceUnavailable, TooManyWaits
from designate_pool.model import Context, Domain, ServerState, Status
from designate_pool.serial import SPACE

LONGEST = 300
USUAL = 30.0
#: Seconds after which to ask again when too many are waiting.
RETRY_AFTER = 5

QUERY = {
    'serial': request_fields.RequestField(request_fields.serial),
    'servers': request_fields.RequestField(request_fields.number_from(1, 9999)),
    'timeout': request_fields.RequestField(request_fields.seconds_up_to(LONGEST)),
}
OPERATIONS = (
    ApiOperation('wait_for_zone', 'GET', '/v2/zones/{zone_id}/wait',
                 'Wait until enough servers serve a serial of a zone, or until a zone that is being deleted is gone',
                 READER, {200: 'ZoneWait'}, query=QUERY),
)
_ID = {'type': 'string', 'format': 'uuid'}
_SERIAL = {'type': 'integer', 'minimum': 0, 'maximum': SPACE - 1}
_COUNT = {'type': 'integer', 'minimum': 0}
SCHEMAS: dict[str, Schema] = {
    'ZoneWait': {
        'type': 'object',
        'description': 'How a wait ended. One that ended with none of done, failed and timed_out does not exist.',
        'required': ['zone_id', 'zone_name', 'serial', 'zone_serial', 'reported_serial', 'status', 'action', 'needed',
                     'current', 'servers_current', 'done', 'timed_out', 'failed', 'seconds'],
        'properties': {
            'zone_id': _ID,
            'zone_name': {'type': 'string'},
            'serial': {**_SERIAL, 'description': 'What was waited for.'},
            'zone_serial': {**_SERIAL, 'description': "The zone's own by now."},
            'reported_serial': {'type': ['integer', 'null'], 'description': 'The newest that the pool agreed on.'},
            'status': {'enum': [each.value for each in Status]},
            'action': {'enum': ['NONE', 'CREATE', 'UPDATE', 'DELETE']},
            'needed': {'type': ['integer', 'null'], 'minimum': 1,
                       'description': 'How many servers were waited for; null where the threshold is not known.'},
            'current': {**_COUNT, 'description': 'How many of the servers that count have what was waited for.'},
            'servers_current': {'type': 'array', 'items': {'type': 'string'}, 'description': 'Their names.'},
            'done': {'type': 'boolean'},
            'timed_out': {'type': 'boolean'},
            'failed': {'type': 'boolean',
                       'description': 'The pool says ERROR, or the zone is being deleted meanwhile.'},
            'seconds': {'type': 'number', 'minimum': 0, 'description': 'How long the wait took.'},
        },
    },
}


class ZoneWaitResource:
    """
    :param watch: None where the API has no database to look at
    """

    def __init__(self, gatherer: StatusReader, watch: ZoneWatcher | None) -> None:
        self._central = gatherer.central
        self._watch = watch

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        began = time.monotonic()
        domain_id = request_fields.identifier('zone_id', zone_id)
        given = request.query(req, QUERY)
        if self._watch is None:
            raise ServiceUnavailable(service='the database', why='this API was given none to look at')
        domain = self._domain(self._watch, asker(req), domain_id)
        self._refuse_too_many(asker(req), domain, given.get('servers'))
        deletion = domain.is_going
        wanted = WaitTarget(domain_id, domain.serial if deletion else given.get('serial', domain.serial),
                            given.get('servers'), deletion)
        with req.env.get(ASIDE, contextlib.nullcontext)():
            try:
                standing, verdict = self._watch.wait(wanted, given.get('timeout', USUAL), _is_gone(req),
                                                     asker(req).project_id)
            except (TooManyWaits, ServiceUnavailable):
                resp.set_header('Retry-After', str(RETRY_AFTER))
                raise
        answer(resp, self._shown(wanted, domain, standing, verdict, time.monotonic() - began))

    def _domain(self, watch: ZoneWatcher, context: Context, domain_id: str) -> Domain:
        """What may be seen, or could be before it was deleted: who waits for that may come late."""
        try:
            return self._central.get_domain(context, domain_id)
        except DomainNotFound:
            last = watch.standing(domain_id).domain
            if last is None or last.status is not Status.DELETED or not context.sees(last.project_id):
                raise
            return last

    def _refuse_too_many(self, context: Context, domain: Domain, wanted: int | None) -> None:
        if wanted is None:
            return
        there = [each for each in self._central.find_servers(context, domain.pool_name)
                 if each.state not in (ServerState.DRAINING, ServerState.REMOVED)]
        if wanted > len(there):
            raise InvalidField(field='servers', why=f'the pool of {domain.name} has no more than {len(there)} servers')

    def _shown(self, wanted: WaitTarget, before: Domain, standing: ZoneState, verdict: WaitVerdict,
               waited: float) -> Json:
        domain = standing.domain or before
        have = wait_verdict.current(wanted, standing)
        gone = standing.domain is None or domain.status is Status.DELETED
        return {
            'zone_id': dashed(domain.id),
            'zone_name': domain.name,
            'serial': wanted.serial,
            'zone_serial': domain.serial,
            'reported_serial': domain.reported_serial,
            'status': Status.DELETED.value if gone else domain.status.value,
            'action': domain.action.value,
            'needed': wanted.servers or wait_verdict.needed(standing),
            'current': len(have),
            'servers_current': [each.label for each in have],
            'done': verdict.done,
            'timed_out': not verdict.over,
            'failed': verdict.failed,
            'seconds': round(waited, 3),
        }


def _is_gone(req: falcon.Request) -> Callable[[], bool]:
    asked: Callable[[], bool] = req.env.get('waitress.client_disconnected', lambda: False)
    return asked
