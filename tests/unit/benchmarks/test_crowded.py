from __future__ import annotations

from benchmarks import crowded

PRINTED = 'mod-stats.server-operation[axfr] = 3\nmod-stats.server-operation[query] = 42\n'


def test_the_queries_that_a_knot_has_counted() -> None:
    assert crowded.queries(PRINTED) == 42
    assert crowded.queries('') == 0
