"""The DS records of a zone, asked of real BINDs that serve its parent."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import dns.message
import dns.name
import dns.opcode
import dns.rcode
import pytest

from designate_pool.errors import BackendError
from designate_pool.model import Endpoint
from designate_pool.pool_manager.verify import parent_servers
from designate_pool.pool_manager.verify.parent_servers import notify_parent, probe_ds
from testing.bind import Named
from testing.processes import free_port
from tests.fixtures.answering import Scripted

PARENT = ('@ 300 IN SOA ns1 host 7 3600 600 86400 300\n@ 300 IN NS ns1\n@ 300 IN NS ns2\nns1 300 IN A 127.0.0.1\n'
          'ns2 300 IN AAAA ::1\nsigned 300 IN NS ns1.example.net.\nplain 300 IN NS ns1.example.net.\n'
          'deep.er 300 IN NS ns1.example.net.\n')
DS = '12345 13 2 ' + 'ab' * 32
OTHER = '54321 13 2 ' + 'cd' * 32


class Parent(Named):
    """One of two servers of example.com, at the same port."""

    def __init__(self, folder: pathlib.Path, host: str, port: int, *ds: str) -> None:
        super().__init__(folder, host=host, statements='zone "example.com" { type primary; file "parent.zone"; };')
        self.port = port
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'parent.zone').write_text(PARENT + ''.join(
            f'{name} 300 IN DS {each}\n' for each in ds for name in ('signed', 'deep.er')))


@pytest.fixture(scope='module')
def parents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Parent, Parent]]:
    """The second one has one DS record less."""
    folder, port = tmp_path_factory.mktemp('parents'), free_port('127.0.0.1')
    with Parent(folder / 'one', '127.0.0.1', port, DS, OTHER) as one, \
            Parent(folder / 'two', '::1', port, DS) as two:
        yield one, two


def endpoint(server: Parent) -> Endpoint:
    return Endpoint(server.host, server.port)


@pytest.mark.parametrize('name', ['signed.example.com.', 'deep.er.example.com.'])
def test_each_server_of_the_parent_is_found_and_asked(parents: tuple[Parent, Parent], name: str) -> None:
    one, two = parents
    assert probe_ds(name, resolvers=[endpoint(two)], port=one.port) == {
        endpoint(one): [DS, OTHER], endpoint(two): [DS]}


def test_a_zone_without_ds_has_none_and_is_told_from_a_server_that_does_not_say(
        parents: tuple[Parent, Parent]) -> None:
    one, _ = parents
    silent = Endpoint('127.0.0.1', free_port('127.0.0.1'))
    for name in ('plain', 'gone'):  # one that is delegated, and one that is not
        assert probe_ds(f'{name}.example.com.', parents=[endpoint(one), silent]) == {endpoint(one): [], silent: None}
    # A server that serves another zone than the parent says nothing of it.
    assert probe_ds('signed.example.org.', parents=[endpoint(one)]) == {endpoint(one): None}


def test_a_parent_that_cannot_be_found_is_told(parents: tuple[Parent, Parent]) -> None:
    with pytest.raises(BackendError, match='the servers of the parent of signed.example.org. cannot be found'):
        probe_ds('signed.example.org.', resolvers=[endpoint(parents[0])], seconds=1)


@pytest.mark.parametrize(('limit', 'value', 'why'), [
    ('MOST_SERVERS', 1, 'has 2 servers, more than 1'), ('MOST_SECONDS', 0, 'takes too long')])
def test_a_parent_takes_only_so_much_time(parents: tuple[Parent, Parent], monkeypatch: pytest.MonkeyPatch, limit: str,
                                          value: float, why: str) -> None:
    one, two = parents
    monkeypatch.setattr(parent_servers, limit, value)
    with pytest.raises(BackendError, match=why):
        probe_ds('signed.example.com.', resolvers=[endpoint(two)], port=one.port)


def dsync(port: int, target: str) -> str:
    """A DSYNC record for CDS (RFC 9859 section 2.1), which BIND does not know by name."""
    wire = b'\0\x3b\1' + port.to_bytes(2, 'big') + dns.name.from_text(target).to_digestable()
    return f'300 IN TYPE66 \\# {len(wire)} {wire.hex()}\n'


#: Of 250 octets, so that there is no such name at _dsync below the parent.
LONG = '.'.join(63 * letter for letter in 'abc') + '.' + 44 * 'd'


@pytest.mark.parametrize(('name', 'owner', 'rcode', 'is_told'), [
    ('signed', 'signed._dsync', dns.rcode.NOERROR, True), ('signed', '_dsync', dns.rcode.NOERROR, True),
    ('signed', '_dsync', dns.rcode.REFUSED, False), (LONG, '_dsync', dns.rcode.NOERROR, True),
    ('signed', 'plain._dsync', dns.rcode.NOERROR, None)])
def test_those_whom_the_parent_names_are_notified_of_cds(tmp_path: pathlib.Path, name: str, owner: str,
                                                         rcode: dns.rcode.Rcode, is_told: bool | None) -> None:
    def reply(query: dns.message.Message, over_tcp: bool) -> list[dns.message.Message]:
        answer = dns.message.make_response(query)
        answer.set_rcode(rcode)
        return [answer]

    target = Scripted(reply)
    parent = Parent(tmp_path, '127.0.0.1', free_port('127.0.0.1'), DS)
    with (tmp_path / 'parent.zone').open('a') as zone:
        zone.write(f'{owner} {dsync(target.port, "ns1.example.com.")}')
    with parent:
        told = notify_parent(f'{name}.example.com.', [endpoint(parent)])
    target.close()
    assert told == ([Endpoint('127.0.0.1', target.port)] if is_told else [])
    assert [(message.opcode(), message.question[0].to_text()) for message in target.queries] == (
        [] if is_told is None else [(dns.opcode.NOTIFY, f'{name}.example.com. IN CDS')])
