"""What every driver must do, whatever its server.  A test module subclasses these and gives them a ``rig``."""

from __future__ import annotations

import abc
import concurrent.futures
import contextlib
import itertools
import pathlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from designate_pool import backends
from designate_pool.backends.base import Backend
from designate_pool.model import CallResult, Domain, Endpoint, Reason, Server, TsigKey, new_id
from designate_pool.testing.processes import free_port, wait_until

LABEL = 'abcdefghijklmnopqrstuvwxyz0123456789-abcdefghijklmnopqrstuvwxyz'
LONGEST = f'{LABEL}.{LABEL}.{LABEL}.{LABEL[:61]}.'

ODD_NAMES = {
    'underscore': '_sip._tcp.example.com.',
    'A-label': 'xn--bcher-kva.example.',
    'reverse': '2.0.192.in-addr.arpa.',
    'classless reverse': '0/26.2.0.192.in-addr.arpa.',
    'one label': 'example.',
    '255 octets': LONGEST,
    '63 octets of escapes': '\\001' * 63 + '.example.',
    'escaped dot': 'host\\.master.example.com.',
    'quotation mark': 'a\\"b.example.com.',
    'end of a statement': 'a\\"\\032\\{\\}\\;\\032b.example.com.',
    'backslash': 'a\\\\b.example.com.',
    'trailing backslash': 'a\\\\.example.com.',
    'newline': 'a\\010b.example.com.',
    'null octet': 'a\\000b.example.com.',
    'high octet': 'a\\255b.example.com.',
    'slashes': '\\.\\./\\.\\./etc.example.com.',
    'option': '-clean.example.com.',
    'comment': 'a//b.example.com.',
    'at sign': '\\@.example.com.',
}


def a_domain(name: str = 'example.com.', generation: int = 1) -> Domain:
    """A domain of this name for a driver's call."""
    return Domain(id=new_id(), name=name, pool_id=new_id(), pool_name='default', email='hostmaster@example.com',
                  ttl=300, serial=1, generation=generation)


class Rig(abc.ABC):
    """A server for the driver, and access to it without the driver."""

    #: Names that the server cannot hold, and a part of the driver's error for each.
    refused: Mapping[str, str] = {}

    @abc.abstractmethod
    def server(self, **facts: Any) -> Server:
        """The server as the driver gets it; *facts* are fields of Server, or options."""

    @abc.abstractmethod
    def holds(self, name: str) -> bool:
        """Whether the server has the zone, with contents or without."""


class RemoteRig(Rig):
    """A rig whose server is a process of its own that is controlled over a socket."""

    #: How many zones are created at once.
    many = 1000
    #: The driver's error when nothing listens at the control channel.
    nobody = 'connection failed: Connection refused'

    @abc.abstractmethod
    def nowhere(self) -> dict[str, Any]:
        """Options with a control channel at which nothing listens."""

    @abc.abstractmethod
    def listening(self) -> tuple[socket.socket, dict[str, Any]]:
        """A listening socket, and the options with it as the control channel."""

    @abc.abstractmethod
    def restart(self) -> None:
        """Stop the server, and start it again."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop the server."""

    @abc.abstractmethod
    def start(self) -> None:
        """Start the server that was stopped."""


class TcpRig(RemoteRig):
    """A rig whose control channel is a TCP port of loopback."""

    #: The option with the port.
    port_option: str

    def nowhere(self) -> dict[str, Any]:
        return {self.port_option: free_port()}

    def listening(self) -> tuple[socket.socket, dict[str, Any]]:
        listening = socket.create_server(('127.0.0.1', 0))
        return listening, {self.port_option: listening.getsockname()[1]}


class UnixRig(RemoteRig):
    """A rig whose control channel is a unix socket.

    :ivar folder: short, since the path of a socket has at most 107 octets
    """

    nobody = 'connection failed: No such file or directory'
    #: The option with the path.
    path_option: str
    folder: pathlib.Path

    def nowhere(self) -> dict[str, Any]:
        return {self.path_option: str(self.folder / 'nobody')}

    def listening(self) -> tuple[socket.socket, dict[str, Any]]:
        path = self.folder / f's{new_id()[:8]}'
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        listening.listen(16)
        return listening, {self.path_option: str(path)}


class KeyedRig(abc.ABC):
    """A rig whose control channel requires a key."""

    #: Options with a wrong key.
    wrong_key: dict[str, Any]
    #: The reason of the refusal.
    wrong_key_reason = Reason.BAD_KEY


@contextlib.contextmanager
def opened(server: Server) -> Iterator[Backend]:
    """The driver of *server*, closed at the end."""
    backend = backends.build(server)
    try:
        yield backend
    finally:
        backend.close()


def assert_created(rig: Rig, name: str, result: CallResult) -> None:
    """Check that the zone exists; or, if the server cannot hold such a name, that it was refused permanently."""
    if name in rig.refused:
        assert rig.refused[name] in str(result.error), name
        assert not result.retryable
    else:
        assert result.ok, (name, result)
    assert rig.holds(name) == (name not in rig.refused), name


class Contract:
    """For every driver."""

    def test_create_and_create_again(self, rig: Rig) -> None:
        with opened(rig.server()) as backend:
            assert backend.create_domain(a_domain()).ok
            assert rig.holds('example.com.')
            assert backend.create_domain(a_domain()).ok
            assert rig.holds('example.com.')

    def test_delete_and_delete_again(self, rig: Rig) -> None:
        with opened(rig.server()) as backend:
            backend.create_domain(a_domain())
            assert backend.delete_domain(a_domain()).ok
            wait_until(lambda: not rig.holds('example.com.'), 'the zone is gone')
            assert backend.delete_domain(a_domain()).ok

    def test_delete_of_what_never_was(self, rig: Rig) -> None:
        with opened(rig.server()) as backend:
            assert backend.delete_domain(a_domain('never.example.com.')).ok

    def test_create_after_delete(self, rig: Rig) -> None:
        with opened(rig.server()) as backend:
            for generation in range(1, 6):
                assert backend.create_domain(a_domain(generation=generation)).ok
                assert rig.holds('example.com.')
                assert backend.delete_domain(a_domain(generation=generation)).ok
            assert backend.create_domain(a_domain(generation=6)).ok
            assert rig.holds('example.com.')

    def test_list(self, rig: Rig) -> None:
        names = {'example.com.', '_sip._tcp.example.com.', 'a\\.b.example.com.'} - rig.refused.keys()
        with opened(rig.server()) as backend:
            for name in names:
                assert backend.create_domain(a_domain(name)).ok
            listing = backend.list_zones({*names, 'never.example.com.'})
            assert listing.result.ok
            assert set(listing.serials) >= names
            assert 'never.example.com.' not in listing.serials

    def test_nothing_to_do(self, rig: Rig) -> None:
        with opened(rig.server()) as backend:
            assert backend.create_domains([]) == backend.delete_domains([]) == []

    def test_one_name_beside_another_in_one_batch(self, rig: Rig) -> None:
        """A zone that exists already does not prevent the rest of a batch."""
        with opened(rig.server()) as backend:
            assert backend.create_domain(a_domain('there.example.com.')).ok
            batch = [a_domain(f'{word}.example.com.') for word in ('before', 'there', 'after')]
            batches = [batch] if backend.capabilities.batch_size > 1 else [[domain] for domain in batch]
            assert all(result.ok for part in batches for result in backend.create_domains(part))
            assert all(rig.holds(domain.name) for domain in batch)
            assert backend.delete_domain(batch[1]).ok
            assert all(result.ok for part in batches for result in backend.delete_domains(part))
            wait_until(lambda: not any(rig.holds(domain.name) for domain in batch), 'all are gone')

    def test_ping(self, rig: Rig) -> None:
        with opened(rig.server()) as backend:
            result = backend.ping()
        assert result.ok
        assert 0 < result.seconds < 5

    def test_keys_are_not_managed(self, rig: Rig) -> None:
        key = TsigKey('transfer.example.', 'hmac-sha256', 'c2VjcmV0')
        with opened(rig.server()) as backend:
            for result in (backend.create_tsigkey(key), backend.update_tsigkey(key), backend.delete_tsigkey(key)):
                assert 'does not manage TSIG keys' in str(result.error)
                assert not result.retryable

    def test_names_that_differ_in_an_escape(self, rig: Rig) -> None:
        dotted, escaped = 'a.b.example.com.', 'a\\.b.example.com.'
        with opened(rig.server()) as backend:
            assert backend.create_domain(a_domain(dotted)).ok
            assert not rig.holds(escaped)
            assert_created(rig, escaped, backend.create_domain(a_domain(escaped)))
            assert backend.delete_domain(a_domain(escaped)).ok
            wait_until(lambda: not rig.holds(escaped), 'the escaped one is gone')
            assert rig.holds(dotted)
            assert_created(rig, escaped, backend.create_domain(a_domain(escaped)))
            assert backend.delete_domain(a_domain(dotted)).ok
            wait_until(lambda: not rig.holds(dotted), 'the dotted one is gone')
            assert rig.holds(escaped) == (escaped not in rig.refused)

    def test_odd_names(self, rig: Rig) -> None:
        with opened(rig.server()) as backend:
            for what, name in ODD_NAMES.items():
                for _ in range(2):
                    assert_created(rig, name, backend.create_domain(a_domain(name)))
            for what, name in ODD_NAMES.items():
                result = backend.delete_domain(a_domain(name))
                assert result.ok, (what, result)
            wait_until(lambda: not any(map(rig.holds, ODD_NAMES.values())), 'all are gone')
            assert backend.ping().ok


class ChannelContract:
    """For each kind of socket over which a driver controls its server."""

    def test_nobody_listens(self, rig: RemoteRig) -> None:
        with opened(rig.server(**rig.nowhere())) as backend:
            result = backend.create_domain(a_domain())
        assert result.error == rig.nobody
        assert result.reason is Reason.UNREACHABLE
        assert result.retryable
        assert result.unreachable

    def test_the_control_channel_hangs(self, rig: RemoteRig) -> None:
        silent, facts = rig.listening()
        with silent, opened(rig.server(call_timeout=0.3, **facts)) as backend:
            started = time.monotonic()
            result = backend.create_domain(a_domain())
            took = time.monotonic() - started
        assert result.error == 'no answer within 0.3 s'
        assert result.reason is Reason.TIMEOUT
        assert result.retryable
        assert result.unreachable
        assert 0.3 <= took < 5
        assert 0.3 <= result.seconds <= took

    @pytest.mark.parametrize('said', [b'HTTP/1.1 400 Bad Request\r\n\r\n', b'\0' * 64, b'[]\n', b'{"ok"', b'',
                                      b'\0\0\0\x10\0\0\0\x01' + b'\xff' * 12])
    def test_something_else_listens(self, rig: RemoteRig, said: bytes) -> None:
        other, facts = rig.listening()
        with other:
            thread = threading.Thread(target=_say, args=(other, said), daemon=True)
            thread.start()
            with opened(rig.server(call_timeout=2, **facts)) as backend:
                result = backend.create_domain(a_domain())
            other.shutdown(socket.SHUT_RDWR)
            thread.join()
        assert not result.ok
        assert 'Traceback' not in str(result.error)
        assert 'the driver failed' not in str(result.error)

    def test_restarted_between_two_calls(self, rig: RemoteRig) -> None:
        with opened(rig.server()) as backend:
            assert backend.create_domain(a_domain('one.example.com.')).ok
            rig.restart()
            assert backend.create_domain(a_domain('two.example.com.')).ok
            assert rig.holds('two.example.com.')

    def test_dead_and_back_again(self, rig: RemoteRig) -> None:
        with opened(rig.server()) as backend:
            assert backend.ping().ok
            rig.stop()
            assert backend.create_domain(a_domain()).unreachable
            assert backend.ping().unreachable
            rig.start()
            assert backend.ping().ok
            assert backend.create_domain(a_domain()).ok

    def test_many_at_once(self, rig: RemoteRig) -> None:
        domains = [a_domain(f'zone{number}.example.com.') for number in range(rig.many)]
        with opened(rig.server(max_in_flight=4)) as backend:
            callers = min(4, backend.capabilities.most_in_flight)
            size = min(backend.capabilities.batch_size, 250)
            batches = [domains[start:start + size] for start in range(0, len(domains), size)]
            with concurrent.futures.ThreadPoolExecutor(callers) as pool:
                results = list(itertools.chain.from_iterable(pool.map(backend.create_domains, batches)))
                assert [result.error for result in results] == [None] * rig.many
                listing = backend.list_zones([domain.name for domain in domains])
                assert listing.serials.keys() >= {domain.name for domain in domains}
                results = list(itertools.chain.from_iterable(pool.map(backend.delete_domains, batches)))
                assert [result.error for result in results] == [None] * rig.many
            sample = domains[::100]
            wait_until(lambda: not any(rig.holds(domain.name) for domain in sample), 'all are gone')

    def test_check_of_a_server_that_is_as_it_should_be(self, rig: RemoteRig) -> None:
        with opened(rig.server()) as backend:
            assert backend.check() == []

    def test_check_of_one_that_is_not_there(self, rig: RemoteRig) -> None:
        with opened(rig.server(**rig.nowhere())) as backend:
            findings = [finding for finding in backend.check() if finding.serious]
        assert findings
        assert all(finding.what and finding.advice for finding in findings)


class RemoteContract(Contract, ChannelContract):
    """For drivers whose server is controlled over a socket."""


class KeyedContract:
    """For drivers whose control channel requires a key."""

    def test_a_wrong_key_is_permanent(self, rig: Any) -> None:
        with opened(rig.server(**rig.wrong_key)) as backend:
            for result in (backend.create_domain(a_domain()), backend.delete_domain(a_domain()), backend.ping()):
                assert not result.ok
                assert not result.retryable
                assert not result.unreachable
                assert result.reason is rig.wrong_key_reason
                assert 'key' in str(result.error) or 'secret' in str(result.error)
            assert 'key' in backend.check()[0].what or 'secret' in backend.check()[0].what
        assert not rig.holds('example.com.')


def _say(listening: socket.socket, said: bytes) -> None:
    with contextlib.suppress(OSError):
        for _ in range(10):
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.settimeout(1)
                connection.recv(4096)
                connection.sendall(said)


NOWHERE = Endpoint('127.0.0.1', 9)
