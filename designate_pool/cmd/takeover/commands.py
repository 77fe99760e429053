"""``designate-pool-manage designate``."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from designate_pool import backends
from designate_pool.central.validation.masters import Network
from designate_pool.cmd.takeover import lists, switch, takeover_plan, zone_copy
from designate_pool.cmd.takeover.zone_copy import CopyReport
from designate_pool.config import load, pools, values
from designate_pool.errors import BadInput
from designate_pool.model import Pool, utcnow
from designate_pool.storage.designate import source, target
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage, Tx

#: Seconds between two passes of ``follow``.
INTERVAL = 5.0
#: Seconds for which nothing may change in Designate before the servers are turned, and for which these may rest then.
QUIET, PATIENCE = 10.0, 120.0
#: Seconds between two lines that tell how far a copy is.
_TOLD_EVERY = 5.0
_CONF = '/etc/designate/designate.conf'


def add(group: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands.

    :param command: makes the parser of one, given the group, its name and its function
    """
    planning = command(group, 'plan', plan)
    planning.add_argument('--pools', default='/etc/designate/pools.yaml', metavar='FILE',
                          help='pools.yaml; %(default)s if not given')
    planning.add_argument('--pool', help='which pool; all if it is not given')
    planning.add_argument('--output', metavar='FILE', help='write a configuration file for the pool')
    planning.add_argument('--minidns', metavar='ADDRESS[:PORT]',
                          help='where MiniDNS will listen, as the servers reach it; needed with --output')
    planning.add_argument('--connection', metavar='URL', default='file:/etc/designate-pool/database',
                          help='the database of this service, for the configuration file; %(default)s if not given')
    following = command(group, 'follow', follow)
    following.add_argument('--once', action='store_true', help='make one pass and end')
    following.add_argument('--interval', type=float, default=INTERVAL, metavar='SECONDS',
                           help='from the end of a pass to the next; %(default)g if not given')
    finishing = command(group, 'finish', finish)
    finishing.add_argument('--quiet', type=float, default=QUIET, metavar='SECONDS',
                           help='for how long nothing may change in Designate; %(default)g if not given')
    finishing.add_argument('--patience', type=float, default=PATIENCE, metavar='SECONDS',
                           help='for how long servers may make no progress; %(default)g if not given')
    finishing.add_argument('--compare', choices=('records', 'serials'), default='records',
                           help='what is compared on every server before and afterwards; records are transferred to '
                                'this host; %(default)s if not given')
    copying = command(group, 'copy', copy)
    for parser in (copying, following, finishing):
        parser.add_argument('--also', action='extend', nargs='+', default=[], metavar='FILE',
                            help='the configuration files of more pools, which are taken over in the same run')
    for parser in (planning, copying, following, finishing):
        parser.add_argument('--designate-conf', default=_CONF, metavar='FILE',
                            help="Designate's configuration, which names its database; %(default)s if not given")


def plan(conf: cfg.ConfigOpts) -> int:
    """Tell what can be taken over from Designate, and what cannot; nothing is written but the file of --output.

    The exit code is 1 if something cannot be taken over.
    """
    command = conf.command
    if command.output is not None and command.minidns is None:
        raise BadInput(why='--output needs --minidns, the address from which the servers will transfer zones')
    pools_by_name = {pool['name']: pool for pool in takeover_plan.read(command.pools)}
    if command.pool is not None and command.pool not in pools_by_name:
        raise BadInput(why=f'{command.pools} has no pool {command.pool}; it has {", ".join(pools_by_name)}')
    chosen = list(pools_by_name.values()) if command.pool is None else [pools_by_name[command.pool]]
    if command.output is not None and len(chosen) > 1:
        raise BadInput(why=f'{command.pools} has the pools {", ".join(pools_by_name)}; each has a configuration file '
                           'of its own, so --output needs --pool')
    networks = load.read_settings(conf).central.master_networks
    with contextlib.closing(_designate(conf)) as designate:
        reports = [takeover_plan.make(designate, pool, networks) for pool in chosen]
    print('\n\n'.join(report.text() for report in reports))
    if command.output is not None:
        try:
            minidns = values.endpoint(command.minidns, 5354)
        except ValueError as error:
            raise BadInput(why=f'--minidns: {error}') from None
        takeover_plan.write(command.output, takeover_plan.ini(chosen[0], minidns, command.connection))
        print(f"\nWritten to {command.output}; check it with 'config check'.")
    return 0 if all(report.ok for report in reports) else 1


def copy(conf: cfg.ConfigOpts) -> int:
    """Copy all that Designate has in the pools of the configurations; no server is told anything.

    It can be ended and run again at any time.  The exit code is 1 if something was not copied.
    """
    with _databases(conf) as databases:
        databases.write_pools(databases.pools)
        started = time.monotonic()
        problems = _tell_lists(databases.copy_lists(databases.pools))
        report = databases.zone_copy(databases.pools, _Progress()).run()
        # Once more, for what belongs to zones.
        problems |= _tell_lists(databases.copy_lists(databases.pools), set(problems))
    seconds = time.monotonic() - started
    print(f'{report.present} zones in Designate; written here: {report.zones} zones, {report.recordsets} recordsets, '
          f'{report.records} records in {seconds:.1f} s; {len(report.removed)} zones removed.')
    _tell_zones(report)
    return 1 if report.refused or problems else 0


def follow(conf: cfg.ConfigOpts) -> int:
    """Repeat what changes in Designate, until it is interrupted."""
    reported: set[str] = set()
    with _databases(conf) as databases:
        databases.write_pools(databases.pools)
        copying = databases.zone_copy(databases.pools)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                copied = databases.copy_lists(databases.pools)
                report = copying.run()
                if report.has_changes or any(copied.changed.values()):
                    changed = ', '.join(f'{count} {name}' for name, count in copied.changed.items() if count)
                    print(f'{utcnow():%H:%M:%S} {report.zones} zones written, {len(report.removed)} removed'
                          f'{changed and f", {changed}"}', flush=True)
                problems = _tell_lists(copied, reported) | _tell_zones(report, reported, conf.command.once)
                reported = problems
                if conf.command.once:
                    return 1 if problems else 0
                time.sleep(conf.command.interval)
    return 0


def finish(conf: cfg.ConfigOpts) -> int:
    """Turn the servers from Designate to MiniDNS, when nothing changes in Designate any more.

    MiniDNS and the pool managers have to run.  All zones are compared on each server before and afterwards.  If it ends
    before the servers have joined, it can be run again.
    """
    command, count = conf.command, 0
    with_records = command.compare == 'records'
    with _databases(conf) as databases:
        for pool in databases.pools.values():
            switch.refuse_silence(databases.storage, pool.name)
        resting = {pool_id: pool for pool_id, pool in databases.pools.items()
                   if not databases.storage.read(target.working_servers, pool_id)}
        if resting:
            databases.write_pools(resting)
            switch.refuse_movement(databases.zone_copy(resting), command.quiet)
            _tell_lists(databases.copy_lists(resting))
            switch.begin(databases.storage, resting, with_records)
        for pool_id, pool in databases.pools.items():
            count += switch.end(databases.storage, pool, pool_id, command.patience, with_records, _tell)
    print(f'All servers get their zones from here; each serves all {count} zones of its pool at the serials'
          f'{" and with the records" if with_records else ""} that they have here.')
    return 0


class _Progress:
    """Tells how far a copy is."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _TOLD_EVERY

    def __call__(self, report: CopyReport) -> None:
        if time.monotonic() >= self._next:
            print(f'{report.zones} zones, {report.recordsets} recordsets ...', flush=True)
            self._next = time.monotonic() + _TOLD_EVERY


def _tell_lists(report: lists.ListReport, told: set[str] = frozenset()) -> set[str]:  # type: ignore[assignment]
    for problem in report.refused:
        if problem not in told:
            print(f'not copied: {problem}', file=sys.stderr)
    return set(report.refused)


def _tell_zones(report: CopyReport, told: Sequence[str] | set[str] = (), with_waiting: bool = True) -> set[str]:
    problems = {f'zone {name}: {why}' for name, why in report.refused.items()}
    for problem in sorted(problems - set(told)):
        print(f'not copied: {problem}', file=sys.stderr)
    if report.waiting and with_waiting:
        print(f'{len(report.waiting)} zones are not settled in Designate ({report.waiting[0]} for example); '
              "'designate follow' takes them.")
    return problems


def _tell(text: str) -> None:
    print(text, flush=True)


@dataclasses.dataclass(frozen=True, slots=True)
class _Databases:
    """Designate's database and ours.

    :ivar pools: of our configurations, by their ids in both
    :ivar networks: that may have masters of secondary zones though they are private or local
    """

    designate: Storage
    storage: Storage
    theirs: Mapping[str, source.DesignatePool]
    pools: Mapping[str, Pool]
    networks: Sequence[Network]

    def write_pools(self, chosen: Mapping[str, Pool]) -> None:
        """Have these pools here, their servers out of service.

        :raises BadInput: when one cannot be taken over; then none is written
        """
        def write(tx: Tx) -> None:
            for pool_id, pool in chosen.items():
                lists.write_pool(tx, self.theirs[pool_id], pool, utcnow())

        self.storage.run(write)

    def copy_lists(self, chosen: Iterable[str]) -> lists.ListReport:
        return lists.copy(self.designate, self.storage, list(chosen))

    def zone_copy(self, chosen: Iterable[str],
                  progress: Callable[[CopyReport], None] = lambda report: None) -> zone_copy.ZoneCopy:
        return zone_copy.ZoneCopy(self.designate, self.storage, list(chosen), self.networks, progress)


@contextlib.contextmanager
def _databases(conf: cfg.ConfigOpts) -> Iterator[_Databases]:
    """Both databases, and the pools of the configurations.

    :raises BadInput: when these are of different databases, or have a pool in common
    """
    settings = load.read_settings(conf)
    configured = [pools.read_pool(conf, backends.options())]
    for path in conf.command.also:
        other = cfg.ConfigOpts()
        load.load(other, ['--config-file', path])
        if load.read_settings(other).database.connection != settings.database.connection:
            raise BadInput(why=f'{path} has another database than the first configuration')
        configured.append(pools.read_pool(other, backends.options()))
    names = [pool.name for pool in configured]
    if len(set(names)) < len(names):
        raise BadInput(why=f'these are not the configurations of different pools: {", ".join(names)}')
    with contextlib.closing(_designate(conf)) as designate, contextlib.closing(
            Storage(settings.database.connection, secrets_keys=settings.database.secrets_keys)) as storage:
        migrate.check(storage)
        theirs = {pool.row.id: pool for pool in lists.find_pools(designate, names)}
        yield _Databases(designate, storage, theirs, dict(zip(theirs, configured, strict=True)),
                         settings.central.master_networks)


def _designate(conf: cfg.ConfigOpts) -> Storage:
    """Designate's database, as its own configuration names it."""
    path = conf.command.designate_conf
    theirs = cfg.ConfigOpts()
    theirs.register_opt(cfg.StrOpt('connection', secret=True), group='storage:sqlalchemy')
    try:
        theirs([], project='designate', default_config_files=[path], default_config_dirs=[])
        url = theirs['storage:sqlalchemy'].connection
    except (cfg.Error, OSError, UnicodeError) as error:
        # The text of a parser's error quotes the line, which may contain a secret.
        raise BadInput(why=f'{path} cannot be read ({type(error).__name__})') from None
    if not url:
        raise BadInput(why=f'{path} has no connection in [storage:sqlalchemy]')
    designate = Storage(url)
    try:
        designate.read(source.check)
    except BaseException:  # also when it is interrupted, its connections are closed
        designate.close()
        raise
    return designate
