"""MariaDB Galera with three nodes: what its nodes do not do for each other, and services whose node is lost."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pymysql
import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY

from designate_pool.central import domain_changes, domain_creator
from designate_pool.central.rules import pools
from designate_pool.central.rules.journal import Journal
from designate_pool.central.rules.quotas import Allowance, ProjectQuotas
from designate_pool.central.validation.requests import NewDomain
from designate_pool.errors import PoolError
from designate_pool.model import Context, Task, new_id, utcnow
from designate_pool.storage.sql import migrate, schema
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import pools as pool_store, recordsets
from designate_pool.storage.zones.nameserver_updates import NameserverUpdate
from testing.galera import GaleraCluster
from testing.processes import wait_until
from testing.proxy import Proxy
from tests.functional.clusters.load import Load

COUNTERS = sa.Table('counters', sa.MetaData(), sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
                    sa.Column('n', sa.Integer, nullable=False))
ADD = COUNTERS.update().where(COUNTERS.c.id == 1).values(n=COUNTERS.c.n + 1)


@pytest.fixture(scope='module')
def cluster() -> Iterator[GaleraCluster]:
    """A test that ends a node starts it again."""
    with GaleraCluster() as started:
        yield started


@pytest.fixture
def nodes(cluster: GaleraCluster) -> Iterator[list[Storage]]:
    """A database with a table of counters, at each node."""
    storages = [Storage(url) for url in cluster.urls(cluster.create_database())]

    def prepare(tx: Tx) -> None:
        COUNTERS.create(tx)
        tx.execute(COUNTERS.insert(), [{'id': 1, 'n': 0}, {'id': 2, 'n': 0}])

    storages[0].run(prepare)
    yield storages
    for each in storages:
        each.close()


def count(tx: Tx) -> int:
    return int(tx.execute(sa.select(COUNTERS.c.n).where(COUNTERS.c.id == 1)).scalar_one())


def at_once(storages: Sequence[Storage], *works: Callable[[Tx], Any]) -> list[Any]:
    """What each of two works returns, or the type of its error; none commits before both have done theirs."""
    both_are_done = threading.Barrier(2)

    def run(storage: Storage, work: Callable[[Tx], Any]) -> Any:
        tries = []

        def meet(tx: Tx) -> Any:
            tries.append(1)
            result = work(tx)
            if len(tries) == 1:
                both_are_done.wait(30)
            return result

        try:
            return storage.run(meet)
        except PoolError as error:
            return error.type

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run, storages, works))


def retries() -> int:
    return int(REGISTRY.get_sample_value('designate_pool_database_retries_total') or 0)


def test_two_nodes_that_write_one_row_at_once_both_get_their_transaction(nodes: list[Storage]) -> None:
    """The one that loses is told so at COMMIT, or before."""
    before = retries()
    at_once(nodes[:2], *[lambda tx: tx.execute(ADD)] * 2)
    assert [each.read(count) for each in nodes] == [2, 2, 2]
    assert retries() == before + 1


def test_many_writers_of_one_row_at_three_nodes_lose_nothing(nodes: list[Storage]) -> None:
    def add(storage: Storage) -> None:
        for _ in range(20):
            storage.run(lambda tx: tx.execute(ADD))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(add, nodes))
    assert [each.read(count) for each in nodes] == [60, 60, 60]


def test_a_conflict_that_ends_a_savepoint_too_is_tried_again(nodes: list[Storage]) -> None:
    tries = []

    def work(tx: Tx) -> None:
        with tx.begin_nested():
            tx.execute(ADD)
            tries.append(1)
            if len(tries) == 1:
                nodes[1].run(lambda other: other.execute(ADD))
                wait_until(lambda: nodes[2].read(count) == 1, 'the other one has committed')
            tx.execute(COUNTERS.update().values(n=COUNTERS.c.n + 1))

    nodes[0].run(work)
    assert len(tries) == 2
    assert nodes[0].read(count) == 3


def test_a_node_that_lags_behind_is_waited_for_by_what_reads_there(cluster: GaleraCluster,
                                                                   nodes: list[Storage]) -> None:
    behind, url = cluster.nodes[1], sa.make_url(nodes[1].engine.url)
    with contextlib.closing(pymysql.connect(host=behind.host, port=behind.port, user='root', database=url.database,
                                            autocommit=True)) as plain, plain.cursor() as cursor:
        cursor.execute('FLUSH TABLES WITH READ LOCK')  # from here on it takes over nothing
        nodes[0].run(lambda tx: tx.execute(ADD))
        cursor.execute('SELECT n FROM counters WHERE id = 1')
        assert cursor.fetchone() == (0,)  # as everybody else would see it
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(nodes[1].read, count)
            assert not wait([found], timeout=1).done
            cursor.execute('UNLOCK TABLES')
            assert found.result(30) == 1


def test_connections_leave_a_node_that_has_lost_its_cluster(cluster: GaleraCluster, nodes: list[Storage]) -> None:
    alone, proxy = cluster.nodes[0], Proxy(cluster.nodes[0].port)
    url = nodes[0].engine.url.set(port=proxy.port)
    storage = Storage(url.render_as_string(hide_password=False))
    try:
        storage.run(lambda tx: tx.execute(ADD))
        assert storage.read(count) == 1
        alone.execute("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'")
        wait_until(lambda: alone.status('wsrep_cluster_status') == 'non-Primary', 'it is alone')
        proxy.move(cluster.nodes[1].port)  # its connections stay
        storage.run(lambda tx: tx.execute(ADD))
        assert storage.read(count) == 2
    finally:
        alone.execute("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'")
        cluster.wait_until_whole()
        storage.close()
        proxy.stop()


def test_every_table_has_a_primary_key() -> None:
    """Galera replicates no deletes of rows without one, and nodes would hold them in different orders."""
    assert [table.name for table in schema.metadata.sorted_tables if not table.primary_key.columns] == []


@pytest.fixture
def pooled(cluster: GaleraCluster) -> Iterator[list[Storage]]:
    """A database with a pool, at two nodes."""
    urls = cluster.urls(cluster.create_database())[:2]
    migrate.upgrade(urls[0])
    storages = [Storage(url) for url in urls]

    def prepare(tx: Tx) -> None:
        pools.update(tx, Context(), pool_id(tx), {'name_servers': ['ns1.example.org.']}, utcnow(), new_id())

    storages[0].run(prepare)
    yield storages
    for each in storages:
        each.close()


def pool_id(tx: Tx) -> str:
    return str(tx.execute(sa.select(schema.pools.c.id)).scalar_one())


def create(tx: Tx, domain_id: str, project: str, name: str) -> None:
    domain_creator.create_domain(tx, pool_store.share(tx, name=pool_store.FIRST), Context(project_id=project),
                                 domain_id, NewDomain(name, 'hostmaster@example.com'), (), utcnow(),
                                 Allowance(ProjectQuotas(), utcnow))


def test_projects_do_not_get_names_below_one_another_at_two_nodes(pooled: list[Storage]) -> None:
    one, other = new_id(), new_id()
    outcomes = at_once(pooled, lambda tx: create(tx, one, 'one', 'example.com.'),
                       lambda tx: create(tx, other, 'other', 'sub.example.com.'))
    assert outcomes in ([None, 'illegal_child'], ['illegal_parent', None])


def test_a_zone_that_is_made_at_one_node_while_name_servers_change_at_the_other(pooled: list[Storage]) -> None:
    """Locks of rows that are only read end at their node, so it may have the former ones, until the pool is renewed."""
    key, new = new_id(), ['ns2.example.org.']
    outcomes = at_once(pooled, lambda tx: create(tx, key, 'one', 'example.com.'), lambda tx: bool(
        pools.update(tx, Context(), pool_id(tx), {'name_servers': new}, utcnow(), new_id())))
    assert outcomes == [None, True]

    def name_servers(tx: Tx) -> list[str]:
        (found,) = recordsets.at_apex(tx, [key], 'NS')
        return [record.data for record in found.records if record.task is not Task.DELETE]

    # It has the new ones when its transaction was refused at COMMIT, and made again.
    assert pooled[0].read(name_servers) in (['ns1.example.org.'], new)
    pooled[0].run(lambda tx: domain_changes.update_name_servers(
        tx, NameserverUpdate(pool_id(tx), new_id(), True, ''), '', 100, [], utcnow(), utcnow(), Journal(100, 100)))
    assert pooled[1].read(name_servers) == new


def test_services_that_each_use_another_node_lose_nothing(cluster: GaleraCluster, loaded: Callable[..., Load]) -> None:
    urls = cluster.urls(cluster.create_database())
    load = loaded(urls[0])
    load.stack.launch_at(urls[1], 'manager')
    load.stack.launch_at(urls[2], 'minidns')
    load.stack.launch_at(urls[1], 'central', key='central')
    with load.running():
        load.await_changes(80)
    load.tell('Galera, each service at another node')
    load.check()


@pytest.fixture
def proxy(cluster: GaleraCluster) -> Iterator[Proxy]:
    """To the first node; the services end before it does."""
    proxy = Proxy(cluster.nodes[0].port)
    yield proxy
    proxy.stop()


def test_services_go_on_when_their_node_is_killed_and_when_it_is_paused(
        cluster: GaleraCluster, proxy: Proxy, loaded: Callable[..., Load]) -> None:
    url = sa.make_url(cluster.create_database()).set(port=proxy.port).render_as_string(hide_password=False)
    load = loaded(url)
    faults = [('before', 0.0)]

    def to(number: int) -> None:
        proxy.move(cluster.nodes[number].port)
        proxy.cut()

    with load.running():
        load.await_changes(40)
        faults.append(('a node that nobody uses is killed', load.now))
        cluster.nodes[2].kill()
        load.await_changes(40)
        cluster.nodes[2].start()
        faults.append(('the node in use is killed', load.now))
        cluster.nodes[0].kill()
        to(1)
        load.await_changes(40)
        cluster.nodes[0].start()
        faults.append(('the node in use is paused', load.now))
        cluster.nodes[1].pause()
        to(2)
        load.await_changes(40)
        faults.append(('it goes on', load.now))
        cluster.nodes[1].resume()
        cluster.wait_until_whole()
        load.await_changes(20)
    load.tell('Galera behind a proxy', *faults)
    load.check()
