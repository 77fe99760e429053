"""The mistakes of a configuration: all of them are collected, then raised as one error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from designate_pool.errors import BadConfiguration


class ConfigErrors:
    """Notes of what is wrong, by section and option, in the order in which they were found."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, section: str, option: str | None, why: str) -> None:
        """Note one mistake; the same one again is not noted twice.

        :param option: None when the section as a whole is wrong
        :param why: must not contain a secret
        """
        self._note(f'[{section}] {option}: {why}' if option else f'[{section}] {why}')

    def add_file(self, why: str) -> None:
        """Note that a file as a whole is wrong; *why* names it."""
        self._note(why)

    def unknown(self, section: str, option: str, known: Iterable[str]) -> None:
        """Note an option that nobody reads."""
        self.add(section, option, f'there is no such option{hint(option, known)}')

    def raise_if_any(self) -> None:
        """
        :raises BadConfiguration: with every mistake on a line of its own
        """
        if self._lines:
            raise BadConfiguration(count=len(self._lines), listing=''.join(f'\n  {line}' for line in self._lines))

    def _note(self, line: str) -> None:
        if line not in self._lines:
            self._lines.append(line)


def hint(word: str, known: Iterable[str]) -> str:
    """``; did you mean ...?`` when *word* is nearly one of *known*, else nothing."""
    close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.7)
    return f'; did you mean {close[0]}?' if close else ''
