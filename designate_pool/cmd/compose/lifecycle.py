"""A program's life: configuration, services, SIGHUP, SIGTERM."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log

from designate_pool import __version__, backends
from designate_pool.cmd.compose import services
from designate_pool.cmd.compose.garbage_collector import GarbageCollector
from designate_pool.cmd.compose.heartbeat import Heartbeat
from designate_pool.cmd.compose.metrics_endpoint import MetricsEndpoint
from designate_pool.concurrency import Runtime
from designate_pool.config import load, pools
from designate_pool.errors import PoolError
from designate_pool.model import Pool
from designate_pool.rpc.direct import Direct
from designate_pool.rpc.messaging import Messaging
from designate_pool.rpc.notifications import SILENT, Sink, notifications
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import pools as stored_pools

LOG = logging.getLogger(__name__)

#: What works on the servers of the configuration.
_WITH_SERVERS = {'minidns', 'pool_manager'}


def run(runtime: Runtime, argv: Sequence[str], parts: Sequence[str], embedded: bool = False) -> int:
    """Serve *parts* until SIGTERM or SIGINT; the exit code.

    :param parts: keys of :data:`designate_pool.cmd.compose.services.SERVICES`, those that are called before those that
        call; they stop in the other order
    :param embedded: all services are here: no broker, and the database is brought up to date at the start
    """
    try:
        conf = cfg.CONF
        load.load(conf, argv)
        log.setup(conf, 'designate-pool', __version__)
        pool = pools.read_pool(conf, backends.options(), with_servers=not _WITH_SERVERS.isdisjoint(parts))
        settings = load.read_settings(conf)
        if embedded:
            os.makedirs(settings.process.state_path, exist_ok=True)
            migrate.upgrade(settings.database.connection)
        storage = Storage(settings.database.connection, pool_size=settings.database.pool_size,
                          max_overflow=settings.database.max_overflow, secrets_keys=settings.database.secrets_keys)
        migrate.check(storage)
        _check_pools(storage, settings, parts)
    except (PoolError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    caller: Any = Direct(runtime.workers(8, 'casts')) if embedded else Messaging(conf, settings.process.host)
    asked = _Asked()
    reader = _Reader(conf)
    exposed = [endpoint for part in parts for endpoint in getattr(settings, part).metrics]
    told: Sink = SILENT
    exposition: MetricsEndpoint | None = None
    try:
        exposition = MetricsEndpoint(exposed)
        told = notifications(conf, settings.process.host, runtime) if 'central' in parts else SILENT
        made = services.ServiceParts(runtime, conf, settings, pool, reader.read, storage, caller, told, bool(exposed))
        return _serve(runtime, made, parts, asked)
    except (PoolError, OSError) as error:
        LOG.error('%s', error)
        return 1
    finally:
        told.stop()
        caller.stop()
        storage.close()
        if exposition is not None:
            exposition.stop()


def _check_pools(storage: Storage, settings: load.Settings, parts: Sequence[str]) -> None:
    """
    :raises UnknownPool: when the configuration names a pool that is not in the database
    """
    name = settings.pool_manager.pool_name
    storage.read(stored_pools.check_known, name, '[service:pool_manager] pool_name')
    if 'central' in parts and settings.central.default_pool_name not in ('', name):
        storage.read(stored_pools.check_known, settings.central.default_pool_name,
                     '[service:central] default_pool_name')


def _serve(runtime: Runtime, made: services.ServiceParts, parts: Sequence[str], asked: _Asked) -> int:
    running: list[Any] = []
    heart = Heartbeat(made.storage, parts, made.settings.process.host, made.pool.name)
    LOG.info('starting version %s', __version__)
    try:
        for part in parts:
            running.append(services.SERVICES[part](made))
        heart.start(runtime)
        collector = GarbageCollector()
        print(f'{" ".join(parts)}: ready', file=sys.stderr, flush=True)
        while not asked.to_stop:
            if asked.to_reload:
                asked.to_reload = False
                _reload(running)
            collector.take_turn()
            runtime.sleep(0.1)
    finally:
        LOG.info('stopping')
        made.caller.stop_serving()
        for service in reversed(running):
            service.stop()
        heart.stop()
    return 0


def _reload(running: Sequence[Any]) -> None:
    """Have those services read the configuration anew that have servers."""
    for service in running:
        reload = getattr(service, 'reload', None)
        if reload is not None:
            try:
                reload()
            except Exception:  # of the database, say; the program goes on with what it had
                LOG.exception('the configuration could not be read again; the old one is still used')


class _Reader:
    """Reads the pool of the configuration anew, for one service at a time."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._lock = threading.Lock()

    def read(self) -> Pool:
        """
        :raises BadConfiguration: with every mistake
        """
        with self._lock:
            load.reload(self._conf)
            return pools.read_pool(self._conf, backends.options())


class _Asked:
    """Set by signals: SIGTERM and SIGINT to stop, SIGHUP to read the configuration anew."""

    def __init__(self) -> None:
        self.to_stop = False
        self.to_reload = False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: Any) -> None:
        if number == signal.SIGHUP:
            self.to_reload = True
        else:
            self.to_stop = True
