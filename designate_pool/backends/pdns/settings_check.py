"""Checks PowerDNS's own settings for what prevents zones from being transferred or answered correctly."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any

from designate_pool.errors import BackendError
from designate_pool.model import Finding, Server, TsigKey
from designate_pool.protocol import tsig

#: Settings with the seconds for which PowerDNS caches answers.
CACHES = ('cache-ttl', 'query-cache-ttl', 'negquery-cache-ttl')
_OFF = ('no', 'off')
#: The setting that enables DNSSEC in an SQL database, such as ``gsqlite3-dnssec``.
_DNSSEC_OF_DATABASE = re.compile(r'g[a-z0-9]+(-[a-z0-9-]+)?-dnssec')


def if_readable(found: Iterator[Finding]) -> Iterator[Finding]:
    """*found*, and a warning if the API does not let the settings be read."""
    try:
        yield from found
    except BackendError as error:
        yield Finding(f'its settings cannot be read: {error}', 'let GET requests for /config and /tsigkeys of the API '
                      'through, or compare the settings with the documentation of the driver by hand', serious=False)


def misfits(settings: Mapping[str, str], server: Server) -> Iterator[Finding]:
    """What is wrong with *settings*, the names and values of ``GET /config``, for *server*.

    A setting that this version of PowerDNS does not have is not checked.
    """
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
    """What is wrong with *settings* for a server that is fed by records.

    :param kind: of the zones that are created there
    """
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


def misfits_of_key(held: Mapping[str, Any] | None, key: TsigKey) -> Iterator[Finding]:
    """What is wrong with the key that PowerDNS has under *key*'s name.

    :param held: the answer to ``GET /tsigkeys/{id}``; None if there is no such key
    """
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
