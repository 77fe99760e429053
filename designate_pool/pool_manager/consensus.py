"""What the servers of a pool agree on.

The invariant: a domain is said to be served at a serial only when k of the pool's n servers serve it or a newer one,
and none of these is newer than the domain's own; k = ceil(n * threshold_percentage / 100).  It is said to have failed
exactly when that has become impossible, more than n - k servers having failed at the domain's current serial; and what
is said never goes back.

Serials are compared by RFC 1982 around the domain's own serial.  A serial exactly 2**31 away from it has no order and
counts as never seen.  So does one that is newer than the domain's own: the pool never issued it, so its contents are
not the pool's.  Whoever weighs has read the domain after the rows.

Only rows of servers that count now do: not those of servers that rest (in maintenance, or not yet filled), but a
deletion is complete only when these have confirmed it as well.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from designate_pool.model import Action, Domain, Outcome, Report, ServerStatus, Status, Verdict
from designate_pool.serial import at_least, newer, newest_first


def needed(total: int, threshold_percentage: int) -> int:
    """k: how many of *total* servers must agree; whole numbers throughout."""
    return -(-total * threshold_percentage // 100)


def weigh(domain: Domain, rows: Iterable[ServerStatus], servers: Sequence[str], threshold_percentage: int,
          resting: Sequence[str] = ()) -> Verdict:
    """The verdict on one domain.

    :param rows: the domain's rows of pool_manager_status, in any order
    :param servers: ids of the servers that count now
    :param resting: ids of those that are in the pool and do not count
    """
    mine = {(row.server_id, row.action): row for row in rows}
    k = max(1, needed(len(servers), threshold_percentage))  # of no servers none agrees on anything
    if domain.is_going:
        return _weigh_deletion(domain, mine, servers, k, resting)
    seen = {server: _seen(mine.get((server, Action.UPDATE)), domain.serial) for server in servers}
    consensus = _kth_newest([serial for serial in seen.values() if serial is not None], k, domain.serial)
    # A server that was seen to serve the serial and then failed a poll shows as behind; what was told stays told.
    agreed = tuple(server for server, serial in seen.items()
                   if serial == domain.serial and not _has_failed(mine, server, domain.serial))
    behind = tuple(server for server in servers if server not in agreed)
    failed = tuple(server for server in behind if _has_failed(mine, server, domain.serial))
    status, serial = None, None
    if consensus is not None and (domain.reported_serial is None or newer(consensus, domain.reported_serial)):
        status, serial = Outcome.SUCCESS, consensus
    elif _is_lost(failed, servers, k) and not _is_reported(domain):
        status, serial = Outcome.ERROR, domain.serial
    return Verdict(status, serial, consensus, k, len(servers), agreed, behind, failed, tuple(resting))


def reports(domain: Domain, rows: Iterable[ServerStatus], servers: Sequence[str], threshold_percentage: int,
            resting: Sequence[str] = ()) -> tuple[Report, ...]:
    """What Central has yet to be told about one domain, in order.

    Two reports when the servers have got further than Central knows and can get no further.
    """
    rows = tuple(rows)
    found: list[Report] = []
    verdict = weigh(domain, rows, servers, threshold_percentage, resting)
    while verdict.status is Outcome.SUCCESS and verdict.serial is not None:
        found.append(Report(domain.id, domain.action, domain.generation, Outcome.SUCCESS, verdict.serial))
        if domain.is_going:
            return tuple(found)
        domain = dataclasses.replace(domain, reported_serial=verdict.serial)
        verdict = weigh(domain, rows, servers, threshold_percentage, resting)
    if verdict.status is Outcome.ERROR and verdict.serial is not None and domain.status is Status.PENDING:
        found.append(Report(domain.id, domain.action, domain.generation, Outcome.ERROR, verdict.serial))
    return tuple(found)


def _weigh_deletion(domain: Domain, mine: dict[tuple[str, Action], ServerStatus], servers: Sequence[str], k: int,
                    resting: Sequence[str]) -> Verdict:
    # Once deletion was reported every server that holds the zone has a row, until the last of them has confirmed.
    unseen = Outcome.SUCCESS if domain.status is Status.DELETED else None
    touched = {server for server, _ in mine}
    outcomes = {server: row.status if (row := mine.get((server, Action.DELETE)))
                else None if server in touched else unseen for server in servers}
    agreed = tuple(server for server, outcome in outcomes.items() if outcome is Outcome.SUCCESS)
    failed = tuple(server for server, outcome in outcomes.items() if outcome is Outcome.ERROR)
    # A server that does not count and has no row of the domain never had it.
    late = [server for server in resting if server in touched
            and ((row := mine.get((server, Action.DELETE))) is None or row.status is not Outcome.SUCCESS)]
    behind = (*(server for server in servers if server not in agreed), *late)
    status = None
    if domain.status is not Status.DELETED:
        if len(agreed) >= k:
            status = Outcome.SUCCESS
        elif _is_lost(failed, servers, k):
            status = Outcome.ERROR
    return Verdict(status, domain.serial if status else None, None, k, len(servers), agreed, behind, failed,
                   tuple(resting))


def _is_lost(failed: Sequence[str], servers: Sequence[str], k: int) -> bool:
    """Whether so many have failed that k cannot agree; of no servers none has failed."""
    return bool(servers) and len(failed) > len(servers) - k


def _seen(row: ServerStatus | None, current: int) -> int | None:
    """The serial a server counts with: None for none, or for other contents; at most *current*."""
    if row is None or row.serial_number is None or row.diverged or not at_least(current, row.serial_number):
        return None
    return row.serial_number


def _kth_newest(serials: Sequence[int], k: int, current: int) -> int | None:
    if len(serials) < k:
        return None
    return newest_first(serials, current)[k - 1]


def _has_failed(mine: dict[tuple[str, Action], ServerStatus], server: str, current: int) -> bool:
    """Whether the server's tries for the *current* serial have come to an end."""
    return any((row := mine.get((server, action))) is not None and row.status is Outcome.ERROR
               and at_least(row.expected_serial, current) for action in (Action.CREATE, Action.UPDATE))


def _is_reported(domain: Domain) -> bool:
    return domain.reported_serial is not None and at_least(domain.reported_serial, domain.serial)
