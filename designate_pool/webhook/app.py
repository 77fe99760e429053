"""The HTTP interface that external-dns expects of a provider: negotiate, records, adjust, apply.

What is kept between requests is what zones held at a serial, so that only those are read again that have another one.
Statuses tell external-dns what to do: it tries again what failed with a number from
500 on, and gives up what failed with one below.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import falcon

from designate_pool import metrics
from designate_pool.errors import BadInput, InvalidField, PlanMoved, PoolError, WrongContentType
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.targets.pool import PoolProvider
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.zone import Zone
from designate_pool.webhook import endpoints

LOG = logging.getLogger(__name__)

MEDIA_TYPE = 'application/external.dns.webhook+json;version=1'
#: Bytes; some 100,000 endpoints.
LARGEST_BODY = 64 << 20
#: Endpoints that are left out of one request and are told of one by one.
MOST_TOLD = 20
#: Made from the pool, so nothing for external-dns.
_FROM_POOL = ('SOA', 'NS')


def create_app(new_pool: Callable[[], PoolProvider], zones: Collection[str] = (),
               default_ttl: int = 300) -> falcon.App[Any, Any]:
    """The webhook as a WSGI application.

    :param new_pool: the pool, anew for each request: it remembers what was read, so that nothing else is overwritten
    :param zones: names of the zones that are shown; empty for all that the pool has
    :param default_ttl: seconds, for new records that are given none
    """
    app: falcon.App[Any, Any] = falcon.App(middleware=[_Counting()])
    app.add_error_handler(Exception, _unexpected)
    app.add_error_handler(falcon.HTTPError, _of_falcon)
    app.add_error_handler(PoolError, _refused)
    served = _Served(new_pool, zones, default_ttl)
    app.add_route('/', NegotiationResource(served))
    app.add_route('/records', RecordsResource(served))
    app.add_route('/adjustendpoints', AdjustmentResource(served))
    app.add_route('/healthz', HealthCheckResource(served))
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
        return {name: _read(pool, name) for name in self.names(pool)}


class NegotiationResource:
    """Which zones there are."""

    def __init__(self, served: _Served) -> None:
        self._served = served

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        if not req.client_accepts(MEDIA_TYPE) and MEDIA_TYPE not in req.accept.replace(' ', ''):
            raise falcon.HTTPNotAcceptable(description=f'what is spoken here is {MEDIA_TYPE}')
        with contextlib.closing(self._served.new_pool()) as pool:
            _answer(resp, {'include': [name.removesuffix('.') for name in self._served.names(pool)]})


class RecordsResource:
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
            touched = _Touched(pool, self._served.names(pool))
            endpoints.apply_changes(touched, self._served.default_ttl, given)
            for name, existing in touched.before.items():
                if wanted := changes.between(existing, touched.after[name]):
                    _apply(pool, Plan(existing, touched.after[name], wanted, exists=True, target_id=pool.id))
        resp.status = falcon.HTTP_204


class AdjustmentResource:
    """Endpoints in the form in which they will be told of: what differs in form alone is no change then."""

    def __init__(self, served: _Served) -> None:
        self._served = served
        self._told: frozenset[str] = frozenset()

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """One that cannot be is left out, so that the others are served; what is there of it stays as it is."""
        given = _body(req)
        with contextlib.closing(self._served.new_pool()) as pool:
            found, refused = endpoints.adjusted(given, pool.supports)
            if refused:
                found += self._as_they_are(pool, found, refused)
        self._tell_of(refused)
        _answer(resp, found)

    def _as_they_are(self, pool: PoolProvider, found: Sequence[endpoints.Json],
                     refused: Sequence[endpoints.RefusedEndpoint]) -> list[endpoints.Json]:
        """What is there of the refused: were it not wanted, external-dns would have it deleted."""
        wanted = {endpoints.key_of(each) for each in found}
        keys = {key for each in refused if (key := endpoints.key_of(each.endpoint)) is not None and key not in wanted}
        zones = _Touched(pool, self._served.names(pool) if keys else ())
        there = []
        for name, rtype in sorted(keys):
            with contextlib.suppress(InvalidField):  # it is in none of the zones
                kept = endpoints.zone_of(zones, name).get(name, rtype)
                there += [] if kept is None else [endpoints.endpoint_of(kept)]
        return there

    def _tell_of(self, refused: Sequence[endpoints.RefusedEndpoint]) -> None:
        """Log those that are new: external-dns asks again every minute."""
        metrics.WEBHOOK_REFUSED.set(len(refused))
        told = frozenset(f'{(endpoints.key_of(each.endpoint) or ("an endpoint without a name", ""))[0]}: {each.why}'
                         for each in refused)
        new = sorted(told - self._told)
        self._told = told
        for each in new[:MOST_TOLD]:
            LOG.warning('an endpoint is left out: %s', each)
        if len(new) > MOST_TOLD:
            LOG.warning('and %d more endpoints are left out', len(new) - MOST_TOLD)


class HealthCheckResource:
    """200 when the pool's API answers."""

    def __init__(self, served: _Served) -> None:
        self._served = served

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        with contextlib.closing(self._served.new_pool()) as pool:
            pool.ping()
        resp.text = 'ok\n'
        resp.content_type = falcon.MEDIA_TEXT


class _Touched:
    """Zones that are read when they are asked for.

    :ivar before: as they were read, by name
    :ivar after: copies of these, to be changed
    """

    def __init__(self, pool: PoolProvider, names: Collection[str]) -> None:
        self._pool = pool
        self._names = frozenset(names)
        self.before: dict[str, Zone] = {}
        self.after: dict[str, Zone] = {}

    def get(self, name: str, /) -> Zone | None:
        if name in self._names and name not in self.after:
            self.before[name] = _read(self._pool, name)
            self.after[name] = self.before[name].copy()
        return self.after.get(name)


class _Counting:
    """Counts and measures requests."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.context.began = time.monotonic()

    def process_response(self, req: falcon.Request, resp: falcon.Response, resource: Any, succeeded: bool) -> None:
        request = f'{req.method} {req.uri_template}' if resource is not None else 'other'
        metrics.WEBHOOK_REQUESTS.labels(request, str(resp.status_code)).inc()
        metrics.WEBHOOK_SECONDS.labels(request).observe(time.monotonic() - req.context.began)


def _read(pool: PoolProvider, name: str) -> Zone:
    """
    :raises SourceError: when it cannot be read
    :raises BadInput: when it is not there
    """
    zone = Zone(name)
    if not pool.populate(zone, target=True, lenient=True):
        raise BadInput(why=f'the pool has no zone {name}')
    return zone


def _apply(pool: PoolProvider, plan: Plan) -> None:
    """
    :raises BadInput: when the pool does not take the changes
    """
    result = pool.apply(plan)
    if not result.ok:
        raise BadInput(why=f'the pool does not take the changes of {plan.zone}: {"; ".join(result.errors)}')
    metrics.WEBHOOK_CHANGES.inc(result.applied)
    LOG.info('%s: %d changes', plan.zone, result.applied)


def _answer(resp: falcon.Response, content: Any) -> None:
    resp.content_type = MEDIA_TYPE
    resp.text = json.dumps(content)


def _body(req: falcon.Request) -> Any:
    content = req.bounded_stream.read(LARGEST_BODY + 1)
    if len(content) > LARGEST_BODY:
        raise BadInput(why=f'the body is longer than {LARGEST_BODY} bytes')
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadInput(why=f'the body is not JSON ({error})') from None
    # A web page of others may send any other type without its visitor's browser asking first.
    kind = (req.content_type or '').partition(';')[0].strip().lower()
    if kind not in (MEDIA_TYPE.partition(';')[0], falcon.MEDIA_JSON):
        raise WrongContentType(wanted=MEDIA_TYPE, found=kind or 'without a type')
    return found


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
