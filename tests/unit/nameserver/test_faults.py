"""Faults as text and as what is counted."""

from __future__ import annotations

import pytest

from designate_pool.errors import InvalidField
from designate_pool.nameserver.faults import Fault, Faults


@pytest.mark.parametrize('text, fault', [
    ('drop', Fault('drop')),
    ('delay=2.5', Fault('delay', seconds=2.5)),
    ('servfail*3', Fault('servfail', count=3)),
    ('refused@Example.com', Fault('refused', zone='example.com.')),
    ('delay=0.1*2@example.com.', Fault('delay', 0.1, 2, 'example.com.')),
])
def test_texts(text: str, fault: Fault) -> None:
    assert Fault.parse(text) == fault


@pytest.mark.parametrize('text', ['', 'sulk', 'delay=', 'delay=1.2.3', 'drop*0', 'drop*x', 'delay=99999', 'drop@',
                                  '=3'])
def test_texts_that_are_no_fault(text: str) -> None:
    with pytest.raises(InvalidField):
        Fault.parse(text)


def test_the_zones_own_goes_first() -> None:
    faults = Faults()
    faults.set(Fault('delay', 1))
    faults.set(Fault('delay', 2, zone='example.com.'))
    assert faults.take('delay', 'example.com.') == Fault('delay', 2, zone='example.com.')
    assert faults.take('delay', 'example.net.') == Fault('delay', 1)
    assert faults.take('drop', 'example.com.') is None


def test_counted_ones_run_out() -> None:
    faults = Faults()
    faults.set(Fault('drop', count=2))
    assert [faults.take('drop', 'example.com.') is not None for _ in range(4)] == [True, True, False, False]
    assert faults.all() == []


@pytest.mark.parametrize('kind, zone, left', [
    (None, None, []),
    ('drop', None, ['delay']),
    (None, 'example.com.', ['drop', 'delay']),
    ('drop', 'example.com.', ['drop', 'delay']),
])
def test_clear(kind: str | None, zone: str | None, left: list[str]) -> None:
    faults = Faults()
    for fault in (Fault('drop'), Fault('drop', zone='example.com.'), Fault('delay', 1)):
        faults.set(fault)
    faults.clear(kind, zone)
    assert [fault.kind for fault in faults.all()] == left
