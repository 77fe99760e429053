"""PowerDNS Authoritative as a secondary server: zones are added and deleted through its HTTP API.

``pdns.conf`` must have ``secondary=yes`` and the API; the TSIG key is created on the server, with ``pdnsutil``.  The
driver starts the first transfer of a zone with the API's ``axfr-retrieve``: PowerDNS itself looks for zones without
contents only once per ``xfr-cycle-interval``.
"""

from __future__ import annotations

import ipaddress
import logging
import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, ClassVar

from designate_pool import model
from designate_pool.backends.base import ADOPTS_ZONES, Backend, Capabilities, ip_address
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError
from designate_pool.model import Finding, Reason, Server, TsigKey
from designate_pool.powerdns import SECONDARY_KINDS, PdnsServer, api_id, zone_path
from designate_pool.protocol import tsig
from designate_pool.protocol.rules import ServerLimit

LOG = logging.getLogger(__name__)

#: The API's name for the kind of a secondary zone that every version accepts.
KIND = 'Slave'
#: Settings with the seconds for which PowerDNS caches answers.
CACHES = ('cache-ttl', 'query-cache-ttl', 'negquery-cache-ttl')
_OFF = ('no', 'off')
#: Settings by which it serves other serials of signed zones than it has; and the zones that a check looks at.
_SOA_EDITS, SAMPLE = ('default-soa-edit', 'default-soa-edit-signed'), 20
#: The setting that enables DNSSEC in an SQL database, such as ``gsqlite3-dnssec``.
_DNSSEC_OF_DATABASE = re.compile(r'g[a-z0-9]+(-[a-z0-9-]+)?-dnssec')

#: How to reach the API of a server.
API_OPTIONS = (
    model.Option('api_url', 'URL of the HTTP API, without /api/v1; port 8081 of the host when not set.'),
    model.Option('api_key', 'The api-key of its pdns.conf.', required=True, secret=True),
    model.Option('server_id', "The server's id in the API; 'localhost' unless a proxy serves several servers.",
                 default='localhost'),
    model.Option('ca_file', 'File with the certificate authorities that an https api_url is verified with; those of'
                 ' the system when not set.', 'path'),
)
API_ADVICE = {
    Reason.UNREACHABLE: 'check that PowerDNS runs with api=yes and webserver=yes, that its webserver-address can be'
                        ' reached from this host, and that its webserver-allow-from has the address of this host',
    Reason.BAD_KEY: 'give the section the api-key of its pdns.conf',
}


#: Of its API.
ZONE_NAMES = ServerLimit('zone', 0, "PowerDNS takes letters, digits, '-', '_' and '/' in names of zones only")


class Pdns(Backend):
    """A PowerDNS Authoritative Server."""

    capabilities = Capabilities(
        fetches_on_create=True, signs_under_serial=True,
        not_transferred=frozenset({'DNSKEY', 'CDS', 'CDNSKEY', 'NSEC3PARAM'}), limits=(
            ServerLimit('iterations', 100, 'PowerDNS takes {limit} NSEC3 iterations at most (max-nsec3-iterations), not'
                                           ' {size}'),
            ZONE_NAMES))

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        *API_OPTIONS,
        model.Option('ixfr', 'Whether the server transfers only the changes of a zone (IXFR). PowerDNS then gives wrong'
                     ' answers; see the documentation.', 'bool', False),
        model.Option('signs_zones', 'Whether PowerDNS signs the zones, with keys in its database (DNSSEC): their'
                     ' signatures are then watched.', 'bool', False),
        ADOPTS_ZONES)
    ADVICE = API_ADVICE

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        self._api = PdnsServer(api_url(server), self.options['api_key'], self.options['ca_file'],
                               self.options['server_id'])
        self._primaries = [_primary(endpoint) for endpoint in server.primaries]
        self._keys = [] if self._key_name is None else [api_id(self._key_name)]
        # Without the key in master_tsig_key_ids PowerDNS refuses a transfer that is signed with it.
        self._settings = {'kind': KIND, 'masters': self._primaries, 'slave_tsig_key_ids': self._keys,
                          'master_tsig_key_ids': self._keys}

    def _create(self, domain: model.Domain, deadline: Deadline) -> None:
        self._require_primaries()
        kinds = () if self.options['adopts_zones'] else SECONDARY_KINDS
        existing = self._api.create_zone(domain.name, self._settings, kinds, deadline)
        if existing is not None and not self._has_settings(existing):
            self._update_settings(domain.name, deadline)
        if self.options['ixfr']:
            self._api.ask('PUT', _ixfr_path(domain.name), deadline, {'kind': 'IXFR', 'metadata': ['1']},
                          f'enable IXFR of {domain.name}', (200,))
        elif existing is not None and self._metadata(domain.name, 'IXFR', deadline):  # it was created with ixfr = true
            self._api.ask('DELETE', _ixfr_path(domain.name), deadline, None, f'disable IXFR of {domain.name}',
                          (200, 204))
        error = self._api.start('axfr-retrieve', domain.name, deadline)
        if error is not None:  # a NOTIFY starts the transfer later
            LOG.debug('%s: retrieve %s: %s', self.server.label, domain.name, error)

    def _delete(self, domain: model.Domain, deadline: Deadline) -> None:
        self._api.delete_zone(domain.name, SECONDARY_KINDS, deadline)

    def _refetch(self, domain: model.Domain, deadline: Deadline) -> None:
        # With IXFR PowerDNS would ask only for the changes since its serial; so it is disabled for this zone.
        requests = [('DELETE', _ixfr_path(domain.name))] if self.options['ixfr'] else []
        for verb, path in (*requests, ('PUT', f'{zone_path(domain.name)}/axfr-retrieve')):
            answer = self._api.ask(verb, path, deadline, None, f'retrieve {domain.name}', (200, 204, 404))
            if answer.status == 404:
                self._api.check_identity(deadline)  # a wrong server_id or api_url is answered with 404 too
                raise BackendError(why=f'retrieve {domain.name}: the server does not have the zone',
                                   reason=Reason.NO_ZONE)

    def _zones(self, deadline: Deadline) -> Iterator[tuple[str, int | None, bool]]:
        return ((name, serial, kind not in SECONDARY_KINDS) for name, kind, serial in self._api.zones(deadline))

    def _ping(self, deadline: Deadline) -> None:
        self._api.check_identity(deadline)

    def _advice(self, result: model.CallResult) -> str:
        if result.reason is Reason.NOT_CONFIGURED and self.server.tsig_key is not None:
            return how_to_import(self.server.tsig_key)
        return super()._advice(result)

    def _check_settings(self, deadline: Deadline, names: Collection[str]) -> Iterator[model.Finding]:
        return if_readable(lambda: self._misfits(deadline))

    def _misfits(self, deadline: Deadline) -> Iterator[model.Finding]:
        settings = self._api.settings(deadline)
        yield from misfits(settings, self.server)
        names = [name for name, kind, _ in self._api.zones(deadline) if kind in SECONDARY_KINDS]
        signed = [name for name in random.sample(names, min(SAMPLE, len(names))) if self._api.keys(name, deadline)]
        yield from misfits_of_signing(settings, self.server, signed, [
            name for name in signed if self._metadata(name, 'SOA-EDIT', deadline)])
        if self.server.tsig_key is not None:
            answer = self._api.ask('GET', f'/tsigkeys/{self._keys[0]}', deadline, None, 'read the TSIG key', (200, 404))
            if not isinstance(answer.json, dict) and answer.status == 200:
                raise self._api.unexpected()
            yield from misfits_of_key(answer.json if answer.status == 200 else None, self.server.tsig_key)

    def _has_settings(self, zone: dict[str, Any]) -> bool:
        return (str(zone.get('kind')).lower() in SECONDARY_KINDS
                and set(zone.get('masters') or ()) == set(self._primaries)
                and all((zone.get(field) or []) == self._keys
                        for field in ('slave_tsig_key_ids', 'master_tsig_key_ids')))

    def _update_settings(self, name: str, deadline: Deadline) -> None:
        answer = self._api.ask('PUT', zone_path(name), deadline, self._settings, f'change {name}', (204, 404))
        if answer.status == 404:
            raise BackendError(why=f'create {name}: the zone existed, and was deleted by somebody else meanwhile')

    def _metadata(self, name: str, kind: str, deadline: Deadline) -> Any:
        answer = self._api.ask('GET', f'{zone_path(name)}/metadata/{kind}', deadline, None, f'read {kind} of {name}',
                               (200,))
        return answer.json.get('metadata') if isinstance(answer.json, dict) else None


def api_url(server: model.Server) -> str:
    """The URL of the API of *server*."""
    return str(server.options.get('api_url') or f'http://{model.Endpoint(server.host, 8081)}')


def _ixfr_path(name: str) -> str:
    return f'{zone_path(name)}/metadata/IXFR'


def _primary(endpoint: model.Endpoint) -> str:
    """*endpoint* as the API shows it: without the port if it is 53."""
    address = ip_address(endpoint)
    return str(address) if endpoint.port == 53 else str(endpoint)


def if_readable(find: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What *find* finds, and a warning if the API does not let the settings be read."""
    try:
        yield from find()
    except BackendError as error:
        yield Finding(f'its settings cannot be read: {error}', 'let GET requests for /config and /tsigkeys of the API '
                      'through, or compare the settings with the documentation of the driver by hand', serious=False)


def misfits(settings: Mapping[str, str], server: Server) -> Iterator[Finding]:
    """What is wrong with *settings*, of ``GET /config``, for *server*, as far as its version has them."""
    # Versions before 4.5 have only the old name; if both exist, the new one takes effect.
    word = 'secondary' if 'secondary' in settings else 'slave'
    if settings.get(word) in _OFF:
        yield Finding(f'{word}={settings[word]}: PowerDNS transfers no zones', f'set {word}=yes and restart PowerDNS')
    yield from misfits_of_caches(settings)
    if server.options.get('ixfr'):
        yield misfit_of_ixfr(settings)
    if server.tsig_key is not None:
        return  # a signed NOTIFY is accepted regardless of the following settings
    if settings.get('allow-unsigned-notify') in _OFF:
        yield Finding('allow-unsigned-notify=no, and the section has no tsig_key: every NOTIFY is refused',
                      'give the section a tsig_key that PowerDNS knows, or set allow-unsigned-notify=yes')
    accepted = settings.get('allow-notify-from')
    if accepted is not None:
        for primary in server.primaries:
            if not _accepts(accepted, primary.host):
                yield Finding(f'allow-notify-from does not have {primary.host}: a NOTIFY from there is refused',
                              f'add {primary.host} to allow-notify-from, or give the section a tsig_key')


def misfits_of_primary(settings: Mapping[str, str], kind: str) -> Iterator[Finding]:
    """What is wrong with *settings* for a server that is fed by records in zones of *kind*."""
    yield from misfits_of_caches(settings)
    word = 'primary' if 'primary' in settings else 'master'
    if kind.lower() != 'native' and settings.get(word) in _OFF:
        yield Finding(f'{word}={settings[word]}: it sends the secondaries of its zones no NOTIFY',
                      f'set {word}=yes and restart PowerDNS, or set kind = Native')


def misfits_of_caches(settings: Mapping[str, str]) -> Iterator[Finding]:
    """Caches that answer with outdated records after a change."""
    kept = [f'{name}={settings[name]}' for name in CACHES if settings.get(name, '0') != '0']
    if kept:
        yield Finding(f'{", ".join(kept)}: PowerDNS may give outdated answers for as many seconds after a change',
                      f'set {", ".join(f"{name}=0" for name in CACHES)} unless the load is too high for it', False)


def misfit_of_ixfr(settings: Mapping[str, str]) -> Finding:
    """What is wrong with the answers of PowerDNS for zones that it transfers with IXFR.

    It marks records that came by IXFR as not authoritative, and omits them from answers if DNSSEC is enabled in its
    database; in either case it does not add the empty names above them (PowerDNS issue 12756).
    """
    on = [f'{name}={value}' for name, value in sorted(settings.items())
          if _DNSSEC_OF_DATABASE.fullmatch(name) and value not in _OFF]
    whole = 'set ixfr = false: all zones are then transferred whole, at once and later'
    if on:
        return Finding(f'ixfr = true and {", ".join(on)}: PowerDNS does not answer for records that came by IXFR',
                       whole)
    return Finding('ixfr = true: PowerDNS answers NXDOMAIN for a name without records, above one that came by IXFR',
                   f'{whole}; or leave it if no zone has such names', serious=False)


def misfits_of_signing(settings: Mapping[str, str], server: Server, signed: Collection[str],
                       edited: Collection[str]) -> Iterator[Finding]:
    """What is wrong with *settings* for zones that PowerDNS has *signed*; those *edited* have metadata SOA-EDIT."""
    signs = bool(server.options.get('signs_zones'))
    off = [name for name, value in sorted(settings.items()) if _DNSSEC_OF_DATABASE.fullmatch(name) and value in _OFF]
    if off and signs:
        yield Finding(f'{off[0]}={settings[off[0]]}: PowerDNS answers for signed zones without their signatures',
                      f'set {off[0]}=yes and restart PowerDNS')
    if signed and not signs:
        yield Finding(f'PowerDNS signs zones with keys of its own: {", ".join(sorted(signed)[:3])}',
                      'set signs_zones = true in the section of each server of the pool, which all need the same keys')
    if signs and server.options.get('ixfr'):
        yield Finding('ixfr = true and signs_zones = true: PowerDNS has no NSEC records for what came by IXFR',
                      'set ixfr = false')
    changed = [f'{name}={settings[name]}' for name in _SOA_EDITS if settings.get(name)] if signs or signed else []
    changed += [f'SOA-EDIT of {name}' for name in edited]
    if changed:
        yield Finding(f'{", ".join(changed[:3])}: PowerDNS serves serials of its own for zones that it signs',
                      "remove it: 'pdnsutil set-meta ZONE SOA-EDIT' for a zone, or the setting")


def misfits_of_key(held: Mapping[str, Any] | None, key: TsigKey) -> Iterator[Finding]:
    """What is wrong with *held*, the answer to ``GET /tsigkeys/{id}`` (None for no such key), for *key*."""
    name = key.name.rstrip('.')
    algorithm = str((held or {}).get('algorithm')).lower().rstrip('.')
    if held is None:
        yield Finding(f'PowerDNS has no TSIG key {name}', how_to_import(key))
    elif tsig.plain_algorithm(algorithm) != tsig.plain_algorithm(key.algorithm):
        yield Finding(f'PowerDNS has the TSIG key {name} with the algorithm {algorithm}, not {key.algorithm}',
                      how_to_import(key))
    elif not tsig.same_secret(str(held.get('key')), key.secret):
        yield Finding(f'PowerDNS has another secret for the TSIG key {name}', how_to_import(key))


def how_to_import(key: TsigKey) -> str:
    """The command that adds *key* to PowerDNS, without the secret."""
    return f'on its host: pdnsutil import-tsig-key {key.name.rstrip(".")} {tsig.plain_algorithm(key.algorithm)} SECRET'


def _accepts(networks: str, host: str) -> bool:
    """Whether *networks*, separated by commas and with ``!`` before those that are excluded, contain *host*.

    As in PowerDNS, the network with the longest prefix that contains it decides.
    """
    address = ipaddress.ip_address(host)
    best, accepted = -1, False
    for text in networks.replace(',', ' ').split():
        try:
            network = ipaddress.ip_network(text.removeprefix('!'), strict=False)
        except ValueError:
            continue
        if address in network and network.prefixlen > best:
            best, accepted = network.prefixlen, not text.startswith('!')
    return accepted
