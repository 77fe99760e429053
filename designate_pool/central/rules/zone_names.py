"""The lists that say which names zones may have; each function that takes a transaction is the work of one.

The invariant: while there are top-level domains, a zone that is created lies below one of them and is none of them;
and its name is not in the blacklists, unless its creator may use such names.  Zones that there are already stay,
whatever becomes of the lists.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic

from designate_pool.central.validation import fields, patterns
from designate_pool.errors import (BlacklistNotFound, Conflict, DuplicateBlacklist, DuplicateTld, InvalidField,
                                   InvalidZoneName, NotFound, TldNotFound)
from designate_pool.model import Blacklist, Context, Tld, names
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import zone_names as store
from designate_pool.storage.zones.zone_names import Entry, EntryTable

LOG = logging.getLogger(__name__)
_LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?'
_TLD = re.compile(rf'{_LABEL}(?:\.{_LABEL})*')


class EntryRules(Generic[Entry]):
    """The rules of one list.

    :param parse_text: checks the text of an entry, given the name of the field
    :param missing: the error for an entry that is not there, and the word for it
    :param duplicate: the error for a text that is there already
    """

    def __init__(self, table: EntryTable[Entry], kind: type[Entry], parse_text: Callable[[str, Any], str],
                 missing: type[NotFound], duplicate: type[Conflict]) -> None:
        self._table: EntryTable[Entry] = table
        self._kind: type[Entry] = kind
        self._word = kind.__name__.lower()
        self._missing = missing
        self._duplicate = duplicate
        self._checks: dict[str, Callable[[str, Any], Any]] = {table.text: parse_text, 'description': fields.description}

    def parse(self, given: Any, whole: bool) -> dict[str, Any]:
        """The values of an entry, checked.

        :param whole: whether its text is required
        """
        fields.refuse_unknown(fields.mapping(self._word, given), '', tuple(self._checks))
        with fields.every_mistake() as checked:
            return {key: checked(check, key, given.get(key)) for key, check in self._checks.items()
                    if whole or key in given}

    def create(self, tx: Tx, entry_id: str, values: Mapping[str, Any], now: datetime) -> Entry:
        there = self._table.get(tx, entry_id)
        if there is not None:
            return there  # the commit came through, the answer to it did not
        entry = self._kind(id=entry_id, created_at=now, updated_at=now, **values)
        self._refuse_duplicate(tx, entry)
        self._table.insert(tx, entry)
        return entry

    def update(self, tx: Tx, entry_id: str, values: Mapping[str, Any], now: datetime) -> Entry:
        old = self._table.lock(tx, entry_id)
        if old is None:
            raise self._missing(**{self._word: entry_id})
        new = dataclasses.replace(old, **values)
        if new == old:
            return old
        if self._text(new) != self._text(old):
            self._refuse_duplicate(tx, new)
        new = dataclasses.replace(new, updated_at=now, version=old.version + 1)
        self._table.save(tx, new)
        return new

    def delete(self, tx: Tx, entry_id: str) -> Entry:
        """The entry that was deleted."""
        old = self._table.lock(tx, entry_id)
        if old is None:
            raise self._missing(**{self._word: entry_id})
        self._table.delete(tx, entry_id)
        return old

    def get(self, tx: Tx, entry_id: str) -> Entry:
        found = self._table.get(tx, entry_id)
        if found is None:
            raise self._missing(**{self._word: entry_id})
        return found

    def find(self, tx: Tx, criterion: Mapping[str, Any], marker: str | None, limit: int | None, sort_key: str | None,
             sort_dir: str | None) -> list[Entry]:
        return self._table.find(tx, criterion, marker, limit, sort_key, sort_dir)

    def _text(self, entry: Entry) -> str:
        return str(getattr(entry, self._table.text))

    def _refuse_duplicate(self, tx: Tx, entry: Entry) -> None:
        if self._table.has(tx, self._text(entry)):
            raise self._duplicate(**{self._word: self._text(entry)})


def _tld_name(field: str, value: Any) -> str:
    found = fields.text(field, value, 255)
    if not _TLD.fullmatch(found):
        raise InvalidField(field=field, why='not a name of letters, digits, dashes and underscores without a final dot')
    return found.lower()


TLDS = EntryRules(store.TLDS, Tld, _tld_name, TldNotFound, DuplicateTld)
BLACKLISTS = EntryRules(store.BLACKLISTS, Blacklist, patterns.pattern, BlacklistNotFound, DuplicateBlacklist)


def check(tx: Tx, context: Context, name: str) -> None:
    """
    :raises InvalidZoneName: when the lists do not allow a zone *name*
    """
    _check(store.about(tx, _without_dots(name), with_blacklists=not context.may_use_blacklisted), name)


def refused(tx: Tx, context: Context, wanted: Sequence[str]) -> set[str]:
    """Those of several names that :func:`check` refuses."""
    every = sorted({each for name in wanted for each in _without_dots(name)})
    found = store.about(tx, every, with_blacklists=not context.may_use_blacklisted)
    return {name for name in wanted if not _is_allowed(found, name)}


def _is_allowed(found: store.NameLists, name: str) -> bool:
    try:
        _check(found, name)
    except InvalidZoneName:
        return False
    return True


def _without_dots(name: str) -> list[str]:
    return [each.removesuffix('.') for each in names.at_or_above(name)]


def _check(found: store.NameLists, name: str) -> None:
    """
    :param found: what the lists have about the name and those above it
    """
    own, *upper = _without_dots(name)
    if found.tlds is not None and own in found.tlds:
        raise InvalidZoneName(field='name', why='it is a top-level domain, of which zones may lie below only')
    if found.tlds is not None and found.tlds.isdisjoint(upper):
        raise InvalidZoneName(field='name', why='it lies below none of the top-level domains that zones may lie below')
    if any(_is_found(each, name) for each in found.patterns):
        raise InvalidZoneName(field='name', why='it is in the blacklists; the policy use_blacklisted_zone says who may '
                                                'have it')


def _is_found(pattern: str, name: str) -> bool:
    """Whether *pattern* is found in *name*, or that takes too many steps to know."""
    try:
        return patterns.matches(pattern, name)
    except patterns.TooManySteps:
        LOG.warning('%s is refused as in the blacklists: looking for %s in it takes too many steps', name, pattern)
        return True
