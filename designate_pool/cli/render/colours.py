"""Colours of states, on a terminal only."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TextIO

GREEN, RED, YELLOW, CYAN, BOLD = '32', '31', '33', '36', '1'
_BY_WORD = {
    **dict.fromkeys(('ACTIVE', 'SUCCESS', 'COMPLETE', 'UP', 'APPLIED', 'active', 'ok'), GREEN),
    **dict.fromkeys(('ERROR', 'DOWN', 'removed', 'unreachable', 'failed'), RED),
    **dict.fromkeys(('PENDING', 'PARKED', 'joining', 'draining', 'maintenance'), YELLOW),
}
_MARKS = {'done': ('✓', GREEN), 'failed': ('✗', RED), 'pending': ('…', YELLOW)}
_PLAIN_MARKS = {'done': '+', 'failed': 'x', 'pending': '.'}
#: A state that is all there is in a cell of a table.
_CELL = re.compile(f'(?<=\\| )({"|".join(_BY_WORD)})(?= *\\|)')


def wanted(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether *stream* is a terminal with colours that the user has not turned off (https://no-color.org)."""
    return stream.isatty() and not environ.get('NO_COLOR') and environ.get('TERM') != 'dumb'


def paint(text: str, colour: str) -> str:
    return f'\033[{colour}m{text}\033[0m'


def by_word(text: str, word: str | None = None) -> str:
    """*text* in the colour of the state *word*; of the state *text* if none is given."""
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
    """A table with its states coloured."""
    return _CELL.sub(lambda found: by_word(found[1]), text)
