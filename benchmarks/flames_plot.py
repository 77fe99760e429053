"""A flame graph as a drawing: a row for each depth, as wide as the frame has samples, coloured by area."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

#: Pixels.
_WIDTH, _ROW, _CHARACTER = 1200, 16, 6.2
#: Frames with a smaller share of the samples are left out, with all that is in them.
_LEAST = 0.004
_COLOURS = {'messages': '#f4b183', 'database': '#9dc3e6', 'logs, metrics': '#d9d9d9', 'DNS': '#a9d18e',
            'drivers': '#c5b3d9', 'HTTP': '#ffe699', 'own rules': '#f8cbad', 'switching': '#e7e6e6'}


@dataclasses.dataclass(slots=True)
class _Frame:
    name: str
    samples: int = 0
    inner: dict[str, _Frame] = dataclasses.field(default_factory=dict)


def plot(stacks: Mapping[tuple[str, ...], int], area: Callable[[Sequence[str]], str], title: str,
         path: pathlib.Path) -> None:
    """
    :param stacks: samples by stack, from the outermost frame
    :param area: of a stack, or of the beginning of one; it gives the colour
    :param path: of the SVG file that is written
    """
    root = _Frame('all')
    for stack, samples in stacks.items():
        frame = root
        frame.samples += samples
        for name in stack:
            frame = frame.inner.setdefault(name, _Frame(name))
            frame.samples += samples
    boxes = list(_boxes(root, (), 0.0, root.samples))
    rows = 1 + max(len(stack) for stack, _, _ in boxes)
    height = (rows + 3) * _ROW
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
             f'font-size="11"><title>{escape(title)}</title><rect width="100%" height="100%" fill="#fff"/>'
             f'<text x="4" y="13" font-size="13">{escape(title)}</text>']
    for number, (name, colour) in enumerate(_COLOURS.items()):
        lines.append(f'<rect x="{4 + number * 120}" y="{_ROW + 4}" width="10" height="10" fill="{colour}"/>'
                     f'<text x="{18 + number * 120}" y="{_ROW + 13}">{name}</text>')
    for stack, left, samples in boxes:
        x, width, y = left / root.samples * _WIDTH, samples / root.samples * _WIDTH, height - _ROW * (len(stack) + 1)
        name = stack[-1] if stack else root.name
        text = name.partition(' (')[0][:max(0, int(width / _CHARACTER))]
        lines.append(
            f'<g><title>{escape(name)}: {100 * samples / root.samples:.1f} %</title><rect x="{x:.1f}" y="{y}" '
            f'width="{max(width - 0.5, 0.5):.1f}" height="{_ROW - 1}" fill="{_COLOURS[area(stack)]}"/>'
            + (f'<text x="{x + 2:.1f}" y="{y + 11}">{escape(text)}</text>' if len(text) > 2 else '') + '</g>')
    path.write_text('\n'.join([*lines, '</svg>', '']))


def _boxes(frame: _Frame, stack: tuple[str, ...], left: float, whole: int
           ) -> Iterator[tuple[tuple[str, ...], float, int]]:
    """Each frame that is wide enough: its stack, the samples to its left, and its own."""
    yield stack, left, frame.samples
    for inner in sorted(frame.inner.values(), key=lambda each: each.name):
        if inner.samples >= _LEAST * whole:
            yield from _boxes(inner, (*stack, inner.name), left, whole)
        left += inner.samples
