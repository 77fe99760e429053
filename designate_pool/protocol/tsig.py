"""Signs messages, and checks signatures, by TSIG (RFC 8945).

dnspython computes the HMACs.  TSIG records are read and written here, since dnspython's rdata classes take ten times as
long as the HMAC.
"""

from __future__ import annotations

import base64
import functools
import hmac
import re
import struct
from typing import Any, NamedTuple

import dns.exception
import dns.name
import dns.rcode
import dns.tsig

from designate_pool.model import TSIG_ALGORITHMS, Reason, TsigKey
from designate_pool.protocol import wire

#: Seconds by which the time of a signature may differ from ours.  A larger fudge in a message is not used, since it
#: would make us accept old messages.
FUDGE = 300
#: The most octets of a TSIG record: two names, the fixed fields, the longest MAC and the time in a BADTIME answer.
ROOM = 255 + 10 + 26 + 16 + 64 + 6

BADSIG, BADKEY, BADTIME, BADTRUNC = 16, 17, 18, 22
ERRORS = {BADSIG: 'BADSIG', BADKEY: 'BADKEY', BADTIME: 'BADTIME', BADTRUNC: 'BADTRUNC'}
#: A truncated MAC has at least this many octets, and at least half of the whole MAC (RFC 8945 section 5.2.2.1).
_LEAST_MAC = 10

_LONG_MD5 = 'hmac-md5.sig-alg.reg.int'  # its name on the wire (RFC 8945 section 6)
_ALGORITHMS = {word: dns.name.from_text(_LONG_MD5 if word == 'hmac-md5' else word)
               for word in (*TSIG_ALGORITHMS, _LONG_MD5)}

#: What names keys have: others would need quotes or escapes in some configuration of a server.
NAME = 'a domain name of letters, digits, - and _'

_ANY_CLASS_NO_TTL = struct.pack('!HI', wire.ANY, 0)
_TIMERS = struct.Struct('!HIH')
_TWO = struct.Struct('!HH')


def plain_algorithm(algorithm: str) -> str:
    """The usual name of an algorithm; hmac-md5 also has a longer one (RFC 8945 section 6)."""
    return algorithm.lower().partition('.')[0]


def same_secret(one: str, other: str) -> bool:
    """Whether two secrets in Base64 are equal; False if one of them is not Base64."""
    try:
        return hmac.compare_digest(base64.b64decode(one), base64.b64decode(other))
    except ValueError:
        return False


class InvalidKey(ValueError):
    """Name, algorithm or secret is not valid; the message contains none of the three.

    :ivar part: 'name', 'algorithm' or 'secret'
    """

    def __init__(self, part: str, what: str) -> None:
        super().__init__(f'the {part} of the TSIG key is not {what}')
        self.part = part


class BadSignature(Exception):
    """A message's TSIG is missing or wrong; *error* is the cause in words."""

    def __init__(self, error: str, reason: Reason = Reason.NOT_SIGNED) -> None:
        super().__init__(error)
        self.error = error
        self.reason = reason


class TsigRecord(NamedTuple):
    """A message's TSIG record: the offset where it starts, and its fields (RFC 8945 section 4.2).

    :ivar time: seconds since 1970
    :ivar fudge: seconds by which *time* may differ from the receiver's time
    """

    at: int
    owner: dns.name.Name
    algorithm: dns.name.Name
    time: int
    fudge: int
    mac: bytes
    original_id: int
    error: int
    other: bytes


def is_name(text: str) -> bool:
    """Whether a key may have that name in messages (RFC 8945 section 4.2) and in the configuration of every make."""
    return len(text.removesuffix('.')) <= 253 and bool(re.fullmatch(r'(?a)([\w-]{1,63}\.)*[\w-]{1,63}\.?', text))


def key_from(key: TsigKey) -> dns.tsig.Key:
    """dnspython's form of *key*.

    :raises InvalidKey: when algorithm, name or secret are not valid
    """
    try:
        name = dns.name.from_text(key.name)
    except (dns.exception.DNSException, UnicodeError):
        raise InvalidKey('name', 'a domain name') from None
    algorithm = _ALGORITHMS.get(key.algorithm.lower().removesuffix('.'))
    if algorithm is None:
        raise InvalidKey('algorithm', f'one of {", ".join(TSIG_ALGORITHMS)}')
    try:
        secret = base64.b64decode(key.secret, validate=True)
    except ValueError:
        secret = b''
    if not secret:
        raise InvalidKey('secret', 'Base64')
    return dns.tsig.Key(name, secret, algorithm)


def read(message: bytes, record: wire.WireRecord) -> TsigRecord:
    """The TSIG record *record*.

    :raises wire.Malformed: when it cannot be read
    """
    if record.rclass != wire.ANY or record.ttl != 0:
        raise wire.Malformed
    try:
        owner, _ = _name_at(message, record.at)
        algorithm, at = _name_at(message[:record.end], record.start)
        high, low, fudge = _TIMERS.unpack_from(message, at)
        mac, at = _sized_field(message, at + 8, record.end)
        original_id, error = _TWO.unpack_from(message, at)
        other, at = _sized_field(message, at + 4, record.end)
    except struct.error:
        raise wire.Malformed from None
    if at != record.end:
        raise wire.Malformed
    return TsigRecord(record.at, owner, algorithm, high << 32 | low, fudge, mac, original_id, error, other)


def find(message: bytes) -> TsigRecord | None:
    """The TSIG record at the end of a message, if it has one.

    :raises wire.Malformed: when the message cannot be read
    """
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


def check_query(message: bytes, record: TsigRecord, key: dns.tsig.Key, now: int) -> int:
    """0 when a query is correctly signed with *key*, otherwise the TSIG error for the reply (RFC 8945 section 5.2).

    :raises wire.Malformed: when its MAC has an impossible length, or the record contains an error
    """
    if record.algorithm != key.algorithm:
        return BADKEY
    size = dns.tsig.mac_sizes[key.algorithm]
    if not max(_LEAST_MAC, size // 2) <= len(record.mac) <= size or record.error:
        raise wire.Malformed
    if not hmac.compare_digest(_mac(message, record, key, b'')[:len(record.mac)], record.mac):
        return BADSIG
    if _is_late(record, now):
        return BADTIME
    return 0 if len(record.mac) == size else BADTRUNC


def describe_fault(record: TsigRecord, key: dns.tsig.Key | None, error: int, now: int) -> str:
    """The end of a sentence that begins with the sender of a query: what :func:`check_query` found wrong with it.

    :param key: our key of that name; None when there is none
    :param error: the result of :func:`check_query`
    """
    name = record.owner.to_text()
    if key is None:
        return f'signs with the key {name}, which no server of the pool has (BADKEY)'
    if error == BADKEY:
        return f'signs with the key {name} by {_text_of(record.algorithm)}, not by {_text_of(key.algorithm)} (BADKEY)'
    if error == BADSIG:
        return f'has another secret for the key {name} (BADSIG)'
    if error == BADTRUNC:
        return f'signs with the key {name} by a truncated MAC (BADTRUNC)'
    return f'signs with the key {name} at a time {_relative(record.time - now)} ours: the clocks differ (BADTIME)'


def check_reply(message: bytes, key: dns.tsig.Key, request_mac: bytes, now: int) -> None:
    """Check the signature of the answer to a query that was signed with *key*.

    :raises BadSignature: when the signature is missing or wrong
    :raises wire.Malformed: when the message cannot be read
    """
    record = find(message)
    if record is None:
        rcode = message[3] & 15
        word = f' ({dns.rcode.to_text(dns.rcode.Rcode.make(rcode))})' if rcode else ''
        raise BadSignature(f'the answer is not signed{word}')
    if record.error:
        raise rejection(record, key, now)
    if record.owner != key.name or record.algorithm != key.algorithm:
        raise BadSignature('the answer is signed with another key')
    if not hmac.compare_digest(_mac(message, record, key, request_mac), record.mac):
        raise BadSignature('the answer has a wrong signature')
    if _is_late(record, now):
        raise BadSignature(f'the answer is signed at a time {_relative(record.time - now)} ours: the clocks differ',
                           Reason.BAD_TIME)


class Signer:
    """Signs one query, or the messages of one answer.

    :param request_mac: the MAC of the query that is answered; empty to sign a query
    :param several: whether more messages follow; each is then signed over the MAC of the one before and the time
        (RFC 8945 section 5.3.1)
    :ivar mac: of the message signed last
    """

    def __init__(self, key: dns.tsig.Key, request_mac: bytes = b'', several: bool = False) -> None:
        self._key = key
        self._several = several
        self._first = True
        self.mac = request_mac

    def sign(self, message: bytes, now: int, error: int = 0, other: bytes = b'') -> bytes:
        """*message* with a TSIG record appended."""
        key = self._key
        timers = _timers(now, FUDGE)
        self.mac = _hmac(key, self.mac, message, _variables(key, timers, error, other) if self._first else timers)
        self._first = not self._several
        return _append(message, key.name, _rdata(key.algorithm, timers, self.mac, message[:2], error, other))


def refuse(message: bytes, record: TsigRecord, error: int) -> bytes:
    """*message* with an unsigned TSIG record that contains *error* (RFC 8945 section 5.3.2)."""
    timers = _timers(record.time, record.fudge)
    rdata = _rdata(record.algorithm, timers, b'', record.original_id.to_bytes(2, 'big'), error, b'')
    return _append(message, record.owner, rdata)


def bad_time(message: bytes, record: TsigRecord, key: dns.tsig.Key, now: int) -> bytes:
    """*message* signed, with the querier's time and, as other data, ours (RFC 8945 section 5.2.3)."""
    return Signer(key, record.mac).sign(message, record.time, BADTIME, now.to_bytes(6, 'big'))


def rejection(record: TsigRecord, key: dns.tsig.Key, now: int) -> BadSignature:
    """The error for a reply in which a server rejects our signature (RFC 8945 section 5.2)."""
    name = key.name.to_text()
    if record.error == BADKEY:
        error = f'the server does not know the key {name} by {_text_of(key.algorithm)} (BADKEY)'
    elif record.error == BADSIG:
        error = f'the server has another secret for the key {name} (BADSIG)'
    elif record.error == BADTIME:
        theirs = int.from_bytes(record.other, 'big') if len(record.other) == 6 else None
        apart = '' if theirs is None else f': it is {_relative(theirs - now)} ours'
        return BadSignature(f"the server's clock differs from ours{apart} (BADTIME)", Reason.BAD_TIME)
    else:
        error = f'the server does not accept our signature ({ERRORS.get(record.error, record.error)})'
    return BadSignature(error, Reason.BAD_KEY)


def _is_late(record: TsigRecord, now: int) -> bool:
    """Whether its time differs from *now* by more than its fudge or ours (RFC 8945 section 5.2.3)."""
    return abs(record.time - now) > min(record.fudge, FUDGE)


def _relative(seconds: int) -> str:
    return f'{abs(seconds)} s {"behind" if seconds < 0 else "ahead of"}'


def _text_of(algorithm: dns.name.Name) -> str:
    return algorithm.to_text(omit_final_dot=True)


def _mac(message: bytes, record: TsigRecord, key: dns.tsig.Key, request_mac: bytes) -> bytes:
    """The MAC that the message should have (RFC 8945 section 4.3)."""
    additional = int.from_bytes(message[10:12], 'big') - 1
    return _hmac(key, request_mac,
                 record.original_id.to_bytes(2, 'big') + message[2:10] + additional.to_bytes(2, 'big'),
                 message[12:record.at],
                 _variables(key, _timers(record.time, record.fudge), record.error, record.other))


def _hmac(key: dns.tsig.Key, former_mac: bytes, *parts: bytes) -> bytes:
    """The MAC of the preceding MAC, if there is one, and *parts*."""
    empty, size = _empty_hmac(key.secret, key.algorithm)
    context = empty.copy()
    if former_mac:
        context.update(len(former_mac).to_bytes(2, 'big') + former_mac)
    for part in parts:
        context.update(part)
    return context.digest()[:size]


@functools.lru_cache(64)
def _empty_hmac(secret: bytes, algorithm: dns.name.Name) -> tuple[hmac.HMAC, int]:
    """The HMAC of nothing, to be copied, since making one takes longer than the rest; and the octets of a MAC."""
    context: Any = dns.tsig.HMACTSig(secret, algorithm)  # type: ignore[no-untyped-call]
    return context.hmac_context, dns.tsig.mac_sizes[algorithm]


def _timers(time: int, fudge: int) -> bytes:
    return _TIMERS.pack(time >> 32 & 0xffff, time & 0xffffffff, fudge)


def _variables(key: dns.tsig.Key, timers: bytes, error: int, other: bytes) -> bytes:
    """The fields of the TSIG record that are signed (RFC 8945 section 4.3.3)."""
    return b''.join((key.name.to_digestable(), _ANY_CLASS_NO_TTL, key.algorithm.to_digestable(), timers,
                     _TWO.pack(error, len(other)), other))


def _rdata(algorithm: dns.name.Name, timers: bytes, mac: bytes, original_id: bytes, error: int, other: bytes) -> bytes:
    return b''.join((algorithm.to_wire() or b'', timers, len(mac).to_bytes(2, 'big'), mac, original_id,
                     _TWO.pack(error, len(other)), other))


def _append(message: bytes, owner: dns.name.Name, rdata: bytes) -> bytes:
    count = int.from_bytes(message[10:12], 'big') + 1
    return b''.join((message[:10], count.to_bytes(2, 'big'), message[12:], owner.to_wire() or b'',
                     wire.RECORD.pack(wire.TSIG, wire.ANY, 0, len(rdata)), rdata))


def _name_at(message: bytes, at: int) -> tuple[dns.name.Name, int]:
    """The name at an offset, and the offset after it; raises Malformed when there is none."""
    octets, after = wire.name_at(message, at, {})
    return _name(octets), after


@functools.lru_cache(1024)
def _name(octets: bytes) -> dns.name.Name:
    """A name; few different ones come, again and again."""
    return dns.name.from_wire(octets, 0)[0]


def _sized_field(message: bytes, at: int, end: int) -> tuple[bytes, int]:
    """A field that begins with its length in two octets, and the offset after it."""
    start = at + 2
    stop = start + int.from_bytes(message[at:start], 'big')
    if start > end or stop > end:
        raise wire.Malformed
    return message[start:stop], stop
