from __future__ import annotations

import importlib
import json
import pathlib
import re
import sys

import pytest

from benchmarks import quick

FOLDER = pathlib.Path(quick.__file__).parent


def test_every_benchmark_is_in_the_quick_set() -> None:
    there = {path.stem for path in FOLDER.glob('*.py') if re.search(r"= report\.arguments\('", path.read_text())}
    assert sorted(there) == sorted(quick.QUICK)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts in the place of the benchmarks, which are named after what they do."""
    scripts = {'good': 'print("a table")', 'bad': 'raise SystemExit(3)',
               'slow': 'import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(1))\nsignal.pause()'}
    monkeypatch.setattr(quick, 'QUICK', dict.fromkeys(scripts, quick.Quick(1)))
    monkeypatch.setattr(quick, 'command', lambda name, share, folder: [sys.executable, '-c', scripts[name]])
    monkeypatch.setattr(quick, 'measure_slowness', lambda: 1.0)


@pytest.mark.usefixtures('small')
def test_one_that_fails_or_hangs_does_not_stop_the_others(tmp_path: pathlib.Path,
                                                          capsys: pytest.CaptureFixture[str]) -> None:
    summary = tmp_path / 'results' / 'quick.json'
    assert quick.main(['--json', str(summary), '--only', 'slow', '--most', '1']) == 1
    assert [each['code'] for each in json.loads(summary.read_text())] == [None]
    assert quick.main(['--json', str(summary), '--only', 'bad,good']) == 1
    assert {each['name']: each['code'] for each in json.loads(summary.read_text())} == {'good': 0, 'bad': 3}
    assert (summary.parent / 'good.txt').read_text() == 'a table\n'
    printed = capsys.readouterr().out
    assert 'took too long' in printed and 'failed' in printed and 'a table' in printed
    assert quick.main(['--json', str(summary), '--only', 'good']) == 0
    assert quick.main(['--json', str(summary), '--only', 'good', '--all', '0']) == 1


def test_each_is_run_quickly_and_writes_its_json(tmp_path: pathlib.Path) -> None:
    assert quick.command('audit', 0.5, tmp_path)[1:] == [
        '-m', 'benchmarks.audit', '--quick', '--json', str(tmp_path / 'audit.json'), '--domains', '2500']


@pytest.mark.parametrize('name', quick.QUICK)
def test_the_options_that_say_how_much_are_there(name: str, tmp_path: pathlib.Path,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    arguments = importlib.import_module(f'benchmarks.{name}')._arguments
    given = vars(arguments(quick.command(name, 1.0, tmp_path)[3:]))
    smaller = vars(arguments(quick.command(name, 0.1, tmp_path)[3:]))
    for option in quick.QUICK[name].sizes:
        assert str(given[option]) != str(smaller[option]), option


def test_sizes_follow_the_time_that_is_left() -> None:
    assert quick.fitting(600.0, 500.0) == 1.0
    assert quick.fitting(600.0, 800.0) == pytest.approx(0.5)
    assert quick.fitting(100.0, 800.0) == quick.fitting(-1.0, 800.0) == pytest.approx(0.1)
    assert quick.measure_slowness() >= 1.0


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        quick.main(['--only', 'converge,nothing'])
    assert '--only: unknown: nothing' in capsys.readouterr().err
