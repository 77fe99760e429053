"""What the servers of a pool agree on: the one definition of *serves*, of *k* and of *reached*.

The invariant: a domain is reported as served at a serial only if at least k of the pool's n servers serve this serial
or a newer one, where k = ceil(n * threshold_percentage / 100).  It is reported as failed only if more than n - k
servers have failed at the domain's current contents, so that k can no longer be reached.  The reported serial never
goes back.

Serials that only renew the signatures of a zone have its current contents: a server that lacks them is up to date.

A server serves a serial if it was seen to serve this serial or a newer one, its contents are not known to be wrong, and
it has not failed for this serial since.

Serials are compared by RFC 1982 relative to the domain's own serial.  Three kinds of serials are treated as never seen:
one exactly 2**31 away from it, which has no order; one newer than it, which the pool has never issued, so that its
contents cannot be the pool's; and one older than the domain's first serial, which belongs to a former domain of the
name, whose zone the server still has.  Callers of :func:`weigh` therefore read the domain after its rows.

Only servers that count now are taken into account; servers in maintenance and servers that are still joining *rest*.  A
deletion, however, is complete only when the resting servers have confirmed it as well.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from designate_pool.model import Action, Domain, Outcome, PoolServer, Report, ServerState, ServerStatus, Status, Verdict
from designate_pool.serial import SPACE, at_least, newer, within

#: Called and polled.
_IN_SERVICE = (ServerState.JOINING, ServerState.ACTIVE)
#: With rows for every change.
_TRACKED = (*_IN_SERVICE, ServerState.MAINTENANCE)
#: The rows of one domain on one server.
Rows = Mapping[Action, ServerStatus]


def needed(total: int, threshold_percentage: int) -> int:
    """k: how many of *total* servers must agree, rounded up; at least 1, so that an empty pool never agrees."""
    return max(1, -(-total * threshold_percentage // 100))


def counts(server: PoolServer, count_joining: bool) -> bool:
    """Whether *server* is one of the n servers that count; with *count_joining* also those that are joining."""
    return server.state is ServerState.ACTIVE or count_joining and server.state is ServerState.JOINING


@dataclasses.dataclass(frozen=True, slots=True)
class Members:
    """The servers of a pool by their present role; ids in the order of the configuration.

    The invariant: a server that counts has rows for every change; a server that has rows but is not in service now gets
    the changes later.

    :ivar servers: all servers in the database, including removed ones
    :ivar counting: those that count for thresholds
    :ivar tracked: those that have rows for every change
    :ivar uncounted: those of them that do not count
    :ivar in_service: those that are called and polled
    """

    servers: tuple[PoolServer, ...]
    counting: tuple[str, ...]
    tracked: tuple[str, ...]
    uncounted: tuple[str, ...]
    in_service: frozenset[str]

    @classmethod
    def of(cls, servers: Iterable[PoolServer], count_joining: bool = False) -> Members:
        """The members of a pool, from its rows of pool_servers; *count_joining* as for :func:`counts`."""
        servers = tuple(servers)
        counting = tuple(server.id for server in servers if counts(server, count_joining))
        tracked = tuple(server.id for server in servers if server.state in _TRACKED)
        return cls(servers, counting, tracked, tuple(key for key in tracked if key not in counting),
                   frozenset(server.id for server in servers if server.state in _IN_SERVICE))


def by_server(rows: Iterable[ServerStatus]) -> dict[str, dict[Action, ServerStatus]]:
    """The rows of one domain, by the server's id."""
    rows_by_server: dict[str, dict[Action, ServerStatus]] = {}
    for row in rows:
        rows_by_server.setdefault(row.server_id, {})[row.action] = row
    return rows_by_server


def is_issued(domain: Domain, serial: int) -> bool:
    """Whether *serial* is one that *domain* has or had: not a newer one, nor one of a former domain of the name."""
    return at_least(domain.serial, serial) and (
        domain.first_serial is None or within(domain.first_serial, serial, domain.serial))


def served(domain: Domain, rows: Rows) -> int | None:
    """The serial that a server serves; None if it serves none, wrong contents, or a serial that was never issued.

    The domain may have been read before the row; then the row's expected serial shows that the serial was issued.
    """
    row = rows.get(Action.UPDATE)
    if row is None or row.serial_number is None or row.diverged or not (
            is_issued(domain, row.serial_number) or newer(row.serial_number, domain.serial)
            and at_least(row.expected_serial, row.serial_number)):
        return None
    return row.serial_number


def has_failed(rows: Rows, serial: int, newest: int | None = None) -> bool:
    """Whether all of the server's tries for *serial* have failed, or for one from there to the *newest*."""
    return any((row := rows.get(action)) is not None and row.status is Outcome.ERROR
               and within(serial, row.expected_serial, serial if newest is None else newest)
               for action in (Action.CREATE, Action.UPDATE))


def serves(domain: Domain, rows: Rows, serial: int) -> bool:
    """Whether a server serves *domain* at *serial* or a newer one."""
    seen = served(domain, rows)
    return seen is not None and at_least(seen, serial) and not has_failed(rows, serial)


def has_deleted(domain: Domain, rows: Rows) -> bool:
    """Whether a server has confirmed that it no longer has *domain*, which is being deleted.

    A server without rows has confirmed it if the deletion has been reported: until then, every server that has the zone
    has a row.
    """
    row = rows.get(Action.DELETE)
    return not rows and domain.status is Status.DELETED if row is None else row.status is Outcome.SUCCESS


def is_current(domain: Domain, rows: Rows) -> bool:
    """Whether a server is up to date: it serves the domain's contents or, for a deleted domain, has no zone."""
    return has_deleted(domain, rows) if domain.is_going else serves(domain, rows, domain.least_serial)


def is_reached(domain: Domain, serial: int) -> bool:
    """Whether *serial* or a newer one was ever reported as served by the pool."""
    return domain.reported_serial is not None and at_least(domain.reported_serial, serial)


def weigh(domain: Domain, rows: Iterable[ServerStatus], servers: Sequence[str], threshold_percentage: int,
          resting: Sequence[str] = ()) -> Verdict:
    """Compute the verdict on one domain.

    :param rows: the domain's rows of pool_manager_status, in any order
    :param servers: ids of the servers that count now
    :param resting: ids of the servers that are in the pool but do not count now
    """
    rows_by_server = by_server(rows)
    mine: dict[str, Rows] = {server: rows_by_server.get(server, {}) for server in servers}
    k = needed(len(servers), threshold_percentage)
    spare = max(0, len(servers) - k)  # if more fail, k can no longer agree
    agreed = tuple(server for server in servers if is_current(domain, mine[server]))
    done = frozenset(agreed)
    behind = tuple(server for server in servers if server not in done)
    status, serial = None, None
    if domain.is_going:
        failed = tuple(server for server in behind if (row := mine[server].get(Action.DELETE)) is not None
                       and row.status is Outcome.ERROR)
        # A server that does not count and has no row of the domain never had it.
        behind += tuple(server for server in resting
                        if server in rows_by_server and not has_deleted(domain, rows_by_server[server]))
        if domain.status is not Status.DELETED:
            status = (Outcome.SUCCESS if len(agreed) >= k else
                      Outcome.ERROR if len(failed) > spare else None)
            serial = domain.serial if status else None
        return Verdict(status, serial, None, k, len(servers), agreed, behind, failed)
    failed = tuple(server for server in behind if has_failed(mine[server], domain.least_serial, domain.serial))
    # A server that served the serial and then failed a poll is behind, but the serial that it served still counts here:
    # what was reported is not withdrawn.
    distances = sorted((domain.serial - seen) % SPACE for server in servers
                       if (seen := served(domain, mine[server])) is not None and at_least(domain.serial, seen))
    consensus = (domain.serial - distances[k - 1]) % SPACE if len(distances) >= k else None
    if consensus is not None and (domain.reported_serial is None or newer(consensus, domain.reported_serial)):
        status, serial = Outcome.SUCCESS, consensus
    elif len(failed) > spare and not is_reached(domain, domain.least_serial):
        status, serial = Outcome.ERROR, domain.serial
    return Verdict(status, serial, consensus, k, len(servers), agreed, behind, failed)


def reports(domain: Domain, rows: Iterable[ServerStatus], servers: Sequence[str], threshold_percentage: int,
            resting: Sequence[str] = ()) -> tuple[Report, ...]:
    """The reports that Central has not had about one domain yet, in order.

    Two, SUCCESS and then ERROR, if the servers serve a newer serial than was reported, and have failed at the current
    one.
    """
    rows = tuple(rows)
    due_reports: list[Report] = []
    verdict = weigh(domain, rows, servers, threshold_percentage, resting)
    while verdict.status is Outcome.SUCCESS and verdict.serial is not None:
        due_reports.append(Report(domain.id, domain.action, domain.generation, Outcome.SUCCESS, verdict.serial,
                                  domain.pool_name))
        if domain.is_going:
            return tuple(due_reports)
        domain = dataclasses.replace(domain, reported_serial=verdict.serial)
        verdict = weigh(domain, rows, servers, threshold_percentage, resting)
    if verdict.status is Outcome.ERROR and verdict.serial is not None and domain.status is Status.PENDING:
        due_reports.append(Report(domain.id, domain.action, domain.generation, Outcome.ERROR, verdict.serial,
                                  domain.pool_name))
    return tuple(due_reports)
