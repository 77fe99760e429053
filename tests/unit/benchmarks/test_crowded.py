from __future__ import annotations

from benchmarks import crowded
from benchmarks.report import Report

PRINTED = 'mod-stats.server-operation[axfr] = 3\nmod-stats.server-operation[query] = 42\n'
IDLE = {'polls a second': 100.0, 'processors, of one': 0.5, 'SQL statements a second': 9.0}


def test_the_queries_that_a_knot_has_counted() -> None:
    assert crowded.queries(PRINTED) == 42
    assert crowded.queries('') == 0


def test_the_crowd_is_compared_with_none() -> None:
    result = Report('crowded', {})
    empty = {'create': [10.0, 20.0, 30.0], 'change': [4.0], 'idle': IDLE}
    crowded.compare(result, 0, empty, {})
    crowded.compare(result, 100, {'create': [22.0, 22.0, 90.0], 'change': [5.0], 'idle': IDLE}, empty)
    ratios = {figure.name: figure.ratio for figure in result.figures}
    assert ratios['one create beside 0 domains: median'] is None
    assert ratios['one create beside 100 domains: median'] == 1.1
    assert ratios['one create beside 100 domains: 99 of 100 within'] == 3
    assert ratios['one change beside 100 domains: median'] == 1.25
