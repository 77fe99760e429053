"""The ways in which clients change zones: plain HTTP, python-designateclient, and octoDNS with the pool's provider.

Each does one operation at a time and tells what came of it: a normal return is an acknowledgement, :exc:`Refused` an
answer that nothing was done; after any other exception nobody knows.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import requests
from designateclient import exceptions
from designateclient.v2.client import Client
from keystoneauth1 import noauth, token_endpoint
from keystoneauth1.session import Session
from octodns.record import Record
from octodns.zone import Zone

from designate_pool.errors import ApiRefused
from designate_pool.octodns_provider import DesignatePoolProvider

#: Name, type, TTL and records of an RRset; without records it is to be deleted.
Rrset = tuple[str, str, int, list[str]]
Json = dict[str, Any]


class Refused(Exception):
    """The API has answered that it does not do it.

    :ivar code: of HTTP
    """

    def __init__(self, code: int, why: str) -> None:
        super().__init__(f'{code} {why}')
        self.code = code


class Unclear(Exception):
    """The API has answered something that does not tell whether it was done."""


class Answer(NamedTuple):
    """
    :ivar serial: that the operation gave the zone; None where the answer does not tell
    """

    zone_id: str | None
    serial: int | None
    code: int


class ApiClient(Protocol):
    """One client of one tenant.

    :ivar whole: whether it makes a zone, or changes several RRsets, by one request
    """

    whole: bool

    def create(self, name: str, email: str, rrsets: Sequence[Rrset]) -> Answer: ...

    def change(self, zone_id: str, rrsets: Sequence[Rrset]) -> Answer: ...

    def delete(self, zone_id: str) -> Answer: ...


class Http:
    """Requests as the API's documentation has them.

    :param plain: whether one RRset is changed as a recordset, and not by the request for many changes
    """

    whole = True

    def __init__(self, url: str, token: str | None, timeout: float, plain: bool = False) -> None:
        self._url = url
        self._timeout = timeout
        self._plain = plain
        self._session = requests.Session()
        self._session.trust_env = False
        if token is not None:
            self._session.headers['X-Auth-Token'] = token

    def send(self, method: str, path: str, **options: Any) -> tuple[int, Json]:
        """Status and body of any answer."""
        answer = self._session.request(method, self._url + path, timeout=self._timeout, **options)
        try:
            body = answer.json() if answer.content else {}
        except ValueError:
            body = {}
        return answer.status_code, body

    def create(self, name: str, email: str, rrsets: Sequence[Rrset]) -> Answer:
        code, zone = self._do('POST', '/v2/zones', {'name': name, 'email': email,
                                                    'recordsets': [_recordset(each) for each in rrsets]})
        return Answer(zone['id'], zone['serial'], code)

    def change(self, zone_id: str, rrsets: Sequence[Rrset]) -> Answer:
        if self._plain and len(rrsets) == 1:
            return self._change_one(f'/v2/zones/{zone_id}/recordsets', rrsets[0])
        code, zone = self._do('POST', f'/v2/zones/{zone_id}/changes',
                              {'changes': [_recordset(each) for each in rrsets]})
        return Answer(zone['id'], zone['serial'], code)

    def delete(self, zone_id: str) -> Answer:
        code, zone = self._do('DELETE', f'/v2/zones/{zone_id}')
        return Answer(zone['id'], zone['serial'], code)

    def _change_one(self, path: str, rrset: Rrset) -> Answer:
        name, rtype, ttl, records = rrset
        code, found = self.send('GET', path, params={'name': name, 'type': rtype})
        if code != 200:
            raise Refused(code, 'reading the recordset')  # nothing was asked to be done
        there = next(iter(found['recordsets']), None)
        if there is None and not records:
            raise Refused(404, 'no such recordset')
        if there is None:
            code, _ = self._do('POST', path, _recordset(rrset))
        elif not records:
            code, _ = self._do('DELETE', f'{path}/{there["id"]}')
        else:
            code, _ = self._do('PUT', f'{path}/{there["id"]}', {'ttl': ttl, 'records': records})
        return Answer(None, None, code)

    def _do(self, method: str, path: str, body: Json | None = None) -> tuple[int, Json]:
        code, found = self.send(method, path, json=body)
        if 200 <= code < 300:
            return code, found
        if 400 <= code < 500 and code != 408:
            raise Refused(code, str(found.get('message', '')))
        raise Unclear(f'{code} {found.get("message", "")}')


class Designate:
    """python-designateclient; it changes one RRset at a time."""

    whole = False

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        endpoint = f'{url}/v2'
        auth: Any = noauth.NoAuth(endpoint=endpoint) if token is None else token_endpoint.Token(endpoint, token)
        self._client = Client(session=Session(auth=auth, timeout=timeout))

    def create(self, name: str, email: str, rrsets: Sequence[Rrset]) -> Answer:
        zone = self._call(self._client.zones.create, name, email=email)
        return Answer(zone['id'], zone['serial'], 202)

    def change(self, zone_id: str, rrsets: Sequence[Rrset]) -> Answer:
        (name, rtype, ttl, records), = rrsets
        sets = self._client.recordsets
        try:
            there = next(iter(sets.list(zone_id, criterion={'name': name, 'type': rtype})), None)
        except Exception as error:
            raise Refused(getattr(error, 'code', None) or 0, f'reading: {error}') from error
        if there is None and not records:
            raise Refused(404, 'no such recordset')
        if there is None:
            self._call(sets.create, zone_id, name, rtype, records, ttl=ttl)
        elif not records:
            self._call(sets.delete, zone_id, there['id'])
        else:
            self._call(sets.update, zone_id, there['id'], {'ttl': ttl, 'records': records})
        return Answer(None, None, 202)

    def delete(self, zone_id: str) -> Answer:
        zone = self._call(self._client.zones.delete, zone_id)
        return Answer(zone_id, zone.get('serial') if isinstance(zone, dict) else None, 202)

    @staticmethod
    def _call(do: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return do(*arguments, **options)
        except exceptions.RemoteError as error:
            if error.code is not None and 400 <= error.code < 500 and error.code != 408:
                raise Refused(error.code, str(error)) from error
            raise


class OctodnsPlan(NamedTuple):
    """What octoDNS is about to do.

    :ivar is_new: whether it makes the zone
    """

    rrsets: list[Rrset]
    is_new: bool
    plan: Any
    provider: DesignatePoolProvider


class Octodns:
    """octoDNS plans what a zone should be and has the pool's provider apply the plan; it deletes no zone.

    :param zone_name: of the one zone that it cares for, which nobody else changes
    :ivar wanted: what the zone should have
    """

    def __init__(self, url: str, token: str | None, timeout: float, zone_name: str) -> None:
        logging.getLogger('octodns').setLevel(logging.ERROR)
        self._options: Json = {'url': url, 'timeout': timeout, 'token': token or ''}
        self.zone_name = zone_name
        self.wanted: dict[tuple[str, str], tuple[int, list[str]]] = {}

    def plan(self, email: str) -> OctodnsPlan | None:
        """What there is to do; None for nothing.  Only reads."""
        provider = DesignatePoolProvider('pool', email=email, **self._options)
        desired = Zone(self.zone_name, [])
        for (name, rtype), (ttl, records) in self.wanted.items():
            data = {'type': rtype, 'ttl': ttl, **_octodns_values(rtype, records)}
            desired.add_record(Record.new(desired, name.removesuffix(self.zone_name).rstrip('.'), data))
        plan = provider.plan(desired)
        if plan is None:
            return None
        rrsets: list[Rrset] = []
        for change in plan.changes:
            record = change.record
            ttl, records = self.wanted.get((record.fqdn, record._type), (record.ttl, []))
            rrsets.append((record.fqdn, record._type, ttl, records if change.new is not None else []))
        return OctodnsPlan(rrsets, not plan.exists, plan, provider)

    @staticmethod
    def apply(plan: OctodnsPlan) -> Answer:
        try:
            plan.provider.apply(plan.plan)
        except ApiRefused as error:
            code = int(error.kwargs['code'])
            if 400 <= code < 500 and code != 408:
                raise Refused(code, str(error)) from error
            raise
        return Answer(None, None, 202)


def _octodns_values(rtype: str, records: Sequence[str]) -> Json:
    if rtype == 'CNAME':
        return {'value': records[0]}
    if rtype == 'MX':
        return {'values': [dict(zip(('preference', 'exchange'), each.split(), strict=True)) for each in records]}
    return {'values': [each.strip('"') for each in records]}


def _recordset(rrset: Rrset) -> Json:
    name, rtype, ttl, records = rrset
    return {'name': name, 'type': rtype, 'ttl': ttl, 'records': records}
