"""Names as text: absolute, lower case, as dnspython writes them; a backslash escapes a dot."""

from __future__ import annotations

import itertools
import re

_LABEL = re.compile(r'(?:\\.|[^\\.])+')


def above(name: str) -> list[str]:
    """The names above *name*, the nearest first, without the root."""
    return [name[label.start():] for label in itertools.islice(_LABEL.finditer(name), 1, None)]


def at_or_above(name: str) -> list[str]:
    """*name* itself, followed by the names of :func:`above`."""
    return [name, *above(name)]


def from_the_root(name: str) -> str:
    """The labels of *name* in reverse order: it lies below another exactly if its result starts with that one's."""
    return ''.join(f'{label}.' for label in reversed(_LABEL.findall(name)))
