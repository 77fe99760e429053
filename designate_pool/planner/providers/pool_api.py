"""A client of the pool's HTTP API: zones, changes at one serial, stored plans."""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.parse
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import requests

from designate_pool.errors import ApiRefused, ApiUnreachable, InvalidField, PlanNotFound
from designate_pool.model import PlanState, StoredPlan
from designate_pool.planner.plan.plan_store import PlanStore

Json = dict[str, Any]
#: Items that one answer may have.
LARGEST_PAGE = 1000
_LOOPBACK = ('localhost', '127.0.0.1', '::1')
#: The environment variable with the default token.
TOKEN = 'DESIGNATE_POOL_TOKEN'
_IS_TOKEN = re.compile('[!-~]+')
_IS_PLAN = {'X-Designate-Pool-Change-Kind': 'PLAN'}


class ApiRequests:
    """Requests to the API, and their answers.

    :param url: of the API, without a path
    :param timeout: seconds for one response
    """

    def __init__(self, url: str, session: requests.Session, timeout: float = 90.0) -> None:
        self.url = url.rstrip('/')
        self._timeout = timeout
        self._session = session

    def send(self, method: str, path: str, timeout: float | None = None, **options: Any) -> requests.Response:
        """Send a request.

        :param timeout: seconds, if not those of all requests
        :raises ApiUnreachable: when there is no answer of the API; so below
        :raises ApiRefused: when it answers with an error
        """
        answer = self._send(method, path, timeout, **options)
        if answer.status_code >= 300:
            raise self._refused(answer, self._object(answer))
        return answer

    def json(self, method: str, path: str, body: Json | None = None, timeout: float | None = None,
             **options: Any) -> Json:
        """The JSON that a request is answered with."""
        return self._object(self.send(method, path, timeout, json=body, **options))

    def every(self, path: str, key: str, most: int | None = None, marker: str | None = None,
              **parameters: Any) -> Iterator[Json]:
        """All items of a list, or *most* of them, page after page.

        :param marker: only what comes after the item of this id
        """
        query = {name: value for name, value in {**parameters, 'marker': marker}.items() if value is not None}
        while most is None or most > 0:
            limit = LARGEST_PAGE if most is None else min(most, LARGEST_PAGE)
            page = self.json('GET', path, params={'limit': limit, **query})
            yield from page[key]
            if 'next' not in page.get('links', {}) or not page[key]:
                return
            most = None if most is None else most - len(page[key])
            query['marker'] = page[key][-1]['id']

    def _send(self, method: str, path: str, timeout: float | None = None, **options: Any) -> requests.Response:
        seconds = timeout or self._timeout
        try:
            return self._session.request(method, self.url + path, timeout=seconds, allow_redirects=False, **options)
        except requests.exceptions.ReadTimeout as error:
            raise self._unreachable(f'no response within {seconds:g} s; the request may still be carried out'
                                    ) from error
        except requests.exceptions.RequestException as error:
            raise self._unreachable(reason(error)) from error

    def _object(self, answer: requests.Response) -> Json:
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            kind = answer.headers.get('Content-Type', 'something')
            raise self._unreachable('what answers there is not the API of designate-pool, it sent '
                                    f'{kind} with status {answer.status_code}')
        return body

    def _unreachable(self, why: str) -> Exception:
        """The error to raise when there is no answer of the API."""
        return ApiUnreachable(url=self.url, why=why)

    def _refused(self, answer: requests.Response, fault: Json) -> Exception:
        """The error to raise for the *fault* that the API answers with."""
        message = ' '.join(str(fault.get('message') or f'The API answered with {answer.status_code}.').split())
        return ApiRefused(str(fault.get('type', '')), message, answer.status_code)


class PoolApi(ApiRequests):
    """Zones, changes at one serial, and stored plans.

    :param token: that of the environment (:data:`TOKEN`) when None; no token when empty
    :param session: a session with the token, instead of a new one
    """

    def __init__(self, url: str, timeout: float = 90.0, token: str | None = None,
                 session: requests.Session | None = None) -> None:
        self.token = (os.environ.get(TOKEN) if token is None else token) or None
        super().__init__(url, session or new_session(url, self.token), timeout)

    def zone(self, name: str) -> Json | None:
        """The zone of that name as the API shows it; None when there is none."""
        return zone_named(name, self.every('/v2/zones', 'zones', name=name))

    def zones(self) -> list[Json]:
        """All zones of the project, as the API shows them, in the order of their names; not those being deleted.

        Others that are shared with it cannot be read as a whole.
        """
        return [zone for zone in self.every('/v2/zones', 'zones', sort_key='name', own='true')
                if zone['action'] != 'DELETE']

    def ping(self) -> None:
        """Check with a cheap request whether it answers."""
        self.json('GET', '/v2/zones', params={'limit': 1})

    def contents(self, zone_id: str) -> str:
        """A zone at one serial as a zone file (RFC 1035 section 5)."""
        return self.send('GET', f'/v2/zones/tasks/exports/{zone_id}/export').content.decode()

    def not_changed(self, zone: Json) -> dict[str, tuple[str, bool]]:
        """Why plans do not change recordsets of a zone, by the keys of their RRsets.

        With each reason, whether to log it also when the file does not have the recordset.
        """
        path = f'/v2/zones/{zone["id"]}/recordsets'
        is_any = zone['locked_recordsets'] or zone['shared']
        every = self.every(path, 'recordsets', managed=None if is_any else 'true')
        return {f'{recordset["name"].lower()}\t{recordset["type"]}': why for recordset in every
                if (why := _not_changed(zone, recordset)) is not None}

    def create_zone(self, name: str, email: str | None, recordsets: Sequence[Mapping[str, Any]]) -> Json:
        """Create a zone with *recordsets*, all at its first serial.

        :param email: hostmaster at the zone when None
        """
        return self.json('POST', '/v2/zones', {'name': name, 'email': email or f'hostmaster@{name.rstrip(".")}',
                                               'recordsets': list(recordsets)}, headers=_IS_PLAN)

    def change(self, zone_id: str, changes: Sequence[Mapping[str, Any]], serial: int | None) -> Json:
        """Make many changes at one serial: all of them or none.

        :param changes: mappings with ``name``, ``type``, ``records`` (none deletes the RRset) and ``ttl``
        :param serial: the zone's when it was read; if it has changed since, nothing is changed
        :raises ApiRefused: of the type ``serial_moved`` if it has
        """
        return self.json('POST', f'/v2/zones/{zone_id}/changes',
                         {'changes': list(changes), 'serial': serial}, headers=_IS_PLAN)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()


def _not_changed(zone: Json, recordset: Json) -> tuple[str, bool] | None:
    if recordset['lock_reason'] is not None:
        return f'it is locked: {recordset["lock_reason"]}', True
    if recordset['managed']:
        return 'it is there for a floating IP, an instance or a signed zone', False
    return None if recordset['project_id'] == zone['project_id'] else ('another project created it', False)


def zone_named(name: str, zones: Iterable[Json]) -> Json | None:
    """That of *zones* which has a name; None when none has.

    One that is being deleted only when there is no other: its name may have been used again meanwhile.
    """
    going = None
    for zone in zones:
        if zone['name'].lower() == name.lower():
            if zone['action'] != 'DELETE':
                return zone
            going = zone
    return going


class ApiStore(PlanStore):
    """Plans in Central, through the API; PlanNotFound for an unknown id."""

    def __init__(self, api: PoolApi) -> None:
        self._api = api

    def put(self, plan: StoredPlan) -> StoredPlan:
        return stored_plan(self._api.json('POST', '/v2/plans', {
            'id': plan.id, **({'pool_name': plan.pool_name} if plan.pool_name else {}), 'zone_name': plan.zone,
            'target': plan.target, 'desired_digest': plan.desired_digest, 'existing_digest': plan.existing_digest,
            'creates': plan.creates, 'updates': plan.updates, 'deletes': plan.deletes, 'why': plan.why,
            'document': json.loads(plan.document or '{}'),
            'expires_at': plan.expires_at and plan.expires_at.isoformat()}))

    def get(self, plan_id: str) -> StoredPlan:
        """The plan with this id, or with this prefix of at least four digits."""
        return self._ask('GET', plan_id)

    def find(self, state: PlanState | None = None) -> list[StoredPlan]:
        """All plans, those in *state* if given, without their documents, the newest first."""
        return [stored_plan(plan) for plan in self._api.every('/v2/plans', 'plans', state=state and state.value)]

    def settle(self, plan_id: str, state: PlanState, why: str | None) -> None:
        self._ask('POST', plan_id, '/settle', {'state': state.value, 'why': why})

    def approve(self, plan_id: str) -> None:
        """Approve a parked plan, which is then applied."""
        self._ask('POST', plan_id, '/approve')

    def drop(self, plan_id: str) -> None:
        """Drop a plan that has not been applied."""
        self._ask('DELETE', plan_id)

    def _ask(self, method: str, plan_id: str, action: str = '', body: Json | None = None) -> StoredPlan:
        path = f'/v2/plans/{urllib.parse.quote(plan_id, safe="")}{action}'
        try:
            return stored_plan(self._api.json(method, path, body))
        except ApiRefused as error:
            if error.type == PlanNotFound.type:
                raise PlanNotFound(plan=plan_id) from error
            raise


def stored_plan(shown: Mapping[str, Any]) -> StoredPlan:
    """A plan from its JSON representation."""
    times: dict[str, Any] = {name: _time(shown[name]) for name in ('expires_at', 'applied_at', 'created_at',
                                                                   'updated_at')}
    return StoredPlan(
        id=_id(shown['id']) or '', pool_name=shown['pool_name'], zone=shown['zone_name'], target=shown['target'],
        state=PlanState(shown['state']), domain_id=_id(shown['zone_id']), server_id=_id(shown['server_id']),
        desired_digest=shown['desired_digest'], existing_digest=shown['existing_digest'], creates=shown['creates'],
        updates=shown['updates'], deletes=shown['deletes'], why=shown['why'],
        document=json.dumps(shown['document']) if 'document' in shown else '', asked_by=shown['asked_by'], **times)


def _id(shown: str | None) -> str | None:
    return None if shown is None else uuid.UUID(shown).hex


def _time(shown: str | None) -> datetime | None:
    return None if shown is None else datetime.fromisoformat(shown).replace(tzinfo=timezone.utc)


#: Retry after 429 only: the response says when, and the request was not carried out.
_RETRY_429 = requests.adapters.Retry(  # type: ignore[attr-defined]
    total=None, connect=0, read=False, other=0, status=5, status_forcelist=(429,), allowed_methods=None,
    raise_on_status=False)


def new_session(url: str, token: str | None = None) -> requests.Session:
    """A session for the API at *url*; InvalidField, without its contents, for an invalid *token*."""
    session = requests.Session()
    session.headers['User-Agent'] = os.path.basename(sys.argv[0])
    for scheme in ('http://', 'https://'):
        session.mount(scheme, requests.adapters.HTTPAdapter(max_retries=_RETRY_429))
    if token is not None:
        if not _IS_TOKEN.fullmatch(token):
            raise InvalidField(field='token', why='must be visible ASCII characters without blanks')
        session.headers['X-Auth-Token'] = token
    try:
        # A proxy of the environment cannot reach our loopback.
        session.trust_env = urllib.parse.urlsplit(url).hostname not in _LOOPBACK
    except ValueError:  # no URL; the first request reports it
        pass
    return session


def reason(error: BaseException) -> str:
    """Why a request failed: the text of the innermost exception."""
    if isinstance(error, (requests.exceptions.MissingSchema, requests.exceptions.InvalidSchema,
                          requests.exceptions.InvalidURL)):
        return 'not an address like http://HOST:PORT'
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return str(cause.strerror).lower()
        cause = _inner(cause)
    return ' '.join(str(error).split()) or type(error).__name__


def _inner(error: BaseException) -> BaseException | None:
    arguments: Iterable[Any] = (getattr(error, 'reason', None), *error.args, error.__context__)
    return next((argument for argument in arguments if isinstance(argument, BaseException)), None)
