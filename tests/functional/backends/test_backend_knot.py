"""The knot driver against real knotds."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Callable, Iterator

import dns.name
import dns.rcode
import pytest

from designate_pool.model import TsigKey
from designate_pool.testing import NOWHERE, RemoteContract, UnixRig, a_domain, opened
from testing.knot import Knotd
from testing.processes import wait_until
from tests.fixtures.nameservers import Primary, zone_text
from tests.fixtures.rigs import ETC, KEY, ProcessRig, example_servers

Start = Callable[..., Knotd]


class KnotRig(ProcessRig, UnixRig):
    path_option = 'control_socket'

    def __init__(self, knotd: Knotd) -> None:
        super().__init__(knotd)
        self.folder = knotd.run


@pytest.fixture
def rig(knotd: Start) -> KnotRig:
    return KnotRig(knotd())


class TestContract(RemoteContract):
    pass


def test_a_changed_section_is_applied_to_all_zones_by_creating_one_of_them_again(
        knotd: Start, primary: Primary, keyed_primary: Primary) -> None:
    names = ['one.example.com.', 'two.example.com.']
    for name in names:
        primary.publish(name, zone_text(1))
        keyed_primary.publish(name, zone_text(2))
    server = knotd(keys=[KEY])
    before = server.server([primary.endpoint])
    after = server.server([NOWHERE, keyed_primary.endpoint], before.id, tsig_key=KEY)
    with opened(before) as backend:
        assert all(result.ok for result in backend.create_domains([a_domain(name) for name in names]))
        wait_until(lambda: all(server.serial(name) == 1 for name in names), 'the first contents are served')
    with opened(after) as backend:
        assert backend.create_domain(a_domain(names[0])).ok
        for name in names:
            assert server.notify(name, 2, key=KEY).rcode() == dns.rcode.NOERROR
        wait_until(lambda: all(server.serial(name) == 2 for name in names), "the other primary's contents are served")
    with opened(before) as backend:
        assert backend.create_domain(a_domain(names[0])).ok
        assert server.notify(names[0], 2).rcode() == dns.rcode.NOERROR
    assert len(server.knotc('conf-read', 'remote.id').splitlines()) == 1


def test_what_an_operator_has_set_for_a_zone_stays_but_for_its_primaries(knotd: Start) -> None:
    server = knotd(sections='remote:\n  - id: theirs\n    address: 192.0.2.1\n')
    with opened(server.server([NOWHERE])) as backend:
        assert backend.create_domain(a_domain()).ok
        server.change(['conf-set', 'zone[example.com].semantic-checks', 'on'],
                      ['conf-unset', 'zone[example.com].master'], ['conf-set', 'zone[example.com].master', 'theirs'])
        assert backend.create_domain(a_domain()).ok
    assert server.setting('zone[example.com].semantic-checks') == 'on'
    assert server.setting('zone[example.com].master').startswith('designate-pool-')


def test_a_primary_zone_of_the_operators_is_left_alone(knotd: Start) -> None:
    server = knotd()
    server.change(['conf-set', 'zone[example.com]'])
    domains = [a_domain('before.example.com.'), a_domain(), a_domain('after.example.com.')]
    with opened(server.server([NOWHERE])) as backend:
        for act in (backend.create_domains, backend.delete_domains):
            results = act(domains)
            assert [result.ok for result in results] == [True, False, True]
            assert "already exists there, without a 'master'" in str(results[1].error)
        assert backend.list_zones([]).serials == {}
    assert server.knotc('conf-read', 'zone').splitlines() == ['zone.domain = example.com.']


def test_creating_what_is_there_already_changes_nothing(knotd: Start) -> None:
    server = knotd()
    with opened(server.server([NOWHERE])) as backend:
        assert backend.create_domain(a_domain()).ok
        before = server.knotc('conf-read')
        server.knotc('conf-begin')  # with which the driver could not change anything
        assert backend.create_domain(a_domain()).ok
        assert backend.delete_domain(a_domain('never.example.com.')).ok
    server.knotc('conf-abort')
    assert server.knotc('conf-read') == before


def test_an_empty_zone_that_is_created_again_goes_for_its_contents_at_once(knotd: Start, primary: Primary) -> None:
    server = knotd()
    with opened(server.server([primary.endpoint])) as backend:
        assert backend.create_domain(a_domain()).ok
        wait_until(lambda: 'next retry at' in server.log, 'the primary has refused the zone')
        primary.publish('example.com.', zone_text(1))
        assert backend.create_domain(a_domain()).ok
        assert server.log.count("control, received command 'zone-refresh'") == 1
        wait_until(lambda: server.serial('example.com.') == 1, 'it is transferred')
        assert backend.create_domain(a_domain()).ok
        assert server.log.count("control, received command 'zone-refresh'") == 1


@pytest.mark.parametrize('template', ['in-journal', 'in-file'])
def test_nothing_is_left_of_a_deleted_zone(knotd: Start, primary: Primary, template: str) -> None:
    server = knotd(templates='''
  - id: in-journal
    zonefile-sync: -1
    zonefile-load: none
    journal-content: all
  - id: in-file
    storage: "{folder}/zones"
    file: "%s.db"
''')
    with opened(server.server([primary.endpoint], template=template)) as backend:
        for serial in (9, 5, 1):
            primary.publish('example.com.', zone_text(serial))
            assert backend.create_domain(a_domain()).ok
            wait_until(lambda serial=serial: server.serial('example.com.'), 'something is served')
            assert server.serial('example.com.') == serial
            if template == 'in-file':
                wait_until(lambda: list(server.folder.rglob('example.com.db')), 'knotd has written the zone')
            assert backend.delete_domain(a_domain()).ok
            assert not list(server.folder.rglob('example.com.db'))


def test_names_that_knot_would_write_into_one_file_have_each_their_own(knotd: Start, primary: Primary) -> None:
    names = ['a_b.example.net.', 'a/b.example.net.', 'a\\.b.example.net.']
    server = knotd(templates='''
  - id: in-file
    storage: "{folder}/zones"
    file: "%s.db"
    journal-content: none
''')
    with opened(server.server([primary.endpoint], template='in-file')) as backend:
        for serial, name in enumerate(names, 1):
            primary.publish(name, zone_text(serial))
        assert all(result.ok for result in backend.create_domains([a_domain(name) for name in names]))
        wait_until(lambda: [server.serial(name) for name in names] == [1, 2, 3], 'all are served')
        wait_until(lambda: len(list(server.folder.rglob('*.db'))) == 3, 'each has its file')
        primary.stop()
        server.restart()
        wait_until(lambda: [server.serial(name) for name in names] == [1, 2, 3], 'each has its own contents')
        assert backend.delete_domain(a_domain(names[1])).ok
        server.restart()
        wait_until(lambda: [server.serial(name) for name in (names[0], names[2])] == [1, 3], 'the others keep theirs')
        assert server.setting('zone[a_b.example.net].file') == '', 'a usual name is left to the template'


@pytest.mark.parametrize('key', [None, KEY])
def test_notify_and_questions_are_taken_by_our_rule_beside_those_of_the_template(knotd: Start,
                                                                                 key: TsigKey | None) -> None:
    server = knotd(keys=[KEY], sections='''
acl:
  - id: transfers
    address: 192.0.2.0/24
    action: transfer
''', templates='''
  - id: with
    acl: transfers
''')
    for template in (None, 'with', 'with'):
        with opened(server.server([NOWHERE], 'a' * 32, tsig_key=key, template=template)) as backend:
            assert backend.create_domain(a_domain()).ok
        assert server.notify('example.com.', 1, key=key).rcode() == dns.rcode.NOERROR
        assert key is None or server.notify('example.com.', 1).rcode() == dns.rcode.NOTAUTH
        assert server.query('example.com.', key=key).rcode() == dns.rcode.SERVFAIL
        rules = server.setting('zone[example.com].acl')
        assert rules.split() == [f'designate-pool-{"a" * 32}', *(['transfers'] if template else [])]


def test_check_finds_a_socket_that_everybody_can_use(knotd: Start) -> None:
    server = knotd()
    server.socket.chmod(0o222)
    with opened(server.server([NOWHERE])) as backend:
        finding, = backend.check()
    assert 'every user of this host' in finding.what
    assert not finding.serious


@pytest.mark.parametrize('template', [None, 'signed'])
def test_check_finds_a_template_that_has_zones_signed(knotd: Start, template: str | None) -> None:
    server = knotd(templates='''
  - id: signed
    dnssec-signing: on
''')
    with opened(server.server([NOWHERE], template=template)) as backend:
        assert [finding.what for finding in backend.check()] == (
            [] if template is None else ['the template signed has zones signed, so that their serials are not ours'])


def test_a_socket_that_we_may_not_use_is_permanent(knotd: Start) -> None:
    server = knotd()
    server.socket.chmod(0)
    with opened(server.server([NOWHERE])) as backend, somebody_else():
        result = backend.create_domain(a_domain())
        finding = next(finding for finding in backend.check() if 'control channel' in finding.what)
    assert result.error == f'control_socket: {server.socket}: permission denied'
    assert not result.retryable
    assert 'to the group of knotd' in finding.advice


@contextlib.contextmanager
def somebody_else() -> Iterator[None]:
    """Be a user without rights, if we are root."""
    us = os.geteuid()
    if us == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(us)


def test_the_example_and_its_knot_conf_work_together(knotd: Start, tmp_path: pathlib.Path) -> None:
    example = example_servers('example-knot.conf', tmp_path)[0]
    assert example.tsig_key
    server = knotd(configuration=(ETC / 'example-knot.knot.conf').read_text())
    with Primary(keys=[example.tsig_key]) as keyed:
        keyed.publish('example.com.', zone_text(4))
        here = dataclasses.replace(example, host=server.host, port=server.port, primaries=(keyed.endpoint,),
                                   options={**example.options, 'control_socket': str(server.socket)})
        with opened(here) as backend:
            assert backend.check() == []
            assert backend.create_domain(a_domain()).ok
            wait_until(lambda: server.serial('example.com.') == 4, 'the contents are served')
            keyed.publish('example.com.', zone_text(5))
            wait_until(lambda: server.follows('example.com.', 5, key=example.tsig_key), 'the new contents are served')
            assert backend.delete_domain(a_domain()).ok
            assert server.query('example.com.').rcode() == dns.rcode.REFUSED
