"""The servers of the pool: those of the configuration, with the states that they have in the database.

The configuration says how a server is reached, the database in which state it is.  A pool manager that reads the
configuration at its start or on command writes the changes to the database.  The others see that it was read and read
their own files again, but write nothing: an older file on another host undoes nothing until it is read on command.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from designate_pool import backends
from designate_pool.backends.base import Backend
from designate_pool.concurrency import Wakeable
from designate_pool.consensus import Members
from designate_pool.errors import InvalidField, PoolError, ServiceUnavailable
from designate_pool.logs import OutageLog
from designate_pool.model import Endpoint, Pool, PoolServer, Reloaded, Server, ServerState, TsigKey
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.manager import Manager
from designate_pool.protocol import rules
from designate_pool.rpc.change_announcer import ChangeAnnouncer
from designate_pool.storage.operations import pool_servers as server_store
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import pools as pool_store

LOG = logging.getLogger(__name__)
#: The classes in the file of :class:`ServerSettingsCache`, and the key of their names there.
_KINDS = {kind.__name__: kind for kind in (Endpoint, Server, TsigKey)}
_CLASS_KEY = '!'


class ServerRegistry(Wakeable):
    """Gives a :class:`Manager` its servers; woken when they have changed.

    :param announcer: has other programs look into the database after changes
    :ivar former: drivers with former settings of servers whose zones have to be deleted with these
    :ivar undrivable: the ids of servers whose former driver cannot be used here
    """

    def __init__(self, manager: Manager, runtime: Any, read_pool: Callable[[], Pool], cache: ServerSettingsCache,
                 announcer: ChangeAnnouncer | None = None) -> None:
        super().__init__()
        self._manager = manager
        self._runtime = runtime
        self._read_pool = read_pool
        self._cache = cache
        self._announcer = announcer
        self._lock = threading.Lock()
        self._reloads: int | None = None
        self._must_reload = False
        self._gone = OutageLog(
            LOG, 'the pool %s is not in the database any more: it was deleted or renamed, and this program does '
            "nothing now. Stop it, correct pool_name, or 'designate-pool-manage pool create %s'",
            'the pool %s is there again')
        self._mistakes = OutageLog(
            LOG, "another program read the configuration again, but this host's has mistakes and is not used: %s",
            'the configuration of this host is used now')
        self._former_settings: dict[str, Server] = {}
        self.former: dict[str, Backend] = {}
        self.undrivable: frozenset[str] = frozenset()

    def start(self) -> None:
        """Register the servers of the configuration that the program was started with."""
        with self._lock:
            last, former = self._cache.read()
            for worker in self._manager.all_workers.values():
                _log_findings(worker.backend)
            self._register(self._manager.pool, last, former, on_command=False)

    def reload(self) -> Reloaded:
        """Read the configuration again and apply it.

        :raises PoolError: for mistakes, when nothing has changed; ServiceUnavailable, of the database, after which
            :meth:`refresh` tries it again
        """
        with self._lock:
            pool = self._read_pool()
            workers = self._workers(pool)
            self._must_reload = True
            done = self._register(pool, self._settings(), self._former_settings, on_command=True, workers=workers)
            self._must_reload = False
        parts = [('joining', done.joined), ('changed', done.changed), ('draining', done.draining)]
        said = '; '.join(f'{word}: {", ".join(labels)}' for word, labels in parts if labels)
        LOG.info('the configuration was read again: %s', said or 'the servers are the same')
        return done

    def stop(self) -> None:
        """End the announcements."""
        if self._announcer is not None:
            self._announcer.stop()

    def changed(self) -> None:
        """The servers were changed in the database here: read them, and tell everybody."""
        self.refresh()
        self._announce()

    def refresh(self) -> bool:
        """Read the states of the servers, and the files if somebody has read theirs; whether the pool is there."""
        if self._must_reload:
            self._repeat_reload()
        with self._lock:
            pool_rows = self._manager.storage.read(server_store.of_pool, self._manager.pool.name)
            if not pool_rows.pool_id:
                if not self._gone:
                    self._set_servers((), self._manager.all_workers)
                self._gone.failed(self._manager.pool.name, self._manager.pool.name)
                return False
            if self._gone:
                self._pool_back()
                return not self._gone
            if self._reloads in (None, pool_rows.reloads) or self._follow_reload(pool_rows.pool_id, pool_rows.servers):
                self._reloads = pool_rows.reloads
            self._set_servers(pool_rows.servers, self._manager.all_workers)
            self._manager.also_notifies = self._manager.storage.read(pool_store.also_notifies, self._manager.pool.name)
        return True

    def _repeat_reload(self) -> None:
        try:
            self.reload()
        except ServiceUnavailable:
            raise
        except PoolError as error:  # the files have changed since
            self._must_reload = False
            LOG.error('the old list of servers is still used: %s', error)

    def forget_former(self, server_id: str) -> None:
        """Drop the server's former settings."""
        with self._lock:
            backend = self.former.pop(server_id, None)
            if backend is not None:
                backend.close()
            if self._former_settings.pop(server_id, None) is not None:
                self._save_cache()

    def _pool_back(self) -> None:
        try:
            self._register(self._manager.pool, *self._cache.read(), on_command=False)
        except PoolError as error:
            LOG.error('the pool %s is in the database again but cannot be used yet: %s', self._manager.pool.name, error)
            return
        self._gone.ended(self._manager.pool.name)

    def _register(self, pool: Pool, last: Mapping[str, Server], former: Mapping[str, Server], on_command: bool,
                  workers: Mapping[str, ServerWorker] | None = None) -> Reloaded:
        manager = self._manager
        done = manager.storage.run(write_servers, pool, manager.settings.delete_zones_of_removed_servers, on_command,
                                   manager.storage.now())
        pool_rows = manager.storage.read(server_store.of_pool, pool.name)
        self._reloads = pool_rows.reloads
        manager.reconciler.pool = manager.record_sync.pool = pool
        self._set_servers(pool_rows.servers, manager.all_workers if workers is None else workers)
        self._retain_former_settings(last, former)
        self._announce()
        return done

    def _announce(self) -> None:
        self.wake()
        if self._announcer is not None:
            self._announcer.put(self._manager.pool.name)

    def _follow_reload(self, pool_id: str, servers: Sequence[PoolServer]) -> bool:
        """Read the configuration of this host, since another pool manager has read its own; register nothing.  Whether
        it could be used; if not, the next :meth:`refresh` reads it again.

        The stages of releases are those of the other one, which Central follows.
        """
        published = self._manager.storage.read(pool_store.get, pool_id)
        stages = None if published is None else published.release_stages
        try:
            pool = dataclasses.replace(self._read_pool(), release_stages=stages)
            workers = self._workers(pool)
        except PoolError as error:
            self._mistakes.failed(error)
            return False
        self._mistakes.ended()
        last = self._settings()
        self._manager.reconciler.pool = self._manager.record_sync.pool = pool
        self._set_servers(servers, workers)
        self._retain_former_settings(last, self._former_settings)
        return True

    def _workers(self, pool: Pool) -> dict[str, ServerWorker]:
        """A worker for each server; those whose settings, secrets included, are the same are kept."""
        manager = self._manager
        if pool.name != manager.pool.name:
            raise InvalidField(field='[service:pool_manager] pool_name', why='it takes a restart to change it')
        before = {key: worker.backend for key, worker in manager.all_workers.items()}
        after = backends.build_all(pool, before)
        workers: dict[str, ServerWorker] = {}
        for server in pool.servers:
            worker = manager.all_workers.get(server.id)
            if worker is None or worker.server != server:
                _log_findings(after[server.id])
                worker = manager.new_worker(server, after[server.id])
            workers[server.id] = worker
        return workers

    def _set_servers(self, servers: Sequence[PoolServer], workers: Mapping[str, ServerWorker]) -> None:
        manager = self._manager
        before, old = manager.members, manager.all_workers
        manager.reconciler.set_servers(Members.of(servers, manager.settings.count_joining_servers), workers)
        for key, worker in old.items():
            if workers.get(key) is not worker:
                self._runtime.spawn(worker.stop, name=f'{worker.server.label}/end')
        states = {server.id: server.state for server in before.servers}
        for server in servers:
            if server.id in workers:
                manager.read_silence(workers[server.id], server.silent_since)
            if states.get(server.id) not in (None, server.state):
                LOG.info('%s is %s now%s', server.label, server.state, f': {server.note}' if server.note else '')

    def _retain_former_settings(self, last: Mapping[str, Server], former: Mapping[str, Server]) -> None:
        """Retain settings by which zones still have to be deleted: of removed servers and those with new drivers."""
        now, needed = self._settings(), dict[str, Server]()
        # Of one that is configured as before again, no zones have to be deleted.
        former = {key: was for key, was in former.items() if (new := now.get(key)) is None
                  or (was.driver, was.host) != (new.driver, new.host)}
        for row in self._manager.members.servers:
            was, new = former.get(row.id) or last.get(row.id), now.get(row.id)
            is_draining = row.state is ServerState.DRAINING and row.delete_zones
            if was is not None and row.state is not ServerState.REMOVED and (
                    row.id in former or (is_draining if new is None else _changed_driver(was, new))):
                needed[row.id] = was
        self._former_settings = needed
        former_backends: dict[str, Backend] = {}
        for key, server in needed.items():
            try:
                former_backends[key] = self.former.get(key) or backends.build(server)
            except InvalidField as error:
                LOG.error("%s: its zones cannot be deleted, since its former driver cannot be used (%s); the server's "
                          'rows are kept until the driver is installed again and this program is restarted',
                          server.label, error)
        self.former = former_backends
        self.undrivable = frozenset(needed.keys() - former_backends.keys())
        self._save_cache()

    def _save_cache(self) -> None:
        self._cache.write(self._settings(), self._former_settings)

    def _settings(self) -> dict[str, Server]:
        return {key: worker.server for key, worker in self._manager.all_workers.items()}


def write_servers(tx: Tx, pool: Pool, delete_zones: bool, on_command: bool, now: datetime) -> Reloaded:
    """Register the servers of a configuration; what that changed."""
    servers = [PoolServer(server.id, '', server.label, server.driver, ServerState.ACTIVE, fingerprint(server), position,
                          key_name=None if server.tsig_key is None else server.tsig_key.name,
                          verify=','.join(map(str, server.verify)) or None,
                          limits=rules.to_json(backends.limits_of(server)),
                          polled=backends.driver_class(server.driver).capabilities.keeps_serial)
               for position, server in enumerate(pool.servers)]
    done = server_store.register(tx, pool.name, servers, delete_zones, on_command, now,
                                 has_catalog=pool.catalog_zone is not None)
    pool_store.publish(tx, pool, now)
    return done


def fingerprint(server: Server) -> str:
    """64 hexadecimal digits of the settings that zones are created with; of a secret only whether it is set."""
    secret = {option.name for option in backends.driver_class(server.driver).OPTIONS if option.secret}
    key = server.tsig_key
    options = {name: bool(value) if name in secret else value for name, value in server.options.items()}
    facts = (server.driver, server.host, server.port, key and (key.name, key.algorithm),
             [str(primary) for primary in server.primaries], sorted(options.items()))
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _changed_driver(was: Server, new: Server) -> bool:
    """Whether the same machine has another driver, and the former one has to delete its zones there."""
    if was.driver == new.driver or was.host != new.host:
        return False
    try:
        return not backends.driver_class(was.driver).capabilities.reads_catalog
    except InvalidField:  # it cannot be imported
        return True


def _log_findings(backend: Backend) -> None:
    for finding in backend.check_files():
        LOG.warning('%s: %s (%s)', backend.server.label, finding.what, finding.advice)


class ServerSettingsCache:
    """The file *path* with the settings of the servers that were last in use, by which their zones can be deleted.

    It contains secrets, so only its owner can read it.  Failures to read or write it are logged, not raised.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self) -> tuple[dict[str, Server], dict[str, Server]]:
        """The settings last in use, and the former ones that were still needed; both by server id."""
        try:
            with open(self._path, encoding='utf-8') as file:
                content = json.load(file, object_hook=_restored)
            return dict(content['servers']), dict(content['former'])
        except FileNotFoundError:
            return {}, {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            LOG.warning('%s cannot be read; zones cannot be deleted from servers whose sections are gone: %s',
                        self._path, error)
            return {}, {}

    def write(self, servers: Mapping[str, Server], former: Mapping[str, Server]) -> None:
        """Replace the settings last in use, and the former ones that are still needed; both by server id."""
        text = json.dumps({'servers': dict(servers), 'former': dict(former)}, default=_plain)
        beside = f'{self._path}.new'
        try:
            os.makedirs(os.path.dirname(self._path) or '.', exist_ok=True)
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'w', encoding='utf-8') as file:
                file.write(text)
            os.replace(beside, self._path)
        except OSError as error:
            LOG.warning('%s cannot be written; after a restart zones cannot be deleted from servers whose sections are '
                        'gone: %s', self._path, error)


def _plain(value: Any) -> dict[str, Any]:
    if type(value).__name__ not in _KINDS:
        raise TypeError(f'{type(value).__name__} cannot be kept')
    return {_CLASS_KEY: type(value).__name__,
            **{field.name: getattr(value, field.name) for field in dataclasses.fields(value)}}


def _restored(found: dict[str, Any]) -> Any:
    found = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    kind = _KINDS.get(found.pop(_CLASS_KEY, ''))
    return found if kind is None else kind(**found)
