"""Regular expressions that operators give, matched at a bounded cost.

The engine takes time in proportion to the text, except for what needs backtracking (look-around and back references);
of that it takes a bounded number of steps, which is less than a millisecond.  The size of a pattern is bounded too.
"""

from __future__ import annotations

import functools
from typing import Any

import jsonschema_rs

from designate_pool.central.validation.fields import text
from designate_pool.errors import InvalidField

#: Characters of a pattern.
LONGEST = 255
#: Steps of backtracking for one pattern and name.
MOST_STEPS = 10_000
#: Octets of a compiled pattern.
_LARGEST = 1 << 18
_EXCEEDED = 'BacktrackLimitExceeded'


class TooManySteps(Exception):
    """A pattern takes more steps than it may."""


def pattern(field: str, value: Any) -> str:
    """:raises InvalidField: when it is none, or too large"""
    found = text(field, value, LONGEST)
    try:
        if not found:
            raise ValueError
        _compiled(found)
    except (ValueError, jsonschema_rs.ValidationError):
        raise InvalidField(field=field, why='not a regular expression, or one that becomes too large') from None
    return found


def matches(given: str, name: str) -> bool:
    """Whether the pattern *given* is found anywhere in *name*.

    :raises TooManySteps: when that is not known in time
    """
    mistake = next(iter(_compiled(given).iter_errors(name)), None)
    if mistake is not None and type(mistake.kind).__name__ == _EXCEEDED:
        raise TooManySteps
    return mistake is None


@functools.lru_cache(maxsize=1024)
def _compiled(given: str) -> Any:
    # Names are compared without regard to case, and kept in lower case.
    return jsonschema_rs.Draft202012Validator(
        {'pattern': f'(?i){given}'}, pattern_options=jsonschema_rs.FancyRegexOptions(
            backtrack_limit=MOST_STEPS, size_limit=_LARGEST, dfa_size_limit=_LARGEST))
