"""A progress bar: one line that is redrawn on a terminal, a plain line every few seconds anywhere else."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import TextIO

#: Characters between the brackets, where the terminal is wide enough.
BAR = 30
REDRAW = 0.1
EVERY = 5.0


class Bar:
    """
    :param stream: a terminal gets a bar that is redrawn, anything else lines
    :param clock: seconds from anywhere
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._clock = clock
        self._written_at: float | None = None
        self._latest = self._written = ''

    def show(self, done: int, total: int, text: str) -> None:
        """Show the progress, unless it was shown a moment ago."""
        self._latest = drawn(done, total, text, shutil.get_terminal_size().columns) if self._terminal \
            else f'{percent(done, total)} %  {text}'
        pause = REDRAW if self._terminal else EVERY
        if self._written_at is None or self._clock() - self._written_at >= pause:
            self._write()

    def end(self) -> None:
        """Leave the last state on the screen, and the cursor on a line of its own."""
        if self._latest != self._written:
            self._write()
        if self._terminal and self._written:
            self._stream.write('\n')
            self._stream.flush()
        self._latest = self._written = ''
        self._written_at = None

    def _write(self) -> None:
        # \033[K clears what a longer line left behind.
        self._stream.write(f'\r{self._latest}\033[K' if self._terminal else f'{self._latest}\n')
        self._stream.flush()
        self._written, self._written_at = self._latest, self._clock()


def drawn(done: int, total: int, text: str, width: int) -> str:
    """The bar, shorter than *width* so that it stays on one line."""
    share = percent(done, total)
    tail = f' {share:3} %  {text}'
    room = min(BAR, width - 3 - len(tail))
    if room < 5:
        return tail.strip()[:max(0, width - 1)]
    full = room * share // 100
    return f'[{"#" * full}{"-" * (room - full)}]{tail}'


def percent(done: int, total: int) -> int:
    """0 to 100; 100 only when nothing is left."""
    return 100 if done >= total else max(0, 100 * done // total)
