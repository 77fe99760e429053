"""The tables of requirements in the documentation: complete, in order, and every row shown by tests that are run."""

from __future__ import annotations

import csv
import importlib
import io
import pathlib
import re
from collections.abc import Sequence
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


def faults(rows: Sequence[Row], expected: Sequence[str]) -> list[str]:
    """What is wrong with a table, in words.

    :param expected: its ids
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
        found += [f'{row.id} names {each}, which is not run' for each in row.tests if not is_run(each)]
    return found


def is_run(test: str) -> bool:
    """Whether there is such a test, by its node id without parameters, that is not skipped."""
    path, *names = test.split('::')
    if not (ROOT / path).is_file():
        return False
    step: object = importlib.import_module(path.removesuffix('.py').replace('/', '.'))
    for name in names:
        step = getattr(step, name, None)
    return callable(step) and all(mark.name != 'skip' for mark in getattr(step, 'pytestmark', []))


def table(name: str) -> list[Row]:
    return read((TABLES / f'{name}.csv').read_text())


@pytest.mark.parametrize('name', EXPECTED)
def test_every_requirement_is_there_and_shown_by_tests_that_are_run(name: str) -> None:
    assert faults(table(name), EXPECTED[name]) == []


def test_every_table_is_expected_and_on_the_page() -> None:
    assert {path.name for path in TABLES.iterdir()} == {f'{name}.csv' for name in EXPECTED}
    page = (TABLES.parent / 'requirements.rst').read_text()
    assert re.findall(r':file: requirements/(\w+)\.csv', page) == list(EXPECTED)
