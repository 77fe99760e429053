"""Users who make zones, change records and delete zones over HTTP while a cluster behind the services loses nodes.

Each request is made again until it is answered with a yes, so that every change comes to be acknowledged; then it is
looked for on every server, and the next one follows.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import dns.exception
import requests

from testing.bind import Named
from testing.processes import patience, wait_until
from testing.stack import Stack

#: Seconds until a request is given up and made again, and, with patience, until a change has to be acknowledged, and
#: served.
_REQUEST, _PATIENCE = 30.0, 150.0
#: Changes of a user between a zone that is made and one that is deleted.
_LIFE = 6


class Change(NamedTuple):
    """
    :ivar begun: seconds since the load began
    :ivar acknowledged: seconds until the answer that it is accepted
    :ivar served: seconds until all servers served it
    """

    begun: float
    acknowledged: float
    served: float


class Load:
    """
    :param servers: which are to serve every change
    :param users: how many there are, each with zones of its own
    :ivar changes: those that are acknowledged and served
    :ivar unknown: requests that were not answered, or with an error of the server's
    """

    def __init__(self, stack: Stack, servers: Sequence[Named], users: int = 4, zones: int = 6) -> None:
        self.stack = stack
        self._servers = servers
        self._over = threading.Event()
        self._began = time.monotonic()
        self.changes: list[Change] = []
        self.unknown: list[str] = []
        self._errors: list[BaseException] = []
        self._waiting: dict[str, tuple[float, str]] = {}
        self._wanted: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._gone: list[str] = []
        self._threads = [threading.Thread(target=self._use, args=(f'user{number}', zones), name=f'user{number}')
                         for number in range(users)]

    @property
    def now(self) -> float:
        """Seconds since the load began."""
        return time.monotonic() - self._began

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The users are at work; at the end each finishes what it has begun."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in self._threads:
                thread.join(2 * patience(_PATIENCE))
        if self._errors:
            raise AssertionError(self._situation()) from self._errors[0]
        assert not any(thread.is_alive() for thread in self._threads), f'users are still at work: {self._situation()}'

    def await_changes(self, count: int, seconds: float = _PATIENCE) -> None:
        """Until so many more changes are served."""
        before = len(self.changes)
        try:
            wait_until(lambda: self._errors or len(self.changes) >= before + count,
                       f'{count} changes are served', seconds)
        except AssertionError as error:
            raise AssertionError(f'{error}; {len(self.changes) - before} were\n{self._situation()}') from None
        if self._errors:
            raise AssertionError(self._situation()) from self._errors[0]

    def _situation(self) -> str:
        """What each user waits for, what has failed, and the ends of the logs."""
        return '\n'.join([
            *(f'{user} began {self.now - since:.1f} s ago to wait: {what}'
              for user, (since, what) in sorted(self._waiting.items())),
            *map(repr, self._errors),
            *(f'{times} times: {text}' for text, times in collections.Counter(self.unknown).items()),
            self.stack.logs()])

    def check(self) -> None:
        """All that was acknowledged is served now, every zone is ACTIVE, and nothing else is there."""
        for name, address in self._wanted.items():
            zone = self.stack.wait_for(self._ids[name])
            for server in self._servers:
                assert (server.serial(name), server.texts(f'www.{name}', 'A')) == (zone['serial'], [address])
        for name in self._gone:
            assert [server.serial(name) for server in self._servers] == [None] * len(self._servers), name
        wait_until(lambda: {each['name'] for each in self.stack.request('GET', '/v2/zones?limit=1000', 200)['zones']}
                   == set(self._wanted), 'the zones are those that are wanted')
        self.stack.must_be_sound()

    def tell(self, title: str, *faults: tuple[str, float]) -> None:
        """Print how long changes waited: all of them, and the longest around each fault.

        :param faults: what happened, and when by :attr:`now`
        """
        served = sorted(each.served for each in self.changes)
        print(f'\n{title}: {len(served)} changes, {len(self.unknown)} requests without an answer; served after '
              f'{served[len(served) // 2]:.2f} s (median), {served[-1]:.2f} s (longest)')
        for (what, at), following in itertools.zip_longest(faults, faults[1:]):
            end = following[1] if following else self.now
            among = [each for each in self.changes if each.begun < end and each.begun + each.served > at]
            longest = max(among, key=lambda each: each.served, default=None)
            if longest is not None:
                print(f'  {what}: of {len(among)} changes the longest was acknowledged after '
                      f'{longest.acknowledged:.2f} s and served after {longest.served:.2f} s')
        for text, times in sorted(collections.Counter(self.unknown).items()):
            print(f'  {times} times: {text}')

    def _use(self, user: str, zones: int) -> None:
        try:
            names = [f'{user}-{number}.example.com.' for number in range(zones)]
            sets: dict[str, str] = {}
            for name in names:
                sets[name] = self._create(name, '192.0.2.1')
            numbers = itertools.count(2)
            while not self._over.is_set():
                number = next(numbers)
                name, address = names[number % zones], f'192.0.2.{number % 250}'
                self._change('PUT', f'/v2/zones/{self._ids[name]}/recordsets/{sets[name]}', {'records': [address]},
                             name, address)
                if number % _LIFE == 0:
                    passing = f'{user}-passing{number}.example.com.'
                    self._create(passing, address)
                    self._delete(passing)
        except BaseException as error:  # whoever waits for changes raises it
            self._errors.append(error)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        self._waiting[threading.current_thread().name] = self.now, what
        wait_until(condition, what, _PATIENCE)

    def _create(self, name: str, address: str) -> str:
        """Make a zone with a record; the id of its recordset."""
        begun = self.now
        zone = self._ask('POST', '/v2/zones', {'name': name, 'email': 'hostmaster@example.com'})
        if zone is None:  # it was made by a request whose answer was lost
            (zone,) = self._ask('GET', f'/v2/zones?name={name}')['zones']
        self._ids[name] = zone['id']
        self._served(begun, self.now, name, None)
        path = f'/v2/zones/{zone["id"]}/recordsets'
        found = self._change('POST', path, {'name': f'www.{name}', 'type': 'A', 'records': [address]}, name, address)
        if found is None:
            (found,) = self._ask('GET', f'{path}?type=A')['recordsets']
        return str(found['id'])

    def _change(self, method: str, path: str, body: Any, name: str, address: str) -> Any:
        begun = self.now
        answer = self._ask(method, path, body)
        self._wanted[name] = address
        self._served(begun, self.now, name, address)
        return answer

    def _delete(self, name: str) -> None:
        begun = self.now
        self._ask('DELETE', f'/v2/zones/{self._ids[name]}')
        acknowledged = self.now
        del self._wanted[name]
        self._gone.append(name)
        self._wait(lambda: all(self._is_gone(server, name) for server in self._servers), f'{name} is gone')
        self.changes.append(Change(begun, acknowledged - begun, self.now - begun))

    @staticmethod
    def _is_gone(server: Named, name: str) -> bool:
        with contextlib.suppress(dns.exception.Timeout):
            return server.query(name, timeout=1).rcode() == dns.rcode.REFUSED
        return False

    def _served(self, begun: float, acknowledged: float, name: str, address: str | None) -> None:
        def is_served(server: Named) -> bool:
            with contextlib.suppress(dns.exception.Timeout):
                if address is None:
                    return server.serial(name) is not None
                return server.texts(f'www.{name}', 'A') == [address]
            return False

        self._wait(lambda: all(map(is_served, self._servers)), f'{name} is served with {address}')
        self.changes.append(Change(begun, acknowledged - begun, self.now - begun))

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """What the API answers in the end; None when it says that it has done so before."""
        begun, again = self.now, False
        self._waiting[threading.current_thread().name] = begun, f'an answer to {method} {path}'
        while True:
            try:
                answer = requests.request(method, self.stack.url + path, json=body, timeout=_REQUEST)
            except requests.RequestException as error:
                self.unknown.append(f'{method}: {type(error).__name__}')
            else:
                if again and (method, answer.status_code) in (('POST', 409), ('DELETE', 404)):
                    return None
                if answer.status_code < 500:
                    assert answer.ok, f'{method} {path}: {answer.status_code} {answer.text}'
                    return answer.json() if answer.content else None
                self.unknown.append(f'{method}: {answer.status_code} {answer.text[:300]}')
            assert self.now - begun < patience(_PATIENCE), f'{method} {path} was not answered: {self.unknown[-1]}'
            again = True
            self._over.wait(0.2)
