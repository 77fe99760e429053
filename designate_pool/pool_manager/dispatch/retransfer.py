"""Retransfer: servers with other contents of a zone transfer it again, and are compared afterwards.

The invariant: a success means that the server's contents were compared with ours and are the same.  That it accepted
the command to transfer proves nothing, nor does its serial.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from designate_pool.backends.base import Backend
from designate_pool.backoff import Backoff
from designate_pool.model import CallResult, Domain, Reason
from designate_pool.pool_manager.dispatch import zone_compare
from designate_pool.pool_manager.dispatch.server_worker import SyncResult
from designate_pool.pool_manager.dispatch.zone_compare import Found, Match
from designate_pool.protocol.axfr_inbound import Pace
from designate_pool.settings import Tries
from designate_pool.storage.sql.database import Storage

#: Seconds from the command to the first comparison; doubled up to the interval between tries.
FIRST_CHECK = 0.05


def retransfer(storage: Storage, tries: Tries, backend: Backend, domains: Sequence[Domain]) -> list[SyncResult]:
    """Have the server transfer those of *domains* again whose contents are not ours.

    :param domains: at most as many as the driver takes in one call
    :returns: for each the result, and the serial that the server was last seen to serve
    """
    started = time.monotonic()
    found = {domain.id: _compare(storage, backend, domain) for domain in domains}
    differing = [domain for domain in domains if found[domain.id].match is not Match.SAME]
    results = dict(zip((domain.id for domain in differing), backend.refetch_domains(differing),
                       strict=True)) if differing else {}
    _wait_for_match(storage, tries, backend, [domain for domain in differing if results[domain.id].ok], found)
    seconds = time.monotonic() - started
    return [_result_of(found[domain.id], results.get(domain.id), seconds) for domain in domains]


def _wait_for_match(storage: Storage, tries: Tries, backend: Backend, domains: Sequence[Domain],
                    found: dict[str, Found]) -> None:
    """Compare until all contents are ours or the time of a round is over."""
    pending, longest = list(domains), max(FIRST_CHECK, tries.retry_interval)
    end = time.monotonic() + max(1, tries.max_retries) * longest
    pauses = Backoff(FIRST_CHECK, cap=longest).delays()
    while pending:
        time.sleep(next(pauses))
        found.update({domain.id: _compare(storage, backend, domain) for domain in pending})
        pending = [domain for domain in pending if found[domain.id].match is not Match.SAME]
        if time.monotonic() > end:
            return


def _compare(storage: Storage, backend: Backend, domain: Domain) -> Found:
    try:
        ours = zone_compare.ours(storage, domain.id)
    except ValueError as error:
        return Found(Match.UNKNOWN, None, f'our own contents cannot be made: {error}')
    if ours is None:
        return Found(Match.UNKNOWN, None, f'{domain.name} is not there any more')
    return zone_compare.compare(backend.server, ours, Pace(0))


def _result_of(found: Found, result: CallResult | None, seconds: float) -> SyncResult:
    if found.match is Match.SAME:
        return CallResult(seconds), found.serial
    if result is not None and not result.ok:
        why = f'{found.why}; it cannot be made to transfer the zone anew: {result.error}'
        reason = Reason.NO_RETRANSFER if result.reason is Reason.NO_RETRANSFER else Reason.DIVERGED
        return CallResult(seconds, why, result.retryable, result.unreachable, reason), found.serial
    why = f'{found.why}, after it was told to transfer the zone anew'
    # The tries of a round are used up: the next one is later.
    return CallResult(seconds, why, retryable=False, reason=Reason.DIVERGED), found.serial
