"""Zones that were moved to another pool, which the servers of this one keep for a while."""

from __future__ import annotations

from designate_pool.model import Action, PoolServer, ServerState, utcnow
from designate_pool.storage.operations import pool_servers
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, D, ScriptedPool


def test_the_audit_finds_a_change_of_a_kept_zone_whose_cast_was_lost(pool: ScriptedPool) -> None:
    silver = pool.central.create_pool(CONTEXT, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
    for name, keys in (('default', SERVERS), ('silver', (D,))):
        servers = [PoolServer(key, '', f'fake:{key}', 'fake', ServerState.ACTIVE) for key in keys]
        pool.storage.run(pool_servers.register, name, servers, False, True, utcnow())
    domain = pool.create()
    moved = pool.central.move_domain(CONTEXT, domain.id, silver.id)
    pool.deliver()
    pool.lose_casts = True
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    pool.lose_casts = False
    assert {pool.serial(key) for key in SERVERS} == {moved.serial} != {changed.serial}
    pool.sweep()
    pool.deliver()
    assert {pool.serial(key) for key in SERVERS} == {changed.serial}
    assert {pool.rows(domain)[key, Action.UPDATE].serial_number for key in SERVERS} == {changed.serial}
