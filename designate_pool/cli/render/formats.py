"""The formats of output: cliff's, with colour in tables and CSV for single things, and text for people."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TextIO

from cliff.formatters.base import SingleFormatter
from cliff.formatters.commaseparated import CSVLister
from cliff.formatters.table import TableFormatter
from stevedore.extension import Extension

from designate_pool.cli.http.errors import Json
from designate_pool.cli.render import colours, live

#: Formats that take lists and mappings as they are.
_STRUCTURED = ('json', 'yaml', 'text')


class Table(TableFormatter):
    """cliff's, with states in colour on a terminal."""

    def emit_list(self, column_names: Sequence[str], data: Iterable[Sequence[Any]], stdout: TextIO,
                  parsed_args: argparse.Namespace) -> None:
        drawn = io.StringIO()
        super().emit_list(column_names, data, drawn, parsed_args)
        _write(drawn, stdout)

    def emit_one(self, column_names: Sequence[str], data: Sequence[Any], stdout: TextIO,
                 parsed_args: argparse.Namespace) -> None:
        drawn = io.StringIO()
        super().emit_one(column_names, data, drawn, parsed_args)
        _write(drawn, stdout)


class Csv(CSVLister, SingleFormatter):
    """cliff's, which is for lists only; one thing is a list of one."""

    def emit_one(self, column_names: Sequence[str], data: Sequence[Any], stdout: TextIO,
                 parsed_args: argparse.Namespace) -> None:
        self.emit_list(column_names, [data], stdout, parsed_args)


class Text(SingleFormatter):
    """
    :param render: makes the text of what is shown
    """

    def __init__(self, render: Callable[[Json], str]) -> None:
        self._render = render

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        return

    def emit_one(self, column_names: Sequence[str], data: Sequence[Any], stdout: TextIO,
                 parsed_args: argparse.Namespace) -> None:
        if parsed_args.columns:
            stdout.writelines(f'{name}: {value}\n' for name, value in zip(column_names, _sanitized(data)))
        else:
            stdout.write(self._render(dict(zip(column_names, _sanitized(data)))))


def add(plugins: Any, *formatters: tuple[str, Any]) -> Any:
    """*plugins*, a manager of stevedore, with *formatters* by name in place of those of the same names."""
    names = {name for name, _ in formatters}
    plugins.extensions[:] = [each for each in plugins.extensions if each.name not in names]
    plugins.extensions += [Extension(name, None, None, form) for name, form in formatters]  # type: ignore[arg-type]
    return plugins


def cell(value: Any, formatter: str) -> Any:
    """*value* for *formatter*: unchanged for machines, for people and shells a text with a line for each item."""
    if formatter in _STRUCTURED:
        return value
    if isinstance(value, (list, tuple)):
        return '\n'.join(str(cell(each, formatter)) for each in value)
    if isinstance(value, dict):
        return ', '.join(f'{key}={cell(each, formatter)}' for key, each in value.items())
    if value is None and formatter == 'table':
        return '-'
    return value


def _sanitized(value: Any) -> Any:
    """*value* with its texts safe for a terminal."""
    if isinstance(value, str):
        return live.sanitized(value)
    if isinstance(value, dict):
        return {key: _sanitized(each) for key, each in value.items()}
    return [_sanitized(each) for each in value] if isinstance(value, (list, tuple)) else value


def _write(drawn: io.StringIO, stdout: TextIO) -> None:
    text = live.sanitized(drawn.getvalue())
    if text.strip():  # an empty table is drawn as an empty line
        stdout.write(colours.table(text) if colours.wanted(stdout) else text)
