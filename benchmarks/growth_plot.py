"""Costs against size, both logarithmic, as a drawing."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Mapping

#: Colours that are told apart by whoever sees no red or green (Okabe and Ito); beside them markers and lines differ.
COLOURS = ('#0072B2', '#E69F00', '#000000', '#56B4E9', '#CC79A7', '#D55E00')
MARKERS = ('o', 's', '^', 'D', 'v', 'P')
#: The lines begin to differ where the markers begin anew.
STYLES = tuple((line, marker) for line in ('-', '--') for marker in MARKERS)


def plot(costs: Mapping[str, Mapping[int, float]], title: str, path: pathlib.Path) -> None:
    """Draw what each piece of work costs.

    :param costs: milliseconds by number of domains, by what the piece of work is called
    :param path: of the SVG file that is written
    """
    import matplotlib

    matplotlib.use('svg')
    from matplotlib import pyplot

    # Text as text: it can be searched, and the file is small.  The salt keeps the ids in the file the same.
    with pyplot.rc_context({'svg.fonttype': 'none', 'svg.hashsalt': 'growth', 'font.size': 11}):
        figure, axes = pyplot.subplots(figsize=(9, 5.5), layout='constrained')
        styles = zip(itertools.cycle(STYLES), itertools.cycle(COLOURS))
        for (name, found), ((line, marker), colour) in zip(_highest_first(costs), styles):
            axes.loglog(list(found), list(found.values()), linestyle=line, marker=marker, color=colour, label=name)
        axes.set(xlabel='domains in the database', ylabel='milliseconds', title=title)
        axes.xaxis.set_major_formatter('{x:,.0f}')
        axes.yaxis.set_major_formatter('{x:g}')
        axes.grid(True, which='major', color='#dddddd')
        axes.set_axisbelow(True)
        figure.legend(loc='outside right upper', frameon=False)
        figure.savefig(path, format='svg', metadata={'Date': None})
        pyplot.close(figure)


def _highest_first(costs: Mapping[str, Mapping[int, float]]) -> list[tuple[str, Mapping[int, float]]]:
    """As the curves end, so that the names stand in their order."""
    return sorted(costs.items(), key=lambda item: -item[1][max(item[1])])
