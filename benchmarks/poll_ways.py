"""Our ways to ask a server for many serials, each in a process of its own:

``python -m benchmarks.poll_ways WAY CONCURRENCY HOST PORT ZONES SECONDS`` prints one JSON object.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

#: Zones at most that are asked for together, as in one message to MiniDNS, and how many times that may be under way.
PAGE, AHEAD = 1000, 4


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """
    :ivar queries: that were answered
    :ivar lost: that were not, or not with the serial that the zone has
    :ivar cpu: processor seconds
    """

    queries: int
    lost: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.queries / self.seconds


def zone_names(count: int) -> list[str]:
    return [f'poll-{number:06}.example.com.' for number in range(count)]


class Counter:
    """Hands out pages until the time is over, and counts what comes of them.

    :param ask: asks for a page of zones
    """

    def __init__(self, names: Sequence[str], seconds: float, ask: Callable[[Sequence[str]], None]) -> None:
        import threading  # once it is known whether it is green

        self._size = max(1, min(PAGE, len(names) // (2 * AHEAD)))
        self._pages: Iterator[Sequence[str]] = itertools.cycle(
            [names[start:start + self._size] for start in range(0, len(names), self._size)])
        self._seconds = seconds
        self._ask = ask
        self._changed = threading.Condition()
        self._asked = self._answered = self._lost = 0

    def count(self, answered: int, lost: int) -> None:
        with self._changed:
            self._answered += answered
            self._lost += lost
            self._changed.notify()

    def run(self) -> Asked:
        started, spent = time.monotonic(), time.process_time()
        while time.monotonic() < started + self._seconds:
            page = next(self._pages)
            self._asked += len(page)
            self._ask(page)
            self._await((AHEAD - 1) * self._size)
        self._await(0)
        return Asked(self._answered, self._lost, time.monotonic() - started, time.process_time() - spent)

    def _await(self, left: int) -> None:
        with self._changed:
            while self._asked - self._answered - self._lost > left:
                assert self._changed.wait(60), 'no answers'


def by_polls(running: Any, host: str, port: int, names: Sequence[str], seconds: float) -> Asked:
    """The poller, as for changes."""
    from benchmarks.servers_zones import SERIAL
    from designate_pool.minidns.access.acl import AllowedPeer
    from designate_pool.minidns.client.event_loop import ClientLoop
    from designate_pool.minidns.client.query import RetrySchedule
    from designate_pool.minidns.client.soa_poller import AddressedResult, PollOrder, SoaPoller, ToPool
    from designate_pool.model import Context, PollRequest

    def told(*found: AddressedResult) -> None:
        right = sum(result.serial_number == SERIAL for _, result in found)
        counter.count(right, len(found) - right)

    loop = ClientLoop()
    poller = SoaPoller(loop, told)
    peer = AllowedPeer('s', f'server:{host}:{port}', (host,), port)
    schedule, numbers = RetrySchedule(30.0, 2.0, 3), itertools.count()

    def ask(page: Sequence[str]) -> None:
        # A pool of its own for each page: who asks once more for what is under way is told as well then.
        pool = ToPool(f'pool{next(numbers)}', Context())
        poller.start_polls([PollOrder(peer, pool, PollRequest(name, name, SERIAL, peer.id, notify=False))
                            for name in page], schedule)

    counter = Counter(names, seconds, ask)
    loop.start(running)
    try:
        return counter.run()
    finally:
        loop.stop()


def by_audit(running: Any, host: str, port: int, names: Sequence[str], seconds: float) -> Asked:
    """Pages, as for the audit."""
    from benchmarks.servers_zones import SERIAL
    from designate_pool.minidns.access.acl import AllowedPeer
    from designate_pool.minidns.client.event_loop import ClientLoop
    from designate_pool.minidns.client.soa_audit import AuditPage, SoaAudit
    from designate_pool.model import Context, utcnow

    class PoolManagers:
        def audited(self, context: Any, pool_name: str, started_at: Any, counts: Any, findings: Sequence[Any]) -> None:
            counter.count(sum(each[1] for each in counts) - len(findings), len(findings))

    loop = ClientLoop()
    audit = SoaAudit(loop, PoolManagers())  # type: ignore[arg-type]
    peer = AllowedPeer('s', f'server:{host}:{port}', (host,), port)
    counter = Counter(names, seconds, lambda page: audit.start_page(
        AuditPage(Context(), 'default', utcnow(), [peer], [(name, name, SERIAL) for name in page])))
    loop.start(running)
    try:
        return counter.run()
    finally:
        loop.stop()


WAYS = {'polls': by_polls, 'audit': by_audit}


def main(way: str, concurrency: str, host: str, port: str, zones: str, seconds: str) -> int:
    from designate_pool import runtime

    if concurrency == 'eventlet':
        runtime.patch()
    from designate_pool.cmd.compose.lifecycle import GarbageCollector

    GarbageCollector()
    asked = WAYS[way](runtime.BY_NAME[concurrency](), host, int(port), zone_names(int(zones)), float(seconds))
    print(json.dumps(dataclasses.asdict(asked)))
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
