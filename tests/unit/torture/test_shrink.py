"""The shortest history that shows a breach, and the smallest part of anything."""

from __future__ import annotations

import pytest

from tests.torture import checker, shrink
from tests.unit.torture.conftest import BELOW, Story


@pytest.mark.parametrize('wanted', [{3}, {0, 19}, {4, 5, 6}, set(range(20)), set()])
def test_what_is_needed_is_left(wanted: set[int]) -> None:
    assert shrink.smallest(range(20), lambda some: wanted <= set(some), tries=500) == sorted(wanted)


def test_tries_are_bounded() -> None:
    tried = []
    shrink.smallest(range(1000), lambda some: bool(tried.append(1)), tries=7)
    assert len(tried) == 7


def test_a_history_is_cut_down_to_what_shows_the_breach(story: Story) -> None:
    story.create(1, 10)
    story.create(2, 10, zone=BELOW)
    for op in range(3, 40):
        story.write(op, 1, f'10.0.0.{op}', 8 + op)
        story.write(op + 100, 2, f'10.1.0.{op}', zone=BELOW)
        story.serve('xyz', 1, 8 + op)
    story.show(1, 47, 'PENDING')
    story.serve('y', 1, 12)
    breach, = [each for each in checker.check(story.events) if each.rule == 'serials']
    least = shrink.history(story.events, breach)
    assert breach in checker.check(least)
    assert [(each['e'], each.get('server'), each.get('serial')) for each in least if each['e'] == 'served'] == [
        ('served', 'y', 47), ('served', 'y', 12)] and len(least) < 8
