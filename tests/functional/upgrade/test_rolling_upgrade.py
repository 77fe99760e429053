"""An upgrade while clients go on: programs of two releases on one database and broker, exchanged one by one, both ways.

As the guide has it: the tables are upgraded first, with all programs of this release running; then each program is
restarted in the next one.  To return, each is restarted in this release, on the newer tables.
"""

from __future__ import annotations

import contextlib
import pathlib
import uuid
from collections.abc import Iterator

import pytest

from testing.bind import Named
from testing.databases import MariaDB
from testing.processes import Process, free_port, wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import SERVICES, Stack
from tests.fixtures.next_release import NextRelease
from tests.functional.clusters.load import Load

pytestmark = pytest.mark.slow

#: What is exchanged now is seen at work by so many changes.
CHANGES = 15


class RollingStack(Stack):
    """A stack whose programs are each of this release or of the next one."""

    def launch_next(self, release: NextRelease, name: str) -> None:
        """Start a program of the next release; returns when it is ready."""
        log = self.folder / f'{name}.log'
        seen = log.stat().st_size if log.exists() else 0
        process = Process(release.command(name, '--config-file', str(self.config)), log, env=release.environment,
                          cwd=self.folder)
        self.processes[name] = process.start()
        wait_until(lambda: process.running() and b': ready' in log.read_bytes()[seen:],
                   f'the next {name} is ready', 90)


@pytest.fixture
def named(tmp_path: pathlib.Path) -> Iterator[list[Named]]:
    servers = [Named(tmp_path / f'named{number}') for number in range(2)]
    with contextlib.ExitStack() as end:
        for server in servers:
            end.callback(server.remove)
            server.start()
        yield servers


@pytest.fixture
def stack(tmp_path: pathlib.Path, named: list[Named], mariadb: MariaDB, rabbitmq: RabbitMq) -> Iterator[RollingStack]:
    sections = [server.section(str(uuid.uuid4()), call_timeout=4) for server in named]
    with RollingStack(tmp_path / 'stack', sections, mariadb.create_database(), rabbitmq.url,
                      minidns_port=free_port()) as stack:
        yield stack


def test_programs_are_exchanged_one_by_one_there_and_back_and_there(
        stack: RollingStack, named: list[Named], next_release: NextRelease) -> None:
    load = Load(stack, named, users=3, zones=2)
    with load.running():
        load.await_changes(CHANGES)
        next_release.manage('--config-file', str(stack.config), 'database', 'upgrade')
        load.await_changes(CHANGES)
        for name in SERVICES:
            stack.stop(name)
            stack.launch_next(next_release, name)
            load.await_changes(CHANGES)
        for name in reversed(SERVICES):
            stack.stop(name)
            stack.launch(name)
            load.await_changes(CHANGES)
        for name in ('api', 'manager', 'minidns'):
            stack.stop(name)
            stack.launch_next(next_release, name)
            load.await_changes(CHANGES)
    load.check()
