"""Asking name servers for serials, many at once, until all answer as wanted."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterable, Mapping

from designate_pool.model import Answer, Endpoint
from designate_pool.protocol import soa_query, wire

IN_FLIGHT = 64
_ROUND = 0.1
#: Seconds until a server is asked again that has left something unanswered.
_SILENT = 0.5


class Asker:
    """One server and the zones that do not answer as wanted yet.

    :param wanted: serial by zone; None for a zone that must not be there
    :ivar is_silent: whether it has not answered some of what it was asked last
    """

    def __init__(self, endpoint: Endpoint, wanted: Mapping[str, int | None]) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect((endpoint.host, endpoint.port))
        self._socket.setblocking(False)
        self._templates = {name: soa_query.soa_query(wire.wire_of(name)) for name in wanted}
        self.missing = dict(wanted)
        self.is_silent = False

    def ask(self) -> None:
        """Ask for zones that are missing, until there are some that are not as wanted yet: to ask for all of them each
        time would keep a server busy that is being filled.
        """
        names = list(self.missing)
        for start in range(0, len(names), IN_FLIGHT):
            some = names[start:start + IN_FLIGHT]
            self._ask(some)
            if not self.missing.keys().isdisjoint(some):
                return

    def close(self) -> None:
        self._socket.close()

    def _ask(self, names: list[str]) -> None:
        for number, name in enumerate(names):
            self._socket.send(number.to_bytes(2, 'big') + self._templates[name])
        self.is_silent = False
        end = time.monotonic() + _ROUND
        unanswered = set(range(len(names)))
        while unanswered and (left := end - time.monotonic()) > 0:
            select.select([self._socket], [], [], left)
            try:
                while unanswered:
                    message = self._socket.recv(4096)
                    number = int.from_bytes(message[:2], 'big')
                    if number in unanswered and self._hear(names[number], message):
                        unanswered.discard(number)
            except OSError:  # nothing more now, or nobody at that port
                continue
        self.is_silent = bool(unanswered)

    def _hear(self, name: str, message: bytes) -> bool:
        """Whether *message* answers the question for *name*."""
        said = soa_query.read_reply(message, self._templates[name])
        if said is None:
            return False
        wanted = self.missing[name]
        absent = said.answer is Answer.NO_ZONE and message[3] & 15 == wire.REFUSED
        if said.serial == wanted if wanted is not None else absent:
            del self.missing[name]
        return True


def await_serials(servers: Iterable[Endpoint], wanted: Mapping[str, int | None], seconds: float,
                  pause: float = 0.01) -> float:
    """Wait until every server answers every zone's SOA query as *wanted*; the monotonic time of the last answer.

    :param wanted: serial by zone; None for a zone that the servers must refuse to answer for
    :raises AssertionError: when it takes longer than *seconds*
    """
    end = time.monotonic() + seconds
    askers = [Asker(server, wanted) for server in servers]
    try:
        while True:
            for asker in askers:
                asker.ask()
            now = time.monotonic()
            missing = sum(len(asker.missing) for asker in askers)
            if not missing:
                return now
            assert now < end, f'{missing} answers were not as wanted within {seconds:g} s'
            # NSD limits how often it refuses: who goes on asking is not answered any more.
            time.sleep(max(pause, _SILENT) if any(asker.is_silent for asker in askers) else pause)
    finally:
        for asker in askers:
            asker.close()
