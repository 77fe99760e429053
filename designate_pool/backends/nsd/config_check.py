"""Checks an NSD's configuration, as far as its control channel shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import dns.exception
import dns.name

from designate_pool.backends.nsd.zone_status import ZoneStatus
from designate_pool.model import Endpoint, Finding, TsigKey
from designate_pool.protocol import tsig

_KEY = re.compile(r'key: name: "(?P<name>[^"]*)" secret: "(?P<secret>[^"]*)" algorithm: (?P<algorithm>\S+)')
RECONFIG = 'then run nsd-control reconfig'


def pattern(name: str, status: ZoneStatus, primaries: Sequence[Endpoint]) -> list[Finding]:
    """What is wrong with the pattern *name*.

    :param status: of a zone that was just added with the pattern
    """
    addresses = ', '.join(f'{primary.host}@{primary.port}' for primary in primaries)
    if not status.is_secondary:
        return [Finding(f'the pattern {name} has no request-xfr: its zones would never be transferred',
                        f'write request-xfr and allow-notify for {addresses or "MiniDNS"} into it, {RECONFIG}')]
    if status.asked is not None and primaries and status.asked not in primaries:
        return [Finding(f'the pattern {name} has zones transferred from {status.asked}, which is none of the primaries',
                        f'write request-xfr for {addresses} into it, {RECONFIG}', serious=False)]
    return []


def key(wanted: TsigKey, known: Iterable[str]) -> list[Finding]:
    """What is wrong with the key that NSD has under the name of *wanted*.

    :param known: the answer to ``print_tsig``; nothing is found if this version of NSD does not have that command
    """
    lines = list(known)
    if any(line.startswith('error') for line in lines):
        return []
    for match in filter(None, map(_KEY.fullmatch, lines)):
        if _same_name(match['name'], wanted.name):
            if (tsig.plain_algorithm(match['algorithm']) == tsig.plain_algorithm(wanted.algorithm)
                    and tsig.same_secret(match['secret'], wanted.secret)):
                return []
            return [Finding(f'NSD has another secret or algorithm for the TSIG key {wanted.name}',
                            f'write the same ones into nsd.conf and the section, {RECONFIG}')]
    return [Finding(f'NSD has no TSIG key {wanted.name}',
                    f'write a key statement of that name into nsd.conf, and the name into the pattern, {RECONFIG}')]


def _same_name(one: str, other: str) -> bool:
    try:
        return dns.name.from_text(one) == dns.name.from_text(other)
    except dns.exception.DNSException:
        return False
