"""Domains with their rows: one, and what a step has read and decides."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from designate_pool.model import Action, Domain, Outcome, PollRequest, Pool, ServerStatus
from designate_pool.pool_manager.dispatch.server_worker import Operation
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.serial import at_least, newer
from designate_pool.settings import Tries
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.sql.database import Tx

#: Who holds a claim, and until when.
ClaimHolder = tuple[str | None, datetime | None]
#: A request for MiniDNS, with what tries, and whether it is for any MiniDNS instead of the first.
Poll = tuple[PollRequest, Tries, bool]


@dataclasses.dataclass(slots=True)
class DomainState:
    """A domain and its rows by (server id, action).

    The version of a row rises by one for all changes before it is written, so that of two writers that read the same
    row the second one fails.  A claim in *call_claims* survives every change of its row until :meth:`remove_claim` is
    called: until then no one else calls the server for this name.

    :ivar domain: as servers may have it; in a staged release, as those of the stages may
    :ivar before: in a staged release, as servers of later stages may have it; None if nothing is to be done on these
    :ivar released: in a staged release, ids of the servers that may have *domain*; None if all may
    :ivar fetching: ids of servers that fetch the zone without a NOTIFY
    :ivar serial_ahead: a serial ahead of the domain's that a server still serves after a retransfer
    """

    domain: Domain
    rows: dict[tuple[str, Action], ServerStatus]
    changed: dict[tuple[str, Action], ServerStatus] = dataclasses.field(default_factory=dict)
    fetching: set[str] = dataclasses.field(default_factory=set)
    former_outcomes: dict[tuple[str, Action], Outcome | None] = dataclasses.field(default_factory=dict)
    serial_ahead: int | None = None
    call_claims: dict[tuple[str, Action], ClaimHolder] = dataclasses.field(default_factory=dict)
    before: Domain | None = None
    released: Collection[str] | None = None

    def is_later(self, server_id: str) -> bool:
        """Whether a server is of a later stage, as is one that this pool manager's configuration does not have."""
        return self.released is not None and server_id not in self.released

    def on(self, server_id: str, is_lost: bool = False) -> Domain | None:
        """The domain as a server, which may be known to have lost it, may have it; None for nothing to do there."""
        if not self.is_later(server_id):
            return self.domain
        row = None if is_lost else self.rows.get((server_id, Action.UPDATE))
        # One that the configuration has moved to a later stage keeps what it has.
        is_ahead = (row is not None and row.serial_number is not None and self.before is not None
                    and at_least(row.serial_number, self.before.serial) and row.serial_number != self.before.serial)
        return None if is_ahead else self.before

    def expect_former_version(self) -> None:
        """Expect no more of servers of later stages than they are given: some were of an earlier one."""
        self.rows.update((key, dataclasses.replace(row, expected_serial=domain.serial))
                         for key, row in self.rows.items() if self.is_later(key[0])
                         and (domain := self.on(key[0])) is not None and newer(row.expected_serial, domain.serial))

    @property
    def views(self) -> Sequence[DomainState]:
        """It with the rows of the servers that may have it as it is; likewise for those of later stages."""
        if self.released is None:
            return (self,)
        rows: tuple[dict[tuple[str, Action], ServerStatus], ...] = {}, {}
        for key, row in self.rows.items():
            rows[self.is_later(key[0])][key] = row
        return (DomainState(self.domain, rows[0]),
                *(() if self.before is None else (DomainState(self.before, rows[1]),)))

    def schedule(self, servers: Collection[str], now: datetime, fed: Collection[str] = ()) -> list[ServerStatus]:
        """See :func:`.row_transitions.schedule_change`."""
        if self.released is None:
            return row_transitions.schedule_change(self.domain, self.rows, servers, now, fed)
        return [row for server in servers if (domain := self.on(server)) is not None
                for row in row_transitions.schedule_change(domain, self.rows, [server], now, fed)]

    def add_claim(self, row: ServerStatus) -> None:
        """Note that *row* is claimed for a driver call."""
        self.call_claims[row.server_id, row.action] = row.claimed_by, row.claimed_until

    def remove_claim(self, server_id: str, action: Action) -> None:
        """Note that the call for this row has ended."""
        self.call_claims.pop((server_id, action), None)

    def change(self, *rows: ServerStatus) -> None:
        """Replace these rows."""
        for row in rows:
            key = row.server_id, row.action
            earlier = self.rows.get(key)
            version = 0 if earlier is None else earlier.version
            self.former_outcomes.setdefault(key, None if earlier is None else earlier.status)
            claimed_by, claimed_until = self.call_claims.get(key, (row.claimed_by, row.claimed_until))
            due = row.next_attempt_at
            if claimed_until is not None and due is None and row.status is Outcome.SUCCESS:
                due = claimed_until  # whoever has claimed it may end before the call, and leave the claim
            self.rows[key] = self.changed[key] = dataclasses.replace(
                row, claimed_by=claimed_by, claimed_until=claimed_until, next_attempt_at=due,
                version=version if key in self.changed else version + 1)

    @property
    def has_new_outcomes(self) -> bool:
        """Whether a changed row has a new outcome that verdicts count; the success of a CREATE is not one."""
        return any(row.status not in (None, self.former_outcomes[key])
                   and (row.status is Outcome.ERROR or row.action is not Action.CREATE)
                   for key, row in self.changed.items())


@dataclasses.dataclass(slots=True)
class Step:
    """What a step of the reconciler has read, and what it decides.

    :ivar is_partial: whether *states*, by domain id, lack the rows of some servers
    :ivar live: existing domains, by name, that may have the name of one of *states* that is being deleted
    :ivar claimed: rows that were claimed to be carried out, unless they are changed
    :ivar slots_taken: number of calls by (server id, whether the change is recent)
    :ivar conflicts: number of rows that another writer has written first
    """

    now: datetime
    is_partial: bool = False
    states: dict[str, DomainState] = dataclasses.field(default_factory=dict)
    live: Mapping[str, Domain] = dataclasses.field(default_factory=dict)
    claimed: Sequence[ServerStatus] = ()
    writes: list[ServerStatus] = dataclasses.field(default_factory=list)
    calls: list[Operation] = dataclasses.field(default_factory=list)
    polls: list[Poll] = dataclasses.field(default_factory=list)
    slots_taken: collections.Counter[tuple[str, bool]] = dataclasses.field(default_factory=collections.Counter)
    conflicts: int = 0

    def unchanged_claimed(self) -> list[ServerStatus]:
        """The claimed rows that were not changed, by this step or by others since they were claimed."""
        return [row for claimed in self.claimed if (state := self.states.get(claimed.domain_id)) is not None
                and (key := (claimed.server_id, claimed.action)) not in state.changed
                and (row := state.rows.get(key)) is not None and row_transitions.is_same_claim(row, claimed)]

    def supersede(self, reads_catalog: Callable[[str], bool]) -> None:
        """End deletions of zones whose names belong to newer domains now, unless a call for them has begun.

        The newer domain's contents replace them.  A secondary domain has none before its first transfer, so until then
        they are deleted, but by servers for which *reads_catalog* is true: these have replaced them by an empty one.
        """
        for key, state in list(self.states.items()):
            newer = self.live.get(state.domain.name) if state.domain.is_going else None
            if newer is not None and newer.id == key:
                del self.states[key]  # it has been restored since it was read
            elif newer is not None and newer.generation > state.domain.generation:
                state.change(*(row_transitions.supersede(row, newer.generation) for key, row in state.rows.items()
                               if row.action is Action.DELETE and row.status is not Outcome.SUCCESS
                               and key not in state.call_claims
                               and (not newer.awaits_first_transfer or reads_catalog(row.server_id))))


def read(tx: Tx, pool: Pool, domain_ids: Sequence[str], server_ids: Collection[str]) -> dict[str, DomainState]:
    """The states of these domains by id, without claims, at the versions that servers may have.

    Left out are unknown domains, those that other pools have, and those of which nothing is to be done; and the rows of
    other servers than *server_ids*, if given.
    """
    rows, domains = server_statuses.with_domains(tx, domain_ids, server_ids)
    states = {key: DomainState(domain, {}) for key, newest in domains.items()
              if newest.is_of(pool.name) and (domain := newest.permitted_at(0)) is not None}
    for row in rows:
        if row.domain_id in states:
            states[row.domain_id].rows[row.server_id, row.action] = row
    for key, state in states.items():
        if (release := domains[key].release) is not None:
            state.before = domains[key].permitted
            if pool.release_stages is not None:
                state.released = {server for server, stage in pool.stages.items() if stage <= release.stage}
                state.expect_former_version()
    return states
