"""How long each make of server takes to serve many new zones, by our drivers and MiniDNS, beside the bare limit.

A fresh server is given zones as small as can be and asked for their serials until the last one is right.  *Bare* is the
fastest control channel that the make has, used directly, with a Knot that has had all zones before as the primary;
*ours* is the driver, in the batches and with the calls at once that a pool manager makes, with MiniDNS as the primary.
The two take turns.  The same is done with servers that have many zones already.  At last a server of each make joins
the pool of a running system, and is filled with all that the pool has.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
import pathlib
import signal
import sys
import tempfile
import time
from collections.abc import Sequence

from benchmarks import report
from benchmarks.serials import await_serials
from benchmarks.servers_filling import Filling
from benchmarks.servers_makes import MAKES
from benchmarks.servers_primary import StaticPrimary
from benchmarks.servers_rounds import Place, Round, Told
from benchmarks.servers_zones import make_database
from benchmarks.system import names

LIMIT = 'bare'


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all that was started is ended
    result = report.Report('servers', {'zones': options.count, 'loaded': options.loaded, 'filled': options.fill,
                                       'concurrency': options.concurrency})
    new, loaded = names('new', options.count), names('loaded', options.loaded)
    filled = names('filled', options.fill)
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
        folder = pathlib.Path(name)
        with (StaticPrimary(folder / 'static', [*new, *loaded, *filled]) as static,
              concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context('spawn')) as asker):
            asker.submit(await_serials, [], {}, 0.0).result()  # it is ready
            database = f'sqlite:///{folder}/pool.sqlite'
            make_database(database, [*new, *loaded])
            place = Place(folder, asker, static, database, options.concurrency, new, loaded)
            for word in options.makes:
                measure_adding(place, word, options.rounds, result)
            if filled:
                measure_filling(folder, static, options, filled, result)
    result.finish(options.json)
    return 0


def measure_adding(place: Place, word: str, turns: int, result: report.Report) -> None:
    """Bare and ours by turns, on servers without zones and on loaded ones.

    :param turns: of each; the better one counts, since whatever else runs can only make it worse
    """
    make = Told(place, word)
    for title, loaded in ((f'{word}: empty', ()), (f'{word}: loaded', place.loaded)):
        if title.endswith('loaded') and not loaded:
            continue
        rounds: dict[str, list[Round]] = {LIMIT: [], 'ours': []}
        for _ in range(turns):
            for who, measure in ((LIMIT, make.bare), ('ours', make.ours)):
                rounds[who].append(measure(loaded))
                result.say(_line(title, who, rounds[who][-1]))
        best = {who: min(each.seconds for each in some) for who, some in rounds.items()}
        result.add(title, best['ours'], 's', best[LIMIT], LIMIT)
        result.details[title] = {who: [each.as_json() for each in some] for who, some in rounds.items()}


def measure_filling(folder: pathlib.Path, static: StaticPrimary, options: argparse.Namespace,
                    filled: Sequence[str], result: report.Report) -> None:
    """Domains a second of a server that joins."""
    with Filling(folder / 'filling', static, options.concurrency) as filling:
        for word in options.makes:
            done = filling.fill(word, filled)
            result.say(_line(f'{word}: filling', 'ours', done))
            result.add(f'{word}: filling', len(filled) / done.seconds, 'domains/s')
            result.details[f'{word}: filling'] = done.as_json()


def _line(title: str, who: str, done: Round) -> str:
    spent = ', '.join(f'{name} {seconds:.2f}' for name, seconds in done.cpu.items())
    return (f'{time.strftime("%H:%M:%S")} {title}, {who}: {done.seconds:.3f} s, commands {done.commands:.3f} s; '
            f'processor seconds: {spent}')


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('servers', 'From adding zones to a server until it serves them, for each make.')
    parser.add_argument('--makes', type=_words, default=tuple(MAKES), help=f'with commas, of {", ".join(MAKES)}')
    parser.add_argument('--count', type=int, default=1000, help='zones that are added at once')
    parser.add_argument('--loaded', type=int, default=10000, help='zones that a loaded server has before; 0: none is')
    parser.add_argument('--fill', type=int, default=10000, help='domains of the pool that a server joins; 0: none')
    parser.add_argument('--rounds', type=int, default=2, help='of each, of which the better counts')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    options = parser.parse_args(argv)
    if options.quick:
        options.count, options.loaded = min(options.count, 100), min(options.loaded, 500)
        options.fill, options.rounds = min(options.fill, 200), 1
    return options


def _words(text: str) -> tuple[str, ...]:
    found = tuple(word.strip() for word in text.split(','))
    for word in found:
        if word not in MAKES:
            raise argparse.ArgumentTypeError(f'{word} is none of {", ".join(MAKES)}')
    return found


if __name__ == '__main__':
    sys.exit(main())
