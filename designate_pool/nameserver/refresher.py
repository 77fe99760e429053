"""Refreshes zones from their primaries: at once after a NOTIFY, otherwise by the SOA's timers."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time

import dns.exception
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.zone

from designate_pool import serial
from designate_pool.backoff import Backoff
from designate_pool.errors import BackendError
from designate_pool.model import Endpoint, TsigKey
from designate_pool.nameserver.faults import Faults
from designate_pool.nameserver.zones import HeldZone, ZoneContents, ZoneTable
from designate_pool.protocol import soa_exchange, tsig
from designate_pool.protocol.axfr_inbound import AxfrInbound, Patience, axfr_query, receive
from designate_pool.protocol.tcp_client import TcpPeer

LOG = logging.getLogger(__name__)
#: Seconds for the serial, and for each message of a transfer.
TIMEOUT = 5.0
FIRST_RETRY_WAIT = 0.5
#: Zones that are refreshed at the same time.
_THREADS = 8
#: Seconds that transfers in progress get at a stop.
GRACE = 1.0


class TransferFailed(Exception):
    """A zone could not be transferred, and why."""


def query_serial(name: dns.name.Name, primary: Endpoint, key: TsigKey | None) -> int:
    """The serial that *primary* serves.

    :raises TransferFailed: when it does not answer with one
    """
    try:
        reply = soa_exchange.ask_one(primary.host, primary.port, None if key is None else tsig.key_from(key),
                                     name.to_text(), TIMEOUT)
    except OSError as error:
        raise TransferFailed(f'{primary} gives no serial: {error}') from error
    if reply.serial is None:
        raise TransferFailed(f'{primary} gives no serial: {reply.error}')
    return reply.serial


def fetch(name: dns.name.Name, primary: Endpoint, key: TsigKey | None, broken: bool = False) -> ZoneContents:
    """The whole zone by AXFR.

    :param broken: break off after the first message
    :raises TransferFailed: when it is incomplete or not signed
    """
    zone = dns.zone.Zone(name, relativize=False)

    def add(owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int, names: dict[int, bytes]) -> None:
        rdata = dns.rdata.from_wire(dns.rdataclass.IN, dns.rdatatype.RdataType.make(rtype), message, start, end - start)
        zone.find_rdataset(dns.name.from_wire(owner, 0)[0], rdata.rdtype, rdata.covers(), create=True).add(rdata, ttl)

    incoming = AxfrInbound(axfr_query(name.to_text()), add)
    peer = TcpPeer(primary.host, primary.port, None if key is None else tsig.key_from(key))
    try:
        refusal = receive(peer, incoming, Patience(TIMEOUT), lambda octets: broken)
    except (BackendError, dns.exception.DNSException, OSError, ValueError, KeyError) as error:
        raise TransferFailed(f'the transfer from {primary} failed: {error or type(error).__name__}') from error
    if broken:
        raise TransferFailed(f'the transfer from {primary} broke off because of the fault broken')
    if refusal is not None:
        raise TransferFailed(f'{primary} refuses the transfer ({dns.rcode.to_text(refusal)})')
    return ZoneContents(zone)


class Refresher:
    """Refreshes zones on a few threads, each zone on one thread at a time.

    :param retry: most seconds between tries after a failure
    """

    def __init__(self, zones: ZoneTable, faults: Faults, retry: float = 30.0) -> None:
        self._zones = zones
        self._faults = faults
        self._retry = retry
        self._backoff = Backoff(FIRST_RETRY_WAIT, cap=retry)
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        #: Zones by when they are due; one whose time has been changed since is there once more.
        self._due: list[tuple[float, int, HeldZone]] = []
        self._order = itertools.count()

    def start(self) -> None:
        """Start the threads, with no zone due."""
        due: list[tuple[float, int, HeldZone]] = []
        self._due = due
        self._threads = [threading.Thread(target=self._run, args=(due,), name=f'refresh-{number}', daemon=True)
                         for number in range(_THREADS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Begin no other zone; a transfer that takes longer than :data:`GRACE` is abandoned."""
        with self._changed:
            self._due = []
            self._changed.notify_all()
        end = time.monotonic() + GRACE
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def refresh(self, zone: HeldZone, notified_serial: int | None = None) -> None:
        """Have *zone* refreshed soon, perhaps after a NOTIFY with a serial."""
        with self._changed:
            zone.notified_serial = notified_serial
            self._schedule(zone, time.monotonic())

    def _schedule(self, zone: HeldZone, at: float) -> None:
        zone.due_at = at
        heapq.heappush(self._due, (at, next(self._order), zone))
        self._changed.notify()

    def _run(self, due: list[tuple[float, int, HeldZone]]) -> None:
        """Refresh zones that are due, until another list of them is in use."""
        while (zone := self._next(due)) is not None:
            wait = self._try(zone)
            with self._changed:
                zone.is_refreshing = False
                if due is self._due:
                    self._schedule(zone, time.monotonic() + wait if zone.due_at is None else zone.due_at)

    def _next(self, due: list[tuple[float, int, HeldZone]]) -> HeldZone | None:
        """Wait for a zone that is due; None at the end."""
        with self._changed:
            while due is self._due:
                now = time.monotonic()
                if not due or due[0][0] > now:
                    self._changed.wait(due[0][0] - now if due else None)
                    continue
                at, _, zone = heapq.heappop(due)
                if zone.due_at == at and not zone.is_refreshing and self._zones.get(zone.name) is zone:
                    zone.due_at, zone.is_refreshing = None, True
                    return zone
        return None

    def _try(self, zone: HeldZone) -> float:
        """Refresh *zone*; the seconds until it is due again."""
        try:
            if self._faults.take('stale', zone.text) is None:
                self._update(zone)
            zone.error, zone.failures = None, 0
            return float(zone.contents.soa[0].refresh) if zone.contents is not None else self._retry
        except TransferFailed as error:
            zone.error = str(error)
            LOG.info('zone %s: %s', zone.text, error)
        except Exception as error:  # whatever a primary may send, the thread must go on
            zone.error = f'{type(error).__name__}: {error}'
            LOG.exception('zone %s could not be fetched', zone.text)
        zone.failures += 1
        return self._backoff.delay(zone.failures - 1)

    def _update(self, zone: HeldZone) -> None:
        failure = TransferFailed('there are no primaries')
        for primary in zone.primaries:
            try:
                serial_here = None if zone.contents is None or zone.is_forced else zone.contents.serial
                if (serial_here is not None and not self._is_newer(zone.notified_serial, serial_here)
                        and not self._is_newer(query_serial(zone.name, primary, zone.key), serial_here)):
                    zone.fresh_at = time.monotonic()
                    return
                broken = self._faults.take('broken', zone.text) is not None
                contents = fetch(zone.name, primary, zone.key, broken)
                if serial_here is None or self._is_newer(contents.serial, serial_here):
                    self._zones.replace(zone, contents)
                    zone.is_forced = False
                return
            except TransferFailed as error:
                failure = error
        raise failure

    @staticmethod
    def _is_newer(serial_there: int | None, serial_here: int) -> bool:
        return serial_there is not None and serial.newer(serial_there, serial_here)
