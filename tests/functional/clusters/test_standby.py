"""PostgreSQL with a streaming standby that is promoted: what a commit is worth, and services that follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from designate_pool.storage.sql.database import Storage, Tx
from testing.processes import wait_until
from testing.proxy import Proxy
from testing.standby import StandbyPair
from tests.functional.clusters.load import Load

NAMES = sa.Table('names', sa.MetaData(), sa.Column('name', sa.String(20), primary_key=True))


@pytest.fixture
def pair() -> Iterator[StandbyPair]:
    with StandbyPair() as started:
        yield started


def put(tx: Tx, name: str) -> None:
    if name not in names(tx):
        tx.execute(NAMES.insert(), {'name': name})


def names(tx: Tx) -> list[str]:
    return list(tx.execute(sa.select(NAMES.c.name).order_by(NAMES.c.name)).scalars())


def test_a_commit_that_no_standby_has_is_lost_unless_it_waits_for_one() -> None:
    """So ``synchronous_standby_names`` has to name the standbys that may be promoted."""
    with StandbyPair(synchronous=False) as pair:
        storage = Storage(pair.create_database())
        storage.run(NAMES.create)
        pair.wait_until_replayed()
        pair.nodes[1].stop()
        storage.run(put, 'acknowledged')
        assert storage.read(names) == ['acknowledged']
        pair.nodes[0].kill()
        pair.nodes[1].start()
        pair.promote(1)
        assert storage.read(names) == []
        storage.close()


def test_a_commit_that_waits_for_a_standby_is_there_after_the_promotion(pair: StandbyPair) -> None:
    storage = Storage(pair.create_database())
    storage.run(NAMES.create)
    storage.run(put, 'first')
    pair.wait_until_replayed()  # until then it does not know the database
    pair.nodes[1].pause()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(storage.run, put, 'second')
        wait_until(lambda: pair.nodes[0].value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
                   == '1', 'the commit waits')
        assert not waiting.done()
        pair.nodes[0].kill()
        pair.nodes[1].resume()
        pair.promote(1)
        waiting.result(60)
    assert storage.read(names) == ['first', 'second']
    storage.close()


def test_connections_leave_a_server_that_has_become_a_standby(pair: StandbyPair) -> None:
    """A proxy may lead to it for a moment after the other one is promoted; a URL with both never does."""
    database = pair.create_database()
    proxy = Proxy(pair.nodes[1].port)
    behind = Storage(f'postgresql+psycopg2://postgres@127.0.0.1:{proxy.port}/{sa.make_url(database).database}')
    follower = Storage(database)
    try:
        follower.run(NAMES.create)
        pair.wait_until_replayed()
        assert behind.read(names) == []
        proxy.move(pair.nodes[0].port)  # its connections stay
        behind.run(put, 'name')
        assert follower.read(names) == ['name']
    finally:
        behind.close()
        follower.close()
        proxy.stop()


def test_services_find_the_new_primary_by_a_url_with_both(pair: StandbyPair, loaded: Callable[..., Load]) -> None:
    load = loaded(pair.create_database())
    faults = [('before', 0.0)]
    with load.running():
        load.await_changes(40)
        faults.append(('the primary is killed, and the standby promoted at once', load.now))
        pair.nodes[0].kill()
        pair.promote(1)
        load.await_changes(40)
        faults.append(('the former primary joins as a standby', load.now))
        pair.join(0)
        load.await_changes(40)
        faults.append(('the standby is paused, so that commits wait', load.now))
        pair.nodes[0].pause()
        wait_until(lambda: pair.nodes[1].value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
                   != '0', 'a commit waits', 60)
        pair.nodes[0].resume()
        load.await_changes(40)
        faults.append(('the primary is paused, then fenced, and the standby promoted', load.now))
        pair.nodes[1].pause()
        pair.nodes[1].kill()
        pair.promote(0)
        load.await_changes(40)
    load.tell('PostgreSQL with a standby', *faults)
    load.check()
