"""Which servers are told to transfer a whole zone again."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from designate_pool.model import CallResult, Reason
from designate_pool.pool_manager.dispatch import zone_compare
from designate_pool.pool_manager.dispatch.zone_compare import Match, ZoneComparison
from designate_pool.settings import Tries
from designate_pool.testing import a_domain

TRIES = Tries(timeout=1, retry_interval=0.2, max_retries=2, backoff_initial=1, backoff_maximum=1)
SAME, OTHER, BEHIND, SILENT = Match.SAME, Match.OTHER, Match.ELSEWHERE, Match.SILENT


@pytest.mark.parametrize(('matches', 'is_told', 'reason'), [
    ([SAME], False, None),
    ([BEHIND, BEHIND, SAME], False, None),
    ([BEHIND, OTHER, 'told', SAME], True, None),
    ([OTHER, 'told', BEHIND, SAME], True, None),
    ([SILENT, 'told', SAME], True, None),
    ([BEHIND, 'told', BEHIND], True, Reason.UNCHECKED),
], ids=lambda given: ' '.join(getattr(each, 'name', each) for each in given) if isinstance(given, list) else None)
def test_a_server_is_told_unless_it_is_only_transferring_a_change(
        monkeypatch: pytest.MonkeyPatch, matches: list[Any], is_told: bool, reason: Reason | None) -> None:
    """*matches*: what comparisons find, the last one from then on; 'told' for what they find once it is told."""
    remaining, told = list(matches), []

    def compare(*_: object) -> ZoneComparison:
        while remaining[0] == 'told' and told:
            remaining.pop(0)
        if len(remaining) > 1 and remaining[1] != 'told':
            return ZoneComparison(remaining.pop(0), 7)
        return ZoneComparison(remaining[0], 7)

    def refetch(domains: Sequence[Any]) -> list[CallResult]:
        told.append(len(domains))
        del remaining[:remaining.index('told') if 'told' in remaining else 0]
        return [CallResult() for _ in domains]

    monkeypatch.setattr(zone_compare, 'compare_domain', compare)
    backend: Any = SimpleNamespace(server=SimpleNamespace(label='one'), refetch_domains=refetch)
    storage: Any = None
    (result, serial), = zone_compare.retransfer(storage, TRIES, backend, [a_domain()])
    assert (bool(told), result.reason, serial) == (is_told, reason, 7)
