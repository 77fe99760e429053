"""``make audit``: no library with a known hole is asked for or installed."""

from __future__ import annotations

import subprocess
import sys

from tools import audit

TABLE = {'dnspython': ('2.9.2', 'why'), 'waitress': ('3.0.1', 'why')}


def test_nothing_with_a_known_hole_is_admitted_or_installed() -> None:
    done = subprocess.run([sys.executable, audit.__file__], text=True, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, '')
    assert len(done.stdout.splitlines()) == len(audit.LOWEST) + 1  # how many libraries it does not know


def test_a_floor_that_admits_a_hole_is_named_in_whatever_extra_it_is() -> None:
    setup = ('[options]\ninstall_requires =\n    dnspython >=2.7,<3\n    waitress >=3.1,<4\n'
             '[options.extras_require]\nmore =\n    waitress <4\n')
    assert list(audit.admitted(setup, TABLE)) == [
        'setup.cfg asks for dnspython >=2.7,<3, and dnspython is safe from 2.9.2 on: why',
        'setup.cfg asks for waitress <4, and waitress is safe from 3.0.1 on: why']


def test_a_hole_that_is_installed_is_named() -> None:
    assert list(audit.installed({'dnspython': '2.10.0rc1', 'waitress': '3.0.0'}.get, TABLE)) == [
        'waitress 3.0.0 is installed, and safe from 3.0.1 on: why']
    assert list(audit.installed({}.get, TABLE)) == []
