"""How a domain stands on its servers, as it was read, and what is to become of it."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any

from designate_pool.model import Action, Domain, Outcome, PollRequest, ServerStatus
from designate_pool.pool_manager.dispatch.work_queue import Operation
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains as domain_store

#: By whom, and until when.
Claim = tuple[str | None, datetime | None]


@dataclasses.dataclass(slots=True)
class DomainState:
    """A domain and its rows; *changed* are the rows to write, *fetching* the servers that fetch the zone by themselves,
    *former* the outcomes that the changed rows had before, *ahead* the serial ahead of the domain's that a server could
    not be made to give up, *held* the claims of calls that wait or are under way.

    However often a row is changed before it is written, its version rises by one: only so does the second of two
    writers that began with the same row find that it came too late.  A claim in *held* stays through every change of
    its row, until :meth:`let_go` says that the call has ended: others keep away from the name on that server meanwhile.
    """

    domain: Domain
    rows: dict[tuple[str, Action], ServerStatus]
    changed: dict[tuple[str, Action], ServerStatus] = dataclasses.field(default_factory=dict)
    fetching: set[str] = dataclasses.field(default_factory=set)
    former: dict[tuple[str, Action], Outcome | None] = dataclasses.field(default_factory=dict)
    ahead: int | None = None
    held: dict[tuple[str, Action], Claim] = dataclasses.field(default_factory=dict)

    def hold(self, row: ServerStatus) -> None:
        """*row* was claimed for a call."""
        self.held[row.server_id, row.action] = row.claimed_by, row.claimed_until

    def let_go(self, server_id: str, action: Action) -> None:
        """The call for this row has ended."""
        self.held.pop((server_id, action), None)

    def is_busy(self, server_id: str) -> bool:
        """Whether a call for this domain waits or is under way on a server."""
        return any(server == server_id for server, _ in self.held)

    def change(self, *rows: ServerStatus) -> None:
        for row in rows:
            key = row.server_id, row.action
            earlier = self.rows.get(key)
            version = 0 if earlier is None else earlier.version
            self.former.setdefault(key, None if earlier is None else earlier.status)
            claimed_by, claimed_until = self.held.get(key, (row.claimed_by, row.claimed_until))
            self.rows[key] = self.changed[key] = dataclasses.replace(
                row, claimed_by=claimed_by, claimed_until=claimed_until,
                version=version if key in self.changed else version + 1)

    @property
    def deletes_anew(self) -> bool:
        """Whether a deletion was begun that nobody has tried yet."""
        return any(row.action is Action.DELETE and row.status is None and not row.attempts
                   for row in self.changed.values())

    @property
    def outcomes(self) -> bool:
        """Whether a changed row has come to an end that a verdict takes; that a zone was created is not one."""
        return any(row.status not in (None, self.former[key])
                   and (row.status is Outcome.ERROR or row.action is not Action.CREATE)
                   for key, row in self.changed.items())


@dataclasses.dataclass(slots=True)
class Decision:
    """Rows to write, calls for the servers' lanes, and polls for MiniDNS.

    :ivar taken: how many calls there are for a server, by its id and whether they are for changes of now
    :ivar overtaken: how many of the rows somebody else wrote first, so that they were not written
    """

    writes: list[ServerStatus] = dataclasses.field(default_factory=list)
    calls: list[Operation] = dataclasses.field(default_factory=list)
    polls: list[PollRequest] = dataclasses.field(default_factory=list)
    taken: collections.Counter[tuple[str, bool]] = dataclasses.field(default_factory=collections.Counter)
    overtaken: int = 0


def read(storage: Storage, pool_name: str, domain_ids: Sequence[str], server_ids: Collection[str],
         is_held: Callable[[ServerStatus], bool]) -> dict[str, DomainState]:
    """The situations of these domains by id; unknown ones, and those of other pools, are left out.

    :param server_ids: the servers whose rows are needed, where not all are
    :param is_held: whether a row is claimed for a call
    """
    found, rows = storage.read(_read, list(dict.fromkeys(domain_ids)), server_ids)
    return {key: _situation(domain, rows.get(key, ()), is_held) for key, domain in found.items()
            if domain.pool_name == pool_name}


def _situation(domain: Domain, rows: Sequence[ServerStatus], is_held: Callable[[ServerStatus], bool]) -> DomainState:
    situation = DomainState(domain, row_transitions.by_server_and_action(rows))
    for row in rows:
        if is_held(row):
            situation.hold(row)
    return situation


def _read(tx: Any, ids: Sequence[str],
          server_ids: Collection[str]) -> tuple[dict[str, Domain], dict[str, list[ServerStatus]]]:
    if not ids:
        return {}, {}
    # The rows first: a domain that is older than its rows would be said to serve less than it does.
    rows = server_statuses.for_domains(tx, ids, server_ids)
    return domain_store.get_many(tx, ids), rows
