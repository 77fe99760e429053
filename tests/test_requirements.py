"""The tables of requirements in the documentation: complete, in order, and every row shown by tests that are run."""

from __future__ import annotations

import csv
import io
import os
import pathlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = ROOT / 'doc' / 'source' / 'requirements'
COLUMNS = ['id', 'requirement', 'tests']


def ids(letter: str, *spans: tuple[int, int]) -> list[str]:
    """The ids of all *spans*, both ends included."""
    return [f'{letter}-{number:02}' for first, last in spans for number in range(first, last + 1)]


#: Of each table the ids that it has to have, in their order.
EXPECTED = {
    'zones': ids('Z', (1, 37)),
    'providers': ids('P', (1, 22)),
    'policies': ids('E', (1, 18)),
    'processors': ids('Q', (1, 15)),
    'manager': ids('M', (1, 16), (20, 26), (30, 31), (40, 42), (50, 55), (60, 67), (70, 80), (90, 92)),
    'minidns': ids('N', (1, 9)),
    'storage': ids('T', (1, 7)),
}

#: Run by a pytest of its own: prints what it would run, one node id a line.
COLLECT = '''
import sys
import pytest

class Names:
    def pytest_collection_finish(self, session):
        for item in session.items:
            if item.get_closest_marker('skip') is None:
                print(f'collected {item.nodeid}')

sys.exit(pytest.main(['--collect-only', '-p', 'no:cacheprovider', *sys.argv[1:]], plugins=[Names()]))
'''


class Row(NamedTuple):
    """A line of a table; *tests* are node ids without parameters."""

    id: str
    text: str
    tests: tuple[str, ...]


def read(table: str) -> list[Row]:
    """The rows of a table.

    :param table: CSV with the columns of :data:`COLUMNS`; the last has literals of reStructuredText with spaces between
    :raises ValueError: for what is not such a table
    """
    lines = list(csv.reader(io.StringIO(table), strict=True))
    if lines[:1] != [COLUMNS]:
        raise ValueError(f'the columns are not {", ".join(COLUMNS)}')
    found = []
    for line in lines[1:]:
        if len(line) != len(COLUMNS) or not re.fullmatch(r'(``[^` ]+``( (?=`)|$))*', line[2]):
            raise ValueError(f'this is no row: {line}')
        found.append(Row(line[0], line[1], tuple(line[2].replace('`', '').split())))
    return found


def faults(rows: Sequence[Row], expected: Sequence[str], run: Collection[str]) -> list[str]:
    """What is wrong with a table, in words.

    :param expected: its ids
    :param run: node ids, without parameters, of the tests that are run
    """
    listed = [row.id for row in rows]
    found = [f'{each} is missing' for each in expected if each not in listed]
    found += [f'{each} is no requirement' for each in listed if each not in expected]
    found += [f'{each} is there more than once' for each in expected if listed.count(each) > 1]
    if not found and listed != list(expected):
        found.append('the ids are out of order')
    for row in rows:
        if not row.text.strip():
            found.append(f'{row.id} has no text')
        if not row.tests:
            found.append(f'{row.id} has no test')
        found += [f'{row.id} names {each} twice' for each in sorted(set(row.tests)) if row.tests.count(each) > 1]
        found += [f'{row.id} names {each}, which is not run' for each in row.tests if each not in run]
    return found


def collected(files: Iterable[str], folder: pathlib.Path = ROOT) -> set[str]:
    """The tests of *files* that pytest would run in *folder*, as node ids without parameters; none of missing files.

    :raises AssertionError: with what pytest says, when a file cannot be collected
    """
    there = sorted(each for each in files if (folder / each).is_file())
    if not there:
        return set()
    # Not what is meant for the pytest that runs this: its options, its place among the workers of xdist.
    environment = {name: value for name, value in os.environ.items() if not name.startswith('PYTEST_')}
    done = subprocess.run([sys.executable, '-c', COLLECT, *there], cwd=folder, env=environment, capture_output=True,
                          text=True, timeout=120)
    nothing_left = done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    assert done.returncode == 0 or nothing_left, done.stdout[-5000:] + done.stderr[-5000:]
    return {line.removeprefix('collected ').partition('[')[0] for line in done.stdout.splitlines()
            if line.startswith('collected ')}


def table(name: str) -> list[Row]:
    return read((TABLES / f'{name}.csv').read_text())


@pytest.fixture(scope='module')
def run() -> set[str]:
    """The tests that are run of all files that any of the tables names."""
    return collected({test.partition('::')[0] for name in EXPECTED for row in table(name) for test in row.tests})


@pytest.mark.parametrize('name', EXPECTED)
def test_every_requirement_is_there_and_shown_by_tests_that_are_run(name: str, run: set[str]) -> None:
    assert faults(table(name), EXPECTED[name], run) == []


def test_every_table_is_expected_and_on_the_page() -> None:
    assert {path.name for path in TABLES.iterdir()} == {f'{name}.csv' for name in EXPECTED}
    page = (TABLES.parent / 'requirements.rst').read_text()
    assert re.findall(r':file: requirements/(\w+)\.csv', page) == list(EXPECTED)


# The checker itself.

GOOD = Row('X-01', 'It works.', ('tests/a.py::test_one', 'tests/b.py::TestTwo::test_three'))
OTHER = Row('X-02', 'It goes on working.', ('tests/a.py::test_one',))
RUN = {'tests/a.py::test_one', 'tests/b.py::TestTwo::test_three'}


def test_a_table_is_read_with_its_literals() -> None:
    text = ('id,requirement,tests\nX-01,It works.,``tests/a.py::test_one`` ``tests/b.py::TestTwo::test_three``\n'
            'X-02,"It works, too.",\n')
    assert read(text) == [GOOD, Row('X-02', 'It works, too.', ())]


@pytest.mark.parametrize('text', [
    '', 'id,tests\n', 'id,requirement,tests\nX-01,It works.\n', 'id,requirement,tests\nX-01,It works, too.,``t``\n',
    'id,requirement,tests\nX-01,It works.,tests/a.py::test_one\n', 'id,requirement,tests\nX-01,It works.,``a````b``\n',
    'id,requirement,tests\nX-01,It works.,``a``  ``b``\n', 'id,requirement,tests\nX-01,It works.,``a`` \n',
    'id,requirement,tests\nX-01,It works.,``a b``\n'])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read(text)


def test_a_table_in_good_order_has_no_faults() -> None:
    assert faults([GOOD, OTHER], ['X-01', 'X-02'], RUN) == []


@pytest.mark.parametrize(('rows', 'said'), [
    ([GOOD], 'X-02 is missing'),
    ([GOOD, OTHER, OTHER], 'X-02 is there more than once'),
    ([OTHER, GOOD], 'the ids are out of order'),
    ([GOOD, OTHER, OTHER._replace(id='X-03')], 'X-03 is no requirement'),
    ([GOOD, OTHER._replace(text=' ')], 'X-02 has no text'),
    ([GOOD, OTHER._replace(tests=())], 'X-02 has no test'),
    ([GOOD, OTHER._replace(tests=OTHER.tests * 2)], 'X-02 names tests/a.py::test_one twice'),
    ([GOOD, OTHER._replace(tests=('tests/a.py::test_gone',))],
     'X-02 names tests/a.py::test_gone, which is not run'),
    ([GOOD, OTHER._replace(tests=('tests/b.py::TestTwo',))], 'X-02 names tests/b.py::TestTwo, which is not run'),
])
def test_a_fault_is_seen(rows: list[Row], said: str) -> None:
    assert faults(rows, ['X-01', 'X-02'], RUN) == [said]


def test_only_what_would_be_run_is_collected(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'pytest.ini').write_text('[pytest]\naddopts = -m "not slow" -qq\nmarkers =\n    slow: not here\n')
    (tmp_path / 'test_some.py').write_text(textwrap.dedent('''
        import pytest

        class TestOnes:
            @pytest.mark.parametrize('x', ['a::b', '[', 2])
            def test_each(self, x): pass

        @pytest.mark.slow
        def test_slow(): pass

        @pytest.mark.skip
        def test_skipped(): pass

        def helper(): pass
        '''))
    (tmp_path / 'test_slow.py').write_text('import pytest\n@pytest.mark.slow\ndef test_slow(): pass\n')
    files = ['test_some.py', 'test_slow.py', 'test_gone.py']
    assert collected(files, tmp_path) == {'test_some.py::TestOnes::test_each'}
    assert collected(files[1:2], tmp_path) == collected(files[2:], tmp_path) == set()


def test_a_file_that_cannot_be_collected_is_told(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'test_broken.py').write_text('def test_one(): pass\nimport nowhere_at_all\n')
    with pytest.raises(AssertionError, match='nowhere_at_all'):
        collected(['test_broken.py'], tmp_path)
