"""The masters of secondary domains: servers of users, to which MiniDNS connects.

They must not let users reach what only MiniDNS can reach: addresses of its own host, of the local network, and of
groups are refused, and private ones, unless the configuration allows their networks; and ports that it does not allow.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from designate_pool.central.validation import fields
from designate_pool.errors import InvalidField
from designate_pool.model import Endpoint, Master

#: Masters that a domain may have.
MOST = 10
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_REFUSED: tuple[tuple[str, tuple[Network, ...]], ...] = tuple(
    (why, tuple(map(ipaddress.ip_network, networks))) for why, networks in (
        ('an unspecified address', ('0.0.0.0/8', '::/128')),
        ('a loopback address', ('127.0.0.0/8', '::1/128')),
        ('a link-local address', ('169.254.0.0/16', 'fe80::/10')),
        ('a multicast address', ('224.0.0.0/4', 'ff00::/8')),
        ('a reserved address', ('192.0.0.0/24', '198.18.0.0/15', '240.0.0.0/4', '::/96', '100::/64', '2001:2::/48')),
        ('an address at which a cloud tells its instances their settings', ('168.63.129.16/32',)),
        ('a private address', ('10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7',
                               'fec0::/10')),
        # They lead to an IPv4 address, which would have to be looked at too.
        ('an address of a translation or tunnel to IPv4', ('192.88.99.0/24', '::ffff:0:0:0/96', '64:ff9b::/96',
                                                           '64:ff9b:1::/48', '2001::/32', '2002::/16')),
    ))


def parse(field: str, value: Any, allowed: Sequence[Network] = (), ports: Sequence[str] = ()) -> str:
    """The masters as a domain keeps them.

    :param value: texts, as :meth:`designate_pool.model.Master.parse` has them
    :param allowed: networks that may have masters though they are refused otherwise
    :param ports: those that masters may have, and ranges of them (``5300-5399``); any if empty
    """
    masters = fields.sequence(field, value)
    if not masters:
        raise InvalidField(field=field, why='a secondary zone has at least one')
    if len(masters) > MOST:
        raise InvalidField(field=field, why=f'more than {MOST}')
    with fields.every_mistake() as check:
        addresses = [check(_master, f'{field}.{index}', master, allowed, ports) for index, master in enumerate(masters)]
    return ','.join(dict.fromkeys(addresses))


def _master(field: str, value: Any, allowed: Sequence[Network], ports: Sequence[str]) -> str:
    try:
        master = Master.parse(fields.text(field, value, 320))
    except ValueError as error:
        raise InvalidField(field=field, why=str(error)) from None
    endpoint = master.endpoint
    address = _plain(endpoint.host)
    if address is None:
        raise InvalidField(field=field, why='an address with a zone, which has a meaning on one host alone')
    why = refusal(address, allowed)
    if why is not None:
        raise InvalidField(field=field, why=f'{endpoint.host} is {why}; [service:central] master_networks says which '
                                            'of these may be masters')
    if ports and not any(_holds(port, endpoint.port) for port in ports):
        raise InvalidField(field=field, why=f'{endpoint.port} is not a port of masters; [service:central] master_ports '
                                            f'has {", ".join(ports)}')
    return str(Master(Endpoint(str(address), endpoint.port), master.tls_name))


def refusal(address: Address, allowed: Sequence[Network]) -> str | None:
    """Why *address* cannot be a master, in words; None if it can."""
    if any(address in network for network in allowed):
        return None
    return next((why for why, networks in _REFUSED if any(address in network for network in networks)), None)


def _holds(ports: str, port: int) -> bool:
    first, _, last = ports.partition('-')
    return int(first) <= port <= int(last or first)


def _plain(host: str) -> Address | None:
    """The address; an IPv4 address in place of one that is mapped to IPv6, and None for one with a zone."""
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv6Address):
        return None if address.scope_id else address.ipv4_mapped or address
    return address
