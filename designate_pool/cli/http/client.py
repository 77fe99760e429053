"""The API over HTTP.  Every failure is a :class:`CliError`, whose message says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import requests

from designate_pool.cli.args import common
from designate_pool.cli.http.errors import ApiRefusal, CliError, Json
from designate_pool.cli.http.settings import ApiConnection
from designate_pool.errors import InvalidField
from designate_pool.planner.providers.pool_api import new_session, reason, zone_named

_IS_PROJECT = re.compile('[A-Za-z0-9_.-]{1,36}')
#: Items that one answer may have.
LARGEST_PAGE = 1000
_ALL = 'X-Auth-All-Projects'
#: What things are called in messages, where that is not the word of the API.
_NOUNS = {'tsigkey': 'TSIG key', 'tld': 'top-level domain', 'zone_transfer_request': 'transfer request',
          'zone_transfer_accept': 'accepted transfer', 'shared_zone': 'share', 'zone_import': 'import',
          'zone_export': 'export'}


def session_for(url: str, settings: ApiConnection) -> requests.Session:
    """A session for the API at *url*.

    :raises CliError: when the token or the project is malformed
    """
    try:
        session = new_session(url, settings.token)
    except InvalidField as error:
        raise CliError(str(error)) from error
    if settings.project:
        if not _IS_PROJECT.fullmatch(settings.project):
            raise CliError('--project: must be 1 to 36 letters, digits, dots, dashes or underscores.')
        session.headers['X-Auth-Sudo-Project-ID'] = settings.project
    if settings.all_projects:
        session.headers[_ALL] = 'true'
    if settings.cacert:
        session.verify = settings.cacert
    return session


class Client:
    """Asks the API, and finds things by what people type.

    :param url: where the API is, without a path
    :param timeout: seconds that one answer may take
    :param settings: who asks, and for whom; where the API is, is *url*
    """

    def __init__(self, url: str, timeout: float = 90.0, settings: ApiConnection = ApiConnection()) -> None:
        self.url = url.rstrip('/')
        self._timeout = timeout
        self._session = session_for(self.url, settings)

    def get(self, path: str, within: float | None = None, **parameters: Any) -> Json:
        """The JSON at a path.

        :param within: seconds that the answer may take, where it is not the client's timeout
        :param parameters: of the query
        """
        return self._json(self.send('GET', path, within, params=parameters))

    def change(self, method: str, path: str, body: Json | None = None, timeout: float | None = None,
               headers: Mapping[str, str] | None = None) -> Json:
        return self._json(self.send(method, path, timeout, json=body, headers=headers))

    def send(self, method: str, path: str, timeout: float | None = None, **options: Any) -> requests.Response:
        """Send a request; the answer is no refusal.

        :raises CliError: when the API cannot be reached or refuses
        """
        answer = self._send(method, path, timeout, **options)
        if answer.status_code >= 400:
            raise ApiRefusal(answer.status_code, self._json(answer))
        return answer

    def for_all_projects(self) -> None:
        """Make all requests from now on about all projects."""
        self._session.headers[_ALL] = 'true'

    def may_see_everything(self) -> bool:
        """Whether requests may be about all projects; if so, all are from now on."""
        try:
            self.send('GET', '/v2/zones', params={'limit': 1}, headers={_ALL: 'true'})
        except ApiRefusal as error:
            if error.status != 403:
                raise
            return False
        self.for_all_projects()
        return True

    def health(self) -> Json:
        """What ``/healthz`` says, also where it says that something is wrong."""
        health = self._json(self._send('GET', '/healthz', None))
        if not {'version', 'status', 'central'} <= set(health):
            raise ApiRefusal(503, health)
        return health

    def _send(self, method: str, path: str, timeout: float | None, **options: Any) -> requests.Response:
        try:
            answer = self._session.request(method, self.url + path, timeout=timeout or self._timeout,
                                           allow_redirects=False, **options)
        except (requests.exceptions.InvalidURL, requests.exceptions.MissingSchema,
                requests.exceptions.InvalidSchema) as error:
            raise CliError(f'{self.url!r} is no address of an API; give one as --url http://HOST:PORT.') from error
        except requests.exceptions.ReadTimeout as error:
            raise CliError(f'The API at {self.url} has not answered in {timeout or self._timeout:g} s; what was asked '
                           'may still be done: look before you try again.') from error
        except requests.exceptions.RequestException as error:
            raise CliError(f'The API at {self.url} cannot be reached ({reason(error)}); look whether '
                           'designate-pool-api is running and whether --url or DESIGNATE_POOL_URL is right.') from error
        return answer

    def every(self, path: str, key: str, most: int | None = None, marker: str | None = None,
              **parameters: Any) -> Iterator[Json]:
        """All items of a list, page after page.

        :param most: at most this many
        :param marker: only what comes after the item of this id
        """
        query = {name: value for name, value in {**parameters, 'marker': marker}.items() if value is not None}
        remaining = LARGEST_PAGE if most is None else most
        while remaining:
            page = self.get(path, limit=min(remaining, LARGEST_PAGE), **query)
            yield from page[key]
            if most is not None:
                remaining -= len(page[key])
            if 'next' not in page.get('links', {}) or not page[key]:
                return
            query['marker'] = page[key][-1]['id']

    def zone(self, name_or_id: str) -> Json:
        """A zone by its name or id.

        :raises CliError: when there is none
        """
        if common.is_id(name_or_id):
            return self.get(f'/v2/zones/{name_or_id}')
        name = common.of_zone(name_or_id)
        zone = zone_named(name, self.every('/v2/zones', 'zones', name=name))
        if zone is not None:
            return zone
        raise ApiRefusal(404, {'type': 'zone_not_found', 'message': f'There is no zone {name}'})

    def recordset(self, zone: Json, name_or_id: str, rtype: str | None = None) -> Json:
        """A recordset of a zone by its name or id.

        :param rtype: its type; only where more than one recordset has the name is it needed
        :raises CliError: when there is none, or more than one
        """
        path = f'/v2/zones/{zone["id"]}/recordsets'
        if common.is_id(name_or_id):
            return self.get(f'{path}/{name_or_id}')
        name = common.in_zone(name_or_id, zone['name'])
        recordsets = [recordset for recordset in self.every(path, 'recordsets', name=name, type=rtype and rtype.upper())
                      if recordset['name'].lower() == name.lower()]
        if not recordsets:
            raise ApiRefusal(404, {'type': 'recordset_not_found',
                                   'message': f'There is no recordset {name}{" " + rtype.upper() if rtype else ""}'})
        if len(recordsets) > 1:
            types = ', '.join(sorted(recordset['type'] for recordset in recordsets))
            raise CliError(f'{name} has recordsets of several types ({types}); name the type after the name.')
        return recordsets[0]

    def share(self, zone: Json, given: str) -> Json:
        """A share of a zone.

        :param given: its id or the beginning of it, or the id of the project that the zone is shared with
        """
        path = f'/v2/zones/{zone["id"]}/shares'
        if common.is_id(given):
            try:
                return self.get(f'{path}/{given}')
            except ApiRefusal as refused:
                if refused.status != 404:
                    raise
        return self.chosen(given, ({**share, 'name': share['target_project_id']}
                                   for share in self.every(path, 'shared_zones')), 'shared_zone')

    def server(self, given: str) -> Json:
        """A server of the pool.

        :param given: its id or the beginning of it, with or without dashes, its name, or its host
        """
        return self.chosen(given, self.get('/v2/servers')['servers'], 'server')

    def pool(self, given: str) -> Json:
        """A pool.

        :param given: its id or the beginning of it, or its name
        """
        return self.chosen(given, self.every('/v2/pools', 'pools'), 'pool')

    def pool_names(self) -> dict[str, str]:
        """The names of the pools, by their ids."""
        return {pool['id']: pool['name'] for pool in self.every('/v2/pools', 'pools')}

    def tsigkey(self, given: str) -> Json:
        """A TSIG key.

        :param given: its id or the beginning of it, or its name; the final dot may be left out
        """
        return self.chosen(given, self.every('/v2/tsigkeys', 'tsigkeys'), 'tsigkey')

    def tld(self, given: str) -> Json:
        """A top-level domain.

        :param given: its id or the beginning of it, or its name
        """
        return self.chosen(given, self.every('/v2/tlds', 'tlds'), 'tld')

    def blacklist(self, given: str) -> Json:
        """A pattern of the blacklists.

        :param given: its id or the beginning of it, or its pattern
        """
        every = self.every('/v2/blacklists', 'blacklists')
        return self.chosen(given, ({**blacklist, 'name': blacklist['pattern']} for blacklist in every), 'blacklist')

    @staticmethod
    def chosen(given: str, candidates: Iterable[Json], what: str) -> Json:
        """The one of *candidates* that has the name or id *given*; else the one that is likely meant.

        :param what: the API's word for them
        :raises CliError: when there is none, or more than one
        """
        entries = list(candidates)
        matches = [entry for entry in entries if common.is_called(given, entry)] \
            or [entry for entry in entries if common.may_be_called(given, entry)]
        noun = _NOUNS.get(what, what)
        if not matches:
            raise ApiRefusal(404, {'type': f'{what}_not_found', 'message': f'There is no {noun} {given}.'})
        if len(matches) > 1:
            which = ', '.join(f'{match["name"]} {match["id"]}' if 'name' in match else match['id'] for match in matches)
            raise CliError(f'{given} fits several {noun}s ({which}); give the name or more of the id.')
        return matches[0]

    def _json(self, answer: requests.Response) -> Json:
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise CliError(f'What answers at {self.url} is not the API of designate-pool (it sent '
                           f'{answer.headers.get("Content-Type", "something")} with status {answer.status_code}); '
                           'look whether --url or DESIGNATE_POOL_URL is right.')
        return body
