"""What is wrong with a zone file, gathered so that all of it is told at once, each with its line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

#: Mistakes that are told at once, and how much of a wrong line is shown.
MOST_MISTAKES, _SHOWN = 20, 60

#: Where a mistake is (``line 3``), and why it is one.
Mistake = tuple[str, str]


class ZoneFileErrors:
    """
    :param error: makes the error that tells them
    :param most: after so many the rest is not read
    """

    def __init__(self, error: Callable[[Sequence[Mistake]], Exception], most: int = MOST_MISTAKES) -> None:
        self._error = error
        self._most = most
        self._found: list[Mistake] = []

    def add(self, where: str, why: str, line: str | None = None) -> None:
        """
        :param line: the text that it is about
        :raises Exception: that of :meth:`refuse`, when there are so many that the rest need not be read
        """
        self._found.append((where, why if line is None else f'{why}: {_shown(line)}'))
        if len(self._found) >= self._most:
            if self._most > 1:
                self._found.append(('zone file', f'after {self._most} mistakes the rest was not read'))
            self.refuse()

    def mention(self, word: str) -> bool:
        """Whether one of them is about a line with *word* in it."""
        return any(word in why.upper().split() for _, why in self._found)

    def refuse(self) -> None:
        """
        :raises Exception: when there are any
        """
        if self._found:
            raise self._error(self._found) from None


def line_field(number: int) -> str:
    """What errors call a line."""
    return f'line {number}'


def _shown(line: str) -> str:
    """*line*, or its beginning, in quotes."""
    line = line.strip()
    return repr(line if len(line) <= _SHOWN else f'{line[:_SHOWN]}…')
