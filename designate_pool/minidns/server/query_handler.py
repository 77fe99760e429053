"""Answers queries from the database: one statement for all queries that arrived together, and one for all NOTIFYs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from designate_pool import metrics
from designate_pool.errors import PoolError
from designate_pool.logs import OutageLog, RateLimitedLog
from designate_pool.minidns.acl import AllowedPeer, Refusal
from designate_pool.minidns.database_watch import TsigGrants
from designate_pool.minidns.server import responder
from designate_pool.minidns.server.responder import Query, Transfer
from designate_pool.minidns.servers import PoolServers
from designate_pool.minidns.zones.catalog_zone import CatalogLoader
from designate_pool.minidns.zones.ixfr import PackedDifference
from designate_pool.minidns.zones.loader import ZoneCache, ZoneLoader
from designate_pool.minidns.zones.packed_zone import PackedZone
from designate_pool.model import CATALOG_ID, LAST_STAGE, Master, ZoneHead
from designate_pool.protocol import wire
from designate_pool.storage.serving.zone_snapshot import Ahead
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import secondary_zones

LOG = logging.getLogger(__name__)

_KINDS = {wire.SOA: 'soa', wire.AXFR: 'axfr', wire.IXFR: 'ixfr'}
#: A query, its refusal, a reply that needs no zone, or None for no reply.
Parsed = Query | Refusal | bytes | None
#: Names in NOTIFY messages a second that are looked up.  Anybody may send these, so more are dropped; a master repeats
#: its own.
RATE = 200

#: The id of a domain, and its masters.
Masters = tuple[str, Sequence[str]]


class QueryHandler:
    """Answers queries for the zones of one pool.

    :param cache_bytes: octets of packed zones to cache
    :param on_sent: called with each transfer that was sent completely
    :param notifies: answers NOTIFY messages
    :param ahead: see :class:`ZoneLoader`
    :param requires_tls: whether transfers without TLS are refused
    """

    def __init__(self, storage: Storage, servers: PoolServers, tsig_grants: TsigGrants, cache_bytes: int,
                 on_sent: Callable[[tuple[AllowedPeer, ...], PackedZone], None], notifies: NotifyReceiver,
                 ahead: Ahead = iter, requires_tls: bool = False) -> None:
        self._requires_tls = requires_tls
        cache = ZoneCache(cache_bytes)
        self._zone_loader = ZoneLoader(storage, servers.table.pool_name, cache, ahead)
        self._catalog_loader = CatalogLoader(storage, cache)
        self._servers = servers
        self._tsig_grants = tsig_grants
        self._on_sent = on_sent
        self._notifies = notifies
        self._refusals = RateLimitedLog()
        self._outage = OutageLog(LOG, 'zones cannot be read: %s', 'zones can be read again')

    def parse(self, messages: Sequence[tuple[bytes, str]], over_tcp: bool, over_tls: bool = False) -> list[Parsed]:
        """What each of *messages* (octets, address) is, for :meth:`answer`."""
        now = int(time.time())
        acl, grants = self._servers.table.acl, self._tsig_grants.grants
        parsed = [responder.read(acl, grants, message, address, over_tcp, now) for message, address in messages]
        return [_refuse_plain(query, now) for query in parsed] if self._requires_tls and not over_tls else parsed

    def answer(self, parsed: Sequence[Parsed]) -> list[bytes | Transfer | None]:
        """The replies to what :meth:`parse` has returned, in its order; None for no reply."""
        now = int(time.time())
        names = {query.name for query in parsed if isinstance(query, Query) and not query.opcode}
        heads = self._read_heads(names) if names else {}
        notified = dict.fromkeys(query.name for query in parsed if isinstance(query, Query) and query.opcode)
        masters = self._read_masters(notified) if notified and heads is not None else None
        return [self._answer(query, heads, masters, now) for query in parsed]

    def load_transfer(self, transfer: Transfer) -> PackedZone | bytes:
        """The zone or difference to transfer, or the reply when there is none."""
        query, head = transfer.query, transfer.head
        try:
            zone: PackedZone | None = None
            if head.domain_id == CATALOG_ID:
                if query.client_serial is not None:
                    zone = self._catalog_loader.load_difference(head, query.peers, query.client_serial)
                zone = zone or self._catalog_loader.load_catalog(head, query.peers)
            else:
                if query.client_serial is not None:
                    zone = self._zone_loader.load_difference(head, query.client_serial)
                # In a pool with stages a newer one may be for servers of other stages.
                if zone is None or zone.serial != head.serial and (query.grant or query.stage != LAST_STAGE):
                    zone = self._zone_loader.load_zone(head, query.stage)
        except Exception as error:  # errors of the database are of several classes
            if isinstance(error, (ValueError, PoolError)):
                LOG.error('zone %s cannot be transferred: %s', head.name, error)
            else:
                self._outage.failed(error)
            return query.reply(wire.SERVFAIL, int(time.time()))
        return zone or query.reply(wire.NOTAUTH, int(time.time()))  # deleted since its head was read

    def transferred(self, query: Query, zone: PackedZone, seconds: float) -> None:
        """All of *zone*, the reply to *query*, has been sent."""
        is_whole = query.rtype == wire.IXFR and not isinstance(zone, PackedDifference)
        labels = query.metrics_label, 'ixfr_whole' if is_whole else _KINDS[query.rtype]
        metrics.TRANSFERS.labels(*labels, 'sent').inc()
        metrics.TRANSFER_BYTES.labels(*labels).inc(zone.size)
        metrics.TRANSFER_SECONDS.labels(*labels).observe(seconds)
        self._on_sent(query.peers, zone)

    def _read_heads(self, names: set[str]) -> Mapping[str, ZoneHead | None] | None:
        """The heads of *names*, missing or None where a zone is not served; None when the database cannot be read."""
        server_table = self._servers.table
        catalog = server_table.catalog_zone
        others = names - {catalog}
        try:
            heads: Mapping[str, ZoneHead | None] = self._zone_loader.read_heads(others) if others else {}
            if catalog in names:  # the catalog, never the zone of a domain of the same name
                heads = {**heads, catalog: self._catalog_loader.head(catalog, server_table.pool_name)}
        except Exception as error:  # errors of the database are of several classes
            self._outage.failed(error)
            return None
        self._outage.ended()
        return heads

    def _read_masters(self, names: Collection[str]) -> Mapping[str, Masters | None] | None:
        """The masters of *names*, some missing if there are too many; None when the database cannot be read."""
        try:
            return self._notifies.read_masters(names)
        except Exception as error:  # errors of the database are of several classes
            self._outage.failed(error)
            return None

    def _answer(self, query: Parsed, heads: Mapping[str, ZoneHead | None] | None,
                masters: Mapping[str, Masters | None] | None, now: int) -> bytes | Transfer | None:
        if isinstance(query, Refusal):
            self._log_refusal(query)
            metrics.REFUSED.labels(query.kind).inc()
            return query.answer
        if not isinstance(query, Query):
            return query
        if query.opcode:
            return self._answer_notify(query, masters, now)
        if query.grant is None:
            self._refusals.reset((query.address, '' if query.key is None else query.key.name.to_text()))
        if heads is None:
            return _fail(query, now)
        head = heads.get(query.name)
        if head is not None and head.stages is not None:
            head = head.at(query.stage)
        if query.grant is not None and head is not None and (
                head.domain_id == CATALOG_ID
                or head.domain_id != query.grant.domain_id and head.pool_name != query.grant.pool_name):
            name = query.grant.key.name.to_text()
            self._log_refusal(Refusal(b'', query.address, name, 'not its zone',
                                      f'{query.address} asks for {head.name}, for which the key {name} is not'))
            head = None
        try:
            answer = responder.answer(query, head, now)
        except ValueError as error:
            LOG.error('zone %s cannot be served: %s', query.name, error)
            return _fail(query, now)
        if not isinstance(answer, Transfer):
            count(query, 'no_zone' if head is None else 'sent' if query.rtype == wire.SOA
                  else 'by_tcp' if answer[2] & wire.TC >> 8 else 'current')
        return answer

    def _answer_notify(self, query: Query, masters: Mapping[str, Masters | None] | None, now: int) -> bytes | None:
        if masters is None:
            return query.reply(wire.SERVFAIL, now)
        answer = self._notifies.answer(query, masters, now)
        if not isinstance(answer, Refusal):
            return answer
        self._log_refusal(answer)
        metrics.REFUSED.labels(answer.kind).inc()
        return answer.answer

    def _log_refusal(self, refusal: Refusal) -> None:
        more = self._refusals.admit(refusal.kind, (refusal.address, refusal.key))
        if more is not None:
            LOG.warning('refused: %s%s', refusal.why, more)


def _refuse_plain(query: Parsed, now: int) -> Parsed:
    """*query*, or its refusal if it is for a transfer."""
    if not isinstance(query, Query) or query.opcode or query.rtype == wire.SOA:
        return query
    return Refusal(query.reply(wire.REFUSED, now), query.address, '' if query.key is None else query.key.name.to_text(),
                   'plain', f'{query.address} asks for a transfer of {query.name} without TLS ([service:minidns] '
                            'require_tls)')


def _fail(query: Query, now: int) -> bytes:
    count(query, 'failed')
    return query.reply(wire.SERVFAIL, now)


def count(query: Query, outcome: str) -> None:
    """Count a query that has ended.

    :param outcome: ``sent``, ``current``, ``by_tcp``, ``no_zone``, ``aborted`` by the server, or ``failed`` here
    """
    metrics.TRANSFERS.labels(query.metrics_label, _KINDS[query.rtype], outcome).inc()


class NotifyReceiver:
    """Answers NOTIFYs of masters of secondary zones (RFC 1996), and has the zones that they are about refreshed.

    :param request: called with the id of each domain that one of its masters says has changed
    :param clock: seconds, for the rate
    """

    def __init__(self, storage: Storage, pool_name: str, request: Callable[[str], object],
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._storage = storage
        self._pool_name = pool_name
        self._request = request
        self._clock = clock
        self._lock = threading.Lock()
        self._second, self._looked_up = 0, 0

    def read_masters(self, names: Collection[str]) -> Mapping[str, Masters | None]:
        """The masters of these zones, None for one that is no secondary one; without the names that are too many."""
        second = int(self._clock())
        with self._lock:
            if second != self._second:
                self._second, self._looked_up = second, 0
            admitted = list(names)[:RATE - self._looked_up]
            self._looked_up += len(admitted)
        masters = self._storage.read(secondary_zones.masters, self._pool_name, admitted) if admitted else {}
        return {name: masters.get(name) for name in admitted}

    def answer(self, query: Query, masters_by_name: Mapping[str, Masters | None], now: int) -> bytes | Refusal | None:
        """The reply; None for none.

        The sender need not sign: it is believed only that it is worth while to ask its master.

        :param masters_by_name: of :meth:`read_masters`
        """
        if query.name not in masters_by_name:
            return None
        entry = masters_by_name[query.name]
        if entry is None:
            return query.reply(wire.NOTAUTH, now)
        domain_id, masters = entry
        if query.address not in {Master.parse(master).endpoint.host for master in masters}:
            return Refusal(query.reply(wire.REFUSED, now), query.address, '', 'no master',
                           f'{query.address} notifies of {query.name} and is no master of it')
        self._request(domain_id)
        return query.reply(wire.NOERROR, now, wire.AA)
