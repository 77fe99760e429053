"""Servers and what is commanded about them, on each database."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool import errors
from designate_pool.central.rules import servers as rules
from designate_pool.central.service import Central
from designate_pool.model import LONGEST_LABEL, Action, Outcome, PoolServer, ServerState, ServerStatus, utcnow
from designate_pool.storage.operations import pool_servers as store, server_statuses
from designate_pool.storage.sql.database import Storage, Tx
from tests.fixtures.central import WHO, Clock, create

ONE, TWO, THREE = (digit * 32 for digit in '123')
JOINING, ACTIVE, MAINTENANCE, DRAINING, REMOVED = ServerState
#: Puts the first server into a state; ``put(ACTIVE, joined_at=None)``.
Put = Callable[..., PoolServer]


def sections(*ids: str) -> list[PoolServer]:
    return [PoolServer(each, '', f'fake:192.0.2.{each[0]}:53', 'fake', JOINING, 'f' * 64, position)
            for position, each in enumerate(ids)]


def register(database: Storage, *ids: str) -> Any:
    return database.run(store.register, 'default', sections(*ids), False, True, utcnow())


@pytest.fixture(autouse=True)
def three(database: Storage, clock: Clock) -> None:
    """Three servers, active since before the clock's time."""
    register(database, ONE, TWO, THREE)
    clock.now += 60


@pytest.fixture
def put(database: Storage, central: Central) -> Put:
    def put(state: ServerState, **values: Any) -> PoolServer:
        changed = dataclasses.replace(found(central), state=state, state_since=utcnow() - timedelta(hours=1), **values)
        assert database.run(store.save, changed, utcnow())
        return found(central)

    return put


def found(central: Central, server_id: str = ONE) -> PoolServer:
    return {server.id: server for server in central.find_servers(WHO, 'default')}[server_id]


def at(clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock.now, utcnow().tzinfo)


class TestReading:
    def test_the_servers_in_the_order_of_the_configuration(self, central: Central, database: Storage) -> None:
        register(database, THREE, ONE)
        servers = central.find_servers(WHO, 'default')
        assert [(each.id, each.state) for each in servers] == [(THREE, ACTIVE), (ONE, ACTIVE), (TWO, DRAINING)]

    @pytest.mark.all_databases
    def test_the_longest_label_has_room(self, central: Central, database: Storage) -> None:
        label = f'bind9:{"h" * 253}:65535/'.ljust(LONGEST_LABEL, 'ü')
        server = PoolServer('e' * 32, '', label, 'bind9', ACTIVE, 'f' * 64)
        database.run(store.register, 'default', [server], False, True, utcnow())
        assert label in [each.label for each in central.find_servers(WHO, 'default')]
        if database.engine.dialect.name != 'sqlite':  # it has room for all
            longer = dataclasses.replace(server, label=f'{label}v')
            with pytest.raises(sa.exc.DataError):
                database.run(store.register, 'default', [longer], False, True, utcnow())

    def test_a_pool_that_does_not_exist(self, central: Central) -> None:
        for ask in (central.find_servers, central.report_servers):
            with pytest.raises(errors.PoolNotFound):
                ask(WHO, 'x')
            with pytest.raises(errors.InvalidField):
                ask(WHO, None)  # type: ignore[arg-type]

    @pytest.mark.parametrize('server_id', ['f' * 32, 'x', None])
    def test_a_server_that_does_not_exist(self, central: Central, server_id: Any) -> None:
        for ask in (central.report_server, central.rest_server, central.resume_server, central.drain_server):
            with pytest.raises(errors.NotFound):
                ask(WHO, server_id)

    def test_how_it_goes(self, central: Central, database: Storage) -> None:
        domains = [create(central, f'd{number}.example.') for number in range(3)]
        now = utcnow().replace(microsecond=0)

        def row(server: str, number: int, **values: Any) -> ServerStatus:
            return ServerStatus(server, domains[number].id, Action.UPDATE, domains[number].serial, version=1, **values)

        database.run(server_statuses.write, [
            row(ONE, 0, status=Outcome.SUCCESS), row(ONE, 1, next_attempt_at=now),
            row(ONE, 2, status=Outcome.ERROR, last_error='refused', next_attempt_at=now + timedelta(seconds=30)),
            row(TWO, 0, next_attempt_at=now)], now)
        one, two, three = central.report_servers(WHO, 'default')
        assert (one.domains, one.waiting, one.failing, one.oldest, one.rows) == (3, 2, 1, now, None)
        assert (two.waiting, two.failing, three.waiting, three.oldest) == (1, 0, 0, None)
        whole = central.report_server(WHO, ONE)
        assert (whole.rows, whole.failures) == (3, (('d2.example.', 'UPDATE', 'refused'),))
        assert dataclasses.replace(whole, rows=None, failures=()) == one


class TestMaintenance:
    def test_it_rests_and_comes_back(self, central: Central, clock: Clock) -> None:
        rested = central.rest_server(WHO, ONE)
        assert rested == found(central)
        assert (rested.state, rested.state_since, rested.note) == (
            MAINTENANCE, at(clock), 'put into maintenance by command')
        clock.now += 60
        assert central.rest_server(WHO, ONE) == rested
        back = central.resume_server(WHO, ONE)
        assert (back.state, back.state_since, back.note) == (ACTIVE, at(clock), 'resumed by command')
        assert central.resume_server(WHO, ONE) == back
        assert [found(central, each).state for each in (TWO, THREE)] == [ACTIVE, ACTIVE]

    def test_one_that_is_being_filled_goes_on_where_it_was(self, central: Central, put: Put, clock: Clock) -> None:
        put(JOINING, joined_at=None, filled_to='a' * 32, filled=7, claimed_by='manager', claimed_until=utcnow())
        rested = central.rest_server(WHO, ONE)
        assert (rested.state, rested.claimed_by) == (MAINTENANCE, None)
        clock.now += 60
        back = central.resume_server(WHO, ONE)
        assert (back.state, back.filled_to, back.filled) == (JOINING, 'a' * 32, 7)

    @pytest.mark.parametrize('state', [DRAINING, REMOVED])
    def test_not_of_one_that_leaves(self, central: Central, put: Put, state: ServerState) -> None:
        put(state, dismissed=True)
        with pytest.raises(errors.WrongServerState) as caught:
            central.rest_server(WHO, ONE)
        assert str(caught.value) == f'Server fake:192.0.2.1:53 is {state}: it is being removed.'


class TestResume:
    def test_one_that_joins_counts_as_it_is_and_is_filled_on(self, central: Central, put: Put, clock: Clock) -> None:
        put(JOINING, joined_at=None, filled_to='a' * 32, filled=7)
        counts = central.resume_server(WHO, ONE)
        assert (counts.state, counts.joined_at, counts.filled_to, counts.filled) == (ACTIVE, at(clock), 'a' * 32, 7)
        assert counts.note == 'counts by command, with 7 zones started'

    @pytest.mark.parametrize('state', [DRAINING, REMOVED])
    def test_one_that_was_drained_by_command_joins_again(self, central: Central, put: Put, state: ServerState) -> None:
        put(state, dismissed=True, delete_zones=True, filled=9)
        back = central.resume_server(WHO, ONE)
        assert (back.state, back.filled_to, back.filled, back.joined_at) == (JOINING, '', 0, None)
        assert (back.dismissed, back.delete_zones) == (False, False)

    @pytest.mark.parametrize('state', [DRAINING, REMOVED])
    def test_not_one_whose_section_is_gone(self, central: Central, put: Put, state: ServerState) -> None:
        put(state)
        with pytest.raises(errors.WrongServerState) as caught:
            central.resume_server(WHO, ONE)
        assert str(caught.value).endswith('its section is gone from the configuration; add it again and reload.')

    def test_done_twice_since_the_answer_of_the_commit_was_lost(self, database: Storage, put: Put) -> None:
        put(MAINTENANCE, joined_at=None, filled_to='')
        now = utcnow()
        first = database.run(rules.resume, ONE, now)
        assert database.run(rules.resume, ONE, now) == first
        assert first.state is JOINING


class TestDrain:
    @pytest.mark.parametrize('state', [JOINING, ACTIVE, MAINTENANCE])
    @pytest.mark.parametrize('delete_zones', [False, True])
    def test_it_leaves(self, central: Central, put: Put, state: ServerState, delete_zones: bool) -> None:
        put(state, filled_to='a' * 32)
        leaving = central.drain_server(WHO, ONE, delete_zones)
        assert (leaving.state, leaving.dismissed, leaving.delete_zones, leaving.filled_to) == (
            DRAINING, True, delete_zones, None)

    def test_it_stays_out_though_its_section_is_there(self, central: Central, database: Storage) -> None:
        central.drain_server(WHO, ONE)
        register(database, ONE, TWO, THREE)
        assert found(central).state is DRAINING

    def test_that_its_zones_go_can_be_said_later(self, central: Central, put: Put) -> None:
        put(DRAINING)
        same = central.drain_server(WHO, ONE)
        assert (same.delete_zones, same.dismissed) == (False, False)
        more = central.drain_server(WHO, ONE, delete_zones=True)
        assert (more.delete_zones, more.state_since, more.note) == (
            True, same.state_since, 'drained by command, its zones to be deleted')
        assert central.drain_server(WHO, ONE) == more

    def test_not_of_one_that_is_removed(self, central: Central, put: Put) -> None:
        put(REMOVED, dismissed=True)
        with pytest.raises(errors.WrongServerState):
            central.drain_server(WHO, ONE)


class TestTogether:
    def test_a_lost_race_is_run_again_on_what_the_winner_made(self, central: Central, put: Put,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
        """The pool manager takes the server's last domain between our reading and our writing."""
        put(JOINING, joined_at=None, filled_to='a' * 32)
        read, raced = store.SERVERS.get, []

        def raced_get(tx: Tx, server_id: str) -> PoolServer | None:
            server = read(tx, server_id)
            if server is not None and not raced:
                raced.append(server)
                assert store.save(tx, store.in_state(server, ACTIVE, utcnow(), joined_at=utcnow()), utcnow())
            return server

        monkeypatch.setattr(store.SERVERS, 'get', raced_get)
        with pytest.raises(errors.LostRace):
            central._storage.run(rules.rest, ONE, utcnow())
        raced.clear()
        assert central.rest_server(WHO, ONE).state is MAINTENANCE
        assert len(raced) == 1


def test_many_domains_are_not_counted_for_everybody_who_looks(database: Storage, central: Central, clock: Clock,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> int:
        return next(report.domains for report in central.report_servers(WHO, 'default'))

    create(central, 'a.example.com.')
    assert shown() == 1
    monkeypatch.setattr(rules, 'CACHED_FROM', 2)
    create(central, 'b.example.com.')
    assert shown() == 2
    create(central, 'c.example.com.')
    assert (shown(), central.report_server(WHO, ONE).domains) == (2, 2)
    clock.now += rules.CACHED.total_seconds()
    assert shown() == 3
