from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from benchmarks.plan import check, main
from benchmarks.plan_one import WAYS, Measured

FOUND = Measured(1.0, 0.25, 25.0, 65.0, {'Create': 3, 'Delete': 3, 'Update': 3}, 'abc')


@pytest.fixture(scope='module')
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run with two sizes, octoDNS with the smaller one alone."""
    path = tmp_path_factory.mktemp('plan') / 'plan.json'
    assert main(['--sizes', '300,600', '--rounds', '1', '--peer-most', '300', '--json', str(path)]) == 0
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_all_ways_find_the_changes_that_were_made(report: dict[str, Any]) -> None:
    first = report['details']['300']
    assert first.keys() == WAYS.keys()
    counts = [measured['counts'] for [measured] in first.values()]
    assert counts == [{'Create': 1, 'Delete': 1, 'Update': 1}] * len(WAYS)
    assert len({measured['digest'] for [measured] in first.values()}) == 1


def test_octodns_is_left_out_of_what_is_too_large_for_it(report: dict[str, Any]) -> None:
    second = report['details']['600']
    assert second.keys() == {'ours'}
    assert all(measured['counts'] == {'Create': 2, 'Delete': 2, 'Update': 2} for [measured] in second.values())
    beside = {figure['name']: figure['other_name'] for figure in report['figures']}
    assert beside['300 records: both'] == beside['300 records: memory at most'] == 'octoDNS'
    assert beside['600 records: both'] is None


def test_what_was_measured_is_of_a_process_of_its_own(report: dict[str, Any]) -> None:
    for [measured] in (*report['details']['300'].values(), *report['details']['600'].values()):
        assert 5 < measured['imported'] <= measured['peak'] < 200
        assert measured['plan'] > 0 and measured['populate'] > 0


def test_changes_that_are_missing_are_no_result() -> None:
    check('ours', 3, FOUND, FOUND)
    fewer = dataclasses.replace(FOUND, counts={'Create': 3, 'Update': 3})
    with pytest.raises(AssertionError, match="ours found .*'Create': 3, 'Update': 3"):
        check('ours', 3, fewer, FOUND)
    with pytest.raises(AssertionError, match='digest other'):
        check('ours', 3, dataclasses.replace(FOUND, digest='other'), FOUND)
