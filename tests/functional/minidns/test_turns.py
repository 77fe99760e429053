"""Whatever reads outside input gives turns by time, so that nobody waits for somebody else's load."""

from __future__ import annotations

import subprocess
import sys

import pytest

CASES = ('empty lines', 'comments', 'lines in parentheses', 'escapes', 'svcb', 'generate', 'one rrset', 'names', 'many',
         'large texts', 'pointers', 'many records', 'recordset', 'stored zone', 'stored difference')
PROGRAM = '''
import sys
from designate_pool.runtime import patch
patch()
from tests.fixtures.longest_gap import main
main(sys.argv[1])
'''
#: Milliseconds of computing between two turns.
LONGEST = 100


@pytest.mark.parametrize('case', CASES)
def test_hostile_input_holds_up_no_other_green_thread(case: str) -> None:
    ended = subprocess.run([sys.executable, '-W', 'ignore', '-c', PROGRAM, case], text=True, capture_output=True,
                           timeout=300, check=True)
    gap, unit, *rest = ended.stdout.split()
    assert unit == 'ms' and int(gap) < LONGEST, ended.stdout
