"""``designate-pool-manage designate``.

Its end turns the servers of a pool from Designate's MiniDNS to ours: they join the pool, whose running pool managers
create each zone on them: a driver gives an existing zone new primaries, and it stays served.  Every zone is compared on
each server with the one here before and afterwards: its serial, and its records as the server transfers them.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from dns.tsig import Key
from oslo_config import cfg

from designate_pool import backends
from designate_pool.central.validation.masters import Network
from designate_pool.cmd.takeover import lists, takeover_plan
from designate_pool.cmd.takeover.zone_copy import CopyReport, ZoneCopy
from designate_pool.config import load, pools
from designate_pool.deadline import Deadline
from designate_pool.errors import BadInput
from designate_pool.model import Endpoint, PageRequest, Pool, Server, ServerState, some, utcnow
from designate_pool.pool_manager.dispatch import zone_compare
from designate_pool.pool_manager.dispatch.zone_compare import Match
from designate_pool.protocol import soa_exchange, tsig
from designate_pool.protocol.axfr_inbound import Pace
from designate_pool.runtime import Threads
from designate_pool.storage.designate import source, target
from designate_pool.storage.designate.target import Copied
from designate_pool.storage.operations import heartbeats, pool_servers
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
    """Add the commands, whose parsers *command* makes, given the group, a name and a function."""
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
            minidns = Endpoint.parse(command.minidns.strip(), 5354)
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
        problems = databases.copy_lists(databases.pools)
        report = databases.zone_copy(databases.pools, _Progress()).run()
        # Once more, for what belongs to zones.
        problems |= databases.copy_lists(databases.pools, problems)
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
                copied = lists.copy(databases.designate, databases.storage, databases.pools)
                report = copying.run()
                if report.has_changes or any(copied.changed.values()):
                    changed = ', '.join(f'{count} {name}' for name, count in copied.changed.items() if count)
                    print(f'{utcnow():%H:%M:%S} {report.zones} zones written, {len(report.removed)} removed'
                          f'{changed and f", {changed}"}', flush=True)
                reported = _tell_problems(copied.refused, reported) | _tell_zones(report, reported, conf.command.once)
                if conf.command.once:
                    return 1 if reported else 0
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
            refuse_silence(databases.storage, pool.name)
        resting = {pool_id: pool for pool_id, pool in databases.pools.items()
                   if not databases.storage.read(target.working_servers, pool_id)}
        if resting:
            databases.write_pools(resting)
            refuse_movement(databases.zone_copy(resting), command.quiet)
            databases.copy_lists(resting)
            for pool_id, pool in resting.items():
                refuse_differences(databases.storage, pool, pool_id, with_records, 'The servers are left as they are')
            databases.storage.run(target.begin_service, list(resting), databases.storage.now())
        for pool_id, pool in databases.pools.items():
            _wait(databases.storage, pool.name, command.patience)
            count += refuse_differences(databases.storage, pool, pool_id, with_records, 'All have joined')
    print(f'All servers get their zones from here; each serves all {count} zones of its pool at the serials'
          f'{" and with the records" if with_records else ""} that they have here.')
    return 0


class _Progress:

    def __init__(self) -> None:
        self._next = time.monotonic() + _TOLD_EVERY

    def __call__(self, report: CopyReport) -> None:
        if time.monotonic() >= self._next:
            print(f'{report.zones} zones, {report.recordsets} recordsets ...', flush=True)
            self._next = time.monotonic() + _TOLD_EVERY


def _tell_zones(report: CopyReport, printed: Collection[str] = (), with_waiting: bool = True) -> set[str]:
    problems = _tell_problems(sorted(f'zone {name}: {why}' for name, why in report.refused.items()), printed)
    if report.waiting and with_waiting:
        print(f'{len(report.waiting)} zones are not settled in Designate ({report.waiting[0]} for example); '
              "'designate follow' takes them.")
    return problems


def _tell_problems(problems: Iterable[str], printed: Collection[str] = ()) -> set[str]:
    for problem in problems:
        if problem not in printed:
            print(f'not copied: {problem}', file=sys.stderr)
    return set(problems)


@dataclasses.dataclass(frozen=True, slots=True)
class _Databases:
    """Designate's database and ours, and the pools of our configurations, by their ids in both."""

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
                lists.write_pool(tx, self.theirs[pool_id], pool, self.storage.now())

        self.storage.run(write)

    def copy_lists(self, chosen: Iterable[str], printed: Collection[str] = ()) -> set[str]:
        """Copy what these pools have beside zones; the problems, of which those *printed* are not printed again."""
        return _tell_problems(lists.copy(self.designate, self.storage, chosen).refused, printed)

    def zone_copy(self, chosen: Iterable[str], *progress: Callable[[CopyReport], None]) -> ZoneCopy:
        return ZoneCopy(self.designate, self.storage, chosen, self.networks, *progress)


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


#: Services that the pool needs.
NEEDED = ('minidns', 'pool_manager')
#: Zones that are asked for at once, and the seconds for which they are asked for.
_PAGE, _SECONDS = 2000, 30.0
#: Zones that an error names.
_SHOWN = 20
_PAUSE = 0.2
#: Zones that are compared at the same time.
_THREADS = 4


def refuse_movement(copying: ZoneCopy, quiet: float) -> None:
    """Take the last changes; refuse if Designate changes zones within *quiet* seconds, or one cannot be taken over."""
    for seconds in (quiet, 0.0):
        report = copying.run()
        if report.waiting:
            raise BadInput(why=f'{len(report.waiting)} zones are not settled in Designate: '
                               f'{some(report.waiting, _SHOWN)}; stop its API, and wait until they are')
        if report.refused:
            raise BadInput(why='these zones are not here as Designate has them: '
                               + '; '.join(f'{name} ({why})' for name, why in sorted(report.refused.items())[:_SHOWN]))
        if not seconds and report.has_changes:
            raise BadInput(why=f'Designate has changed {report.zones + len(report.removed)} zones within {quiet:g} s; '
                               'stop its API')
        time.sleep(seconds)


def refuse_silence(storage: Storage, pool_name: str) -> None:
    """Refuse to go on while a needed program of the pool does not run."""
    live = {heartbeat.service_name for heartbeat in storage.read(
        heartbeats.find, PageRequest({'status': heartbeats.UP}), storage.now() - timedelta(seconds=heartbeats.SILENCE))
        if heartbeat.pool_name in (pool_name, '')}
    for name in NEEDED:
        if name not in live:
            raise BadInput(why=f'no {name.replace("_", " ")} of the pool {pool_name} runs; start it with this '
                               'configuration')


def refuse_differences(storage: Storage, pool: Pool, pool_id: str, with_records: bool, then: str) -> int:
    """Refuse to go on while a server serves other serials or records than are here; how many zones are compared.

    :raises BadInput: when one does, or they cannot be compared
    """
    expected = {copied.name: copied.serial for page in _served(storage, pool_id) for copied in page}
    for server in pool.servers:
        key = None if server.tsig_key is None or server.verify else tsig.key_from(server.tsig_key)
        for where in server.verify or (server.endpoint,):
            serials = _serials_at(where, key, sorted(expected))
            wrong = [f'{name} at {serials[name] or "no serial"} in place of {serial}'
                     for name, serial in sorted(expected.items()) if serials[name] != serial]
            if wrong:
                raise BadInput(why=f'{server.label} serves {len(wrong)} zones otherwise at {where}: '
                                   f'{some(wrong, _SHOWN)}. {then}')
    if with_records:
        _refuse_records(storage, pool, pool_id, then)
    return len(expected)


def _served(storage: Storage, pool_id: str) -> Iterator[list[Copied]]:
    """The pool's domains in pages, without those that no server can have yet."""
    after = ''
    while page := storage.read(target.page, pool_id, after, _PAGE):
        yield [copied for copied in page if not copied.awaits_first]
        after = page[-1].id


def _serials_at(where: Endpoint, key: Key | None, names: Sequence[str]) -> dict[str, int | None]:
    """The serials of zones at an address; None for one without an answer."""
    serials: dict[str, int | None] = {}
    for start in range(0, len(names), _PAGE):
        try:
            replies = soa_exchange.ask(where.host, where.port, key, names[start:start + _PAGE], Deadline(_SECONDS))
        except OSError as error:
            raise BadInput(why=f'{where} does not answer: {error.strerror or error}') from None
        serials.update((name, None if reply is None else reply.serial) for name, reply in replies.items())
    return serials


def _refuse_records(storage: Storage, pool: Pool, pool_id: str, then: str) -> None:
    threads = Threads().workers(_THREADS, name='compare')
    paces = {server.id: Pace(0.0) for server in pool.servers}
    wrong: dict[str, list[str]] = {}
    try:
        for page in _served(storage, pool_id):
            futures = [(copied.name, threads.submit(_compare, storage, pool.servers, paces, copied.id))
                       for copied in page]
            for name, future in futures:
                for label, why in future.result():
                    wrong.setdefault(label, []).append(f'{name}: {why}')
    finally:
        threads.stop()
    for label, zones in wrong.items():
        raise BadInput(why=f'{label} does not have {len(zones)} zones as they are here, or does not show them: '
                           f'{some(zones, _SHOWN)}. {then}; where transfers to this host cannot be allowed, '
                           '--compare serials compares without them')


def _compare(storage: Storage, servers: Sequence[Server], paces: Mapping[str, Pace],
             domain_id: str) -> list[tuple[str, str]]:
    ours = zone_compare.ours(storage, domain_id)
    if ours is None:
        return [(server.label, 'it is not served from here') for server in servers]
    comparisons = [(server.label, zone_compare.compare(server, ours, paces[server.id])) for server in servers]
    return [(label, comparison.why) for label, comparison in comparisons if comparison.match is not Match.SAME]


def _wait(storage: Storage, pool_name: str, patience: float) -> None:
    """Wait until the servers have joined; refuse when nothing has gone on for *patience* seconds."""
    last: tuple[int, int] | None = None
    end = time.monotonic() + patience
    while True:
        members = storage.read(pool_servers.of_pool, pool_name).servers
        servers = [member for member in members if member.state is ServerState.JOINING]
        resting = [member.label for member in members if member.state is ServerState.MAINTENANCE]
        if resting:
            raise BadInput(why=f'{some(resting, _SHOWN)} is in maintenance; have it in service, and run finish again')
        if not servers:
            return
        now = (sum(server.filled for server in servers),
               sum(storage.read(pool_servers.waiting, server.id) for server in servers))
        if now != last:
            last, end = now, time.monotonic() + patience
            print(f'{len(servers)} servers join; {now[0]} zones begun, {now[1]} operations to be done', flush=True)
        elif time.monotonic() > end:
            failures = [f'{server.label}: {name} {why}' for server in servers for name, _, why in
                        storage.read(pool_servers.report, server, 0, storage.now(), whole=True).failures]
            raise BadInput(why=f'{servers[0].label} has not joined yet'
                               f'{failures and f" ({some(failures, _SHOWN)})" or ""}; run finish again to go on '
                               'waiting')
        time.sleep(_PAUSE)
