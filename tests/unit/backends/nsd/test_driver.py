"""What the nsd driver makes of names, options and answers; the answers come from a socket in the test."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator

import dns.name
import pytest
from hypothesis import given, strategies as st

from designate_pool import backends
from designate_pool.backends.base import Backend
from designate_pool.backends.nsd import control_protocol
from designate_pool.backends.nsd.control_protocol import NsdAnswer, NsdControl, ZoneStatus
from designate_pool.backends.nsd.driver import key_findings
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError
from designate_pool.model import Endpoint, Reason, Server, TsigKey, new_id
from designate_pool.testing import a_domain

LABELS = st.lists(st.binary(min_size=1, max_size=63), min_size=1, max_size=3)
NAMES = LABELS.map(lambda labels: dns.name.Name([*labels, b'']))


@given(NAMES)
def test_an_escaped_name_is_that_name_in_one_plain_word(name: dns.name.Name) -> None:
    text = control_protocol.escaped(name.to_text())
    assert re.fullmatch(r'(?:[a-z0-9_.-]|\\[0-9]{3})+', text)
    assert dns.name.from_text(text) == name


LISTED = b'''\
zone:\tExample.COM
\tpattern: pool
\tnotify: "send 192.0.2.9 with serial 3"
\tstate: ok
\tserved-serial: "4294967295 since 2026-01-01T00:00:00"
\tcommit-serial: "4294967295 since 2026-01-01T00:00:00"
\twait: "3571 sec between attempts"
zone:\tcaf\xe9.example.
\tpattern: pool
\tstate: expired
\tserved-serial: "5 since 2026-01-01T00:00:00"
\tcommit-serial: "5 since 2026-01-01T00:00:00"
\ttransfer: "sent UDP to 2001:db8::1"
zone:\ta\\.b.example.
\tpattern: a pool
\tstate: refreshing
\tserved-serial: "6 since 2026-01-01T00:00:00"
\tcommit-serial: none
\ttransfer: "TCP connected to 192.0.2.10@5354"
zone:\tby-hand.example
\tstate: master
'''


def test_the_answer_to_zonestatus() -> None:
    assert list(control_protocol.statuses(LISTED.splitlines())) == [
        ZoneStatus('example.com.', 'pool', serial=4294967295),
        ZoneStatus('caf\\233.example.', 'pool', asked=Endpoint('2001:db8::1', 53)),
        ZoneStatus('a\\.b.example.', 'a pool', asked=Endpoint('192.0.2.10', 5354)),
        ZoneStatus('by-hand.example.', None, is_secondary=False)]


@pytest.mark.parametrize('line', [b'error unknown command', b'\tstate: ok', b'HTTP/1.1 400 Bad Request', b'',
                                  b'zone:\ta..b'])
def test_an_answer_that_is_no_zonestatus_is_an_error(line: bytes) -> None:
    with pytest.raises(BackendError):
        list(control_protocol.statuses([line]))


@pytest.mark.parametrize('line, found', [
    ('key: name: "pool-key" secret: "c2VjcmV0" algorithm: hmac-md5', None),
    ('key: name: "POOL-KEY." secret: "c2VjcmV0" algorithm: hmac-md5', None),
    ('key: name: "pool-key" secret: "b3RoZXI=" algorithm: hmac-md5', 'another secret'),
    ('key: name: "pool-key" secret: "?" algorithm: hmac-md5', 'another secret'),
    ('key: name: "pool-key" secret: "c2VjcmV0" algorithm: hmac-sha1', 'another secret'),
    ('key: name: "other" secret: "c2VjcmV0" algorithm: hmac-md5', 'no TSIG key'),
    ("error unknown command 'print_tsig'", None),
])
def test_the_key_that_nsd_has(line: str, found: str | None) -> None:
    findings = key_findings(TsigKey('pool-key.', 'hmac-md5.sig-alg.reg.int', 'c2VjcmV0'), [line])
    assert [found in finding.what for finding in findings if found] == ([True] if found else [])
    assert bool(findings) == bool(found)


class Scripted:
    """A control socket where every connection gets the next of *answers*: octets, or a function that is handed it.

    :ivar heard: what the connections said, one after the other
    """

    def __init__(self, *answers: bytes | Callable[[socket.socket], None]) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='nsd'))
        self.path = str(self.folder / 's')
        self.heard: list[bytes] = []
        self._answers = answers
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self.path)
        self._socket.listen(8)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)
        shutil.rmtree(self.folder)

    def _serve(self) -> None:
        for answer in self._answers:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(5)
                if callable(answer):
                    answer(connection)
                else:
                    self.heard.append(connection.recv(1 << 20))
                    connection.sendall(answer)


@pytest.fixture
def scripted() -> Iterator[Callable[..., Scripted]]:
    with contextlib.ExitStack() as end:
        yield lambda *answers: end.enter_context(contextlib.closing(Scripted(*answers)))


def driver(server: Scripted) -> Backend:
    return backends.build(Server(new_id(), 'nsd', '192.0.2.1', call_timeout=5.0,
                                 options={'pattern': 'pool', 'control_socket': server.path}))


ONE = a_domain('one.example.')
TWO = a_domain('two.example.')
ADDED = b'added: one.example\nadded: two.example\nadded 2 zones\n'


def test_two_zones_are_one_command(scripted: Callable[..., Scripted]) -> None:
    server = scripted(ADDED)
    assert all(result.ok for result in driver(server).create_domains([ONE, TWO]))
    assert server.heard == [b'NSDCT1 addzones\none.example pool\ntwo.example pool\n\x04\n']


@pytest.mark.parametrize('length', range(len(ADDED)))
def test_an_answer_cut_short_is_no_success_wherever_it_is_cut(scripted: Callable[..., Scripted], length: int) -> None:
    results = driver(scripted(ADDED[:length])).create_domains([ONE, TWO])
    assert all(result.unreachable and result.retryable for result in results)


@pytest.mark.parametrize('said', [
    b'added: two.example\nadded: one.example\nadded 2 zones\n',
    b'added: one.example.com\nadded: two.example\nadded 2 zones\n',
    b'added 2 zones\n', b'ok\n', b'added: one.example\nadded 1 zones\n',
])
def test_an_answer_that_speaks_of_other_zones_is_no_success(scripted: Callable[..., Scripted], said: bytes) -> None:
    assert not any(result.ok for result in driver(scripted(said)).create_domains([ONE, TWO]))


def test_the_outcome_of_one_is_not_that_of_the_other(scripted: Callable[..., Scripted]) -> None:
    server = scripted(b"error could not add zonelist entry\nerror for input line 'one.example'\n"
                      b'added: two.example\nadded 1 zones\n')
    first, second = driver(server).create_domains([ONE, TWO])
    assert first.error == 'addzones one.example: error could not add zonelist entry'
    assert first.retryable
    assert second.ok


def test_of_many_zones_too_none_is_deleted_that_somebody_has_added_by_hand(
        scripted: Callable[..., Scripted]) -> None:
    domains = [a_domain(f'd{number}.example.') for number in range(20)]
    names = [f'd{number}.example'.encode() for number in range(20)]
    server = scripted(b'zone:\td0.example\n\tpattern: by-hand\n\tstate: master\n',
                      *(b'zone:\t' + name + b'\n\tpattern: pool\n\tstate: ok\n' for name in names[1:]),
                      b''.join(b'removed: ' + name + b'\n' for name in names[1:]) + b'deleted 19 zones\n')
    first, *others = driver(server).delete_domains(domains)
    assert first.reason is Reason.CONFLICT and all(result.ok for result in others)
    assert b'd0.example' not in server.heard[-1]


def test_files_that_are_missing_are_found_by_the_check(tmp_path: pathlib.Path) -> None:
    files = {name: str(tmp_path / name) for name in ('server_cert_file', 'control_key_file', 'control_cert_file')}
    server = Server(new_id(), 'nsd', '192.0.2.1', options={'pattern': 'pool', **files})
    key, channel = backends.build(server).check()
    assert 'control_key_file' in key.what and 'server_cert_file' in channel.what
    assert 'nsd_server.pem' in channel.advice


def test_an_nsd_that_cannot_write_its_list_of_zones_is_found_by_the_check(scripted: Callable[..., Scripted]) -> None:
    def refuse(connection: socket.socket) -> None:
        name = connection.recv(1 << 20).split(b'\n')[1].split()[0]
        connection.sendall(b"error could not add zonelist entry\nerror for input line '" + name + b"'\nadded 0 zones\n")

    finding, = driver(scripted(STATUS, refuse)).check()[-1:]
    assert 'no zone can be added' in finding.what and 'zonelistfile' in finding.advice


@pytest.mark.parametrize('said', [b'', b'o', b'error pattern pool does not exist\n'])
def test_another_pattern_counts_as_given_only_with_ok(scripted: Callable[..., Scripted], said: bytes) -> None:
    server = scripted(b'zone one.example already exists\nadded: one.example\nadded 1 zones\n',
                      b'zone:\tone.example\n\tpattern: other\n\tstate: ok\n', said)
    assert not driver(server).create_domain(ONE).ok
    assert server.heard[1:] == [b'NSDCT1 zonestatus one.example\n', b'NSDCT1 changezone one.example pool\n']


ZONE = b'zone:\tone.example\n\tpattern: pool\n\tstate: ok\n'
STATUS = b'version: 4.6.1\n'


def test_a_list_is_an_error_when_nsd_is_gone_or_another_one_after_it(scripted: Callable[..., Scripted]) -> None:
    def status_of_another(connection: socket.socket) -> None:
        connection.recv(100)
        os.utime(started_anew.path)
        connection.sendall(STATUS)

    gone = scripted(ZONE, b'')
    started_anew = scripted(ZONE, status_of_another)
    for server, said in ((gone, 'is not NSD'), (started_anew, 'restarted')):
        listing = driver(server).list_zones([])
        assert said in str(listing.result.error)
        assert not listing.complete
        assert listing.serials == {}


@pytest.mark.parametrize(('version', 'most'), [
    ('4.6.1', 50), ('4.8.0', 50), ('4.9.0', 0), ('4.12.0', 0), ('5.0.0rc1', 0), ('unknown', 50)])
def test_creates_and_deletes_are_bounded_where_they_may_end_nsd(scripted: Callable[..., Scripted], version: str,
                                                                most: int) -> None:
    nsd = driver(scripted(f'version: {version}\n'.encode()))
    assert nsd.capabilities.changes_per_second == 50, 'nothing is known yet'
    assert nsd.ping().ok
    assert nsd.capabilities.changes_per_second == most


@pytest.mark.parametrize('said', [b'zone:\tone.exam', b'zone:\tone.example\n\tpattern: po'])
def test_a_list_cut_in_a_line_is_an_error(scripted: Callable[..., Scripted], said: bytes) -> None:
    listing = driver(scripted(said, STATUS)).list_zones([])
    assert listing.result.unreachable
    assert listing.serials == {}


def test_a_server_that_is_just_being_stopped_is_asked_once_more(scripted: Callable[..., Scripted]) -> None:
    server = scripted(_hang_up, STATUS)
    assert driver(server).ping().ok


def test_one_that_hangs_up_each_time_has_refused(scripted: Callable[..., Scripted]) -> None:
    result = driver(scripted(_hang_up, _hang_up)).ping()
    assert 'it may require TLS' in str(result.error)
    assert not result.retryable


def _hang_up(connection: socket.socket) -> None:
    """Close without having read what was said, so that the other end sees a reset."""
    connection.recv(1)


def test_long_input_never_has_both_ends_wait(scripted: Callable[..., Scripted]) -> None:
    names = [f'zone{number}.example' for number in range(1000)]
    server = scripted(_like_nsd)
    said = NsdControl(server.path, None).bulk('addzones', names, ' pool', Deadline(5))
    assert said == [NsdAnswer(True, 'remark ' * 99 + 'remark')] * 1000


def _like_nsd(connection: socket.socket) -> None:
    """Read a line, answer it with little room to write in, and only then read the next."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    stream = connection.makefile('rb')
    stream.readline()
    count = 0
    while (line := stream.readline()) != b'\x04\n':
        connection.sendall(b'remark\n' * 100 + b'added: ' + line.split()[0] + b'\n')
        count += 1
    connection.sendall(b'added %d zones\n' % count)


def test_a_line_without_an_end_is_not_read_for_ever(scripted: Callable[..., Scripted]) -> None:
    server = scripted(b'x' * (1 << 20))
    with pytest.raises(BackendError, match='is too long'):
        NsdControl(server.path, None).ask('status', Deadline(5))
