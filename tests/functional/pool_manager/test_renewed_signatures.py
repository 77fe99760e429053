"""A serial that only brings other keys and signatures: its zone stays ACTIVE, also while a server lacks it."""

from __future__ import annotations

import pathlib
from typing import Any

from testing.processes import wait_until
from testing.stack import QUICK, Stack
from tests.fixtures.mixed import signing
from tests.fixtures.nameservers import local_secondaries

NAME = 'renewed.example.com.'


def test_a_zone_stays_active_while_a_server_lacks_renewed_signatures(tmp_path: pathlib.Path) -> None:
    with local_secondaries(2) as servers, Stack(
            tmp_path / 'stack', [*(server.section() for server in servers), signing(tmp_path)],
            f'sqlite:///{tmp_path}/pool.sqlite', manager=QUICK) as stack:
        zone = stack.import_zone(f'$ORIGIN {NAME}\n$TTL 1\n@ 1 IN SOA ns1.example.org. hostmaster.example.com. 1 '
                                 '3600 600 86400 1\nwww 1 IN A 192.0.2.1\n')
        stack.wait_for(zone)
        stack.request('POST', f'/v2/zones/{zone}/dnssec', 202)
        wait_until(lambda: stack.request('GET', f'/v2/zones/{zone}/dnssec', 200)['state'] == 'ds_wait',
                   'the signed zone is everywhere', 60)
        wait_until(lambda: [server.serial(NAME) for server in servers] == [stack.zone(zone)['serial']] * 2,
                   'both have it')
        former = stack.zone(zone)
        servers[1].set_fault('stale')
        stack.request('POST', f'/v2/zones/{zone}/dnssec/tasks/roll', 202, json={'role': 'ZSK'})

        def newest() -> Any:
            """The zone once a server has the new key; there may be more of them while it is read."""
            shown = stack.zone(zone)
            return shown if shown['serial'] > former['serial'] and servers[0].serial(NAME) == shown['serial'] else None

        shown = wait_until(newest, 'the new key is published, and one server has it')
        assert shown['status'] == 'ACTIVE'
        waited = stack.request('GET', f'/v2/zones/{zone}/wait?serial={shown["serial"]}&servers=2&timeout=1', 200)
        assert waited['done']
        explained = stack.request('GET', f'/v2/zones/{zone}/explain', 200)
        assert (explained['status'], explained['degraded']) == ('ACTIVE', False)
        state_of = {server['id']: server['state_of'] for server in explained['servers']}
        assert 'it lacks the renewed signatures of serial ' in state_of[servers[1].id]
        servers[1].clear_faults()
        wait_until(lambda: servers[1].serial(NAME) == stack.zone(zone)['serial'], 'the other one gets it too', 60)
        assert stack.zone(zone)['converged_at'] == former['converged_at']
        stack.must_be_sound()
