"""Mistakes in the configuration: all are collected and raised as one error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from designate_pool.errors import BadConfiguration


class ConfigErrors:
    """The mistakes, each with its section and option, in the order in which they were found."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, section: str, option: str | None, why: str) -> None:
        """Note a mistake, unless it has been noted already.

        :param option: None if the whole section is wrong
        :param why: must not contain a secret
        """
        self.add_line(f'[{section}] {option}: {why}' if option else f'[{section}] {why}')

    def add_line(self, line: str) -> None:
        """As :meth:`add`, for a mistake that is in no section: a whole file is wrong."""
        if line not in self._lines:
            self._lines.append(line)

    def unknown(self, section: str, option: str, known: Iterable[str]) -> None:
        """Note an option that does not exist."""
        self.add(section, option, f'there is no such option{hint(option, known)}')

    def raise_if_any(self) -> None:
        """Raise BadConfiguration, with every mistake on its own line, if there is any."""
        if self._lines:
            raise BadConfiguration(count=len(self._lines), listing=''.join(f'\n  {line}' for line in self._lines))


def hint(word: str, known: Iterable[str]) -> str:
    """``; did you mean ...?`` if *word* is similar to one of *known*, else an empty text."""
    close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.7)
    return f'; did you mean {close[0]}?' if close else ''
