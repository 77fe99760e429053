"""Programs without their database, and told to end: soon while nothing happens, and although the broker is down."""

from __future__ import annotations

import concurrent.futures
import contextlib
import pathlib
import re
import signal
import time

import pytest
import requests
import sqlalchemy as sa
from oslo_config import cfg

from designate_pool.rpc.broker import Messaging
from designate_pool.rpc.direct import Direct
from designate_pool.storage.sql.database import Storage
from testing import warm
from testing.databases import MariaDB, PostgreSQL, upgraded_sqlite
from testing.processes import Process, free_port, patience, wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import SERVICES, Stack
from tests.fixtures.central import lock_waits

SERVER = '[backend:fake:2a1f6b7c-5f5e-4a57-9b0e-3f6a3b1f7d01]\nhost = 127.0.0.1\ncall_timeout = 2\n'
SINK = '[service:sink]\nenabled_notification_handlers = nova_fixed\n' \
       '[handler:nova_fixed]\nzone_id = 2a1f6b7c-5f5e-4a57-9b0e-3f6a3b1f7d02\n'


@pytest.mark.parametrize('concurrency', ['eventlet', 'threading'])
@pytest.mark.parametrize('name', ['api', 'minidns', 'manager'])
def test_a_program_ends_that_waits_for_a_broker_before_it_is_ready(tmp_path: pathlib.Path, name: str,
                                                                   concurrency: str) -> None:
    upgraded_sqlite(tmp_path / 'database')
    broker = f'127.0.0.1:{free_port()}'
    stack = Stack(tmp_path, [SERVER], f'sqlite:///{tmp_path}/database', f'rabbit://{broker}/', concurrency)
    program = warm.Program('designate_pool.cmd.programs.daemons', [name, '--config-file', str(stack.config)],
                           tmp_path / 'log', concurrency)
    program.start()
    try:
        wait_until(lambda: program.running() and 'Connection failed' in program.tail(), 'it waits for the broker')
        assert f'the broker at {broker} does not answer: ' in program.tail()
        assert program.stop(signal.SIGTERM, patience(20)) == 0, program.tail()
    finally:
        program.kill()


@pytest.mark.slow
def test_idle_listeners_end_soon(rabbitmq: RabbitMq) -> None:
    """Each waits for a message for up to five seconds by then."""
    cfg.CONF([], project='test')
    caller = Messaging(cfg.CONF, 'test', transport_url=rabbitmq.url)
    for number in range(3):
        caller.serve(f'idle-{number}', Direct, object())
    listeners = [server.listener._poll_style_listener for _, server in caller._servers]
    wait_until(lambda: all(listener._current_timeout == 5.0 for listener in listeners), 'they wait for long', 60)
    began = time.monotonic()
    caller.stop()
    assert time.monotonic() - began < patience(2)


@pytest.mark.slow
def test_an_outage_of_the_database_is_two_lines_of_each_program_and_all_end_soon(
        tmp_path: pathlib.Path, mariadb: MariaDB, rabbitmq: RabbitMq) -> None:
    with contextlib.ExitStack() as end:
        apart, together = (end.enter_context(Stack(tmp_path / name, [SERVER, SINK], mariadb.create_database(), broker,
                                                   concurrency, manager={}))
                           for name, broker, concurrency in (('apart', rabbitmq.url, 'eventlet'),
                                                             ('together', None, 'threading')))
        apart.launch('central', 'sink')
        programs = {**apart.processes, **together.processes}
        before = {name: program.log.stat().st_size for name, program in programs.items()}
        assert list(before) == [*SERVICES, 'central', 'sink', 'all']

        def told(name: str, program: Process) -> str:
            return program.log.read_bytes()[before[name]:].decode()

        mariadb.kill()
        threads = end.enter_context(concurrent.futures.ThreadPoolExecutor())
        try:
            asked = [threads.submit(requests.get, f'{stack.url}/v2/zones', timeout=patience(60))
                     for stack in (apart, together)]
            for name, program in programs.items():
                wait_until(lambda: 'does not answer' in told(name, program), f'{name} tells of the begin', 60)
            assert [each.result().status_code for each in asked] == [503, 503], 'what waited has failed by now'
        finally:
            mariadb.start()
        for name, program in programs.items():
            wait_until(lambda: 'answers again' in told(name, program), f'{name} tells of the end', 60)
            begin, last = told(name, program).splitlines()
            assert f'the database at 127.0.0.1:{mariadb.port} does not answer: ' in begin
            assert "Can't connect to MySQL server" in begin
            assert re.search(rf'at 127.0.0.1:{mariadb.port} answers again \(after \d+ s and \d+ failures', last)
        for stack, is_away in ((together, False), (apart, True)):
            if is_away:
                mariadb.kill()
            try:
                for name in list(stack.processes):
                    began = time.monotonic()
                    assert stack.stop(name) == {name: 0}
                    assert time.monotonic() - began < patience(2), (name, is_away)
            finally:
                if is_away:
                    mariadb.start()


@pytest.mark.slow
@pytest.mark.parametrize('concurrency', ['eventlet', 'threading'])
def test_the_api_ends_after_a_change_that_a_broker_that_is_down_is_not_told_of(
        tmp_path: pathlib.Path, postgresql: PostgreSQL, concurrency: str) -> None:
    with contextlib.ExitStack() as end:
        broker = RabbitMq(tmp_path / 'rabbitmq')
        end.callback(broker.kill)
        broker.start()
        stack = end.enter_context(
            Stack(tmp_path / 'stack', [SERVER], postgresql.create_database(), broker.url, concurrency))
        storage = Storage(stack.database_url)
        end.callback(storage.close)
        threads = end.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        with storage.engine.begin() as tx:
            tx.execute(sa.text('LOCK TABLE domains IN ACCESS EXCLUSIVE MODE'))
            asked = threads.submit(requests.post, f'{stack.url}/v2/zones', timeout=patience(60),
                                   json={'name': 'example.com.', 'email': 'hostmaster@example.com'})
            wait_until(lambda: lock_waits(storage), 'Central carries out the request')
            broker.kill()
        api = stack.processes.pop('api')
        api.signal(signal.SIGTERM)
        assert api.wait(patience(40)) == 0
        stack.stop()
        assert asked.result().status_code == 202
