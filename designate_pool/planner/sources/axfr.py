"""Zones of another name server, by AXFR."""

from __future__ import annotations

from collections.abc import Collection

import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype

from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, SourceError
from designate_pool.model import Reason
from designate_pool.planner.providers.base import BaseSource
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.axfr_inbound import AxfrInbound, Pace, axfr_query, receive
from designate_pool.protocol.names_and_rdata import GENERATED, without_case
from designate_pool.protocol.soa_exchange import serial_over_tcp
from designate_pool.protocol.tcp_client import TcpPeer, key_of


class AxfrSource(BaseSource):
    """A name server that allows transfers of its zones (RFC 5936); the options are those of octodns-bind's class.

    :param timeout: seconds for one transfer, from connecting to its last record
    :param key_secret: in Base64
    :param key_algorithm: ``hmac-sha256`` when None
    :param ipv6: ignored, since all addresses of a host name are tried; like *update_batch_size*, accepted so that
        configurations of octoDNS need no change
    """

    SUPPORTS_SOA = True

    def __init__(self, id: str, host: str, port: int = 53, ipv6: bool = False, timeout: float = 60.0,
                 key_name: str | None = None, key_secret: str | None = None, key_algorithm: str | None = None,
                 update_batch_size: int | None = None) -> None:
        super().__init__(id)
        self.host = host
        self.port = int(port)
        self.timeout = float(timeout)
        self._peer = TcpPeer(host, self.port, key_of(key_name, key_secret, key_algorithm))

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        try:
            pairs = transfer(self._peer, zone.name, self.timeout)
        except BackendError as error:
            raise SourceError(source=f'{zone.name} of {self.host} port {self.port}',
                              why=str(error).rstrip('.')) from error
        zone.add_pairs(pairs, lenient)
        return True


#: What a server says to a transfer that it does not give, or of a zone that it does not have.
_REFUSALS = frozenset({dns.rcode.REFUSED, dns.rcode.NOTAUTH, dns.rcode.NXDOMAIN})


class ZoneNotThere(BackendRefused):
    """the server has no zone {zone}"""


def transfer(peer: TcpPeer, name: str, seconds: float, leave_out: Collection[str] = GENERATED) -> dict[str, str]:
    """The zone *name* as packed pairs (see :mod:`designate_pool.protocol.rrset`), its SOA among them.

    :raises ZoneNotThere: when the server has no such zone
    :raises BackendRefused: when it does not give it away
    :raises BackendError: when it could not be had whole
    """
    deadline = Deadline(seconds)
    pairs = _Pairs(frozenset(leave_out))
    refusal = receive(peer, AxfrInbound(axfr_query(name), pairs.add), deadline, Pace(0).spend)
    if refusal is None:
        return pairs.packed()
    try:
        if refusal in _REFUSALS and serial_over_tcp(peer, name, deadline.left()) is None:
            raise ZoneNotThere(zone=name)
    except TimeoutError:
        raise BackendUnreachable(why=str(deadline), reason=Reason.TIMEOUT) from None
    word = dns.rcode.to_text(refusal)
    if refusal in _REFUSALS:
        raise BackendRefused(why=f'the server does not let {name} be transferred ({word}): its configuration has to '
                                 'allow that to the key, or from this address', reason=Reason.REFUSED)
    raise BackendError(why=f'the server cannot transfer {name} ({word}); its log says why', reason=Reason(word))


class _Pairs:
    """The records of a transfer as text in normal form."""

    def __init__(self, leave_out: frozenset[str]) -> None:
        self._leave_out = leave_out
        self._found: dict[str, tuple[int, list[str]]] = {}
        self._names: dict[bytes, str] = {}
        self._types: dict[int, tuple[dns.rdatatype.RdataType, str]] = {}

    def packed(self) -> dict[str, str]:
        return {key: '\t'.join((str(ttl), *sorted(set(data)))) for key, (ttl, data) in self._found.items()}

    def add(self, owner: bytes, number: int, ttl: int, message: bytes, start: int, end: int,
            known: dict[int, bytes]) -> None:
        if number not in self._types:
            made = dns.rdatatype.RdataType.make(number)
            self._types[number] = made, dns.rdatatype.to_text(made)
        known_type, rtype = self._types[number]
        if rtype in self._leave_out:
            return
        name = self._names.get(owner)
        if name is None:
            name = self._names[owner] = dns.name.from_wire(owner, 0)[0].to_text()
        text = dns.rdata.from_wire(dns.rdataclass.IN, known_type, message, start, end - start).to_text()
        lowest, data = self._found.setdefault(f'{name}\t{rtype}', (ttl, []))
        data.append(without_case(rtype, text))
        if ttl < lowest:  # RFC 2181 section 5.2
            self._found[f'{name}\t{rtype}'] = ttl, data
