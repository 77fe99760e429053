"""Stands between the services and the database, and ends connections in the middle of a COMMIT when it is told to.

A program of its own, in the database's namespace; lines on its standard input tell it what to do:

==============  ==========================================================================================
``before N``    the next N connections that send COMMIT end, and the database does not get it
``after N``     the next N connections that send COMMIT end when the database has answered; nobody learns of it
``cut``         all connections end now
``lead H P``    all connections end, and new ones lead to port P of the host H
==============  ==========================================================================================

It prints a line for each connection that it ended: ``before``, ``after`` or ``cut``.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading

from designate_pool.model import Endpoint
from testing.processes import free_port, listens, wait_until
from tests.torture.network import Host

_COMMIT = b'COMMIT'
BEFORE, AFTER, CUT, LEAD = 'before', 'after', 'cut', 'lead'
#: Seconds that the database has to take a connection.
_CONNECTING = 5


class CommitProxy:
    """The program, as the kit sees it.

    :ivar endpoint: where the services find the database
    """

    def __init__(self, host: Host, target: Endpoint) -> None:
        self.endpoint = Endpoint(host.address, free_port(host.address))
        self._counts = dict.fromkeys((BEFORE, AFTER, CUT), 0)
        self._process = subprocess.Popen(
            [*host.prefix, sys.executable, '-u', '-m', __name__, self.endpoint.host, str(self.endpoint.port),
             target.host, str(target.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._thread = threading.Thread(target=self._read, name='commit proxy', daemon=True)
        self._thread.start()

    def __enter__(self) -> CommitProxy:
        wait_until(lambda: listens(self.endpoint.port, self.endpoint.host), 'the proxy of the database listens')
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join()

    def order(self, verb: str, number: int = 0) -> None:
        self._say(verb, str(number))

    def lead(self, target: Endpoint) -> None:
        """End all connections; new ones lead to *target*."""
        self._say(LEAD, target.host, str(target.port))

    def count(self, verb: str) -> int:
        """How many connections were ended so."""
        return self._counts[verb]

    def _say(self, *words: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(' '.join(words) + '\n')
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._counts[line.strip()] += 1


class _Proxy:
    def __init__(self, target: Endpoint) -> None:
        self._target = target
        self._left = {BEFORE: 0, AFTER: 0}
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self, listen: Endpoint) -> None:
        server = await asyncio.start_server(self._forward, listen.host, listen.port, backlog=512)
        orders = asyncio.create_task(self._take_orders())
        async with server:
            await orders

    async def _take_orders(self) -> None:
        """Until whoever started the program has ended."""
        orders = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
        while line := (await orders.readline()).decode().split():
            if line[0] in (CUT, LEAD):
                if line[0] == LEAD:
                    self._target = Endpoint(line[1], int(line[2]))
                for writer in list(self._writers):
                    writer.transport.abort()
                    if line[0] == CUT:
                        print(CUT)
            else:
                self._left[line[0]] = int(line[1])

    async def _forward(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        target = self._target
        try:
            from_server, to_server = await asyncio.wait_for(asyncio.open_connection(target.host, target.port),
                                                            _CONNECTING)
        except OSError:
            to_client.transport.abort()
            return
        if target is not self._target:
            for writer in (to_client, to_server):
                writer.transport.abort()
            return
        self._writers.add(to_client)
        muted = asyncio.Event()
        tasks = [asyncio.create_task(self._ask(from_client, to_server, muted)),
                 asyncio.create_task(self._answer(from_server, to_client, muted))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._writers.discard(to_client)
            for task in tasks:
                task.cancel()
            for writer in (to_client, to_server):
                writer.transport.abort() if muted.is_set() else writer.close()

    async def _ask(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, muted: asyncio.Event) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                if _COMMIT in data and (self._left[BEFORE] or self._left[AFTER]):
                    verb = BEFORE if self._left[BEFORE] else AFTER
                    self._left[verb] -= 1
                    muted.set()
                    print(verb)
                    if verb == BEFORE:
                        return
                target.write(data)
                await target.drain()

    @staticmethod
    async def _answer(source: asyncio.StreamReader, target: asyncio.StreamWriter, muted: asyncio.Event) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                if muted.is_set():
                    return
                target.write(data)
                await target.drain()


if __name__ == '__main__':
    asyncio.run(_Proxy(Endpoint(sys.argv[3], int(sys.argv[4]))).serve(Endpoint(sys.argv[1], int(sys.argv[2]))))
