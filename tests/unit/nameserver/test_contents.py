"""What a zone says to a question; zones and answers as DNS text."""

from __future__ import annotations

import pathlib

import dns.name
import dns.rcode
import dns.rdatatype
import dns.zone
import pytest

from designate_pool.model import Endpoint
from designate_pool.nameserver.zones import HeldZone, Reply, ZoneContents, ZoneTable

ZONE = '''\
$ORIGIN example.com.
$TTL 300
@           SOA     ns1.example.com. hostmaster.example.com. 7 3600 600 86400 60
@           NS      ns1
@           NS      ns2.example.net.
ns1         A       192.0.2.53
www         A       192.0.2.1
www         A       192.0.2.2
www         AAAA    2001:db8::1
alias       CNAME   www
chain       CNAME   alias
away        CNAME   www.example.net.
dangling    CNAME   nowhere
loop        CNAME   pool
pool        CNAME   loop
a.b.c       TXT     "deep"
*.wild      A       192.0.2.9
*.wild      MX      10 mail.example.net.
x.wild      TXT     "not by the wildcard"
'''
SOA = 'example.com. 60 IN SOA ns1.example.com. hostmaster.example.com. 7 3600 600 86400 60'


@pytest.fixture(scope='module')
def contents() -> ZoneContents:
    return ZoneContents(dns.zone.from_text(ZONE, 'example.com.', relativize=False))


def ask(contents: ZoneContents, name: str, rtype: str) -> Reply:
    return contents.reply(dns.name.from_text(name), dns.rdatatype.from_text(rtype))


def text(reply: Reply) -> str:
    lines = [dns.rcode.to_text(reply.rcode) + (' AA' if reply.authoritative else '')]
    for title in ('answer', 'authority'):
        lines += [f'{title}: {line}' for rrset in getattr(reply, title) for line in rrset.to_text().splitlines()]
    return '\n'.join(lines)


WWW = 'answer: www.example.com. 300 IN A 192.0.2.1\nanswer: www.example.com. 300 IN A 192.0.2.2'


@pytest.mark.parametrize('name, rtype, expected', [
    ('www.example.com.', 'A', f'NOERROR AA\n{WWW}'),
    ('WWW.Example.COM.', 'AAAA', 'NOERROR AA\nanswer: WWW.Example.COM. 300 IN AAAA 2001:db8::1'),
    ('example.com.', 'SOA', 'NOERROR AA\nanswer: ' + SOA.replace(' 60 IN', ' 300 IN')),
    ('www.example.com.', 'TXT', f'NOERROR AA\nauthority: {SOA}'),
    ('nowhere.example.com.', 'A', f'NXDOMAIN AA\nauthority: {SOA}'),
    ('b.c.example.com.', 'A', f'NOERROR AA\nauthority: {SOA}'),
    ('x.b.c.example.com.', 'A', f'NXDOMAIN AA\nauthority: {SOA}'),
    ('alias.example.com.', 'A', f'NOERROR AA\nanswer: alias.example.com. 300 IN CNAME www.example.com.\n{WWW}'),
    ('alias.example.com.', 'CNAME', 'NOERROR AA\nanswer: alias.example.com. 300 IN CNAME www.example.com.'),
    ('chain.example.com.', 'A', 'NOERROR AA\nanswer: chain.example.com. 300 IN CNAME alias.example.com.\n'
                                f'answer: alias.example.com. 300 IN CNAME www.example.com.\n{WWW}'),
    ('away.example.com.', 'A', 'NOERROR AA\nanswer: away.example.com. 300 IN CNAME www.example.net.'),
    ('dangling.example.com.', 'A', 'NXDOMAIN AA\nanswer: dangling.example.com. 300 IN CNAME nowhere.example.com.\n'
                                   f'authority: {SOA}'),
    ('any.wild.example.com.', 'A', 'NOERROR AA\nanswer: any.wild.example.com. 300 IN A 192.0.2.9'),
    ('any.thing.wild.example.com.', 'A', 'NOERROR AA\nanswer: any.thing.wild.example.com. 300 IN A 192.0.2.9'),
    ('any.wild.example.com.', 'TXT', f'NOERROR AA\nauthority: {SOA}'),
    ('x.wild.example.com.', 'A', f'NOERROR AA\nauthority: {SOA}'),
    ('y.x.wild.example.com.', 'A', f'NXDOMAIN AA\nauthority: {SOA}'),
    ('wild.example.com.', 'A', f'NOERROR AA\nauthority: {SOA}'),
])
def test_replies(contents: ZoneContents, name: str, rtype: str, expected: str) -> None:
    assert text(ask(contents, name, rtype)) == expected


def test_any_gives_all(contents: ZoneContents) -> None:
    assert {rrset.rdtype for rrset in ask(contents, 'www.example.com.', 'ANY').answer} == {
        dns.rdatatype.A, dns.rdatatype.AAAA}


def test_a_loop_of_aliases_ends(contents: ZoneContents) -> None:
    assert len(ask(contents, 'loop.example.com.', 'A').answer) == 8


def test_altered_has_the_serial_and_other_contents(contents: ZoneContents) -> None:
    altered = contents.altered
    assert altered.serial == contents.serial
    assert text(ask(altered, 'www.example.com.', 'A')) == 'NOERROR AA\nanswer: www.example.com. 300 IN A 192.0.2.254'
    assert text(ask(altered, 'example.com.', 'TXT')) == 'NOERROR AA\nanswer: example.com. 60 IN TXT "altered"'
    assert text(ask(contents, 'www.example.com.', 'A')) == f'NOERROR AA\n{WWW}'


NAME = dns.name.from_text('example.com.')
CONTENTS = ZoneContents(dns.zone.from_text(
    '@ 60 SOA ns1 hostmaster 1 60 60 3600 60\n@ 60 NS ns1\nns1 60 A 192.0.2.1', NAME, relativize=False))


@pytest.fixture
def zones(tmp_path: pathlib.Path) -> ZoneTable:
    return ZoneTable(tmp_path, ())


def added(zones: ZoneTable) -> HeldZone:
    zone = zones.add(NAME, (Endpoint('192.0.2.53', 53),), None)
    assert zone is not None
    return zone


def test_a_file_that_could_not_be_written_is_not_left(zones: ZoneTable, tmp_path: pathlib.Path) -> None:
    zone = added(zones)
    path, = tmp_path.iterdir()
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError):
        zones.replace(zone, CONTENTS)
    assert list(tmp_path.iterdir()) == [path] and zone.contents is None


def test_what_was_being_written_when_the_server_was_killed_is_removed(zones: ZoneTable, tmp_path: pathlib.Path) -> None:
    added(zones)
    path, = tmp_path.iterdir()
    path.with_suffix('.new').write_text('{"name": "exam')
    assert len(zones.load()) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_zone_whose_file_cannot_be_deleted_is_there_until_it_can(zones: ZoneTable, tmp_path: pathlib.Path) -> None:
    assert zones.replace(added(zones), CONTENTS)
    path, = tmp_path.iterdir()
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError):
        zones.delete(NAME)
    path.rmdir()
    assert zones.delete(NAME) and list(tmp_path.iterdir()) == [] and not zones.delete(NAME)


def test_a_zone_that_could_not_be_written_is_not_there_and_can_be_added_again(
        zones: ZoneTable, tmp_path: pathlib.Path) -> None:
    added(zones)
    settings, = tmp_path.iterdir()
    zones.delete(NAME)
    settings.mkdir()
    with pytest.raises(OSError):
        added(zones)
    assert zones.all() == []
    settings.rmdir()
    added(zones)
    assert len(zones.load()) == 1
