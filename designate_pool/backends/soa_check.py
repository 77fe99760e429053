"""Queries a server for its zones over DNS."""

from __future__ import annotations

from collections.abc import Callable, Collection

from designate_pool.deadline import Deadline
from designate_pool.errors import BackendRefused
from designate_pool.model import Answer, Reason, Server
from designate_pool.protocol import soa_exchange, tsig
from designate_pool.protocol.soa_query import SoaReply


def ask(server: Server, names: Collection[str], deadline: Deadline,
        enough: Callable[[SoaReply], bool] = lambda said: True) -> dict[str, SoaReply | None]:
    """Query a server of the pool for the SOA of these zones, as :func:`soa_exchange.ask` does.

    :raises BackendRefused: when all its answers say that it does not accept the TSIG key
    """
    key = None if server.tsig_key is None else tsig.key_from(server.tsig_key)
    by_name = soa_exchange.ask(server.host, server.port, key, names, deadline, enough)
    replies = [said for said in by_name.values() if said is not None]
    # A server that has just lost a zone may not accept a key for its name for a moment; so one such answer is no proof.
    if replies and all(said.reason in (Reason.BAD_KEY, Reason.BAD_TIME) for said in replies):
        raise BackendRefused(why=f'the server rejects the TSIG key: {replies[0].error}', reason=replies[0].reason)
    return by_name


def is_absent(said: SoaReply) -> bool:
    """Whether the server does not have the zone."""
    return said.answer in (Answer.NO_ZONE, Answer.NOT_AUTH)
