"""Faults that are put into the product: the state machine finds them by itself."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from testing import warm
from tests.torture.planted import Plant
from tests.unit.state_machines import planted


@pytest.mark.parametrize('plant', planted.PLANTS.values(), ids=planted.PLANTS)
def test_what_is_planted_changes_text_that_is_there(plant: Plant) -> None:
    for change in plant.changes:
        spec = importlib.util.find_spec(f'designate_pool.{change.module}')
        assert spec is not None and spec.origin is not None
        source = pathlib.Path(spec.origin).read_text()
        assert source.count(change.old) == 1, change
        # A part of a line's indentation would leave the rest of it to the next line.
        assert not change.old.startswith('  ') or f'\n{change.old}' in source, change


@pytest.mark.slow
@pytest.mark.parametrize('name', planted.PLANTS)
def test_the_state_machine_finds_a_planted_bug_by_itself(name: str) -> None:
    done = warm.run(planted.__name__, name, str(planted.RUNS), '--seed', str(planted.SEEDS.get(name, 1)), timeout=300,
                    kind='libraries')
    assert f'{name}: found by run' in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_the_steps_of_a_seed_do_not_depend_on_the_order_of_sets() -> None:
    # All but the time, with a digest of every step.
    outputs = {subprocess.check_output(
        [sys.executable, '-W', 'ignore', '-m', planted.__name__, 'none', '5', '--seed', '1'], text=True, timeout=300,
        env={**os.environ, 'PYTHONHASHSEED': seed}).rsplit(',', 1)[0] for seed in '01'}
    assert len(outputs) == 1 and 'not found in' in outputs.pop()
