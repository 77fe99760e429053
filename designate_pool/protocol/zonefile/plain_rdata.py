"""Rdata in wire form, made from text that an entry of :data:`~designate_pool.protocol.names_and_rdata.PLAIN` matches.

The invariant: it is the wire form that dnspython makes, without the time that dnspython takes.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable

_STRINGS = re.compile('"([^"]*)"').findall


def of(rtype: str, text: str) -> bytes:
    """The wire form (RFC 1035 sections 3.3 and 3.4, RFC 3596, RFC 2782) of *text*; *rtype* is a key of ``PLAIN``."""
    return _MAKERS[rtype](text)


def _name(text: str) -> bytes:
    return b''.join([bytes((len(label),)) + label for label in text.encode('ascii').split(b'.')])


def _mx(text: str) -> bytes:
    preference, _, exchange = text.partition(' ')
    return struct.pack('!H', int(preference)) + _name(exchange)


def _srv(text: str) -> bytes:
    priority, weight, port, target = text.split(' ')
    return struct.pack('!HHH', int(priority), int(weight), int(port)) + _name(target)


def _txt(text: str) -> bytes:
    return b''.join([bytes((len(string),)) + string.encode('ascii') for string in _STRINGS(text)])


_MAKERS: dict[str, Callable[[str], bytes]] = {
    'A': socket.inet_aton,
    'AAAA': lambda text: socket.inet_pton(socket.AF_INET6, text),
    'MX': _mx,
    'SRV': _srv,
    'TXT': _txt,
    **{rtype: _name for rtype in ('CNAME', 'DNAME', 'NS', 'PTR')},
}
