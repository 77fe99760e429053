"""Zones that were moved to another pool, which the servers of this one keep for a while."""

from __future__ import annotations

from designate_pool.model import Action, PoolServer, ServerState, new_id, utcnow
from designate_pool.pool_manager.verify.server_compare import ServerCompare
from designate_pool.storage.operations import pool_servers
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, D, EditablePool, ScriptedPool, some

#: Another server that joins.
E = 'e' * 32


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


def test_a_server_that_joins_gets_the_kept_zones_too(editable: EditablePool) -> None:
    silver = editable.central.create_pool(CONTEXT, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
    servers = [PoolServer(new_id(), '', 'fake:silver', 'fake', ServerState.ACTIVE)]
    editable.storage.run(pool_servers.register, 'silver', servers, False, True, utcnow())
    domains = some(editable)
    moved = editable.central.move_domain(CONTEXT, domains[1].id, silver.id)
    editable.join(D)
    assert editable.servers[D].zones.keys() == {domain.name for domain in domains}
    assert editable.serial(D, moved.name) == moved.serial
    found = ServerCompare(editable.manager, editable.runtime).compare(D, fix=False, delete_extra=None)
    assert (found.total, found.missing, found.behind, found.extra) == (5, (), (), ())
    # Those that are kept are all that the pool has.
    for domain in (domains[0], *domains[2:]):
        editable.delete(domain)
    editable.add(E)
    editable.registry.reload()
    assert editable.states[E] == 'joining'
    editable.settle()
    assert editable.servers[E].zones.keys() == {moved.name}
