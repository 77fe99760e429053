"""RabbitMQ with three nodes and quorum queues: services go on when a node is silent or is killed."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator

import pytest

from testing.databases import PostgreSQL
from testing.rabbitmq import RabbitMqCluster
from tests.functional.clusters.load import Load

PROFILE = (pathlib.Path(__file__).parents[3] / 'etc' / 'profile-cluster.conf').read_text()
#: The sections before are in the configuration of the services already.  A node that is silent is left after a third of
#: the time.
OPTIONS = PROFILE[PROFILE.index('[oslo_messaging_rabbit]'):].replace(
    'heartbeat_timeout_threshold = 15', 'heartbeat_timeout_threshold = 5')


@pytest.fixture
def cluster() -> Iterator[RabbitMqCluster]:
    with RabbitMqCluster() as started:
        yield started


def test_services_leave_a_node_that_is_silent_and_go_on_when_one_after_the_other_is_killed(
        cluster: RabbitMqCluster, postgresql: PostgreSQL, loaded: Callable[..., Load]) -> None:
    """Connections to a silent node stay open, and it accepts further ones, but never answers."""
    load = loaded(postgresql.create_database(), cluster.url, OPTIONS)
    faults = [('before', 0.0)]
    with load.running():
        load.await_changes(40)
        faults.append(('a node is paused', load.now))
        cluster.nodes[0].pause()
        load.await_changes(20)
        faults.append(('it goes on', load.now))
        cluster.nodes[0].resume()
        load.await_changes(20)
        for number in (0, 1):
            faults.append((f'node {number} is killed', load.now))
            cluster.nodes[number].kill()
            load.await_changes(40)
            faults.append((f'node {number} comes back', load.now))
            cluster.nodes[number].restart()
            load.await_changes(20)
    load.tell('RabbitMQ', *faults)
    queues = cluster.nodes[0].control('list_queues', '--quiet', 'name', 'type', 'durable')
    assert 'quorum' in queues
    load.check()
