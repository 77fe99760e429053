"""The life cycle of a program: configuration, services, SIGHUP, SIGTERM; its heartbeat and its garbage collector."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log

from designate_pool import __version__, backends, metrics
from designate_pool.cmd.compose import services
from designate_pool.cmd.compose.program import MetricsEndpoint, Signals
from designate_pool.concurrency import Runtime
from designate_pool.config import load, pools
from designate_pool.errors import PoolError, Refused
from designate_pool.logs import OutageLog, is_logged
from designate_pool.model import Pool, utcnow
from designate_pool.rpc.broker import Messaging
from designate_pool.rpc.direct import Direct
from designate_pool.rpc.notifications import SILENT, notifications
from designate_pool.storage.operations import heartbeats
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import pools as stored_pools

LOG = logging.getLogger(__name__)

#: Thresholds of the garbage collector's young and older generations, and seconds between two full collections.
_YOUNG, _OLDER, _GARBAGE_SECONDS = 20_000, 20, 60.0
#: Services that work for one pool, and need its servers in the configuration.
_OF_A_POOL = {'minidns', 'pool_manager'}
#: Those that send notifications.
_NOTIFYING = {'api', 'central'}
#: Seconds between looks whether all services have started; the end of the start ends the wait before.
_START_CHECK = 1.0
#: Seconds for which a program that has stopped waits for its threads.
_LAST_WAIT = 5.0


def run(runtime: Runtime, argv: Sequence[str], parts: Sequence[str], embedded: bool = False,
        about: str | None = None) -> int:
    """Serve *parts* until SIGTERM or SIGINT; the exit code.

    :param parts: keys of :data:`designate_pool.cmd.compose.services.SERVICES`, servers before their clients; they stop
        in reverse order
    :param embedded: all services are in this process: no broker, and the database is upgraded at the start
    """
    try:
        made = _make_parts(runtime, argv, parts, embedded, about)
    except (PoolError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    signals, code = Signals(), 1
    try:
        with contextlib.ExitStack() as stack:
            stack.callback(made.storage.close)
            stack.callback(made.caller.stop)
            stack.callback(made.notifications.stop)
            stack.callback(MetricsEndpoint(made.metrics).stop)
            code = _serve(runtime, made, signals)
    except (PoolError, OSError) as error:
        LOG.error('%s', error)
    finally:
        _end_soon(code)
    return code


def make_application(runtime: Runtime, argv: Sequence[str] = ()) -> Callable[..., Any]:
    """The API as a WSGI application, with its Central, which serves its topic until the process ends.

    :raises PoolError: when the configuration is wrong, or the database not as the configuration says
    :raises OSError: when metrics cannot be served where the configuration says
    """
    made = _make_parts(runtime, argv, ('api',))
    metrics_endpoint = MetricsEndpoint(made.metrics)
    made.services['central'] = services.build_central(made)
    application, watcher, _ = services.make_application(made)
    watcher.start()
    heartbeat = Heartbeat(made.storage, made.parts, made.settings.process.host, made.pool.name)
    heartbeat.start(runtime)

    def stop_at_end() -> None:
        threading.main_thread().join()
        made.storage.stop_waiting()
        made.caller.stop_serving()
        for service in (watcher, made.services['central'], heartbeat, made.notifications, made.caller):
            service.stop()
        made.storage.close()
        metrics_endpoint.stop()

    # Python calls the functions of atexit after its threads, which oslo.messaging's end only when they are stopped.
    threading.Thread(target=stop_at_end, name='end').start()
    return application


def _make_parts(runtime: Runtime, argv: Sequence[str], parts: Sequence[str], embedded: bool = False,
                about: str | None = None) -> services.ServiceParts:
    """What *parts* are made of, from the configuration; see :func:`run`."""
    conf = cfg.CONF
    load.load(conf, argv, about=about)
    log.setup(conf, 'designate-pool', __version__)
    pool = pools.read_pool(conf, backends.options(), with_servers=not _OF_A_POOL.isdisjoint(parts))
    settings = load.read_settings(conf)
    if embedded:
        os.makedirs(settings.process.state_path, exist_ok=True)
        migrate.upgrade(settings.database.connection)
    endpoints = [endpoint for part in parts for endpoint in getattr(settings, part).metrics]
    background_work = 'central' in parts or settings.api.background_work
    if 'api' in parts and 'central' not in parts:
        parts = ('central', *parts)  # the API calls Central in its process
    storage = _open_storage(settings, parts)
    host = settings.process.host
    return services.ServiceParts(
        runtime, conf, settings, pool, _pool_reader(conf), storage, tuple(parts), endpoints,
        Direct(runtime.workers(8, 'casts')) if embedded else Messaging(conf, host),
        SILENT if _NOTIFYING.isdisjoint(parts) else notifications(conf, host, runtime), background_work)


def _open_storage(settings: load.Settings, parts: Sequence[str]) -> Storage:
    """The database, after a check that it is one for these services."""
    storage = Storage(settings.database.connection, pool_size=settings.database.pool_size,
                      secrets_keys=settings.database.secrets_keys)
    migrate.check(storage)
    storage.read(stored_pools.check_known, settings.pool_manager.pool_name, '[service:pool_manager] pool_name')
    default_id = settings.central.default_pool_id
    if 'central' in parts and default_id is not None and storage.read(stored_pools.get, default_id) is None:
        raise Refused('pool_not_found', f"[service:central] default_pool_id is {default_id}: no such pool; "
                                        "'designate-pool-manage pool list' shows the ids.", 404)
    return storage


def _end_soon(code: int) -> None:
    """Have the program end with *code* soon, though Python waits for threads that may wait forever for a broker."""
    def end() -> None:
        LOG.warning('a thread has not ended within %g s; the program ends without it', _LAST_WAIT)
        logging.shutdown()
        os._exit(code)

    timer = threading.Timer(_LAST_WAIT, end)
    timer.daemon = True
    timer.start()


def _serve(runtime: Runtime, made: services.ServiceParts, signals: Signals) -> int:
    heartbeat = Heartbeat(made.storage, made.parts, made.settings.process.host, made.pool.name)
    LOG.info('starting version %s', __version__)
    try:
        if not _start(made, signals):
            return 0
        heartbeat.start(runtime)
        print(f'{" ".join(made.parts)}: ready', file=sys.stderr, flush=True)
        wait_for_stop(signals, list(made.services.values()))
    finally:
        LOG.info('stopping')
        made.storage.stop_waiting()
        made.caller.stop_serving()
        for service in reversed(list(made.services.values())):
            service.stop()
        heartbeat.stop()
    return 0


def wait_for_stop(signals: Signals, running: Iterable[Any]) -> None:
    """Wait for SIGTERM or SIGINT; at SIGHUP let the services read the configuration again.

    By itself Python's garbage collector would traverse all imported modules again and again, though hardly anything of
    ours is a cycle, and would not collect old objects for hours.  These may be few and large: each lost connection to a
    broker is a cycle with a buffer of 128 KiB.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _OLDER, _OLDER)
    while not signals.stop:
        if signals.hangup:
            signals.hangup = False
            _reload(running)
        signals.wait(_GARBAGE_SECONDS)
        gc.collect()


def _start(made: services.ServiceParts, signals: Signals) -> bool:
    """Start the services; False when the program is told to stop before all have started.

    They start in a thread of their own, since oslo.messaging waits forever for a broker that is down.  Those that have
    started are in ``made.services``.
    """
    failed: list[BaseException] = []
    ended = threading.Event()

    def start() -> None:
        try:
            for part in made.parts:
                made.services[part] = services.SERVICES[part](made)
        except BaseException as error:  # whatever it is, it is the caller's
            failed.append(error)
        finally:
            ended.set()
            signals.wake()

    threading.Thread(target=start, name='start', daemon=True).start()
    while not ended.is_set() and not signals.stop:
        signals.wait(_START_CHECK)
    if failed:
        raise failed[0]
    return ended.is_set()


def _reload(running: Iterable[Any]) -> None:
    for service in running:
        reload = getattr(service, 'reload', None)
        if reload is not None:
            try:
                reload()
            except Exception as error:  # of the database, for example; the old configuration stays in use
                LOG.error('the configuration could not be read again; the old one is still used: %s', error,
                          exc_info=None if is_logged(error) else error)


def _pool_reader(conf: cfg.ConfigOpts) -> Callable[[], Pool]:
    """A function that reads the pool of the configuration again, for one service at a time."""
    lock = threading.Lock()

    def read() -> Pool:
        with lock:
            load.reload(conf)
            return pools.read_pool(conf, backends.options())

    return read


class Heartbeat:
    """
    :param interval: seconds; the reader takes twice as long for silence
        (:data:`designate_pool.storage.operations.heartbeats.SILENCE`)
    :param retry_interval: after one that could not be written
    """

    def __init__(self, storage: Storage, parts: Sequence[str], hostname: str, pool_name: str,
                 interval: float = 15.0, retry_interval: float = 2.0) -> None:
        self._storage = storage
        self._parts = tuple(sorted(parts))  # on SQLite one transaction, in one order for all
        self._hostname = hostname
        self._pool_name = pool_name
        self._interval = interval
        self._retry_interval = retry_interval
        # With the microsecond, for the processes of containers that are called the same.
        self._stats = {'version': __version__, 'pid': os.getpid(), 'started_at': utcnow().isoformat()}
        self._stopped = threading.Event()
        self._outage = OutageLog(LOG, 'the heartbeat that the services here are %s could not be written: %s',
                                 'heartbeats can be written again', logging.WARNING)
        self._task: Any = None

    def start(self, runtime: Runtime) -> None:
        """Write the first one, so that a program that is ready is known to run, and go on with the next ones."""
        self._beat()
        self._task = runtime.spawn(self._loop, name='heartbeat')

    def stop(self) -> None:
        """Write that the services are down, unless they have not been up, or the database is away."""
        self._stopped.set()
        if self._task is not None:
            self._task.join(15)
        if self._task is not None and not self._outage:
            self._write_status(heartbeats.DOWN)

    def _loop(self) -> None:
        while not self._stopped.wait(self._retry_interval if self._outage else self._interval):
            self._beat()

    def _beat(self) -> None:
        for part in self._parts:
            metrics.ALIVE_AT.labels(part, self._pool_name if part in _OF_A_POOL else '').set_to_current_time()
        self._write_status(heartbeats.UP)

    def _write_status(self, status: str) -> None:
        try:
            self._storage.run(self._write, status)
        except Exception as error:  # of the database; the next heartbeat tries again
            self._outage.failed(status, error)
        else:
            self._outage.ended()

    def _write(self, tx: Tx, status: str) -> None:
        now = self._storage.now()
        for part in self._parts:
            pool_name = self._pool_name if part in _OF_A_POOL else ''
            heartbeats.say(tx, part, self._hostname, pool_name, status, self._stats, now, _has_ended)


def _has_ended(stats: Mapping[str, Any]) -> bool:
    """Whether the process of this host with these statistics runs no more."""
    try:
        os.kill(int(stats.get('pid', 0)), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)  # not another user's
    return False
