"""What drivers do with primary zones that a server has already, with and without ``adopts_zones``."""

from __future__ import annotations

import contextlib
import pathlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dns.exception
import dns.message
import dns.query
import dns.rcode

from designate_pool.deadline import Deadline
from designate_pool.model import Reason, Server, new_id
from designate_pool.testing import a_domain, opened
from testing.bind import Named
from testing.daemon import Daemon
from testing.nsd import Nsd
from testing.pdns import PowerDns
from testing.processes import wait_until
from tests.fixtures.nameservers import Primary, zone_text
from tests.fixtures.updates import knotd_with, named_with

OLD, NEW = 5, 9


@contextlib.contextmanager
def watched(server: Daemon) -> Iterator[set[object]]:
    """What a server says about the zone meanwhile: serials, or response codes."""
    said: set[object] = set()
    ended = threading.Event()

    def watch() -> None:
        query = dns.message.make_query('example.com.', 'SOA')
        while not ended.wait(0.001):
            try:
                answer = dns.query.udp(query, server.host, port=server.port, timeout=2)
            except (dns.exception.Timeout, OSError) as error:
                said.add(type(error).__name__)
                continue
            said.add(answer.answer[0][0].serial if answer.answer else dns.rcode.to_text(answer.rcode()))

    with ThreadPoolExecutor(1) as threads:
        watching = threads.submit(watch)
        try:
            yield said
            wait_until(lambda: NEW in said or watching.done(), 'the new contents are seen')
        finally:
            ended.set()
        watching.result()


def adopt(server: Daemon, primary: Primary, facts: dict[str, Any], between: str | None = None) -> set[object]:
    """Create the domain, refused at first like its deletion; what was served until it had the new contents.

    :param between: what a BIND says before ``rndc reconfig``
    """
    with opened(server.server([primary.endpoint], **facts)) as backend:
        assert backend.list_zones(['example.com.']).serials == {}
        listed = backend.list_primary_zones()
        assert listed.result.ok and listed.complete and listed.serials['example.com.'] in (OLD, None)
        for refused in (backend.create_domain(a_domain()), backend.delete_domain(a_domain())):
            assert refused.reason is Reason.CONFLICT and 'already exists there' in str(refused.error)
        assert server.serial('example.com.') == OLD
    with opened(server.server([primary.endpoint], adopts_zones=True, **facts)) as backend, watched(server) as said:
        if between is not None:
            assert between in str(backend.create_domain(a_domain()).error)
            assert server.serial('example.com.') == OLD
            assert isinstance(server, Named) and server.command('reconfig').result == 0
            wait_until(lambda: backend.create_domain(a_domain()).ok, 'it is a secondary zone')
        for _ in range(2):
            assert backend.create_domain(a_domain()).error is None
        wait_until(lambda: server.follows('example.com.', NEW), 'it is transferred')
        assert 'example.com.' not in backend.list_primary_zones().serials
        # NSD answers before the process that lists zones has learnt of the new contents.
        wait_until(lambda: backend.list_zones(['example.com.']).serials['example.com.'] == NEW, 'it is listed')
    return said


def test_bind_is_reconfigured_once(named: Callable[..., Named], primary: Primary) -> None:
    primary.publish('example.com.', zone_text(NEW))
    server = named(statistics=True)
    (server.folder / 'own.db').write_text(zone_text(OLD))
    added = 'addzone "example.com" { type primary; file "own.db"; allow-update { none; }; };'
    assert server.command(added).result == 0
    wait_until(lambda: server.serial('example.com.') == OLD, 'it is served')
    # named answers SERVFAIL until it has read the zone's file again, which takes milliseconds.
    said = adopt(server, primary, {'statistics_url': server.statistics_url}, "run 'rndc reconfig'")
    assert said <= {OLD, NEW, 'SERVFAIL'}
    server.restart()
    wait_until(lambda: server.serial('example.com.') == NEW, 'it is served after a restart')


def test_bind_without_statistics_cannot_list_primary_zones(named: Callable[..., Named], primary: Primary) -> None:
    with opened(named().server([primary.endpoint])) as backend:
        assert 'set statistics_url' in str(backend.list_primary_zones().result.error)


def test_bind_with_a_zone_in_named_conf_says_what_to_write(named: Callable[..., Named], primary: Primary,
                                                           tmp_path: pathlib.Path) -> None:
    primary.publish('example.com.', zone_text(NEW))
    server = named_with(named, tmp_path, {'example.com.': zone_text(OLD)})
    facts = server.server([primary.endpoint], adopts_zones=True)
    with opened(facts) as backend:
        refused = backend.create_domain(a_domain())
        assert refused.reason is Reason.CONFLICT and server.serial('example.com.') == OLD
        error = str(refused.error)
        statement = error[error.index('{'):error.rindex('}') + 1]
        path = server.folder / 'named.conf'
        text = path.read_text()
        path.write_text(f'{text[:text.index("zone ")]}zone "example.com" {statement};\n')
        assert server.command('reconfig').result == 0
        wait_until(lambda: server.serial('example.com.') in (OLD, NEW), 'it is served')
        assert backend.create_domain(a_domain()).error is None
        wait_until(lambda: server.command('refresh example.com').result == 0
                   and server.serial('example.com.') == NEW, 'it is transferred')
        assert 'is configured in named.conf' in str(backend.delete_domain(a_domain()).error)


def test_knot_never_stops_serving(knotd: Callable[..., Daemon], primary: Primary, tmp_path: pathlib.Path) -> None:
    primary.publish('example.com.', zone_text(NEW))
    server = knotd_with(knotd, tmp_path, {'example.com.': zone_text(OLD)})
    assert adopt(server, primary, {}) <= {OLD, NEW}
    server.restart()
    wait_until(lambda: server.serial('example.com.') == NEW, 'it is served after a restart')


def test_powerdns_never_stops_serving(powerdns: Callable[..., PowerDns], primary: Primary) -> None:
    primary.publish('example.com.', zone_text(NEW))
    server = powerdns()
    with opened(server.server([primary.endpoint])) as backend:
        soa = f'ns1.example.org. hostmaster.example.com. {OLD} 3600 600 86400 300'
        answer = backend._api.ask('POST', '/zones', Deadline(10), {  # type: ignore[attr-defined]
            'name': 'example.com.', 'kind': 'Native', 'nameservers': ['ns1.example.org.'], 'soa_edit_api': '',
            'rrsets': [{'name': 'example.com.', 'type': 'SOA', 'ttl': 300, 'changetype': 'REPLACE',
                        'records': [{'content': soa, 'disabled': False}]}]})
        assert answer.status == 201, answer
    wait_until(lambda: server.serial('example.com.') == OLD, 'it is served')
    assert adopt(server, primary, {}) <= {OLD, NEW}


def test_nsd_transfers_the_zone(nsd: Callable[..., Nsd], primary: Primary, tmp_path: pathlib.Path) -> None:
    primary.publish('example.com.', zone_text(NEW))
    file = tmp_path / 'own.zone'
    file.write_text(zone_text(OLD))
    server = nsd(statements=f'pattern:\n    name: "own"\n    zonefile: "{file}"')
    server.control('addzone', 'example.com', 'own')
    wait_until(lambda: server.serial('example.com.') == OLD, 'it is served')
    # NSD reloads itself for a change of the pattern, and does not serve the zone until it has transferred it.
    said = adopt(server, primary, {'pattern': server.pattern([primary.endpoint])})
    assert said <= {OLD, NEW, 'SERVFAIL'}


def test_nsd_never_stops_serving_with_a_pattern_for_the_same_file(nsd: Callable[..., Nsd], primary: Primary,
                                                                  tmp_path: pathlib.Path) -> None:
    primary.publish('example.com.', zone_text(NEW))
    (tmp_path / 'example.com.zone').write_text(zone_text(OLD))
    server = nsd(statements=f'pattern:\n    name: "own"\n    zonefile: "{tmp_path}/%s.zone"')
    server.control('addzone', 'example.com', 'own')
    wait_until(lambda: server.serial('example.com.') == OLD, 'it is served')
    pattern = server.pattern([primary.endpoint], zonefile=f'{tmp_path}/%s.zone')
    assert adopt(server, primary, {'pattern': pattern}) <= {OLD, NEW}
    server.control('write')
    server.restart()
    wait_until(lambda: server.serial('example.com.') == NEW, 'it is served after a restart')


def test_others_say_that_they_cannot_list_them() -> None:
    with opened(Server(id=new_id(), driver='rfc2136', host='127.0.0.1', port=9)) as backend:
        assert 'cannot list primary zones' in str(backend.list_primary_zones().result.error)
