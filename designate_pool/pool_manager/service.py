"""The RPC endpoint ``pool_manager.<pool name>``: see :mod:`designate_pool.rpc.pool_manager` for the contract."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from designate_pool.errors import InvalidField, PoolError
from designate_pool.model import Answer, Comparison, Context, Domain, Endpoint, Outcome, PollResult, Reloaded, Server
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.pool_manager.server_registry import ServerRegistry
from designate_pool.pool_manager.verify.server_compare import ServerCompare
from designate_pool.rpc.pool_manager import PoolManagerClient

LOG = logging.getLogger(__name__)

#: Batches that may wait before messages are passed on.
_MOST_BATCHES = 2


class PoolManager:
    """The endpoint; :class:`~designate_pool.pool_manager.manager.Manager` does the work.

    Of several pool managers of a pool one gets all messages about domains, so that its batches are large and results
    come to the one that has read their domains.  When it has too much to do, it passes messages on, and results of
    servers that only others have in their configuration.

    :param others: the pool managers of the pool, this one among them; None if no process beside this one can have any
    """

    def __init__(self, manager: Manager, registry: ServerRegistry, runtime: Any,
                 others: PoolManagerClient | None = None) -> None:
        self._manager = manager
        self._others = others
        self._registry = registry
        self._compare = ServerCompare(manager, runtime)
        self._periodic = PeriodicLoops(manager, registry, runtime)

    def start(self) -> None:
        """Register the servers, InvalidField for one of another pool, repeat polls under way, and start the loops."""
        self._registry.start()
        self._manager.repeat_polls()
        self._periodic.start()

    def reload(self) -> None:
        """Read the configuration again; one with mistakes changes nothing."""
        try:
            self._registry.reload()
        except PoolError as error:
            LOG.error('the old list of servers is still used: %s', error)

    def stop(self) -> None:
        """Finish the calls in flight, and release what others can go on with."""
        self._periodic.stop()
        self._registry.stop()
        self._manager.stop()

    def update_domain(self, context: Context, domain: Domain) -> None:
        """Queue a domain that Central has created, changed or deleted."""
        self._manager.queue_changes([domain.id])

    create_domain = delete_domain = update_domain

    def change_domains(self, context: Context, domains: Sequence[Domain], spread: bool = False) -> None:
        """Queue several domains, or pass them on to another pool manager unless one has done so (*spread*)."""
        if spread or not self._is_passed_on('casts', PoolManagerClient.change_domains, context, domains):
            self._manager.queue_changes(domain.id for domain in domains)

    def update_status(self, context: Context, domain: Domain, name_server: str, status: Outcome,
                      serial_number: int | None) -> None:
        """Take the result of one poll, of a server named by id or address."""
        server_id = _server_at(name_server, [worker.server for worker in self._manager.all_workers.values()])
        if server_id is None:
            raise InvalidField(field='name_server', why=f'{name_server!r} is no server of the pool')
        if status not in (Outcome.SUCCESS, Outcome.ERROR):
            raise InvalidField(field='status', why=f'{status!r} is not SUCCESS or ERROR')
        self._manager.queue_results([PollResult(
            domain.id, server_id, Outcome(status), Answer.TIMEOUT if serial_number is None else Answer.SERIAL,
            serial_number, None if status == Outcome.SUCCESS else 'the server did not come to serve the serial',
            domain.serial)])

    def update_statuses(self, context: Context, results: Sequence[PollResult], spread: bool = False) -> None:
        """Queue the results of polls, or pass them on to another pool manager unless one has done so (*spread*)."""
        if spread or not self._is_passed_on('outcomes', PoolManagerClient.update_statuses, context, results):
            self._manager.queue_results(results)
            if self._others is not None and not spread and (foreign := self._manager.of_others(results)):
                # Not all pool managers have these servers in their configuration, and this one does not know which do.
                with contextlib.suppress(PoolError):  # the rows are due again
                    self._others.update_statuses(context, self._manager.pool.name, foreign, spread=True, to_all=True)

    def repeat_polls(self, context: Context) -> None:
        """Poll again for all that is being polled for, since MiniDNS has started."""
        self._manager.repeat_polls()

    def audited(self, context: Context, started_at: datetime, counts: Sequence[tuple[str, int, int]],
                findings: Sequence[PollResult]) -> None:
        """Take the results of one page of the audit of serials."""
        self._periodic.serial_audit.audited(context, started_at, counts, findings)

    def look_for_changes(self, context: Context) -> None:
        """Read the states of the servers: they have changed in the database."""
        self._registry.wake()

    def reload_servers(self, context: Context) -> Reloaded:
        """Read the configuration again; what that has changed."""
        return self._registry.reload()

    def compare_server(self, context: Context, server_id: str, fix: bool, delete_extra: int | None,
                       contents: bool = False, primary: bool = False) -> Comparison:
        """Compare what a server has with what it should have, and repair it if asked to."""
        return self._compare.compare(server_id, fix, delete_extra, contents, context, primary)

    def _is_passed_on(self, queue: str, send: Callable[..., None], context: Context, content: Sequence[Any]) -> bool:
        if self._others is None or self._manager.queues()[queue] < _MOST_BATCHES * self._manager.settings.batch_size:
            return False
        try:
            send(self._others, context, self._manager.pool.name, content, spread=True)
        except PoolError:
            return False
        return True


def _server_at(name_server: str, servers: Sequence[Server]) -> str | None:
    """The id of the server with this id, configured address, or resolved address."""
    for server in servers:
        if name_server in (server.id, str(server.endpoint)):
            return server.id
    try:
        endpoint = Endpoint.parse(name_server)
    except ValueError:
        return None
    return next((server.id for server in servers if endpoint in _addresses(server)), None)


def _addresses(server: Server) -> set[Endpoint]:
    with contextlib.suppress(OSError):
        addresses = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_DGRAM)
        return {Endpoint(str(address[4][0]), server.port) for address in addresses}
    return set()
