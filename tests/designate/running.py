"""Designate as it runs for a user: its own programs as processes, with its database, its broker and BINDs."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import requests
import sqlalchemy as sa
import yaml

from designate_pool.storage.sql.database import Storage, Tx
from testing.bind import Named
from testing.designate import CREATED, NAME_SERVERS, SERIAL
from testing.processes import Process, Startable, binary, free_port, wait_until

#: The id that Designate gives its first pool.
POOL_ID = '794ccc2c-d751-44fe-b57f-8894c9f5c842'
PROJECT = 'the-project'
#: The address in zones that it has from the start.
SEEDED = '192.0.2.1'
SERVICES = ('central', 'mdns', 'worker', 'producer', 'api')
_SOA = f'{NAME_SERVERS[0]} hostmaster.example.net. {SERIAL} 3600 600 86400 3600'
#: Shorter waits than Designate's own, so that thousands of changes are served within minutes.
_CONF = '''
[DEFAULT]
transport_url = {transport}
state_path = {folder}
root_helper =
host = designate
quota_zones = 1000000
quota_zone_recordsets = 1000000
quota_zone_records = 1000000
[oslo_concurrency]
lock_path = {folder}/locks
[storage:sqlalchemy]
connection = {database}
[service:api]
listen = 127.0.0.1:{api_port}
api_base_uri = {url}/
auth_strategy = noauth
[service:central]
workers = 1
[service:mdns]
listen = 127.0.0.1:{mdns_port}
workers = 1
[service:worker]
workers = 1
poll_delay = 1
poll_retry_interval = 2
[service:producer]
workers = 1
[producer_task:worker_periodic_recovery]
interval = 10
'''
#: designate-api itself does not start with the libraries of today: it takes an application server.
_API = """
from werkzeug import serving
from designate.wsgi.api import application
serving.run_simple('127.0.0.1', {port}, application, threaded=True)
"""


class RunningDesignate(Startable):
    """Designate without Keystone.

    :param venv: where it is installed
    :param database: an empty one
    :param targets: the servers of its pool
    """

    def __init__(self, venv: pathlib.Path, folder: pathlib.Path, database: str, transport: str,
                 targets: Sequence[Named]) -> None:
        self.folder = folder
        self.database = database
        self._targets = targets
        self.conf = folder / 'designate.conf'
        self.pools = folder / 'pools.yaml'
        self.mdns_port = free_port()
        self._api_port = free_port()
        self.url = f'http://127.0.0.1:{self._api_port}'
        self._bin = venv / 'bin'
        self._processes: dict[str, Process] = {}
        (folder / 'locks').mkdir(parents=True)
        self.conf.write_text(_CONF.format(
            folder=folder, database=database, transport=transport, api_port=self._api_port, url=self.url,
            mdns_port=self.mdns_port))
        shutil.copy(venv / 'etc' / 'designate' / 'api-paste.ini', folder)
        self.pools.write_text(yaml.safe_dump([{
            'id': POOL_ID, 'name': 'default', 'description': 'The pool', 'attributes': {},
            'ns_records': [{'hostname': each, 'priority': number} for number, each in enumerate(NAME_SERVERS, 1)],
            'nameservers': [{'host': each.host, 'port': each.port} for each in targets],
            'targets': [{'type': 'bind9', 'description': each.folder.name,
                         'masters': [{'host': '127.0.0.1', 'port': self.mdns_port}],
                         'options': {'host': each.host, 'port': each.port, 'rndc_host': each.host,
                                     'rndc_port': each.rndc_port, 'rndc_key_file': str(each.folder / 'rndc.key')}}
                        for each in targets]}]))

    def start(self) -> RunningDesignate:
        self._manage('database', 'sync')
        self.launch('central')
        self._manage('pool', 'update', '--file', str(self.pools))
        self.launch(*(each for each in SERVICES if each != 'central'))
        return self

    def seed(self, count: int) -> dict[str, tuple[str, str]]:
        """Have so many zones, each with an A recordset :data:`SEEDED`, as if they had been created long ago: in its
        database, and on its servers.

        :return: the ids of zone and recordset, by the zone's name
        """
        names = [f'zone-{number:06}.example.net.' for number in range(count)]
        with contextlib.closing(Storage(self.database)) as storage:
            ids = storage.run(_insert_zones, names)
        template = self._raw_zone(names[0]) if names else b''
        for name in names:
            file = f'slave.{name}{ids[name][0]}'
            for server in self._targets:
                (server.folder / file).write_bytes(template.replace(names[0][:11].encode(), name[:11].encode()))
                said = server.command(f'addzone {name.rstrip(".")}  {{ type slave; masters {{ 127.0.0.1 port '
                                      f'{self.mdns_port};}}; file "{file}"; }};')
                assert said.result == 0, said
        return ids

    def _raw_zone(self, name: str) -> bytes:
        """The file of a zone as a BIND keeps it."""
        text, raw = self.folder / 'zone.text', self.folder / 'zone.raw'
        text.write_text('\n'.join(['$TTL 3600', f'{name} SOA {_SOA}', *(f'{name} NS {each}' for each in NAME_SERVERS),
                                   f'www.{name} A {SEEDED}', '']))
        done = subprocess.run([binary('named-compilezone'), '-q', '-F', 'raw', '-o', str(raw), name, str(text)],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return raw.read_bytes()

    def stop(self, *names: str) -> None:
        """End these services, or all."""
        for each in [self._processes.pop(name) for name in names or tuple(self._processes)]:
            each.stop(seconds=30)

    def launch(self, *names: str) -> None:
        """Start these services; returns when they are ready."""
        started = {}
        for name in names:
            log = self.folder / f'{name}.log'
            seen = log.stat().st_size if log.exists() else 0
            command = ([str(self._bin / 'python'), '-c', _API.format(port=self._api_port)] if name == 'api' else
                       [str(self._bin / f'designate-{name}'), '--config-file', str(self.conf)])
            started[name] = Process(command, log, cwd=self.folder, env={
                **os.environ, 'OS_DESIGNATE_CONFIG_DIR': str(self.folder)}).start(), seen
            self._processes[name] = started[name][0]
        for name, (process, seen) in started.items():
            ready = self._api_answers if name == 'api' else functools.partial(_has_said, process.log, seen,
                                                                              f'Starting {name} service')
            wait_until(lambda: process.running() and ready(), f'{name} of Designate is ready (log: {process.log})', 90)

    def logs(self) -> str:
        return '\n'.join(f'=== {name}\n{process.tail()}' for name, process in self._processes.items())

    def request(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None,
                status: int | None = None) -> Any:
        """
        :param status: the wanted one; any below 300 if it is not given
        """
        answer = requests.request(method, f'{self.url}/v2/{path}', json=body, timeout=120,
                                  headers={'X-Auth-Project-ID': PROJECT, **(headers or {})})
        assert (answer.status_code == status if status else answer.status_code < 300), (
            f'{method} {path} {json.dumps(body)}: {answer.status_code} {answer.text}\n{self.logs()}')
        return answer.json() if answer.content else None

    def _api_answers(self) -> bool:
        return requests.get(self.url, timeout=5).status_code < 500

    def _manage(self, *words: str) -> None:
        done = subprocess.run([str(self._bin / 'designate-manage'), '--config-file', str(self.conf), *words],
                              capture_output=True, text=True, timeout=300, cwd=self.folder)
        assert done.returncode == 0, f'designate-manage {words}: {done.stdout}\n{done.stderr}'


def _insert_zones(tx: Tx, names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """All that Designate writes for zones and their recordsets; the ids of zones and A recordsets."""
    zones, sets, records = (sa.Table(name, sa.MetaData(), autoload_with=tx)
                            for name in ('zones', 'recordsets', 'records'))
    rows: dict[sa.Table, list[dict[str, Any]]] = {zones: [], sets: [], records: []}
    same = {'created_at': CREATED.replace(tzinfo=None), 'version': 1, 'tenant_id': PROJECT}
    at_rest = {'status': 'ACTIVE', 'action': 'NONE'}
    ids: dict[str, tuple[str, str]] = {}
    for name in names:
        zone_id = uuid.uuid4().hex
        shard = int(zone_id[:3], 16)
        rows[zones].append({
            **same, **at_rest, 'id': zone_id, 'name': name, 'reverse_name': name[::-1], 'shard': shard, 'deleted': '0',
            'email': 'hostmaster@example.net', 'type': 'PRIMARY', 'ttl': 3600, 'serial': SERIAL, 'refresh': 3600,
            'retry': 600, 'expire': 86400, 'minimum': 3600, 'pool_id': POOL_ID.replace('-', ''),
            'delayed_notify': False, 'increment_serial': False})
        for owner, rtype, data in ((name, 'SOA', [_SOA]), (name, 'NS', NAME_SERVERS),
                                   (f'www.{name}', 'A', [SEEDED])):
            set_id = uuid.uuid4().hex
            rows[sets].append({**same, 'id': set_id, 'zone_id': zone_id, 'zone_shard': shard, 'name': owner,
                               'reverse_name': owner[::-1], 'type': rtype})
            rows[records] += [{
                **same, **at_rest, 'id': uuid.uuid4().hex, 'zone_id': zone_id, 'zone_shard': shard,
                'recordset_id': set_id, 'data': each, 'managed': rtype != 'A', 'serial': SERIAL,
                'hash': hashlib.md5(f'{set_id}:{each}'.encode(), usedforsecurity=False).hexdigest()} for each in data]
        ids[name] = str(uuid.UUID(zone_id)), str(uuid.UUID(set_id))
    for table, found in rows.items():
        for start in range(0, len(found), 2000):
            tx.execute(sa.insert(table), found[start:start + 2000])
    return ids


def _has_said(log: pathlib.Path, after: int, text: str) -> bool:
    return text.encode() in log.read_bytes()[after:]
