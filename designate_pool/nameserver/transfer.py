"""Asking a primary for a zone's serial, and taking the zone from it (RFC 1035, RFC 5936, RFC 8945)."""

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
    """The answer is not signed."""


class TransferFailed(Exception):
    """A zone could not be taken, in words."""


def ask_serial(name: dns.name.Name, primary: Endpoint, key: TsigKey | None) -> int:
    """The serial that *primary* serves.

    :raises TransferFailed: when it gives none
    """
    query = _query(name, 'SOA', key)
    try:
        with _connected(primary, socket.SOCK_DGRAM) as asked:
            asked.send(query.to_wire())
            end = time.monotonic() + TIMEOUT
            while True:
                asked.settimeout(max(0.001, end - time.monotonic()))
                try:
                    answer = _parsed(asked.recv(65535), query)
                except dns.exception.DNSException:
                    continue  # not the answer to our question, or not from whom it says: the right one may follow
                if query.is_response(answer):
                    return _serial_of(answer, name, primary)
    except OSError as error:
        raise TransferFailed(f'{primary} does not tell the serial: {error or "no answer"}') from error


def fetch(name: dns.name.Name, primary: Endpoint, key: TsigKey | None, broken: bool = False) -> ZoneContents:
    """The whole zone by AXFR.

    :param broken: stop in the middle
    :raises TransferFailed: when it was not had complete
    """
    query = _query(name, 'AXFR', key)
    zone = dns.zone.Zone(name, relativize=False)
    context: Any = None
    signed = False
    try:
        with (_connected(primary, socket.SOCK_STREAM) as connection,
              dns.xfr.Inbound(zone, dns.rdatatype.AXFR) as inbound):
            connection.sendall(_framed(query.to_wire()))
            done = False
            while not done:
                length = struct.unpack('>H', _receive(connection, 2))[0]
                if broken:
                    _receive(connection, length // 2)
                    raise TransferFailed(f'the transfer from {primary} broke off, as it was told to')
                answer = _parsed(_receive(connection, length), query, transfer=True, context=context)
                if answer.id != query.id:
                    raise TransferFailed(f'{primary} answered something that was not asked')
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


def _serial_of(answer: dns.message.Message, name: dns.name.Name, primary: Endpoint) -> int:
    if answer.rcode() == dns.rcode.NOERROR and answer.flags & dns.flags.AA:
        for rrset in answer.answer:
            if rrset.name == name and rrset.rdtype == dns.rdatatype.SOA:
                return int(rrset[0].serial)
    raise TransferFailed(f'{primary} has no authoritative SOA ({dns.rcode.to_text(answer.rcode())})')


def _connected(primary: Endpoint, kind: socket.SocketKind) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ':' in primary.host else socket.AF_INET, kind)
    try:
        made.settimeout(TIMEOUT)
        made.connect((primary.host, primary.port))
        return made
    except BaseException:  # closed and passed on, whatever it is
        made.close()
        raise


def _receive(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        piece = connection.recv(count - len(received))
        if not piece:
            raise ConnectionError('the connection was closed before the end')
        received += piece
    return bytes(received)


def _framed(wire: bytes) -> bytes:
    return struct.pack('>H', len(wire)) + wire
