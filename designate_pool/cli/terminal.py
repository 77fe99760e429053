"""Colours on a terminal, output that is drawn anew in place, and times for people."""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TextIO

GREEN, RED, YELLOW, CYAN, BOLD = '32', '31', '33', '36', '1'
_BY_WORD = {
    **dict.fromkeys(('ACTIVE', 'SUCCESS', 'COMPLETE', 'UP', 'APPLIED', 'active', 'ok'), GREEN),
    **dict.fromkeys(('ERROR', 'DOWN', 'removed', 'unreachable', 'failed'), RED),
    **dict.fromkeys(('PENDING', 'PARKED', 'joining', 'draining', 'maintenance'), YELLOW),
}
_MARKS = {'done': ('+', GREEN), 'failed': ('x', RED), 'pending': ('.', YELLOW)}
#: A state that is all there is in a cell of a table.
_CELL = re.compile(f'(?<=\\| )({"|".join(_BY_WORD)})(?= *\\|)')


def wanted(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether *stream* is a terminal with colours that the user has not turned off (https://no-color.org)."""
    return stream.isatty() and not environ.get('NO_COLOR') and environ.get('TERM') != 'dumb'


def paint(text: str, colour: str) -> str:
    """*text* in a colour; callers ask :func:`wanted` whether the stream takes colours."""
    return f'\033[{colour}m{text}\033[0m'


def by_word(text: str, word: str | None = None) -> str:
    """*text* in the colour of the state *word*; of the state *text* if none is given."""
    colour = _BY_WORD.get((text if word is None else word).strip())
    return text if colour is None else paint(text, colour)


def mark(state: str, stream: TextIO) -> str:
    """``done``, ``failed`` or ``pending`` as one character."""
    text, colour = _MARKS[state]
    return paint(text, colour) if wanted(stream) else text


def table(text: str) -> str:
    """A table with its states coloured."""
    return _CELL.sub(lambda found: by_word(found[1]), text)


#: Escape sequences of colours, which take no columns.
_SEQUENCE = re.compile('\033\\[[0-9;]*m')
RESET = '\033[0m'
#: Control characters, and those that change the direction of text: what is shown may be written by others.
_CONTROL = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]')


def is_live(stream: TextIO) -> bool:
    """Whether lines written to *stream* can be redrawn."""
    return stream.isatty() and os.environ.get('TERM') != 'dumb'


class LiveLines:
    """Lines that are redrawn in place; as many as the terminal has room for."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._height = 0

    def draw(self, lines: Sequence[str]) -> None:
        """Draw *lines* in place of the last ones, cut to the width; the number of surplus lines stands for them."""
        size = shutil.get_terminal_size()
        room = max(1, size.lines - 1)
        if len(lines) > room:
            lines = [*lines[:room - 1], f'and {len(lines) - room + 1} more']
        back = f'\033[{self._height}A' if self._height else ''
        # Clear each line behind its end, and at last the lines below that an earlier, longer drawing left.
        self._stream.write(back + ''.join(f'\r{fit(line, size.columns)}\033[K\n' for line in lines) + '\033[J')
        self._stream.flush()
        self._height = len(lines)


def sanitized(text: str) -> str:
    """*text*, without colours, with its control characters replaced."""
    return _CONTROL.sub('\ufffd', text)


def fit(line: str, width: int) -> str:
    """*line* cut so that no terminal of *width* columns breaks it."""
    kept, used = [], 0
    for part in re.split(f'({_SEQUENCE.pattern})', line):
        if _SEQUENCE.fullmatch(part):
            kept.append(part)
            continue
        for letter in part:
            if not letter.isprintable():
                letter = ' '
            used += _columns(letter)
            if used > width:
                return ''.join(kept) + (RESET if _SEQUENCE.search(line) else '')
            kept.append(letter)
    return ''.join(kept)


def width_of(line: str) -> int:
    """How many columns *line* takes."""
    return sum(map(_columns, _SEQUENCE.sub('', line)))


def padded(text: str, width: int) -> str:
    """*text* with blanks behind it up to *width* columns."""
    return text + ' ' * (width - width_of(text))


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in 'WF' else 1


def duration(seconds: float) -> str:
    """Seconds in their two largest units."""
    if seconds < 10:
        return f'{seconds * 1000:.0f} ms' if seconds < 1 else f'{seconds:.1f} s'
    whole = int(seconds)
    for size, unit, smaller, lesser in ((86400, 'd', 3600, 'h'), (3600, 'h', 60, 'min'), (60, 'min', 1, 's')):
        if whole >= size:
            rest = whole % size // smaller
            return f'{whole // size} {unit} {rest} {lesser}' if rest else f'{whole // size} {unit}'
    return f'{whole} s'


def moment(text: str) -> datetime:
    """A time as the API writes it: in UTC, without saying so."""
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
