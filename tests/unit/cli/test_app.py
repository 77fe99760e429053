"""The command as a whole: its table of commands, its help, its forms."""

from __future__ import annotations

import io
import json

import pytest

from designate_pool.cli import base, terminal
from designate_pool.cli.commands import zone_status


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = 'utf-8'

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize('form, told', [('json', '[]\n'), ('yaml', '[]\n'), ('value', ''), ('table', ''),
                                        ('csv', '"id","name","serial","status","action"\n')])
def test_an_empty_list(run, form, told):
    assert run('zone', 'list', '-f', form).out == told


def test_one_thing_as_csv(run, zone):
    head, line = run('zone', 'show', 'example.com', '-f', 'csv', '-c', 'name', '-c', 'status').out.splitlines()
    assert (head, line) == ('"name","status"', '"example.com.","ACTIVE"')


def test_the_form_of_the_settings(run, zone, monkeypatch):
    monkeypatch.setenv('DESIGNATE_POOL_FORMAT', 'json')
    assert json.loads(run('zone', 'show', 'example.com').out)['name'] == 'example.com.'
    assert run('zone', 'show', 'example.com', '-f', 'value', '-c', 'name').out == 'example.com.\n'
    monkeypatch.setenv('DESIGNATE_POOL_FORMAT', 'nonsense')
    assert '| name ' in run('zone', 'show', 'example.com').out


def test_colour_is_for_terminals_of_those_who_want_it(monkeypatch):
    monkeypatch.delenv('NO_COLOR', raising=False)
    monkeypatch.setenv('TERM', 'xterm')
    assert terminal.wanted(Terminal()) and not terminal.wanted(io.StringIO())
    for name, value in (('NO_COLOR', '1'), ('TERM', 'dumb')):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            assert not terminal.wanted(Terminal())


def test_states_are_coloured_in_tables():
    table = '| a.example. | ACTIVE | ERROR |\n| ERROR of old | PENDING |\n'
    assert terminal.table(table) == ('| a.example. | \033[32mACTIVE\033[0m | \033[31mERROR\033[0m |\n'
                                     '| ERROR of old | \033[33mPENDING\033[0m |\n')


@pytest.mark.parametrize('value, formatter, told', [
    ([1, 2], 'table', '1\n2'), ([1, 2], 'json', [1, 2]), ({'a': 1}, 'csv', 'a=1'), (None, 'table', '-'),
    (None, 'csv', None), ([{'a': None}], 'value', 'a=None'), (0, 'table', 0),
])
def test_cells(value, formatter, told):
    assert base.cell(value, formatter) == told


@pytest.mark.parametrize('ended, code', [('done', 0), ('failed', 3), ('timed_out', 4), (None, 1)])
def test_the_exit_code_of_a_wait(ended, code):
    found = {'done': False, 'failed': False, 'timed_out': False, **({ended: True} if ended else {})}
    assert zone_status._exit_code(found) == code
