"""The API over HTTP, and its errors: every failure is a :class:`CliError`, whose message says what to do."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import requests

from designate_pool.cli.connection import ApiConnection, CliError
from designate_pool.errors import (ApiRefused, ApiUnreachable, InvalidField, PlanMoved, PlanNotFound, PoolError,
                                   WrongPlanState)
from designate_pool.planner.providers.pool_api import LARGEST_PAGE, ApiRequests, new_session, zone_named

Json = dict[str, Any]
_IS_PROJECT = re.compile('[A-Za-z0-9_.-]{1,36}')
_ALL = 'X-Auth-All-Projects'
#: The least digits that are taken for the beginning of an id.
PREFIX = 4
#: Digits of an id in a table without ``--long``; as the beginning of an id, they are taken in its place.
DIGITS = 8
_ID = re.compile('[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}')
#: What to do, by the type of the API's error.
_HINTS = {
    'zone_not_found': "'designate-pool zone list' shows the zones there are.",
    'deleted_zone_not_found': "'designate-pool zone deleted' shows those that can be restored.",
    'recordset_not_found': "'designate-pool recordset list ZONE' shows those there are.",
    **dict.fromkeys(('name_taken', 'illegal_child', 'illegal_parent'),
                    'The name, or one above or below it, may belong to another project. With --all-projects an '
                    'administrator can create or restore it anyway.'),
    'duplicate_zone': "Change it with 'designate-pool zone set', or delete it first.",
    'duplicate_recordset': "Change it with 'designate-pool recordset set'.",
    'domain_being_deleted': "'designate-pool zone explain' shows which servers have it yet; try again when it is gone.",
    'server_not_found': "'designate-pool server list' shows the servers there are.",
    'wrong_server_state': "'designate-pool server list' shows the state of each.",
    'server_silent': "Look whether it runs; 'designate-pool-manage config check' asks it, and says what to do.",
    'secondary_zone': "Change them at a master; 'designate-pool zone refresh' transfers them now.",
    'bad_configuration': 'Nothing has changed; correct the file and reload again.',
    'plan_not_found': "'designate-pool plan list' shows those there are.",
    **dict.fromkeys(('change_not_found', 'change_ended'), "'designate-pool zone changes' shows those that wait."),
    'change_moved': 'It waits no longer; who asked for it has to ask for it again, as the zone is now.',
    'wrong_plan_state': "'designate-pool plan list' shows the state of each; 'designate-pool plan' makes a new one.",
    'plan_moved': "Nothing was changed; make a new plan with 'designate-pool plan' and look at it.",
    'serial_moved': "Nothing was changed; make a new plan with 'designate-pool plan' and look at it.",
    'locked': "Nothing was changed. Who may do so unlocks it with 'designate-pool zone unlock' or 'recordset unlock'.",
    'precondition_failed': 'Nothing was changed.',
    'pool_not_found': "'designate-pool pool list' shows the pools there are.",
    'tsigkey_not_found': "'designate-pool tsigkey list' shows the keys there are.",
    'duplicate_tsigkey': "Change it with 'designate-pool tsigkey set', or delete it first.",
    'tld_not_found': "'designate-pool tld list' shows those there are.",
    'blacklist_not_found': "'designate-pool zone blacklist list' shows those there are.",
    'invalid_zone_name': "'designate-pool tld list' and 'designate-pool zone blacklist list' show to administrators "
                         'which names zones may have.',
    'zone_transfer_request_not_found': "'designate-pool zone transfer request list' shows those there are.",
    'shared_zone_not_found': "'designate-pool zone share list ZONE' shows those there are.",
    'zone_is_shared': "'designate-pool zone delete --delete-shares' deletes it anyway.",
    'shared_zone_has_recordsets': "'designate-pool recordset list ZONE' shows them.",
    'zone_import_not_found': "'designate-pool zone import list' shows the imports there are.",
    'zone_export_not_found': "'designate-pool zone export list' shows the exports there are.",
    'service_unavailable': 'Check that designate-pool-central, its database and broker are running, then try again.',
    'identity_failed': "The API's log says more; its section [keystone_authtoken] may be wrong.",
    'internal_error': "The API's log says more; look for {request_id}.",
    'unauthorized': "Give one as --token, in DESIGNATE_POOL_TOKEN or in a cloud; 'designate-pool-manage token create' "
                    'makes one.',
    'forbidden': 'Ask for a role that may do it, or name another project with --project.',
    'over_quota': "'designate-pool quota show' shows the limits, 'designate-pool quota set' raises one.",
    'too_many_waits': 'Changes that were accepted continue in the background.',
}
#: The type whose hint is shown, by the status of HTTP, where the type of the error has none.
_BY_STATUS = {401: 'unauthorized', 403: 'forbidden'}


class ApiRefusal(CliError):
    """The API answered with an error, of the HTTP *status* and the code *type*."""

    def __init__(self, status: int, fault: Json) -> None:
        self.status = status
        self.type = str(fault.get('type', ''))
        message = str(fault.get('message') or f'The API answered with {status}.')
        if self.type != 'bad_configuration':
            message = ' '.join(message.split())
        kind = self.type if self.type in _HINTS else _BY_STATUS.get(status, self.type)
        super().__init__(with_hint(message, kind, fault.get('request_id') or 'the request'))


def with_hint(message: str, type: str, request_id: str = 'the request') -> str:
    """*message* with a hint on what to do about an error of the code *type*."""
    hint = _HINTS.get(type, '').format(request_id=request_id)
    return '\n'.join((message, hint)) if '\n' in message else f'{message} {hint}'.strip()


def cli_error(error: PoolError) -> CliError:
    """*error* with a hint on what to do."""
    if isinstance(error, ApiUnreachable):
        return CliError(f'{error} Look whether designate-pool-api (or -all) is running and whether --url or '
                        'DESIGNATE_POOL_URL is right.')
    has_hint = isinstance(error, (ApiRefused, PlanNotFound, PlanMoved, WrongPlanState))
    return CliError(with_hint(str(error), error.type) if has_hint else str(error))


def is_id(text: str) -> bool:
    """Whether *text* is a UUID, with or without dashes."""
    return _ID.fullmatch(text) is not None


def is_absolute(name: str) -> bool:
    """Whether *name* ends with a dot that is not escaped (RFC 1035 section 5.1)."""
    before = name.removesuffix('.')
    return before != name and (len(before) - len(before.rstrip('\\'))) % 2 == 0


def version_path(path: str, at: str) -> str:
    """The path of a version, by a serial or a time, of the zone that has this id, or below a path."""
    return f'{path if path.startswith("/") else f"/v2/zones/{path}/versions"}/{quote(at, safe="")}'


def of_zone(name: str) -> str:
    """A zone's name with its final dot."""
    return name if is_absolute(name) else name + '.'


def in_zone(name: str, zone: str) -> str:
    """A recordset's absolute name in *zone*: ``@`` is the zone, ``www`` below it, ``www.example.com`` gets its dot."""
    if name == '@':
        return zone
    if is_absolute(name):
        return name
    before = f'{name}.'[:-len(zone)]
    if zone != '.' and f'{name}.'.lower().endswith(zone.lower()) and (not before or is_absolute(before)):
        return name + '.'
    return f'{name}.' if zone == '.' else f'{name}.{zone}'


def is_called(text: str, thing: Mapping[str, Any], name: str = 'name') -> bool:
    """Whether *text* is the id or the name of *thing*, as the API shows it; final dots are ignored."""
    return _plain(text) == _plain(thing['id']) or text.lower().rstrip('.') == thing[name].lower().rstrip('.')


def may_be_called(text: str, thing: Mapping[str, Any]) -> bool:
    """Whether *text* is the host of *thing* or the beginning of its id; others may have the same."""
    plain = _plain(text)
    return text.lower() == thing.get('host') or len(plain) >= PREFIX and _plain(thing['id']).startswith(plain)


def _plain(id: str) -> str:
    return id.replace('-', '').lower()


@dataclasses.dataclass(frozen=True)
class Resource:
    """A kind of thing that the API has, and what commands show of it.

    :ivar path: of the list; ``{id}`` is that of the zone to which they belong
    :ivar name: the field that it is called by beside its id
    :ivar noun: what it is called in messages, where that is not the API's word
    :ivar metavar: what it is called in help, where that is not its noun
    :ivar has_pages: whether the list is answered in pages
    """

    word: str
    path: str
    columns: Sequence[str] = ()
    list_columns: Sequence[str] = ()
    name: str = 'name'
    noun: str = ''
    metavar: str = ''
    help: str = 'name, or id or the first four or more digits of it'
    has_pages: bool = True

    @property
    def key(self) -> str:
        """The list's in an answer."""
        return 'shared_zones' if self.word == 'shared_zone' else self.path.rpartition('/')[2]


POOL = Resource('pool', '/v2/pools', list_columns=('id', 'name', 'description'))
SERVER = Resource('server', '/v2/servers', help='id or the first four or more digits of it, name, or host',
                  has_pages=False)


def session_for(url: str, settings: ApiConnection) -> requests.Session:
    """A session for the API at *url*; CliError for a malformed token or project."""
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


class Client(ApiRequests):
    """Asks the API, and finds things by what people type.

    :param timeout: seconds that one answer may take
    :param settings: who asks, and for whom; where the API is, is *url*
    :param tell: called with a line for people about a change that waits for approval
    :ivar is_waiting: whether a change that was asked for waits so
    """

    def __init__(self, url: str, timeout: float = 90.0, settings: ApiConnection = ApiConnection(),
                 tell: Callable[[str], object] = lambda text: None) -> None:
        super().__init__(url, session_for(url, settings), timeout)
        self._settings = settings
        self._tell = tell
        self.is_waiting = False

    def send(self, method: str, path: str, timeout: float | None = None, **options: Any) -> requests.Response:
        """As that of the base class; also tells of a change that waits for approval."""
        answer = super().send(method, path, timeout, **options)
        if answer.status_code == 202 and answer.content \
                and (change := self._object(answer).get('links', {}).get('change')) is not None:
            self.is_waiting = True
            self._tell('It waits for approval by somebody else: '
                       f"'designate-pool zone changes approve {change.rpartition('/')[2][:DIGITS]}'.\n")
        return answer

    def get(self, path: str, within: float | None = None, **parameters: Any) -> Json:
        """The JSON at a path.

        :param within: seconds that the answer may take, where it is not the client's timeout
        """
        return self.json('GET', path, timeout=within, params=parameters)

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
        health = self._object(self._send('GET', '/healthz'))
        if not {'version', 'status', 'central', 'broker'} <= set(health):
            raise ApiRefusal(503, health)
        return health

    def zone(self, name_or_id: str) -> Json:
        """A zone by its name or id; CliError when there is none."""
        if is_id(name_or_id):
            return self.get(f'/v2/zones/{name_or_id}')
        name = of_zone(name_or_id)
        zone = zone_named(name, self.every('/v2/zones', 'zones', name=name))
        if zone is not None:
            return zone
        if not self._settings.all_projects and self.may_see_everything() \
                and zone_named(name, self.every('/v2/zones', 'zones', name=name)):
            raise ApiRefusal(404, {'type': 'zone_elsewhere', 'message': f'There is no zone {name} in this project, but '
                                   'there is one in another: --all-projects finds it.'})
        raise ApiRefusal(404, {'type': 'zone_not_found', 'message': f'There is no zone {name}'})

    def deleted_zone_id(self, name_or_id: str) -> str:
        """The id of a deleted zone, of several with one name the newest; CliError when there is none."""
        if is_id(name_or_id):
            return name_or_id
        name = of_zone(name_or_id)
        zones = [zone for zone in self.every('/v2/deleted_zones', 'deleted_zones', name=name)
                 if zone['name'].lower() == name.lower()]
        if not zones:
            raise ApiRefusal(404, {'type': 'deleted_zone_not_found', 'message': f'There is no deleted zone {name}'})
        return str(max(zones, key=lambda zone: str(zone['deleted_at']))['id'])

    def any_zone_id(self, name_or_id: str) -> str:
        """The id of a zone, or of the newest deleted one of that name; CliError when there is none."""
        if is_id(name_or_id):
            return name_or_id
        try:
            return str(self.zone(name_or_id)['id'])
        except ApiRefusal as missing:
            if missing.status != 404:
                raise
            try:
                return self.deleted_zone_id(name_or_id)
            except ApiRefusal:
                raise missing from None

    def versions(self, zone_id: str, most: int, **filters: Any) -> list[Json]:
        """The newest versions of a zone, with *when* each was made, to the second."""
        versions: list[Json] = []
        while len(versions) < most:
            page = self.get(version_path(zone_id, '')[:-1], limit=min(most - len(versions), LARGEST_PAGE), **filters)
            versions += page['versions']
            if 'next' not in page['links']:
                break
            filters['before'] = versions[-1]['number']
        return [{**version, 'when': version['created_at'][:19]} for version in versions]

    def recordset(self, zone: Json, name_or_id: str, rtype: str | None = None) -> Json:
        """A recordset of a zone by name or id, of *rtype* where several have the name; CliError unless there is one."""
        path = f'/v2/zones/{zone["id"]}/recordsets'
        if is_id(name_or_id):
            return self.get(f'{path}/{name_or_id}')
        name = in_zone(name_or_id, zone['name'])
        recordsets = [recordset for recordset in self.every(path, 'recordsets', name=name, type=rtype and rtype.upper())
                      if recordset['name'].lower() == name.lower()]
        if not recordsets:
            raise ApiRefusal(404, {'type': 'recordset_not_found',
                                   'message': f'There is no recordset {name}{f" {rtype.upper()}." if rtype else ""}'})
        if len(recordsets) > 1:
            types = ', '.join(sorted(recordset['type'] for recordset in recordsets))
            raise CliError(f'{name} has recordsets of several types ({types}); name the type after the name.')
        return recordsets[0]

    def find(self, resource: Resource, text: str, within: Json | None = None) -> Json:
        """One of *resource*, by its id or the beginning of it, with or without dashes, or by its name.

        :raises CliError: when there is none, or more than one
        """
        path = resource.path.format(**(within or {}))
        if is_id(text):
            try:
                return self.get(f'{path}/{text}')
            except ApiRefusal as refused:
                if refused.status != 404 or resource.name == 'id':
                    raise
        entries = list(self.every(path, resource.key)) if resource.has_pages else self.get(path)[resource.key]
        matches = [entry for entry in entries if is_called(text, entry, resource.name)] \
            or [entry for entry in entries if may_be_called(text, entry)]
        noun = resource.noun or resource.word
        if not matches:
            raise ApiRefusal(404, {'type': f'{resource.word}_not_found', 'message': f'There is no {noun} {text}.'})
        if len(matches) > 1:
            which = ', '.join(' '.join(dict.fromkeys((match[resource.name], match['id']))) for match in matches)
            raise CliError(f'{text} fits several {noun}s ({which}); give the name or more of the id.')
        return matches[0]

    def pool_names(self) -> dict[str, str]:
        """The names of the pools, by their ids."""
        return {pool['id']: pool['name'] for pool in self.every(POOL.path, POOL.key)}

    def _unreachable(self, why: str) -> Exception:
        return cli_error(ApiUnreachable(url=self.url, why=why))

    def _refused(self, answer: requests.Response, fault: Json) -> Exception:
        return ApiRefusal(answer.status_code, fault)
