"""A serial that only brings other keys and signatures: its zone stays ACTIVE, also while a server lacks it."""

from __future__ import annotations

import base64
import pathlib
import uuid

from designate_pool.model import Endpoint
from designate_pool.nameserver.server import NameServer
from testing.processes import free_port, wait_until
from testing.stack import QUICK, Stack
from tests.fixtures.nameservers import SECRET

NAME = 'renewed.example.com.'


def test_a_zone_stays_active_while_a_server_lacks_renewed_signatures(tmp_path: pathlib.Path) -> None:
    servers = [NameServer(Endpoint('127.0.0.1', free_port()), Endpoint('127.0.0.1', free_port()), SECRET)
               for _ in range(2)]
    ids, keys = [str(uuid.uuid4()) for _ in servers], tmp_path / 'keys'
    keys.write_text(base64.urlsafe_b64encode(b'k' * 32).decode() + '\n')
    sections = [f'[backend:secondary:{key}]\nhost = 127.0.0.1\nport = {server.endpoint.port}\n'
                f'control_port = {server.control_endpoint.port}\ncontrol_secret = {SECRET}\ncall_timeout = 2\n'
                for key, server in zip(ids, servers) if server.control_endpoint is not None]
    sections.append(f'[service:central]\nsigning_keys_file = {keys}\n[dnssec_policy:default]\ndnskey_ttl = 1\n'
                    'propagation_delay = 0\nparent_ds_ttl = 1\n')
    for server in servers:
        server.start()
    try:
        with Stack(tmp_path / 'stack', sections, f'sqlite:///{tmp_path}/pool.sqlite', manager=QUICK) as stack:
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
            newest = wait_until(lambda: (shown := stack.zone(zone))['serial'] > former['serial'] and shown,
                                'the new key is published')
            assert newest['status'] == 'ACTIVE'
            wait_until(lambda: servers[0].serial(NAME) == newest['serial'], 'one server has it')
            waited = stack.request('GET', f'/v2/zones/{zone}/wait?serial={newest["serial"]}&servers=2&timeout=1', 200)
            assert waited['done']
            explained = stack.request('GET', f'/v2/zones/{zone}/explain', 200)
            assert (explained['status'], explained['degraded']) == ('ACTIVE', False)
            state_of = {server['id']: server['state_of'] for server in explained['servers']}
            assert f'it lacks the renewed signatures of serial {newest["serial"]}' in state_of[ids[1]]
            servers[1].clear_faults()
            wait_until(lambda: servers[1].serial(NAME) == stack.zone(zone)['serial'], 'the other one gets it too', 60)
            assert stack.zone(zone)['converged_at'] == former['converged_at']
            stack.must_be_sound()
    finally:
        for server in servers:
            server.stop()
