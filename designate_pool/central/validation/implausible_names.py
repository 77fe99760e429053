"""Names of new domains that can only be mistakes: addresses, networks, and names with blanks."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import TypeAlias

_Interface: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
#: An octet that dnspython escapes: not printable, or special in names.
_ESCAPED = re.compile(r'\\(\d{3}|.)')
_INVISIBLE = (*range(33), 127)
#: Reverse zones that the message lists.
_MOST_NAMED = 4


def why(name: str) -> str | None:
    """Why *name* (absolute) is implausible, and what may be meant; None when it is plausible."""
    if any(len(each) == 3 and int(each) in _INVISIBLE for each in _ESCAPED.findall(name)):
        return 'a blank or a control character is in it'
    try:
        given = name.rstrip('.').replace('\\', '')
        interface = ipaddress.ip_interface(given)
    except ValueError:
        return None
    if '/' in given:
        return f'it is a network and no name; {_reverse(interface.network)}'
    return f'it is an address and no name; {_reverse(_around(interface))}'


def _around(interface: _Interface) -> _Network:
    """The network of the reverse zone that usually contains the address."""
    return ipaddress.ip_network((interface.ip, 24 if interface.version == 4 else 64), strict=False)


def _reverse(network: _Network) -> str:
    """Advice on the zones for the reverse names of *network* (RFC 1035 section 3.5, RFC 3596 section 2.5, RFC 2317)."""
    step = 8 if network.version == 4 else 4
    if network.version == 4 and network.prefixlen > 24:
        whole = network.supernet(new_prefix=24)
        last = int(network.network_address) & 255
        inner = '' if network.prefixlen == 32 else f'{last}/{network.prefixlen}.{_name(whole, step)} or '
        return f'create {inner}{_name(whole, step)} for its reverse names'
    upper = max(step, -(-network.prefixlen // step) * step)
    parts: Iterator[_Network] = iter(network.subnets(new_prefix=upper))
    first = _name(next(parts), step)
    count = 1 << (upper - network.prefixlen)
    if count > _MOST_NAMED:
        return f'its reverse names are in {count} zones, of which {first} is the first'
    return f'create {" and ".join([first, *(_name(each, step) for each in parts)])} for its reverse names'


def _name(network: _Network, step: int) -> str:
    labels = network.network_address.reverse_pointer.split('.')
    total = network.max_prefixlen // step
    return '.'.join(labels[total - network.prefixlen // step:]) + '.'
