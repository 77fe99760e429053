"""The count of deletes in an hour: no hour has more than the limit, and old ones are forgotten."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.central.rules.quotas import add_deletes
from designate_pool.errors import OverQuota

BEGIN = datetime(2030, 1, 1, tzinfo=timezone.utc)


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 20)), max_size=60), st.integers(1, 50))
def test_no_hour_has_more_than_the_limit(steps: list[tuple[int, int]], limit: int) -> None:
    now, recent, made = BEGIN, '', list[tuple[datetime, int]]()
    for seconds, count in steps:
        now += timedelta(seconds=seconds)
        lately = sum(each for at, each in made if at > now - timedelta(minutes=65))
        try:
            recent = add_deletes('deletes_per_hour', limit, recent, count, now)
        except OverQuota:
            assert lately + count > limit
        else:
            made.append((now, count))
            assert sum(each for at, each in made if at > now - timedelta(hours=1)) <= limit
            assert len(recent) <= 255


def test_what_is_kept_fits_its_column() -> None:
    recent = ''
    for number in range(40):
        recent = add_deletes('deletes_per_hour', 1 << 31, recent, 99_999_999, BEGIN + timedelta(minutes=5 * number))
    assert len(recent.split()) == 13 and len(recent) <= 255
    with pytest.raises(OverQuota, match='deletes_per_hour allows 5; this would make it 6'):
        add_deletes('deletes_per_hour', 5, '', 6, BEGIN)
