"""Names as text: absolute, lower case, in dnspython's spelling, where a backslash escapes a dot."""

from __future__ import annotations

import itertools
import re

_LABEL = re.compile(r'(?:\\.|[^\\.])+')


def above(name: str) -> list[str]:
    """The names that *name* lies below, the nearest first, without the root."""
    return [name[label.start():] for label in itertools.islice(_LABEL.finditer(name), 1, None)]


def at_or_above(name: str) -> list[str]:
    """*name*, and then as :func:`above`."""
    return [name, *above(name)]


def from_the_root(name: str) -> str:
    """The labels in the opposite order: exactly the names below another one begin with what that one is so."""
    return ''.join(f'{label}.' for label in reversed(_LABEL.findall(name)))
