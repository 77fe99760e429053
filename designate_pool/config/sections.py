"""The sections with fixed names: their options, made from the settings, and the settings read from them.

A wrong value is noted, not raised; so is what is checked beside types and limits.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import ipaddress
import math
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from oslo_config import cfg, types

from designate_pool.config import values
from designate_pool.config.errors import ConfigErrors, hint
from designate_pool.model import Endpoint
from designate_pool.settings import (NOAUTH, TOKEN, AddressSettings, ApiSettings, CentralSettings, DatabaseSettings,
                                     MiniDnsSettings, NeutronFloatingIpSettings, NeutronSettings, NovaSettings,
                                     PoolManagerSettings, ProcessSettings, SigningPolicy, SinkSettings)

S = TypeVar('S')
#: Advice for a ``$`` that oslo.config cannot resolve.
DOLLAR = "oslo.config reads the $ in it as a reference to another option; write $$ for a $, or file:PATH"
#: oslo.config's options by the types of fields; ``| None`` makes no difference.
_KINDS: dict[str, type[cfg.Opt]] = {
    'bool': cfg.BoolOpt, 'int': cfg.IntOpt, 'float': cfg.FloatOpt, 'str': cfg.StrOpt,
    'tuple[str, ...]': cfg.ListOpt, 'tuple[Network, ...]': cfg.ListOpt, 'tuple[Region, ...]': cfg.ListOpt,
    'tuple[Endpoint, ...]': cfg.StrOpt, 'Lines': cfg.MultiStrOpt}
#: The settings of our handlers, by their names.
HANDLERS: dict[str, type[AddressSettings]] = {'nova_fixed': NovaSettings,
                                              'neutron_floatingip': NeutronFloatingIpSettings}
#: The entry points of handlers that others have written; Designate's name for them.
NAMESPACE = 'designate.notification.handler'
#: The filters of the scheduler.
FILTERS = ('attribute', 'pool_id_attribute', 'default_pool', 'fallback', 'random', 'in_doubt_default_pool')


def options_of(settings: type[Any]) -> list[cfg.Opt]:
    """The options that are fields of *settings*, a class of :mod:`designate_pool.settings`."""
    return [_option(field) for field in dataclasses.fields(settings) if 'help' in field.metadata]


def group_of(settings: type[Any]) -> Any:
    """The section of *settings* for oslo.config; its help is the first paragraph of the docstring."""
    if settings.SECTION == 'DEFAULT':
        return settings.SECTION
    return cfg.OptGroup(settings.SECTION, help=' '.join((settings.__doc__ or '').partition('\n\n')[0].split()))


def _option(field: dataclasses.Field[Any]) -> cfg.Opt:
    limits = dict(field.metadata)
    default = field.default
    if limits.pop('port', None) is not None:
        default = ', '.join(map(str, default)) or None  # type: ignore[arg-type]
    elif isinstance(default, tuple):
        default = list(default)
        if 'choices' in limits:
            limits['item_type'] = types.String(choices=limits.pop('choices'))
    return _KINDS[str(field.type).removesuffix(' | None')](field.name, default=default, **limits)


class Section:
    """The options of one group of *conf*."""

    def __init__(self, conf: cfg.ConfigOpts, group: str, mistakes: ConfigErrors) -> None:
        self._conf = conf
        self._options = conf if group == 'DEFAULT' else conf[group]
        self._mistakes = mistakes
        self.name = group

    def other(self, group: str) -> Section:
        """Another section of the same configuration."""
        return Section(self._conf, group, self._mistakes)

    def texts(self, group: str, names: Sequence[str]) -> dict[str, Sequence[str]]:
        """The values of the options *names* of another section, which are not registered."""
        self._conf.register_opts([cfg.MultiStrOpt(name) for name in names], group=group)
        return {name: tuple(self.other(group)[name] or ()) for name in names}

    def __getitem__(self, option: str) -> Any:
        """The value; None if it is wrong, which is noted."""
        try:
            return self._options[option]
        except cfg.ConfigSourceValueError as error:
            # The text is "Value for option ... from LocationInfo(...) is not valid: why".
            self.wrong(option, re.split(r'is not valid: ', str(error), maxsplit=1)[-1])
        except cfg.Error:
            self.wrong(option, DOLLAR)
        return None

    def read(self, settings: type[S], **other: Any) -> S:
        """All options as *settings*; a wrong one is None, or empty if it is a tuple.

        :param other: values of fields that are no options, or are read in another way
        """
        fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(settings)  # type: ignore[arg-type]
        return settings(**{field.name: self._value(field) for field in fields
                           if 'help' in field.metadata and field.name not in other}, **other)

    def _value(self, field: dataclasses.Field[Any]) -> Any:
        if 'port' in field.metadata:
            return self.converted(field.name, lambda text: values.endpoints(text, field.metadata['port'])) or ()
        if 'secret' in field.metadata:
            return self.converted(field.name, values.secret)
        value = self[field.name]
        if isinstance(value, float) and not math.isfinite(value):
            self.wrong(field.name, f'{value} is not a number')
            return None
        return tuple(value or ()) if isinstance(field.default, tuple) else value

    def converted(self, option: str, convert: Any) -> Any:
        """The value that *convert* makes of the text; None if there is none, or it is wrong, which is noted.

        :param convert: raises ValueError
        """
        text = self[option]
        try:
            return None if text is None else convert(text)
        except ValueError as error:
            self.wrong(option, str(error))
            return None

    def wrong(self, option: str, why: str) -> None:
        """Note that the value of an option is wrong."""
        self._mistakes.add(self.name, option, why)


SECTIONS: tuple[tuple[Any, list[cfg.Opt]], ...] = tuple((group_of(settings), options_of(settings)) for settings in (
    ProcessSettings, DatabaseSettings, CentralSettings, SigningPolicy, PoolManagerSettings, MiniDnsSettings,
    ApiSettings, SinkSettings, NeutronSettings, NovaSettings, NeutronFloatingIpSettings))


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options of these sections."""
    for group, options in SECTIONS:
        conf.register_opts(options, group=None if group == 'DEFAULT' else group)


def register_signing_policies(conf: cfg.ConfigOpts, names: Iterable[str]) -> list[str]:
    """Register the options of the sections of policies among *names*; those sections, with that of the default one."""
    default = SigningPolicy.SECTION
    sections = sorted({default, *(name for name in names if name.startswith('dnssec_policy:')
                                  and name != 'dnssec_policy:')})
    for name in sections:
        conf.register_opts(options_of(SigningPolicy), group=name)
    return sections


def list_opts() -> list[tuple[Any, list[cfg.Opt]]]:
    """Every option by section, for ``oslo-config-generator`` (entry point ``oslo.config.opts``)."""
    return list(SECTIONS)


def names_by_section() -> dict[str, set[str]]:
    """The names of options, with the deprecated ones, that each of our sections may contain.

    Without ``[DEFAULT]``: oslo.log, oslo.messaging and others have options there too.
    """
    return {group.name: {name for option in options
                         for name in (option.dest, *(former.name for former in option.deprecated_opts)) if name}
            for group, options in SECTIONS if group != 'DEFAULT'}


def read_database(section: Section) -> DatabaseSettings:
    """``[database]``, with the keys in the file of keys."""
    settings = section.read(DatabaseSettings, secrets_keys=_keys(section, 'secrets_key_file'))
    if settings.connection is not None and '://' not in settings.connection:
        section.wrong('connection', 'it is not a URL like sqlite:///FILE or mysql+pymysql://USER:PASSWORD@HOST/NAME')
    return settings


def _keys(section: Section, option: str) -> tuple[str, ...]:
    """The keys in the file that *option* names; empty if something is wrong, which is then noted."""
    path = section[option]
    if path is None:
        return ()
    try:
        with open(path, encoding='ascii') as file:
            keys = tuple(line.strip() for line in file if line.strip())
    except (OSError, UnicodeError) as error:
        section.wrong(option,
                      f'{path} cannot be read: {getattr(error, "strerror", "") or "it is not ASCII text"}')
        return ()
    if not keys:
        section.wrong(option, f'{path} contains no key')
    for number, key in enumerate(keys, 1):
        if not re.fullmatch('[A-Za-z0-9_-]{43}=', key):
            section.wrong(option, f'key {number} in {path} is not 32 octets in URL-safe Base64')
            return ()
    return keys


def read_pool_manager(section: Section) -> PoolManagerSettings:
    """``[service:pool_manager]``."""
    settings = section.read(PoolManagerSettings, catalog_zone=section.converted('catalog_zone', values.zone))
    if settings.pool_name is not None and not 1 <= len(settings.pool_name) <= 50:
        section.wrong('pool_name', 'a name has 1 to 50 characters')
    least, most = settings.retry_backoff_initial, settings.retry_backoff_maximum
    if least is not None and most is not None and least > most:
        section.wrong('retry_backoff_maximum', f'{most:g} is less than retry_backoff_initial, {least:g}')
    return settings


def read_minidns(section: Section) -> MiniDnsSettings:
    """``[service:minidns]``."""
    settings = section.read(MiniDnsSettings)
    for name in ('tls_certificate', 'tls_key') if settings.listen_tls else ():
        if not getattr(settings, name):
            section.wrong(name, 'it must be given with listen_tls')
    if settings.require_tls and not settings.listen_tls:
        section.wrong('require_tls', 'no transfer would be possible without listen_tls')
    return settings


def read_central(section: Section, pool_name: str, policies: Mapping[str, SigningPolicy]) -> CentralSettings:
    """``[service:central]``, with the keys in the file of keys."""
    pool_id = section.converted('default_pool_id', _id)
    filters = section['scheduler_filters'] or ()
    if not filters:
        section.wrong('scheduler_filters', 'at least one filter chooses the pool of a zone')
    for name in filters:
        if name not in FILTERS:
            section.wrong('scheduler_filters', f'there is no filter {name!r}; there are {", ".join(FILTERS)}')
    for name in section['reserved_zone_names'] or ():
        if not re.fullmatch(r'[A-Za-z0-9_*?-]+(\.[A-Za-z0-9_*?-]+)*\.?', name):
            section.wrong('reserved_zone_names', f'{name!r} is not the name of a zone, or a pattern with * and ?')
    networks = []
    for text in section['master_networks'] or ():
        try:
            networks.append(ipaddress.ip_network(text))
        except ValueError as error:
            section.wrong('master_networks', str(error))
    for text in section['master_ports'] or ():
        try:
            ports = [values.port(port) for port in text.split('-', 1)]
            if ports[0] > ports[-1]:
                raise ValueError(f'{text!r} is not a range of ports, such as 5300-5399')
        except ValueError as error:
            section.wrong('master_ports', str(error))
    if not 1 <= len(section['managed_resource_tenant_id'] or '') <= 36:
        section.wrong('managed_resource_tenant_id', 'a project has 1 to 36 characters')
    if section['pkcs11_module'] and not section['pkcs11_token']:
        section.wrong('pkcs11_token', 'it must be given with pkcs11_module')
    return section.read(CentralSettings, default_pool_name=pool_name, default_pool_id=pool_id,
                        master_networks=tuple(networks), signing_keys=_keys(section, 'signing_keys_file'),
                        signing_policies=policies)


def read_signing_policy(section: Section) -> SigningPolicy:
    """``[dnssec_policy:NAME]``."""
    policy = section.read(SigningPolicy)
    times = policy.validity, policy.refresh, policy.jitter, policy.zsk_lifetime, policy.dnskey_ttl
    if None in times or policy.propagation_delay is None:
        return policy
    if policy.refresh + policy.jitter >= policy.validity:
        section.wrong('refresh', f'signatures would be renewed as soon as they are made: refresh and jitter are '
                                 f'{policy.refresh + policy.jitter} s together, and validity is {policy.validity}')
    least = policy.dnskey_ttl + policy.propagation_delay
    if policy.keys == 'split' and policy.zsk_lifetime and policy.zsk_lifetime <= least:
        section.wrong('zsk_lifetime', f'no key could be followed by another one so soon: caches have the keys for '
                                      f'dnskey_ttl and propagation_delay, {least} s')
    return policy


def _id(text: str) -> str:
    try:
        return text and uuid.UUID(text).hex
    except ValueError:
        raise ValueError(f'{text!r} is not a UUID') from None


def read_api(section: Section) -> ApiSettings:
    """``[service:api]``."""
    auth = section['auth']
    settings = section.read(ApiSettings, auth=auth or NOAUTH)
    if settings.trusted_proxy:
        try:
            ipaddress.ip_address(settings.trusted_proxy)
        except ValueError:
            section.wrong('trusted_proxy', f'{settings.trusted_proxy!r} is not an IP address')
    if settings.auth == TOKEN and not settings.tokens_file:
        section.wrong('tokens_file', 'it must be given with auth = token; '
                                     '"designate-pool-manage token create" creates the file')
    if settings.auth == NOAUTH and not (auth and settings.allow_remote):
        for endpoint in remote(settings.listen):
            section.wrong('listen', f'other machines reach {endpoint}, and the API does not authenticate users; set '
                                    'auth to token or keystone, or set both auth = noauth and allow_remote = true to '
                                    'allow this')
    return settings


def remote(listen: Iterable[Endpoint]) -> list[Endpoint]:
    """The addresses in *listen* that other machines reach."""
    return [endpoint for endpoint in listen if not ipaddress.ip_address(endpoint.host).is_loopback]


def read_neutron(section: Section) -> NeutronSettings:
    """``[network_api:neutron]``."""
    regions = []
    for text in section['endpoints'] or ():
        region, bar, url = text.partition('|')
        if not (region and bar and url.startswith(('http://', 'https://'))):
            section.wrong('endpoints', f'{text!r} is not REGION|URL')
        regions.append((region, url))
    kind = section['endpoint_type'] or ''
    return section.read(NeutronSettings, endpoints=tuple(regions),
                        endpoint_type=kind if kind.endswith('URL') else f'{kind}URL')


def others() -> dict[str, importlib.metadata.EntryPoint]:
    """The handlers of others that are installed, by their names."""
    return {entry_point.name: entry_point for entry_point in importlib.metadata.entry_points(group=NAMESPACE)
            if entry_point.name not in HANDLERS}


def read_sink(section: Section, names: Mapping[str, Sequence[str]]) -> SinkSettings:
    """``[service:sink]``, and the sections ``[handler:NAME]`` of the handlers that are enabled.

    Whether handlers of others are installed is no mistake of the file: only the sink needs them, see
    :func:`check_installed`.

    :param names: of the options in the files, by section
    """
    enabled = dict.fromkeys(section['enabled_notification_handlers'] or ())
    installed = others() if enabled.keys() - HANDLERS.keys() else {}
    return section.read(
        SinkSettings,
        handlers=tuple(_read_handler(HANDLERS[name], section) for name in enabled if name in HANDLERS),
        others={name: section.texts(f'handler:{name}', names.get(f'handler:{name}', ()))
                for name in enabled if name in installed},
        missing=tuple(name for name in enabled if name not in HANDLERS and name not in installed))


def check_installed(settings: SinkSettings) -> None:
    """Raise BadConfiguration, with each of them, when enabled handlers are not installed."""
    mistakes = ConfigErrors()
    for name in settings.missing:
        names = sorted({*HANDLERS, *others()})
        mistakes.add(SinkSettings.SECTION, 'enabled_notification_handlers',
                     f'there is no handler {name}, only {", ".join(names)}{hint(name, names)}')
    mistakes.raise_if_any()


def _read_handler(kind: type[AddressSettings], sink: Section) -> AddressSettings:
    section = sink.other(kind.SECTION)
    settings = section.read(kind)
    try:
        uuid.UUID(settings.zone_id or '')
    except ValueError:
        section.wrong('zone_id', 'the id of a zone is needed')
    for option in ('formatv4', 'formatv6'):
        for form in getattr(settings, option):
            try:
                form % _AnyField()
            except (TypeError, ValueError):
                section.wrong(option, f'{form!r} is not a format: fields are written %(FIELD)s, and a percent sign %%')
    return settings


class _AnyField(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return name
