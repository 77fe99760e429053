"""Queries a primary for a zone's serial, and transfers the zone (RFC 1035, RFC 5936, RFC 8945)."""

from __future__ import annotations

import socket
from typing import Any, BinaryIO

import dns.exception
import dns.message
import dns.name
import dns.rdatatype
import dns.xfr
import dns.zone

from designate_pool.deadline import Deadline
from designate_pool.model import Endpoint, TsigKey
from designate_pool.nameserver.contents import ZoneContents
from designate_pool.protocol import soa_exchange, tsig

#: Seconds for the serial, and for each read of a transfer.
TIMEOUT = 5.0


class TransferFailed(Exception):
    """A zone could not be transferred, and why."""


def query_serial(name: dns.name.Name, primary: Endpoint, key: TsigKey | None) -> int:
    """The serial that *primary* serves.

    :raises TransferFailed: when it does not answer with one
    """
    text = name.to_text()
    try:
        reply = soa_exchange.ask(primary.host, primary.port, None if key is None else tsig.key_from(key), [text],
                                 Deadline(TIMEOUT))[text]
    except OSError as error:
        raise TransferFailed(f'{primary} gives no serial: {error}') from error
    if reply is None or reply.serial is None:
        raise TransferFailed(f'{primary} gives no serial: {"no answer" if reply is None else reply.error}')
    return reply.serial


def fetch(name: dns.name.Name, primary: Endpoint, key: TsigKey | None, broken: bool = False) -> ZoneContents:
    """The whole zone by AXFR.

    :param broken: break off in the middle
    :raises TransferFailed: when it is incomplete or not signed
    """
    query = dns.message.make_query(name, 'AXFR', flags=0)
    if key is not None:
        query.use_tsig(tsig.key_from(key))
    zone = dns.zone.Zone(name, relativize=False)
    context: Any = None
    is_done = is_signed = False
    try:
        with (socket.create_connection((primary.host, primary.port), TIMEOUT) as connection,
              connection.makefile('rb') as stream, dns.xfr.Inbound(zone, dns.rdatatype.AXFR) as inbound):
            connection.sendall(query.to_wire(prepend_length=True))
            while not is_done:
                length = int.from_bytes(_read(stream, 2), 'big')
                if broken:
                    _read(stream, length // 2)
                    raise TransferFailed(f'the transfer from {primary} broke off because of the fault broken')
                answer = dns.message.from_wire(_read(stream, length), keyring=query.keyring, request_mac=query.mac,
                                               xfr=True, tsig_ctx=context, multi=True)
                if answer.id != query.id:
                    raise TransferFailed(f'{primary} sent the reply to another query')
                context, is_signed = answer.tsig_ctx, answer.had_tsig
                is_done = inbound.process_message(answer)
            if key is not None and not is_signed:
                raise TransferFailed(f'{primary} did not sign the end of the transfer')
    except (dns.exception.DNSException, OSError, ValueError, KeyError) as error:
        raise TransferFailed(f'the transfer from {primary} failed: {error or type(error).__name__}') from error
    return ZoneContents(zone)


def _read(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise ConnectionError('the connection was closed before the end')
    return data
