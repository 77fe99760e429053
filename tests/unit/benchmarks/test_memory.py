from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import memory

STATUS = 'Name:\tnamed\nVmPeak:\t  900000 kB\nVmHWM:\t  {} kB\nVmRSS:\t   10000 kB\n'
ROLLUP = '5581e6c00000-7ffd1 ---p 00000000 00:00 0 [rollup]\nRss:\t   12000 kB\nPss:\t    {} kB\nPss_Dirty:\t 1 kB\n'


def process(most: int, now: int) -> tuple[str, str]:
    return STATUS.format(most), ROLLUP.format(now)


@pytest.mark.parametrize(('found', 'expected'), [
    ([process(20000, 9000)], (9.216, 20.48)),
    ([process(20000, 9000), process(3000, 1000)], (10.24, 20.48)),
    ([process(4000, 4000), process(3000, 3000)], (7.168, 7.168)),
    ([('Name:\tgone\nState:\tZ (zombie)\n', '')], (0, 0)),
    ([], (0, 0)),
])
def test_a_program_has_what_its_processes_have(found: list[tuple[str, str]], expected: tuple[float, float]) -> None:
    measured = memory.of_family(found)
    assert (measured.now, measured.most) == pytest.approx(expected)


def test_the_most_is_remembered_when_it_is_freed() -> None:
    script = 'import sys; x = bytearray(50_000_000); del x; print(flush=True); sys.stdin.read()'
    with subprocess.Popen([sys.executable, '-c', script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        measured = memory.measure(child.pid)
        child.communicate()
    assert 1 < measured.now < 50 < measured.most < 150
