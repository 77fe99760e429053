"""What the pool manager of a frozen pool does with changes that wait, where others are still going out."""

from __future__ import annotations

from designate_pool.model import Status
from designate_pool.pool_manager.verify.server_compare import ServerCompare
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, A, Clock, EditablePool, later, some

D = 'd' * 32


def pool_id(pool: EditablePool) -> str:
    return pool.central.find_pools(CONTEXT)[0].id


def test_a_server_is_compared_with_what_it_may_have(editable: EditablePool) -> None:
    """Not with a newer version, which it has nevertheless."""
    domain, deleted, same = some(editable, 3)
    editable.join(D)
    editable.central.frozen_pools.freeze(CONTEXT, pool_id(editable), 'an incident')
    changed = editable.change(domain)
    editable.delete(deleted)
    editable.servers[D].zones[domain.name] = changed.serial
    found = ServerCompare(editable.manager, editable.runtime).compare(D, fix=False, delete_extra=None)
    assert found.behind == ((domain.name, changed.serial, domain.serial),)
    assert (found.total, found.missing, found.extra) == (2, (), ())
    editable.central.frozen_pools.unfreeze(CONTEXT, pool_id(editable))
    editable.deliver()
    found = ServerCompare(editable.manager, editable.runtime).compare(D, fix=False, delete_extra=None)
    assert (found.behind, editable.serial(D, same.name)) == ((), same.serial)


def test_a_zone_is_deleted_though_a_new_one_of_its_name_waits(editable: EditablePool, clock: Clock) -> None:
    """The new one does not supersede it on a server before it may be there."""
    gone, = some(editable, 1)
    editable.servers[A].dead = True
    editable.delete(gone)
    editable.central.frozen_pools.freeze(CONTEXT, pool_id(editable), 'an incident')
    new = editable.create(gone.name)
    editable.servers[A].dead = False
    later(editable, clock, 600)
    assert [editable.serial(server, gone.name) for server in SERVERS] == [None] * len(SERVERS)
    assert not any(gone.name in editable.servers[server].zones for server in SERVERS)
    assert editable.get(gone).status is Status.DELETED
    editable.central.frozen_pools.unfreeze(CONTEXT, pool_id(editable))
    editable.deliver()
    assert {editable.serial(server, new.name) for server in SERVERS} == {new.serial}
