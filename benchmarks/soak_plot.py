"""What was measured of many processes against time, as a drawing: a panel for each unit, a thin line for each fault."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Mapping, Sequence

#: Colours that are told apart by whoever sees no red or green (Okabe and Ito); beside them markers and lines differ.
COLOURS = ('#0072B2', '#E69F00', '#000000', '#56B4E9', '#CC79A7', '#D55E00')
#: Series that never come to more than this are left out of a panel: they would hide the others' names.
LEAST = 1


def plot(samples: Mapping[tuple[str, str], Sequence[tuple[float, float]]], faults: Sequence[tuple[float, str]],
         path: pathlib.Path) -> None:
    """
    :param samples: (seconds, value) by unit and name
    :param faults: seconds, and what it was
    :param path: of the SVG file that is written
    """
    import matplotlib

    matplotlib.use('svg')
    from matplotlib import pyplot

    units = sorted({unit for unit, _ in samples})
    with pyplot.rc_context({'svg.fonttype': 'none', 'svg.hashsalt': 'soak', 'font.size': 9}):
        figure, panels = pyplot.subplots(len(units), 1, figsize=(10, 2.4 * len(units)), layout='constrained',
                                         sharex=True, squeeze=False)
        for axes, unit in zip(panels[:, 0], units):
            shown = {name: found for (each, name), found in samples.items()
                     if each == unit and max(value for _, value in found) > LEAST}
            styles = itertools.product(('-', '--', ':', '-.'), COLOURS)
            for (name, found), (line, colour) in zip(shown.items(), itertools.cycle(styles)):
                axes.plot([at / 60 for at, _ in found], [value for _, value in found], linestyle=line, color=colour,
                          linewidth=1, label=name)
            for at, _ in faults:
                axes.axvline(at / 60, color='#cccccc', linewidth=0.5, zorder=0)
            axes.set(ylabel=unit, ylim=(0, None))
            if shown:
                axes.legend(loc='center left', bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=7)
        panels[-1, 0].set(xlabel='minutes')
        figure.savefig(path, format='svg', metadata={'Date': None})
        pyplot.close(figure)
