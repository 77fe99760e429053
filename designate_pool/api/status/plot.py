"""A plot of convergence times; a table next to it has the same values."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence

from designate_pool.api.status.html import Html, el, span

WIDTH, HEIGHT = 480, 200
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 14, 30
#: The range of the axis, seconds.
LEAST, MOST = 0.01, 86400.0


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """One change, the oldest first.

    :ivar seconds: until the pool served it, or so far
    :ivar kind: ``done``, ``pending`` or ``error``
    """

    seconds: float
    kind: str


def summary(points: Sequence[Point]) -> str:
    """The plot in words."""
    done = [point.seconds for point in points if point.kind == 'done']
    open_ = len(points) - len(done)
    sentences = [f'{len(points)} {"change" if len(points) == 1 else "changes"}, the oldest on the left.']
    if done:
        sentences.append(f'{len(done)} converged: half of them within {span(statistics.median(done))}, all within '
                         f'{span(max(done))}.')
    if open_:
        sentences.append(f'{open_} {"has" if open_ == 1 else "have"} not converged yet.')
    return ' '.join(sentences)


def plot(points: Sequence[Point]) -> Html:
    """A dot for each change; the higher, the longer it took (logarithmic)."""
    top = min(MOST, max([1.0, *(point.seconds for point in points)]))
    tens = range(math.floor(math.log10(LEAST)), math.ceil(math.log10(top)) + 1)
    marks = []
    for power in tens:
        y = _y(10.0 ** power, tens)
        marks.append(el('line', x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_='grid'))
        marks.append(el('text', span(10.0 ** power), x=LEFT - 8, y=y + 4, class_='label end'))
    step = (WIDTH - LEFT - RIGHT) / max(1, len(points))
    dots = [_dot(round(LEFT + step * (index + 0.5), 1), _y(point.seconds, tens), point)
            for index, point in enumerate(points)]
    return el('svg', el('title', 'Convergence times of the last changes', id='plot-title'),
              el('desc', summary(points), id='plot-text'), *marks, *dots,
              el('text', 'older', x=LEFT, y=HEIGHT - 8, class_='label'),
              el('text', 'newer', x=WIDTH - RIGHT, y=HEIGHT - 8, class_='label end'),
              viewBox=f'0 0 {WIDTH} {HEIGHT}', role='img', aria_labelledby='plot-title plot-text')


def _y(seconds: float, tens: range) -> float:
    least, most = tens[0], tens[-1]
    part = (math.log10(min(max(seconds, LEAST), MOST)) - least) / (most - least)
    return round(HEIGHT - BOTTOM - min(1.0, part) * (HEIGHT - TOP - BOTTOM), 1)


def _dot(x: float, y: float, point: Point) -> Html:
    """Kinds differ by shape, not only by colour."""
    if point.kind == 'done':
        return el('circle', cx=x, cy=y, r=4, class_='done')
    if point.kind == 'pending':
        return el('circle', cx=x, cy=y, r=4, class_='pending')
    return el('path', d=f'M{x - 4} {y - 4}l8 8m0 -8l-8 8', class_='error')
