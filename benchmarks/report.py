"""The results of a benchmark: tables for people, JSON for programs.

The JSON holds ``benchmark``, ``machine``, ``parameters``, ``figures`` and ``details``.  ``figures`` is a list of
``{name, ours, other, other_name, ratio, unit}``: *other* is what *ours* is compared with, *ratio* is ours / other, and
the last three but the unit are null where there is nothing to compare with.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from designate_pool import __version__
from testing.processes import exit_on_sigterm


@dataclasses.dataclass(frozen=True, slots=True)
class Figure:
    """One measured quantity.

    :ivar other: the same quantity of what *other_name* says
    """

    name: str
    ours: float
    unit: str
    other: float | None = None
    other_name: str | None = None

    @property
    def ratio(self) -> float | None:
        """How many times the other ours is; None without another."""
        return self.ours / self.other if self.other else None

    def as_json(self) -> dict[str, Any]:
        return {'name': self.name, 'ours': self.ours, 'other': self.other, 'other_name': self.other_name,
                'ratio': self.ratio, 'unit': self.unit}


class Report:
    """Gathers the figures of one run.

    :ivar details: more that goes into the JSON, by name
    """

    def __init__(self, benchmark: str, parameters: Mapping[str, Any]) -> None:
        self.benchmark = benchmark
        self.parameters = dict(parameters)
        self.machine = machine()
        self.figures: list[Figure] = []
        self.details: dict[str, Any] = {}

    def add(self, name: str, ours: float, unit: str, other: float | None = None, other_name: str | None = None) -> None:
        self.figures.append(Figure(name, ours, unit, other, other_name))

    def say(self, line: str) -> None:
        """Tell whoever watches how far it is."""
        print(line, flush=True)

    def finish(self, path: pathlib.Path | None) -> None:
        """Print the figures, and write the JSON where a *path* is given."""
        rows = [[each.name, number(each.ours), each.unit, number(each.other), number(each.ratio), each.other_name or '']
                for each in self.figures]
        print_table(f'{self.benchmark}: {", ".join(f"{key} {value}" for key, value in self.parameters.items())}',
                    ['figure', 'ours', 'unit', 'other', 'ours / other', 'other is'], rows)
        print(', '.join(f'{key.replace("_", " ")} {value}' for key, value in self.machine.items()))
        if path is not None:
            path.write_text(json.dumps(self.as_json(), indent=2) + '\n')

    def as_json(self) -> dict[str, Any]:
        return {'benchmark': self.benchmark, 'machine': self.machine, 'parameters': self.parameters,
                'figures': [each.as_json() for each in self.figures], 'details': self.details}


def arguments(benchmark: str, description: str, **counts: tuple[int, str]) -> argparse.ArgumentParser:
    """The options that every benchmark has; from now on SIGTERM ends all that it has started as well.

    :param counts: more options that are numbers, each with its default and help
    """
    exit_on_sigterm()
    parser = argparse.ArgumentParser(prog=f'python -m benchmarks.{benchmark}', description=description)
    parser.add_argument('--json', type=pathlib.Path, metavar='FILE', help='write the figures there')
    parser.add_argument('--quick', action='store_true', help='a small run, to see that it works')
    for name, (default, text) in counts.items():
        parser.add_argument(f'--{name}', type=int, default=default, help=text)
    return parser


def machine() -> dict[str, Any]:
    """What the figures depend on.  The load is that of others, as it was before the benchmark began."""
    return {'cores': len(os.sched_getaffinity(0)), 'python': platform.python_version(), 'version': __version__,
            'load_before': round(os.getloadavg()[0], 2)}


def number(value: float | None) -> str:
    """*value* with three digits that count; empty for None."""
    if value is None:
        return ''
    if value == int(value) or abs(value) >= 100:
        return f'{value:.0f}'
    return f'{value:.{1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3}f}'


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Texts to the left, numbers to the right."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    numeric = [all(_is_number(line[column]) for line in lines[1:]) for column in range(len(head))]
    print(f'\n{title}')
    for line in lines:
        cells = [cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(line, widths, numeric)]
        print('  ' + '  '.join(cells).rstrip())
    print(flush=True)


def _is_number(text: str) -> bool:
    return not text or text.replace('.', '', 1).replace('-', '', 1).isdigit()
