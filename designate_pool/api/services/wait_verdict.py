"""Whether a wait for a zone is over.

The invariant: a wait for a serial is done when enough servers serve that serial or a newer one, and one for a deletion
when the zone is gone from enough of them; it has failed when the pool has said so, or when the zone began to be deleted
meanwhile.  What has been served stays done, whatever came after it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from designate_pool import consensus
from designate_pool.model import Domain, Pool, PoolServer, ServerStatus, Status


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


def judge(wanted: WaitTarget, state: ZoneState) -> WaitVerdict:
    """
    :param state: with servers and rows where *wanted* says by how many
    """
    domain = state.domain
    if domain is None or domain.status is Status.DELETED:
        return WaitVerdict(done=wanted.deletion, failed=not wanted.deletion)
    if wanted.servers is not None and len(current(wanted, state)) >= wanted.servers:
        return WaitVerdict(done=True)
    if not wanted.deletion and wanted.servers is None and consensus.is_reached(domain, wanted.serial):
        return WaitVerdict(done=True)
    if domain.is_going and not wanted.deletion:
        return WaitVerdict(failed=True)
    return WaitVerdict(failed=domain.status is Status.ERROR and not consensus.is_reached(domain, wanted.serial))


def current(wanted: WaitTarget, state: ZoneState) -> list[PoolServer]:
    """The servers that count and have what is waited for."""
    domain, rows = state.domain, consensus.by_server(state.rows)
    if domain is None:
        return []
    return [each for each in counting(state) if (
        consensus.has_deleted(domain, rows.get(each.id, {})) if wanted.deletion else
        consensus.serves(domain, rows.get(each.id, {}), wanted.serial))]


def counting(state: ZoneState) -> list[PoolServer]:
    """The servers that the threshold is about."""
    return [each for each in state.servers if counts(each, state.pool)]


def counts(server: PoolServer, pool: Pool | None) -> bool:
    """Whether the threshold is about a server."""
    return consensus.counts(server, pool is not None and pool.count_joining_servers)


def needed(state: ZoneState) -> int | None:
    """How many servers the threshold asks for; None where that was never published."""
    return None if state.pool is None else needed_of(len(counting(state)), state.pool)


def needed_of(total: int, pool: Pool) -> int | None:
    """How many of *total* servers that count the threshold asks for; None where that was never published."""
    return None if pool.published_at is None else consensus.needed(total, pool.threshold_percentage)
