"""``/healthz`` and which versions there are."""

from __future__ import annotations

import logging
import threading

import falcon

from designate_pool import __version__
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.schema.operation import ANYONE, ApiOperation, Schema
from designate_pool.api.schema.response_types import LINK, TEXT, shape
from designate_pool.central.service import Central
from designate_pool.errors import PoolError
from designate_pool.model import Context

LOG = logging.getLogger(__name__)
OPERATIONS = (
    ApiOperation('list_versions', 'GET', '/', 'List the versions of the API', ANYONE, {200: 'Versions'}),
    ApiOperation('show_version', 'GET', '/v2', 'Show version 2 of the API', ANYONE, {200: 'OneVersion'}),
    ApiOperation('show_document', 'GET', '/openapi.json', 'Show this document', ANYONE, {200: 'Document'}),
    ApiOperation('show_health', 'GET', '/healthz', 'Tell whether the API can do its work', ANYONE,
                 {200: 'Health', 503: 'Health'}),
)
#: With the time of their last change: 2.1 has shared zones, 2.2 SVCB and HTTPS, 2.3 TLSA, 2.4 imports with attributes.
_VERSIONS = {'v2': '2022-06-29T00:00:00Z', 'v2.0': '2022-06-29T00:00:00Z', 'v2.1': '2023-01-25T00:00:00Z',
             'v2.2': '2025-08-25T00:00:00Z', 'v2.3': '2026-04-06T00:00:00Z', 'v2.4': '2026-04-13T00:00:00Z'}
_CURRENT = 'v2.4'
_VERSION = shape({
    'id': TEXT,
    'status': {'type': 'string', 'enum': ['CURRENT', 'SUPPORTED']},
    'updated': TEXT,
    'links': {'type': 'array', 'items': shape({'href': LINK, 'rel': TEXT})},
})
SCHEMAS: dict[str, Schema] = {
    'Versions': shape({'versions': {'type': 'array', 'items': _VERSION}}),
    'OneVersion': shape({'version': _VERSION}),
    'Document': {'type': 'object', 'required': ['openapi', 'info', 'paths'],
                 'description': 'A document of OpenAPI 3.1.'},
    'Health': shape({'version': TEXT, 'status': {'type': 'string', 'enum': ['ok', 'unavailable']}, 'central': TEXT}),
}


class HealthResource:
    """200 when Central answers, else 503.

    A call to a silent Central blocks until it times out.  So only one check calls Central at a time; others that arrive
    meanwhile return the last result, so that checks cannot use up the threads.
    """

    def __init__(self, central: Central) -> None:
        self._central = central
        self._asking = threading.Lock()
        self._fault: str | None = 'it has not answered yet'

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        if self._asking.acquire(blocking=False):
            try:
                self._fault = self._ask(requester(req))
            finally:
                self._asking.release()
        fault = self._fault
        answer(resp, {'version': __version__, 'status': 'unavailable' if fault else 'ok', 'central': fault or 'ok'},
               503 if fault else 200)

    def _ask(self, context: Context) -> str | None:
        try:
            self._central.find_pools(context, limit=1)
        except PoolError as error:
            return str(error)
        except Exception as error:  # any failure means that Central is not healthy
            LOG.exception('Central failed the health check')
            return f'it failed ({type(error).__name__})'
        return None


class VersionsResource:
    """As Designate has it: keystoneauth takes its address of version 2 from here, and no other version is like it."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer(resp, {'versions': [_version(req, version) for version in _VERSIONS]})

    def on_get_v2(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer(resp, {'version': _version(req, _CURRENT)})


def _version(req: falcon.Request, name: str) -> dict[str, object]:
    return {'id': name, 'status': 'CURRENT' if name == _CURRENT else 'SUPPORTED', 'updated': _VERSIONS[name],
            'links': [{'href': f'{req.prefix}/v2', 'rel': 'self'},
                      {'href': f'{req.prefix}/openapi.json', 'rel': 'describedby'}]}
