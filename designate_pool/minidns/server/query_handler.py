"""From queries to answers, with the zones in between: one statement for all the queries that came together."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from dns.name import Name

from designate_pool import metrics
from designate_pool.errors import PoolError
from designate_pool.minidns import counters
from designate_pool.minidns.access.acl import AllowedPeer, Refusal, TsigGrant
from designate_pool.minidns.access.servers import ServerTable
from designate_pool.minidns.catalog.catalog_zone import CATALOG, CatalogLoader
from designate_pool.minidns.server import responder
from designate_pool.minidns.server.refusals import RefusalLog
from designate_pool.minidns.server.responder import Query, Responder, Transfer
from designate_pool.minidns.zones.ixfr import LEAST_RECORD, PackedDifference
from designate_pool.minidns.zones.loader import ZoneLoader
from designate_pool.minidns.zones.packing import PackedZone, StreamedZone
from designate_pool.minidns.zones.streaming import ZoneSource
from designate_pool.minidns.zones.zone_cache import ZoneCache
from designate_pool.model import ZoneHead
from designate_pool.storage.sql.database import Storage

LOG = logging.getLogger(__name__)

#: Zones that are sent while they are read may take one of so many connections to the database.
_SHARE = 4


class QueryHandler:
    """Answers queries of a pool's servers out of the database.  The zones of other pools are unknown to it.

    :param roster: gives the servers of now
    :param keep: octets of packed zones that are kept
    :param visitors: gives those of now, by the names of their keys
    :param served: told of each difference that is sent over UDP
    """

    def __init__(self, storage: Storage, roster: Callable[[], ServerTable], keep: int,
                 visitors: Callable[[], Mapping[Name, TsigGrant]] = dict,
                 served: Callable[[tuple[AllowedPeer, ...], PackedZone], None] = lambda peers, zone: None) -> None:
        kept = ZoneCache(keep)
        self._zones = ZoneLoader(storage, roster().pool_name, kept,
                                 ZoneSource(kept, max(1, storage.connections // _SHARE)))
        self._catalogs = CatalogLoader(storage, kept)
        self._roster = roster
        self._visitors = visitors
        self._served = served
        self._complaints = RefusalLog()
        self._outage = False

    def answers(self, messages: Sequence[tuple[bytes, str]], over_tcp: bool) -> list[bytes | Transfer | None]:
        """The answer to each of *messages* (octets, address), in their order; None for silence."""
        now = int(time.time())
        roster = self._roster()
        reader = Responder(roster.guests, self._visitors())
        read = [reader.read(message, address, over_tcp, now) for message, address in messages]
        names = {each.name for each in read if isinstance(each, Query)}
        heads = self._heads(names, roster) if names else {}
        return [self._answer(each, heads, now) for each in read]

    def packed(self, transfer: Transfer) -> PackedZone | StreamedZone | bytes:
        """The zone or difference to transfer, or the answer that says why there is none."""
        try:
            zone = self._packed(transfer)
        except Exception as error:  # the database's errors are storage's own
            self._log_failure(transfer.head, error)
            return responder.failure(transfer.query, int(time.time()))
        return zone or _said(responder.answer(transfer.query, None, int(time.time())))

    def _packed(self, transfer: Transfer) -> PackedZone | StreamedZone | None:
        query, head = transfer.query, transfer.head
        if query.have is not None and (difference := self._difference(query, head, query.have)) is not None:
            return difference
        return self._catalogs.packed(head, query.peers) if head.domain_id == CATALOG else self._zones.packed(head)

    def _difference(self, query: Query, head: ZoneHead, have: int, most: int | None = None) -> PackedDifference | None:
        if head.domain_id == CATALOG:
            return self._catalogs.difference(head, query.peers, have)
        return self._zones.difference(head, have, most)

    def _heads(self, names: set[str], roster: ServerTable) -> Mapping[str, ZoneHead] | None:
        """The heads of *names*; None when the database does not say."""
        catalog = roster.catalog_zone
        try:
            if catalog is None or catalog not in names:
                found = self._zones.heads(names)
            else:  # never the zone of a domain that has the same name
                head = self._catalogs.head(catalog, roster.pool_name)
                others = self._zones.heads(names - {catalog}) if len(names) > 1 else {}
                found = {**others, catalog: head} if head is not None else \
                    {name: each for name, each in others.items() if name != catalog}
        except Exception as error:  # the database's errors are storage's own
            self._log_outage(error)
            return None
        self._outage = False
        return found

    def _answer(self, read: Query | Refusal | bytes | None, heads: Mapping[str, ZoneHead] | None,
                now: int) -> bytes | Transfer | None:
        if isinstance(read, Refusal):
            self._complaints.refused(read)
            metrics.REFUSED.labels(read.kind).inc()
            return read.answer
        if not isinstance(read, Query):
            return read
        query = read
        if query.visitor is None:
            self._complaints.worked(query.address, '' if query.key is None else query.key.name.to_text())
        if heads is None:
            counters.ended(query, 'failed')
            return responder.failure(query, now)
        head = self._seen(query, heads.get(query.name))
        try:
            answer = responder.answer(query, head, now)
        except ValueError as error:
            LOG.error('zone %s cannot be served: %s', query.name, error)
            counters.ended(query, 'failed')
            return responder.failure(query, now)
        if not isinstance(answer, Transfer):
            counters.answered(query, head)
        elif not query.over_tcp:
            return self._datagram(answer, now)
        return answer

    def _datagram(self, transfer: Transfer, now: int) -> bytes:
        """The difference if it fits, else that it is to be had over TCP."""
        query, head = transfer.query, transfer.head
        assert query.have is not None
        started = time.monotonic()
        try:
            difference = self._difference(query, head, query.have, query.room // LEAST_RECORD)
            message = None if difference is None else transfer.datagram(difference, now)
            answer = transfer.come_by_tcp(now) if message is None else message
        except Exception as error:  # the database's errors are storage's own
            self._log_failure(head, error)
            counters.ended(query, 'failed')
            return responder.failure(query, now)
        if difference is None or message is None:
            counters.ended(query, 'by_tcp')
        else:
            counters.transferred(query, difference.size, time.monotonic() - started, is_whole=False)
            self._served(query.peers, difference)
        return answer

    def _seen(self, query: Query, head: ZoneHead | None) -> ZoneHead | None:
        """*head*, unless it is asked for by a visitor whose key is not for that zone."""
        if query.visitor is None or head is None or (head.domain_id != CATALOG and query.visitor.may_have(head)):
            return head
        name = query.visitor.key.name.to_text()
        self._complaints.refused(Refusal(b'', query.address, name, 'not its zone',
                                         f'{query.address} asks for {head.name}, for which the key {name} is not'))
        return None

    def _log_failure(self, head: ZoneHead, error: Exception) -> None:
        if isinstance(error, (ValueError, PoolError)):
            LOG.error('zone %s cannot be transferred: %s', head.name, error)
        else:
            self._log_outage(error)

    def _log_outage(self, error: Exception) -> None:
        if not self._outage:
            LOG.error('zones cannot be read: %s', error)
        self._outage = True


def _said(answer: bytes | Transfer) -> bytes:
    assert isinstance(answer, bytes)
    return answer
