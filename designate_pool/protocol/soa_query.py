"""SOA queries and NOTIFYs, and the meaning of their replies.

A message is a reply if it has the query's id and source address (both are checked by the caller), QR, the same opcode,
the same question, and, if the server has a key, a correct signature.  Any other message is ignored.

An attacker who knows our port may guess the id of 16 bits.  So the letters of a name are sent in upper and lower case
at random, and a server returns them unchanged.  A reply with other letters or without the question, or without the
required signature, is *doubtful*: the caller repeats the query over TCP, where a forged reply takes more than a guess.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import dns.rcode
from dns.tsig import Key

from designate_pool.model import Answer, Reason
from designate_pool.protocol import soa_rdata, tsig, wire

_HEADS = {opcode: wire.HEADER.pack(0, opcode << 11 | flags, 1, 0, 0, 0)[2:]
          for opcode, flags in ((wire.QUERY, 0), (wire.NOTIFY, wire.AA))}
_QUESTION = wire.QUESTION.pack(wire.SOA, wire.IN)
# The bit that makes a letter a capital; lengths of labels are below the letters.
_CASE_BITS = bytes(0x20 if 97 <= octet <= 122 else 0 for octet in range(256))
_NO_ZONE = {wire.REFUSED, wire.NXDOMAIN, wire.NOTAUTH}


class SoaReply(NamedTuple):
    """The meaning of a reply.

    :ivar serial: None unless *answer* is :attr:`Answer.SERIAL`
    :ivar error: in words; empty if there is a serial
    :ivar truncated: whether the query must be repeated over TCP for its size
    :ivar doubtful: whether anybody who guesses the message's id could have sent it
    :ivar reason: of *error*; None if *answer* is the reason
    """

    answer: Answer
    serial: int | None = None
    error: str = ''
    truncated: bool = False
    doubtful: bool = False
    reason: Reason | None = None


TRUNCATED = SoaReply(Answer.BAD, error='the answer does not fit into a message', truncated=True)


def soa_query(name: bytes, opcode: int = wire.QUERY) -> bytes:
    """A query for the SOA of *name* (wire form), or a NOTIFY of it (RFC 1996 section 3.7), without its id."""
    return _HEADS[opcode] + name + _QUESTION


def with_random_case(template: bytes) -> bytes:
    """*template* with the letters of its name in upper and lower case at random."""
    # What is not the name has no octet that is a letter.
    size = len(template)
    mask, choice = int.from_bytes(template.translate(_CASE_BITS), 'big'), int.from_bytes(os.urandom(size), 'big')
    return (int.from_bytes(template, 'big') ^ choice & mask).to_bytes(size, 'big')


def read_reply(message: bytes, template: bytes, key: Key | None = None, mac: bytes = b'', now: int = 0,
               sent: bytes | None = None) -> SoaReply | None:
    """The meaning of *message* as a reply to the SOA query *template*; None when it is not a reply to it.

    The acknowledgement of a NOTIFY is SERIAL without a serial.

    :param key: the server's
    :param mac: the query's
    :param now: seconds since 1970
    :param sent: *template* as it was sent, with letters in random case; None for a NOTIFY, and over TCP, where replies
        are not forged
    """
    is_notify = template.startswith(_HEADS[wire.NOTIFY])
    flags = _flags(message, template, key)
    if flags is None:
        return None
    if flags & wire.TC and not is_notify:
        return TRUNCATED
    try:
        is_signed = key is not None and tsig.find(message) is not None
        # A server may accept the key for its zones only, and refuse without a signature for others (Knot does).
        if key is not None and (is_notify or flags & 15 != wire.REFUSED or is_signed):
            tsig.check_reply(message, key, mac, now)
        if not is_notify:
            reply = _soa(message, template[10:], flags)
        elif flags & 15:
            reply = _error(flags & 15)
        else:
            reply = SoaReply(Answer.SERIAL)
    except tsig.BadSignature as error:
        is_signed, reply = False, SoaReply(Answer.BAD, error=error.error, reason=error.reason)
    except wire.Malformed:
        is_signed, reply = False, SoaReply(Answer.BAD, error='the answer is malformed')
    if sent is None or is_signed:
        return reply
    return reply._replace(doubtful=key is not None or message[12:len(sent) + 2] != sent[10:])


def _flags(message: bytes, template: bytes, key: Key | None) -> int | None:
    """The flags of a message that is a reply to *template*; None when it is not."""
    if len(message) < 12:
        return None
    flags = int.from_bytes(message[2:4], 'big')
    query_flags = int.from_bytes(template[:2], 'big')
    if not flags & wire.QR or (flags ^ query_flags) & wire.OPCODE:
        return None
    questions = int.from_bytes(message[4:6], 'big')
    if questions == 0 and flags & 15 in (wire.FORMERR, wire.SERVFAIL, wire.NOTIMP):
        return flags  # a server that does not understand a query need not repeat the question
    if questions == 0 and flags & 15 and query_flags & wire.OPCODE == wire.NOTIFY << 11:
        return flags  # NSD refuses a NOTIFY for a zone that it does not have in this way
    if questions == 0 and flags & 15 == wire.NOTAUTH and key is not None:
        return flags  # NSD does not repeat a question whose signature it rejects; its TSIG record has the error
    question = template[10:]
    if questions != 1 or message[12:12 + len(question)].lower() != question:
        return None
    return flags


def _soa(message: bytes, question: bytes, flags: int) -> SoaReply:
    rcode = flags & 15
    if rcode in _NO_ZONE:
        return SoaReply(Answer.NO_ZONE, error=f'the server has no such zone ({_word(rcode)})')
    if rcode != wire.NOERROR:
        return _error(rcode)
    answers = int.from_bytes(message[6:8], 'big')
    at, serials = 12 + len(question), []
    for _ in range(answers):
        record = wire.read_record(message, at)
        if record.rtype == wire.SOA and record.rclass == wire.IN and wire.name_at(message, at, {})[0] == question[:-4]:
            serials.append(soa_rdata.serial_at(message, record))
        at = record.end
    if not serials:  # a referral, or an answer from the zone above: no SOA, or a CNAME or DNAME
        return SoaReply(Answer.NO_ZONE, error='the server has no such zone (no SOA for it in its answer)')
    if len(serials) != 1 or answers != 1:
        return SoaReply(Answer.BAD, error='the answer is not one SOA record of the zone')
    if not flags & wire.AA:
        return SoaReply(Answer.NOT_AUTH, error='the server answers without authority for the zone')
    return SoaReply(Answer.SERIAL, serials[0])


def _error(rcode: int) -> SoaReply:
    word = _word(rcode)
    return SoaReply(Answer.BAD, error=f'the answer is {word}', reason=Reason(word))


def _word(rcode: int) -> str:
    return dns.rcode.to_text(dns.rcode.Rcode.make(rcode))
