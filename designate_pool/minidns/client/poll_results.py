"""Results of polls: put together by server, and cast to the pool managers.

A server that is verified at other addresses than its own serves a serial when all of these do: its result is that of
the address that is worst, and waits for the others.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from designate_pool import serial as serials
from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.client.soa_poller import AddressedResult, ToPool
from designate_pool.model import Context, Endpoint, Outcome, PollResult
from designate_pool.outage_log import OutageLog
from designate_pool.rpc.pool_manager import PoolManagerClient

LOG = logging.getLogger(__name__)
Verified = Mapping[str, Sequence[AllowedPeer]]
#: Servers and domains that have results of some addresses only, or failures; the oldest are dropped beyond that.
MAX_INCOMPLETE = 100_000


class ResultSender:
    """Casts results, all given at once in one message to each pool; *verified* returns :attr:`ServerTable.verified`."""

    def __init__(self, pool_managers: PoolManagerClient, verified: Callable[[], Verified] = dict,
                 max_incomplete: int = MAX_INCOMPLETE) -> None:
        self._pool_managers = pool_managers
        self._verified = verified
        self._max_incomplete = max_incomplete
        self._lock = threading.Lock()
        #: By server and domain: the latest result of each address, until all of them have succeeded.
        self._parts: dict[tuple[str, str], dict[str, PollResult]] = {}
        self._outage = OutageLog(LOG, 'poll results could not be sent to the pool manager; it polls again: %s',
                                 'poll results can be sent to the pool manager again')

    def send(self, *results: AddressedResult) -> None:
        """Put *results* together by server, and cast those that are whole."""
        by_pool: dict[ToPool, list[PollResult]] = {}
        for recipient, result in results:
            server_id, _, number = result.server_id.partition('#')
            whole = self._add(server_id, result) if number else result
            if whole is None:
                continue
            if isinstance(recipient, ToPool):
                by_pool.setdefault(recipient, []).append(whole)
            else:
                self._cast('update_status', recipient.context, recipient.domain, recipient.destination, whole.status,
                           whole.serial_number)
        for pool, pool_results in by_pool.items():
            self._cast('update_statuses', pool.context, pool.pool_name, pool_results)

    def repeat_polls(self, pool_name: str) -> None:
        """Have the pool managers repeat the polls of MiniDNS processes that were killed."""
        self._cast('repeat_polls', Context(), pool_name)

    def _cast(self, method: str, *arguments: object) -> None:
        """Cast a message; one that cannot be sent is dropped, because the pool manager polls again."""
        try:
            getattr(self._pool_managers, method)(*arguments)
        except Exception as error:  # whatever the transport raises; the next message is tried anyway
            self._outage.failed(error)
        else:
            self._outage.ended()

    def _add(self, server_id: str, result: PollResult) -> PollResult | None:
        """The server's result, once each address has one that is as new as *result*."""
        peers, key = self._verified().get(server_id, ()), (server_id, result.domain_id)
        with self._lock:
            former = self._parts.pop(key, {})
            parts = {peer.id: former[peer.id] for peer in peers
                     if peer.id in former and not _is_outdated(former[peer.id], result)}
            parts[result.server_id] = result
            newest = functools.reduce(lambda one, other: one if serials.at_least(one, other) else other,
                                      map(_subject, parts.values()))
            is_whole = all(peer.id in parts and serials.at_least(_subject(parts[peer.id]), newest) for peer in peers)
            if not is_whole or any(part.status is not Outcome.SUCCESS for part in parts.values()):
                self._parts[key] = parts
                if len(self._parts) > self._max_incomplete:
                    del self._parts[next(iter(self._parts))]
        return worst(server_id, peers, parts) if is_whole and peers else None


def worst(server_id: str, peers: Iterable[AllowedPeer], results: Mapping[str, PollResult]) -> PollResult | None:
    """The result that stands for all, as the server's; None without one.  *results* are by ids of (some) *peers*."""
    selected: tuple[AllowedPeer, PollResult] | None = None
    for peer in peers:
        result = results.get(peer.id)
        if result is not None and (selected is None or _is_worse(result, selected[1])):
            selected = peer, result
    if selected is None:
        return None
    peer, result = selected
    error = result.error and f'{Endpoint(peer.addresses[0], peer.port)}: {result.error}'
    return dataclasses.replace(result, server_id=server_id, error=error)


def _subject(result: PollResult) -> int:
    """The serial that a poll was about; 0 for a failure without a request, which there is none of."""
    return (result.serial_number if result.expected_serial is None else result.expected_serial) or 0


def _is_outdated(former: PollResult, result: PollResult) -> bool:
    """Whether the server has lost the zone between the two."""
    return former.incarnation is not None and result.incarnation is not None \
        and former.incarnation < result.incarnation


def _is_worse(one: PollResult, other: PollResult) -> bool:
    if one.status is not other.status:
        return one.status is Outcome.ERROR
    if one.serial_number is None or other.serial_number is None:
        return one.serial_number is None and other.serial_number is not None
    return serials.newer(other.serial_number, one.serial_number)
