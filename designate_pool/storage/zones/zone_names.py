"""The lists that say which names zones may have: one table each, of entries with a unique text."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.errors import LostRace
from designate_pool.model import Blacklist, PageRequest, Tld
from designate_pool.storage.sql import pages
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import blacklists, tlds

Entry = TypeVar('Entry', Tld, Blacklist)


class EntryTable(Generic[Entry]):
    """A table of TLDs or of the blacklist.

    :param kind: of the entries
    :param table: has a column for each field of *kind*
    :param text: the field by which an entry is unique
    """

    def __init__(self, kind: type[Entry], table: sa.Table, text: str) -> None:
        self._kind: type[Entry] = kind
        self._table = table
        self.text = text
        self._select = sa.select(*(table.c[field.name] for field in dataclasses.fields(kind)))
        self._sort_keys = {name: table.c[name] for name in (text, 'id', 'created_at', 'updated_at')}
        self._criteria: dict[str, Any] = {text: lambda value: pages.like(table.c[text], value),
                                          'description': lambda value: pages.like(table.c.description, value)}

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
        return [self._kind(*row) for row in
                pages.one_page(tx, statement, self._table.c.id, self._sort_keys, page, self.text)]

    def insert(self, tx: Tx, entry: Entry) -> None:
        """Store a new entry.

        :raises LostRace: when another transaction has taken the text meanwhile
        """
        self._write(tx, sa.insert(self._table).values(dataclasses.asdict(entry)), entry)

    def save(self, tx: Tx, entry: Entry) -> None:
        """Write a locked entry.

        :raises LostRace: as :meth:`insert`
        """
        self._write(tx, sa.update(self._table).where(self._table.c.id == entry.id).values(dataclasses.asdict(entry)),
                    entry)

    def delete(self, tx: Tx, entry_id: str) -> None:
        tx.execute(sa.delete(self._table).where(self._table.c.id == entry_id))

    def _write(self, tx: Tx, statement: Any, entry: Entry) -> None:
        try:
            tx.execute(statement)
        except exc.IntegrityError as error:
            raise LostRace(what=f'{self._table.name} entry {getattr(entry, self.text)}') from error

    def _one(self, tx: Tx, statement: sa.Select[Any]) -> Entry | None:
        row = tx.execute(statement).first()
        return None if row is None else self._kind(*row)


TLDS = EntryTable(Tld, tlds, 'name')
BLACKLISTS = EntryTable(Blacklist, blacklists, 'pattern')


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
