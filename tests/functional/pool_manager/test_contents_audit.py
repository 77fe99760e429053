"""The audit of contents, with a server of each make: what was altered under the right serial is found and mended."""

from __future__ import annotations

import pathlib
import re
import uuid
from collections.abc import Callable, Iterator, Sequence

import dns.query
import dns.rcode
import dns.update
import dns.zone
import pytest

from designate_pool import backends
from designate_pool.backends.base import Backend
from designate_pool.model import Domain, Endpoint, new_id
from designate_pool.nameserver.server import NameServer
from testing.asking import transfer
from testing.bind import Named
from testing.processes import free_port, wait_until
from testing.stack import QUICK, Stack
from tests.fixtures.mixed import MAKES, Mixed, for_all

#: What the rogue puts in the place of every address.
ALTERED = '192.0.2.254'
#: Seconds of a round.
ROUND = 2


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    folder = tmp_path_factory.mktemp('contents')
    with Mixed(folder, f'sqlite:///{folder}/pool.sqlite', manager={'contents_audit_interval': str(ROUND)}) as running:
        yield running


@pytest.fixture(scope='module')
def rogue(pool: Mixed) -> Iterator[NameServer]:
    """A name server that gives the pool's zones with their serials and other contents."""
    server = NameServer(Endpoint('127.0.0.1', free_port()), keys=tuple(pool.keys.values()))
    server.set_fault('altered')
    try:
        yield server.start()
    finally:
        server.stop()


class Hands:
    """Alters a zone on servers behind the pool's back."""

    def __init__(self, pool: Mixed, rogue: NameServer, name: str) -> None:
        self._pool = pool
        self._rogue = rogue
        self._pattern = pool.servers['nsd'].pattern([pool.primaries[0]], pool.keys['nsd'].name)
        self._domain = Domain(new_id(), name, new_id(), 'default', 'hostmaster@example.com', 300, 1)
        self.name = name

    def alter(self, make: str) -> None:
        """Have the server serve other contents; one that fetches them from the rogue goes on to until :meth:`leave`."""
        self.follow()
        if make == 'pdns':
            self._pool.servers['pdns'].alter(self.name, ALTERED)
            return
        self._point(make, [self._rogue.endpoint])
        self._act(make, lambda backend: backend.refetch_domains([self._domain])[0].error)
        self._pool.wait_until_served(self.name, ALTERED, [make])

    def leave(self, make: str) -> None:
        """Give the server its primary back, and nothing else."""
        if make != 'pdns':
            self._point(make, [self._pool.primaries[0]])

    def follow(self) -> None:
        """Have the rogue at the zone's serial of now."""
        self._rogue.add_zone(self.name, [self._pool.primaries[0]], self._pool.keys['bind9'])
        self._rogue.refresh(self.name)
        self._pool.wait(lambda: self._rogue.serial(self.name) == self._pool.expected()[self.name],
                        'the rogue has the zone')

    def _point(self, make: str, primaries: Sequence[Endpoint]) -> None:
        if make == 'nsd':  # with a pattern of another name it would fetch the zone anew
            self._pool.servers['nsd'].pattern(primaries, self._pool.keys['nsd'].name, name=self._pattern)
        else:
            self._act(make, lambda backend: backend.create_domain(self._domain).error, primaries)

    def _act(self, make: str, act: Callable[[Backend], str | None], primaries: Sequence[Endpoint] = ()) -> None:
        facts = {'pattern': self._pattern} if make == 'nsd' else {}
        backend = backends.build(self._pool.servers[make].server(
            primaries or [self._pool.primaries[0]], tsig_key=self._pool.keys[make], **facts))
        try:
            error = act(backend)
            assert error is None, error
        finally:
            backend.close()


def wait_for_whole_round(pool: Mixed, unanswered: int = 0) -> None:
    """Until a round of all servers that begins from now on finds no difference."""
    pool.stack.wait_for_round('CONTENTS', asked=4, unanswered=unanswered, findings=0)


def told(pool: Mixed, text: str) -> int:
    """How many lines of the log have *text*."""
    return sum(text in line for line in (pool.folder / 'stack' / 'all.log').read_text().splitlines())


def test_other_contents_under_the_same_serial_are_found_on_every_make_and_mended(pool: Mixed,
                                                                                 rogue: NameServer) -> None:
    name = 'altered.example.'
    zone, _ = pool.create(name)
    wait_for_whole_round(pool)
    hands = Hands(pool, rogue, name)
    for_all(MAKES, hands.alter)
    labels = {make: pool.row(zone, make)['name'] for make in MAKES}
    for make in MAKES:
        found = f'{name} on {labels[make]}: DIVERGED: serves serial '
        pool.wait(lambda: told(pool, found), f'{make} has diverged', 30)
        hands.leave(make)
    for make in MAKES:
        pool.wait(lambda: pool.row(zone, make)['current'], f'{make} is mended', 30)
    pool.all_serve(name, '192.0.2.1')
    assert not any(pool.row(zone, make)['diverged'] for make in MAKES)
    wait_for_whole_round(pool)
    pool.stack.request('DELETE', f'/v2/zones/{zone}', 202)
    pool.wait_until_gone([name])


def test_what_servers_may_change_or_leave_out_is_no_difference(pool: Mixed) -> None:
    """NSD serves names in data in lower case, and PowerDNS leaves keys out of its transfers."""
    name = 'capitals.example.'
    zone, _ = pool.create(name)
    key = '257 3 13 mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ=='
    for owner, rtype, data in ((f'www.{name}', 'HTTPS', '1 Svc.Example.NET. alpn=h2'), (name, 'DNSKEY', key),
                               (f'sip.{name}', 'NAPTR', '100 10 "U" "E2U+sip" "" Sip.Example.NET.'),
                               (name, 'CDNSKEY', key), (name, 'CDS', '12345 13 2 ' + '0123456789abcdef' * 4),
                               (name, 'NSEC3PARAM', '1 0 0 -')):
        pool.stack.request('POST', f'/v2/zones/{zone}/recordsets', 202, json={
            'name': owner, 'type': rtype, 'records': [data]})
    pool.stack.wait_for(zone)
    wait_for_whole_round(pool)
    pool.stack.request('DELETE', f'/v2/zones/{zone}', 202)
    pool.wait_until_gone([name])


def test_a_server_with_other_contents_does_not_count_until_it_is_mended(pool: Mixed, rogue: NameServer) -> None:
    name = 'counted.example.'
    zone, recordset = pool.create(name)
    hands = Hands(pool, rogue, name)
    hands.alter('bind9')
    shown = pool.wait(lambda: (row := pool.row(zone, 'bind9'))['diverged'] and row, 'bind9 has diverged', 30)
    serial = pool.expected()[name]
    assert (shown['status'], shown['current'], shown['serial']) == ('ERROR', False, serial)
    explained = pool.stack.request('GET', f'/v2/zones/{zone}/explain', 200)
    assert shown['reason'] == 'DIVERGED' and any('find out who else' in each for each in explained['advice'])
    assert explained['findings'][0]['mended'] is False and explained['findings'][0]['server_name'] == shown['name']
    assert explained['degraded'] and explained['status'] == 'ACTIVE' and shown['name'] in explained['summary']
    state = next(each['state_of'] for each in explained['servers'] if each['name'] == shown['name'])
    assert state.startswith(f'It was last seen to serve serial {serial} at ') and 'a forced transfer is ' in state
    assert ' UTC with other contents (' in state
    assert f'e.g. {name} TXT, www.{name} A' in state
    assert 'DIVERGED' in pool.stack.command('zone', 'explain', name)
    assert 'DIVERGED' in pool.stack.request('GET', f'/status/zones/{zone}', 200)
    listed = pool.stack.command('server', 'resync', shown['name'], '--contents', code=1)
    assert f'other contents: 1\n  {name}  serves serial {serial} with other contents than ours' in listed
    right = pool.stack.command('server', 'resync', pool.row(zone, 'knot')['name'], '--contents')
    assert right.endswith('Contents: all the same.\n')
    # A change reaches it on top of the other contents: its newer serial makes it no better.
    pool.stack.request('PUT', f'/v2/zones/{zone}/recordsets/{recordset}', 202, json={'records': ['192.0.2.7']})
    hands.follow()
    newer = pool.expected()[name]
    pool.wait(lambda: pool.row(zone, 'bind9')['serial'] == newer, 'bind9 has the newer serial', 30)
    assert not pool.row(zone, 'bind9')['current'] and pool.row(zone, 'bind9')['diverged']
    assert pool.stack.request('GET', f'/v2/zones/{zone}', 200)['status'] != 'ACTIVE'
    hands.leave('bind9')
    pool.stack.wait_for(zone)
    pool.all_serve(name, '192.0.2.7')
    pool.stack.request('DELETE', f'/v2/zones/{zone}', 202)
    pool.wait_until_gone([name])


def test_a_server_that_lets_nothing_be_transferred_is_told_of_once_and_held_right(pool: Mixed) -> None:
    zone, _ = pool.create('refused.example.')
    nsd, key = pool.servers['nsd'], pool.keys['nsd'].name
    nsd.pattern([pool.primaries[0]], key, transfers=False)
    note = pool.wait(lambda: pool.server_state('nsd')['note'], 'the server has a note', 30)
    assert note.startswith('its contents are not checked: it does not let the zone be transferred (REFUSED)')
    assert pool.server_state('nsd')['reason'] == 'UNCHECKED'
    wait_for_whole_round(pool, unanswered=1)
    assert told(pool, 'its contents are not checked') == 1 and pool.row(zone, 'nsd')['current']
    nsd.pattern([pool.primaries[0]], key)
    pool.wait(lambda: pool.server_state('nsd')['note'] is None, 'the note is gone', 30)
    assert pool.server_state('nsd')['reason'] is None


#: Newer than the clock, as serials with dates are: each change has the next number.
SERIAL = 2_026_010_101
NAME, OWNER = 'example.com.', 'www.example.com.'


class Edited:
    """A pool of one BIND, which has one zone.

    :ivar zone: its id, and of its one RRset
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.named = Named(folder / 'named')
        # No audit may find the edit: only the change itself shows it.
        self.stack = Stack(folder / 'stack', [self.named.section(str(uuid.uuid4()), call_timeout=2)],
                           f'sqlite:///{folder}/pool.sqlite', manager={
                               **QUICK, 'periodic_sync_interval': '3600', 'contents_audit_interval': '0'})

    def create(self) -> None:
        self.zone = self.stack.import_zone(
            f'$ORIGIN example.com.\n@ 300 IN SOA ns1.example.org. hostmaster.example.com. {SERIAL} 3600 600 86400 300\n'
            'www 300 IN A 192.0.2.1\n')
        self.stack.wait_for(self.zone)
        recordsets = self.stack.request('GET', f'/v2/zones/{self.zone}/recordsets?type=A', 200)['recordsets']
        self.recordset = recordsets[0]['id']

    def edit(self) -> int:
        """Make the zone a primary one, change it with nsupdate's message, and give it back; its serial then."""
        secondary = self.named.command(f'showzone {NAME}').text.split(' ', 2)[2].replace('masterfile-format text;', '')
        copy = transfer(self.named, NAME)
        # Another file each time: a secondary zone that is taken away may still be written into its own.
        edited = f'edited-{uuid.uuid4()}.db'
        copy.to_file(str(self.named.folder / edited), relativize=False)
        file = f'file "{edited}"; masterfile-format text;'
        self._replace(f'{{ type primary; {file} allow-update {{ any; }}; }};')
        update = dns.update.UpdateMessage(NAME)
        update.add('by-hand', 300, 'A', '192.0.2.254')
        assert dns.query.tcp(update, '127.0.0.1', 5, self.named.port).rcode() == dns.rcode.NOERROR
        # It answers at once where a dump is under way already, which may be one from before the update.
        wait_until(lambda: self.named.command(f'sync -clean {NAME}').result == 0
                   and 'by-hand' in (self.named.folder / edited).read_text(), 'the edit is in the file')
        self._replace(re.sub('file "[^"]*";', file, secondary))
        wait_until(lambda: self.addresses(f'by-hand.{NAME}') == ['192.0.2.254'], 'the edit is served')
        serial = self.named.serial(NAME)
        assert serial is not None
        return serial

    def _replace(self, settings: str) -> None:
        for command in (f'delzone {NAME}', f'addzone {NAME} {settings}'):
            assert self.named.command(command).result == 0, command

    def addresses(self, owner: str) -> list[str]:
        answer = self.named.query(owner, 'A').answer
        return [rdata.to_text() for rrset in answer for rdata in rrset]


@pytest.fixture
def edited(tmp_path: pathlib.Path) -> Iterator[Edited]:
    pool = Edited(tmp_path)
    with pool.named, pool.stack:
        pool.create()
        yield pool


def test_a_change_that_gets_the_serial_of_an_edit_is_active_only_with_the_contents(edited: Edited) -> None:
    stack = edited.stack
    for edits, address in enumerate(('192.0.2.2', '192.0.2.3'), 1):  # the second round is like the first
        serial = edited.edit()
        assert serial == stack.zone(edited.zone)['serial'] + 1
        changed = stack.set_recordset(edited.zone, edited.recordset, address)
        assert stack.zone(edited.zone)['serial'] == serial and changed['status'] == 'PENDING'
        stack.wait_for(edited.zone)
        assert (edited.addresses(OWNER), edited.addresses(f'by-hand.{NAME}')) == ([address], [])
        wait_until(lambda: stack.logs(100_000).count('had other contents of example.com. than the pool') == edits,
                   'the edit is logged')
    stack.set_recordset(edited.zone, edited.recordset, '192.0.2.4')
    stack.wait_for(edited.zone)
    assert edited.addresses(OWNER) == ['192.0.2.4']
