"""Who belongs to the pool: the configuration's servers against the database's, at the start, on SIGHUP, and afterwards.

The configuration says how a server is reached, the database where it stands.  Whoever reads the configuration at its
start or on command writes what has changed into the database; the other pool managers see that it was read, read it
too, and write nothing, so an older file on another host undoes nothing until that host is told to read it.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from designate_pool import backends
from designate_pool.backends.base import Backend
from designate_pool.errors import InvalidField, PoolError
from designate_pool.model import Pool, PoolServer, Reloaded, Server, ServerState, utcnow
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.reconcile.membership import Members
from designate_pool.storage.operations import pool_servers as server_store
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import pools
from designate_pool.storage.zones import pools as pool_store

LOG = logging.getLogger(__name__)


class SettingsCache(Protocol):
    """What outlives the process: the settings of servers whose section has changed or gone while they are needed."""

    def read(self) -> tuple[Mapping[str, Server], Mapping[str, Server]]:
        """The settings that were last in force, and the former ones that are still needed, by server id."""

    def write(self, servers: Mapping[str, Server], former: Mapping[str, Server]) -> None: ...


class ServerRegistry:
    """Keeps a :class:`Manager`'s servers those of the configuration and the database.

    :param read_pool: reads the configuration anew
    :ivar former: drivers with the settings that a server had before, while its zones have yet to be taken from it
    """

    def __init__(self, manager: Manager, runtime: Any, read_pool: Callable[[], Pool], kept: SettingsCache) -> None:
        self._manager = manager
        self._runtime = runtime
        self._read_pool = read_pool
        self._kept = kept
        self._lock = threading.Lock()
        self._reloads: int | None = None
        self._is_lost = False
        self._former_settings: dict[str, Server] = {}
        self.former: dict[str, Backend] = {}

    def start(self) -> None:
        """Enter the servers of the configuration that the program was started with."""
        with self._lock:
            last, former = self._kept.read()
            for lane in self._manager.all_lanes.values():
                _warn(lane.backend)
            self._register(self._manager.pool, last, former, on_command=False)

    def reload(self) -> Reloaded:
        """Read the configuration anew and make it so.

        :raises PoolError: when it is wrong; nothing has changed then
        """
        with self._lock:
            pool = self._read_pool()
            lanes = self._lanes(pool)
            last = {key: lane.server for key, lane in self._manager.all_lanes.items()}
            done = self._register(pool, last, self._former_settings, on_command=True, lanes=lanes)
        LOG.info('the configuration was read again: %s', told(done) or 'the servers are the same')
        return done

    def refresh(self) -> None:
        """See where the servers stand now, and whether the configuration was read again elsewhere."""
        with self._lock:
            roll = self._manager.storage.read(server_store.of_pool, self._manager.pool.name)
            if not roll.pool_id:
                self._lose()
                return
            if self._is_lost:
                self._return()
                return
            if self._reloads is not None and roll.reloads != self._reloads:
                self._follow(roll.servers)
            self._reloads = roll.reloads
            self._seat(roll.servers, self._manager.all_lanes)
            self._manager.also_notifies = self._manager.storage.ask(pool_store.also_notifies, self._manager.pool.name)

    def finished(self, server_id: str) -> None:
        """The server's former settings are not needed any more."""
        with self._lock:
            backend = self.former.pop(server_id, None)
            if backend is not None:
                backend.close()
            if self._former_settings.pop(server_id, None) is not None:
                self._keep()

    def _lose(self) -> None:
        """The pool was deleted while this program runs, or has another name: there is nothing to do any more."""
        if not self._is_lost:
            name = self._manager.pool.name
            LOG.error("the pool %s is not in the database any more: it was deleted or renamed, and this program does "
                      "nothing now. Stop it, correct pool_name, or 'designate-pool-manage pool create %s'",
                      name, name)
            self._seat((), self._manager.all_lanes)
        self._is_lost = True

    def _return(self) -> None:
        try:
            self._register(self._manager.pool, *self._kept.read(), on_command=False)
        except PoolError as error:
            LOG.error('the pool %s is in the database again but cannot be used yet: %s', self._manager.pool.name, error)
            return
        self._is_lost = False
        LOG.info('the pool %s is there again', self._manager.pool.name)

    def _register(self, pool: Pool, last: Mapping[str, Server], former: Mapping[str, Server], on_command: bool,
                  lanes: Mapping[str, ServerWorker] | None = None) -> Reloaded:
        manager = self._manager
        done = manager.storage.run(_enter, pool, manager.settings.delete_zones_of_removed_servers, on_command, utcnow())
        roll = manager.storage.read(server_store.of_pool, pool.name)
        self._reloads = roll.reloads
        manager.pool = pool
        self._seat(roll.servers, manager.all_lanes if lanes is None else lanes)
        self._remember(last, former)
        return done

    def _follow(self, servers: Sequence[PoolServer]) -> None:
        """Somebody read the configuration anew: do the same with ours, without entering anything.

        :param servers: as they stand since then
        """
        try:
            pool = self._read_pool()
            lanes = self._lanes(pool)
        except PoolError as error:
            LOG.error("another program read the configuration again, but this host's has mistakes and is not used: "
                      "%s", error)
            return
        last = {key: lane.server for key, lane in self._manager.all_lanes.items()}
        self._manager.pool = pool
        self._seat(servers, lanes)
        self._remember(last, self._former_settings)

    def _lanes(self, pool: Pool) -> dict[str, ServerWorker]:
        """A lane for each server; those whose settings are the same, secrets included, are kept."""
        manager = self._manager
        if pool.name != manager.pool.name:
            raise InvalidField(field='[service:pool_manager] pool_name', why='it takes a restart to change it')
        before = {key: lane.backend for key, lane in manager.all_lanes.items()}
        after = backends.build_all(pool, before)
        lanes: dict[str, ServerWorker] = {}
        for server in pool.servers:
            lane = manager.all_lanes.get(server.id)
            if lane is None or lane.server != server:
                _warn(after[server.id])
                lane = manager.new_lane(server, after[server.id])
            lanes[server.id] = lane
        return lanes

    def _seat(self, servers: Sequence[PoolServer], lanes: Mapping[str, ServerWorker]) -> None:
        manager = self._manager
        before, old = manager.members, manager.all_lanes
        manager.seat(Members.of(servers, manager.settings.count_joining_servers), lanes)
        for key, lane in old.items():
            if lanes.get(key) is not lane:
                self._runtime.spawn(lane.stop, name=f'{lane.server.label}/end')
        states = {each.id: each.state for each in before.servers}
        for each in servers:
            if states.get(each.id) not in (None, each.state):
                LOG.info('%s is %s now%s', each.label, each.state, f': {each.note}' if each.note else '')

    def _remember(self, last: Mapping[str, Server], former: Mapping[str, Server]) -> None:
        """Keep the settings that zones are still to be taken away with: of servers that are gone or have moved."""
        now = {key: lane.server for key, lane in self._manager.all_lanes.items()}
        needed = dict(former)
        for each in self._manager.members.servers:
            was, new = last.get(each.id), now.get(each.id)
            moved = new is not None and was is not None and _lets_go(was, new)
            leaves = new is None and each.state is ServerState.DRAINING and each.delete_zones
            if was is not None and (moved or leaves):
                needed.setdefault(each.id, was)
        known = {each.id for each in self._manager.members.servers if each.state is not ServerState.REMOVED}
        for key in [key for key in needed if key not in known]:
            del needed[key]
        self._former_settings = needed
        self.former = {key: self.former.get(key) or backends.build(server) for key, server in needed.items()}
        self._keep()

    def _keep(self) -> None:
        self._kept.write({key: lane.server for key, lane in self._manager.all_lanes.items()}, self._former_settings)


def _enter(tx: Tx, pool: Pool, delete_zones: bool, on_command: bool, now: datetime) -> Reloaded:
    """Write what the configuration says of a pool and its servers; what that changed."""
    wanted = [PoolServer(each.id, '', each.label, each.driver, ServerState.ACTIVE, fingerprint(each), position,
                         key_name=None if each.tsig_key is None else each.tsig_key.name)
              for position, each in enumerate(pool.servers)]
    done = server_store.register(tx, pool.name, wanted, delete_zones, on_command, now,
                                 has_catalog=pool.catalog_zone is not None)
    pools.publish(tx, pool, now)
    return done


def fingerprint(server: Server) -> str:
    """Of all that a server's zones are made with; a secret counts only by being there.

    64 hexadecimal digits.
    """
    secret = {option.name for option in backends.driver_class(server.driver).OPTIONS if option.secret}
    key = server.tsig_key
    options = {name: bool(value) if name in secret else value for name, value in server.options.items()}
    facts = (server.driver, server.host, server.port, key and (key.name, key.algorithm),
             [str(primary) for primary in server.primaries], sorted(options.items()))
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def told(done: Reloaded) -> str:
    """What reading the configuration changed, in words."""
    parts = [('joining', done.joined), ('changed', done.changed), ('draining', done.draining)]
    return '; '.join(f'{word}: {", ".join(labels)}' for word, labels in parts if labels)


def _lets_go(was: Server, new: Server) -> bool:
    """Whether the same machine got another driver, and the former one has to delete what it made there."""
    return (was.driver != new.driver and was.host == new.host
            and not backends.driver_class(was.driver).capabilities.reads_catalog)


def _warn(backend: Backend) -> None:
    for finding in backend.check_files():
        LOG.warning('%s: %s (%s)', backend.server.label, finding.what, finding.advice)
