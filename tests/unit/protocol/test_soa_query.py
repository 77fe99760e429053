"""SOA queries and what is made of replies, SOA records, and keys."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import dns.flags
import dns.message
import dns.rcode
import dns.rdata
import dns.rrset
import dns.tsig
import pytest

from designate_pool.config import values
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError
from designate_pool.model import TSIG_ALGORITHMS, Answer, Domain, Reason, RecordSet, TsigKey, ZoneHead
from designate_pool.protocol import soa_exchange, soa_query, soa_rdata, tsig, wire
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.protocol.tcp_client import TcpPeer, key_of
from designate_pool.storage.queries import whole_recordset
from tests.fixtures.answering import Answers, Scripted
from tests.unit.minidns.values import KEY, NOW, OTHER_KEY, SOA_TEXT

TEMPLATE = soa_query.soa_query(wire.wire_of('example.com.'))
QUERY = b'\x12\x34' + TEMPLATE
NOTIFY_TEMPLATE = soa_query.soa_query(wire.wire_of('example.com.'), wire.NOTIFY)
NOTIFY = b'\x12\x34' + NOTIFY_TEMPLATE
SOA = f'example.com. 300 IN SOA {SOA_TEXT}'


def reply(*records: str, flags: int = dns.flags.AA, rcode: int = dns.rcode.NOERROR, to: bytes = QUERY,
          section: str = 'answer') -> dns.message.Message:
    message = dns.message.make_response(dns.message.from_wire(to))
    message.flags |= flags
    message.set_rcode(dns.rcode.Rcode(rcode))
    for record in records:
        owner, ttl, rclass, rtype, rdata = record.split(' ', 4)
        getattr(message, section).append(dns.rrset.from_text(owner, int(ttl), rclass, rtype, rdata))
    return message


def said(message: dns.message.Message) -> SoaReply | None:
    return soa_query.read_reply(message.to_wire(), TEMPLATE)


def test_the_query_is_what_dnspython_would_ask() -> None:
    assert QUERY == dns.message.make_query('example.com.', 'SOA', flags=0, id=0x1234).to_wire()


def test_the_notify_is_authoritative() -> None:
    message = dns.message.from_wire(NOTIFY)
    assert (message.opcode(), message.flags & dns.flags.AA) == (dns.opcode.NOTIFY, dns.flags.AA)
    assert message.question[0].to_text() == 'example.com. IN SOA'


def test_a_serial() -> None:
    found = said(reply(SOA))
    assert found is not None and (found.answer, found.serial) == (Answer.SERIAL, 7)


def test_the_owner_and_question_may_be_spelled_in_any_case() -> None:
    message = reply(SOA.replace('example.com. 300', 'EXAMPLE.com. 300')).to_wire()
    found = soa_query.read_reply(message.replace(b'\x07example\x03com', b'\x07EXAMPLE\x03com'), TEMPLATE)
    assert found is not None and found.serial == 7


@pytest.mark.parametrize(('records', 'flags', 'rcode', 'answer'), [
    ((SOA,), 0, dns.rcode.NOERROR, Answer.NOT_AUTH),
    ((), 0, dns.rcode.REFUSED, Answer.NO_ZONE),
    ((), dns.flags.AA, dns.rcode.NXDOMAIN, Answer.NO_ZONE),
    ((), 0, dns.rcode.NOTAUTH, Answer.NO_ZONE),
    ((), 0, dns.rcode.NOERROR, Answer.NO_ZONE),
    ((), dns.flags.AA, dns.rcode.NOERROR, Answer.NO_ZONE),
    (('other.example.com. 1 IN SOA . . 9 0 0 0 0',), 0, dns.rcode.NOERROR, Answer.NO_ZONE),
    (('other.example.com. 1 IN SOA . . 9 0 0 0 0',), dns.flags.AA, dns.rcode.NOERROR, Answer.NO_ZONE),
    # Of the zone com., which has it instead of a zone, by a wildcard perhaps (RFC 4592), or above (RFC 6672).
    (('example.com. 1 IN CNAME www.example.org.',), dns.flags.AA, dns.rcode.NOERROR, Answer.NO_ZONE),
    (('com. 1 IN DNAME org.', 'example.com. 1 IN CNAME example.org.', 'example.org. 1 IN SOA . . 9 0 0 0 0'),
     dns.flags.AA, dns.rcode.NOERROR, Answer.NO_ZONE),
    ((SOA, 'example.com. 1 IN SOA . . 9 0 0 0 0'), dns.flags.AA, dns.rcode.NOERROR, Answer.BAD),
    ((), 0, dns.rcode.SERVFAIL, Answer.BAD),
    ((), 0, dns.rcode.FORMERR, Answer.BAD),
])
def test_other_answers(records: tuple[str, ...], flags: int, rcode: int, answer: Answer) -> None:
    found = said(reply(*records, flags=flags, rcode=rcode))
    assert found is not None and (found.answer, found.serial) == (answer, None) and found.error


def test_a_truncated_answer() -> None:
    assert said(reply(flags=dns.flags.AA | dns.flags.TC)) is soa_query.TRUNCATED


@pytest.mark.parametrize('octets', [
    b'', QUERY, QUERY[:11], reply(SOA, to=b'\x12\x34' + soa_query.soa_query(wire.wire_of('example.org.'))).to_wire(),
    reply(to=NOTIFY).to_wire(), b'\x12\x34\x80\x05' + bytes(8),
], ids=['nothing', 'a query', 'too short', 'another question', 'another operation', 'REFUSED to no question'])
def test_what_answers_something_else_is_nobodys(octets: bytes) -> None:
    assert soa_query.read_reply(octets, TEMPLATE) is None


def test_a_bare_header_may_say_that_the_query_was_not_understood() -> None:
    found = soa_query.read_reply(b'\x12\x34\x80\x01' + bytes(8), TEMPLATE)
    assert found is not None and found.answer is Answer.BAD


def signed(message: dns.message.Message, mac: bytes, key: object = KEY, now: int = NOW) -> bytes:
    return tsig.Signer(tsig.key_from(key), mac).sign(message.to_wire(), now)  # type: ignore[arg-type]


def read_signed(octets: bytes) -> SoaReply:
    found = soa_query.read_reply(octets, TEMPLATE, tsig.key_from(KEY), b'the mac of the query', NOW)
    assert found is not None
    return found


def test_a_rightly_signed_answer() -> None:
    assert read_signed(signed(reply(SOA), b'the mac of the query')).serial == 7


@pytest.mark.parametrize(('octets', 'error', 'reason'), [
    (reply(SOA).to_wire(), 'not signed', Reason.NOT_SIGNED),
    (signed(reply(SOA), b'the mac of another query'), 'wrong signature', Reason.NOT_SIGNED),
    (signed(reply(SOA), b'the mac of the query', OTHER_KEY), 'wrong signature', Reason.NOT_SIGNED),
    (signed(reply(SOA), b'the mac of the query', now=NOW - 1000), 'at a time 1000 s behind ours', Reason.BAD_TIME),
    (reply(rcode=dns.rcode.NXDOMAIN).to_wire(), 'not signed (NXDOMAIN)', Reason.NOT_SIGNED),
])
def test_a_wrongly_signed_answer_is_bad(octets: bytes, error: str, reason: Reason) -> None:
    found = read_signed(octets)
    assert (found.answer, found.reason) == (Answer.BAD, reason) and error in found.error


#: As NSD refuses a signature: without the question.
BARE_NOTAUTH = b'\x12\x34\x80\x09' + bytes(8)


def test_a_bare_refusal_counts_only_where_a_signature_can_be_refused() -> None:
    assert soa_query.read_reply(BARE_NOTAUTH, TEMPLATE) is None
    found = read_signed(BARE_NOTAUTH)
    assert found.answer is Answer.BAD and 'not signed (NOTAUTH)' in found.error


def test_an_old_answer_is_none_whatever_it_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tsig, 'FUDGE', 0xffff)
        old = signed(reply(SOA), b'the mac of the query', now=NOW - 60000)
    assert read_signed(old).error == 'the answer is signed at a time 60000 s behind ours: the clocks differ'


def test_letters_alone_are_mixed() -> None:
    name = b'\x0aaz-09_@[`{\x03com\x00'
    seen = {each[10:-4] for each in (soa_query.with_random_case(soa_query.soa_query(name)) for _ in range(2000))}
    assert {each.lower() for each in seen} == {name} and len(seen) == 32


def test_that_there_is_no_such_zone_may_be_said_unsigned() -> None:
    assert read_signed(reply(rcode=dns.rcode.REFUSED).to_wire()).answer is Answer.NO_ZONE
    assert read_signed(signed(reply(rcode=dns.rcode.REFUSED), b'another mac')).answer is Answer.BAD


@pytest.mark.parametrize(('error', 'reason'), [
    (tsig.BADKEY, 'the server does not know the key pool-key. by hmac-sha256 (BADKEY)'),
    (tsig.BADSIG, 'the server has another secret for the key pool-key. (BADSIG)'),
    (22, 'the server does not accept our signature (BADTRUNC)'),
    (99, 'the server does not accept our signature (99)'),
])
def test_a_server_that_does_not_accept_our_signature_says_why(error: int, reason: str) -> None:
    for refusal in (reply(rcode=dns.rcode.NOTAUTH).to_wire(), BARE_NOTAUTH):
        found = read_signed(tsig.refuse(refusal, our_seal(), error))
        assert (found.answer, found.error, found.reason) == (Answer.BAD, reason, Reason.BAD_KEY)
    acknowledged = soa_query.read_reply(tsig.refuse(reply(to=NOTIFY, rcode=9).to_wire(), our_seal(), error),
                                        NOTIFY_TEMPLATE, tsig.key_from(KEY), b'', NOW)
    assert acknowledged is not None and acknowledged.error == reason


@pytest.mark.parametrize(('theirs', 'apart'), [(NOW - 1000, 'it is 1000 s behind ours'),
                                               (NOW + 7200, 'it is 7200 s ahead of ours')])
def test_a_server_whose_clock_differs_says_by_how_much(theirs: int, apart: str) -> None:
    message = reply(rcode=dns.rcode.NOTAUTH).to_wire()
    found = read_signed(tsig.bad_time(message, our_seal(), tsig.key_from(KEY), theirs))
    assert found.error == f"the server's clock differs from ours: {apart} (BADTIME)"
    assert found.reason is Reason.BAD_TIME


def our_seal() -> tsig.TsigRecord:
    seal = tsig.find(tsig.Signer(tsig.key_from(KEY)).sign(QUERY, NOW))
    assert seal is not None
    return seal


@pytest.mark.parametrize(('rcode', 'answer'), [(dns.rcode.NOERROR, Answer.SERIAL), (dns.rcode.REFUSED, Answer.BAD)])
def test_notify_is_acknowledged_or_not(rcode: int, answer: Answer) -> None:
    found = soa_query.read_reply(reply(to=NOTIFY, rcode=rcode).to_wire(), NOTIFY_TEMPLATE)
    assert found is not None and found.answer is answer


@pytest.mark.parametrize('rcode', [dns.rcode.NXDOMAIN, dns.rcode.NOTAUTH, dns.rcode.REFUSED])
def test_a_notify_may_be_refused_without_its_question(rcode: int) -> None:
    found = soa_query.read_reply(b'\x12\x34\xa4' + bytes([rcode]) + bytes(8), NOTIFY_TEMPLATE)
    assert found is not None and found.answer is Answer.BAD
    assert soa_query.read_reply(b'\x12\x34\xa4\0' + bytes(8), NOTIFY_TEMPLATE) is None


def test_an_answer_to_a_query_does_not_acknowledge_a_notify() -> None:
    assert soa_query.read_reply(reply(SOA).to_wire(), NOTIFY_TEMPLATE) is None


TIMERS = {'ttl': 300, 'serial': 7, 'refresh': 3600, 'retry': 600, 'expire': 86400, 'minimum': 900}


@pytest.mark.parametrize('email', ['hostmaster@example.com', 'first.last@Example.com', 'a$b@ex$ample.com',
                                   'a@exa;mple.com', 'a@exa mple.com', r'a@b\046c.com'])
def test_all_forms_say_the_same(email: str) -> None:
    head = ZoneHead('d1', 'example.com.', 'default', email, name_servers=('ns1.example.com.',), **TIMERS)
    domain = Domain('d1', 'example.com.', 'p1', 'default', email, **TIMERS)

    text = soa_rdata.text(head, 'ns1.example.com.')

    parsed = dns.rdata.from_text('IN', 'SOA', text)
    assert parsed.to_text() == text
    assert parsed.to_wire() == soa_rdata.encode(head)
    managed = whole_recordset(RecordSet('example.com.', 'SOA', managed=True), domain, 'ns1.example.com.')
    assert [record.data for record in managed.records] == [text]


NAMES = [f'zone-{number}.example.com.' for number in range(20)]


class SlowServer:
    """Answers only when it has got nothing for a while, as one that cannot keep up; counts what it has not answered.

    :ivar most: queries that it had at once
    """

    def __init__(self) -> None:
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.bind(('127.0.0.1', 0))
        self._sock.settimeout(0.1)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.port = self._sock.getsockname()[1]
        self.most = self.asked = 0

    def __enter__(self) -> SlowServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(10)
        self._sock.close()

    def _run(self) -> None:
        held: list[tuple[bytes, tuple[str, int]]] = []
        while not self._stopping.is_set():
            try:
                held.append(self._sock.recvfrom(65535))
                self.most, self.asked = max(self.most, len(held)), self.asked + 1
            except TimeoutError:
                for octets, address in held:
                    self._sock.sendto(_answer(octets), address)
                held.clear()


def _answer(octets: bytes) -> bytes:
    answer = dns.message.make_response(dns.message.from_wire(octets))
    name = answer.question[0].name
    answer.flags |= dns.flags.AA
    answer.answer.append(dns.rrset.from_text(name, 60, 'IN', 'SOA', 'ns.example. admin.example. 7 1 1 1 60'))
    return answer.to_wire()


@pytest.fixture
def server() -> Iterator[SlowServer]:
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(SlowServer())


@pytest.mark.parametrize('most', [1, 4])
def test_a_server_gets_no_more_queries_at_once_than_it_may(server: SlowServer, most: int) -> None:
    names = NAMES[:4 * most]
    said = soa_exchange.ask('127.0.0.1', server.port, None, names, Deadline(60), resend=60, most_in_flight=most)
    assert {name: reply and reply.serial for name, reply in said.items()} == dict.fromkeys(names, 7)
    assert (server.most, server.asked) == (most, len(names))


SECRET = 'c2VjcmV0'


@pytest.mark.parametrize('algorithm', [*TSIG_ALGORITHMS, 'HMAC-MD5.SIG-ALG.REG.INT', 'HMAC-SHA256.'])
def test_configuration_planner_and_minidns_know_the_same_algorithms(algorithm: str) -> None:
    configured = values.make_key('Key.Example', algorithm, SECRET)
    assert configured.name == 'key.example.'
    assert tsig.key_from(configured) == key_of('key.example.', SECRET, algorithm)


@pytest.mark.parametrize(('key', 'part'), [
    (TsigKey('k.', 'hmac-rot13', SECRET), 'algorithm'),
    # Truncated ones: BIND signs those by hmac-sha256 and cuts the MAC, NSD, Knot and PowerDNS do not know them.
    (TsigKey('k.', 'hmac-sha256-128', SECRET), 'algorithm'), (TsigKey('k.', 'hmac-sha512-256', SECRET), 'algorithm'),
    (TsigKey('k.', 'gss-tsig', SECRET), 'algorithm'), (TsigKey('k..', 'hmac-sha256', SECRET), 'name'),
    (TsigKey('k.', 'hmac-sha256', f'{SECRET}!'), 'secret'), (TsigKey('k.', 'hmac-sha256', ''), 'secret')])
def test_what_makes_no_key_is_told_without_its_secret(key: TsigKey, part: str) -> None:
    with pytest.raises(tsig.InvalidKey, match=f'the {part} of the TSIG key') as caught:
        tsig.key_from(key)
    assert caught.value.part == part and SECRET not in str(caught.value)
    with pytest.raises(ValueError, match=part):
        values.make_key(key.name, key.algorithm, key.secret)


@pytest.mark.parametrize(('one', 'other', 'equal'), [
    ('c2VjcmV0', 'c2VjcmV0', True), ('c2VjcmV0', 'b3RoZXI=', False), ('abc', 'abc', False),
    ('', 'c2VjcmV0', False), ('a key with ä', 'c2VjcmV0', False)])
def test_secrets_are_equal_when_both_decode_to_the_same(one: str, other: str, equal: bool) -> None:
    assert tsig.same_secret(one, other) is equal


@pytest.mark.parametrize('algorithm', ['hmac-md5', 'HMAC-MD5.SIG-ALG.REG.INT', 'hmac-md5.sig-alg.reg.int.'])
def test_an_algorithm_with_two_names_has_one_plain_name(algorithm: str) -> None:
    assert tsig.plain_algorithm(algorithm) == 'hmac-md5'


@pytest.mark.parametrize('rcode', [dns.rcode.NOTAUTH, dns.rcode.NXDOMAIN])
def test_over_tcp_a_key_that_is_refused_unsigned_is_no_lack_of_the_zone(rcode: dns.rcode.Rcode) -> None:
    key = dns.tsig.Key('transfer.', 'c2VjcmV0', 'hmac-sha256')

    def refuse(query: dns.message.Message, over_tcp: bool) -> Answers:
        answer = dns.message.make_response(dns.message.make_query('example.com.', 'SOA', flags=0, id=query.id))
        answer.set_rcode(rcode)
        return [answer]

    with contextlib.closing(Scripted(refuse, keyring={key.name: key})) as server:
        with pytest.raises(BackendError, match=rf'the answer is not signed \({dns.rcode.to_text(rcode)}\)') as error:
            soa_exchange.reply_over_tcp(TcpPeer(server.host, server.port, key), 'example.com.', 5)
    assert error.value.reason is Reason.NOT_SIGNED


def test_a_refusal_of_a_key_in_a_malformed_record_is_no_answer() -> None:
    key = dns.tsig.Key('transfer.', 'c2VjcmV0', 'hmac-sha256')

    def refuse(query: dns.message.Message, over_tcp: bool) -> Answers:
        answer = dns.message.make_response(query, tsig_error=dns.rcode.BADKEY)
        octets = answer.to_wire()
        at = octets.index(b'\x00\xfa\x00\xff') + 4  # the TTL of the TSIG record, which is to be 0
        return [octets[:at] + b'\0\0\0\1' + octets[at + 4:]]

    with contextlib.closing(Scripted(refuse, keyring={key.name: key})) as server:
        with pytest.raises(BackendError, match='the answer is not a DNS message'):
            soa_exchange.reply_over_tcp(TcpPeer(server.host, server.port, key), 'example.com.', 5)
