"""Keeping zones as new as their primaries': at once after a NOTIFY, and by the SOA's timers."""

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
FIRST_RETRY = 0.5
#: Seconds that transfers under way have to end at a stop.
GRACE = 1.0


class Refresher:
    """Fetches zones on a few threads, a zone on one at a time.

    :param retry: seconds between tries after a failure, at most
    """

    def __init__(self, zones: ZoneTable, faults: Faults, schedule: TaskSchedule, threads: int = 8,
                 retry: float = 30.0) -> None:
        self._zones = zones
        self._faults = faults
        self._schedule = schedule
        self._retry = retry
        self._backoff = Backoff(FIRST_RETRY, cap=retry)
        self._count = threads
        self._threads: list[threading.Thread] = []
        self._queue: queue.SimpleQueue[HeldZone | None] = queue.SimpleQueue()
        self._lock = threading.Lock()

    def start(self) -> None:
        self._queue = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, args=(self._queue,), name=f'refresh-{number}', daemon=True)
                         for number in range(self._count)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Take up no other zone; what a primary keeps waiting comes to nothing by itself."""
        left, self._queue = self._queue, queue.SimpleQueue()
        for _ in self._threads:
            left.put(None)
        end = time.monotonic() + GRACE
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def refresh(self, zone: HeldZone, hint: int | None = None) -> None:
        """See to it soon that *zone* is as new as its primaries'.

        :param hint: the serial that a NOTIFY named
        """
        with self._lock:
            zone.hint = hint
            if zone.working:
                zone.again = True
                return
            zone.working = True
        self._queue.put(zone)

    def _run(self, zones: queue.SimpleQueue[HeldZone | None]) -> None:
        while True:
            zone = zones.get()
            if zone is None or zones is not self._queue:
                return
            wait = self._attempt(zone)
            with self._lock:
                zone.working, again, zone.again = False, zone.again, False
            if again:
                self.refresh(zone, zone.hint)
            elif self._zones.get(zone.name) is zone:
                self._later(zone, wait)

    def _later(self, zone: HeldZone, wait: float) -> None:
        """Have *zone* refreshed in so many seconds; it has one place in the schedule, however often this is called."""
        with self._lock:
            zone.due_at = time.monotonic() + wait
            if zone.entry_at is not None and zone.entry_at <= zone.due_at:
                return
            at = zone.entry_at = zone.due_at
        self._schedule.after(wait, lambda: self._look(zone, at))

    def _look(self, zone: HeldZone, at: float) -> None:
        with self._lock:
            if zone.entry_at != at:
                return
            zone.entry_at = None
        if self._zones.get(zone.name) is not zone:
            return
        left = zone.due_at - time.monotonic()
        if left > 0:
            self._later(zone, left)
        else:
            self.refresh(zone)

    def _attempt(self, zone: HeldZone) -> float:
        """Bring *zone* up to date; the seconds until it is due again."""
        try:
            if self._faults.take('stale', zone.text) is None:
                self._bring_up_to_date(zone)
            zone.error, zone.failures = None, 0
            return float(zone.contents.soa[0].refresh) if zone.contents is not None else self._retry
        except transfer.TransferFailed as error:
            zone.error = str(error)
            LOG.info('Zone %s: %s', zone.text, error)
        except Exception as error:  # whatever a primary may send, the thread has other zones to fetch
            zone.error = f'{type(error).__name__}: {error}'
            LOG.exception('Zone %s could not be fetched', zone.text)
        zone.failures += 1
        return self._backoff.delay(zone.failures - 1)

    def _bring_up_to_date(self, zone: HeldZone) -> None:
        failure = transfer.TransferFailed('there are no primaries')
        for primary in zone.primaries:
            try:
                have = None if zone.contents is None or zone.forced else zone.contents.serial
                if have is not None and not self._newer(zone.hint, have):
                    if not self._newer(transfer.ask_serial(zone.name, primary, zone.key), have):
                        zone.fresh_at = time.monotonic()
                        return
                broken = self._faults.take('broken', zone.text) is not None
                contents = transfer.fetch(zone.name, primary, zone.key, broken)
                if have is None or self._newer(contents.serial, have):
                    self._zones.replace(zone, contents)
                    zone.forced = False
                return
            except transfer.TransferFailed as error:
                failure = error
        raise failure

    @staticmethod
    def _newer(found: int | None, have: int) -> bool:
        return found is not None and serial.newer(found, have)
