"""The lists that say which names zones may have; each function that takes a transaction is the work of one.

The invariant: while there are top-level domains, a zone that is created lies below one of them and is none of them;
its name is not in the blacklists, unless its creator may use such names; and not reserved, unless its creator may nest
zones.  Zones that there are already stay,
whatever becomes of the lists.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any

import jsonschema_rs

from designate_pool.central.entries import EntryKind
from designate_pool.central.validation import fields
from designate_pool.errors import InvalidField, Refused
from designate_pool.model import Blacklist, Context, Tld, names
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import zone_names as store
from designate_pool.storage.zones.zone_names import Entry, EntryTable

LOG = logging.getLogger(__name__)
#: Of a name that is refused.
WHO_MAY_NEST = ('the policy nest_zones says who may create it, with --all-projects (X-Auth-All-Projects: true): '
                'administrators, by default')
_LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?'
_TLD = re.compile(rf'{_LABEL}(?:\.{_LABEL})*')
#: Characters of a pattern in the blacklists.
LONGEST_PATTERN = 255
#: Steps of backtracking for one pattern and name.
MOST_STEPS = 10_000
#: Octets of a compiled pattern.
_LARGEST = 1 << 18
_EXCEEDED = 'BacktrackLimitExceeded'


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


def _unique(table: EntryTable[Entry], sentence: str) -> Callable[[Tx, Entry, Entry | None], None]:
    """The check of an entry's text; *sentence* is about one that is in the list already."""
    def refuse_duplicate(tx: Tx, new: Entry, old: Entry | None) -> None:
        text = getattr(new, table.text)
        if (old is None or text != getattr(old, table.text)) and table.has(tx, text):
            raise Refused(f'duplicate_{type(new).__name__.lower()}', sentence.format(text), 409)

    return refuse_duplicate


TLDS = EntryKind(store.TLDS, Tld, 'tld', 'top-level domain', {'name': _tld_name, 'description': fields.description},
                 _unique(store.TLDS, 'The top-level domain {} is in the list already.'))
BLACKLISTS = EntryKind(store.BLACKLISTS, Blacklist, 'blacklist', 'blacklist',
                       {'pattern': _pattern, 'description': fields.description},
                       _unique(store.BLACKLISTS, 'The pattern {} is in the blacklists already.'))


def is_reserved(context: Context, name: str, patterns: Sequence[str]) -> bool:
    """Whether one of *patterns* matches the name of a new zone; ``*`` and ``?`` stand for characters of one label."""
    return not context.may_nest and _reserved(tuple(patterns)).fullmatch(name) is not None


def refuse_reserved(context: Context, name: str, patterns: Sequence[str]) -> None:
    """Refuse the name of a new zone for which :func:`is_reserved`."""
    if is_reserved(context, name, patterns):
        raise InvalidField(field='name', why='it is reserved, as it would give this project all names below it; '
                                             f'{WHO_MAY_NEST}', type='invalid_zone_name')


@functools.cache
def _reserved(patterns: tuple[str, ...]) -> re.Pattern[str]:
    wildcards = {r'\*': r'[^.]*', r'\?': r'[^.]'}
    return re.compile('(?:{})[.]'.format('|'.join(
        re.sub(r'\\[*?]', lambda match: wildcards[match[0]], re.escape(pattern.lower().removesuffix('.')))
        for pattern in patterns)))


def check(tx: Tx, context: Context, name: str) -> None:
    """Refuse the name of a new zone that the lists do not allow."""
    why = refused(tx, context, [name]).get(name)
    if why is not None:
        raise InvalidField(field='name', why=why, type='invalid_zone_name')


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
