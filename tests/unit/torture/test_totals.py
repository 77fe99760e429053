"""How often faults struck in several runs."""

from __future__ import annotations

import json

from tests.torture.faults import FAULTS
from tests.torture.totals import totals


def test_faults_of_several_runs_are_added_up_and_those_that_never_struck_are_named() -> None:
    found = list(totals(map(json.dumps, [
        {'faults': {'kill': 2, 'lie': 1}, 'not_injected': {'pause': 1}},
        {'faults': {'kill': 1}, 'not_injected': {'pause': 1, 'lie': 1}}])))
    assert found[:2] == [('kill', 3, 0), ('lie', 1, 1)]
    assert ('pause', 0, 2) in found and ('wipe', 0, 0) in found
    assert {name for name, _, _ in found} == FAULTS.keys()
