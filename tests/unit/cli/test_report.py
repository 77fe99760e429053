"""What a report asks a server for, and how it reads what comes back: a scripted server on a socket."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from designate_pool.cli.commands import report
from designate_pool.cli.commands.report import Asked, DnsQuestion
from designate_pool.planner import master
from tests.fixtures.answering import Scripted, soa_answer

ZONE = 'example.com.'
TEXT = '''
@       300 SOA   ns1.example.org. hostmaster 7 3600 600 86400 300
@       300 NS    ns1.example.org.
www      60 A     192.0.2.1
www      60 A     192.0.2.2
sub     300 NS    NS.sub
sub     300 DS    12345 13 2 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
ns.sub  300 A     192.0.2.53
old     300 DNAME new.example.org.
x.old   300 A     192.0.2.9
a\\.b    300 TXT   "one" "two"
'''
PAIRS = master.read(TEXT, ZONE)
MANY = [DnsQuestion(f'h{number}.example.com.', 'A', '60 192.0.2.1') for number in range(500)]
Script = Callable[[dns.message.Message], dns.message.Message | None]


class Server(Scripted):
    """Answers as *script* says, over TCP, until the client ends."""

    def __init__(self) -> None:
        self.script: Script = truly
        super().__init__(lambda query, over_tcp: filter(None, [self.script(query)]))

    def _serve_tcp(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self._tcp.accept()
                with contextlib.suppress(ConnectionError), connection, connection.makefile('rb') as stream:
                    while head := stream.read(2):
                        for answer in self._answers(stream.read(int.from_bytes(head, 'big')), True):
                            connection.sendall(len(answer).to_bytes(2, 'big') + answer)


def truly(query: dns.message.Message) -> dns.message.Message:
    """As a server answers that has the zone."""
    answer = dns.message.make_response(query)
    name, rtype = query.question[0].name.to_text(), dns.rdatatype.to_text(query.question[0].rdtype)
    ttl, *rdatas = PAIRS[f'{name}\t{rtype}'].split('\t')
    found = dns.rrset.from_text_list(name, int(ttl), 'IN', rtype, rdatas)
    if name == 'sub.example.com.' and rtype == 'NS':
        answer.authority.append(found)
    else:
        answer.flags |= dns.flags.AA
        answer.answer.append(found)
    return answer


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def ask(server: Server, with_serial: bool = True, timeout: float = 5.0) -> report.ServerAnswers:
    asked = Asked(ZONE, 7, report.questions(ZONE, PAIRS), with_serial)
    return report.ask('127.0.0.1', server.port, asked, timeout)


def test_what_is_asked_for() -> None:
    assert report.questions(ZONE, PAIRS) == [
        DnsQuestion(r'a\.b.example.com.', 'TXT', '300 "one" "two"'),
        DnsQuestion('example.com.', 'NS', '300 ns1.example.org.'),
        DnsQuestion('old.example.com.', 'DNAME', '300 new.example.org.'),
        DnsQuestion('sub.example.com.', 'DS',
                    '300 12345 13 2 0123456789abcdef0123456789abcdef0123456789abcdef0123456789'
                    'abcdef'),
        DnsQuestion('sub.example.com.', 'NS', '300 ns.sub.example.com.', referral=True),
        DnsQuestion('www.example.com.', 'A', '60 192.0.2.1, 192.0.2.2'),
    ]


def test_a_server_that_has_the_zone(server: Server) -> None:
    assert ask(server) == report.ServerAnswers(7, 6)


def differing(change: Callable[[dns.message.Message], object], name: str = 'www.example.com.') -> Script:
    """Answers truly, but for those about *name*, which *change* alters."""
    def script(query: dns.message.Message) -> dns.message.Message:
        answer = truly(query)
        if query.question[0].name.to_text() == name:
            change(answer)
        return answer
    return script


@pytest.mark.parametrize('change, told', [
    (lambda answer: answer.answer.clear(), 'nothing of the type'),
    (lambda answer: answer.answer[0].update_ttl(5), '5 192.0.2.1, 192.0.2.2'),
    (lambda answer: answer.answer[0].remove(answer.answer[0][0]), '60 192.0.2.2'),
    (lambda answer: setattr(answer, 'flags', answer.flags & ~dns.flags.AA), 'an answer without authority'),
    (lambda answer: (answer.answer.clear(), answer.set_rcode(dns.rcode.NXDOMAIN)), 'NXDOMAIN'),
    (lambda answer: (answer.answer.clear(), answer.set_rcode(dns.rcode.SERVFAIL)), 'SERVFAIL'),
])
def test_one_answer_that_differs(server: Server, change: Callable[[dns.message.Message], object], told: str) -> None:
    server.script = differing(change)
    found = ask(server)
    assert [(each.question.name, each.answered) for each in found.differences] == [('www.example.com.', told)]
    assert (found.asked, found.trouble) == (6, None)


def test_a_server_that_has_the_zone_below_a_delegation_too(server: Server) -> None:
    """It answers from the child zone, where TTL and data may be others (RFC 1034 section 4.3.2)."""
    def from_child(answer: dns.message.Message) -> None:
        if answer.authority:
            answer.authority.clear()
            answer.flags |= dns.flags.AA
            answer.answer.append(dns.rrset.from_text('sub.example.com.', 3600, 'IN', 'NS', 'ns1.example.org.'))

    server.script = differing(from_child, 'sub.example.com.')
    assert ask(server) == report.ServerAnswers(7, 6)


def test_another_serial_counts_unless_it_is_left_out(server: Server) -> None:
    server.script = lambda query: \
        soa_answer(query, 6) if query.question[0].rdtype == dns.rdatatype.SOA else truly(query)
    found = ask(server)
    assert [(each.question.expected, each.answered) for each in found.differences] == [('serial 7', 'serial 6')]
    assert ask(server, with_serial=False) == report.ServerAnswers(6, 6)


def test_a_server_without_the_zone_is_asked_for_nothing_else(server: Server) -> None:
    server.script = lambda query: soa_answer(query, 0, rcode=dns.rcode.REFUSED)
    found = ask(server, with_serial=False)
    assert ([each.answered for each in found.differences], found.serial, len(server.queries)) \
        == (['the server has no such zone (REFUSED)'], None, 1)


def test_a_silent_server(server: Server) -> None:
    server.script = lambda query: None
    found = ask(server, timeout=0.1)
    assert (found.serial, found.asked, found.differences) == (None, 0, ())
    assert found.trouble == 'no answer within 0.1 s'


def test_one_that_is_not_there(server: Server) -> None:
    server.close()
    found = ask(server)
    assert (found.serial, found.asked, found.differences) == (None, 0, ())
    assert found.trouble == 'connection failed: Connection refused'


def test_one_that_stops_answering_is_given_up(server: Server) -> None:
    server.script = lambda query: \
        truly(query) if query.question[0].rdtype == dns.rdatatype.SOA else \
        dns.message.make_response(query) if len(server.queries) < 100 else None
    found = report.ask('127.0.0.1', server.port, Asked(ZONE, 7, MANY), 1.0)
    assert found.asked == len(found.differences) == 98
    assert found.trouble == 'it stopped answering (no answer within 1 s), 402 questions are not answered'
    assert {each.answered for each in found.differences} == {'nothing of the type'}
