"""The bugs that the kit plants: each still fits the programs, and is in the process that asks for it."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from tests.torture import checker, planted, selftest


@pytest.mark.parametrize('name', planted.PLANTS)
def test_a_bug_fits_the_programs(name: str) -> None:
    plant = planted.PLANTS[name]
    for module in {f'designate_pool.{change.module}' for change in plant.changes}:
        spec = importlib.util.find_spec(module)
        assert spec is not None and spec.origin is not None
        source = pathlib.Path(spec.origin).read_text()
        bad = planted.changed(name, module, source)
        assert bad != source
        compile(bad, spec.origin, 'exec')
    assert plant.rules and set(plant.rules) <= {rule.__name__.lstrip('_') for rule in checker.RULES}


def test_a_process_has_the_bug_that_its_environment_names() -> None:
    asked = ('from designate_pool.consensus import served; from designate_pool.model import *; '
             'print(served(Domain("d", "a.example.", "p", "p", "a@a.example", 60, 5, Action.NONE), '
             '{Action.UPDATE: ServerStatus("s", "d", Action.UPDATE, 5, serial_number=3)}))')
    for environment, answer in (({}, '3'), (planted.environment('count_a_stale_serial'), '5')):
        done = subprocess.run([sys.executable, '-c', asked], env={**os.environ, **environment}, capture_output=True,
                              text=True, check=True)
        assert done.stdout.strip() == answer


def test_what_does_not_fit_is_no_bug() -> None:
    with pytest.raises(AssertionError, match='0 times in designate_pool.consensus'):
        planted.changed('gone_at_once', 'designate_pool.consensus', 'nothing')


def test_a_bug_is_found_with_the_first_seed_that_breaks_one_of_its_rules() -> None:
    runs = {1: [], 2: ['lost: a.example.: something else'], 3: ['deleted: a.example.: gone', 'lost: -: more']}
    assert selftest.find(lambda plant, seed: runs[seed], 'gone_at_once', [1, 2, 3]) == (3, 'deleted: a.example.: gone')
    assert selftest.find(lambda plant, seed: runs[seed], 'gone_at_once', [1, 2]) == (
        None, 'only lost: a.example.: something else')
    assert selftest.find(lambda plant, seed: runs[seed], 'gone_at_once', [1]) == (None, 'nothing')
