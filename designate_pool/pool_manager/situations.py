"""How a domain stands on its servers, as it was read, and what is to become of it."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

from designate_pool.model import Action, Domain, Outcome, PollRequest, ServerStatus
from designate_pool.pool_manager import due
from designate_pool.pool_manager.waiting import Work
from designate_pool.storage import domains as domain_store
from designate_pool.storage import statuses
from designate_pool.storage.sessions import Storage


@dataclasses.dataclass(slots=True)
class Situation:
    """A domain and its rows; *changed* are the rows to write, *fetching* the servers that fetch the zone by themselves,
    *former* the outcomes that the changed rows had before, *ahead* the serial ahead of the domain's that a server could
    not be made to give up.

    However often a row is changed before it is written, its version rises by one: only so does the second of two
    writers that began with the same row find that it came too late.
    """

    domain: Domain
    rows: dict[tuple[str, Action], ServerStatus]
    changed: dict[tuple[str, Action], ServerStatus] = dataclasses.field(default_factory=dict)
    fetching: set[str] = dataclasses.field(default_factory=set)
    former: dict[tuple[str, Action], Outcome | None] = dataclasses.field(default_factory=dict)
    ahead: int | None = None

    def change(self, *rows: ServerStatus) -> None:
        for row in rows:
            key = row.server_id, row.action
            earlier = self.rows.get(key)
            version = 0 if earlier is None else earlier.version
            self.former.setdefault(key, None if earlier is None else earlier.status)
            self.rows[key] = self.changed[key] = dataclasses.replace(
                row, version=version if key in self.changed else version + 1)

    @property
    def outcomes(self) -> bool:
        """Whether a changed row has come to an end that a verdict takes; that a zone was created is not one."""
        return any(row.status not in (None, self.former[key])
                   and (row.status is Outcome.ERROR or row.action is not Action.CREATE)
                   for key, row in self.changed.items())


@dataclasses.dataclass(slots=True)
class Orders:
    """Rows to write, calls for the servers' lanes, and polls for MiniDNS.

    :ivar taken: how many calls there are for a server, by its id and whether they are for changes of now
    :ivar overtaken: how many of the rows somebody else wrote first, so that they were not written
    """

    writes: list[ServerStatus] = dataclasses.field(default_factory=list)
    calls: list[Work] = dataclasses.field(default_factory=list)
    polls: list[PollRequest] = dataclasses.field(default_factory=list)
    taken: collections.Counter[tuple[str, bool]] = dataclasses.field(default_factory=collections.Counter)
    overtaken: int = 0


def read(storage: Storage, pool_name: str, domain_ids: Sequence[str],
         server_ids: Collection[str] = ()) -> dict[str, Situation]:
    """The situations of these domains by id; unknown ones, and those of other pools, are left out.

    :param server_ids: the servers whose rows are needed, where not all are
    """
    found, rows = storage.read(_read, list(dict.fromkeys(domain_ids)), server_ids)
    return {key: Situation(domain, due.by_server_and_action(rows.get(key, ()))) for key, domain in found.items()
            if domain.pool_name == pool_name}


def _read(tx: Any, ids: Sequence[str],
          server_ids: Collection[str]) -> tuple[dict[str, Domain], dict[str, list[ServerStatus]]]:
    if not ids:
        return {}, {}
    # The rows first: a domain that is older than its rows would be said to serve less than it does.
    rows = statuses.for_domains(tx, ids, server_ids)
    return domain_store.get_many(tx, ids), rows
