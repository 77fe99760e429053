"""The tables of requirements in the documentation: complete, in order, and every row shown by tests that are run."""

from __future__ import annotations

import csv
import io
import os
import pathlib
import re
import subprocess
import sys
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
