"""PowerDNS Authoritative, through its HTTP API: secondary zones added and deleted.

``pdns.conf`` needs ``secondary=yes`` and the API; the TSIG key is made on the server, with ``pdnsutil``.  A new zone is
fetched by the API's ``axfr-retrieve``: PowerDNS itself looks for zones without contents only once in
``xfr-cycle-interval``.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
from collections.abc import Collection
from typing import Any, ClassVar

import dns.exception
import dns.name

from designate_pool import model
from designate_pool.backends.base import Backend
from designate_pool.backends.capabilities import Capabilities
from designate_pool.backends.pdns import settings_check
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, InvalidField
from designate_pool.model import Reason
from designate_pool.powerdns import PdnsAnswer, PdnsApi, PdnsServer, absolute, api_id, api_text

LOG = logging.getLogger(__name__)

#: The API's word for a secondary zone in every version, and the other one that newer versions may use.
KIND = 'Slave'
KINDS = ('slave', 'secondary')

#: Where the API of a server is.
API_OPTIONS = (
    model.Option('api_url', 'Where the HTTP API is, without /api/v1; port 8081 of the host when not set.'),
    model.Option('api_key', 'The api-key of its pdns.conf.', required=True, secret=True),
    model.Option('server_id', "The server's id in the API; 'localhost' unless something stands in between.",
                 default='localhost'),
    model.Option('ca_file', 'File with the certificates that the one of an https api_url has to descend from; those'
                 ' of the system when not set.', 'path'),
)


class Pdns(Backend):
    """A PowerDNS Authoritative Server."""

    capabilities = Capabilities(fetches_on_create=True)

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        *API_OPTIONS,
        model.Option('ixfr', 'Whether it is to fetch the changes of a zone only (IXFR). PowerDNS then gives wrong'
                     ' answers; see the documentation.', 'bool', False))

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        api = PdnsApi(api_url(server), self.options['api_key'], self.options['ca_file'])
        self._api = PdnsServer(api, self.options['server_id'])
        self._primaries = [_primary(endpoint) for endpoint in server.primaries]
        self._keys = [] if server.tsig_key is None else [api_id(dns.name.from_text(server.tsig_key.name))]
        # With SQLite a fourth of the deletes that meet another one fail.
        self._one_delete = threading.Lock()
        # A question that is signed with a key is refused a transfer, unless the zone names the key as a primary's.
        self._settings = {'kind': KIND, 'masters': self._primaries, 'slave_tsig_key_ids': self._keys,
                          'master_tsig_key_ids': self._keys}

    def check(self) -> list[model.Finding]:
        findings = super().check()
        if any(finding.serious for finding in findings):
            return findings
        result = self._call('read the settings', lambda deadline: findings.extend(self._misfits(deadline)))
        if not result.ok:
            findings.append(model.Finding(f'its settings cannot be read: {result.error}', self._advice(result), False))
        return findings

    def _create(self, domain: model.Domain, deadline: Deadline) -> None:
        if not self._primaries:
            raise BackendRefused(why=f'server {self.server.label} has no primaries to transfer zones from',
                                 reason=Reason.NO_PRIMARIES)
        name = _name(domain)
        answer = self._api.ask('POST', '/zones?rrsets=false', deadline, {'name': api_text(name)} | self._settings)
        if answer.status == 409:
            self._adjust(name, domain, deadline)
        elif answer.status != 201:
            raise self._api.trouble(f'create {domain.name}', answer)
        if self.options['ixfr']:
            self._have_changes_fetched(name, domain, deadline)
        elif answer.status == 409:
            self._have_it_fetched_whole(name, domain, deadline)
        self._retrieve(name, domain, deadline)

    def _delete(self, domain: model.Domain, deadline: Deadline) -> None:
        path = f'/zones/{api_id(_name(domain))}'
        held = self._api.ask('GET', f'{path}?rrsets=false', deadline)
        if held.status == 200:
            self._is_secondary(domain, held)
        if not self._one_delete.acquire(timeout=deadline.left()):
            raise TimeoutError
        try:
            answer = held if held.status == 404 else self._api.ask('DELETE', path, deadline)
        finally:
            self._one_delete.release()
        if answer.status == 404:
            self._api.greet(deadline)  # A wrong server_id or api_url is answered with 404 too.
        elif answer.status != 204:
            raise self._api.trouble(f'delete {domain.name}', answer)

    def _refetch(self, domain: model.Domain, deadline: Deadline) -> None:
        path = f'/zones/{api_id(_name(domain))}'
        # It would ask for what has changed since the serial that it has; so changes come whole from now on.
        asked = [('DELETE', _ixfr_of(_name(domain)))] if self.options['ixfr'] else []
        for verb, what in (*asked, ('PUT', f'{path}/axfr-retrieve')):
            answer = self._api.ask(verb, what, deadline)
            if answer.status == 404:
                self._api.greet(deadline)  # A wrong server_id or api_url is answered with 404 too.
                raise BackendError(why=f'retrieve {domain.name}: it is not there', reason=Reason.NO_ZONE)
            if answer.status not in (200, 204):
                raise self._api.trouble(f'retrieve {domain.name}', answer)

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[dict[str, int | None], bool]:
        answer = self._api.ask('GET', '/zones?dnssec=false', deadline)
        if answer.status != 200:
            raise self._api.trouble('list', answer)
        try:
            # A zone that was never fetched has the serial 0 as well, but was never checked either.
            return {absolute(zone['name']): zone['serial'] if zone['serial'] or zone['last_check'] else None
                    for zone in answer.json if zone['kind'].lower() in KINDS}, True
        except (TypeError, KeyError, AttributeError, dns.exception.DNSException) as error:
            raise self._api.stranger() from error

    def _ping(self, deadline: Deadline) -> None:
        self._api.greet(deadline)

    def _advice(self, result: model.CallResult) -> str:
        error = result.error or ''
        advice = advice_on_api(result)
        if advice is not None:
            return advice
        if self.server.tsig_key is not None and 'TSIG key' in error:
            return settings_check.how_to_import(self.server.tsig_key)
        return super()._advice(result)

    def _adjust(self, name: dns.name.Name, domain: model.Domain, deadline: Deadline) -> None:
        """Give the zone, which exists, the settings that it is to have, if it has others."""
        path = f'/zones/{api_id(name)}'
        answer = self._api.ask('GET', f'{path}?rrsets=false', deadline)
        if answer.status == 200:
            self._is_secondary(domain, answer)
            if self._is_as_it_should_be(answer.json):
                return
            answer = self._api.ask('PUT', path, deadline, self._settings)
        if answer.status == 404:
            raise BackendError(why=f'create {domain.name}: it was there, and was deleted meanwhile')
        if answer.status != 204:
            raise self._api.trouble(f'change {domain.name}', answer)

    def _have_changes_fetched(self, name: dns.name.Name, domain: model.Domain, deadline: Deadline) -> None:
        answer = self._api.ask('PUT', _ixfr_of(name), deadline, {'kind': 'IXFR', 'metadata': ['1']})
        if answer.status != 200:
            raise self._api.trouble(f'have the changes of {domain.name} fetched', answer)

    def _have_it_fetched_whole(self, name: dns.name.Name, domain: model.Domain, deadline: Deadline) -> None:
        """Take from the zone, which exists, what the section said when it had ``ixfr = true``, if it ever did."""
        answer = self._api.ask('GET', _ixfr_of(name), deadline)
        if answer.status == 200 and isinstance(answer.json, dict) and answer.json.get('metadata'):
            answer = self._api.ask('DELETE', _ixfr_of(name), deadline)
        if answer.status not in (200, 204):
            raise self._api.trouble(f'have {domain.name} fetched whole', answer)

    def _is_secondary(self, domain: model.Domain, answer: PdnsAnswer) -> None:
        """
        :raises BackendError: for a zone of another kind, which is an operator's own
        """
        if not isinstance(answer.json, dict):
            raise self._api.stranger()
        kind = str(answer.json.get('kind'))
        if kind.lower() not in KINDS:
            raise BackendError(why=f"{domain.name} is there already, as a {kind} zone: take it away with 'pdnsutil"
                                   " delete-zone' if it may go", reason=Reason.CONFLICT)

    def _is_as_it_should_be(self, zone: dict[str, Any]) -> bool:
        return (set(zone.get('masters') or ()) == set(self._primaries)
                and all((zone.get(field) or []) == self._keys
                        for field in ('slave_tsig_key_ids', 'master_tsig_key_ids')))

    def _retrieve(self, name: dns.name.Name, domain: model.Domain, deadline: Deadline) -> None:
        """Have the server fetch the zone now; where that fails, a NOTIFY will do it."""
        try:
            answer = self._api.ask('PUT', f'/zones/{api_id(name)}/axfr-retrieve', deadline)
            said = None if answer.status == 200 else answer.words
        except (BackendError, OSError) as error:
            said = str(error) or type(error).__name__
        if said is not None:
            LOG.debug('%s: retrieve %s: %s', self.server.label, domain.name, said)

    def _misfits(self, deadline: Deadline) -> list[model.Finding]:
        answer = self._api.ask('GET', '/config', deadline)
        if answer.status != 200:
            raise self._api.trouble('read the settings', answer)
        try:
            settings = {setting['name']: setting['value'] for setting in answer.json}
        except (TypeError, KeyError) as error:
            raise self._api.stranger() from error
        findings = list(settings_check.misfits(settings, self.server))
        if self.server.tsig_key is not None:
            answer = self._api.ask('GET', f'/tsigkeys/{self._keys[0]}', deadline)
            if answer.status not in (200, 404):
                raise self._api.trouble('read the TSIG key', answer)
            if not isinstance(answer.json, dict) and answer.status == 200:
                raise self._api.stranger()
            held = answer.json if answer.status == 200 else None
            misfit = settings_check.misfit_of_key(held, self.server.tsig_key)
            findings += [misfit] if misfit else []
        return findings


def api_url(server: model.Server) -> str:
    """Where the API of *server* is."""
    return str(server.options.get('api_url') or f'http://{model.Endpoint(server.host, 8081)}')


def advice_on_api(result: model.CallResult) -> str | None:
    """What an operator can do about a call that failed for the API itself; None for other failures."""
    if result.unreachable:
        return ('see whether PowerDNS runs with api=yes and webserver=yes, whether its webserver-address can be'
                ' reached from here, and whether its webserver-allow-from has the address of this host')
    if result.reason is Reason.BAD_KEY:
        return 'give the section the api-key of its pdns.conf'
    return None


def _ixfr_of(name: dns.name.Name) -> str:
    """Where the API has whether the zone *name* is fetched by its changes."""
    return f'/zones/{api_id(name)}/metadata/IXFR'


def _name(domain: model.Domain) -> dns.name.Name:
    try:
        return dns.name.from_text(domain.name)
    except (dns.exception.DNSException, ValueError) as error:
        raise BackendRefused(why=f'{domain.name!r} is not a domain name ({error})') from error


def _primary(endpoint: model.Endpoint) -> str:
    """*endpoint* as the API gives it back: without the port 53."""
    try:
        address = ipaddress.ip_address(endpoint.host)
    except ValueError as error:
        raise InvalidField(field='primaries', why=f"'{endpoint.host}' is not an IP address") from error
    return str(address) if endpoint.port == 53 else str(endpoint)
