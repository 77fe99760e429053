"""However a poll's destination is written, its result is the server's that MiniDNS asked: both ends of the contract."""

from __future__ import annotations

import dataclasses

import pytest

from designate_pool.errors import InvalidField
from designate_pool.minidns.servers import HostAddresses, make_server_table
from designate_pool.model import Domain, Outcome, PollResult, Server
from tests.unit.pool_manager.conftest import CONTEXT, ScriptedPool

V4, OTHER_PORT, V6, NAMED = (Server(letter * 32, 'fake', host, port) for letter, host, port in (
    ('1', '192.0.2.1', 53), ('2', '192.0.2.1', 5300), ('3', '2001:db8::1', 53), ('4', 'localhost', 5301)))


@pytest.mark.parametrize(('destination', 'server'), [
    ('192.0.2.1', V4), ('192.0.2.1:53', V4), ('[192.0.2.1]', V4), ('[192.0.2.1]:53', V4), ('192.0.2.1:0053', V4),
    ('192.0.2.1:5300', OTHER_PORT), ('[192.0.2.1]:5300', OTHER_PORT),
    ('2001:db8::1', V6), ('[2001:db8::1]', V6), ('[2001:DB8:0::1]:53', V6),
    ('localhost:5301', NAMED), ('127.0.0.1:5301', NAMED),
])
def test_a_result_is_the_server_s_that_was_asked(pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch,
                                                 destination: str, server: Server) -> None:
    heard: list[PollResult] = []
    domain = have(pool, monkeypatch, heard)
    asked = make_server_table(pool.manager.pool, HostAddresses()).find_peer(destination)
    assert asked.id == server.id
    pool.endpoint.update_status(CONTEXT, domain, destination, Outcome.SUCCESS, domain.serial)
    assert [each.server_id for each in heard] == [server.id]


@pytest.mark.parametrize('destination', ['', 'nowhere', '192.0.2.1:', '192.0.2.1:0', '192.0.2.1:65536', '[192.0.2.1',
                                         '192.0.2.1:x', '192.0.2.1:٣', '2001:db8::1:::'])
def test_what_one_end_refuses_the_other_refuses(pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch,
                                                destination: str) -> None:
    heard: list[PollResult] = []
    domain = have(pool, monkeypatch, heard)
    with pytest.raises(InvalidField):
        make_server_table(pool.manager.pool, HostAddresses()).find_peer(destination)
    with pytest.raises(InvalidField):
        pool.endpoint.update_status(CONTEXT, domain, destination, Outcome.SUCCESS, domain.serial)
    assert heard == []


def have(pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch, heard: list[PollResult]) -> Domain:
    """A domain of a pool that has these servers; what its pool manager hears goes to *heard*."""
    domain = pool.create()
    manager = pool.manager
    backend = next(iter(pool.servers.values()))
    servers = (V4, OTHER_PORT, V6, NAMED)
    manager.reconciler.pool = dataclasses.replace(manager.pool, servers=servers)
    manager.reconciler.set_servers(manager.members, {each.id: manager.new_worker(each, backend) for each in servers})
    monkeypatch.setattr(manager, 'queue_results', heard.extend)
    return domain
