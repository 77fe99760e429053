"""RPC over a real broker, which goes away and comes back."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from oslo_config import cfg

from designate_pool.errors import DomainNotFound, ServiceUnavailable
from designate_pool.model import Context
from designate_pool.rpc.central import TOPIC, CentralClient
from designate_pool.rpc.messaging import Messaging
from tests.fixtures.processes import wait_until
from tests.fixtures.rabbitmq import RabbitMq


class Endpoint:
    def export_zone(self, context: Context, domain_id: str) -> str:
        if domain_id == 'none':
            raise DomainNotFound(domain=domain_id)
        return f'{context.request_id} {domain_id}'


@pytest.fixture
def broker(tmp_path: pathlib.Path) -> Iterator[RabbitMq]:
    """A broker of the test's own, since it is killed."""
    with RabbitMq(tmp_path) as running:
        yield running


@pytest.fixture
def client(broker: RabbitMq) -> Iterator[CentralClient]:
    cfg.CONF([], project='test')
    caller = Messaging(cfg.CONF, 'test', call_timeout=3.0, transport_url=broker.url)
    caller.serve(TOPIC, Endpoint())
    yield CentralClient(caller)
    caller.stop()


def test_calls_are_answered_again_after_the_broker_was_killed(broker: RabbitMq, client: CentralClient) -> None:
    def answered() -> bool:
        try:
            return client.export_zone(Context(request_id='r'), 'd') == 'r d'
        except ServiceUnavailable:
            return False

    wait_until(answered, 'the first answer')
    with pytest.raises(DomainNotFound, match='There is no domain none'):
        client.export_zone(Context(), 'none')
    broker.kill()
    broker.restart()
    wait_until(answered, 'an answer after the crash', seconds=60)
