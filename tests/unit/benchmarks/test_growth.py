"""What is drawn of the costs against size."""

from __future__ import annotations

import argparse
import pathlib
import time
from xml.etree import ElementTree

from benchmarks import report
from benchmarks.growth import DRAWN, MILLION, SIZES, Clock, _arguments, drawn, measure
from benchmarks.growth_plot import COLOURS, MARKERS, plot

IMAGE = pathlib.Path(__file__).parents[3] / 'doc/source/images/growth.svg'


def test_every_piece_of_work_that_is_drawn_is_done() -> None:
    options = _arguments(['--database', 'sqlite', '--rounds', '2', '--batch', '10'])
    spent = measure(report.Report('growth', {}), options, 300)
    assert drawn(10).keys() <= spent.keys()
    assert len(spent['Central: create a domain']) == 2, 'the first round does not count'


def test_a_batch_is_named_by_its_size() -> None:
    assert drawn(7)['MiniDNS: heads, 7'] == 'answer 7 SOA queries'
    assert len(drawn(7)) == len(DRAWN)


def test_a_clock_keeps_each_time_that_a_piece_was_done() -> None:
    clock = Clock()
    for _ in range(2):
        with clock.doing('one'):
            pass
    with clock.doing('other'):
        time.sleep(0.002)
    assert {name: len(spent) for name, spent in clock.spent.items()} == {'one': 2, 'other': 1}
    assert clock.spent['other'][0] >= 2


def test_a_quick_run_is_small_and_a_full_one_has_a_million() -> None:
    def sizes(*arguments: str) -> tuple[int, ...]:
        options: argparse.Namespace = _arguments(arguments)
        return tuple(options.sizes)

    assert sizes() == SIZES
    assert sizes('--quick') == SIZES[:2]
    assert sizes('--full') == (*SIZES, MILLION)
    assert sizes('--sizes', '50,20') == (20, 50)


def test_the_drawing_has_a_name_for_each_curve_and_is_the_same_the_next_time(tmp_path: pathlib.Path) -> None:
    costs = {f'work {number}': {10: number + 1.0, 100: 2.0 * number + 1} for number in range(8)}
    files = [tmp_path / f'{number}.svg' for number in range(2)]
    for file in files:
        plot(costs, 'a title', file)
    assert files[0].read_bytes() == files[1].read_bytes()
    texts = labels(files[0])
    # By where the curves end.
    assert [each for each in texts if each.startswith('work')] == [f'work {number}' for number in reversed(range(8))]
    assert {'a title', 'domains in the database', 'milliseconds'} <= set(texts)


def test_curves_differ_by_more_than_their_colour() -> None:
    assert len(set(COLOURS)) == len(COLOURS) == len(MARKERS) == len(set(MARKERS))


def test_the_drawing_of_the_documentation_is_light_and_has_all_curves() -> None:
    assert IMAGE.stat().st_size < 100_000
    assert set(drawn(_arguments([]).batch).values()) <= set(labels(IMAGE))


def labels(file: pathlib.Path) -> list[str]:
    return [each.text or '' for each in ElementTree.parse(file).iter('{http://www.w3.org/2000/svg}text')]
