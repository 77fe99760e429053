"""What pool managers of older releases cast on the topic of all pools together."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from designate_pool.minidns.service import MiniDns
from designate_pool.minidns.shared_topic import SharedTopicForwarder
from designate_pool.model import Context, Domain, PollRequest, utcnow
from designate_pool.rpc import minidns
from designate_pool.rpc.direct import Direct
from designate_pool.runtime import Inline

CONTEXT = Context('req-1')
TIMES = {'timeout': 1.0, 'retry_interval': 0.5, 'max_retries': 2}


class Noting:
    """Stands for the MiniDNS of a pool."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, Context, dict[str, Any]]] = []

    def __getattr__(self, method: str) -> Any:
        def take(context: Context, *given: Any, **arguments: Any) -> None:
            names = list(inspect.signature(getattr(MiniDns, method)).parameters)[2:]
            self.taken.append((method, context, {**dict(zip(names, given)), **arguments}))

        return take


def casts(pool_name: str) -> dict[str, dict[str, Any]]:
    """Each method's arguments, for something of this pool."""
    domain = Domain('d' * 32, 'example.com.', 'p' * 32, pool_name, 'hostmaster@example.com', 300, 7)
    return {
        'notify_zone_changed': {'domain': domain, 'destination': '192.0.2.1:53', **TIMES},
        'poll_for_serial_number': {'domain': domain, 'destination': '192.0.2.1:53', **TIMES},
        'notify_and_poll': {'pool_name': pool_name, **TIMES,
                            'requests': [PollRequest('d' * 32, 'example.com.', 7, 's' * 32)]},
        'audit_serials': {'pool_name': pool_name, 'started_at': utcnow(), 'server_ids': ['s' * 32],
                          'domains': [('d' * 32, 'example.com.', 7)]},
    }


@pytest.mark.parametrize('method', sorted(casts('gold')))
@pytest.mark.parametrize('pool_name', ['gold', 'silver'])
def test_a_cast_on_the_shared_topic_comes_to_the_minidns_of_its_pool(method: str, pool_name: str) -> None:
    caller = Direct(Inline().workers(1, 'casts'))
    pools = {'gold': Noting(), 'silver': Noting()}
    for name, each in pools.items():
        caller.serve(minidns.topic(name), each)
    caller.serve(minidns.SHARED_TOPIC,
                 SharedTopicForwarder('gold', pools['gold'], minidns.MiniDnsClient(caller)))  # type: ignore
    arguments = casts(pool_name)[method]
    caller.cast(minidns.SHARED_TOPIC, CONTEXT, method, **arguments)
    assert pools.pop(pool_name).taken == [(method, CONTEXT, arguments)]
    assert [each.taken for each in pools.values()] == [[]]
    assert inspect.signature(getattr(SharedTopicForwarder, method)) == inspect.signature(getattr(MiniDns, method))


def test_all_minidns_are_told_to_look_for_changes() -> None:
    caller = Direct(Inline().workers(1, 'casts'))
    ours = Noting()
    caller.serve(minidns.SHARED_TOPIC,
                 SharedTopicForwarder('gold', ours, minidns.MiniDnsClient(caller)))  # type: ignore[arg-type]
    minidns.MiniDnsClient(caller).look_for_changes(CONTEXT)
    assert ours.taken == [('look_for_changes', CONTEXT, {})]
