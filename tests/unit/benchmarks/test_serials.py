from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import dns.message
import dns.rcode
import pytest

from benchmarks.serials import await_serials
from designate_pool.model import Endpoint
from tests.fixtures.answering import Answers, Scripted, soa_answer


@contextlib.contextmanager
def answering(serials: Mapping[str, list[int | None]]) -> Iterator[Endpoint]:
    """A name server that gives the serials of a zone one after the other, REFUSED for None, and stays at the last."""
    left = {name: list(values) for name, values in serials.items()}

    def answer(query: dns.message.Message, over_tcp: bool) -> Answers:
        values = left[query.question[0].name.to_text()]
        value = values.pop(0) if len(values) > 1 else values[0]
        return [soa_answer(query, 0, rcode=dns.rcode.REFUSED) if value is None else soa_answer(query, value)]

    with contextlib.closing(Scripted(answer)) as server:
        yield Endpoint(server.host, server.port)


def test_it_waits_until_every_server_has_every_serial() -> None:
    first = {'a.example.com.': [1, 1, 2], 'b.example.com.': [None, 7]}
    second = {'a.example.com.': [2], 'b.example.com.': [7]}
    with answering(first) as one, answering(second) as other:
        await_serials([one, other], {'a.example.com.': 2, 'b.example.com.': 7}, 10.0)


def test_it_waits_until_a_zone_is_refused() -> None:
    with answering({'a.example.com.': [5, 5, None]}) as server:
        await_serials([server], {'a.example.com.': None}, 10.0)


def test_another_serial_is_never_enough() -> None:
    with answering({'a.example.com.': [3]}) as server, pytest.raises(AssertionError, match='1 answers'):
        await_serials([server], {'a.example.com.': 2}, 0.05)
