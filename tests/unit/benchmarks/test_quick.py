from __future__ import annotations

import json
import pathlib
import re

import pytest

from benchmarks import quick

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
