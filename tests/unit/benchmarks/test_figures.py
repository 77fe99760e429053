"""What the benchmarks do, count, measure and show."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from benchmarks import pairs, quick
from benchmarks.measure import percentile
from benchmarks.pairs import Found, told_again
from benchmarks.report import Report
from benchmarks.soak import SLACK, Series, tell
from benchmarks.steps import Step


def found(seconds: float, **again: int) -> Found:
    step = Step('', seconds, seconds / 2, {'central': seconds / 4}, 0)
    return Found(dict.fromkeys(pairs.STEPS, step), [seconds, 2 * seconds, 6 * seconds], dict.fromkeys(pairs.DEEDS, 10),
                 {deed: again.get(deed, 0) for deed in pairs.DEEDS})


def test_a_driver_that_tells_a_server_twice_is_a_fault() -> None:
    assert told_again([found(1), found(2, NOTIFY=5)]) == {}
    assert told_again([found(1, delzone=1), found(2, delzone=2, NOTIFY=1)]) == {'delzone': 3}


def test_the_json_has_every_figure_with_its_ratio(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Report('example', {'domains': 3})
    report.add('create', 6.0, 's', 2.0, 'the limit')
    report.add('idle', 0.0, 's')
    report.details['more'] = [1]
    report.finish(tmp_path / 'report.json')
    written = json.loads((tmp_path / 'report.json').read_text())
    assert written['figures'] == [
        {'name': 'create', 'ours': 6.0, 'other': 2.0, 'other_name': 'the limit', 'ratio': 3.0, 'unit': 's'},
        {'name': 'idle', 'ours': 0.0, 'other': None, 'other_name': None, 'ratio': None, 'unit': 's'}]
    assert (written['benchmark'], written['parameters']) == ('example', {'domains': 3})
    assert written['details'] == {'more': [1]}
    assert written['machine'].keys() == {'cores', 'python', 'version', 'load_before'}
    printed = capsys.readouterr().out.splitlines()
    assert [line.split() for line in printed if 'the limit' in line] == [
        ['create', '6', 's', '2', '3', 'the', 'limit']]


@pytest.mark.parametrize(('count', 'share', 'expected'), [
    (1, 0.99, 1), (100, 0.99, 99), (200, 0.99, 198), (3, 0, 1), (4, 1, 4),
])
def test_a_percentile_is_one_of_the_samples(count: int, share: float, expected: int) -> None:
    assert percentile(list(range(count, 0, -1)), share) == expected


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


FOLDER = pathlib.Path(quick.__file__).parent


def test_every_benchmark_is_in_the_quick_set() -> None:
    there = {path.stem for path in FOLDER.glob('*.py') if re.search(r"= report\.arguments\(\s*'", path.read_text())}
    assert sorted(there) == sorted(quick.BENCHMARKS)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Scripts in the place of the benchmarks, which are named after what they do."""
    scripts = {'good': 'print("a table")', 'bad': 'raise SystemExit(3)',
               'slow': 'import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(1))\nsignal.pause()'}
    folder = tmp_path / 'small'
    (folder / 'benchmarks').mkdir(parents=True)
    for name, script in scripts.items():
        (folder / 'benchmarks' / f'{name}.py').write_text(script + '\n')
    monkeypatch.setattr(quick, 'BENCHMARKS', tuple(scripts))
    monkeypatch.setattr(quick, 'HERE', folder)


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


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        quick.main(['--only', 'converge,nothing'])
    assert '--only: unknown: nothing' in capsys.readouterr().err
