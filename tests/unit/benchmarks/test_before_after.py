from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from benchmarks import before_after, quick


@pytest.fixture
def repository(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Two commits with a benchmark that takes ten seconds at the first and four at the second, as it says."""
    folder = tmp_path / 'repository'
    (folder / 'benchmarks').mkdir(parents=True)

    def git(*words: str) -> None:
        subprocess.run(['git', '-c', 'user.name=tests', '-c', 'user.email=tests@example.com', *words], cwd=folder,
                       check=True, capture_output=True)

    git('init')
    for seconds in (10, 4):
        (folder / 'benchmarks' / 'converge.py').write_text('import json, sys\n' + 'found = ' + repr({
            'figures': [{'name': 'until done', 'ours': seconds, 'unit': 's'}, {'name': f'only {seconds}', 'ours': 1,
                                                                               'unit': ''}],
            'details': {'steps': [{'name': 'create', 'cpu': {'central': seconds, 'manager': 1, 'clients': 5}}]}})
            + '\nprint(sys.argv)\njson.dump(found, open(sys.argv[2], "w"))\nsys.exit("--fail" in sys.argv)\n')
        (folder / 'benchmarks' / '__init__.py').touch()
        git('add', '.')
        git('commit', '--message', f'{seconds} seconds')
    monkeypatch.setattr(before_after, 'HERE', folder)
    return folder


def test_both_are_run_in_turn_and_compared(repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'result.json'
    assert before_after.main(['HEAD^', 'converge', '--rounds', '2', '--json', str(path), '--', '--domains', '5']) == 0
    found = json.loads(path.read_text())
    assert {each['name']: (each['ours'], each['other'], each['ratio']) for each in found['figures']} == {
        'until done': (4, 10, 0.4), 'create: processor of central': (4, 10, 0.4),
        'create: processor of manager': (1, 1, 1), 'create: processor of clients': (5, 5, 1),
        'create: processor of our services': (10, 16, 10 / 16)}
    assert len(found['details']['rounds']['before']) == len(found['details']['rounds']['after']) == 2
    assert found['parameters']['options'] == '--domains 5'
    assert 'before' not in subprocess.run(['git', 'worktree', 'list'], cwd=repository, capture_output=True, text=True,
                                          check=True).stdout


def test_one_that_fails_ends_the_comparison(repository: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match='converge of before failed'):
        before_after.main(['HEAD^', 'converge', '--', '--fail'])


def test_the_code_of_a_tree_is_run_wherever_the_packages_come_from(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'designate_pool').mkdir()
    (tmp_path / 'designate_pool' / '__init__.py').write_text('print("of the tree")\n')
    ran = quick.run('any', [sys.executable, '-c', 'import designate_pool'], tmp_path / 'said.txt', 60, tmp_path)
    assert ran.code == 0 and (tmp_path / 'said.txt').read_text() == 'of the tree\n'
