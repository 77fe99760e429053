"""The lists that say which names zones may have: one table each, of entries with a unique text."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.errors import LostRace
from designate_pool.model import Blacklist, StoredTsigKey, Tld
from designate_pool.storage.sql import pages
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities, exists
from designate_pool.storage.sql.schema import blacklists, tlds

Entry = TypeVar('Entry', bound=Tld | Blacklist | StoredTsigKey)


class EntryTable(Entities[Entry]):
    """A table of top-level domains, blacklists or TSIG keys.

    :param text: the field by which an entry is unique
    :param criteria: as for :class:`Entities`, beside *text*
    :param sort_keys: columns to sort by, beside *text*, the id and the times
    """

    def __init__(self, kind: type[Entry], table: sa.Table, text: str, criteria: Mapping[str, Any] = {},
                 sort_keys: Sequence[str] = ()) -> None:
        super().__init__(kind, table, (text, 'id', 'created_at', 'updated_at', *sort_keys), {
            text: functools.partial(pages.like, table.c[text]), **criteria})
        self.text = text

    def has(self, tx: Tx, text: str) -> bool:
        """Whether there is an entry of this text."""
        return exists(tx, self.table, self.table.c[self.text] == text)

    def write(self, tx: Tx, entry: Entry, hidden: Mapping[str, str] = {}) -> None:
        """Store a new entry, or write a locked one, whose version is above 1.

        :param hidden: values that are not read again; what is not among them stays
        :raises LostRace: when another transaction has taken the text meanwhile
        """
        statement: Any = sa.insert(self.table) if entry.version == 1 else sa.update(self.table).where(
            self.table.c.id == entry.id)
        try:
            tx.execute(statement.values({**self.values(entry), **hidden}))
        except exc.IntegrityError:
            # The database's error shows the values.
            raise LostRace(what=f'{self.table.name} entry {getattr(entry, self.text)}') from None


def _described(table: sa.Table) -> dict[str, Any]:
    return {'description': functools.partial(pages.like, table.c.description)}


TLDS = EntryTable(Tld, tlds, 'name', _described(tlds))
BLACKLISTS = EntryTable(Blacklist, blacklists, 'pattern', _described(blacklists))


_TLDS = (sa.select(sa.literal('tld'), tlds.c.name).where(tlds.c.name.in_(sa.bindparam('names', expanding=True))),
         sa.select(sa.select(sa.literal('tlds'), sa.literal('')).select_from(tlds).limit(1).subquery()))
_ABOUT = sa.union_all(*_TLDS)
_ABOUT_WITH_BLACKLISTS = sa.union_all(*_TLDS, sa.select(sa.literal('pattern'), blacklists.c.pattern))


class NameLists(NamedTuple):
    """Which of the asked names are top-level domains, None when that list is empty; and the blacklists."""

    tlds: frozenset[str] | None
    patterns: tuple[str, ...]


def about(tx: Tx, names: Sequence[str], with_blacklists: bool) -> NameLists:
    """What the lists have about *names*, in one statement."""
    texts: dict[str, list[str]] = {'tld': [], 'tlds': [], 'pattern': []}
    for kind, text in tx.execute(_ABOUT_WITH_BLACKLISTS if with_blacklists else _ABOUT, {'names': names}):
        texts[kind].append(text)
    return NameLists(frozenset(texts['tld']) if texts['tlds'] else None, tuple(texts['pattern']))
