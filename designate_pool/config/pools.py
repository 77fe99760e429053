"""The servers of the pool: sections ``[backend:<driver>:*]``, ``[backend:<driver>:<uuid>]`` and ``[tsig:<name>]``."""

from __future__ import annotations

import ipaddress
import logging
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import dns.rdatatype
from oslo_config import cfg

from designate_pool.config import source, values
from designate_pool.config.errors import ConfigErrors, hint
from designate_pool.config.load import Settings, collect_settings
from designate_pool.config.sections import DOLLAR
from designate_pool.errors import InvalidField
from designate_pool.model import LONGEST_LABEL, Endpoint, Option, Pool, Server, TsigKey, parse_stages
from designate_pool.settings import PoolManagerSettings

LOG = logging.getLogger(__name__)
Drivers = Mapping[str, Sequence[Option]]
Keys = dict[str, TsigKey | None]
#: Other names of drivers that sections may use, with the drivers' own.
ALIASES = {'powerdns': 'pdns'}

#: The options that every server's section takes, with any driver.
GENERIC = (
    Option('host', 'The host name or IP address of the DNS server. MiniDNS looks a name up again every minute.',
           kind='host', required=True),
    Option('port', 'The port on which it answers DNS.', kind='port', default=53),
    Option('tsig_key', 'The key for transfers, NOTIFY and polls: name:algorithm:base64, or the name of a section '
                       '[tsig:<name>] with algorithm and secret. Either may be read from file:PATH or env:NAME. '
                       'Not set: messages are not signed.', kind='tsig_key', secret=True),
    Option('primaries', 'The addresses of MiniDNS as this server reaches them, separated by commas. Not set: '
                        '[service:minidns] listen.', kind='endpoints'),
    Option('verify', 'The addresses that are asked for the serials of zones, as address or address:port, separated by '
                     'commas: those of the public servers where this one is a hidden primary. A zone is served when '
                     'all of them serve it. They are asked without a signature. Not set: host and port.',
           kind='endpoints'),
    Option('max_in_flight', 'How many driver calls may run on the server at the same time.', kind='int', default=4,
           minimum=1, maximum=1000),
    Option('call_timeout', 'Seconds that a driver call may take.', kind='float', default=10.0, minimum=0.01),
)
#: The options of a section ``[tsig:<name>]``.
_TSIG = (Option('algorithm', 'For example hmac-sha256.', required=True),
         Option('secret', 'Base64.', required=True, secret=True))


def read_pool(conf: cfg.ConfigOpts, drivers: Drivers, with_servers: bool = True) -> Pool:
    """The pool of ``[service:pool_manager]`` with its servers, in the order of the files.

    :param drivers: for each driver, its own options, without the generic ones; looking one up raises InvalidField if
        the driver cannot be used
    :param with_servers: whether a pool without servers is a mistake
    :raises BadConfiguration: lists every mistake in the whole configuration
    """
    mistakes = ConfigErrors()
    files = source.read(conf)
    settings = collect_settings(conf, files, mistakes)
    reader = _Reader(conf, files, drivers, settings, mistakes)
    servers = reader.servers(with_servers)
    _check_release(settings.pool_manager, servers, mistakes)
    mistakes.raise_if_any()
    _warn_of_unsigned(servers)
    return Pool(name=settings.pool_manager.pool_name, servers=servers,
                threshold_percentage=settings.pool_manager.threshold_percentage,
                catalog_zone=settings.pool_manager.catalog_zone,
                probe_interval=settings.pool_manager.circuit_probe_interval,
                count_joining_servers=settings.pool_manager.count_joining_servers,
                requires_approval=settings.pool_manager.approval == 'required',
                release_stages=settings.pool_manager.release)


def _check_release(settings: PoolManagerSettings, servers: Sequence[Server], mistakes: ConfigErrors) -> None:
    """Note what is wrong with the stages of a pool."""
    for text in settings.release_queries:
        name, *types = text.split() or ['']
        if (name.endswith('.') or '..' in name or len(types) != 1
                or types[0].upper() not in dns.rdatatype.RdataType.__members__):
            mistakes.add('service:pool_manager', 'release_queries', f"'{text}' is no name with a type, as www A is")
    if (release := settings.release) is None:
        return
    try:
        canaries = parse_stages(release)[0][0]
        unknown = canaries - {server.label for server in servers}
        if unknown and servers:
            raise ValueError(f'no server has the label {", ".join(sorted(unknown))}')
    except ValueError as error:
        mistakes.add('service:pool_manager', 'release', str(error))


def options_of(section: str, drivers: Drivers) -> Sequence[Option]:
    """The options of a section of a server or key; empty for other sections."""
    kind, _, rest = section.partition(':')
    driver = rest.partition(':')[0]
    return {'backend': (*GENERIC, *drivers.get(ALIASES.get(driver, driver), ())), 'tsig': _TSIG}.get(kind, ())


class _Reader:
    """Reads the sections of servers and keys once."""

    def __init__(self, conf: cfg.ConfigOpts, found: source.ConfigSource, drivers: Drivers, settings: Settings,
                 mistakes: ConfigErrors) -> None:
        self._conf = conf
        self._sections = found.sections
        self._drivers = drivers
        self._listen = settings.minidns.listen
        self._claim_seconds = settings.pool_manager.claim_seconds
        self._mistakes = mistakes
        #: The sections that were the first with something that only one may have.
        self._first: dict[object, str] = {}

    def servers(self, some: bool) -> tuple[Server, ...]:
        keys = {name: self._key(section, name) for section in self._sections
                for prefix, _, name in (section.partition(':'),) if prefix == 'tsig'}
        shared: dict[str, dict[str, Any]] = {}
        shared_by: dict[str, str] = {}
        own: dict[str, tuple[str, str]] = {}
        for section in self._sections:
            if section.partition(':')[0] == 'backend':
                driver, name = self._driver_and_name(section)
                if name == '*' and driver:
                    self._check_first(section, driver, None, 'is for the same driver; only one is allowed')
                    shared_by[driver] = section
                    shared[driver] = self._values(section, self._options(driver), keys)
                elif name:
                    own[section] = (driver, name)
        ids: dict[str, str] = {}
        for section, (_, name) in own.items():
            try:
                ids[section] = uuid.UUID(name).hex
            except ValueError:
                if name != '*':
                    self._mistakes.add(section, None, f'{name} is not a UUID')
            else:
                self._check_first(section, ids[section], None, 'has the same UUID')
        self._note_lonely(shared_by, {driver for driver, _ in own.values()}, some)
        servers = {section: server for section, (driver, _) in own.items() if driver and (
            server := self._server(section, ids.get(section), driver, shared.get(driver, {}), keys)) is not None}
        for section, server in servers.items():
            # Different views of one address are told apart by the option, else by the key.
            key = server.tsig_key.name if server.tsig_key and 'view' not in server.options else None
            self._check_first(section, (server.endpoint, server.options.get('view') or '', key), 'host',
                              f'has the same address, {server.endpoint}')
        return tuple(servers.values())

    def _driver_and_name(self, section: str) -> tuple[str, str]:
        """The driver and the name (UUID or ``*``) in a section's heading; a wrong one is empty."""
        parts = section.split(':')
        if len(parts) != 3 or not parts[2].strip():
            self._mistakes.add(section, None, 'write [backend:<driver>:<uuid>] for a server, or [backend:<driver>:*] '
                                              'for what all servers of a driver have in common')
            return '', ''
        driver, name = ALIASES.get(parts[1], parts[1]), parts[2]
        if not driver.strip():
            self._mistakes.add(section, None, 'the driver has no name')
            return '', name
        if driver not in self._drivers:
            self._mistakes.add(section, None, f'there is no driver {driver}{hint(driver, self._drivers)} '
                                              f'(there are: {", ".join(sorted(self._drivers))})')
            return '', name
        try:
            self._drivers[driver]
        except InvalidField as error:
            self._mistakes.add(section, None, error.kwargs['why'])
            return '', name
        return driver, name

    def _check_first(self, section: str, key: object, option: str | None, why: str) -> None:
        other = self._first.setdefault(key, section)
        if other != section:
            self._mistakes.add(section, option, f'[{other}] {why}')

    def _note_lonely(self, shared_by: Mapping[str, str], used: set[str], some: bool) -> None:
        for driver, section in shared_by.items():
            if driver not in used:
                self._mistakes.add(section, None, f'no server has the driver {section.split(":")[1]}')
        theirs = [section for section in self._sections
                  if section.startswith('backend:') and not section.endswith(':*')]
        if some and not theirs:
            self._mistakes.add('backend:<driver>:<uuid>', None, 'the pool has no server')

    def _server(self, section: str, server_id: str | None, driver: str, shared: Mapping[str, Any],
                keys: Keys) -> Server | None:
        """The server of one section; None if something in it is wrong."""
        own = self._values(section, self._options(driver), keys)
        values = {**shared, **own}
        taken: dict[str, Any] = {}
        for option in self._options(driver):
            taken[option.name] = values.get(option.name, option.default)
            if option.required and option.name not in values:
                self._mistakes.add(section, option.name, 'it must be given')
        call_timeout = taken['call_timeout']
        if call_timeout is not None and self._claim_seconds is not None and call_timeout >= self._claim_seconds:
            self._mistakes.add(section, 'call_timeout', f'{call_timeout:g} s must be less than [service:pool_manager] '
                                                        f'claim_seconds, {self._claim_seconds:g} s; otherwise another '
                                                        'pool manager takes the work over before the call ends')
        needs_none = any(option.name == 'primaries' for option in self._drivers[driver])
        primaries = taken['primaries'] if 'primaries' in values or needs_none else self._default_primaries(section)
        if server_id is None or taken['host'] is None:
            return None
        generic = {option.name for option in GENERIC}
        server = Server(id=server_id, driver=driver, host=taken['host'], port=taken['port'],
                        tsig_key=taken['tsig_key'], primaries=primaries or (), max_in_flight=taken['max_in_flight'],
                        call_timeout=taken['call_timeout'],
                        options={name: value for name, value in taken.items() if name not in generic},
                        verify=taken['verify'] or ())
        if len(server.label) > LONGEST_LABEL:
            self._mistakes.add(section, 'view', f"the server's label, made of driver, host, port and view, has "
                                                f'{len(server.label)} characters; {LONGEST_LABEL} are allowed')
            return None
        return server

    def _default_primaries(self, section: str) -> tuple[Endpoint, ...]:
        for endpoint in self._listen:
            if ipaddress.ip_address(endpoint.host).is_unspecified:
                self._mistakes.add(section, 'primaries', f'[service:minidns] listen has {endpoint}, from which no '
                                                         'server can transfer; set the address of MiniDNS that this '
                                                         'server reaches')
                return ()
        return self._listen

    def _options(self, driver: str) -> tuple[Option, ...]:
        own = tuple(self._drivers[driver])
        return tuple(option for option in GENERIC if option.name not in {option.name for option in own}) + own

    def _key(self, section: str, name: str) -> TsigKey | None:
        """The key of a section ``[tsig:<name>]``; None for a wrong one, which is noted."""
        options = self._values(section, _TSIG, {})
        for option in _TSIG:
            if option.name not in options:
                self._mistakes.add(section, option.name, 'it must be given')
        if any(options.get(option.name) is None for option in _TSIG):
            return None
        try:
            return values.make_key(name, options['algorithm'], options['secret'])
        except ValueError as error:
            self._mistakes.add(section, None, str(error))
            return None

    def _values(self, section: str, options: Sequence[Option], keys: Keys) -> dict[str, Any]:
        """The values that *section* sets for *options*; None for a wrong one, which is noted."""
        by_name = {option.name: option for option in options}
        values: dict[str, Any] = {}
        for name in self._sections[section]:
            if name not in by_name:
                self._mistakes.unknown(section, name, by_name)
            elif name not in values:
                values[name] = self._value(section, by_name[name], keys)
        return values

    def _value(self, section: str, option: Option, keys: Keys) -> Any:
        self._conf.register_opt(cfg.StrOpt(option.name, secret=True), group=section)
        try:
            return values.converted(option, self._conf[section][option.name].strip(), keys)
        except cfg.Error:
            self._mistakes.add(section, option.name, DOLLAR)
        except ValueError as error:
            self._mistakes.add(section, option.name, str(error))
        return None


def _warn_of_unsigned(servers: Sequence[Server]) -> None:
    unsigned = [server.label for server in servers if server.tsig_key is None and not _is_loopback(server.host)]
    if unsigned:
        LOG.warning('Transfers and polls are not signed for these servers, which have no tsig_key: '
                    '%s.', ', '.join(unsigned))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'
