"""From which serial on a journal can give a difference."""

from __future__ import annotations

import pytest

from designate_pool.storage.zones import journal


@pytest.mark.parametrize(('newest', 'begins'), [(5, True), (5 + 2 ** 31 - 1, True), (5 + 2 ** 31, False)])
def test_a_journal_that_reaches_back_half_of_all_serials_has_no_order(newest: int, begins: bool) -> None:
    assert journal._begins(5, 5, newest, lambda: True) is begins
