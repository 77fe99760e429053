"""What the servers of a pool agree on: the one definition of "serves", of k and of reached.

The invariant: a domain is said to be served at a serial only when k of the pool's n servers serve it or a newer one,
and none of these is newer than the domain's own; k = ceil(n * threshold_percentage / 100).  It is said to have failed
exactly when that has become impossible, more than n - k servers having failed at the domain's current serial; and what
is said never goes back.

A server serves a serial when it was seen to serve it or a newer one, with contents that are not known to be others, and
has not failed for that serial since.

Serials are compared by RFC 1982 around the domain's own serial.  A serial exactly 2**31 away from it has no order and
counts as never seen.  So does one that is newer than the domain's own: the pool never issued it, so its contents are
not the pool's.  Whoever weighs has read the domain after the rows.

Only rows of servers that count now do: not those of servers that rest (in maintenance, or not yet filled), but a
deletion is complete only when these have confirmed it as well.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from designate_pool.model import Action, Domain, Outcome, PoolServer, Report, ServerState, ServerStatus, Status, Verdict
from designate_pool.serial import at_least, newer, newest_first

#: The rows of one domain on one server.
Rows = Mapping[Action, ServerStatus]


def needed(total: int, threshold_percentage: int) -> int:
    """k: how many of *total* servers must agree; whole numbers throughout, and 1 of none, as none agrees on nothing."""
    return max(1, -(-total * threshold_percentage // 100))


def counts(server: PoolServer, count_joining: bool) -> bool:
    """Whether *server* is one of the n.

    :param count_joining: whether servers count before they are filled
    """
    return server.state is ServerState.ACTIVE or count_joining and server.state is ServerState.JOINING


def by_server(rows: Iterable[ServerStatus]) -> dict[str, dict[Action, ServerStatus]]:
    """The rows of one domain, by the server's id."""
    found: dict[str, dict[Action, ServerStatus]] = {}
    for row in rows:
        found.setdefault(row.server_id, {})[row.action] = row
    return found


def served(domain: Domain, rows: Rows) -> int | None:
    """The serial that a server counts with: None for none, or for other contents.

    It is one that the pool has issued, as the domain says or, if that was read before the row, the row itself.
    """
    row = rows.get(Action.UPDATE)
    if row is None or row.serial_number is None or row.diverged or not (
            at_least(domain.serial, row.serial_number) or at_least(row.expected_serial, row.serial_number)):
        return None
    return row.serial_number


def has_failed(rows: Rows, serial: int) -> bool:
    """Whether the server's tries for *serial* have come to an end."""
    return any((row := rows.get(action)) is not None and row.status is Outcome.ERROR and row.expected_serial == serial
               for action in (Action.CREATE, Action.UPDATE))


def serves(domain: Domain, rows: Rows, serial: int) -> bool:
    """Whether a server serves *domain* at *serial* or a newer one."""
    seen = served(domain, rows)
    return seen is not None and at_least(seen, serial) and not has_failed(rows, serial)


def has_deleted(domain: Domain, rows: Rows) -> bool:
    """Whether a server has confirmed that it does not have *domain*, which is being deleted, any more.

    Once deletion was reported every server that holds the zone has a row, until the last of them has confirmed.
    """
    row = rows.get(Action.DELETE)
    return not rows and domain.status is Status.DELETED if row is None else row.status is Outcome.SUCCESS


def is_current(domain: Domain, rows: Rows) -> bool:
    """Whether a server has what is due: the domain's serial, or no zone where the domain is being deleted."""
    return has_deleted(domain, rows) if domain.is_going else serves(domain, rows, domain.serial)


def is_reached(domain: Domain, serial: int) -> bool:
    """Whether the pool was ever said to serve *serial* or a newer one."""
    return domain.reported_serial is not None and at_least(domain.reported_serial, serial)


def weigh(domain: Domain, rows: Iterable[ServerStatus], servers: Sequence[str], threshold_percentage: int,
          resting: Sequence[str] = ()) -> Verdict:
    """The verdict on one domain.

    :param rows: the domain's rows of pool_manager_status, in any order
    :param servers: ids of the servers that count now
    :param resting: ids of those that are in the pool and do not count
    """
    found = by_server(rows)
    mine: dict[str, Rows] = {server: found.get(server, {}) for server in servers}
    k = needed(len(servers), threshold_percentage)
    agreed = tuple(server for server in servers if is_current(domain, mine[server]))
    behind = tuple(server for server in servers if server not in agreed)
    status, serial = None, None
    if domain.is_going:
        failed = tuple(server for server in behind if (row := mine[server].get(Action.DELETE)) is not None
                       and row.status is Outcome.ERROR)
        # A server that does not count and has no row of the domain never had it.
        behind += tuple(server for server in resting
                        if server in found and not has_deleted(domain, found[server]))
        if domain.status is not Status.DELETED:
            status = (Outcome.SUCCESS if len(agreed) >= k else
                      Outcome.ERROR if _is_lost(failed, servers, k) else None)
            serial = domain.serial if status else None
        return Verdict(status, serial, None, k, len(servers), agreed, behind, failed, tuple(resting))
    failed = tuple(server for server in behind if has_failed(mine[server], domain.serial))
    # A server that was seen to serve the serial and then failed a poll is behind; what was told stays told.
    consensus = _kth_newest([seen for server in servers if (seen := served(domain, mine[server])) is not None
                             and at_least(domain.serial, seen)], k, domain.serial)
    if consensus is not None and (domain.reported_serial is None or newer(consensus, domain.reported_serial)):
        status, serial = Outcome.SUCCESS, consensus
    elif _is_lost(failed, servers, k) and not is_reached(domain, domain.serial):
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


def _is_lost(failed: Sequence[str], servers: Sequence[str], k: int) -> bool:
    """Whether so many have failed that k cannot agree; of no servers none has failed."""
    return bool(servers) and len(failed) > len(servers) - k


def _kth_newest(serials: Sequence[int], k: int, current: int) -> int | None:
    if len(serials) < k:
        return None
    return newest_first(serials, current)[k - 1]
