"""The database and the broker of a lab: single servers, and clusters with a namespace for each node.

The services reach the database through the proxy that ends connections in the middle of a COMMIT.  It is the proxy
before a cluster, too: it leads to one node, and to another one when that is not fit.
"""

from __future__ import annotations

import contextlib
import pathlib
import threading
from collections.abc import Sequence
from typing import NamedTuple

import psycopg2
import sqlalchemy as sa

from designate_pool.model import Endpoint
from testing.databases import DatabaseServer, MariaDB, PostgreSQL
from testing.galera import GaleraCluster
from testing.rabbitmq import RabbitMq, RabbitMqCluster
from testing.standby import StandbyPair
from tests.torture.commit_proxy import CommitProxy
from tests.torture.network import Host, Network
from tests.torture.nodes import BrokerNode, DatabaseNode

_PROFILE = pathlib.Path(__file__).parents[2] / 'etc' / 'profile-cluster.conf'
#: Where the services reach the database.
DATABASE = 'database'


class LabDatabase:
    """
    :param hosts: of the nodes
    :ivar nodes: the servers
    :ivar commits: the proxy; from the start on
    :ivar can_fail_over: whether there is a standby to be promoted
    """

    can_fail_over = False

    def __init__(self, proxy: Host, hosts: Sequence[Host], folder: pathlib.Path) -> None:
        self._proxy = proxy
        self.nodes = [DatabaseNode(host, folder) for host in hosts]
        self._end = contextlib.ExitStack()
        self.commits: CommitProxy

    @property
    def is_cluster(self) -> bool:
        return len(self.nodes) > 1

    def start(self) -> str:
        """Start all; the URL of a new, empty database."""
        url = sa.make_url(self._start())
        self.commits = self._end.enter_context(CommitProxy(self._proxy, self._endpoint(self.nodes[0])))
        return url.set(host=self.commits.endpoint.host, port=self.commits.endpoint.port).render_as_string(
            hide_password=False)

    def close(self) -> None:
        self._end.close()

    def is_whole(self) -> bool:
        """Whether every node takes part, so that one may be lost."""
        return True

    def fail_over(self) -> DatabaseNode:
        """Kill the primary and promote the standby; the former primary."""
        raise NotImplementedError

    def rejoin(self, node: DatabaseNode) -> None:
        """Make a former primary the standby."""
        raise NotImplementedError

    def _start(self) -> str:
        """Start all; the URL of a new database at the first node."""
        raise NotImplementedError

    @staticmethod
    def _endpoint(node: DatabaseNode) -> Endpoint:
        return Endpoint(node.host.address, node.server.port)


class SingleDatabase(LabDatabase):
    """:param make: the server"""

    def __init__(self, make: type[DatabaseServer], host: Host, folder: pathlib.Path) -> None:
        super().__init__(host, [host], folder)
        place = self.nodes[0].place
        self._server = self.nodes[0].server = make(host=place.host, prefix=place.prefix, folder=place.folder)

    def _start(self) -> str:
        self._server.__enter__()
        return self._server.create_database()


class GaleraDatabase(LabDatabase):
    """MariaDB Galera, of which the proxy leads to one fit node."""

    def __init__(self, proxy: Host, hosts: Sequence[Host], folder: pathlib.Path) -> None:
        super().__init__(proxy, hosts, folder)
        self._cluster = GaleraCluster([node.place for node in self.nodes])
        for node, server in zip(self.nodes, self._cluster.nodes, strict=True):
            node.server = server
        self._over = threading.Event()

    def start(self) -> str:
        url = super().start()
        watch = threading.Thread(target=self._watch, name='galera', daemon=True)
        self._end.callback(watch.join)
        self._end.callback(self._over.set)
        watch.start()
        return url

    def _start(self) -> str:
        return self._cluster.start().create_database()

    def is_whole(self) -> bool:
        return all(each.running and each.is_synced(len(self.nodes)) for each in self._cluster.nodes)

    def _watch(self) -> None:
        """What a proxy's own health checks do."""
        used = 0
        while not self._over.wait(0.3):
            servers = self._cluster.nodes
            if servers[used].is_synced():
                continue
            fit = next((number for number, each in enumerate(servers) if number != used and each.is_synced()), None)
            if fit is not None:
                used = fit
                self.commits.lead(self._endpoint(self.nodes[used]))


class StandbyDatabase(LabDatabase):
    """PostgreSQL with a synchronous standby; the proxy leads to the primary."""

    can_fail_over = True

    def __init__(self, proxy: Host, hosts: Sequence[Host], folder: pathlib.Path) -> None:
        super().__init__(proxy, hosts, folder)
        self._pair = StandbyPair([node.place for node in self.nodes])
        for node, server in zip(self.nodes, self._pair.nodes, strict=True):
            node.server = server

    def _start(self) -> str:
        self._pair.start()
        return self._pair.primary.create_database()

    def is_whole(self) -> bool:
        """As a cluster manager does, it trusts a standby that has caught up since it came."""
        with contextlib.suppress(psycopg2.Error):
            return all(node.running for node in self.nodes) and self._pair.primary.value(
                "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'") == '1'
        return False

    def fail_over(self) -> DatabaseNode:
        former, = (node for node in self.nodes if node.server is self._pair.primary)
        number = 1 - self.nodes.index(former)
        former.kill()
        self._pair.promote(number)
        self.commits.lead(self._endpoint(self.nodes[number]))
        return former

    def rejoin(self, node: DatabaseNode) -> None:
        self._pair.join(self.nodes.index(node))


class LabBroker:
    """RabbitMQ: one node, or a cluster.

    :ivar nodes: the servers
    :ivar urls: of each node, for who uses one of them
    :ivar options: of the services, in their section ``oslo_messaging_rabbit``
    """

    def __init__(self, hosts: Sequence[Host], folder: pathlib.Path) -> None:
        self.nodes = [BrokerNode(host, folder) for host in hosts]
        places = [node.place for node in self.nodes]
        self._cluster = RabbitMqCluster(places) if len(hosts) > 1 else None
        single = [] if self._cluster else [RabbitMq(folder / hosts[0].name, hosts[0].address, hosts[0].prefix)]
        servers = self._cluster.nodes if self._cluster else single
        for node, server in zip(self.nodes, servers, strict=True):
            node.server = server
        self.urls = [server.url for server in servers]
        self.options = _profile() if self._cluster else ['heartbeat_timeout_threshold = 10']

    @property
    def is_cluster(self) -> bool:
        return self._cluster is not None

    def start(self) -> str:
        """Start all; the URL for the services."""
        if self._cluster is not None:
            return self._cluster.start().url
        for node in self.nodes:
            node.server.start()
        return self.urls[0]

    def is_whole(self) -> bool:
        return all(node.running for node in self.nodes)


def _profile() -> list[str]:
    """What the profile for clusters gives all programs."""
    _, _, options = _PROFILE.read_text().partition('[oslo_messaging_rabbit]\n')
    return options.splitlines()


class BackendKind(NamedTuple):
    """What a lab's services depend on.

    :ivar database: of :data:`_DATABASES`
    :ivar brokers: nodes of the broker
    """

    database: str
    brokers: int = 1


#: By the name that ``--backends`` takes.
BACKENDS = {'postgresql': BackendKind('postgresql'), 'mariadb': BackendKind('mariadb'),
            'galera': BackendKind('galera'), 'postgresql-standby': BackendKind('standby'),
            'rabbitmq-cluster': BackendKind('postgresql', 3)}
_SINGLE: dict[str, type[DatabaseServer]] = {'postgresql': PostgreSQL, 'mariadb': MariaDB}


def make_database(kind: BackendKind, network: Network, folder: pathlib.Path) -> LabDatabase:
    host = network.add(DATABASE)
    if kind.database in _SINGLE:
        return SingleDatabase(_SINGLE[kind.database], host, folder)
    made, count = (GaleraDatabase, 3) if kind.database == 'galera' else (StandbyDatabase, 2)
    return made(host, [network.add(f'{kind.database}{number}') for number in range(1, count + 1)], folder)


def make_broker(kind: BackendKind, network: Network, folder: pathlib.Path) -> LabBroker:
    names = ['broker'] if kind.brokers == 1 else [f'broker{number}' for number in range(1, kind.brokers + 1)]
    return LabBroker([network.add(name) for name in names], folder)
