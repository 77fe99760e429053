"""What a server itself says about zones, over DNS."""

from __future__ import annotations

from collections.abc import Callable, Collection

from designate_pool.deadline import Deadline
from designate_pool.errors import BackendRefused
from designate_pool.model import Answer, Reason, Server
from designate_pool.protocol import soa_exchange, tsig
from designate_pool.protocol.soa_query import SoaReply

#: What is said of a server that takes our signature in none of its answers.
NO_KEY = 'the server does not accept our signature'


def ask(server: Server, names: Collection[str], deadline: Deadline,
        enough: Callable[[SoaReply], bool] = lambda said: True) -> dict[str, SoaReply | None]:
    """:func:`soa_exchange.ask` of a pool's server.

    :raises BackendRefused: when the server accepts our signature in none of its answers
    """
    key = None if server.tsig_key is None else tsig.key_from(server.tsig_key)
    found = soa_exchange.ask(server.host, server.port, key, names, deadline, enough)
    heard = [said for said in found.values() if said is not None]
    # A server that has just lost a zone may for a moment know no key for its name: so one such answer proves nothing.
    if heard and all(said.reason in (Reason.BAD_KEY, Reason.BAD_TIME) for said in heard):
        raise BackendRefused(why=f'{NO_KEY}: {heard[0].error}', reason=heard[0].reason)
    return found


def is_absent(said: SoaReply) -> bool:
    """Whether the server has no such zone."""
    return said.answer in (Answer.NO_ZONE, Answer.NOT_AUTH)
