"""The HTTP interface that external-dns expects of a provider: negotiate, records, adjust, apply.

The contents of zones are cached by serial between requests, so only zones with another serial are read again.
external-dns decides by the status: it retries what failed with 500 or more, and gives up what failed with less.
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
MAX_BODY = 64 << 20
#: Refused endpoints of one request that are logged one by one.
MAX_LOGGED = 20
#: Types that the pool makes at a zone's apex, which external-dns must not see.
_MADE_BY_POOL = ('SOA', 'NS')


def create_app(new_pool: Callable[[], PoolProvider], zones: Collection[str] = (),
               default_ttl: int = 300) -> falcon.App[Any, Any]:
    """The webhook as a WSGI application.

    :param new_pool: opens the pool, for each request: it remembers what it has read, and overwrites nothing newer
    :param zones: names of the zones that are shown; empty for all zones of the pool
    :param default_ttl: seconds, for new records without a TTL
    """
    app: falcon.App[Any, Any] = falcon.App(middleware=[WebhookMetrics()])
    app.add_error_handler(Exception, _on_unexpected_error)
    app.add_error_handler(falcon.HTTPError, _on_http_error)
    app.add_error_handler(PoolError, _on_pool_error)
    webhook = Webhook(new_pool, zones, default_ttl)
    app.add_route('/', webhook, suffix='negotiation')
    app.add_route('/records', webhook, suffix='records')
    app.add_route('/adjustendpoints', webhook, suffix='adjustment')
    app.add_route('/healthz', webhook, suffix='health')
    return app


class Webhook:
    """The resources; for the parameters see :func:`create_app`."""

    def __init__(self, new_pool: Callable[[], PoolProvider], zones: Collection[str], default_ttl: int) -> None:
        self._new_pool = new_pool
        self._zones = tuple(zones)
        self._default_ttl = default_ttl
        self._logged: frozenset[str] = frozenset()

    def on_get_negotiation(self, req: falcon.Request, resp: falcon.Response) -> None:
        """The names of the zones."""
        if not req.client_accepts(MEDIA_TYPE) and MEDIA_TYPE not in req.accept.replace(' ', ''):
            raise falcon.HTTPNotAcceptable(description=f'the only media type here is {MEDIA_TYPE}')
        with contextlib.closing(self._new_pool()) as pool:
            _reply_json(resp, {'include': [name.removesuffix('.') for name in self._names(pool)]})

    def on_get_records(self, req: falcon.Request, resp: falcon.Response) -> None:
        """All endpoints."""
        with contextlib.closing(self._new_pool()) as pool:
            zones = [_read_zone(pool, name) for name in self._names(pool)]
            _reply_json(resp, [endpoints.endpoint_of(rrset) for zone in zones for rrset in zone
                               if not (rrset.type in _MADE_BY_POOL and rrset.name == zone.name)])

    def on_post_records(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Apply changes: those of a zone at one serial.  When a zone fails, the others may have been changed or not."""
        body = _read_json(req)
        with contextlib.closing(self._new_pool()) as pool:
            zones = EditedZones(pool, self._names(pool))
            endpoints.apply_changes(zones, self._default_ttl, body)
            for name, before in zones.before.items():
                if planned := changes.between(before, zones.after[name]):
                    _apply(pool, Plan(before, zones.after[name], planned, exists=True, target_id=pool.id))
        resp.status = falcon.HTTP_204

    def on_post_adjustment(self, req: falcon.Request, resp: falcon.Response) -> None:
        """The wanted endpoints as they will be listed, so that a difference in form alone is no change.

        An endpoint that is not valid is replaced by the existing one, so that it does not hold up the others.
        """
        body = _read_json(req)
        with contextlib.closing(self._new_pool()) as pool:
            adjusted, refused = endpoints.adjust(body, pool.supports)
            if refused:
                adjusted += self._existing(pool, adjusted, refused)
        self._log_refused(refused)
        _reply_json(resp, adjusted)

    def on_get_health(self, req: falcon.Request, resp: falcon.Response) -> None:
        """200 when the pool's API answers."""
        with contextlib.closing(self._new_pool()) as pool:
            pool.ping()
        resp.text = 'ok\n'
        resp.content_type = falcon.MEDIA_TEXT

    def _names(self, pool: PoolProvider) -> list[str]:
        return list(self._zones) or pool.list_zones()

    def _existing(self, pool: PoolProvider, adjusted: Sequence[endpoints.Json],
                  refused: Sequence[endpoints.RefusedEndpoint]) -> list[endpoints.Json]:
        """The existing endpoints in place of the refused: external-dns would delete what it is not told to want."""
        adjusted_keys = {endpoints.key_of(endpoint) for endpoint in adjusted}
        keys = {key for refusal in refused
                if (key := endpoints.key_of(refusal.endpoint)) is not None and key not in adjusted_keys}
        zones = EditedZones(pool, self._names(pool) if keys else ())
        existing = []
        for name, rtype in sorted(keys):
            with contextlib.suppress(InvalidField):  # it is in none of the zones
                rrset = endpoints.zone_of(zones, name).get(name, rtype)
                existing += [] if rrset is None else [endpoints.endpoint_of(rrset)]
        return existing

    def _log_refused(self, refused: Sequence[endpoints.RefusedEndpoint]) -> None:
        """Log those that the last request did not have: external-dns asks again every minute."""
        metrics.WEBHOOK_REFUSED.set(len(refused))
        lines = frozenset(
            f'{(endpoints.key_of(refusal.endpoint) or ("an endpoint without a name", ""))[0]}: {refusal.why}'
            for refusal in refused)
        new = sorted(lines - self._logged)
        self._logged = lines
        for line in new[:MAX_LOGGED]:
            LOG.warning('an endpoint is left out: %s', line)
        if len(new) > MAX_LOGGED:
            LOG.warning('and %d more endpoints are left out', len(new) - MAX_LOGGED)


class EditedZones:
    """Zones that are read when they are first looked up.

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
            self.before[name] = _read_zone(self._pool, name)
            self.after[name] = self.before[name].copy()
        return self.after.get(name)


class WebhookMetrics:
    """Counts and measures requests."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.context.started = time.monotonic()

    def process_response(self, req: falcon.Request, resp: falcon.Response, resource: Any, succeeded: bool) -> None:
        request = f'{req.method} {req.uri_template}' if resource is not None else 'other'
        metrics.WEBHOOK_REQUESTS.labels(request, str(resp.status_code)).inc()
        metrics.WEBHOOK_SECONDS.labels(request).observe(time.monotonic() - req.context.started)


def _read_zone(pool: PoolProvider, name: str) -> Zone:
    zone = Zone(name)
    if not pool.populate(zone, target=True, lenient=True):
        raise BadInput(why=f'the pool has no zone {name}')
    return zone


def _apply(pool: PoolProvider, plan: Plan) -> None:
    result = pool.apply(plan)
    if not result.ok:
        raise BadInput(why=f'the pool does not take the changes of {plan.zone}: {"; ".join(result.errors)}')
    metrics.WEBHOOK_CHANGES.inc(result.applied)
    LOG.info('%s: %d changes', plan.zone, result.applied)


def _reply_json(resp: falcon.Response, content: Any) -> None:
    resp.content_type = MEDIA_TYPE
    resp.text = json.dumps(content)


def _read_json(req: falcon.Request) -> Any:
    content = req.bounded_stream.read(MAX_BODY + 1)
    if len(content) > MAX_BODY:
        raise BadInput(why=f'the body is longer than {MAX_BODY} bytes')
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadInput(why=f'the body is not JSON ({error})') from None
    # A browser sends any other type for a foreign web page without asking us first (CORS).
    kind = (req.content_type or '').partition(';')[0].strip().lower()
    if kind not in (MEDIA_TYPE.partition(';')[0], falcon.MEDIA_JSON):
        raise WrongContentType(wanted=MEDIA_TYPE, found=kind or 'without a type')
    return body


def _on_pool_error(req: falcon.Request, resp: falcon.Response, error: PoolError, params: Any) -> None:
    # A zone that has changed meanwhile, or a pool that cannot be reached, may work at the next try.
    is_temporary = isinstance(error, PlanMoved) or error.code >= 500
    code = 503 if is_temporary else error.code
    LOG.log(logging.WARNING if is_temporary else logging.ERROR, '%s %s: %s', req.method, req.path, error)
    _reply_error(resp, code, str(error))


def _on_http_error(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: Any) -> None:
    _reply_error(resp, error.status_code, error.description or error.title or '')
    resp.set_headers(error.headers or {})


def _on_unexpected_error(req: falcon.Request, resp: falcon.Response, error: Exception, params: Any) -> None:
    LOG.exception('%s %s failed', req.method, req.path, exc_info=error)
    _reply_error(resp, 500, 'internal error; see the log')


def _reply_error(resp: falcon.Response, code: int, why: str) -> None:
    resp.status = code
    resp.content_type = falcon.MEDIA_TEXT
    resp.text = f'{why}\n'
