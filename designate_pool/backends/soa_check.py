"""What a server itself says about zones: SOA queries over UDP, many under way at once.

A reply counts when it answers the very question: same id, QR, same question, and a right signature where the server
has a key.  Only a refusal may be unsigned, because a server may know the key for its zones alone (Knot does).  Whatever
else comes is nobody's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import heapq
import itertools
import os
import socket
import time
from collections.abc import Callable, Collection

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import dns.tsig

from designate_pool import model
from designate_pool.backoff import Backoff
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendRefused
from designate_pool.protocol import tsig

MOST_IN_FLIGHT = 64
#: From an answer that is not yet the wanted one to the next question.
PAUSES = Backoff(0.02, cap=0.25)
#: Seconds after which a question that was not answered is asked again.
RESEND = 0.5

#: What is said of a server that takes our signature in none of its answers.
NO_KEY = 'the server does not accept our signature'

_ABSENT = {dns.rcode.REFUSED, dns.rcode.NOTAUTH, dns.rcode.NXDOMAIN}


class SoaOutcome(enum.Enum):
    """What a server says when it is asked for the SOA of a name."""

    SERVED = 'it serves the zone'
    ABSENT = 'it has no such zone'
    UNSURE = 'it says neither'


@dataclasses.dataclass(frozen=True, slots=True)
class SoaAnswer:
    """
    :ivar serial: with :attr:`Answer.SERVED` alone
    :ivar reason: the answer in words
    :ivar bad_key: whether it does not accept our signature
    """

    answer: SoaOutcome
    serial: int | None = None
    reason: str = ''
    bad_key: bool = False


def ask(server: model.Server, names: Collection[str], deadline: Deadline,
        enough: Callable[[SoaAnswer], bool] = lambda said: True) -> dict[str, SoaAnswer | None]:
    """Ask *server* for the SOA of each of *names*, again and again until its answer is *enough* or the time is up.

    :returns: the last answers; None for a name that was never answered
    :raises BackendRefused: when the server accepts our signature in none of its answers
    :raises OSError: when nobody listens there
    """
    family, _, _, _, address = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect(address)
        key = None if server.tsig_key is None else tsig.key_from(server.tsig_key)
        found = _Round(sock, key, names, enough).run(deadline)
    heard = [said for said in found.values() if said is not None]
    # A server that has just lost a zone may for a moment know no key for its name: so one such answer proves nothing.
    if heard and all(said.bad_key for said in heard):
        raise BackendRefused(why=f'{NO_KEY}: {heard[0].reason}', reason=model.Reason.BAD_KEY)
    return found


def read(message: dns.message.Message, name: dns.name.Name) -> SoaAnswer:
    """What a reply says of the zone *name*."""
    rcode = message.rcode()
    word = dns.rcode.to_text(rcode)
    if rcode in _ABSENT:
        return SoaAnswer(SoaOutcome.ABSENT, reason=word)
    if rcode != dns.rcode.NOERROR or message.flags & dns.flags.TC:
        return SoaAnswer(SoaOutcome.UNSURE, reason=word if rcode else 'a truncated answer')
    found = message.get_rrset(message.answer, name, dns.rdataclass.IN, dns.rdatatype.SOA)
    if found is None:  # of a zone above, or a referral from there
        return SoaAnswer(SoaOutcome.ABSENT, reason='no SOA of that name')
    if not message.flags & dns.flags.AA:
        return SoaAnswer(SoaOutcome.ABSENT, reason='no authority')
    return SoaAnswer(SoaOutcome.SERVED, found[0].serial, f'serial {found[0].serial}')


@dataclasses.dataclass(slots=True)
class _Question:
    """One name, and how far it has come.

    :ivar message: what is sent, the same until it is answered
    :ivar answers: how many there were that were not enough
    """

    text: str
    name: dns.name.Name
    query: dns.message.Message
    message: bytes = b''
    said: SoaAnswer | None = None
    answers: int = 0


class _Round:
    """One socket, and all that is asked over it."""

    def __init__(self, sock: socket.socket, key: dns.tsig.Key | None, names: Collection[str],
                 enough: Callable[[SoaAnswer], bool]) -> None:
        self._sock = sock
        self._key = key
        self._enough = enough
        self._questions = [self._question(name) for name in names]
        self._order = itertools.count()
        self._due = [(0.0, next(self._order), question) for question in self._questions]
        self._waiting: dict[int, _Question] = {}
        #: When a datagram was sent that is not answered, for half a second; by the question's id, in order.
        self._in_flight: dict[int, float] = {}

    def run(self, deadline: Deadline) -> dict[str, SoaAnswer | None]:
        with contextlib.suppress(TimeoutError):  # the time is up; what was heard, was heard
            while self._due or self._in_flight:
                self._send()
                self._sock.settimeout(min(deadline.left(), max(0.001, self._next() - time.monotonic())))
                self._receive()
        return {question.text: question.said for question in self._questions}

    def _question(self, name: str) -> _Question:
        parsed = dns.name.from_text(name)
        query = dns.message.make_query(parsed, dns.rdatatype.SOA, flags=0, use_edns=0, payload=1232)
        if self._key is not None:
            query.use_tsig(self._key)
        return _Question(name, parsed, query)

    def _send(self) -> None:
        """Send what is due, as far as the server can take it."""
        now = time.monotonic()
        for number, sent_at in list(itertools.takewhile(lambda each: each[1] + RESEND <= now, self._in_flight.items())):
            del self._in_flight[number]
            self._at(now, self._waiting[number])
        while self._due and self._due[0][0] <= now and len(self._in_flight) < MOST_IN_FLIGHT:
            _, _, question = heapq.heappop(self._due)
            if not question.message:
                question.query.id = self._number()
                question.message = question.query.to_wire()
                self._waiting[question.query.id] = question
            self._in_flight[question.query.id] = now
            with contextlib.suppress(TimeoutError):  # a full buffer loses it, and it is sent again
                self._sock.send(question.message)

    def _number(self) -> int:
        while (number := int.from_bytes(os.urandom(2), 'big')) in self._waiting:
            pass
        return number

    def _next(self) -> float:
        """When there is something to send."""
        times = [sent_at + RESEND for sent_at in itertools.islice(self._in_flight.values(), 1)]
        if self._due and len(self._in_flight) < MOST_IN_FLIGHT:
            times.append(self._due[0][0])
        return min(times)

    def _receive(self) -> None:
        try:
            octets = self._sock.recv(65535)
        except TimeoutError:
            return
        number = int.from_bytes(octets[:2], 'big')
        question = self._waiting.get(number)
        said = None if question is None else self._heard(octets, question)
        if question is None or said is None:
            return
        del self._waiting[number]
        if self._in_flight.pop(number, None) is None:  # it was to be sent again
            self._due = [each for each in self._due if each[2] is not question]
            heapq.heapify(self._due)
        question.said, question.message = said, b''
        if not self._enough(said):
            self._at(time.monotonic() + PAUSES.delay(question.answers), question)
            question.answers += 1

    def _heard(self, octets: bytes, question: _Question) -> SoaAnswer | None:
        """What a reply says; None when it is none to that question."""
        try:
            message = dns.message.from_wire(octets, keyring=False)
            if self._key is not None and message.had_tsig:
                message = dns.message.from_wire(octets, keyring=self._key, request_mac=question.query.mac)
        except dns.tsig.PeerError as error:
            return SoaAnswer(SoaOutcome.UNSURE, reason=_words(error), bad_key=True)
        except (dns.exception.DNSException, ValueError):
            return None
        if not question.query.is_response(message):
            return None
        if self._key is not None and not message.had_tsig and message.rcode() != dns.rcode.REFUSED:
            return SoaAnswer(SoaOutcome.UNSURE,
                             reason=f'an answer that is not signed ({dns.rcode.to_text(message.rcode())})')
        return read(message, question.name)

    def _at(self, when: float, question: _Question) -> None:
        heapq.heappush(self._due, (when, next(self._order), question))


def _words(error: dns.tsig.PeerError) -> str:
    return {dns.tsig.PeerBadKey: 'it does not know the key (BADKEY)',
            dns.tsig.PeerBadSignature: 'it has another secret for the key (BADSIG)',
            dns.tsig.PeerBadTime: 'its clock and ours differ (BADTIME)'}.get(type(error), str(error))
