"""The rules for the servers of a pool, each function one transaction's work.

A command writes the wanted state of a server; the pool managers read it and act on it.  A row is written only over the
version that was read, so the second of two concurrent changes starts again from the result of the first.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

from designate_pool.errors import LostRace, NotFound, PoolNotFound, WrongServerState
from designate_pool.model import Context, PoolServer, ServerReport, ServerState
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import pools

_LEAVING = (ServerState.DRAINING, ServerState.REMOVED)
#: From this many domains on, a pool's count is good for this long: it is read several times a second by who waits.
CACHED_FROM, CACHED = 10_000, timedelta(seconds=30)

#: When the domains of a pool, given by its id, were counted, and how many there were.
Counts = dict[str, tuple[datetime, int]]


def of_pool(tx: Tx, pool_name: str) -> list[PoolServer]:
    """The servers of a pool."""
    return list(_roll(tx, pool_name).servers)


def reports(tx: Tx, counts: Counts, pool_name: str, now: datetime) -> list[ServerReport]:
    """The reports of a pool's servers, without their details."""
    roll = _roll(tx, pool_name)
    total = _domains_of(tx, counts, roll.pool_id, now)
    return [pool_servers.report(tx, server, total, now) for server in roll.servers]


def report(tx: Tx, counts: Counts, context: Context, server_id: str, now: datetime) -> ServerReport:
    """The report of one server, with its details."""
    server = _present(tx, server_id)
    return pool_servers.report(tx, server, _domains_of(tx, counts, server.pool_id, now), now, whole=True,
                               project_id=context.scope)


def _domains_of(tx: Tx, counts: Counts, pool_id: str, now: datetime) -> int:
    counted_at, count = counts.get(pool_id, (now, 0))
    if count < CACHED_FROM or now - counted_at >= CACHED:
        count = pool_servers.count_domains(tx, pool_id)
        counts[pool_id] = now, count
    return count


def rest(tx: Tx, server_id: str, now: datetime) -> PoolServer:
    """Put a server into maintenance."""
    server = _present(tx, server_id)
    if server.state is ServerState.MAINTENANCE:
        return server
    if server.state in _LEAVING:
        raise WrongServerState(server=server.label, state=server.state, why='it is being removed')
    return _save(tx,
                 pool_servers.in_state(server, ServerState.MAINTENANCE, now, note='put into maintenance by command'),
                 now)


def resume(tx: Tx, server_id: str, now: datetime) -> PoolServer:
    """Let a server be worked on again.  What it missed is due already."""
    server = _present(tx, server_id)
    if server.state is ServerState.ACTIVE or server.state is ServerState.JOINING and server.state_since == now:
        return server  # in the second case the commit came through, the answer to it did not
    if server.state is ServerState.MAINTENANCE:
        state = ServerState.JOINING if server.joined_at is None else ServerState.ACTIVE
        return _save(tx, pool_servers.in_state(server, state, now, note='resumed by command'), now)
    if server.state is ServerState.JOINING:
        return _save(tx, pool_servers.in_state(server, ServerState.ACTIVE, now, joined_at=now,
                                               note=f'counts by command, with {server.filled} zones started'),
                     now)
    if not server.dismissed:
        raise WrongServerState(server=server.label, state=server.state,
                               why='its section is gone from the configuration; add it again and reload')
    pool = pools.get(tx, server.pool_id)
    if pool is not None and (why := pool_servers.refuses_signed(tx, pool.name, server.limits)):
        raise WrongServerState(server=server.label, state=server.state, why=why)
    return _save(tx, pool_servers.in_state(server, ServerState.JOINING, now, joined_at=None, filled_to='', filled=0,
                                           dismissed=False, delete_zones=False, note='joins again by command'), now)


def drain(tx: Tx, server_id: str, delete_zones: bool, now: datetime) -> PoolServer:
    """Remove a server from its pool."""
    server = _present(tx, server_id)
    if server.state is ServerState.REMOVED:
        raise WrongServerState(server=server.label, state=server.state, why='there is nothing left to drain')
    note = 'drained by command' + (', its zones to be deleted' if delete_zones else '')
    if server.state is not ServerState.DRAINING:
        return _save(tx,
                     pool_servers.in_state(server, ServerState.DRAINING, now, dismissed=True, delete_zones=delete_zones,
                                           filled_to=None, note=note), now)
    if server.delete_zones or not delete_zones:
        return server
    return _save(tx, dataclasses.replace(server, delete_zones=True, note=note), now)


def _roll(tx: Tx, pool_name: str) -> pool_servers.RegisteredServers:
    roll = pool_servers.of_pool(tx, pool_name)
    if not roll.pool_id:
        raise PoolNotFound(pool=pool_name)
    return roll


def _present(tx: Tx, server_id: str) -> PoolServer:
    server = pool_servers.SERVERS.get(tx, server_id)
    if server is None:
        raise NotFound(what=f'server {server_id}', type='server_not_found')
    return server


def _save(tx: Tx, server: PoolServer, now: datetime) -> PoolServer:
    if not pool_servers.save(tx, server, now):
        raise LostRace(what='server')
    return _present(tx, server.id)
