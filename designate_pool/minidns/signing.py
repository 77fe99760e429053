"""TSIG on messages (RFC 8945).  The HMACs are dnspython's; finding, judging and appending the record is done here."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.tsig
from dns.rdtypes.ANY.TSIG import TSIG

from designate_pool.minidns import wire
from designate_pool.model import TsigKey

FUDGE = 300
#: Room that a TSIG record may need: two names, the fixed fields, the longest MAC and the time in a BADTIME answer.
ROOM = 255 + 10 + 26 + 16 + 64 + 6

BADSIG, BADKEY, BADTIME = 16, 17, 18
ERRORS = {BADSIG: 'BADSIG', BADKEY: 'BADKEY', BADTIME: 'BADTIME', 22: 'BADTRUNC'}

ALGORITHMS = {
    'hmac-md5': dns.tsig.HMAC_MD5,
    'hmac-md5.sig-alg.reg.int': dns.tsig.HMAC_MD5,
    'hmac-sha1': dns.tsig.HMAC_SHA1,
    'hmac-sha224': dns.tsig.HMAC_SHA224,
    'hmac-sha256': dns.tsig.HMAC_SHA256,
    'hmac-sha384': dns.tsig.HMAC_SHA384,
    'hmac-sha512': dns.tsig.HMAC_SHA512,
}


class BadSignature(Exception):
    """A message's TSIG is missing or wrong; *reason* says how, in words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Seal(NamedTuple):
    """A message's TSIG record: where it starts, and what it says."""

    at: int
    owner: dns.name.Name
    rdata: Any


def key_from(key: TsigKey) -> dns.tsig.Key:
    """dnspython's form of a key.

    :raises ValueError: when algorithm, name or secret are not valid
    """
    try:
        algorithm = ALGORITHMS[key.algorithm.lower().rstrip('.')]
        return dns.tsig.Key(dns.name.from_text(key.name), key.secret, algorithm)
    except KeyError:
        raise ValueError(f'TSIG key {key.name}: {key.algorithm} is not one of {", ".join(ALGORITHMS)}') from None
    except (dns.exception.DNSException, ValueError) as error:
        raise ValueError(f'TSIG key {key.name}: {error}') from error


def read(message: bytes, record: wire.Record) -> Seal:
    """The TSIG record *record*.

    :raises wire.Malformed: when it cannot be read
    """
    if record.rclass != wire.ANY or record.ttl != 0:
        raise wire.Malformed
    try:
        owner, _ = dns.name.from_wire(message, record.at)
        rdata = dns.rdata.from_wire(dns.rdataclass.ANY, dns.rdatatype.TSIG, message, record.start,
                                    record.end - record.start)
    except (dns.exception.DNSException, ValueError):
        raise wire.Malformed from None
    return Seal(record.at, owner, rdata)


def check_query(message: bytes, seal: Seal, key: dns.tsig.Key, now: int) -> int:
    """0 when a query is rightly signed with *key*, else the TSIG error to answer (RFC 8945 section 5.2).

    :raises wire.Malformed: when its MAC is longer than the algorithm makes one
    """
    rdata = seal.rdata
    if rdata.algorithm != key.algorithm:
        return BADKEY
    if len(rdata.mac) > dns.tsig.mac_sizes[key.algorithm] or rdata.error:
        raise wire.Malformed
    try:
        dns.tsig.validate(message, key, seal.owner, rdata, now, None, seal.at)  # type: ignore[no-untyped-call]
    except dns.tsig.BadTime:
        return BADTIME
    except dns.tsig.BadSignature:
        return BADSIG
    return 0


def check_reply(message: bytes, key: dns.tsig.Key, request_mac: bytes, now: int) -> None:
    """Check the signature of the answer to a query that was signed with *key*.

    :raises BadSignature: when there is none or it is wrong
    :raises wire.Malformed: when the message cannot be read
    """
    seal = _last(message)
    if seal is None:
        raise BadSignature('the answer is not signed')
    try:
        dns.tsig.validate(message, key, seal.owner, seal.rdata, now, request_mac,  # type: ignore[no-untyped-call]
                          seal.at)
    except dns.tsig.PeerError:
        name = ERRORS.get(seal.rdata.error, str(seal.rdata.error))
        raise BadSignature(f'the server does not accept our signature ({name})') from None
    except dns.tsig.BadTime:
        raise BadSignature(f'the answer was signed {abs(seal.rdata.time_signed - now)} s away from our time') from None
    except (dns.tsig.BadKey, dns.tsig.BadAlgorithm):
        raise BadSignature('the answer is signed with another key') from None
    except dns.exception.DNSException:
        raise BadSignature('the answer has a wrong signature') from None


class Signer:
    """Signs the messages of one answer, or one query.

    :param request_mac: the MAC of the query that is answered; None to sign a query
    :param several: whether more messages follow; each is then signed over the MAC of the one before and the time
        (RFC 8945 section 5.3.1)
    """

    def __init__(self, key: dns.tsig.Key, request_mac: bytes | None = None, several: bool = False) -> None:
        self._key = key
        self._request_mac = request_mac
        self._several = several
        self._context: Any = None
        self.mac = b''

    def sign(self, message: bytes, now: int, error: int = 0, other: bytes = b'') -> bytes:
        """*message* with a TSIG record appended; ``mac`` is its MAC from then on."""
        original_id = int.from_bytes(message[:2], 'big')
        blank = _rdata(self._key.algorithm, now, FUDGE, original_id, error, other)
        rdata, self._context = dns.tsig.sign(  # type: ignore[no-untyped-call]
            message, self._key, blank, now, self._request_mac, self._context, self._several)
        self.mac = rdata.mac
        return _append(message, self._key.name, rdata)


def refuse(message: bytes, seal: Seal, error: int) -> bytes:
    """*message* with an unsigned TSIG record that says *error* (RFC 8945 section 5.3.2)."""
    asked = seal.rdata
    return _append(message, seal.owner,
                   _rdata(asked.algorithm, asked.time_signed, asked.fudge, asked.original_id, error))


def bad_time(message: bytes, seal: Seal, key: dns.tsig.Key, now: int) -> bytes:
    """*message* signed, with the querier's time and, as other data, ours (RFC 8945 section 5.2.3)."""
    signer = Signer(key, seal.rdata.mac)
    return signer.sign(message, seal.rdata.time_signed, BADTIME, struct.pack('!Q', now)[2:])


def _rdata(algorithm: dns.name.Name, time: int, fudge: int, original_id: int, error: int, other: bytes = b'') -> TSIG:
    """A TSIG rdata without a MAC."""
    return TSIG(dns.rdataclass.ANY, dns.rdatatype.TSIG, algorithm, time, fudge,  # type: ignore[no-untyped-call]
                b'', original_id, error, other)


def _append(message: bytes, owner: dns.name.Name, rdata: TSIG) -> bytes:
    data = rdata.to_wire()
    assert data is not None
    count = int.from_bytes(message[10:12], 'big') + 1
    return b''.join((message[:10], count.to_bytes(2, 'big'), message[12:], owner.to_wire() or b'',
                     wire.RECORD.pack(wire.TSIG, wire.ANY, 0, len(data)), data))


def _last(message: bytes) -> Seal | None:
    """The TSIG record at the end of a message, if it has one."""
    if len(message) < 12:
        raise wire.Malformed
    _, _, questions, answers, authorities, additional = wire.HEADER.unpack_from(message)
    if not additional:
        return None
    at = 12
    for _ in range(questions):
        at = wire.skip_name(message, at) + 4
    record = None
    for _ in range(answers + authorities + additional):
        record = wire.read_record(message, at)
        at = record.end
    if record is None or record.rtype != wire.TSIG or at != len(message):
        return None
    return read(message, record)
