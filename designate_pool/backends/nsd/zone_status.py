"""The names of zones as NSD's control channel writes them, and the answer to ``zonestatus``."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Iterable, Iterator

from designate_pool.errors import BackendError, BackendRefused
from designate_pool.model import Endpoint
from designate_pool.protocol.names_and_rdata import parse_name

_PLAIN_OCTETS = frozenset(b'abcdefghijklmnopqrstuvwxyz0123456789-_')
_PLAIN_NAME = re.compile(rb'[a-z0-9_-]+(?:\.[a-z0-9_-]+)*')
_SERIAL = re.compile(rb'"(\d+) since ')
_ASKED = re.compile(rb'"(?:sent UDP|TCP connected) to ([0-9a-fA-F.:]+)(?:@(\d+))?"')


@dataclasses.dataclass(frozen=True)
class ZoneStatus:
    """The status of a zone of NSD.

    :ivar name: lower case and absolute
    :ivar pattern: None for a zone that is configured in nsd.conf
    :ivar is_secondary: whether it has a primary
    :ivar serial: the one that is served; None when the zone is not served
    :ivar asked: the primary that the zone is being transferred from
    """

    name: str
    pattern: str | None = None
    is_secondary: bool = True
    serial: int | None = None
    asked: Endpoint | None = None


def escaped(name: str) -> str:
    """*name* as it is written to NSD: without the final dot, special octets as ``\\DDD``.

    This form is one word without a slash: it cannot end its line, and a zone file of this name stays in its folder.

    :raises BackendRefused: when it is not a domain name
    """
    labels = parse_name(name).canonicalize().labels[:-1]
    return '.'.join(''.join(chr(octet) if octet in _PLAIN_OCTETS else f'\\{octet:03d}' for octet in label)
                    for label in labels) or '.'


def statuses(lines: Iterable[bytes]) -> Iterator[ZoneStatus]:
    """The zones in an answer to ``zonestatus``.

    :raises BackendError: when it is something else
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
    # After a restart NSD shows the serial that it served before, even if it no longer has the contents; only
    # "commit-serial" shows whether it has them.
    serves = state != b'expired' and facts.get(b'commit-serial', b'none') != b'none'
    serial = _SERIAL.match(facts.get(b'served-serial', b'')) if serves else None
    return ZoneStatus(
        name=_name(facts[b'zone']), pattern=None if pattern is None else pattern.decode('latin-1'),
        is_secondary=state != b'master', serial=None if serial is None else int(serial[1]),
        asked=_asked(facts.get(b'transfer', b'')))


def _asked(transfer: bytes) -> Endpoint | None:
    match = _ASKED.fullmatch(transfer)
    try:
        return match and Endpoint(str(ipaddress.ip_address(match[1].decode('ascii'))), int(match[2] or 53))
    except ValueError:
        return None


def _name(octets: bytes) -> str:
    """A name in any form that NSD accepts: the zone may have been added by hand."""
    plain = octets.removesuffix(b'.')
    if _PLAIN_NAME.fullmatch(plain):
        return plain.decode('ascii') + '.'
    try:
        return parse_name(''.join(chr(octet) if octet < 0x80 else f'\\{octet:03d}' for octet in octets)) \
            .canonicalize().to_text()
    except BackendRefused as error:
        raise BackendError(why=f'NSD lists a zone whose name cannot be parsed: {error}') from error
