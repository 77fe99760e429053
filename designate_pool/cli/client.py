"""The API over HTTP.  Whatever goes wrong is one line that says what to do; mistakes of a file have a line each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import requests

from designate_pool.cli import names
from designate_pool.planner.pool_api import new_session, reason

DEFAULT_URL = 'http://127.0.0.1:9001'
Json = dict[str, Any]

#: What to do, by the type of the API's error.
_HINTS = {
    'domain_not_found': "'designate-pool zone list' shows the zones there are.",
    'recordset_not_found': "'designate-pool recordset list ZONE' shows those there are.",
    'duplicate_domain': "Change it with 'designate-pool zone set', or delete it first.",
    'duplicate_recordset': "Change it with 'designate-pool recordset set'.",
    'domain_being_deleted': "'designate-pool zone explain' shows which servers have it yet; try again when it is gone.",
    'server_not_found': "'designate-pool server list' shows the servers there are.",
    'wrong_server_state': "'designate-pool server list' shows where each stands.",
    'bad_configuration': 'Nothing has changed; mend the file and reload again.',
    'plan_not_found': "'designate-pool plan list' shows the plans there are.",
    'wrong_plan_state': "'designate-pool plan list' shows where each stands; 'designate-pool plan' makes a new one.",
    'plan_moved': "Nothing was changed; make a new plan with 'designate-pool plan' and look at it.",
    'serial_moved': "Nothing was changed; make a new plan with 'designate-pool plan' and look at it.",
    'service_unavailable': 'Look whether designate-pool-central and what it needs are running, then try again.',
    'internal_error': "The API's log says more; look for {request_id}.",
}


class Failure(Exception):
    """The command cannot be done; the message is for the user.

    :ivar code: the exit code
    """

    code = 1


class Refused(Failure):
    """The API answered with an error.

    :ivar status: of HTTP
    :ivar type: the API's word for it
    """

    def __init__(self, status: int, fault: Json) -> None:
        self.status = status
        self.type = str(fault.get('type', ''))
        message = str(fault.get('message') or f'The API answered with {status}.')
        if self.type != 'bad_configuration':
            message = ' '.join(message.split())
        super().__init__(hinted(message, self.type, fault.get('request_id', 'the request')))


def hinted(message: str, type: str, request_id: str = 'the request') -> str:
    """*message* and what to do about it.

    :param type: the API's word for the error
    """
    hint = _HINTS.get(type, '').format(request_id=request_id)
    return '\n'.join((message, hint)) if '\n' in message else f'{message} {hint}'.strip()


class Client:
    """
    :param url: where the API is, without a path
    :param timeout: seconds that one answer may take
    """

    def __init__(self, url: str, timeout: float = 90.0) -> None:
        self.url = url.rstrip('/')
        self._timeout = timeout
        self._session = new_session(self.url)

    def get(self, path: str, **parameters: Any) -> Json:
        return self._json(self.send('GET', path, params=parameters))

    def change(self, method: str, path: str, body: Json | None = None, timeout: float | None = None) -> Json:
        return self._json(self.send(method, path, timeout, json=body))

    def send(self, method: str, path: str, timeout: float | None = None, **options: Any) -> requests.Response:
        """
        :raises Failure: when the API cannot be reached or refuses
        """
        answer = self._send(method, path, timeout, **options)
        if answer.status_code >= 400:
            raise Refused(answer.status_code, self._json(answer))
        return answer

    def health(self) -> Json:
        """What ``/healthz`` says, also where it says that something is wrong."""
        found = self._json(self._send('GET', '/healthz', None))
        if not {'version', 'status', 'central'} <= set(found):
            raise Refused(503, found)
        return found

    def _send(self, method: str, path: str, timeout: float | None, **options: Any) -> requests.Response:
        try:
            answer = self._session.request(method, self.url + path, timeout=timeout or self._timeout,
                                           allow_redirects=False, **options)
        except (requests.exceptions.InvalidURL, requests.exceptions.MissingSchema,
                requests.exceptions.InvalidSchema) as error:
            raise Failure(f'{self.url!r} is no address of an API; give one as --url http://HOST:PORT.') from error
        except requests.exceptions.ReadTimeout as error:
            raise Failure(f'The API at {self.url} has not answered in {timeout or self._timeout:g} s; what was asked '
                          'may still be done: look before you try again.') from error
        except requests.exceptions.RequestException as error:
            raise Failure(f'The API at {self.url} cannot be reached ({reason(error)}); look whether '
                          'designate-pool-api is running and whether --url or DESIGNATE_POOL_URL is right.') from error
        return answer

    def every(self, path: str, key: str, **parameters: Any) -> Iterator[Json]:
        """All items of a list, page after page."""
        wanted = {name: value for name, value in parameters.items() if value is not None}
        marker: Json = {}
        while True:
            page = self.get(path, limit=1000, **wanted, **marker)
            yield from page[key]
            if 'next' not in page['links'] or not page[key]:
                return
            marker = {'marker': page[key][-1]['id']}

    def zone(self, name_or_id: str) -> Json:
        """
        :raises Failure: when there is none
        """
        if names.is_id(name_or_id):
            return self.get(f'/v2/zones/{name_or_id}')
        name = names.of_zone(name_or_id)
        for found in self.every('/v2/zones', 'zones', name=name):
            if found['name'].lower() == name.lower():
                return found
        raise Refused(404, {'type': 'domain_not_found', 'message': f'There is no zone {name}'})

    def recordset(self, zone: Json, name_or_id: str, rtype: str | None = None) -> Json:
        """
        :param rtype: its type; only where more than one recordset has the name is it needed
        :raises Failure: when there is none, or more than one
        """
        path = f'/v2/zones/{zone["id"]}/recordsets'
        if names.is_id(name_or_id):
            return self.get(f'{path}/{name_or_id}')
        name = names.in_zone(name_or_id, zone['name'])
        found = [each for each in self.every(path, 'recordsets', name=name, type=rtype and rtype.upper())
                 if each['name'].lower() == name.lower()]
        if not found:
            raise Refused(404, {'type': 'recordset_not_found',
                                'message': f'There is no recordset {name}{" " + rtype.upper() if rtype else ""}'})
        if len(found) > 1:
            types = ', '.join(sorted(each['type'] for each in found))
            raise Failure(f'{name} has recordsets of several types ({types}); name the type after the name.')
        return found[0]

    def server(self, given: str) -> Json:
        """
        :param given: its id or the beginning of it, with or without dashes, its name, or its host
        :raises Failure: when there is none, or more than one
        """
        servers = self.get('/v2/servers')['servers']
        found = [each for each in servers if names.is_server(given, each)] \
            or [each for each in servers if names.may_be_server(given, each)]
        if not found:
            raise Refused(404, {'type': 'server_not_found', 'message': f'There is no server {given}.'})
        if len(found) > 1:
            which = ', '.join(f'{each["name"]} {each["id"]}' for each in found)
            raise Failure(f'{given} may be any of several servers ({which}); give the name or more of the id.')
        return found[0]

    def _json(self, answer: requests.Response) -> Json:
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Failure(f'What answers at {self.url} is not the API of designate-pool (it sent '
                          f'{answer.headers.get("Content-Type", "something")} with status {answer.status_code}); '
                          'look whether --url or DESIGNATE_POOL_URL is right.')
        return found
