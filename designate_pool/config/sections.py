"""The sections with fixed names, and what is checked in them beside types and limits."""

from __future__ import annotations

import ipaddress
import re
import socket
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from oslo_config import cfg

from designate_pool.config import values
from designate_pool.config.section import Section, group_of, options_of
from designate_pool.model import TLS_PORT, Endpoint
from designate_pool.settings import (NOAUTH, TOKEN, ApiSettings, CentralSettings, DatabaseSettings, MiniDnsSettings,
                                     NeutronFloatingIpSettings, NeutronSettings, NovaSettings, PoolManagerSettings,
                                     ProcessSettings, SigningPolicy, SinkSettings)

#: The filters of the scheduler.
FILTERS = ('attribute', 'pool_id_attribute', 'default_pool', 'fallback', 'random', 'in_doubt_default_pool')
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


def read_process(section: Section) -> ProcessSettings:
    """``[DEFAULT]``."""
    return section.read(ProcessSettings, host=section['host'] or socket.gethostname())


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
    listen_tls = section.converted('listen_tls', lambda text: values.endpoints(text, TLS_PORT)) or ()
    settings = section.read(MiniDnsSettings, listen_tls=listen_tls)
    for name in ('tls_certificate', 'tls_key') if listen_tls else ():
        if not getattr(settings, name):
            section.wrong(name, 'it must be given with listen_tls')
    if settings.require_tls and not listen_tls:
        section.wrong('require_tls', 'no transfer would be possible without listen_tls')
    return settings


def read_central(section: Section, pool_name: str, policies: Mapping[str, SigningPolicy]) -> CentralSettings:
    """``[service:central]``, with the keys in the file of keys."""
    pool_id = section.converted('default_pool_id', _id)
    filters = tuple(section['scheduler_filters'] or ())
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
    project = section['managed_resource_tenant_id'] or ''
    if not 1 <= len(project) <= 36:
        section.wrong('managed_resource_tenant_id', 'a project has 1 to 36 characters')
    if section['pkcs11_module'] and not section['pkcs11_token']:
        section.wrong('pkcs11_token', 'it must be given with pkcs11_module')
    return section.read(CentralSettings, default_pool_name=pool_name, default_pool_id=pool_id,
                        master_networks=tuple(networks), scheduler_filters=filters, managed_resource_tenant_id=project,
                        signing_keys=_keys(section, 'signing_keys_file'), signing_policies=policies)


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
