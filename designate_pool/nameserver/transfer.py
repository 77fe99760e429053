"""Queries a primary for a zone's serial, and transfers the zone (RFC 1035, RFC 5936, RFC 8945)."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.xfr
import dns.zone

from designate_pool.model import Endpoint, TsigKey
from designate_pool.nameserver.contents import ZoneContents
from designate_pool.protocol import tsig

TIMEOUT = 5.0


class NotSigned(dns.exception.DNSException):
    """the reply is not signed"""


class TransferFailed(Exception):
    """A zone could not be transferred, and why."""


def query_serial(name: dns.name.Name, primary: Endpoint, key: TsigKey | None) -> int:
    """The serial that *primary* serves.

    :raises TransferFailed: when it does not answer with one
    """
    query = _query(name, 'SOA', key)
    try:
        with _connect(primary, socket.SOCK_DGRAM) as sock:
            sock.send(query.to_wire())
            end = time.monotonic() + TIMEOUT
            while True:
                sock.settimeout(max(0.001, end - time.monotonic()))
                try:
                    answer = _parsed(sock.recv(65535), query)
                except dns.exception.DNSException:
                    continue  # malformed, or its signature is wrong: the true reply may follow
                if query.is_response(answer):
                    return _serial_in(answer, name, primary)
    except OSError as error:
        raise TransferFailed(f'{primary} gives no serial: {error or "no answer"}') from error


def fetch(name: dns.name.Name, primary: Endpoint, key: TsigKey | None, broken: bool = False) -> ZoneContents:
    """The whole zone by AXFR.

    :param broken: break off in the middle
    :raises TransferFailed: when it is incomplete or not signed
    """
    query = _query(name, 'AXFR', key)
    zone = dns.zone.Zone(name, relativize=False)
    context: Any = None
    signed = False
    try:
        with (_connect(primary, socket.SOCK_STREAM) as connection,
              dns.xfr.Inbound(zone, dns.rdatatype.AXFR) as inbound):
            connection.sendall(_framed(query.to_wire()))
            done = False
            while not done:
                length = struct.unpack('>H', _receive(connection, 2))[0]
                if broken:
                    _receive(connection, length // 2)
                    raise TransferFailed(f'the transfer from {primary} broke off because of the fault broken')
                answer = _parsed(_receive(connection, length), query, transfer=True, context=context)
                if answer.id != query.id:
                    raise TransferFailed(f'{primary} sent the reply to another query')
                context, signed = answer.tsig_ctx, answer.had_tsig
                done = inbound.process_message(answer)
            if key is not None and not signed:
                raise TransferFailed(f'{primary} did not sign the end of the transfer')
    except (dns.exception.DNSException, OSError, ValueError, KeyError) as error:
        raise TransferFailed(f'the transfer from {primary} failed: {error or type(error).__name__}') from error
    return ZoneContents(zone)


def _query(name: dns.name.Name, rtype: str, key: TsigKey | None) -> dns.message.Message:
    query = dns.message.make_query(name, rtype, flags=0)
    if key is not None:
        query.use_tsig(tsig.key_from(key))
    return query


def _parsed(wire: bytes, query: dns.message.Message, transfer: bool = False,
            context: Any = None) -> dns.message.Message:
    answer = dns.message.from_wire(wire, keyring=query.keyring, request_mac=query.mac, xfr=transfer,
                                   tsig_ctx=context, multi=transfer)
    if query.keyring is not None and not transfer and not answer.had_tsig:
        raise NotSigned
    return answer


def _serial_in(answer: dns.message.Message, name: dns.name.Name, primary: Endpoint) -> int:
    if answer.rcode() == dns.rcode.NOERROR and answer.flags & dns.flags.AA:
        for rrset in answer.answer:
            if rrset.name == name and rrset.rdtype == dns.rdatatype.SOA:
                return int(rrset[0].serial)
    raise TransferFailed(f'{primary} has no authoritative SOA ({dns.rcode.to_text(answer.rcode())})')


def _connect(primary: Endpoint, kind: socket.SocketKind) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ':' in primary.host else socket.AF_INET, kind)
    try:
        sock.settimeout(TIMEOUT)
        sock.connect((primary.host, primary.port))
        return sock
    except BaseException:
        sock.close()
        raise


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError('the connection was closed before the end')
        data += piece
    return bytes(data)


def _framed(wire: bytes) -> bytes:
    return struct.pack('>H', len(wire)) + wire
