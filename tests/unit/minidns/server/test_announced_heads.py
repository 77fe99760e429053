"""For how long, and how many, heads of answers to SOA queries are remembered."""

from __future__ import annotations

import dataclasses

from designate_pool.minidns.server.announced_heads import LIFETIME, AnnouncedHeads
from designate_pool.minidns.server.responder import Query
from tests.unit.minidns.values import HEAD, NOW, RESPONDER, query


def asked(rtype: str) -> Query:
    found = RESPONDER.read(query(rtype=rtype), '192.0.2.1', True, NOW)
    assert isinstance(found, Query)
    return found


SOA, AXFR = asked('SOA'), asked('AXFR')
IXFR = dataclasses.replace(AXFR, client_serial=HEAD.serial - 1)


def test_a_head_is_used_for_a_second() -> None:
    now = [100.0]
    heads = AnnouncedHeads(clock=lambda: now[0])
    heads.put(SOA, HEAD)
    now[0] += LIFETIME
    assert heads.take(IXFR) == HEAD
    heads.put(SOA, HEAD)
    now[0] += LIFETIME + 0.1
    assert heads.take(IXFR) is None


def test_no_more_are_kept_than_wanted() -> None:
    heads = AnnouncedHeads(most=2)
    names = [f'z{number}.example.org.' for number in range(3)]
    for name in names:
        heads.put(dataclasses.replace(SOA, name=name), HEAD)
    assert [heads.take(dataclasses.replace(IXFR, name=name)) for name in names] == [None, None, HEAD]


def test_a_whole_zone_may_be_asked_for_without_an_soa_query_before() -> None:
    heads = AnnouncedHeads()
    heads.put(SOA, HEAD)
    assert heads.take(AXFR) is None
    assert heads.take(IXFR) == HEAD
