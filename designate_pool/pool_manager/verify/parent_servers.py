"""The DS records of a zone at each server of its parent (RFC 4035 section 2.4), and notifications to the parent.

All are asked, and not a resolver: a key may sign alone only when no resolver can get the former DS from any of them.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
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

from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError
from designate_pool.model import Endpoint
from designate_pool.protocol.tcp_client import TcpPeer

#: Servers that are asked at the same time, and that a parent has at most.
_AT_ONCE, MOST_SERVERS = 16, 100
#: Seconds for finding them: who runs the parent decides how many there are, and how fast their names are told.
MOST_SECONDS = 30.0
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
    servers = list(parents) or _endpoints(zone, resolvers, seconds, lambda name, parent, resolver: (
        (rdata.target, port) for rdata in resolver.resolve(parent, dns.rdatatype.NS)))
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as executor:
        return dict(zip(servers, executor.map(lambda server: _ds_at(server, zone, seconds), servers)))


def notify_parent(zone: str, resolvers: Sequence[Endpoint], seconds: float = 5.0) -> list[Endpoint]:
    """Tell those whom the parent of *zone* names for it that its CDS and CDNSKEY have changed (RFC 9859).

    :param resolvers: which tell the parent zone, its DSYNC records, and the addresses of their targets
    :param seconds: for each answer
    :returns: who was told, and answered that without an error
    :raises BackendError: when the resolvers do not tell
    """
    targets = _endpoints(zone, resolvers, seconds, lambda name, parent, resolver: (
        (rdata.target, rdata.port) for rdata in _dsync(name, parent, resolver)))
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as executor:
        are_told = executor.map(lambda target: _is_told(target, zone, seconds), targets)
        return list(itertools.compress(targets, are_told))


def _dsync(zone: dns.name.Name, parent: dns.name.Name, resolver: dns.resolver.Resolver) -> list[Any]:
    """The DSYNC records for CDS, of the zone or else of all below the parent (RFC 9859 section 4.1)."""
    below = dns.name.from_text('_dsync', parent)
    names = [below]
    with contextlib.suppress(dns.name.NameTooLong):
        names.insert(0, zone.relativize(parent) + below)
    for name in names:
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


def _endpoints(zone: str, resolvers: Sequence[Endpoint], seconds: float, find: Callable[
        [dns.name.Name, dns.name.Name, dns.resolver.Resolver], Iterable[tuple[dns.name.Name, int]]]) -> list[Endpoint]:
    """The addresses of servers, each once, whose names and ports *find* tells of a zone and its parent."""
    deadline = Deadline(MOST_SECONDS)
    try:
        name, resolver = dns.name.from_text(zone), dns.resolver.Resolver(configure=not resolvers)
        if resolvers:
            resolver.nameservers = [dns.nameserver.Do53Nameserver(one.host, one.port) for one in resolvers]
        resolver.lifetime = seconds
        parent = dns.resolver.zone_for_name(name.parent(), resolver=resolver)
        servers = list(dict.fromkeys(
            Endpoint(address, port) for target, port in find(name, parent, resolver)
            for address in resolver.resolve_name(target, lifetime=min(seconds, deadline.left())).addresses()))
    except (dns.exception.DNSException, OSError) as error:
        why = 'it takes too long' if isinstance(error, TimeoutError) else error
        raise BackendError(why=f'the servers of the parent of {zone} cannot be found: {why}') from error
    if len(servers) > MOST_SERVERS:
        raise BackendError(why=f'the parent of {zone} has {len(servers)} servers, more than {MOST_SERVERS}')
    return servers


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
