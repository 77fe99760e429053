"""``zone adopt``: zones that a Knot, files of a name server and a PowerDNS have already become zones of the pool."""

from __future__ import annotations

import json
import pathlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from designate_pool.deadline import Deadline
from designate_pool.powerdns import PdnsServer
from testing.knot import Knotd
from testing.pdns import PowerDns
from testing.processes import wait_until
from testing.stack import Stack
from tests.fixtures.commands import wait
from tests.fixtures.nameservers import SecondaryServer
from tests.fixtures.updates import KEY, knotd_with

KNOT, OTHER = str(uuid.uuid4()), str(uuid.uuid4())
#: Above the seconds since 1970, as a serial made of a date is.
SERIAL = 2026112401


def zone(name: str, *lines: str, serial: int = SERIAL) -> str:
    return '\n'.join([f'$ORIGIN {name}',
                      f'@ 3600 IN SOA ns1.example.org. hostmaster.{name} {serial} 3600 600 86400 300',
                      '@ 3600 IN NS ns1.example.org.', *lines, ''])


ONE = zone('one.example.', 'www 60 IN A 192.0.2.1', 'mail IN MX 10 www')
TWO = zone('two.example.', 'www 300 IN AAAA 2001:db8::1')
CATALOG = zone('old.catalog.example.', 'version IN TXT 2',
               'a1.zones IN PTR one.example.', 'b2.zones IN PTR six.example.')
SIGNED = zone('signed.example.', '@ 300 IN DNSKEY 257 3 13 bWFkZSBvZiB0ZXh0IGFuZCBubyByZWFsIGtleSBhdCBhbGw=')


class Place:
    """A pool of a Knot that has zones already, and of another server.

    :ivar key_file: of the key that the Knot lets zones be transferred with
    """

    def __init__(self, stack: Stack, knot: Knotd, other: SecondaryServer, folder: pathlib.Path) -> None:
        self.stack, self.knot, self.other, self.folder = stack, knot, other, folder
        self.key_file = folder / 'key'
        self.key_file.write_text(f'key "{KEY.name}" {{ algorithm {KEY.algorithm}; secret "{KEY.secret}"; }};\n')

    def adopt(self, *words: str, code: int = 0) -> Any:
        """By name: the type of zones, or what happened to them."""
        found = json.loads(self.stack.command('zone', 'adopt', '-f', 'json', *words, code=code))
        return {each['name']: each.get('type') or each['result'] for each in found}


@pytest.fixture
def place(knotd: Callable[..., Knotd], tmp_path: pathlib.Path) -> Iterator[Place]:
    knot = knotd_with(knotd, tmp_path, {
        'one.example.': ONE, 'two.example.': TWO, 'signed.example.': SIGNED, 'old.catalog.example.': CATALOG})
    folder = tmp_path / 'pool'
    with SecondaryServer(tmp_path / 'other') as other, Stack(
            folder, [knot.section(KNOT, adopts_zones='true', call_timeout=2), other.section(OTHER, call_timeout=2)],
            f'sqlite:///{tmp_path}/pool.sqlite') as stack:
        yield Place(stack, knot, other, tmp_path)


def test_from_a_server_of_the_pool(place: Place) -> None:
    source = ('--from', KNOT, '--key-file', str(place.key_file))
    assert place.adopt(*source) == dict.fromkeys(
        ('old.catalog.example.', 'one.example.', 'signed.example.', 'two.example.'), 'primary')
    assert place.adopt(*source, 'one.example', wait(60)) == {'one.example.': 'taken over'}
    [found] = place.stack.request('GET', '/v2/zones')['zones']
    assert found['status'] == 'ACTIVE' and found['serial'] > SERIAL
    for server in (place.knot, place.other):
        wait_until(lambda server=server: server.serial('one.example.') == found['serial'], 'it is served')
        assert str(server.query('www.one.example.', 'A').answer[0][0]) == '192.0.2.1'
        assert server.query('mail.one.example.', 'MX').answer[0].ttl == found['ttl']

    # A second time: what is here stays, what cannot be taken over is named.
    said = place.adopt(*source, 'signed.example', 'two.example', code=1)
    assert said.pop('signed.example.').startswith('signed.example. is signed (DNSSEC)')
    assert said == {'two.example.': 'taken over'}
    assert place.adopt(*source, 'one.example', 'two.example') == dict.fromkeys(
        ('one.example.', 'two.example.'), 'is here already')
    assert place.adopt(*source) == dict.fromkeys(('old.catalog.example.', 'signed.example.'), 'primary')
    assert place.adopt(*source, '--catalog', 'old.catalog.example') == {'six.example.': 'member'}
    wait_until(lambda: place.stack.zone(place.stack.request('GET', '/v2/zones?name=two.example.')['zones'][0]['id'])[
        'status'] == 'ACTIVE', 'it is served')
    assert place.knot.serial('signed.example.') == SERIAL


def test_without_the_key_nothing_is_taken_over(place: Place) -> None:
    said = place.adopt('--from', KNOT, 'one.example', 'absent.example', code=1)
    assert 'does not let one.example. be transferred' in said['one.example.']
    assert 'absent.example. cannot be transferred' in said['absent.example.']
    assert place.stack.request('GET', '/v2/zones')['zones'] == []
    assert place.knot.serial('one.example.') == SERIAL


def test_from_files(place: Place) -> None:
    files = place.folder / 'files'
    files.mkdir()
    (files / 'three.example.zone').write_text(zone('three.example.', 'www IN A 192.0.2.3'))
    (files / 'wrong.example.zone').write_text(zone('wrong.example.', 'www IN A 192.0.2.300'))
    assert place.adopt('--from', str(files)) == dict.fromkeys(('three.example.', 'wrong.example.'), 'primary')
    said = place.adopt('--from', str(files), '--all', wait(60), code=1)
    assert said.pop('three.example.') == 'taken over' and 'www IN A 192.0.2.300' in said.pop('wrong.example.')
    assert str(place.other.query('www.three.example.', 'A').answer[0][0]) == '192.0.2.3'

    (files / 'four').write_text(zone('four.example.'))
    (files / 'named.conf').write_text('zone "four.example" { type primary; file "four"; };'
                                      'zone "three.example" { type primary; file "three.example.zone"; };')
    assert place.adopt('--from', str(files / 'named.conf')) == {'four.example.': 'primary'}
    assert place.adopt('--from', str(files / 'named.conf'), '--all') == {
        'four.example.': 'taken over', 'three.example.': 'is here already'}

    place.other.stop()  # so that the deletion cannot end
    place.stack.command('zone', 'delete', 'three.example')
    said = place.adopt('--from', str(files), 'three.example', code=1)
    assert said == {'three.example.': 'three.example. is still being deleted here: take it over when that is done.'}


def test_from_a_powerdns(place: Place, powerdns: Callable[..., PowerDns]) -> None:
    server = powerdns()
    section = server.section(str(uuid.uuid4()))
    key = next(line.partition(' = ')[2] for line in section.splitlines() if line.startswith('api_key'))
    key_file = place.folder / 'api-key'
    key_file.write_text(key)
    source = ('--from', server.api_url, '--key-file', str(key_file))
    assert place.adopt(*source) == {}
    rrsets = [{'name': 'five.example.', 'type': 'SOA', 'ttl': 300, 'records': [
        {'content': 'ns1.example.org. hostmaster.example.org. 7 3600 600 86400 300', 'disabled': False}]},
        {'name': 'www.five.example.', 'type': 'A', 'ttl': 60, 'records': [{'content': '192.0.2.5', 'disabled': False}]}]
    answer = PdnsServer(server.api_url, key).ask('POST', '/zones', Deadline(10), {
        'name': 'five.example.', 'kind': 'Native', 'nameservers': ['ns1.example.org.'], 'soa_edit_api': '',
        'rrsets': rrsets})
    assert answer.status == 201, answer
    assert place.adopt(*source) == {'five.example.': 'primary'}
    assert place.adopt(*source, '--all', wait(60)) == {'five.example.': 'taken over'}
    assert str(place.other.query('www.five.example.', 'A').answer[0][0]) == '192.0.2.5'
