"""What in PowerDNS's own settings keeps it from following the pool."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any

from designate_pool.model import Finding, Server, TsigKey

#: Seconds for which answers are kept.
CACHES = ('cache-ttl', 'query-cache-ttl', 'negquery-cache-ttl')
_OFF = ('no', 'off')
#: The switch of each of the databases with SQL, such as ``gsqlite3-dnssec``.
_DNSSEC_OF_DATABASE = re.compile(r'g[a-z0-9]+(-[a-z0-9-]+)?-dnssec')


def misfits(settings: Mapping[str, str], server: Server) -> Iterator[Finding]:
    """What is wrong with *settings*, names with values as ``GET /config`` has them, for *server*.

    A setting that is not in there, being of another version, is not judged.
    """
    # Versions before 4.5 know the older word only; where both are there, the newer one decides.
    word = 'secondary' if 'secondary' in settings else 'slave'
    if settings.get(word) in _OFF:
        yield Finding(f'{word}={settings[word]}: PowerDNS fetches no zones', f'set {word}=yes and restart PowerDNS')
    yield from misfits_of_caches(settings)
    if server.options.get('ixfr'):
        yield misfit_of_ixfr(settings)
    if server.tsig_key is not None:
        return  # A signed NOTIFY is accepted whatever the following say.
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

    :param kind: what zones are made there
    """
    yield from misfits_of_caches(settings)
    word = 'primary' if 'primary' in settings else 'master'
    if kind.lower() != 'native' and settings.get(word) in _OFF:
        yield Finding(f'{word}={settings[word]}: the secondaries of its zones are not told of changes',
                      f'set {word}=yes and restart PowerDNS, or set kind = Native')


def misfits_of_caches(settings: Mapping[str, str]) -> Iterator[Finding]:
    """Caches that keep what was before a change."""
    kept = [f'{name}={settings[name]}' for name in CACHES if settings.get(name, '0') != '0']
    if kept:
        yield Finding(f'{", ".join(kept)}: PowerDNS may give old answers for so many seconds after a change',
                      f'set {", ".join(f"{name}=0" for name in CACHES)} unless its load does not allow it', False)


def misfit_of_ixfr(settings: Mapping[str, str]) -> Finding:
    """What PowerDNS makes of zones that it fetches by their changes.

    It marks the records that come so as not authoritative, and leaves them out of answers where its database's DNSSEC
    is on; which names exist only for those below them it does not follow in either case (PowerDNS issue 12756).
    """
    on = [f'{name}={value}' for name, value in sorted(settings.items())
          if _DNSSEC_OF_DATABASE.fullmatch(name) and value not in _OFF]
    whole = 'set ixfr = false: its zones are then fetched whole once more, and from then on'
    if on:
        return Finding(f'ixfr = true and {", ".join(on)}: PowerDNS does not answer for records that came by IXFR',
                       whole)
    return Finding('ixfr = true: PowerDNS answers NXDOMAIN for a name without records, above one that came by IXFR',
                   f'{whole}; or leave it, if no zone has such names', serious=False)


def misfit_of_key(held: Mapping[str, Any] | None, key: TsigKey) -> Finding | None:
    """What is wrong with the key that PowerDNS holds by *key*'s name.

    :param held: it as ``GET /tsigkeys/{id}`` has it; None when there is none
    """
    name = key.name.rstrip('.')
    if held is None:
        return Finding(f'PowerDNS has no TSIG key {name}', how_to_import(key))
    algorithm = str(held.get('algorithm')).lower().rstrip('.')
    if _plain(algorithm) != _plain(key.algorithm):
        return Finding(f'PowerDNS has the TSIG key {name} with the algorithm {algorithm}, not {key.algorithm}',
                       how_to_import(key))
    if _octets(str(held.get('key'))) != _octets(key.secret):
        return Finding(f'PowerDNS has another secret for the TSIG key {name}', how_to_import(key))
    return None


def how_to_import(key: TsigKey) -> str:
    """The command that makes PowerDNS know *key*, its secret left out."""
    return f'on its host: pdnsutil import-tsig-key {key.name.rstrip(".")} {_plain(key.algorithm)} SECRET'


def _accepts(networks: str, host: str) -> bool:
    """Whether *networks*, with commas between them and ``!`` before what is shut out, have *host* in them.

    The longest one that fits decides, as in PowerDNS.
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


def _plain(algorithm: str) -> str:
    return algorithm.removesuffix('.sig-alg.reg.int')


def _octets(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return text.encode()
