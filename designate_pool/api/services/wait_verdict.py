"""Whether a wait for a zone is over.

The invariant: a wait for a serial is done when enough servers serve that serial or a newer one, and a wait for a
deletion when enough servers have deleted the zone; it has failed when the zone is in ERROR, or is being deleted.  What
has been served stays done, whatever comes after it.  For a serial that only renewed signatures, the one that its
contents got is waited for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from designate_pool import consensus
from designate_pool.model import Domain, Pool, PoolServer, ServerStatus, Status
from designate_pool.serial import at_least, within


@dataclasses.dataclass(frozen=True, slots=True)
class WaitTarget:
    """What is waited for.

    :ivar serial: that is to be served, or a newer one
    :ivar servers: by how many; None for as many as the pool's threshold needs
    :ivar deletion: whether the deletion is waited for
    """

    domain_id: str
    serial: int
    servers: int | None = None
    deletion: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneState:
    """A domain as it was read.

    :ivar domain: None when its row is purged
    :ivar servers: of its pool; empty, as *rows*, where they were not read
    :ivar pool: None where it was not read
    """

    domain: Domain | None
    servers: Sequence[PoolServer] = ()
    rows: Sequence[ServerStatus] = ()
    pool: Pool | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class WaitVerdict:
    """Whether a wait is over; *waits*: as what is waited for waits for the end of a freeze."""

    done: bool = False
    failed: bool = False
    waits: bool = False

    @property
    def over(self) -> bool:
        """Whether the wait ends: it is done, has failed, or is held up by a freeze."""
        return self.done or self.failed or self.waits


def judge(wanted: WaitTarget, state: ZoneState) -> WaitVerdict:
    """Whether a wait is over, and whether its target was reached.

    :param state: with servers and rows where *wanted* has a number of servers
    """
    domain = state.domain
    if domain is None or domain.status is Status.DELETED:
        return WaitVerdict(done=wanted.deletion, failed=not wanted.deletion)
    wanted = _for_contents(wanted, domain)
    if wanted.servers is not None and len(current(wanted, state)) >= wanted.servers:
        return WaitVerdict(done=True)
    if not wanted.deletion and wanted.servers is None and consensus.is_reached(domain, wanted.serial):
        return WaitVerdict(done=True)
    if domain.is_going and not wanted.deletion:
        return WaitVerdict(failed=True)
    permitted = domain.permitted
    if (release := domain.release) is not None and release.held:
        return WaitVerdict(failed=True)
    if permitted is None or not wanted.deletion and not at_least(permitted.serial, wanted.serial):
        return WaitVerdict(waits=domain.waits_for is not None)
    return WaitVerdict(failed=domain.status is Status.ERROR and not consensus.is_reached(domain, wanted.serial))


def current(wanted: WaitTarget, state: ZoneState) -> list[PoolServer]:
    """The servers that count and have what is waited for."""
    domain, rows = state.domain, consensus.by_server(state.rows)
    if domain is None:
        return []
    wanted = _for_contents(wanted, domain)
    return [server for server in counting(state) if (
        consensus.has_deleted(domain, rows.get(server.id, {})) if wanted.deletion else
        consensus.serves(domain, rows.get(server.id, {}), wanted.serial))]


def _for_contents(wanted: WaitTarget, domain: Domain) -> WaitTarget:
    if domain.content_serial is None or not within(domain.content_serial, wanted.serial, domain.serial):
        return wanted
    return dataclasses.replace(wanted, serial=domain.content_serial)


def counting(state: ZoneState) -> list[PoolServer]:
    """The servers that the threshold is about."""
    joining = state.pool is not None and state.pool.count_joining_servers
    return [server for server in state.servers if consensus.counts(server, joining)]


def needed(total: int, pool: Pool | None) -> int | None:
    """How many of *total* counting servers the threshold asks for; None where none was published."""
    return None if pool is None or pool.published_at is None else consensus.needed(total, pool.threshold_percentage)
