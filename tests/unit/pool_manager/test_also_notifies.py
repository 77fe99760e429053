"""Each change is told to those too who are no servers of the pool."""

from __future__ import annotations

from designate_pool.model import PollRequest, Status
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, World

WHERE = ('192.0.2.53', '192.0.2.54:5300')


def told(world: World) -> list[PollRequest]:
    """What they were notified of since this was asked last."""
    found, world.notified = world.notified, []
    return found


def test_every_change_is_told_once_but_no_deletion(world: World) -> None:
    world.registry.start()
    pool = world.central.find_pools(CONTEXT)[0]
    world.central.update_pool(CONTEXT, {'id': pool.id, 'also_notifies': WHERE})
    world.registry.refresh()
    domain = world.central.create_domain(CONTEXT, {'name': 'example.com.', 'email': 'hostmaster@example.com'})
    assert [(each.server_id, each.serial, each.name) for each in told(world)] == [
        (where, domain.serial, 'example.com.') for where in WHERE]
    world.deliver()
    assert world.get(domain).status is Status.ACTIVE and not told(world)
    changed = world.change(domain)
    assert [(each.server_id, each.serial) for each in told(world)] == [(where, changed.serial) for where in WHERE]
    world.endpoint.update_domain(CONTEXT, changed)
    assert not told(world), 'the same cast once more'
    world.central.update_pool(CONTEXT, {'id': pool.id, 'also_notifies': WHERE[:1]})
    world.registry.refresh()
    changed = world.change(domain)
    assert [each.server_id for each in told(world)] == [WHERE[0]]
    world.central.delete_domain(CONTEXT, domain.id)
    assert not told(world)


def test_it_is_no_matter_of_the_servers(world: World) -> None:
    domain = world.create()
    world.manager.also_notifies = WHERE
    changed = world.change(domain)
    assert {each.server_id for each in world.asked} <= set(SERVERS)
    assert len(told(world)) == len(WHERE) and world.get(changed).status is Status.ACTIVE
