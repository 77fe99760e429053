"""The DS records of a zone at each server of its parent (RFC 4035 section 2.4), and notifications to the parent.

All are asked, and not a resolver: a key may sign alone only when no resolver can get the former DS from any of them.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Mapping, Sequence
from typing import Any

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.nameserver
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.resolver

from designate_pool.errors import BackendError
from designate_pool.model import Endpoint
from designate_pool.protocol.tcp_client import TcpPeer

#: Servers that are asked at the same time.
_AT_ONCE = 16
#: The scheme of DSYNC records by which NOTIFY is sent.
_NOTIFY = 1


def probe_ds(zone: str, resolvers: Sequence[Endpoint] = (), parents: Sequence[Endpoint] = (), seconds: float = 5.0,
             port: int = 53) -> Mapping[Endpoint, Sequence[str] | None]:
    """The DS records of *zone* at each of *parents*: as text in lower case; None from a server that does not say.

    :param resolvers: which tell the name servers of the parent zone if *parents* is empty; empty for the system's
    :param seconds: for each answer
    :param port: at which the servers listen that the resolvers tell
    :raises BackendError: when no server of the parent can be found
    """
    servers = list(parents) or _parent_servers(dns.name.from_text(zone), resolvers, seconds, port)
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as executor:
        return dict(zip(servers, executor.map(lambda server: _ds_at(server, zone, seconds), servers)))


def notify_parent(zone: str, resolvers: Sequence[Endpoint], seconds: float = 5.0) -> list[Endpoint]:
    """Tell those whom the parent of *zone* names for it that its CDS and CDNSKEY have changed (RFC 9859).

    :param resolvers: which tell the parent zone, its DSYNC records, and the addresses of their targets
    :param seconds: for each answer
    :returns: who was told, and answered that without an error
    :raises BackendError: when the resolvers do not tell
    """
    name = dns.name.from_text(zone)
    try:
        resolver = _resolver(resolvers, seconds)
        parent = dns.resolver.zone_for_name(name.parent(), resolver=resolver)
        targets = {Endpoint(address, rdata.port): None for rdata in _dsync(name, parent, resolver)
                   for address in resolver.resolve_name(rdata.target, lifetime=seconds).addresses()}
    except (dns.exception.DNSException, OSError) as error:
        raise BackendError(why=f'whom to notify of the CDS of {zone} cannot be found: {error}') from error
    return [target for target in targets if _is_told(target, zone, seconds)]


def _dsync(zone: dns.name.Name, parent: dns.name.Name, resolver: dns.resolver.Resolver) -> list[Any]:
    """The DSYNC records for CDS, of the zone or else of all below the parent (RFC 9859 section 4.1)."""
    below = dns.name.from_text('_dsync', parent)
    for name in (zone.relativize(parent) + below, below):
        try:
            answer = resolver.resolve(name, dns.rdatatype.DSYNC, raise_on_no_answer=False)
        except dns.resolver.NXDOMAIN:
            continue
        records = [rdata for rdata in answer if rdata.rrtype == dns.rdatatype.CDS and rdata.scheme == _NOTIFY
                   and rdata.target != dns.name.root]
        if records:
            return records
    return []


def _is_told(target: Endpoint, zone: str, seconds: float) -> bool:
    message = dns.message.make_query(zone, dns.rdatatype.CDS, flags=dns.flags.AA)
    message.set_opcode(dns.opcode.NOTIFY)
    try:
        return TcpPeer(target.host, target.port).ask(message, seconds).rcode() == dns.rcode.NOERROR
    except BackendError:
        return False


def _resolver(resolvers: Sequence[Endpoint], seconds: float) -> dns.resolver.Resolver:
    resolver = dns.resolver.Resolver(configure=not resolvers)
    if resolvers:
        resolver.nameservers = [dns.nameserver.Do53Nameserver(endpoint.host, endpoint.port) for endpoint in resolvers]
    resolver.lifetime = seconds
    return resolver


def _parent_servers(zone: dns.name.Name, resolvers: Sequence[Endpoint], seconds: float, port: int) -> list[Endpoint]:
    try:
        resolver = _resolver(resolvers, seconds)
        parent = dns.resolver.zone_for_name(zone.parent(), resolver=resolver)
        names = [rdata.target for rdata in resolver.resolve(parent, dns.rdatatype.NS)]
        servers = {Endpoint(address, port): None for name in names
                   for address in resolver.resolve_name(name, lifetime=seconds).addresses()}
    except (dns.exception.DNSException, OSError) as error:
        raise BackendError(why=f'the servers of the parent of {zone} cannot be found: {error}') from error
    return list(servers)


def _ds_at(server: Endpoint, zone: str, seconds: float) -> list[str] | None:
    question = dns.message.make_query(zone, dns.rdatatype.DS, flags=0, want_dnssec=True)
    try:
        answer = TcpPeer(server.host, server.port).ask(question, seconds)
    except BackendError:
        return None
    # The parent says NXDOMAIN of a zone that it does not delegate any more.
    if answer.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN) or not answer.flags & dns.flags.AA:
        return None
    rrset = answer.get_rrset(answer.answer, question.question[0].name, dns.rdataclass.IN, dns.rdatatype.DS)
    return sorted(f'{rdata.key_tag} {int(rdata.algorithm)} {int(rdata.digest_type)} {rdata.digest.hex()}'
                  for rdata in rrset or ())
