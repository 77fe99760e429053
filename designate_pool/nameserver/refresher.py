"""Refreshes zones from their primaries: at once after a NOTIFY, otherwise by the SOA's timers."""

from __future__ import annotations

import logging
import queue
import threading
import time

from designate_pool import serial
from designate_pool.backoff import Backoff
from designate_pool.nameserver import transfer
from designate_pool.nameserver.faults import Faults
from designate_pool.nameserver.schedule import TaskSchedule
from designate_pool.nameserver.zones import HeldZone, ZoneTable

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
        except transfer.TransferFailed as error:
            zone.error = str(error)
            LOG.info('zone %s: %s', zone.text, error)
        except Exception as error:  # whatever a primary may send, the thread must go on
            zone.error = f'{type(error).__name__}: {error}'
            LOG.exception('zone %s could not be fetched', zone.text)
        zone.failures += 1
        return self._backoff.delay(zone.failures - 1)

    def _update(self, zone: HeldZone) -> None:
        failure = transfer.TransferFailed('there are no primaries')
        for primary in zone.primaries:
            try:
                serial_here = None if zone.contents is None or zone.is_forced else zone.contents.serial
                if (serial_here is not None and not self._is_newer(zone.notified_serial, serial_here)
                        and not self._is_newer(transfer.query_serial(zone.name, primary, zone.key), serial_here)):
                    zone.fresh_at = time.monotonic()
                    return
                broken = self._faults.take('broken', zone.text) is not None
                contents = transfer.fetch(zone.name, primary, zone.key, broken)
                if serial_here is None or self._is_newer(contents.serial, serial_here):
                    self._zones.replace(zone, contents)
                    zone.is_forced = False
                return
            except transfer.TransferFailed as error:
                failure = error
        raise failure

    @staticmethod
    def _is_newer(serial_there: int | None, serial_here: int) -> bool:
        return serial_there is not None and serial.newer(serial_there, serial_here)
