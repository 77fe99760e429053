"""Servers that do wrong in ways that a BIND does not, and transfers over IPv6 with keys: all in one, on SQLite."""

from __future__ import annotations

import pathlib
import uuid
from collections.abc import Iterator
from typing import Any

import dns.query
import dns.rcode
import dns.tsig
import dns.xfr
import dns.zone
import pytest

from designate_pool.model import Endpoint, TsigKey
from testing.asking import transfer
from testing.bind import Named
from testing.pdns import PowerDns
from testing.processes import wait_until
from testing.stack import Stack
from tests.fixtures.nameservers import SecondaryServer

KEY = TsigKey('transfer.example.com.', 'hmac-sha512', 'bm90IGEgc2VjcmV0LCBhbiBleGFtcGxl')
#: What the server does wrong, what is to be read in its row, for which reason, and what is advised.
FAULTS = {'servfail': ('SERVFAIL', 'SERVFAIL', 'its copy of the zone is broken'),
          'drop': ('no answer', 'TIMEOUT', 'is overloaded'), 'refused': ('REFUSED', 'NO_ZONE', 'it lost the zone'),
          'stale': ('not yet', 'STALE', 'whether it can transfer'),
          'broken': ('not yet', 'STALE', 'whether it can transfer')}


class Mixed:
    """A pool of a BIND and of a server that can be told to do wrong."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.named = Named(folder / 'named').start()
        self.wrong = SecondaryServer(folder / 'wrong').start()
        self.named_id, self.wrong_id = str(uuid.uuid4()), str(uuid.uuid4())
        servers = [self.named.section(self.named_id, call_timeout=2), self.wrong.section(self.wrong_id, call_timeout=2)]
        self.stack = Stack(folder / 'stack', servers, f'sqlite:///{folder}/pool.sqlite')

    def stop(self) -> None:
        self.stack.stop()
        self.named.stop()
        self.wrong.stop()

    def row(self, zone: str) -> Any:
        return self.stack.servers(zone)[self.wrong_id]


@pytest.fixture(scope='module')
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    made = Mixed(tmp_path_factory.mktemp('pool'))
    try:
        made.stack.start()
        yield made
        made.stack.must_be_sound()
    finally:
        made.stop()


@pytest.mark.parametrize('fault', FAULTS)
def test_a_server_that_does_wrong_is_named_with_its_reason_and_heals(mixed: Mixed, fault: str) -> None:
    stack, name = mixed.stack, f'{fault}.example.com.'
    zone = stack.create_zone(name)['id']
    stack.wait_for(zone)
    mixed.wrong.control.ask('set_fault', fault=fault)
    try:
        recordset = stack.create_recordset(zone, f'www.{name}', 'A', '192.0.2.1')['id']
        stack.wait_for(zone, 'ERROR')
        wait_until(lambda: mixed.row(zone)['status'] == 'ERROR', 'its row is in ERROR')
        row = mixed.row(zone)
        error, reason, advice = FAULTS[fault]
        assert error in row['last_error'] and row['next_attempt_at'] and not row['current']
        assert row['reason'] == reason
        explained = stack.request('GET', f'/v2/zones/{zone}/explain', 200)
        assert [each['reason'] for each in explained['servers'] if each['name'] == row['name']] == [reason]
        assert any(row['name'] in each and advice in each for each in explained['advice'])
        assert mixed.named.texts(f'www.{name}', 'A') == ['192.0.2.1']
        assert stack.request('GET', f'/v2/zones/{zone}/recordsets/{recordset}', 200)['status'] == 'ERROR'
        # The pool goes on: a later change reaches the server that is well.
        stack.set_recordset(zone, recordset, '192.0.2.2')
        wait_until(lambda: mixed.named.texts(f'www.{name}', 'A') == ['192.0.2.2'], 'the other server has the change')
    finally:
        mixed.wrong.control.ask('clear_faults')
    stack.wait_for(zone)
    assert [each.texts(f'www.{name}', 'A') for each in (mixed.named, mixed.wrong)] == [['192.0.2.2']] * 2
    assert stack.request('GET', f'/v2/zones/{zone}/recordsets/{recordset}', 200)['status'] == 'ACTIVE'


def test_a_server_that_no_notify_reaches_is_told_over_its_control_channel(tmp_path: pathlib.Path) -> None:
    """A PowerDNS that refuses every NOTIFY, and looks for changes by itself after an hour."""
    with (PowerDns(tmp_path / 'pdns', settings={'allow-notify-from': '192.0.2.0/24'}) as server,
          Stack(tmp_path / 'stack', [server.section(str(uuid.uuid4()), call_timeout=2)],
                f'sqlite:///{tmp_path}/pool.sqlite') as stack):
        zone = stack.create_zone('deaf.example.com.')['id']
        stack.wait_for(zone)
        stack.create_recordset(zone, 'www.deaf.example.com.', 'A', '192.0.2.1')
        stack.wait_for(zone, 'ERROR')
        stack.wait_for(zone, seconds=60.0)
        assert server.texts('www.deaf.example.com.', 'A') == ['192.0.2.1']
        stack.must_be_sound()


def test_ipv6_and_keys(tmp_path: pathlib.Path) -> None:
    """A BIND and the system on IPv6 loopback, with a key for transfers, NOTIFY and polls."""
    key = f'[tsig:{KEY.name}]\nalgorithm = {KEY.algorithm}\nsecret = {KEY.secret}\n'
    with (Named(tmp_path / 'named', host='::1', keys=[KEY]) as named,
          Stack(tmp_path / 'stack', [key, named.section(str(uuid.uuid4()), tsig_key=KEY.name, call_timeout=2)],
                f'sqlite:///{tmp_path}/pool.sqlite', concurrency='threading', minidns_host='::1') as stack):
        zone = stack.create_zone('six.example.com.')['id']
        recordset = stack.create_recordset(zone, 'www.six.example.com.', 'AAAA', '2001:db8::1')['id']
        stack.wait_for(zone)
        assert named.texts('www.six.example.com.', 'AAAA') == ['2001:db8::1']
        stack.set_recordset(zone, recordset, '2001:db8::2')
        stack.wait_for(zone)
        assert named.texts('www.six.example.com.', 'AAAA') == ['2001:db8::2']
        assert f"TSIG '{KEY.name.rstrip('.')}'" in named.log

        with pytest.raises(dns.xfr.TransferError) as refused:
            transfer(Endpoint('::1', stack.minidns_port), 'six.example.com.')
        assert refused.value.rcode == dns.rcode.REFUSED
        taken = transfer(Endpoint('::1', stack.minidns_port), 'six.example.com.', KEY)
        assert taken.find_rdataset('www.six.example.com.', 'AAAA')[0].to_text() == '2001:db8::2'

        stack.delete_zone(zone)
        stack.wait_for(zone, 'gone')
        assert named.query('six.example.com.').rcode() == dns.rcode.REFUSED
