"""What a storm is made with."""

from __future__ import annotations

import pytest

from benchmarks.servers_makes import MAKES
from benchmarks.storm import _arguments


def test_one_server_of_each_make_unless_others_are_named() -> None:
    assert _arguments([]).makes == tuple(MAKES)
    assert _arguments(['--makes', 'knot,knot']).makes == ('knot', 'knot')


def test_a_quick_run_is_small_and_has_two_makes() -> None:
    quick = _arguments(['--quick'])
    assert (quick.zones, quick.changes, len(quick.makes), len(set(quick.makes))) == (500, 50, 4, 2)
    assert _arguments(['--quick', '--zones', '7']).zones == 7


def test_a_make_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _arguments(['--makes', 'knot,unbound'])
    assert 'unknown: unbound' in capsys.readouterr().err
