"""The programs, servers and workload of the laboratory, and the schedule of its faults."""

from __future__ import annotations

import itertools

import dns.rdata
import pytest
from hypothesis import given, strategies as st

from tests.torture import schedule, workload
from tests.torture.schedule import FaultKind

KINDS = [FaultKind('kill', ('one', 'two'), 'process', 1, 10, 3), FaultKind('pause', ('one',), 'process', 6, 15),
         FaultKind('cut', ('one-two', 'two-one'), 'link', 5, 20), FaultKind('clock', ('one', 'two'), 'clock', 10, 30),
         FaultKind('lose', ('x', 'y', 'z'), 'cluster', 1, 5, alone=True),
         FaultKind('fill', ('x', 'y'), 'cluster', 1, 5, alone=True)]


@given(seed=st.integers(0, 1 << 32), seconds=st.floats(30, 600), at_once=st.floats(0.5, 6))
def test_faults_end_in_time_and_one_at_a_time_is_done_to_a_target(seed: int, seconds: float, at_once: float) -> None:
    planned = schedule.make(KINDS, seed, seconds, at_once)
    kinds = {kind.name: kind for kind in KINDS}
    assert planned == schedule.make(KINDS, seed, seconds, at_once)
    assert planned == schedule.from_json(schedule.to_json(planned))
    assert [each.number for each in planned] == list(range(len(planned)))
    for each in planned:
        kind = kinds[each.fault]
        assert each.target in kind.targets
        assert kind.shortest - 0.1 <= each.seconds <= kind.longest + 0.1
        assert each.at + each.seconds <= seconds + 0.2
    for one, other in itertools.combinations(planned, 2):
        first, second = kinds[one.fault], kinds[other.fault]
        if first.group == second.group and (first.alone or one.target == other.target):
            assert one.at + one.seconds <= other.at


@pytest.mark.parametrize('rtype', workload.TYPES)
def test_records_are_as_servers_show_them_and_of_one_operation(rtype: str) -> None:
    seen: dict[str, int] = {}
    for op in (0, 1, 7, 255, 256, 65535, 65536, 300_000):
        for text in workload.records_of(rtype, op, two=True):
            assert dns.rdata.from_text('IN', rtype, text).to_text() == text
            assert seen.setdefault(text, op) == op
    assert len(workload.records_of(rtype, 1)) == 1
