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


def test_a_head_is_used_for_a_second() -> None:
    now = [100.0]
    heads = AnnouncedHeads(clock=lambda: now[0])
    heads.put(SOA, HEAD)
    now[0] += LIFETIME
    assert heads.take(AXFR) == HEAD
    heads.put(SOA, HEAD)
    now[0] += LIFETIME + 0.1
    assert heads.take(AXFR) is None


def test_no_more_are_kept_than_wanted() -> None:
    heads = AnnouncedHeads(most=2)
    names = [f'z{number}.example.org.' for number in range(3)]
    for name in names:
        heads.put(dataclasses.replace(SOA, name=name), HEAD)
    assert [heads.take(dataclasses.replace(AXFR, name=name)) for name in names] == [None, None, HEAD]
