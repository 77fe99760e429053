"""Imports and exports of large zones through the programs: memory, and what happens when something breaks off."""

from __future__ import annotations

import pathlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import sqlalchemy as sa

from designate_pool.storage.sql.database import Storage
from testing.databases import PostgreSQL
from testing.processes import wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import Stack

pytestmark = pytest.mark.slow

IMPORTS = '/v2/zones/tasks/imports'
SERVER = '[backend:fake:2a1f6b7c-5f5e-4a57-9b0e-3f6a3b1f7d01]\nhost = 127.0.0.1\ncall_timeout = 2\n'
RECORDS = 200_000
MEGABYTE = 1 << 20
#: With this in each record the zone file has some fifty megabytes.
FILLING = 'x' * 220


@pytest.fixture(scope='module')
def stack(tmp_path_factory: pytest.TempPathFactory, postgresql: PostgreSQL, rabbitmq: RabbitMq) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp('tasks')
    made = Stack(folder, [SERVER], postgresql.create_database(), rabbitmq.url, api={'background_work': 'false'})
    made.executed = True  # a fork has memory from the start that is not its own
    with made as running:
        running.launch('central')
        yield running


@pytest.fixture(scope='module')
def database(stack: Stack) -> Iterator[Storage]:
    storage = Storage(stack.database_url)
    yield storage
    storage.close()


def zone_file(name: str, number: int, filling: str = '') -> Iterator[bytes]:
    """A zone file with so many records beside its SOA, ten to a name."""
    yield f'$ORIGIN {name}\n$TTL 300\n@ SOA ns1 hostmaster 1 7200 900 1209600 600\n'.encode()
    for start in range(0, number, 1000):
        yield ''.join(f'h{each // 10} TXT "{each} {filling}"\n'
                      for each in range(start, min(start + 1000, number))).encode()


class Peak:
    """The most memory that a process had at once meanwhile, above what it has at the beginning; in bytes."""

    def __init__(self, pid: int) -> None:
        self._folder = pathlib.Path(f'/proc/{pid}')
        (self._folder / 'clear_refs').write_text('5')  # the most so far is what it has now
        self._first = self._read('VmRSS')

    def _read(self, name: str) -> int:
        return next(int(line.split()[1]) << 10 for line in (self._folder / 'status').read_text().splitlines()
                    if line.startswith(name))

    def bytes(self) -> int:
        return self._read('VmHWM') - self._first


def test_a_large_zone_is_held_once_at_most(stack: Stack) -> None:
    api, central = (Peak(stack.processes[name].pid) for name in ('api', 'central'))
    task = requests.post(stack.url + IMPORTS, data=b''.join(zone_file('large.example.com.', RECORDS, FILLING)),
                         headers={'Content-Type': 'text/dns'}, timeout=120).json()
    assert task['status'] == 'PENDING', task
    task = stack.wait_for_import(task['id'], 300)
    assert task['message'] == 'large.example.com. imported'
    export = stack.request('POST', f'/v2/zones/{task["zone_id"]}/tasks/export', 202)
    export = stack.request('GET', f'/v2/zones/tasks/exports/{export["id"]}', 200)
    with requests.get(export['location'], stream=True, timeout=120) as answer:
        assert answer.headers['Content-Type'].startswith('text/dns')
        lines = sum(piece.count(b'\n') for piece in answer.iter_content(1 << 20))
    assert lines == 3 + 2 + RECORDS
    grown = {'api': api.bytes() / MEGABYTE, 'central': central.bytes() / MEGABYTE}
    print(grown)
    # The file has 48 MB; as Python's texts, with a place in a table each, it is twice that.
    assert grown['api'] < 40 and grown['central'] < 200, grown


def test_a_client_that_does_not_read_holds_nothing(stack: Stack, database: Storage) -> None:
    (zone,) = stack.request('GET', '/v2/zones?name=large.example.com.', 200)['zones']
    with socket.create_connection(('127.0.0.1', stack.api_port)) as client:
        client.sendall(f'GET /v2/zones/tasks/exports/{zone["id"]}/export HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.encode())
        assert client.recv(100).startswith(b'HTTP/1.1 200 OK')
        wait_until(lambda: transactions(database) == [], 'no transaction is open')
        assert stack.zone(zone['id'])['name'] == 'large.example.com.'


def transactions(database: Storage) -> list[Any]:
    """What is open in the database, but for the one that looks."""
    return list(database.read(lambda tx: tx.execute(sa.text(
        'SELECT query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() '
        'AND xact_start IS NOT NULL')).scalars().all()))
