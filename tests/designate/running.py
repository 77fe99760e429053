"""Designate as it runs for a user: its own programs as processes, with its database, its broker and BINDs."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import requests
import yaml

from testing.bind import Named
from testing.designate import NAME_SERVERS
from testing.processes import Process, Startable, free_port, wait_until

#: The id that Designate gives its first pool.
POOL_ID = '794ccc2c-d751-44fe-b57f-8894c9f5c842'
PROJECT = 'the-project'
SERVICES = ('central', 'mdns', 'worker', 'producer', 'api')
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


def _has_said(log: pathlib.Path, after: int, text: str) -> bool:
    return text.encode() in log.read_bytes()[after:]
