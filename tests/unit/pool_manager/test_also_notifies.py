"""Each change is told to those too who are no servers of the pool."""

from __future__ import annotations

from designate_pool.model import PollRequest, Status
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, ScriptedPool

WHERE = ('192.0.2.53', '192.0.2.54:5300')


def told(pool: ScriptedPool) -> list[PollRequest]:
    """What they were notified of since this was asked last."""
    found, pool.notified = pool.notified, []
    return found


def test_every_change_is_told_once_but_no_deletion(pool: ScriptedPool) -> None:
    pool.registry.start()
    pool_id = pool.central.find_pools(CONTEXT)[0].id
    pool.central.update_pool(CONTEXT, {'id': pool_id, 'also_notifies': WHERE})
    pool.registry.refresh()
    domain = pool.central.create_domain(CONTEXT, {'name': 'example.com.', 'email': 'hostmaster@example.com'})
    assert [(each.server_id, each.serial, each.name) for each in told(pool)] == [
        (where, domain.serial, 'example.com.') for where in WHERE]
    pool.deliver()
    assert pool.get(domain).status is Status.ACTIVE and not told(pool)
    changed = pool.change(domain)
    assert [(each.server_id, each.serial) for each in told(pool)] == [(where, changed.serial) for where in WHERE]
    pool.endpoint.update_domain(CONTEXT, changed)
    assert not told(pool), 'the same cast once more'
    pool.central.update_pool(CONTEXT, {'id': pool_id, 'also_notifies': WHERE[:1]})
    pool.registry.refresh()
    changed = pool.change(domain)
    assert [each.server_id for each in told(pool)] == [WHERE[0]]
    pool.central.delete_domain(CONTEXT, domain.id)
    assert not told(pool)


def test_it_is_no_matter_of_the_servers(pool: ScriptedPool) -> None:
    domain = pool.create()
    pool.manager.also_notifies = WHERE
    changed = pool.change(domain)
    assert {each.server_id for each in pool.asked} <= set(SERVERS)
    assert len(told(pool)) == len(WHERE) and pool.get(changed).status is Status.ACTIVE
