"""A program's life: configuration, services, SIGTERM."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log

from designate_pool import __version__, backends
from designate_pool.cmd import build
from designate_pool.config import load, pools
from designate_pool.errors import PoolError
from designate_pool.rpc.direct import Direct
from designate_pool.rpc.messaging import Messaging
from designate_pool.runtime import Runtime
from designate_pool.storage import migrate
from designate_pool.storage.sessions import Storage

LOG = logging.getLogger(__name__)


def run(runtime: Runtime, argv: Sequence[str], parts: Sequence[str], embedded: bool = False) -> int:
    """Serve *parts* until SIGTERM or SIGINT; the exit code.

    :param parts: keys of :data:`designate_pool.cmd.build.SERVICES`, those that are called before those that call; they
        stop in the other order
    :param embedded: all services are here: no broker, and the database is brought up to date at the start
    """
    try:
        conf = cfg.CONF
        load.load(conf, argv)
        log.setup(conf, 'designate-pool', __version__)
        pool = pools.read_pool(conf, backends.options())
        settings = load.read_settings(conf)
        if embedded:
            os.makedirs(settings.process.state_path, exist_ok=True)
            migrate.upgrade(settings.database.connection)
        storage = Storage(settings.database.connection, pool_size=settings.database.pool_size,
                          max_overflow=settings.database.max_overflow)
        migrate.check(storage)
    except (PoolError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    caller: Any = Direct(runtime.workers(8, 'casts')) if embedded else Messaging(conf, settings.process.host)
    stop = _Stop()
    try:
        return _serve(runtime, build.Parts(runtime, settings, pool, storage, caller), parts, stop)
    except (PoolError, OSError) as error:
        LOG.error('%s', error)
        return 1
    finally:
        caller.stop()
        storage.close()


def _serve(runtime: Runtime, made: build.Parts, parts: Sequence[str], stop: _Stop) -> int:
    running = []
    try:
        for part in parts:
            running.append(build.SERVICES[part](made))
        print(f'{" ".join(parts)}: ready', file=sys.stderr, flush=True)
        while not stop.wanted:
            runtime.sleep(0.1)
    finally:
        LOG.info('stopping')
        made.caller.stop_serving()
        for service in reversed(running):
            service.stop()
    return 0


class _Stop:
    """Set by SIGTERM and SIGINT."""

    def __init__(self) -> None:
        self.wanted = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: Any) -> None:
        self.wanted = True
