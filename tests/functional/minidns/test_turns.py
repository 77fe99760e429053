"""Whatever reads outside input gives turns by time, so that nobody waits for somebody else's load."""

from __future__ import annotations

import subprocess
import sys

import pytest

from testing.processes import patience

pytestmark = pytest.mark.slow

PROGRAM = '''
from designate_pool.runtime import patch
patch()
from tests.fixtures.longest_gap import main
main()
'''
#: Milliseconds of computing between two turns, on a quick machine.
LONGEST = 100


def test_hostile_input_holds_up_no_other_green_thread() -> None:
    ended = subprocess.run([sys.executable, '-W', 'ignore', '-c', PROGRAM], text=True, capture_output=True,
                           timeout=900, check=True)
    gaps = [line.split()[0] for line in ended.stdout.splitlines()]
    assert len(gaps) == 17 and all(int(gap) < patience(LONGEST) for gap in gaps), ended.stdout
