"""From queries to answers, with the zones in between: one statement for all the queries that came together."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from designate_pool.errors import PoolError
from designate_pool.minidns import responder
from designate_pool.minidns.packing import PackedZone
from designate_pool.minidns.responder import Query, Responder, Transfer
from designate_pool.minidns.zones import Zones
from designate_pool.model import ZoneHead

LOG = logging.getLogger(__name__)


class Answering:
    """Answers queries out of *zones*."""

    def __init__(self, zones: Zones, reader: Responder) -> None:
        self._zones = zones
        self._responder = reader
        self._outage = False

    def answers(self, messages: Sequence[tuple[bytes, str]], over_tcp: bool) -> list[bytes | Transfer | None]:
        """The answer to each of *messages* (octets, address), in their order; None for silence."""
        now = int(time.time())
        read = [self._responder.read(message, address, over_tcp, now) for message, address in messages]
        names = {each.name for each in read if isinstance(each, Query)}
        heads = self._heads(names) if names else {}
        return [self._answer(each, heads, now) if isinstance(each, Query) else each for each in read]

    def packed(self, transfer: Transfer) -> PackedZone | bytes:
        """The zone to transfer, or the answer that says why there is none."""
        try:
            zone = self._zones.packed(transfer.head)
        except (ValueError, PoolError) as error:
            LOG.error('zone %s cannot be transferred: %s', transfer.head.name, error)
        except Exception as error:  # the database's errors are storage's own
            self._log_outage(error)
        else:
            return zone or _said(responder.answer(transfer.query, None, int(time.time())))
        return responder.failure(transfer.query, int(time.time()))

    def _heads(self, names: set[str]) -> Mapping[str, ZoneHead] | None:
        """The heads of *names*; None when the database does not say."""
        try:
            found = self._zones.heads(names)
        except Exception as error:  # the database's errors are storage's own
            self._log_outage(error)
            return None
        self._outage = False
        return found

    def _answer(self, query: Query, heads: Mapping[str, ZoneHead] | None, now: int) -> bytes | Transfer:
        if heads is None:
            return responder.failure(query, now)
        try:
            return responder.answer(query, heads.get(query.name), now)
        except ValueError as error:
            LOG.error('zone %s cannot be served: %s', query.name, error)
            return responder.failure(query, now)

    def _log_outage(self, error: Exception) -> None:
        if not self._outage:
            LOG.error('zones cannot be read: %s', error)
        self._outage = True


def _said(answer: bytes | Transfer) -> bytes:
    assert isinstance(answer, bytes)
    return answer
