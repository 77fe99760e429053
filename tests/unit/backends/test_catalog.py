"""The catalog driver against servers that answer as the test says."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import dns.tsig
import pytest

from designate_pool.backends.base import Backend
from designate_pool.backends.catalog import Catalog
from designate_pool.deadline import Deadline
from designate_pool.model import Answer, Server, TsigKey, new_id
from designate_pool.protocol import soa_exchange
from designate_pool.testing import a_domain, opened
from testing.processes import free_port
from tests.fixtures.answering import Answers, Scripted, soa_answer

KEY = TsigKey('transfer.example.', 'hmac-sha256', 'dHJhbnNmZXIga2V5IGZvciB0ZXN0cyBvbmx5')
SIGNING = dns.tsig.Key(KEY.name, KEY.secret, KEY.algorithm)
Script = Callable[[dns.message.Message, bool], Answers]


@contextlib.contextmanager
def driver(script: Script, keyring: object = None, **facts: Any) -> Iterator[tuple[Backend, Scripted]]:
    with contextlib.closing(Scripted(script, keyring=keyring)) as name_server:
        with opened(Server(new_id(), 'catalog', '127.0.0.1', name_server.port, **facts)) as backend:
            yield backend, name_server


#: Seconds, for those that wait until the time of a call is up.
SHORT = 0.4


def refused(query: dns.message.Message) -> dns.message.Message:
    return soa_answer(query, 0, flags=0, rcode=dns.rcode.REFUSED)


def without_key(query: dns.message.Message) -> dns.message.Message:
    """The refusal of a server that does not know the key."""
    answer = soa_answer(query, 0, flags=0, rcode=dns.rcode.NOTAUTH)
    answer.use_tsig(SIGNING, tsig_error=dns.rcode.BADKEY)
    return answer


def test_a_create_has_nothing_to_do() -> None:
    with opened(Server(new_id(), 'catalog', '127.0.0.1', free_port())) as backend:
        results = backend.create_domains([a_domain(f'{number}.example.com.') for number in range(500)])
    assert len(results) == 500 and all(result.ok for result in results)
    assert backend.capabilities.reads_catalog and backend.capabilities.fetches_on_create


def test_a_refetch_has_to_be_done_by_hand() -> None:
    with opened(Server(new_id(), 'catalog', '192.0.2.1')) as backend:
        results = backend.refetch_domains([a_domain('a.example.'), a_domain('b.example.')])
    assert [(result.retryable, result.error) for result in results] == [
        (False, 'the driver catalog cannot make the server transfer a zone again that it already has; do it on the '
                'server by hand')] * 2


def test_a_refusal_proves_that_a_zone_is_gone() -> None:
    with driver(lambda query, over_tcp: [refused(query)]) as (backend, name_server):
        assert backend.delete_domain(a_domain('gone.example.com.')).ok
        assert len(name_server.queries) == 1


@pytest.mark.parametrize(('say', 'error'), [
    (lambda query: soa_answer(query, 7),
     'the server still serves gone.example.com. (serial 7); it has left the catalog'),
    (lambda query: soa_answer(query, 0, rcode=dns.rcode.SERVFAIL),
     'whether the server still serves gone.example.com. is not known: the answer is SERVFAIL'),
])
def test_what_does_not_prove_it_is_asked_for_until_the_time_is_up(
        say: Callable[[dns.message.Message], dns.message.Message], error: str) -> None:
    with driver(lambda query, over_tcp: [say(query)], call_timeout=SHORT) as (backend, name_server):
        result = backend.delete_domain(a_domain('gone.example.com.'))
        assert (result.error, result.retryable, result.unreachable) == (error, True, False)
        assert SHORT <= result.seconds < 5
        assert 2 <= len(name_server.queries) <= 10


def test_a_zone_that_goes_while_it_is_asked_for() -> None:
    asked: list[dns.message.Message] = []

    def answer(query: dns.message.Message, over_tcp: bool) -> list[dns.message.Message]:
        asked.append(query)
        return [soa_answer(query, 7) if len(asked) < 3 else refused(query)]

    with driver(answer) as (backend, _):
        assert backend.delete_domain(a_domain()).ok
    assert len(asked) == 3


def test_of_many_each_has_its_own_result() -> None:
    def script(query: dns.message.Message, over_tcp: bool) -> Answers:
        number = int(query.question[0].name[0])
        if number % 3 == 0:
            return [soa_answer(query, number)]
        return [] if number == 1 else [refused(query)]

    with driver(script, call_timeout=3) as (backend, _):
        results = backend.delete_domains([a_domain(f'{number}.example.com.') for number in range(60)])
    assert [number for number, result in enumerate(results) if not result.ok] == sorted([*range(0, 60, 3), 1])
    assert results[1].unreachable and results[1].error == 'no answer to a query for 1.example.com.'
    assert not results[0].unreachable


def test_a_lost_datagram_is_sent_again() -> None:
    seen: list[int] = []

    def script(query: dns.message.Message, over_tcp: bool) -> Answers:
        seen.append(query.id)
        return [] if len(seen) == 1 else [refused(query)]

    with driver(script, call_timeout=5) as (backend, _):
        assert backend.delete_domain(a_domain()).ok
    assert seen[0] == seen[1]


def test_a_late_answer_counts() -> None:
    seen: list[dns.message.Message] = []

    def script(query: dns.message.Message, over_tcp: bool) -> Answers:
        """The answer to the first query, once that was sent again."""
        seen.append(query)
        return [refused(seen[0])] if len(seen) > 1 else []

    with driver(script) as (backend, _):
        said = soa_exchange.ask(backend.server.host, backend.server.port, None, ['example.com.'], Deadline(10),
                                resend=0.05)['example.com.']
    assert said is not None and said.answer is Answer.NO_ZONE
    assert len(seen) > 1


def test_nobody_listens_and_somebody_is_silent() -> None:
    with opened(Server(new_id(), 'catalog', '127.0.0.1', free_port(), call_timeout=5)) as backend:
        for result in (backend.delete_domain(a_domain()), backend.ping(), backend.list_zones(['a.example.']).result):
            assert result.unreachable and result.error == 'connection failed: Connection refused'
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(('127.0.0.1', 0))
        with opened(Server(new_id(), 'catalog', '127.0.0.1', silent.getsockname()[1], call_timeout=0.2)) as backend:
            for result in (backend.delete_domain(a_domain()), backend.ping()):
                assert result.unreachable and result.error == 'no answer within 0.2 s'
            assert backend.check()[0].advice.startswith('check that catalog:127.0.0.1')


def test_a_list_asks_for_each_zone() -> None:
    def script(query: dns.message.Message, over_tcp: bool) -> Answers:
        label = query.question[0].name[0]
        if label == b'broken':
            return [soa_answer(query, 0, rcode=dns.rcode.SERVFAIL)]
        return [refused(query) if label == b'absent' else soa_answer(query, 7)]

    names = ['absent.example.', 'broken.example.', *(f'{number}.example.' for number in range(1200))]
    with driver(script) as (backend, _):
        listing = backend.list_zones(names)
    assert listing.result.ok and not listing.complete
    assert listing.serials == {'broken.example.': None, **{name: 7 for name in names[2:]}}


def test_a_list_that_is_not_answered_whole_is_an_error() -> None:
    with contextlib.closing(Scripted(lambda query, over_tcp: [] if query.question[0].name[0] == b'a' else [
            refused(query)])) as name_server:
        server = Server(new_id(), 'catalog', '127.0.0.1', name_server.port)
        with contextlib.closing(Catalog(server, patience=0.2)) as backend:
            listing = backend.list_zones(['a.example.', 'b.example.'])
    assert listing.result.unreachable and listing.serials == {}
    assert listing.result.error == 'no answer to a query for a.example.'


def test_with_a_key_queries_and_answers_are_signed() -> None:
    with driver(lambda query, over_tcp: [refused(query)], SIGNING, tsig_key=KEY) as (backend, name_server):
        assert backend.delete_domain(a_domain()).ok
        assert name_server.queries[0].had_tsig and backend.check() == []


def test_a_key_that_the_server_refuses_is_permanent() -> None:
    with driver(lambda query, over_tcp: [without_key(query)], SIGNING, tsig_key=KEY,
                call_timeout=SHORT) as (backend, _):
        for result in (backend.delete_domain(a_domain()), backend.ping()):
            assert not result.retryable
            assert result.error == ('the server rejects the TSIG key: the server does not know the key '
                                    'transfer.example. by hmac-sha256 (BADKEY)')
        assert 'the key of its tsig_key' in backend.check()[0].advice
    assert KEY.secret not in str(result)


def test_a_zone_for_which_the_server_knows_no_key_for_a_moment() -> None:
    seen: list[int] = []

    def script(query: dns.message.Message, over_tcp: bool) -> Answers:
        seen.append(query.id)
        return [without_key(query) if len(seen) < 3 else refused(query)]

    with driver(script, SIGNING, tsig_key=KEY) as (backend, _):
        assert backend.delete_domain(a_domain()).ok
