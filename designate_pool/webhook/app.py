"""The HTTP interface that external-dns expects of a provider: negotiate, records, adjust, apply.

The contents of zones are cached by serial between requests, so only zones with another serial are read again.
external-dns decides by the status: it retries what failed with 500 or more, and gives up what failed with less.
An endpoint, in the JSON of this interface, is one RRset: ``dnsName`` and the names among its ``targets`` have no final
dot, TXT data is quoted.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import falcon

from designate_pool import metrics
from designate_pool.errors import BadInput, InvalidField, PlanMoved, PoolError, WrongContentType
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.targets.pool import PoolProvider
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import normal_name, parents
from designate_pool.protocol.rrset import RRset, rrset

LOG = logging.getLogger(__name__)
Json = dict[str, Any]


class RefusedEndpoint(NamedTuple):
    """An endpoint that is not valid here, and why."""

    endpoint: Any
    why: str


#: Types whose data ends with a name.
_ENDS_WITH_NAME = frozenset({'CNAME', 'DNAME', 'MX', 'NAPTR', 'NS', 'PTR', 'SRV'})
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"(?:\s+"(?:[^"\\]|\\.)*")*', re.DOTALL)
#: Octets of one string of a TXT record (RFC 1035 section 3.3).
_MAX_STRING = 255


def endpoint_of(rrset: RRset) -> Json:
    """A set of records as an endpoint of external-dns."""
    targets = [_without_dot(data) if rrset.type in _ENDS_WITH_NAME else data for data in rrset.rdatas]
    return {'dnsName': _without_dot(rrset.name), 'targets': targets, 'recordType': rrset.type, 'recordTTL': rrset.ttl}


def adjust(given: Any, supports: Callable[[RRset], bool] = lambda _: True) -> tuple[list[Json], list[RefusedEndpoint]]:
    """The wanted endpoints as they will be listed once they exist, and those that are not valid.

    Unknown fields are kept, but not ``providerSpecific``: we list none, so external-dns would see a change each time.

    :param supports: whether the pool supports an RRset
    :raises InvalidField: when *given* is no list
    """
    adjusted, refused = [], []
    for number, endpoint in enumerate(_list(given, 'endpoints')):
        try:
            desired = _rrset(endpoint, f'endpoints[{number}]', 0)
            if not supports(desired):
                raise InvalidField(field=f'endpoints[{number}].recordType', why=f'{desired.type} cannot be held here')
        except InvalidField as error:
            refused.append(RefusedEndpoint(endpoint, str(error)))
            continue
        normal = endpoint_of(desired)
        if not endpoint.get('recordTTL'):
            del normal['recordTTL']
        adjusted.append({key: value for key, value in endpoint.items() if key != 'providerSpecific'} | normal)
    return adjusted, refused


def key_of(given: Any) -> tuple[str, str] | None:
    """The name and type of an endpoint that may not be valid otherwise; None when it has none."""
    try:
        name, rtype = given['dnsName'], given['recordType']
        return normal_name(_with_dot(name)), rtype.upper()
    except (AttributeError, KeyError, TypeError, InvalidField):
        return None


def apply_changes(zones: Mapping[str, Zone] | EditedZones, default_ttl: int, given: Any) -> None:
    """Change *zones* as external-dns has requested.

    Deleting what does not exist and creating what exists does nothing, because requests may be repeated.

    :param default_ttl: seconds, for new endpoints without a TTL
    :raises InvalidField: when the request is not valid, or a name is in none of the zones
    :raises ZoneError: when an RRset is not valid in its zone
    """
    if not isinstance(given, dict):
        raise InvalidField(field='changes', why='they have to be an object')
    changes = {str(key).lower(): value for key, value in given.items()}
    updated_keys = {_rrset(change, f'updatenew[{number}]', 0).key
                    for number, change in enumerate(_list(changes.get('updatenew'), 'updatenew'))}
    for kind in ('delete', 'updateold'):
        for number, change in enumerate(_list(changes.get(kind), kind)):
            old = _rrset(change, f'{kind}[{number}]', default_ttl)
            zone = zone_of(zones, old.name)
            if old.key in zone and not (kind == 'updateold' and old.key in updated_keys):
                zone.remove_record(old)
    for new in _new_rrsets(zones, default_ttl, changes):
        zone_of(zones, new.name).add_record(new, replace=True)


def zone_of(zones: Mapping[str, Zone] | EditedZones, name: str) -> Zone:
    """The zone that contains *name*: the one with the longest name.

    :raises InvalidField: when none does
    """
    for parent in (name, *parents(name)):
        zone = zones.get(parent)
        if zone is not None:
            return zone
    raise InvalidField(field=name, why='it lies in none of the zones that are served here')


def _new_rrsets(zones: Mapping[str, Zone] | EditedZones, default_ttl: int,
                changes: Mapping[str, Any]) -> Sequence[RRset]:
    """The new RRsets; endpoints of one name and type become one, with the TTL of the last."""
    by_key: dict[str, list[RRset]] = {}
    for kind in ('create', 'updatenew'):
        for number, change in enumerate(_list(changes.get(kind), kind)):
            new = _rrset(change, f'{kind}[{number}]', default_ttl)
            existing = zone_of(zones, new.name).get(new.name, new.type)
            if existing is not None and not change.get('recordTTL'):
                new = new._replace(ttl=existing.ttl)
            by_key.setdefault(new.key, []).append(new)
    return [new[-1] if len(new) == 1 else rrset(new[-1].name, new[-1].type, new[-1].ttl,
                                                [rdata for rrset in new for rdata in rrset.rdatas])
            for new in by_key.values()]


def _rrset(given: Any, place: str, default_ttl: int) -> RRset:
    if not isinstance(given, dict):
        raise InvalidField(field=place, why='an endpoint has to be an object')
    if given.get('setIdentifier'):
        raise InvalidField(field=f'{place}.setIdentifier', why='answers that depend on who asks are not served here')
    for key, kind in (('dnsName', str), ('recordType', str), ('targets', list)):
        if not isinstance(given.get(key), kind):
            raise InvalidField(field=f'{place}.{key}', why='missing, or of the wrong kind')
    rtype = given['recordType'].upper()
    ttl = given.get('recordTTL') or default_ttl
    return rrset(_with_dot(given['dnsName']), rtype, ttl, [_data(rtype, target) for target in given['targets']])


def _data(rtype: str, target: Any) -> str:
    text = str(target)
    if rtype in _ENDS_WITH_NAME:
        return _with_dot(text)
    if rtype in ('TXT', 'SPF') and not _QUOTED.fullmatch(text):
        strings = [text[start:start + _MAX_STRING] for start in range(0, max(len(text), 1), _MAX_STRING)]
        return ' '.join('"' + string.replace('\\', '\\\\').replace('"', '\\"') + '"' for string in strings)
    return text


def _list(given: Any, place: str) -> Sequence[Any]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise InvalidField(field=place, why='it has to be a list')
    return given


def _with_dot(name: str) -> str:
    return name if name.endswith('.') else f'{name}.'


def _without_dot(name: str) -> str:
    return name.removesuffix('.') if name != '.' else name


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
            _reply_json(resp, [endpoint_of(rrset) for zone in zones for rrset in zone
                               if not (rrset.type in _MADE_BY_POOL and rrset.name == zone.name)])

    def on_post_records(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Apply changes: those of a zone at one serial.  When a zone fails, the others may have been changed or not."""
        body = _read_json(req)
        with contextlib.closing(self._new_pool()) as pool:
            zones = EditedZones(pool, self._names(pool))
            apply_changes(zones, self._default_ttl, body)
            for name, before in zones.before.items():
                if planned := changes.between(before, zones.after[name]):
                    result = pool.apply(Plan(before, zones.after[name], planned, exists=True, target_id=pool.id))
                    if not result.ok:
                        raise BadInput(why=f'the pool does not take the changes of {name}: {"; ".join(result.errors)}')
                    metrics.WEBHOOK_CHANGES.inc(result.applied)
                    LOG.info('%s: %d changes', name, result.applied)
        resp.status = falcon.HTTP_204

    def on_post_adjustment(self, req: falcon.Request, resp: falcon.Response) -> None:
        """The wanted endpoints as they will be listed, so that a difference in form alone is no change.

        An endpoint that is not valid is replaced by the existing one, so that it does not hold up the others.
        """
        body = _read_json(req)
        with contextlib.closing(self._new_pool()) as pool:
            adjusted, refused = adjust(body, pool.supports)
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

    def _existing(self, pool: PoolProvider, adjusted: Sequence[Json],
                  refused: Sequence[RefusedEndpoint]) -> list[Json]:
        """The existing endpoints in place of the refused: external-dns would delete what it is not told to want."""
        adjusted_keys = {key_of(endpoint) for endpoint in adjusted}
        keys = {key for refusal in refused
                if (key := key_of(refusal.endpoint)) is not None and key not in adjusted_keys}
        zones = EditedZones(pool, self._names(pool) if keys else ())
        existing = []
        for name, rtype in sorted(keys):
            with contextlib.suppress(InvalidField):  # it is in none of the zones
                rrset = zone_of(zones, name).get(name, rtype)
                existing += [] if rrset is None else [endpoint_of(rrset)]
        return existing

    def _log_refused(self, refused: Sequence[RefusedEndpoint]) -> None:
        """Log those that the last request did not have: external-dns asks again every minute."""
        metrics.WEBHOOK_REFUSED.set(len(refused))
        lines = frozenset(
            f'{(key_of(refusal.endpoint) or ("an endpoint without a name", ""))[0]}: {refusal.why}'
            for refusal in refused)
        new = sorted(lines - self._logged)
        for line in new[:MAX_LOGGED]:
            LOG.warning('an endpoint is left out: %s', line)
        if len(new) > MAX_LOGGED:
            LOG.warning('and %d more endpoints are left out', len(new) - MAX_LOGGED)
        self._logged = lines


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
