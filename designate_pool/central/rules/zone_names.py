"""The lists that say which names zones may have; each function that takes a transaction is the work of one.

The invariant: while there are top-level domains, a zone that is created lies below one of them and is none of them;
and its name is not in the blacklists, unless its creator may use such names.  Zones that there are already stay,
whatever becomes of the lists.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic

import jsonschema_rs

from designate_pool.central.validation import fields
from designate_pool.errors import InvalidField, InvalidZoneName, NotFound, Refused
from designate_pool.model import Blacklist, Context, PageRequest, Tld, names
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import zone_names as store
from designate_pool.storage.zones.zone_names import Entry, EntryTable

LOG = logging.getLogger(__name__)
_LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?'
_TLD = re.compile(rf'{_LABEL}(?:\.{_LABEL})*')
#: Characters of a pattern in the blacklists.
LONGEST_PATTERN = 255
#: Steps of backtracking for one pattern and name.
MOST_STEPS = 10_000
#: Octets of a compiled pattern.
_LARGEST = 1 << 18
_EXCEEDED = 'BacktrackLimitExceeded'


class EntryRules(Generic[Entry]):
    """The rules of one list.

    :param parse_text: checks the text of an entry, given the name of the field
    :param label: what errors call an entry
    :param duplicate: the sentence about a text that is there already
    """

    def __init__(self, table: EntryTable[Entry], kind: type[Entry], parse_text: Callable[[str, Any], str],
                 label: str, duplicate: str) -> None:
        self._table: EntryTable[Entry] = table
        self._kind: type[Entry] = kind
        self._word = kind.__name__.lower()
        self._label = label
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
        """Create an entry with a new id."""
        present = self._table.get(tx, entry_id)
        if present is not None:
            return present  # the commit came through, the answer to it did not
        entry = self._kind(id=entry_id, created_at=now, updated_at=now, **values)
        self._refuse_duplicate(tx, entry)
        self._table.insert(tx, entry)
        return entry

    def update(self, tx: Tx, entry_id: str, values: Mapping[str, Any], now: datetime) -> Entry:
        """Change an entry."""
        old = self._table.lock(tx, entry_id)
        if old is None:
            raise self._missing(entry_id)
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
            raise self._missing(entry_id)
        self._table.delete(tx, entry_id)
        return old

    def get(self, tx: Tx, entry_id: str) -> Entry:
        """One entry."""
        entry = self._table.get(tx, entry_id)
        if entry is None:
            raise self._missing(entry_id)
        return entry

    def find(self, tx: Tx, page: PageRequest) -> list[Entry]:
        """The entries that match."""
        return self._table.find(tx, page)

    def _text(self, entry: Entry) -> str:
        return str(getattr(entry, self._table.text))

    def _refuse_duplicate(self, tx: Tx, entry: Entry) -> None:
        if self._table.has(tx, self._text(entry)):
            raise Refused(f'duplicate_{self._word}', self._duplicate.format(self._text(entry)), 409)

    def _missing(self, entry_id: str) -> NotFound:
        return NotFound(what=f'{self._label} {entry_id}', type=f'{self._word}_not_found')


def _tld_name(field: str, value: Any) -> str:
    name = fields.text(field, value, 255)
    if not _TLD.fullmatch(name):
        raise InvalidField(field=field, why='not a name of letters, digits, dashes and underscores without a final dot')
    return name.lower()


def _pattern(field: str, value: Any) -> str:
    pattern = fields.text(field, value, LONGEST_PATTERN)
    try:
        if not pattern:
            raise ValueError
        _compiled(pattern)
    except (ValueError, jsonschema_rs.ValidationError):
        raise InvalidField(field=field, why='not a regular expression, or one that becomes too large') from None
    return pattern


TLDS = EntryRules(store.TLDS, Tld, _tld_name, 'top-level domain', 'The top-level domain {} is in the list already.')
BLACKLISTS = EntryRules(store.BLACKLISTS, Blacklist, _pattern, 'blacklist',
                        'The pattern {} is in the blacklists already.')


def check(tx: Tx, context: Context, name: str) -> None:
    """Check a new zone's name against the lists.

    :raises InvalidZoneName: when the lists do not allow a zone *name*
    """
    why = refused(tx, context, [name]).get(name)
    if why is not None:
        raise InvalidZoneName(field='name', why=why)


def refused(tx: Tx, context: Context, zones: Sequence[str]) -> dict[str, str]:
    """The names of new zones that the lists do not allow, each with the reason."""
    labels = {name: [upper.removesuffix('.') for upper in names.at_or_above(name)] for name in zones}
    lists = store.about(tx, sorted({upper for every in labels.values() for upper in every}),
                        with_blacklists=not context.may_use_blacklisted)
    reasons = {}
    for name, (own, *upper) in labels.items():
        if lists.tlds is not None and own in lists.tlds:
            reasons[name] = 'it is a top-level domain, of which zones may lie below only'
        elif lists.tlds is not None and lists.tlds.isdisjoint(upper):
            reasons[name] = 'it lies below none of the top-level domains that zones may lie below'
        elif any(_is_blacklisted(pattern, name) for pattern in lists.patterns):
            reasons[name] = 'it is in the blacklists; the policy use_blacklisted_zone says who may have it'
    return reasons


def _is_blacklisted(pattern: str, name: str) -> bool:
    """Whether *pattern* is found anywhere in *name*, or that takes too many steps to know.

    The engine takes time in proportion to the text, except for what needs backtracking (look-around and back
    references); of that it takes a bounded number of steps, which is less than a millisecond.
    """
    mistake = next(iter(_compiled(pattern).iter_errors(name)), None)
    if mistake is None or type(mistake.kind).__name__ != _EXCEEDED:
        return mistake is None
    LOG.warning('%s is refused as in the blacklists: looking for %s in it takes too many steps', name, pattern)
    return True


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    # Names are compared without regard to case, and kept in lower case.
    return jsonschema_rs.Draft202012Validator(
        {'pattern': f'(?i){pattern}'}, pattern_options=jsonschema_rs.FancyRegexOptions(
            backtrack_limit=MOST_STEPS, size_limit=_LARGEST, dfa_size_limit=_LARGEST))
