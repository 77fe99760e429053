"""``designate-pool-sync``: applies zones from files to the pool, once or in a loop.

With ``--once`` it works as ``designate-pool apply --yes``: an unsafe plan keeps everything from being applied, and any
failure makes the exit code 1.  The loop survives every failure: an unsafe plan waits to be forced, what failed is
logged and tried at the next run, and all else is applied.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import pathlib
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from designate_pool.api.auth.reloaded_file import file_stamp
from designate_pool.cli.client import Client
from designate_pool.cli.commands.plan_apply import PLANNING_SECONDS, approve_forced, waiting
from designate_pool.cli.connection import ApiConnection, CliError
from designate_pool.cmd.compose import program
from designate_pool.cmd.compose.program import Signals
from designate_pool.errors import PoolError
from designate_pool.planner import config_file
from designate_pool.planner.engine import SyncEngine
from designate_pool.planner.plan.plan import ApplyResult
from designate_pool.planner.run_report import RunReport
from designate_pool.planner.targets.pool import PoolProvider

LOG = logging.getLogger(__name__)
INTERVAL, MIN_EVENT_INTERVAL = 60.0, 5.0
#: Seconds between two checks of files; less where runs may follow each other faster.
FILE_CHECK = 1.0
#: Seconds for a run that is under way to end when the program stops; the next run does the rest.
GRACE = 1.0

Stamp = tuple[int, int, int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run once, or again and again; the exit status, 1 when it cannot begin or one run failed."""
    options = _parser().parse_args(argv)
    program.log_to_stderr()
    try:
        runs = SyncRuns(options.config, options.force, options.dry_run)
        if options.once:
            return 1 if runs.once().failed else 0
    except (PoolError, CliError, OSError) as error:
        print(f'designate-pool-sync: {error}', file=sys.stderr)
        return 1
    return _loop(runs, options.interval, options.min_event_interval, options.events)


class SyncRuns:
    """Runs with a configuration that is read again when it has changed; *force*: zones that unsafe plans may change."""

    def __init__(self, path: str, force: Sequence[str], dry_run: bool) -> None:
        self.path = pathlib.Path(path)
        self._force = frozenset(force)
        self._dry_run = dry_run
        self._stamps: dict[pathlib.Path, Stamp | None] = {self.path: file_stamp(self.path)}
        self.setup = config_file.read(self.path)
        self._stamps |= {path: file_stamp(path) for path in self.setup.included}

    def read(self) -> None:
        """Read the configuration again.

        :raises BadConfiguration: with every mistake; the old configuration stays in use
        """
        # Before reading: what is written meanwhile is read the next time.
        self._stamps = {path: file_stamp(path) for path in (self.path, *self.setup.included)}
        setup = config_file.read(self.path)
        self._stamps |= {path: file_stamp(path) for path in setup.included if path not in self._stamps}
        for provider in self.setup.providers.values():
            provider.close()
        self.setup = setup

    def once(self) -> RunReport:
        """One run; raises UnsafePlan, and applies nothing, when a plan is unsafe and not forced."""
        return self._run(self._force)

    def repeat(self) -> None:
        """One run of the loop: unsafe plans wait, all others are applied."""
        self._read_if_changed()
        report = self._run(self._forced_now(), skip_unsafe=True)
        applied: dict[str, list[ApplyResult]] = {}
        for result in report.results:
            if result.is_unsafe and not self._dry_run:
                LOG.error('%s Not applied. If it is meant: designate-pool apply --yes %s --target %s --force %s '
                          '--config %s', result.dangers[0], result.zone, result.target_id, result.zone, self.path)
            elif result.result is not None:
                applied.setdefault(result.target_id, []).append(result.result)
        for target, results in applied.items():
            LOG.info('%s: %d changes applied, %d zones failed', target, sum(results),
                     sum(not result.ok for result in results))

    def forget(self) -> None:
        """Read the configuration at the next run, even if its file has not changed."""
        self._stamps = {self.path: None}

    def folders(self) -> Iterator[pathlib.Path]:
        """The files and folders of the zones' sources, and the configuration, with those that they include."""
        yield from (self.path, *self.setup.included)
        names = {source for zone in self.setup.zones.values() for source in zone.sources}
        for provider in (self.setup.providers[name] for name in names if name in self.setup.providers):
            for attribute in ('directory', 'file'):
                if isinstance(path := getattr(provider, attribute, None), (str, pathlib.Path)):
                    yield pathlib.Path(path)
            yield from getattr(provider, 'included', ())

    def stamps(self) -> Mapping[str, Stamp | None]:
        """The stamp of each file of :meth:`folders`, but for hidden ones, and what each run writes itself."""
        written = {pathlib.Path(output.output_filename).resolve() for output in self.setup.outputs
                   if output.output_filename is not None}
        return {str(path): file_stamp(path) for root in self.folders() for path in _files(root)
                if not written or path.resolve() not in written}

    def _read_if_changed(self) -> None:
        if self._stamps == {path: file_stamp(path) for path in self._stamps}:
            return
        try:
            self.read()
            LOG.info('%s was read again', self.path)
        except PoolError as error:
            LOG.error('%s cannot be used, the old one still is: %s', self.path, error)

    def _forced_now(self) -> frozenset[str]:
        """The forced zones that exist now; one may be gone, or its source may be unable to list it."""
        forced = self._force.intersection(SyncEngine(self.setup).zones() if self._force else ())
        for name in sorted(self._force - forced):
            LOG.warning('%s is to be forced, but there is no such zone at present', name)
        return forced

    def _run(self, force: Collection[str], skip_unsafe: bool = False) -> RunReport:
        """Plan and apply, and approve what servers that are fed by records park of a change that is forced."""
        engine = SyncEngine(self.setup)
        if self._dry_run:
            return engine.sync(force=force)
        pools, before = dict[str, Client](), set[tuple[str, str]]()
        for target_id, target in self.setup.providers.items() if force else ():
            if isinstance(target, PoolProvider):
                with _alone(target_id, skip_unsafe):
                    api = Client(target.url, settings=ApiConnection(token=target.token))
                    before.update(*(waiting(api, zone) for zone in force))
                    pools[target_id] = api
        report = engine.sync(dry_run=False, force=force, skip_unsafe=skip_unsafe)
        for part in report.results:
            if part.zone in force and part.target_id in pools and (
                    part.applied_before or part.result is not None and part.result.ok):
                with _alone(part.target_id, skip_unsafe):
                    approve_forced(pools[part.target_id], part.zone, before, time.monotonic() + PLANNING_SECONDS,
                                   sys.stderr)
        return report


@contextlib.contextmanager
def _alone(target_id: str, others_go_on: bool) -> Iterator[None]:
    """Log that the API of a target cannot be asked, where the run goes on for others; else that is its error."""
    try:
        yield
    except CliError as error:
        if not others_go_on:
            raise
        LOG.error('%s: %s', target_id, error)


def run_repeatedly(run: Callable[[], object], interval: float, min_event_interval: float, hasten: threading.Event,
                   stop: threading.Event) -> None:
    """Run at the start, then at an interval, and earlier after an event, until *stop* is set; no failure ends that.

    :param min_event_interval: the least seconds from the start of one run to the start of the next
    :param hasten: is set by an event, and together with *stop*
    """
    while True:
        began = time.monotonic()
        hasten.clear()
        if stop.is_set():  # not before, or the end that comes meanwhile would hasten nothing
            return
        try:
            run()
        except Exception:  # a provider may raise anything; the loop continues
            LOG.exception('A run failed; the next starts in at most %.0f seconds', interval)
        stop.wait(max(0.0, began + min_event_interval - time.monotonic()))
        hasten.wait(max(0.0, began + interval - time.monotonic()))


def _files(root: pathlib.Path) -> Iterator[pathlib.Path]:
    if not root.is_dir():
        yield root
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith('.')]
        yield from (pathlib.Path(folder, file) for file in files if not file.startswith('.'))


def _loop(runs: SyncRuns, interval: float, min_event_interval: float, events: bool) -> int:
    """Run until SIGTERM or SIGINT, which are handled at once, since runs have a thread of their own."""
    signals, hasten, stop = Signals(), threading.Event(), threading.Event()
    seen = last = runs.stamps() if events else {}
    thread = threading.Thread(target=run_repeatedly, args=(runs.repeat, interval, min_event_interval, hasten, stop),
                              name='runs', daemon=True)
    thread.start()
    print('sync: ready', file=sys.stderr, flush=True)
    while not signals.stop:
        signals.wait(min(FILE_CHECK, min_event_interval))
        if signals.hangup:
            signals.hangup = False
            runs.forget()
            hasten.set()
        if events:
            before, last = last, runs.stamps()
            if last != seen and last == before:  # not while they are still being written
                LOG.info('files have changed')
                seen = last
                hasten.set()
    LOG.info('stopping')
    stop.set()
    hasten.set()
    thread.join(GRACE)
    if thread.is_alive():
        LOG.warning('stopped in the middle of a run; the next run does the rest')
        logging.shutdown()
        # Leaving normally would wait for its workers.
        os._exit(0)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = program.argument_parser('designate-pool-sync', 'Keeps zones of the pool as they are in files: plans and '
                                     'applies again and again.')
    parser.add_argument('--config', required=True, metavar='FILE',
                        help='the configuration; it is read again when it has changed')
    parser.add_argument('--once', action='store_true', help='make one run; the exit code is 1 if anything in it failed')
    parser.add_argument('--interval', type=_seconds, default=INTERVAL, metavar='SECONDS',
                        help=f'from the start of one run to the start of the next (default: {INTERVAL:g})')
    parser.add_argument('--events', action='store_true',
                        help="run also as soon as files of the sources or the configuration change")
    parser.add_argument('--min-event-interval', type=_seconds, default=MIN_EVENT_INTERVAL, metavar='SECONDS',
                        help=f'the least time between the starts of two runs (default: {MIN_EVENT_INTERVAL:g})')
    parser.add_argument('--dry-run', action='store_true', help='only show what would be done')
    parser.add_argument('--force', type=program.zone, action='append', default=[], metavar='ZONE',
                        help='a zone that may be changed though its plan is unsafe; may be given more than once')
    return parser


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f'{text!r} is no number of seconds')
    return value


if __name__ == '__main__':
    sys.exit(main())
