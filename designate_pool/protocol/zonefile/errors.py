"""Collects the mistakes of a zone file, each with its line, and reports them in one error."""

from __future__ import annotations

from collections.abc import Callable, Sequence

#: How many mistakes are reported, and how many characters of a wrong line are shown.
MOST_MISTAKES, _SHOWN = 20, 60

#: Where a mistake is (``line 3``), and why it is one.
Mistake = tuple[str, str]


class ZoneFileErrors:
    """The mistakes that were found in a zone file.

    :param error: returns the error that reports them
    :param most: after this many, the rest of the file is not read
    """

    def __init__(self, error: Callable[[Sequence[Mistake]], Exception], most: int = MOST_MISTAKES) -> None:
        self._error = error
        self._most = most
        self._found: list[Mistake] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, where: str, why: str, line: str | None = None) -> None:
        """Add a mistake.

        :param line: the text of the line
        :raises Exception: as :meth:`refuse`, when there are as many as the limit
        """
        self._found.append((where, why if line is None else f'{why}: {_shown(line)}'))
        if len(self._found) >= self._most:
            if self._most > 1:
                self._found.append(('zone file', f'after {self._most} mistakes the rest was not read'))
            self.refuse()

    def mention(self, word: str) -> bool:
        """Whether one of them is about a line that contains *word*."""
        return any(word in why.upper().split() for _, why in self._found)

    def refuse(self) -> None:
        """Refuse the file because of the mistakes so far.

        :raises Exception: when there are any
        """
        if self._found:
            raise self._error(self._found) from None


def line_field(number: int) -> str:
    """The name of a line in errors."""
    return f'line {number}'


def _shown(line: str) -> str:
    line = line.strip()
    return repr(line if len(line) <= _SHOWN else f'{line[:_SHOWN]}…')
