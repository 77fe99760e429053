"""The network of the kit, tried inside namespaces of its own."""

from __future__ import annotations

import pathlib

from tests.torture import isolation


def test_the_network_does_what_it_is_told() -> None:
    checks = pathlib.Path(__file__).with_name('network_checks.py')
    assert isolation.run('pytest', ['-q', '-p', 'no:cacheprovider', str(checks)]) == 0
