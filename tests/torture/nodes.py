"""The nodes of a run: servers and programs, each in a network namespace, with a folder on a file system of its own.

A node that should run and does not is started again (:class:`Supervisor`), as an init system does.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import errno
import os
import pathlib
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import psutil

from designate_pool.model import Endpoint
from testing.daemon import Daemon
from testing.processes import Place, Process, binary, wait_until
from tests.torture.network import Host

_CLOCK = pathlib.Path(__file__).with_name('clock.c')
_READY_SECONDS = 90.0
#: How often a file system is made smaller until it succeeds.
_TRIES = 20


class Node:
    """
    :param folder: where its file system is mounted, and beside it its log
    :param megabytes: of its file system
    :ivar kind: ``central``, ``manager``, ``minidns``, ``api``, ``server``, ``database`` or ``broker``
    :ivar wanted: whether it should run
    """

    kind = ''

    def __init__(self, host: Host, folder: pathlib.Path, megabytes: int) -> None:
        self.name = host.name
        self.host = host
        self.folder = folder / host.name
        self.log = folder / f'{host.name}.log'
        self.wanted = False
        self._megabytes = megabytes
        self.folder.mkdir(parents=True)
        _mount('-t', 'tmpfs', '-o', f'size={megabytes}m,mode=755', 'torture', str(self.folder))
        self.log.touch()

    def run(self) -> None:
        """Start it; returns when it is ready.

        :raises AssertionError: when it ends, or is not ready in time
        """
        raise NotImplementedError

    def reap(self) -> None:
        """Wait for the processes that were ended, or have ended by themselves."""
        raise NotImplementedError

    def leader(self) -> int | None:
        """The id of its first process; None when it does not run."""
        raise NotImplementedError

    def family(self) -> list[psutil.Process]:
        """Its processes."""
        leader = self.leader()
        if leader is None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            first = psutil.Process(leader)
            return [first, *first.children(recursive=True)]
        return []

    @property
    def running(self) -> bool:
        return self.leader() is not None

    def kill(self) -> None:
        """SIGKILL to all its processes; it stays so until :attr:`wanted` again."""
        self.wanted = False
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.reap()

    def stop(self) -> None:
        """End it in good order; it stays so until :attr:`wanted` again."""
        self.wanted = False
        if (leader := self.leader()) is not None:
            os.kill(leader, signal.SIGTERM)
        self.reap()

    def pause(self) -> None:
        """SIGSTOP to all its processes."""
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()

    def resume(self) -> None:
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    @property
    def paused(self) -> bool:
        """Whether all its processes are stopped."""
        states = [process.status() for process in self.family()]
        return bool(states) and all(state in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE) for state in states)

    def signal(self, number: int) -> None:
        """Send a signal to its first process."""
        if (leader := self.leader()) is not None:
            os.kill(leader, number)

    def fill_disk(self) -> None:
        """Leave no page free on its file system: it is made as small as what is there."""
        (self.folder / 'filler').write_bytes(b'x')  # without a page it has no limit
        for _ in range(_TRIES):
            state = os.statvfs(self.folder)
            with contextlib.suppress(subprocess.CalledProcessError):  # something was written meanwhile
                self._resize(str((state.f_blocks - state.f_bfree) * state.f_frsize))
                return

    def is_disk_full(self) -> bool:
        return self._cannot_write() == errno.ENOSPC

    def empty_disk(self) -> None:
        self._resize(f'{self._megabytes}m')
        (self.folder / 'filler').unlink(missing_ok=True)

    def _resize(self, size: str) -> None:
        _mount('-o', f'remount,size={size}', str(self.folder))

    def forbid_writing(self) -> None:
        """Make its folder read-only for all files that are opened from now on."""
        _mount('--bind', str(self.folder), str(self.folder))
        for _ in range(_TRIES):
            with contextlib.suppress(subprocess.CalledProcessError):  # busy: a file was just open for writing
                _mount('-o', 'remount,ro,bind', str(self.folder))
                return

    def is_read_only(self) -> bool:
        return self._cannot_write() == errno.EROFS

    def allow_writing(self) -> None:
        # What was opened below it meanwhile holds it, so that it goes when that is closed.
        subprocess.run(['umount', '-l', str(self.folder)], check=True, timeout=60)

    def _cannot_write(self) -> int | None:
        probe = self.folder / 'probe'
        try:
            probe.write_bytes(bytes(4096))
        except OSError as error:
            return error.errno
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)
        return None


class ServiceNode(Node):
    """A program of the product.

    :param config: its configuration file, as INI text, from the setting of ``concurrency``
    :param clock: what :func:`build_clock` has made
    :param environment: what it has in its environment besides
    """

    def __init__(self, host: Host, folder: pathlib.Path, kind: str, config: Callable[[ServiceNode], str],
                 concurrency: str, clock: pathlib.Path, environment: Mapping[str, str] = {}) -> None:
        super().__init__(host, folder, 16)
        self.kind = kind
        self.concurrency = concurrency
        self.config = folder / f'{self.name}.conf'
        self._config = config
        self._process: Process | None = None
        self.clock = NodeClock(clock, folder / f'{self.name}.clock')
        self._environment = {**os.environ, 'PYTHONUNBUFFERED': '1', **environment, **self.clock.environment}

    def configure(self) -> None:
        """Write its configuration."""
        self.config.write_text(self._config(self))

    def run(self) -> None:
        self.configure()
        seen = self.log.stat().st_size
        command = [sys.executable, '-m', 'designate_pool.cmd.programs.daemons', self.kind]
        process = self._process = Process([*self.host.prefix, *command, '--config-file', str(self.config)],
                                          self.log, env=self._environment, cwd=self.folder).start()
        wait_until(lambda: process.running() and b': ready' in self.log.read_bytes()[seen:], f'{self.name} is ready',
                   _READY_SECONDS)

    def reap(self) -> None:
        if self._process is not None:
            self._process.wait(30)

    def leader(self) -> int | None:
        return _alive(self._process)


class NodeClock:
    """The time of day as the programs of a node see it.

    :param library: what :func:`build_clock` has made
    :param path: where it is written how wrong it is
    :ivar environment: what has a program see it
    """

    def __init__(self, library: pathlib.Path, path: pathlib.Path) -> None:
        self._library = library
        self._path = path
        self.environment = {'LD_PRELOAD': str(library), 'TORTURE_CLOCK': str(path)}
        self.set(0)

    def set(self, seconds: int) -> None:
        """Let it be so many seconds ahead of ours, or behind; all timers run on."""
        # The programs have the file in their memory.
        with self._path.open('r+b' if self._path.exists() else 'wb', buffering=0) as file:
            file.write(struct.pack('=q', seconds))

    def is_seen_by(self, pid: int) -> bool:
        """Whether a process has been started with it."""
        with contextlib.suppress(OSError):
            return str(self._library) in pathlib.Path(f'/proc/{pid}/maps').read_text()
        return False


def build_clock(folder: pathlib.Path) -> pathlib.Path:
    """What is preloaded into programs so that their clocks can be changed."""
    library = folder / 'clock.so'
    command = [binary('gcc'), '-shared', '-fPIC', '-O2', '-Wall', '-Werror', '-o', str(library), str(_CLOCK)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return library


class ServerNode(Node):
    """A name server.

    :param server_id: as in the configuration
    :param make: makes it, in a folder
    :param clock: what :func:`build_clock` has made
    """

    kind = 'server'

    def __init__(self, host: Host, folder: pathlib.Path, server_id: str,
                 make: Callable[[pathlib.Path], Daemon], clock: pathlib.Path) -> None:
        super().__init__(host, folder, 48)
        self.server_id = server_id
        self.clock = NodeClock(clock, folder / f'{self.name}.clock')
        (self.folder / 'log').symlink_to(self.log)
        self.daemon = make(self.folder)
        self.daemon.prefix = [*host.prefix, binary('env'),
                              *(f'{name}={value}' for name, value in self.clock.environment.items())]

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.daemon.host, self.daemon.port)

    @property
    def is_fed(self) -> bool:
        """Whether it is fed by records, and transfers nothing."""
        return self.daemon.driver == 'pdns-native'

    def run(self) -> None:
        self.daemon.start()

    def reap(self) -> None:
        self.daemon.stop()

    def leader(self) -> int | None:
        return self.daemon.pid if self.daemon.running else None

    def move(self) -> None:
        """Be at the other address of its host from the next start on, while it is stopped; of BIND and NSD."""
        assert not self.running
        here, there = self.host.address, self.host.other_address
        self.daemon.host = there if self.daemon.host == here else here

    def wipe(self) -> None:
        """Lose all zones, as on a new disk, while it is stopped."""
        assert not self.running
        self.daemon.forget_zones()


class BackendNode(Node):
    """A server that the services depend on.

    :cvar megabytes: of its file system
    :cvar log_name: of what it writes its log to
    :ivar server: runs at :attr:`place`; to be set
    """

    megabytes: int
    log_name: str

    def __init__(self, host: Host, folder: pathlib.Path) -> None:
        super().__init__(host, folder, self.megabytes)
        (self.folder / self.log_name).symlink_to(self.log)
        self.server: Any = None

    @property
    def place(self) -> Place:
        return Place(self.host.address, self.host.prefix, self.folder)

    def leader(self) -> int | None:
        return None if self.server is None else _alive(self.server._process)


class DatabaseNode(BackendNode):
    """A database server."""

    kind, megabytes, log_name = 'database', 1024, 'log'

    def run(self) -> None:
        self.server.start()

    def reap(self) -> None:
        if self.server is not None:
            self.server.stop()


class BrokerNode(BackendNode):
    """A RabbitMQ."""

    kind, megabytes, log_name = 'broker', 512, 'rabbitmq.log'

    def run(self) -> None:
        self.server.restart()

    def reap(self) -> None:
        if self.server is not None:
            self.server._process.wait(30)


class Supervisor:
    """Starts nodes that should run and do not, until it is left."""

    def __init__(self, nodes: Mapping[str, Node], tell: Callable[[str], None]) -> None:
        self._nodes = nodes
        self._tell = tell
        self._over = threading.Event()
        self._starting: dict[str, concurrent.futures.Future[None]] = {}
        self._starters = concurrent.futures.ThreadPoolExecutor(6, 'starter')
        self._thread = threading.Thread(target=self._watch, name='supervisor', daemon=True)

    def __enter__(self) -> Supervisor:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        for node in self._nodes.values():
            node.wanted = False
        self._starters.shutdown(cancel_futures=True)

    def is_starting(self, name: str) -> bool:
        return name in self._starting

    def wait(self, seconds: float) -> None:
        """Until all nodes that should run are ready."""
        wait_until(lambda: not self._starting and all(node.running for node in self._nodes.values() if node.wanted),
                   'all nodes run', seconds, 0.1)

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            for name, node in self._nodes.items():
                starting = self._starting.get(name)
                if starting is not None and starting.done():
                    if (error := starting.exception()) is not None:
                        self._tell(f'{name} did not start: {str(error)[-400:].strip()}')  # the end of its log
                    del self._starting[name]
                elif starting is None and node.wanted and not node.running:
                    self._starting[name] = self._starters.submit(self._start, node)

    def _start(self, node: Node) -> None:
        node.reap()
        if node.wanted and not self._over.is_set():
            node.run()


def _alive(process: Process | None) -> int | None:
    if process is None or process.popen is None or process.popen.poll() is not None:
        return None
    return process.pid


def _mount(*words: str) -> None:
    subprocess.run(['mount', *words], check=True, timeout=60, capture_output=True)
