"""Refreshes zones from their primaries: at once after a NOTIFY, otherwise by the SOA's timers."""

from __future__ import annotations

import logging
import queue
import socket
import threading
import time
from typing import Any, BinaryIO

import dns.exception
import dns.message
import dns.name
import dns.rdatatype
import dns.xfr
import dns.zone

from designate_pool import serial
from designate_pool.backoff import Backoff
from designate_pool.model import Endpoint, TsigKey
from designate_pool.nameserver.faults import Faults
from designate_pool.nameserver.sockets import TaskSchedule
from designate_pool.nameserver.zones import HeldZone, ZoneContents, ZoneTable
from designate_pool.protocol import soa_exchange, tsig

#: Seconds for the serial, and for each read of a transfer.
TIMEOUT = 5.0


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

    :param broken: break off in the middle
    :raises TransferFailed: when it is incomplete or not signed
    """
    query = dns.message.make_query(name, 'AXFR', flags=0)
    if key is not None:
        query.use_tsig(tsig.key_from(key))
    zone = dns.zone.Zone(name, relativize=False)
    context: Any = None
    is_done = is_signed = False
    try:
        with (socket.create_connection((primary.host, primary.port), TIMEOUT) as connection,
              connection.makefile('rb') as stream, dns.xfr.Inbound(zone, dns.rdatatype.AXFR) as inbound):
            connection.sendall(query.to_wire(prepend_length=True))
            while not is_done:
                length = int.from_bytes(_read(stream, 2), 'big')
                if broken:
                    _read(stream, length // 2)
                    raise TransferFailed(f'the transfer from {primary} broke off because of the fault broken')
                answer = dns.message.from_wire(_read(stream, length), keyring=query.keyring, request_mac=query.mac,
                                               xfr=True, tsig_ctx=context, multi=True)
                if answer.id != query.id:
                    raise TransferFailed(f'{primary} sent the reply to another query')
                context, is_signed = answer.tsig_ctx, answer.had_tsig
                is_done = inbound.process_message(answer)
            if key is not None and not is_signed:
                raise TransferFailed(f'{primary} did not sign the end of the transfer')
    except (dns.exception.DNSException, OSError, ValueError, KeyError) as error:
        raise TransferFailed(f'the transfer from {primary} failed: {error or type(error).__name__}') from error
    return ZoneContents(zone)


def _read(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise ConnectionError('the connection was closed before the end')
    return data


LOG = logging.getLogger(__name__)
FIRST_RETRY_WAIT = 0.5
#: Seconds that transfers in progress get at a stop.
GRACE = 1.0


class Refresher:
    """Refreshes zones on a few threads, each zone on one thread at a time.

    :param retry: most seconds between tries after a failure
    """

    def __init__(self, zones: ZoneTable, faults: Faults, schedule: TaskSchedule, threads: int = 8,
                 retry: float = 30.0) -> None:
        self._zones = zones
        self._faults = faults
        self._schedule = schedule
        self._retry = retry
        self._backoff = Backoff(FIRST_RETRY_WAIT, cap=retry)
        self._thread_count = threads
        self._threads: list[threading.Thread] = []
        self._queue: queue.SimpleQueue[HeldZone | None] = queue.SimpleQueue()
        self._lock = threading.Lock()

    def start(self) -> None:
        self._queue = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, args=(self._queue,), name=f'refresh-{number}', daemon=True)
                         for number in range(self._thread_count)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Begin no other zone; a transfer that takes longer than :data:`GRACE` is abandoned."""
        queued, self._queue = self._queue, queue.SimpleQueue()
        for _ in self._threads:
            queued.put(None)
        end = time.monotonic() + GRACE
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def refresh(self, zone: HeldZone, notified_serial: int | None = None) -> None:
        """Have *zone* refreshed soon.

        :param notified_serial: the serial in a NOTIFY
        """
        with self._lock:
            zone.notified_serial = notified_serial
            if zone.is_refreshing:
                zone.refresh_again = True
                return
            zone.is_refreshing = True
        self._queue.put(zone)

    def _run(self, zones: queue.SimpleQueue[HeldZone | None]) -> None:
        while True:
            zone = zones.get()
            if zone is None or zones is not self._queue:
                return
            wait = self._try(zone)
            with self._lock:
                zone.is_refreshing, refresh_again, zone.refresh_again = False, zone.refresh_again, False
            if refresh_again:
                self.refresh(zone, zone.notified_serial)
            elif self._zones.get(zone.name) is zone:
                self._set_timer(zone, wait)

    def _set_timer(self, zone: HeldZone, wait: float) -> None:
        """Have *zone* refreshed in *wait* seconds; it has one timer at most, however often this is called."""
        with self._lock:
            zone.due_at = time.monotonic() + wait
            if zone.timer_at is not None and zone.timer_at <= zone.due_at:
                return
            at = zone.timer_at = zone.due_at
        self._schedule.after(wait, lambda: self._on_timer(zone, at))

    def _on_timer(self, zone: HeldZone, at: float) -> None:
        with self._lock:
            if zone.timer_at != at:
                return
            zone.timer_at = None
        if self._zones.get(zone.name) is not zone:
            return
        wait = zone.due_at - time.monotonic()
        if wait > 0:
            self._set_timer(zone, wait)
        else:
            self.refresh(zone)

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
