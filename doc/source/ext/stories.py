"""``.. story:: NAME``: an ordered list of steps, with a diagram of them above it that is drawn from the same text.

Each item begins with the function that does the step, as ````package.module.function```` below ``designate_pool``.  The
diagram has a column for each package; the option ``depth`` says of how many parts its name is.  So the diagram needs
no program to draw it, and cannot differ from the list.
"""

from __future__ import annotations

import html
import itertools
import re
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives

STEP = re.compile(r'^#\. ``(\S+?)``', re.MULTILINE)
#: Pixels: of a column, a step, the box in it, and the line of headings.
WIDTH, HEIGHT, BOX, HEAD = 124, 34, 22, 28


class Story(Directive):
    required_arguments = 1
    has_content = True
    option_spec = {'depth': directives.positive_int}

    def run(self) -> list[nodes.Node]:
        steps = STEP.findall('\n'.join(self.content))
        section = nodes.container()
        section += nodes.raw('', draw(self.arguments[0], steps, self.options.get('depth', 1)), format='html')
        self.state.nested_parse(self.content, self.content_offset, section)
        return [section]


def draw(name: str, steps: list[str], depth: int = 1) -> str:
    """The steps as an SVG: from top to bottom, each in the column of its package, with an arrow to the next."""
    packages = ['.'.join(step.split('.')[:depth]) for step in steps]
    columns = list(dict.fromkeys(packages))
    width, height = WIDTH * len(columns), HEAD + HEIGHT * len(steps)
    places = [(WIDTH * columns.index(package) + WIDTH // 2, HEAD + HEIGHT * number + HEIGHT // 2)
              for number, package in enumerate(packages)]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="100%" role="img"'
             f' font-family="sans-serif" font-size="11" text-anchor="middle"><title>The steps of a {name}</title>'
             '<defs><marker id="head" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6"'
             ' orient="auto"><path d="M0 0 6 3 0 6z"/></marker></defs>']
    for number, column in enumerate(columns):
        x = WIDTH * number + WIDTH // 2
        parts.append(f'<text x="{x}" y="16" font-weight="bold">{html.escape(column)}</text>'
                     f'<line x1="{x}" y1="{HEAD}" x2="{x}" y2="{height}" stroke="#ccc"/>')
    for (x, y), (next_x, next_y) in itertools.pairwise(places):
        parts.append(f'<line x1="{x}" y1="{y + BOX // 2}" x2="{next_x}" y2="{next_y - BOX // 2}" stroke="#000"'
                     ' marker-end="url(#head)"/>')
    for number, (step, (x, y)) in enumerate(zip(steps, places), 1):
        parts.append(f'<rect x="{x - WIDTH // 2 + 4}" y="{y - BOX // 2}" width="{WIDTH - 8}" height="{BOX}" rx="4"'
                     f' fill="#eef" stroke="#669"/><text x="{x}" y="{y + 4}">{number} '
                     f'{html.escape(step.rpartition(".")[2])}</text>')
    return ''.join([*parts, '</svg>'])


def setup(app: Any) -> dict[str, bool]:
    app.add_directive('story', Story)
    return {'parallel_read_safe': True}
