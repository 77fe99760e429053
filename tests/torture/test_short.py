"""A short run of the whole kit."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def test_a_minute_of_faults_breaks_no_promise(tmp_path: pathlib.Path) -> None:
    results = tmp_path / 'results'
    done = subprocess.run([sys.executable, '-m', 'tests.torture', '--backends', 'postgresql', '--minutes', '1',
                           '--results', str(results), '--keep', str(tmp_path / 'kept')],
                          cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-5000:]
    found = json.loads(results.read_text())
    assert found['breaches'] == []
    assert found['acknowledged'] > 30, 'as many as a slow machine manages'
    # Each fault makes sure that it strikes; a few are kept from it by others.
    assert sum(found['faults'].values()) >= max(5, 3 * sum(found['not_injected'].values()))
