"""The lists that say which names zones may have: one table each, of entries with a unique text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.errors import LostRace
from designate_pool.model import Blacklist, PageRequest, StoredTsigKey, Tld
from designate_pool.storage.sql import pages
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import blacklists, tlds

Entry = TypeVar('Entry', Tld, Blacklist, StoredTsigKey)


class EntryTable(Generic[Entry]):
    """A table of top-level domains, blacklists or TSIG keys.

    :param kind: of the entries
    :param table: has a column for each field of *kind*
    :param text: the field by which an entry is unique
    :param criteria: by the names of filters; each makes a condition of a text
    :param sort_keys: columns to sort by, beside *text*, the id and the times
    """

    def __init__(self, kind: type[Entry], table: sa.Table, text: str, criteria: Mapping[str, Callable[[str], Any]] = {},
                 sort_keys: Sequence[str] = ()) -> None:
        self._kind: type[Entry] = kind
        self._table = table
        self.text = text
        self._select = sa.select(*(table.c[field.name] for field in dataclasses.fields(kind)))
        self._sort_keys = {name: table.c[name] for name in (text, 'id', 'created_at', 'updated_at', *sort_keys)}
        self._criteria: dict[str, Any] = {text: lambda value: pages.like(table.c[text], value), **criteria}

    def get(self, tx: Tx, entry_id: str) -> Entry | None:
        return self._one(tx, self._select.where(self._table.c.id == entry_id))

    def lock(self, tx: Tx, entry_id: str) -> Entry | None:
        """The entry, locked until this transaction ends."""
        return self._one(tx, self._select.where(self._table.c.id == entry_id).with_for_update())

    def has(self, tx: Tx, text: str) -> bool:
        """Whether there is an entry of this text."""
        return tx.execute(sa.select(self._table.c.id).where(self._table.c[self.text] == text)).first() is not None

    def find(self, tx: Tx, page: PageRequest) -> list[Entry]:
        pages.refuse_unknown(page.criterion, self._criteria)
        statement = self._select.where(*(self._criteria[key](value) for key, value in page.criterion.items()))
        return [self._entry(row) for row in
                pages.one_page(tx, statement, self._table.c.id, self._sort_keys, page, self.text)]

    def insert(self, tx: Tx, entry: Entry, hidden: Mapping[str, str] = {}) -> None:
        """Store a new entry.

        :param hidden: values that are not read again
        :raises LostRace: when another transaction has taken the text meanwhile
        """
        self._write(tx, sa.insert(self._table), entry, hidden)

    def save(self, tx: Tx, entry: Entry, hidden: Mapping[str, str] = {}) -> None:
        """Write a locked entry.

        :param hidden: as for :meth:`insert`; what is not among them stays
        :raises LostRace: as :meth:`insert`
        """
        self._write(tx, sa.update(self._table).where(self._table.c.id == entry.id), entry, hidden)

    def delete(self, tx: Tx, entry_id: str) -> None:
        tx.execute(sa.delete(self._table).where(self._table.c.id == entry_id))

    def _write(self, tx: Tx, statement: Any, entry: Entry, hidden: Mapping[str, str]) -> None:
        try:
            tx.execute(statement.values({**dataclasses.asdict(entry), **hidden}))
        except exc.IntegrityError:
            # The database's error shows the values.
            raise LostRace(what=f'{self._table.name} entry {getattr(entry, self.text)}') from None

    def _entry(self, row: Any) -> Entry:
        return self._kind(*row)

    def _one(self, tx: Tx, statement: sa.Select[Any]) -> Entry | None:
        row = tx.execute(statement).first()
        return None if row is None else self._entry(row)


def _described(table: sa.Table) -> dict[str, Callable[[str], Any]]:
    return {'description': lambda value: pages.like(table.c.description, value)}


TLDS = EntryTable(Tld, tlds, 'name', _described(tlds))
BLACKLISTS = EntryTable(Blacklist, blacklists, 'pattern', _described(blacklists))


# Built once: building a statement takes as long as executing it.
_TLDS = (sa.select(sa.literal('tld'), tlds.c.name).where(tlds.c.name.in_(sa.bindparam('names', expanding=True))),
         sa.select(sa.select(sa.literal('tlds'), sa.literal('')).select_from(tlds).limit(1).subquery()))
_ABOUT = sa.union_all(*_TLDS)
_ABOUT_WITH_BLACKLISTS = sa.union_all(*_TLDS, sa.select(sa.literal('pattern'), blacklists.c.pattern))


class NameLists(NamedTuple):
    """What the lists have about a name.

    :ivar tlds: those of the asked names that are top-level domains; None when that list is empty
    :ivar patterns: the blacklists
    """

    tlds: frozenset[str] | None
    patterns: tuple[str, ...]


def about(tx: Tx, names: Sequence[str], with_blacklists: bool) -> NameLists:
    """What the lists have about *names*, in one statement."""
    texts: dict[str, list[str]] = {'tld': [], 'tlds': [], 'pattern': []}
    for kind, text in tx.execute(_ABOUT_WITH_BLACKLISTS if with_blacklists else _ABOUT, {'names': names}):
        texts[kind].append(text)
    return NameLists(frozenset(texts['tld']) if texts['tlds'] else None, tuple(texts['pattern']))
