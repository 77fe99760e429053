"""The way over from a running Designate 23, with clients and a monitor."""

from __future__ import annotations

import contextlib
import pathlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dns.query
import dns.rdatatype
import dns.zone
import sqlalchemy as sa

from designate_pool.storage.designate import tables
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage, Tx
from testing.bind import Named
from testing.databases import MariaDB
from testing.processes import Process, free_port
from testing.rabbitmq import RabbitMq
from testing.stack import Stack
from tests.designate.on_the_way import Clients, Monitor
from tests.designate.running import SEEDED, RunningDesignate

#: Changes that clients make at each stage.
_CHANGES = 200
#: Zones that Designate creates before; others it has from the start, since it creates a few in a second.
_CREATED = 6


class Way:
    """Designate, this service and two BINDs, which get their zones from the one or the other."""

    def __init__(self, designate: RunningDesignate, stack: Stack, servers: Sequence[Named],
                 tell: Callable[[str], None]) -> None:
        self.monitor = Monitor(servers)
        self._designate = designate
        self._stack = stack
        self._servers = servers
        self._tell = tell
        self._clients = Clients(designate.request, self.monitor)
        self._begun = time.monotonic()
        self._patience = 600.0  # seconds; Designate gives a change up, and begins it again, on a busy machine

    def go(self, zones: int) -> None:
        """All of it; AssertionError for what must not be."""
        self._patience += zones / 2  # Designate takes long for many
        self._say(f'Designate gets {zones - _CREATED} zones that it has long had, and creates {_CREATED}')
        self._clients.adopt(self._designate.seed(zones - _CREATED), SEEDED)
        self._clients.create(_CREATED, self._patience)
        for server in self._servers:
            for name in self._clients.expected:
                assert server.serial(name) is not None, f'{server.folder.name} {name}'
        with self.monitor.running():
            self._over()
            self._say('clients change zones here')
            with self._clients.running():
                self._clients.await_changes(_CHANGES, self._patience)
            self._clients.wait_until_active(self._patience)
            self._compare_servers()
        self._say(f'{self._clients.changes} changes were accepted, {len(self._clients.expected)} zones are there; the '
                  f'monitor has asked {min(self.monitor.rounds)} times for each')
        assert not self.monitor.faults, '\n'.join(self.monitor.faults)

    def _over(self) -> None:
        with self._clients.running():
            self._command('copy')
            following = self._start('follow')
            self._clients.await_changes(_CHANGES, self._patience)
            assert following.running()
        self._say(f"Designate's API is stopped after {self._clients.changes} changes")
        self._clients.wait_until_active(self._patience)
        self._designate.stop('api')
        self._stack.launch('all')
        following.stop(signal.SIGINT)
        self._command('finish', until_quiet=True)
        self._compare_rows()
        self._designate.stop('producer', 'worker', 'mdns', 'central')
        self._clients.request = lambda method, path, body: self._stack.request(method, f'/v2/{path}', json=body)

    def _compare_servers(self) -> None:
        """Each server must have what the clients were promised."""
        for server in self._servers:
            for name, wanted in self._clients.expected.items():
                zone = dns.zone.from_xfr(dns.query.xfr(server.host, name, port=server.port, relativize=False),
                                         relativize=False)
                found = {(str(owner), dns.rdatatype.to_text(rdataset.rdtype)): sorted(map(str, rdataset))
                         for owner, rdataset in zone.iterate_rdatasets()
                         if rdataset.rdtype not in (dns.rdatatype.SOA, dns.rdatatype.NS)}
                assert found == wanted, f'{server.folder.name} {name}: {found} in place of {wanted}'

    def _compare_rows(self) -> None:
        """Both databases must have the same zones, recordsets and records, with the same ids, times and versions."""
        with contextlib.closing(Storage(self._designate.database)) as theirs, contextlib.closing(
                Storage(self._stack.database_url)) as ours:
            for kind in ('zones', 'recordsets', 'records'):
                wanted, found = theirs.read(_their_rows, kind), ours.read(_our_rows, kind)
                assert wanted and wanted == found, f'{kind}: {sorted(wanted ^ found, key=str)[:10]}'
                self._say(f'{len(wanted)} {kind} are the same in both databases')

    def _start(self, verb: str, *words: str) -> Process:
        return Process([str(pathlib.Path(sys.executable).parent / 'designate-pool-manage'), '--config-file',
                        str(self._stack.config), 'designate', verb, '--designate-conf', str(self._designate.conf),
                        *words], self._stack.folder / f'{verb}.log').start()

    def _command(self, verb: str, *words: str, until_quiet: bool = False) -> None:
        """
        :param until_quiet: whether it is run again while Designate still writes its rows, for which it has time
        """
        begun = time.monotonic()
        while True:
            process = self._start(verb, *words)
            code = process.wait(1800)
            if not until_quiet or 'Designate has changed' not in process.tail(300) or (
                    time.monotonic() - begun > self._patience):
                break
        assert code == 0, f'{verb} ended with {code}:\n{process.tail()}\n{self._stack.logs()}'
        self._say(f'{verb}: {process.tail(300).strip().splitlines()[-1]} ({time.monotonic() - begun:.1f} s)')

    def _say(self, text: str) -> None:
        self._tell(f'{time.monotonic() - self._begun:7.1f} s  {text}')


@contextlib.contextmanager
def a_way(venv: pathlib.Path, folder: pathlib.Path, tell: Callable[[str], None]) -> Iterator[Way]:
    """Everything started, and nothing taken over."""
    with contextlib.ExitStack() as started:
        database = started.enter_context(MariaDB())
        broker = started.enter_context(RabbitMq(folder / 'broker'))
        servers = [started.enter_context(Named(folder / name)) for name in ('one', 'two')]
        designate = started.enter_context(RunningDesignate(venv, folder / 'designate', database.create_database(),
                                                           broker.url, servers))
        stack = _stack(designate, folder, database.create_database())
        started.callback(stack.stop)
        yield Way(designate, stack, servers, tell)


def _stack(designate: RunningDesignate, folder: pathlib.Path, database: str) -> Stack:
    """This service, with the servers that ``plan`` writes into its configuration."""
    port, made = free_port(), folder / 'made.conf'
    stack = Stack(folder / 'ours', [], database, minidns_port=port, manager={})
    stack.manage('database', 'upgrade')
    stack.manage('designate', 'plan', '--designate-conf', str(designate.conf), '--pools', str(designate.pools),
                 '--output', str(made), '--minidns', f'127.0.0.1:{port}', '--connection', database)
    stack.configure(stack.config, [made.read_text().partition('# bind9 ')[2].partition('\n')[2]], stack.threshold)
    return stack


def _their_rows(tx: Tx, kind: str) -> set[tuple[Any, ...]]:
    """What has to be the same here, of all rows of live zones."""
    zones, sets, records = tables.zones, tables.recordsets, tables.records
    statement: sa.Select[Any] = {
        'zones': sa.select(*(zones.c[name] for name in _ZONE), zones.c.tenant_id, *_times(zones)),
        'recordsets': sa.select(*(sets.c[name] for name in _SET), sets.c.zone_id, *_times(sets))
        .join(zones, zones.c.id == sets.c.zone_id),
        'records': sa.select(*(records.c[name] for name in _RECORD), records.c.zone_id, records.c.serial,
                             *_times(records))
        .join(zones, zones.c.id == records.c.zone_id).join(sets, sets.c.id == records.c.recordset_id)
        .where(sets.c.type != 'SOA'),  # generated here
    }[kind]
    return set(tx.execute(statement.where(zones.c.deleted == '0')).tuples())


def _our_rows(tx: Tx, kind: str) -> set[tuple[Any, ...]]:
    domains, sets, records = schema.domains, schema.recordsets, schema.records
    statement: sa.Select[Any] = {
        'zones': sa.select(*(domains.c[name] for name in _ZONE), domains.c.project_id, *_times(domains)),
        'recordsets': sa.select(*(sets.c[name] for name in _SET), sets.c.domain_id, *_times(sets))
        .join(domains, domains.c.id == sets.c.domain_id),
        'records': sa.select(*(records.c[name] for name in _RECORD), records.c.domain_id, records.c.serial_number,
                             *_times(records)).join(domains, domains.c.id == records.c.domain_id),
    }[kind]
    return set(tx.execute(statement.where(domains.c.deleted == '0')).tuples())


def _times(table: sa.Table) -> tuple[Any, ...]:
    return table.c.created_at, sa.func.coalesce(table.c.updated_at, table.c.created_at)


_ZONE = ('id', 'version', 'name', 'email', 'description', 'ttl', 'serial', 'refresh', 'retry', 'expire', 'minimum')
_SET = ('id', 'version', 'name', 'type', 'ttl', 'description')
_RECORD = ('id', 'version', 'recordset_id', 'data')
