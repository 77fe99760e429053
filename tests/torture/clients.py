"""A client that changes zones over HTTP.

It does one operation at a time and tells what came of it: a normal return is an acknowledgement, :exc:`Refused` an
answer that nothing was done; after any other exception nobody knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import requests

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


class Http:
    """Requests as the API's documentation has them.

    :param plain: whether one RRset is changed as a recordset, and not by the request for many changes
    """

    def __init__(self, url: str, token: str, timeout: float, plain: bool = False) -> None:
        self._url = url
        self._timeout = timeout
        self._plain = plain
        self._session = requests.Session()
        self._session.trust_env = False
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

    def restore(self, zone_id: str) -> Answer:
        code, zone = self._do('POST', f'/v2/deleted_zones/{zone_id}/tasks/restore')
        return Answer(zone['id'], zone['serial'], code)

    def plan_revert(self, zone_id: str, serial: int) -> tuple[int, list[Rrset]]:
        """The serial that a zone has, and what would change for it to have the contents of another again."""
        code, plan = self.send('POST', f'/v2/zones/{zone_id}/tasks/revert', json={'to': str(serial), 'dry_run': True})
        if code != 200:
            raise Refused(code, 'planning a revert')  # nothing was asked to be done
        return plan['serial'], [(change['name'], change['type'], change['ttl'], change['records'])
                                for change in plan['changes']]

    def revert(self, zone_id: str, serial: int, present: int) -> Answer:
        """Make the changes that were planned when the zone had the serial *present*."""
        code, zone = self._do('POST', f'/v2/zones/{zone_id}/tasks/revert', {'to': str(serial), 'serial': present})
        return Answer(zone['id'], zone['serial'], code)

    def dnssec(self, zone_id: str, method: str, task: str = '', body: Json | None = None) -> None:
        """Have a zone signed or not, a key rolled, or the parent's DS confirmed."""
        self._do(method, f'/v2/zones/{zone_id}/dnssec{task}', body)

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


def _recordset(rrset: Rrset) -> Json:
    name, rtype, ttl, records = rrset
    return {'name': name, 'type': rtype, 'ttl': ttl, 'records': records}
