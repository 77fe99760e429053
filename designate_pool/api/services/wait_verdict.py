"""Whether a wait for a zone is over.

The invariant: a wait for a serial is done when enough servers serve that serial or a newer one, and one for a deletion
when the zone is gone from enough of them; it has failed when the pool has said so, or when the zone began to be deleted
meanwhile.  What has been served stays done, whatever came after it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from designate_pool.model import Action, Domain, Outcome, Pool, PoolServer, ServerState, ServerStatus, Status
from designate_pool.serial import at_least, newer


@dataclasses.dataclass(frozen=True, slots=True)
class WaitTarget:
    """What is waited for.

    :ivar serial: to be served, it or a newer one
    :ivar servers: by how many; None for as many as the pool's threshold needs
    :ivar deletion: whether the zone is to go
    """

    domain_id: str
    serial: int
    servers: int | None = None
    deletion: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneState:
    """How a domain stood when it was looked at.

    :ivar domain: None when it is gone and forgotten
    :ivar servers: of its pool; empty, as *rows*, where nobody asked for them
    :ivar pool: None where nobody asked for it either
    """

    domain: Domain | None
    servers: Sequence[PoolServer] = ()
    rows: Sequence[ServerStatus] = ()
    pool: Pool | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class WaitVerdict:
    """Whether a wait is over."""

    done: bool = False
    failed: bool = False

    @property
    def over(self) -> bool:
        return self.done or self.failed


def judge(wanted: WaitTarget, standing: ZoneState) -> WaitVerdict:
    """
    :param standing: with servers and rows where *wanted* says by how many
    """
    domain = standing.domain
    if domain is None or domain.status is Status.DELETED:
        return WaitVerdict(done=wanted.deletion, failed=not wanted.deletion)
    if wanted.servers is not None and len(current(wanted, standing)) >= wanted.servers:
        return WaitVerdict(done=True)
    if not wanted.deletion and wanted.servers is None and is_reached(domain, wanted.serial):
        return WaitVerdict(done=True)
    if domain.is_going and not wanted.deletion:
        return WaitVerdict(failed=True)
    return WaitVerdict(failed=domain.status is Status.ERROR and not is_reached(domain, wanted.serial))


def is_reached(domain: Domain, serial: int) -> bool:
    """Whether the pool was ever said to serve *serial* or a newer one."""
    return domain.reported_serial is not None and at_least(domain.reported_serial, serial)


def current(wanted: WaitTarget, standing: ZoneState) -> list[PoolServer]:
    """The servers that count and have what is waited for."""
    rows: dict[str, dict[Action, ServerStatus]] = {}
    for row in standing.rows:
        rows.setdefault(row.server_id, {})[row.action] = row
    if wanted.deletion:
        return [each for each in counting(standing)
                if (found := rows.get(each.id, {}).get(Action.DELETE)) and found.status is Outcome.SUCCESS]
    return [each for each in counting(standing)
            if serves(rows.get(each.id, {}).get(Action.UPDATE), wanted.serial)]


def counting(standing: ZoneState) -> list[PoolServer]:
    """The servers that the threshold is about."""
    return [each for each in standing.servers if counts(each, standing.pool)]


def counts(server: PoolServer, pool: Pool | None) -> bool:
    """Whether the threshold is about a server."""
    return server.state is ServerState.ACTIVE or (
        server.state is ServerState.JOINING and pool is not None and pool.count_joining_servers)


def serves(row: ServerStatus | None, serial: int) -> bool:
    """Whether the UPDATE row of a server says that it serves *serial* or a newer one.

    One that was seen to serve it and failed a poll for it since does not, nor does one that serves other contents.
    """
    if row is None or row.diverged or row.serial_number is None or not at_least(row.serial_number, serial):
        return False
    return row.status is not Outcome.ERROR or newer(row.expected_serial, serial)


def needed(standing: ZoneState) -> int | None:
    """How many servers the threshold asks for; None where that was never published."""
    return None if standing.pool is None else needed_of(len(counting(standing)), standing.pool)


def needed_of(total: int, pool: Pool) -> int | None:
    """How many of *total* servers that count the threshold asks for; None where that was never published."""
    # Of no servers none agrees on anything, so at least one is needed.
    return None if pool.published_at is None else max(1, -(-total * pool.threshold_percentage // 100))
