"""The API as a WSGI application, run by a server of WSGI."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys

import requests
from oslo_config import cfg

from designate_pool.model import Context, Domain, new_id
from designate_pool.rpc.broker import Messaging
from designate_pool.rpc.central import CentralClient
from testing.databases import upgraded_sqlite
from testing.processes import patience, wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import Stack

SERVER = '[backend:fake:2a1f6b7c-5f5e-4a57-9b0e-3f6a3b1f7d01]\nhost = 127.0.0.1\ncall_timeout = 2\n'
#: As short as a server can be: of Python alone, and it ends as other programs do.
WSGIREF = """
import signal, sys, wsgiref.simple_server
signal.signal(signal.SIGTERM, lambda *arguments: sys.exit(0))
from designate_pool.wsgi import application
with wsgiref.simple_server.make_server('127.0.0.1', int(sys.argv[1]), application) as server:
    server.serve_forever()
"""


def domain_by_message(broker: RabbitMq, domain_id: str) -> Domain:
    """A domain, as Central answers to the other services."""
    cfg.CONF([], project='test')
    messaging = Messaging(cfg.CONF, 'test', transport_url=broker.url)
    try:
        return CentralClient(messaging).get_domain(Context(request_id=new_id(), all_projects=True), domain_id)
    finally:
        messaging.stop()


def test_a_server_of_wsgi_serves_the_api_and_its_central_the_others(rabbitmq: RabbitMq, tmp_path: pathlib.Path) -> None:
    upgraded_sqlite(tmp_path / 'database')
    stack = Stack(tmp_path, [SERVER], f'sqlite:///{tmp_path}/database', rabbitmq.url)
    stack.manage('pool', 'set', 'default', '--name-server', 'ns1.example.org.')
    process = subprocess.Popen([sys.executable, '-c', WSGIREF, str(stack.api_port)],
                               env={**os.environ, 'DESIGNATE_POOL_CONFIG_FILE': str(stack.config)})
    try:
        wait_until(lambda: requests.get(f'{stack.url}/healthz', timeout=10).status_code == 200, 'it serves', 90)
        zone = stack.create_zone('example.com.')
        assert stack.zone(zone['id'])['name'] == 'example.com.'
        assert domain_by_message(rabbitmq, zone['id']).name == 'example.com.'
        process.send_signal(signal.SIGTERM)
        assert process.wait(patience(30)) == 0
    finally:
        process.kill()
        process.wait()
