"""The network of a client, for limits."""

from __future__ import annotations

import functools
import ipaddress

#: Bits of an IPv6 address that are its network: who has one address of it has all (RFC 4291 section 2.5).
_NETWORK = 64


@functools.lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """An IPv4 address itself, the network of an IPv6 address; any other text as it is."""
    try:
        found = ipaddress.ip_address(address.partition('%')[0])
    except ValueError:
        return address
    if found.version == 4:
        return address
    mapped = found.ipv4_mapped
    return str(mapped) if mapped else str(ipaddress.ip_network((int(found), _NETWORK), strict=False))
