"""Messages that are late or come twice, between programs at a real broker."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator

import pytest
from oslo_config import cfg

from designate_pool.model import Context
from designate_pool.rpc.broker import Messaging
from testing.processes import wait_until
from testing.rabbitmq import RabbitMq
from tests.torture import messages
from tests.torture.messages import Messages

#: With the ranks that the services have.
TOPICS = {'central': None, 'pool_manager.default': 0, 'minidns.default': 0, 'pool_manager-spread.default': None,
          'minidns-spread.default': None}
#: Nothing comes by itself, however slow the test is.
FOR_HOURS = dataclasses.replace(messages.KEPT, shortest=3600, longest=7200)


class Service:
    """What serves the topics, and is cast numbers.

    :ivar came: the numbers that came
    """

    def __init__(self, url: str) -> None:
        self.came: list[int] = []
        self.sent = 0
        cfg.CONF([], project='test')
        self._messaging = Messaging(cfg.CONF, 'test', call_timeout=3.0, transport_url=url)
        for topic, rank in TOPICS.items():
            self._messaging.serve(topic, Service, self, rank)

    def note(self, context: Context, number: int) -> None:
        self.came.append(number)

    def close(self) -> None:
        self._messaging.stop()

    def send_until(self, is_enough: Callable[[], bool]) -> None:
        """Cast the next number, again and again, until it is enough."""
        def send() -> bool:
            self._messaging.cast([*TOPICS][self.sent % len(TOPICS)], Context(), 'note', number=self.sent)
            self.sent += 1
            return is_enough()

        wait_until(send, 'enough messages are struck', 60, 0.02)

    def wait_for_all(self) -> None:
        wait_until(lambda: set(self.came) == set(range(self.sent)), 'all that was sent has come', 60)


@pytest.fixture(scope='module')
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMq]:
    """A broker of the module's own, since it is killed."""
    with RabbitMq(tmp_path_factory.mktemp('broker')) as running:
        yield running


@pytest.fixture
def service(broker: RabbitMq) -> Iterator[Service]:
    with contextlib.closing(Service(broker.url)) as service:
        yield service


@pytest.fixture
def struck(broker: RabbitMq, service: Service) -> Iterator[Messages]:
    with Messages([broker.url], 1) as struck:
        yield struck


def test_messages_are_kept_past_later_ones_and_the_end_of_the_broker(struck: Messages, service: Service,
                                                                     broker: RabbitMq) -> None:
    struck.fault = FOR_HOURS
    service.send_until(lambda: struck.counts['kept'] >= 20)
    struck.fault = None
    wait_until(lambda: struck.held == struck.counts['kept'], 'all others are given back', 60)
    before = service.sent
    service.send_until(lambda: service.sent >= before + 20)
    wait_until(lambda: set(range(before, service.sent)) <= set(service.came), 'later ones have come', 60)
    missing = set(range(service.sent)).difference(service.came)
    copies = struck.held - len(missing)
    assert missing and copies > 0
    broker.kill()
    broker.restart()
    struck.deliver(120)
    service.wait_for_all()
    wait_until(lambda: len(service.came) >= service.sent + copies, 'the copies have come as well')


def test_taking_ends_while_messages_come_due_at_once(struck: Messages, service: Service) -> None:
    """Those that are sent again are taken again, as long as they are taken."""
    for _ in range(2):
        struck.fault = dataclasses.replace(FOR_HOURS, copied=0, taken=1, shortest=0, longest=0)
        already = len(service.came)
        service.send_until(lambda: service.sent >= already + 50)
        struck.fault = None
        service.wait_for_all()
