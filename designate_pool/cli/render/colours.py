"""Colour on a terminal, by state, and nowhere else."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TextIO

GREEN, RED, YELLOW, CYAN, DIM, BOLD = '32', '31', '33', '36', '2', '1'
_BY_WORD = {
    **dict.fromkeys(('ACTIVE', 'SUCCESS', 'COMPLETE', 'UP', 'APPLIED', 'active', 'ok'), GREEN),
    **dict.fromkeys(('ERROR', 'DOWN', 'removed', 'unreachable', 'failed'), RED),
    **dict.fromkeys(('PENDING', 'PARKED', 'joining', 'draining', 'maintenance'), YELLOW),
}
_MARKS = {'done': ('✓', GREEN), 'failed': ('✗', RED), 'pending': ('…', YELLOW)}
_PLAIN_MARKS = {'done': '+', 'failed': 'x', 'pending': '.'}
#: A word that has a cell of a table to itself.
_CELL = re.compile(f'(?<=\\| )({"|".join(_BY_WORD)})(?= *\\|)')


def wanted(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether *stream* is a terminal that shows colours, and whoever looks at it wants them (https://no-color.org)."""
    return stream.isatty() and not environ.get('NO_COLOR') and environ.get('TERM') != 'dumb'


def paint(text: str, colour: str) -> str:
    return f'\033[{colour}m{text}\033[0m'


def by_word(text: str, word: str | None = None) -> str:
    """*text* in the colour of the state *word*, which is itself if not given."""
    colour = _BY_WORD.get((text if word is None else word).strip())
    return text if colour is None else paint(text, colour)


def mark(state: str, stream: TextIO) -> str:
    """``done``, ``failed`` or ``pending`` as one character, of ASCII where *stream* has no others."""
    try:
        text, colour = _MARKS[state]
        text.encode(getattr(stream, 'encoding', None) or 'utf-8')
    except UnicodeEncodeError:
        text = _PLAIN_MARKS[state]
    return paint(text, colour) if wanted(stream) else text


def table(text: str) -> str:
    """A table with the states in its cells in their colours."""
    return _CELL.sub(lambda found: by_word(found[1]), text)
