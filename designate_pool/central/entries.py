"""The lists that administrators keep: top-level domains, blacklists and TSIG keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic

from designate_pool.central import events, transactions
from designate_pool.central.validation import fields
from designate_pool.errors import NotFound
from designate_pool.model import Context, PageRequest, new_id
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones.zone_names import Entry, EntryTable


@dataclasses.dataclass(frozen=True)
class EntryKind(Generic[Entry]):
    """The rules for the entries of one list.

    :ivar word: what a request and its errors call an entry
    :ivar label: what people call it
    :ivar checks: one for each value of a request, given the name of the field
    :ivar check: called with an entry that is to be written, and what it was before, if anything
    :ivar hidden: names of values that are stored and never shown
    """

    table: EntryTable[Entry]
    kind: type[Entry]
    word: str
    label: str
    checks: Mapping[str, Callable[[str, Any], Any]]
    check: Callable[[Tx, Entry, Entry | None], None]
    hidden: tuple[str, ...] = ()

    def parse(self, given: Any, whole: bool) -> dict[str, Any]:
        """The values of an entry, checked; if *whole*, all are required."""
        fields.refuse_unknown(fields.mapping(self.word, given), '', tuple(self.checks))
        with fields.every_mistake() as checked:
            return {key: checked(check, key, given.get(key)) for key, check in self.checks.items()
                    if whole or key in given}

    def split(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Those of *values* that are shown, and the hidden ones."""
        return ({name: value for name, value in values.items() if name not in self.hidden},
                {name: value for name, value in values.items() if name in self.hidden})


class Entries(Generic[Entry]):
    """The entries of one list."""

    def __init__(self, kind: EntryKind[Entry], storage: Storage, event_sender: events.EventSender) -> None:
        self._kind: EntryKind[Entry] = kind
        self._table: EntryTable[Entry] = kind.table
        self._storage = storage
        self._events = event_sender

    def create(self, context: Context, values: Mapping[str, Any]) -> Entry:
        """Create an entry."""
        return self._events.value(events.CREATE, context, transactions.run(
            self._storage, self._create, new_id(), self._kind.parse(values, whole=True), self._storage.now()))

    def find(self, context: Context, page: PageRequest = PageRequest()) -> list[Entry]:
        """The entries that match."""
        return self._storage.read(self._table.find, page)

    def get(self, context: Context, entry_id: str) -> Entry:
        """One entry."""
        return self._present(self._storage.read(self._table.get, entry_id), entry_id)

    def update(self, context: Context, entry_id: str, values: Mapping[str, Any]) -> Entry:
        """Change an entry; existing zones stay."""
        return self._events.value(events.UPDATE, context, transactions.run(
            self._storage, self._update, entry_id, self._kind.parse(values, whole=False), self._storage.now()))

    def delete(self, context: Context, entry_id: str) -> None:
        """Delete an entry."""
        self._events.value(events.DELETE, context, transactions.run(self._storage, self._delete, entry_id))

    def _create(self, tx: Tx, entry_id: str, values: Mapping[str, Any], now: datetime) -> Entry:
        present = self._table.get(tx, entry_id)
        if present is not None:
            return present  # the commit came through, the answer to it did not
        shown, hidden = self._kind.split(values)
        entry = self._kind.kind(id=entry_id, created_at=now, updated_at=now, **shown)
        self._kind.check(tx, entry, None)
        self._table.write(tx, entry, hidden)
        return entry

    def _update(self, tx: Tx, entry_id: str, values: Mapping[str, Any], now: datetime) -> Entry:
        old = self._present(self._table.lock(tx, entry_id), entry_id)
        shown, hidden = self._kind.split(values)
        new = dataclasses.replace(old, **shown)
        if new == old and not hidden:
            return old
        self._kind.check(tx, new, old)
        new = dataclasses.replace(new, updated_at=now, version=old.version + 1)
        self._table.write(tx, new, hidden)
        return new

    def _delete(self, tx: Tx, entry_id: str) -> Entry:
        old = self._present(self._table.lock(tx, entry_id), entry_id)
        self._table.delete(tx, entry_id)
        return old

    def _present(self, entry: Entry | None, entry_id: str) -> Entry:
        if entry is None:
            raise NotFound(what=f'{self._kind.label} {entry_id}', type=f'{self._kind.word}_not_found')
        return entry
