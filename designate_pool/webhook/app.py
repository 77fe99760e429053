"""The HTTP interface that external-dns expects of a provider: negotiate, records, adjust, apply.

Nothing is kept between requests.  Statuses tell external-dns what to do: it tries again what failed with a number from
500 on, and gives up what failed with one below.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Collection
from typing import Any

import falcon

from designate_pool.errors import BadInput, PlanMoved, PoolError
from designate_pool.planner import changes
from designate_pool.planner.plan import Plan
from designate_pool.planner.targets.pool import PoolProvider
from designate_pool.planner.zone import Zone
from designate_pool.webhook import endpoints

LOG = logging.getLogger(__name__)

MEDIA_TYPE = 'application/external.dns.webhook+json;version=1'
#: Bytes; some 100,000 endpoints.
LARGEST_BODY = 64 << 20
#: Made from the pool, so nothing for external-dns.
_FROM_POOL = ('SOA', 'NS')


def create_app(new_pool: Callable[[], PoolProvider], zones: Collection[str] = (),
               default_ttl: int = 300) -> falcon.App[Any, Any]:
    """The webhook as a WSGI application.

    :param new_pool: the pool, anew for each request: it remembers what was read, so that nothing else is overwritten
    :param zones: names of the zones that are shown; empty for all that the pool has
    :param default_ttl: seconds, for new records that are given none
    """
    app: falcon.App[Any, Any] = falcon.App()
    app.add_error_handler(Exception, _unexpected)
    app.add_error_handler(falcon.HTTPError, _of_falcon)
    app.add_error_handler(PoolError, _refused)
    served = _Served(new_pool, zones, default_ttl)
    app.add_route('/', Negotiation(served))
    app.add_route('/records', Records(served))
    app.add_route('/adjustendpoints', Adjustment())
    app.add_route('/healthz', Health(served))
    return app


class _Served:
    """The zones that are shown."""

    def __init__(self, new_pool: Callable[[], PoolProvider], zones: Collection[str], default_ttl: int) -> None:
        self.new_pool = new_pool
        self.default_ttl = default_ttl
        self._zones = tuple(zones)

    def names(self, pool: PoolProvider) -> list[str]:
        return list(self._zones) or pool.list_zones()

    def read(self, pool: PoolProvider) -> dict[str, Zone]:
        """Every zone with its contents.

        :raises SourceError: when one cannot be read
        :raises BadInput: when one is not there
        """
        found = {}
        for name in self.names(pool):
            zone = Zone(name)
            if not pool.populate(zone, target=True, lenient=True):
                raise BadInput(why=f'the pool has no zone {name}')
            found[name] = zone
        return found


class Negotiation:
    """Which zones there are."""

    def __init__(self, served: _Served) -> None:
        self._served = served

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        if not req.client_accepts(MEDIA_TYPE) and MEDIA_TYPE not in req.accept.replace(' ', ''):
            raise falcon.HTTPNotAcceptable(description=f'what is spoken here is {MEDIA_TYPE}')
        with contextlib.closing(self._served.new_pool()) as pool:
            _answer(resp, {'include': [name.removesuffix('.') for name in self._served.names(pool)]})


class Records:
    """What is there, and changes of it."""

    def __init__(self, served: _Served) -> None:
        self._served = served

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        with contextlib.closing(self._served.new_pool()) as pool:
            _answer(resp, [endpoints.endpoint_of(found) for zone in self._served.read(pool).values() for found in zone
                           if not (found.type in _FROM_POOL and found.name == zone.name)])

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Each zone's changes are made at one serial; those of another zone may be made or not when one fails."""
        given = _body(req)
        with contextlib.closing(self._served.new_pool()) as pool:
            before = self._served.read(pool)
            after = {name: zone.copy() for name, zone in before.items()}
            endpoints.apply_changes(after, self._served.default_ttl, given)
            for name, existing in before.items():
                if wanted := changes.between(existing, after[name]):
                    _apply(pool, Plan(existing, after[name], wanted, exists=True, target_id=pool.id))
        resp.status = falcon.HTTP_204


class Adjustment:
    """Endpoints in the form in which they will be told of: what differs in form alone is no change then."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        _answer(resp, endpoints.adjusted(_body(req)))


class Health:
    """200 when the pool's API answers."""

    def __init__(self, served: _Served) -> None:
        self._served = served

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        with contextlib.closing(self._served.new_pool()) as pool:
            pool.list_zones()
        resp.text = 'ok\n'
        resp.content_type = falcon.MEDIA_TEXT


def _apply(pool: PoolProvider, plan: Plan) -> None:
    """
    :raises BadInput: when the pool does not take the changes
    """
    result = pool.apply(plan)
    if not result.ok:
        raise BadInput(why=f'the pool does not take the changes of {plan.zone}: {"; ".join(result.errors)}')
    LOG.info('%s: %d changes', plan.zone, result.applied)


def _answer(resp: falcon.Response, content: Any) -> None:
    resp.content_type = MEDIA_TYPE
    resp.text = json.dumps(content)


def _body(req: falcon.Request) -> Any:
    content = req.bounded_stream.read(LARGEST_BODY + 1)
    if len(content) > LARGEST_BODY:
        raise BadInput(why=f'the body is longer than {LARGEST_BODY} bytes')
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadInput(why=f'the body is not JSON ({error})') from None


def _refused(req: falcon.Request, resp: falcon.Response, error: PoolError, params: Any) -> None:
    # What moved meanwhile, or cannot be reached now, may be there the next time.
    again = isinstance(error, PlanMoved) or error.code >= 500
    code = 503 if again else error.code
    LOG.log(logging.WARNING if again else logging.ERROR, '%s %s: %s', req.method, req.path, error)
    _tell(resp, code, str(error))


def _of_falcon(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: Any) -> None:
    _tell(resp, error.status_code, error.description or error.title or '')
    resp.set_headers(error.headers or {})


def _unexpected(req: falcon.Request, resp: falcon.Response, error: Exception, params: Any) -> None:
    LOG.exception('%s %s failed', req.method, req.path, exc_info=error)
    _tell(resp, 500, 'it failed; the log says more')


def _tell(resp: falcon.Response, code: int, why: str) -> None:
    resp.status = code
    resp.content_type = falcon.MEDIA_TEXT
    resp.text = f'{why}\n'
