"""SOA queries of commands and drivers to one server, over UDP with many in flight at once, or over TCP.

MiniDNS, which polls many servers at once, has an event loop of its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import itertools
import os
import socket
import time
from collections.abc import Callable, Collection

import dns.message
import dns.rcode
import dns.rdatatype
from dns.tsig import Key

from designate_pool.backoff import Backoff
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError
from designate_pool.model import Answer, Reason
from designate_pool.protocol import soa_query, tsig, wire
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.protocol.tcp_client import TcpPeer

MOST_IN_FLIGHT = 64
#: Seconds after which a query without a reply is sent again.
RESEND = 0.5
#: Between a reply that is not yet sufficient and the next query for the same zone.
PAUSES = Backoff(0.02, cap=0.25)
#: EDNS (RFC 6891), so that no answer is truncated for its signature or for long names.
_OPT = b'\0' + wire.RECORD.pack(wire.OPT, 1232, 0, 0)


def ask(host: str, port: int, key: Key | None, names: Collection[str], deadline: Deadline,
        enough: Callable[[SoaReply], bool] = lambda reply: True, resend: float = RESEND,
        most_in_flight: int = MOST_IN_FLIGHT) -> dict[str, SoaReply | None]:
    """Query the SOA of each of *names* until the reply is sufficient or the time is over.

    :param enough: whether a reply is sufficient; otherwise the query is repeated
    :param most_in_flight: queries without a reply at the same time
    :returns: the last replies; None for a name without one
    :raises OSError: when nothing listens at the address
    """
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect(address)
        return _SoaExchange(sock, key, names, enough, resend, most_in_flight).run(deadline)


def ask_one(host: str, port: int, key: Key | None, name: str, seconds: float) -> SoaReply:
    """Query the SOA of *name*.

    :raises TimeoutError: when there is no reply within *seconds*
    :raises OSError: when nothing listens at the address
    """
    reply = ask(host, port, key, [name], Deadline(seconds))[name]
    if reply is None:
        raise TimeoutError(f'nothing within {seconds:g} s')
    return reply


def serial_over_tcp(peer: TcpPeer, name: str, seconds: float) -> int | None:
    """The serial of the zone *name* there, asked over TCP; None when the server has no such zone.

    :raises BackendError: when it does not say
    """
    return serial_in(peer.ask(soa_question(name), seconds), name)


def reply_over_tcp(peer: TcpPeer, name: str, seconds: float) -> SoaReply:
    """The reply to an SOA query over TCP.

    :raises BackendError: when there is none to that question, or its signature is missing or wrong
    """
    answer = peer.ask(soa_question(name), seconds)
    if answer.rcode() in (dns.rcode.NOTAUTH, dns.rcode.NXDOMAIN) and peer.key is not None and not answer.had_tsig:
        # It may be the key that the server does not accept, as PowerDNS says without a word of its own; or who answers
        # is not the server, whose zone is not lacking then.
        raise BackendError(why=f'the answer is not signed ({dns.rcode.to_text(answer.rcode())})',
                           reason=Reason.NOT_SIGNED)
    reply = _reply_in(answer, name)
    if reply is None or reply.truncated:
        raise BackendError(why='no answer to the question')
    return reply


def soa_question(name: str) -> dns.message.Message:
    """A query for the SOA of *name*, to send over TCP."""
    return dns.message.make_query(name, dns.rdatatype.SOA, flags=0)


def serial_in(answer: dns.message.Message, name: str) -> int | None:
    """The serial in *answer*, whose signature is checked, to :func:`soa_question`; None for no such zone.

    :raises BackendError: when it says neither
    """
    reply = _reply_in(answer, name)
    if reply is None or reply.answer is Answer.BAD:
        why = dns.rcode.to_text(answer.rcode()) if reply is None else reply.error
        raise BackendError(why=f'the server does not say whether it has {name} ({why})',
                           reason=None if reply is None else reply.reason)
    return reply.serial


def _reply_in(answer: dns.message.Message, name: str) -> SoaReply | None:
    return soa_query.read_reply(answer.wire or b'', soa_query.soa_query(wire.encode(name)))


@dataclasses.dataclass(slots=True)
class _Question:
    """The state of the queries for one name.

    :ivar message: what is sent, unchanged until there is a reply
    :ivar answers: how many replies were not sufficient
    """

    name: str
    template: bytes
    message: bytes = b''
    mac: bytes = b''
    reply: SoaReply | None = None
    answers: int = 0


class _SoaExchange:
    """One socket, and all queries that are sent over it."""

    def __init__(self, sock: socket.socket, key: Key | None, names: Collection[str],
                 enough: Callable[[SoaReply], bool], resend: float, most_in_flight: int) -> None:
        self._sock = sock
        self._key = key
        self._enough = enough
        self._resend = resend
        self._most_in_flight = most_in_flight
        self._questions = [_Question(name, soa_query.soa_query(wire.encode(name))) for name in names]
        self._order = itertools.count()
        self._due = [(0.0, next(self._order), question) for question in self._questions]
        self._waiting: dict[int, _Question] = {}
        #: When a datagram was sent that is not answered, until it is sent again; by the question's id, in order.
        self._in_flight: dict[int, float] = {}

    def run(self, deadline: Deadline) -> dict[str, SoaReply | None]:
        with contextlib.suppress(TimeoutError):  # the time is over; the replies so far are the result
            while self._due or self._in_flight:
                self._send()
                self._sock.settimeout(min(deadline.left(), max(0.001, self._next_send_at() - time.monotonic())))
                self._receive()
        return {question.name: question.reply for question in self._questions}

    def _send(self) -> None:
        now = time.monotonic()
        unanswered = itertools.takewhile(lambda sent: sent[1] + self._resend <= now, self._in_flight.items())
        for number, _ in list(unanswered):
            del self._in_flight[number]
            self._schedule(now, self._waiting[number])
        while self._due and self._due[0][0] <= now and len(self._in_flight) < self._most_in_flight:
            _, _, question = heapq.heappop(self._due)
            if not question.message:
                self._write(question)
            number = int.from_bytes(question.message[:2], 'big')
            self._waiting[number] = question
            self._in_flight[number] = now
            with contextlib.suppress(TimeoutError):  # the buffer is full: it is sent again later
                self._sock.send(question.message)

    def _write(self, question: _Question) -> None:
        while int.from_bytes(number := os.urandom(2), 'big') in self._waiting:
            pass
        template = question.template
        question.message = b''.join((number, template[:8], b'\0\1', template[10:], _OPT))
        if self._key is not None:
            signer = tsig.Signer(self._key)
            question.message = signer.sign(question.message, int(time.time()))
            question.mac = signer.mac

    def _next_send_at(self) -> float:
        times = [sent_at + self._resend for sent_at in itertools.islice(self._in_flight.values(), 1)]
        if self._due and len(self._in_flight) < self._most_in_flight:
            times.append(self._due[0][0])
        return min(times)

    def _receive(self) -> None:
        try:
            octets = self._sock.recv(65535)
        except TimeoutError:
            return
        number = int.from_bytes(octets[:2], 'big')
        question = self._waiting.get(number)
        reply = None if question is None else soa_query.read_reply(
            octets, question.template, self._key, question.mac, int(time.time()), question.template)
        if question is None or reply is None:
            return
        del self._waiting[number]
        if self._in_flight.pop(number, None) is None:  # it was due to be sent again
            self._due = [due for due in self._due if due[2] is not question]
            heapq.heapify(self._due)
        question.reply, question.message = reply, b''
        if not self._enough(reply):
            self._schedule(time.monotonic() + PAUSES.delay(question.answers), question)
            question.answers += 1

    def _schedule(self, when: float, question: _Question) -> None:
        heapq.heappush(self._due, (when, next(self._order), question))
