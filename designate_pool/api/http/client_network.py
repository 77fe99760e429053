"""Where a request comes from, as far as those who ask much are to leave room for others."""

from __future__ import annotations

import functools
import ipaddress

#: Bits of an IPv6 address that say which network it is of: who has one of it has all (RFC 4291 section 2.5).
_NETWORK = 64


@functools.lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """An IPv4 address itself, of an IPv6 address the network; of what is no address the text."""
    try:
        found = ipaddress.ip_address(address.partition('%')[0])
    except ValueError:
        return address
    if found.version == 4:
        return address
    mapped = found.ipv4_mapped
    return str(mapped) if mapped else str(ipaddress.ip_network((int(found), _NETWORK), strict=False))
