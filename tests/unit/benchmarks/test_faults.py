"""What the benchmark of faults does beside the faults themselves."""

from __future__ import annotations

import os
import subprocess

import psutil

from benchmarks.faults import Sampler, paused, tell
from benchmarks.report import Report
from testing.processes import wait_until


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


def test_memory_is_looked_at_every_second() -> None:
    with Sampler({'this': os.getpid()}) as sampler:
        wait_until(lambda: sampler.samples['this'], 'there is a sample')
        assert sampler.now()['this'] > 1


def test_rounds_are_compared_with_what_was_before_and_with_the_first() -> None:
    result = Report('faults', {})
    tell(result, {'before': {'api': 100.0}, 'round 1': {'api': 110.0}, 'round 2': {'api': 121.0}}, {'api': 130.0})
    assert [(each.ours, each.ratio) for each in result.figures] == [(110.0, 1.1), (121.0, 1.1)]
