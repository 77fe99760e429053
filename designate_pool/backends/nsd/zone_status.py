"""Zones in the words of NSD's control channel: their names, and what ``zonestatus`` says of them."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Iterable, Iterator

import dns.exception
import dns.name

from designate_pool.errors import BackendError, BackendRefused
from designate_pool.model import Endpoint

_PLAIN_OCTETS = frozenset(b'abcdefghijklmnopqrstuvwxyz0123456789-_')
_PLAIN_NAME = re.compile(rb'[a-z0-9_-]+(?:\.[a-z0-9_-]+)*')
_SERIAL = re.compile(rb'"(\d+) since ')
_ASKED = re.compile(rb'"(?:sent UDP|TCP connected) to ([0-9a-fA-F.:]+)(?:@(\d+))?"')


@dataclasses.dataclass(frozen=True)
class ZoneStatus:
    """What NSD says of a zone.

    :ivar name: lower case and absolute
    :ivar pattern: None for a zone that stands in nsd.conf
    :ivar is_secondary: whether it is transferred from anywhere
    :ivar serial: what it serves; None when it serves nothing
    :ivar asked: the primary that it is being transferred from just now
    """

    name: str
    pattern: str | None = None
    is_secondary: bool = True
    serial: int | None = None
    asked: Endpoint | None = None


def escaped(name: str) -> str:
    """*name* as it is written to NSD: without the final dot, odd octets as ``\\DDD``.

    In this form it is one word without a slash: it cannot end its line, and a zone file called after it stays in its
    folder.

    :raises BackendRefused: when it is not a domain name
    """
    try:
        labels = dns.name.from_text(name).canonicalize().labels[:-1]
    except (dns.exception.DNSException, ValueError) as error:
        raise BackendRefused(why=f'{name!r} is not a domain name ({error})') from error
    return '.'.join(''.join(chr(octet) if octet in _PLAIN_OCTETS else f'\\{octet:03d}' for octet in label)
                    for label in labels) or '.'


def statuses(lines: Iterable[bytes]) -> Iterator[ZoneStatus]:
    """The zones in an answer to ``zonestatus``.

    :raises BackendError: when the answer is something else
    """
    facts: dict[bytes, bytes] = {}
    for line in lines:
        word, colon, value = line.partition(b':')
        if word == b'zone' and colon:
            if facts:
                yield _status(facts)
            facts = {b'zone': value.strip()}
        elif facts and line.startswith(b'\t'):
            facts[word[1:]] = value.strip()
        else:
            raise BackendError(why=f'zonestatus: {line[:200].decode("latin-1")}')
    if facts:
        yield _status(facts)


def _status(facts: dict[bytes, bytes]) -> ZoneStatus:
    pattern, state = facts.get(b'pattern'), facts.get(b'state')
    # After a restart NSD remembers the serial that it served, also of a zone whose contents it has not any more; only
    # "commit-serial" tells whether it has them.
    serves = state != b'expired' and facts.get(b'commit-serial', b'none') != b'none'
    serial = _SERIAL.match(facts.get(b'served-serial', b'')) if serves else None
    return ZoneStatus(
        name=_name(facts[b'zone']), pattern=None if pattern is None else pattern.decode('latin-1'),
        is_secondary=state != b'master', serial=None if serial is None else int(serial[1]),
        asked=_asked(facts.get(b'transfer', b'')))


def _asked(transfer: bytes) -> Endpoint | None:
    found = _ASKED.fullmatch(transfer)
    try:
        return found and Endpoint(str(ipaddress.ip_address(found[1].decode('ascii'))), int(found[2] or 53))
    except ValueError:
        return None


def _name(octets: bytes) -> str:
    """A name that was perhaps added by hand, in any spelling that NSD takes."""
    plain = octets.removesuffix(b'.')
    if _PLAIN_NAME.fullmatch(plain):
        return plain.decode('ascii') + '.'
    try:
        text = ''.join(chr(octet) if octet < 0x80 else f'\\{octet:03d}' for octet in octets)
        return dns.name.from_text(text).canonicalize().to_text()
    except (dns.exception.DNSException, ValueError) as error:
        raise BackendError(why=f'NSD lists a zone whose name cannot be read ({error})') from error
