"""What the benchmark of long runs does beside the load and the faults."""

from __future__ import annotations

import os
import subprocess
import types

import psutil
import pytest

from benchmarks.report import Report
from benchmarks.soak import SLACK, Sampler, Series, paused, tell
from testing.processes import free_port, wait_until


def test_a_process_stands_still_with_all_that_it_started_and_goes_on() -> None:
    with subprocess.Popen(['sh', '-c', 'sleep 60 & wait'], start_new_session=True) as shell:
        process = psutil.Process(shell.pid)
        wait_until(process.children, 'it has started another')
        family = [process, *process.children()]
        with paused(shell.pid):
            wait_until(lambda: {each.status() for each in family} == {psutil.STATUS_STOPPED}, 'both stand still')
        wait_until(lambda: psutil.STATUS_STOPPED not in {each.status() for each in family}, 'both go on')
        for each in family:
            each.kill()


def test_it_goes_on_while_the_broker_and_the_database_are_away() -> None:
    url = f'sqlite:////nowhere/{os.getpid()}/pool.db'
    broker = types.SimpleNamespace(url=f'rabbit://guest:guest@127.0.0.1:{free_port()}/')
    with Sampler({'this': os.getpid()}, broker, url, pause=0.01) as sampler:  # type: ignore[arg-type]
        wait_until(lambda: sampler.missed >= 4, 'both were tried twice')
        wait_until(lambda: len(sampler.samples[Series('MiB', 'this')]) >= 3, 'the process is measured')


@pytest.mark.parametrize(('values', 'grows'), [
    ([100.0] * 60, False),
    ([20.0] * 10 + [100.0] * 50, False),                      # warming up
    ([100.0 + number for number in range(60)], True),
    ([100.0 + number / 10 for number in range(60)], False),   # within the slack
    ([100.0] * 30 + [300.0] + [100.0] * 29, False),           # one fault
    ([1000.0 + number for number in range(60)], False),       # less than a tenth
], ids=['level', 'warming up', 'a leak', 'a little', 'a peak', 'large and level'])
def test_what_goes_on_growing_is_told(values: list[float], grows: bool) -> None:
    series, result = Series('MiB', 'api'), Report('soak', {})
    assert tell(result, {series: [(float(at), value) for at, value in enumerate(values)]}, 1) == [series] * grows
    assert result.figures[0].unit in SLACK
