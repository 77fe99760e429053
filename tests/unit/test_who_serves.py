"""Whether a server serves a zone has one answer: the pool's, the one that users see, and the one that waits go by."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool import consensus
from designate_pool.api.services import wait_verdict
from designate_pool.api.services.wait_verdict import WaitTarget, ZoneState
from designate_pool.api.views import zone_servers
from designate_pool.model import (Action, CallResult, Domain, Outcome, Pool, PoolServer, ServerState, ServerStatus,
                                  utcnow)
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.settings import PoolManagerSettings

NOW = utcnow()
DOMAIN = Domain(id='d' * 32, name='example.com.', pool_id='p' * 32, pool_name='default', email='hostmaster@example.com',
                ttl=3600, serial=10, action=Action.UPDATE, generation=1)
POOL = Pool(id='p' * 32, name='default', threshold_percentage=100, published_at=NOW)
CREATE, UPDATE = (ServerStatus('a' * 32, DOMAIN.id, action, 10, serial_number=serial, status=Outcome.SUCCESS)
                  for action, serial in ((Action.CREATE, None), (Action.UPDATE, 10)))
BOTH = {(row.server_id, row.action): row for row in (CREATE, UPDATE)}


def fetched_again() -> list[ServerStatus]:
    return [CREATE, *row_transitions.refetch(DOMAIN, BOTH, CREATE.server_id, NOW)]


def created_again_in_vain() -> list[ServerStatus]:
    create, = row_transitions.provision(DOMAIN, BOTH, CREATE.server_id, NOW)
    return [row_transitions.after_call(create, CallResult(error='refused', retryable=False), NOW,
                                       PoolManagerSettings().tries, 0.5), UPDATE]


SITUATIONS: dict[str, tuple[list[ServerStatus], bool]] = {
    'served': ([CREATE, UPDATE], True),
    'fetched again': (fetched_again(), True),
    'created again in vain': (created_again_in_vain(), False),
    'silent since': ([CREATE, dataclasses.replace(UPDATE, status=Outcome.ERROR)], False),
    'failing for an older serial': ([CREATE, dataclasses.replace(UPDATE, status=Outcome.ERROR, serial_number=9,
                                                                 expected_serial=9)], False),
    'other contents': ([CREATE, dataclasses.replace(UPDATE, diverged=True)], False),
    'ahead of all that was issued': ([CREATE, dataclasses.replace(UPDATE, serial_number=11)], False),
    'behind': ([CREATE, dataclasses.replace(UPDATE, serial_number=9, status=None)], False),
    'never seen': ([CREATE, dataclasses.replace(UPDATE, serial_number=None, status=None)], False),
    'not begun': ([], False),
}


def answers(rows: Sequence[ServerStatus], domain: Domain = DOMAIN) -> tuple[bool, bool, bool]:
    """What the pool, the page of a zone's servers, and a wait for its serial say of the one server."""
    servers = [PoolServer(CREATE.server_id, POOL.id, 'fake:192.0.2.1:53', 'fake', ServerState.ACTIVE, '')]
    shown = zone_servers.zone_servers(domain, servers, rows, POOL, '')
    wanted = WaitTarget(domain.id, domain.serial, deletion=domain.is_going)
    return (bool(consensus.weigh(domain, rows, [CREATE.server_id], 100).agreed), shown['servers'][0]['current'],
            bool(wait_verdict.current(wanted, ZoneState(domain, servers, rows, POOL))))


@pytest.mark.parametrize('situation', SITUATIONS)
def test_all_who_are_asked_say_the_same(situation: str) -> None:
    rows, serves = SITUATIONS[situation]
    assert answers(rows) == (serves, serves, serves)


@given(st.data())
def test_and_so_they_do_whatever_the_rows_say(data: st.DataObject) -> None:
    domain = dataclasses.replace(DOMAIN, action=data.draw(st.sampled_from(list(Action))))
    rows = [ServerStatus(CREATE.server_id, domain.id, action, data.draw(st.integers(8, 10)),
                         serial_number=data.draw(st.sampled_from([None, 8, 9, 10, 11])),
                         status=data.draw(st.sampled_from([None, Outcome.SUCCESS, Outcome.ERROR])),
                         diverged=data.draw(st.booleans()))
            for action in data.draw(st.sets(st.sampled_from([Action.CREATE, Action.UPDATE, Action.DELETE])))]
    pool, shown, waited = answers(rows, domain)
    assert pool == shown == waited
