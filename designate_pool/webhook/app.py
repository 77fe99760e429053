"""The HTTP interface that external-dns expects of a provider: negotiate, records, adjust, apply.

The contents of zones are cached by serial between requests, so only zones with another serial are read again.
external-dns decides by the status: it retries what failed with 500 or more, and ends its process for less.  So an
endpoint that cannot be is left out, and the others are made.
An endpoint, in the JSON of this interface, is one RRset: ``dnsName`` and the names among its ``targets`` have no final
dot, but for those of NAPTR and SRV and for the root; TXT data is quoted.
"""

from __future__ import annotations

import contextlib
import http
import json
import logging
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import falcon

from designate_pool import metrics
from designate_pool.errors import BadInput, InvalidField, PlanMoved, PoolError, SourceError, WrongContentType, ZoneError
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.targets.pool import NOT_EXPORTED, PoolProvider
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import lies_in, normal_name, parents
from designate_pool.protocol.rrset import RRset, rrset

LOG = logging.getLogger(__name__)
Json = dict[str, Any]


class RefusedEndpoint(NamedTuple):
    """An endpoint that is not valid here, and why."""

    endpoint: Any
    why: str


#: Types whose data ends with a name, and those of them that external-dns writes without the final dot.
_ENDS_WITH_NAME = frozenset({'CNAME', 'DNAME', 'MX', 'NAPTR', 'NS', 'PTR', 'SRV'})
_WITHOUT_DOT = _ENDS_WITH_NAME - {'NAPTR', 'SRV'}
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"(?:\s+"(?:[^"\\]|\\.)*")*', re.DOTALL)


def endpoint_of(rrset: RRset) -> Json:
    """A set of records as an endpoint of external-dns."""
    targets = [_without_dot(data) if rrset.type in _WITHOUT_DOT else data for data in rrset.rdatas]
    return {'dnsName': _without_dot(rrset.name), 'targets': targets, 'recordType': rrset.type, 'recordTTL': rrset.ttl}


def adjust(given: Any, check: Callable[[RRset], object] = lambda _: None) -> tuple[list[Json], list[RefusedEndpoint]]:
    """The wanted endpoints as they will be listed once they exist, and those that are not valid.

    Unknown fields are kept, but not ``providerSpecific``: we list none, so external-dns would see a change each time.

    :param check: raises a BadInput for an RRset that the pool cannot hold
    :raises InvalidField: when *given* is no list
    """
    adjusted, refused = [], []
    for number, endpoint in enumerate(_list(given, 'endpoints')):
        try:
            desired = _rrset(endpoint, f'endpoints[{number}]', 0)
            check(desired)
        except BadInput as error:
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


def apply_changes(zones: Mapping[str, Zone] | EditedZones, default_ttl: int, given: Any,
                  filters: Collection[str] = ()) -> list[RefusedEndpoint]:
    """Change *zones* as external-dns has requested; returns the endpoints that cannot be, which are left out.

    Deleting what does not exist and creating what exists does nothing, because requests may be repeated.  A name keeps
    what it has where a new endpoint of it is left out.

    :param default_ttl: seconds, for new endpoints without a TTL
    :param filters: as of :func:`is_shown`
    :raises InvalidField: when the request is no set of changes
    """
    if not isinstance(given, dict):
        raise InvalidField(field='changes', why='they have to be an object')
    lists = {str(key).lower(): value for key, value in given.items()}
    refused: list[RefusedEndpoint] = []

    def rrsets(kind: str) -> Iterator[tuple[Json, RRset]]:
        for number, endpoint in enumerate(_list(lists.get(kind), kind)):
            try:
                one = _rrset(endpoint, f'{kind}[{number}]', default_ttl)
                check_place(zones, one, filters)
                yield endpoint, one
            except BadInput as error:
                refused.append(RefusedEndpoint(endpoint, str(error)))

    new: dict[str, list[tuple[Json, RRset]]] = {}
    for endpoint, parsed in (*rrsets('create'), *rrsets('updatenew')):
        new.setdefault(parsed.key, []).append((endpoint, parsed))
    kept = {key[0] for endpoint, _ in refused if (key := key_of(endpoint)) is not None}
    removed: dict[str, list[RRset]] = {}
    for kind in ('delete', 'updateold'):
        for _, old in rrsets(kind):
            zone = zone_of(zones, old.name)
            if old.key in zone and old.name not in kept and not (kind == 'updateold' and old.key in new):
                removed.setdefault(old.name, []).append(zone[old.key])
                zone.remove_record(old)
    for same in new.values():
        try:
            _add(zone_of(zones, same[0][1].name), same)
        except BadInput as error:
            refused += [RefusedEndpoint(endpoint, str(error)) for endpoint, _ in same]
            for old in removed.get(same[0][1].name, ()):
                with contextlib.suppress(ZoneError):
                    zone_of(zones, old.name).add_record(old)
    return refused


def _add(zone: Zone, same: Sequence[tuple[Json, RRset]]) -> None:
    """Add the endpoints of one name and type as one RRset, with the TTL of the last."""
    endpoint, last = same[-1]
    existing = zone.get(last.name, last.type)
    ttl = existing.ttl if existing is not None and not endpoint.get('recordTTL') else last.ttl
    zone.add_record(rrset(last.name, last.type, ttl, [rdata for _, one in same for rdata in one.rdatas]), replace=True)


def check_place(zones: Mapping[str, Zone] | EditedZones, rrset: RRset, filters: Collection[str]) -> None:
    """Refuse an RRset by its name and type: :class:`BadInput` if it is outside, or not for the apex of a zone."""
    if not is_shown(rrset.name, filters):
        raise InvalidField(field=rrset.name, why='it lies below none of the names that are served here')
    zone = zone_of(zones, rrset.name)
    if rrset.name == zone.name and rrset.type in _MADE_BY_POOL:
        raise InvalidField(field=rrset.name, why=f'the pool makes the {rrset.type} records of a zone itself')
    if rrset.name == zone.name and rrset.type == 'CNAME':
        raise InvalidField(field=rrset.name, why='a zone has no CNAME at its apex, beside SOA and NS')


def is_shown(name: str, filters: Collection[str]) -> bool:
    """Whether *name* is one of *filters* or below one; every name is if there are none."""
    return not filters or any(lies_in(name, other) for other in filters)


def zone_of(zones: Mapping[str, Zone] | EditedZones, name: str) -> Zone:
    """The zone that contains *name*: the one with the longest name.

    :raises InvalidField: when none does
    """
    for parent in (name, *parents(name)):
        zone = zones.get(parent)
        if zone is not None:
            return zone
    raise InvalidField(field=name, why='it lies in none of the zones that are served here')


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
        return '"' + text.replace('\\', '\\\\').replace('"', '\\"') + '"'
    return text


def _list(given: Any, place: str) -> Sequence[Any]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise InvalidField(field=place, why='it has to be a list')
    return given


def _with_dot(name: str) -> str:
    return name if name.endswith('.') or not name else f'{name}.'


def _without_dot(text: str) -> str:
    return text if text == '.' or text.endswith(' .') else text.removesuffix('.')


MEDIA_TYPE = 'application/external.dns.webhook+json;version=1'
#: Bytes; some 100,000 endpoints.
MAX_BODY = 64 << 20
#: Bytes of an answer that external-dns reads; some 60,000 endpoints.
MAX_READ = 32 << 20
#: Refused endpoints of one request that are logged one by one.
MAX_LOGGED = 20
#: Requests to the pool for the changes of one request of external-dns, which waits for ten seconds.
MOST_REQUESTS = 100
#: Types that the pool makes at a zone's apex, which external-dns must not see.
_MADE_BY_POOL = ('SOA', 'NS')


def create_app(new_pool: Callable[[], PoolProvider], zones: Collection[str] = (),
               default_ttl: int = 300) -> falcon.App[Any, Any]:
    """The webhook as a WSGI application.

    :param new_pool: opens the pool, for each request: it remembers what it has read, and overwrites nothing newer
    :param zones: names; only records at and below them are shown and changed; empty for all zones of the pool
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
        self._filters = tuple(zones)
        self._default_ttl = default_ttl
        #: By request, what the last one had left out.
        self._logged: dict[str, frozenset[str]] = {}
        #: Names whose changes the pool has refused, the latest last.
        self._refused: dict[str, None] = {}

    def on_get_negotiation(self, req: falcon.Request, resp: falcon.Response) -> None:
        """The names at and below which records are shown: those of the zones if there are no others."""
        if not req.client_accepts(MEDIA_TYPE) and MEDIA_TYPE not in req.accept.replace(' ', ''):
            raise falcon.HTTPNotAcceptable(description=f'the only media type here is {MEDIA_TYPE}')
        with contextlib.closing(self._new_pool()) as pool:
            names = self._filters or pool.list_zones()
            _reply_json(resp, {'include': [name.removesuffix('.') for name in names]})

    def on_get_records(self, req: falcon.Request, resp: falcon.Response) -> None:
        """All endpoints."""
        with contextlib.closing(self._new_pool()) as pool:
            zones = [_read_zone(pool, name) for name in self._names(pool)]
            _reply_json(resp, [endpoint_of(rrset) for zone in zones if zone is not None for rrset in zone
                               if is_shown(rrset.name, self._filters)
                               and not (rrset.type in _MADE_BY_POOL and rrset.name == zone.name)])
        if len(resp.text or '') > MAX_READ:
            LOG.warning('GET /records: external-dns reads %d bytes at most, and these are %d; limit the names with '
                        '--zone', MAX_READ, len(resp.text or ''))

    def on_post_records(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Apply changes: those of a zone at one serial.  When a zone fails, the others may have been changed or not.

        What the pool refuses is looked for in ever smaller parts of the changes, so that the others are made.  What was
        refused before is tried last, and what is left after :data:`MOST_REQUESTS` the next time.
        """
        body = _read_json(req)
        with contextlib.closing(self._new_pool()) as pool:
            zones = EditedZones(pool, self._names(pool))
            refused = apply_changes(zones, self._default_ttl, body, self._filters)
            by_name: dict[tuple[str, str], list[Change]] = {}
            for name, before in zones.before.items():
                for change in changes.between(before, zones.after[name]):
                    by_name.setdefault((name, change.name), []).append(change)
            order = {name: number for number, name in enumerate(self._refused)}
            names = {name for _, name in by_name}
            self._refused = {name: None for name in order if name in names}
            batches: dict[tuple[bool, str], list[list[Change]]] = {}
            for zone, name in sorted(by_name, key=lambda key: order.get(key[1], -1)):
                batches.setdefault((name in order, zone), []).append(by_name[zone, name])
            refused += self._apply(pool, zones.before, [(zone, parts) for (_, zone), parts in batches.items()])
        metrics.WEBHOOK_LEFT_OUT.inc(len(refused))
        self._log_refused('POST /records', refused)
        resp.status = falcon.HTTP_204

    def _apply(self, pool: PoolProvider, zones: Mapping[str, Zone],
               batches: list[tuple[str, list[list[Change]]]]) -> list[RefusedEndpoint]:
        """Make changes of zones, those of each name together; returns the new records that are not made."""
        refused: list[RefusedEndpoint] = []
        #: Of zones whose changes are not taken as a whole: not before those of all zones were tried.
        parts_left: list[tuple[str, list[list[Change]]]] = []
        #: By zone, that its contents are others than those read.
        moved: dict[str, PlanMoved] = {}
        requests = 0
        batches.reverse()
        while batches or parts_left:
            is_whole = bool(batches)
            name, parts = (batches or parts_left).pop()
            if name in moved:
                continue
            planned = changes.ordered(change for part in parts for change in part)
            if requests == MOST_REQUESTS:
                refused += [RefusedEndpoint(endpoint_of(change.record), 'it is tried the next time, since the pool '
                                            'refuses too many others') for change in planned]
                continue
            requests += 1
            try:
                result = pool.apply(Plan(zones[name], zones[name], planned, exists=True, target_id=pool.id))
            except PlanMoved as error:
                moved[name] = error
                continue
            if result.ok:
                metrics.WEBHOOK_CHANGES.inc(result.applied)
                LOG.info('%s: %d changes', name, result.applied)
                for change in planned:
                    self._refused.pop(change.name, None)
            elif len(parts) > 1:
                middle = len(parts) // 2
                at = 0 if is_whole else len(parts_left)
                parts_left[at:at] = (name, parts[middle:]), (name, parts[:middle])
            else:
                refused += [RefusedEndpoint(endpoint_of(change.record), '; '.join(result.errors)) for change in planned]
                self._refused.pop(planned[0].name, None)
                self._refused[planned[0].name] = None
        for first in moved.values():  # external-dns asks again
            raise first
        return refused

    def on_post_adjustment(self, req: falcon.Request, resp: falcon.Response) -> None:
        """The wanted endpoints as they will be listed, so that a difference in form alone is no change.

        An endpoint that is not valid is replaced by the existing one, so that it does not hold up the others.
        """
        body = _read_json(req)
        with contextlib.closing(self._new_pool()) as pool:
            zones = {name: Zone(name) for name in self._names(pool)}

            def check(rrset: RRset) -> None:
                if not pool.supports(rrset):
                    raise InvalidField(field=rrset.name, why=f'{rrset.type} cannot be held here')
                check_place(zones, rrset, self._filters)

            adjusted, refused = adjust(body, check)
            if refused:
                adjusted += self._existing(pool, adjusted, refused)
        metrics.WEBHOOK_REFUSED.set(len(refused))
        self._log_refused('POST /adjustendpoints', refused)
        _reply_json(resp, adjusted)

    def on_get_health(self, req: falcon.Request, resp: falcon.Response) -> None:
        """200 when the pool's API answers."""
        with contextlib.closing(self._new_pool()) as pool:
            pool.ping()
        resp.text = 'ok\n'
        resp.content_type = falcon.MEDIA_TEXT

    def _names(self, pool: PoolProvider) -> list[str]:
        """The zones with names that are shown."""
        names = pool.list_zones()
        above = {max((zone for zone in names if lies_in(name, zone)), key=len, default='') for name in self._filters}
        return [name for name in names if name in above or is_shown(name, self._filters)]

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

    def _log_refused(self, request: str, refused: Sequence[RefusedEndpoint]) -> None:
        """Log those that the last such request did not have: external-dns asks again every minute."""
        lines = frozenset(
            f'{(key_of(refusal.endpoint) or ("an endpoint without a name", ""))[0]}: {refusal.why}'
            for refusal in refused)
        new = sorted(lines - self._logged.get(request, frozenset()))
        for line in new[:MAX_LOGGED]:
            LOG.warning('an endpoint is left out: %s', line)
        if len(new) > MAX_LOGGED:
            LOG.warning('and %d more endpoints are left out', len(new) - MAX_LOGGED)
        self._logged[request] = lines


class EditedZones:
    """Zones that are read when they are first looked up.

    :ivar before: as they were read, by name
    :ivar after: copies of these, to be changed
    """

    def __init__(self, pool: PoolProvider, names: Collection[str]) -> None:
        self._pool = pool
        self._names = frozenset(names)
        self._not_exported: set[str] = set()
        self.before: dict[str, Zone] = {}
        self.after: dict[str, Zone] = {}

    def get(self, name: str, /) -> Zone | None:
        """The copy of a zone, to be changed; None for a zone that is not served here.

        :raises InvalidField: when it cannot be exported now; the zone above it does not have its records
        """
        if name in self._names and name not in self.after:
            zone = None if name in self._not_exported else _read_zone(self._pool, name)
            if zone is None:
                self._not_exported.add(name)
                raise InvalidField(field=name, why='the zone cannot be exported now, and so is not changed')
            self.before[name], self.after[name] = zone, zone.copy()
        return self.after.get(name)


class WebhookMetrics:
    """Counts and measures requests."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.context.started = time.monotonic()

    def process_response(self, req: falcon.Request, resp: falcon.Response, resource: Any, succeeded: bool) -> None:
        request = f'{req.method} {req.uri_template}' if resource is not None else 'other'
        metrics.WEBHOOK_REQUESTS.labels(request, str(resp.status_code)).inc()
        metrics.WEBHOOK_SECONDS.labels(request).observe(time.monotonic() - req.context.started)


def _read_zone(pool: PoolProvider, name: str) -> Zone | None:
    """A zone; None for one that cannot be exported now, and so cannot be changed here."""
    zone = Zone(name)
    try:
        if not pool.populate(zone, target=True, lenient=True):
            raise SourceError(source=pool.id, why=f'it has no zone {name} any more')
    except SourceError as error:
        if error.type not in NOT_EXPORTED:
            raise
        LOG.log(logging.INFO if error.type == 'no_contents' else logging.WARNING, '%s is left out: %s', name, error)
        return None
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
        if b'\\u' in content:
            json.dumps(body, ensure_ascii=False).encode()  # half of a surrogate pair is no character
    except (ValueError, RecursionError) as error:
        raise BadInput(why=f'the body is not JSON ({error})') from None
    # A browser sends any other type for a foreign web page without asking us first (CORS).
    kind = (req.content_type or '').partition(';')[0].strip().lower()
    if kind not in (MEDIA_TYPE.partition(';')[0], falcon.MEDIA_JSON):
        raise WrongContentType(wanted=MEDIA_TYPE, found=kind or 'without a type')
    return body


def _on_pool_error(req: falcon.Request, resp: falcon.Response, error: PoolError, params: Any) -> None:
    # A zone that has changed meanwhile, or a pool that cannot be reached, may work at the next try.
    is_temporary = isinstance(error, PlanMoved) or error.code >= 500 or error.code == 429
    code = 503 if is_temporary else error.code
    LOG.log(logging.WARNING if is_temporary else logging.ERROR, '%s %s: %s', req.method, req.path, error)
    _reply_error(resp, code, error.type, str(error))


def _on_http_error(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: Any) -> None:
    phrase = http.HTTPStatus(error.status_code).phrase
    _reply_error(resp, error.status_code, phrase.lower().replace(' ', '_'), error.description or phrase)
    resp.set_headers(error.headers or {})


def _on_unexpected_error(req: falcon.Request, resp: falcon.Response, error: Exception, params: Any) -> None:
    LOG.exception('%s %s failed', req.method, req.path, exc_info=error)
    _reply_error(resp, 500, PoolError.type, 'internal error; see the log')


def _reply_error(resp: falcon.Response, code: int, kind: str, why: str) -> None:
    resp.status, resp.content_type = code, falcon.MEDIA_JSON
    resp.text = json.dumps({'code': code, 'type': kind, 'message': why})  # as what limits requests answers
