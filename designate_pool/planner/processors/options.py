"""What processors check in the options that they are given."""

from __future__ import annotations

import re
from collections.abc import Iterable

from designate_pool.errors import InvalidField, ProcessorException
from designate_pool.protocol.rrset import normal_name


def words(processor: str, option: str, given: Iterable[object]) -> list[str]:
    """*given* as texts.

    :raises ProcessorException: for one text, of which each letter would be taken for a word, and for no list at all
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ProcessorException(processor=processor, why=f'{option} has to be a list, not {given!r}')
    return [str(each) for each in given]


def whole(processor: str, option: str, given: object) -> int:
    """*given* as a whole number that is not negative; a text of digits, as the environment has them, is one.

    :raises ProcessorException: for anything else
    """
    if isinstance(given, str) and given.isdecimal():
        return int(given)
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise ProcessorException(processor=processor, why=f'{option} has to be a whole number, not {given!r}')
    return given


def patterns(processor: str, option: str, given: Iterable[object]) -> tuple[frozenset[str], list[re.Pattern[str]]]:
    """The plain ones of *given*, and those that are regular expressions, written between slashes.

    :raises ProcessorException: for what begins with a slash and is no regular expression between two
    """
    exact, found = set(), []
    for text in words(processor, option, given):
        if not text.startswith('/'):
            exact.add(text)
        elif len(text) < 2 or not text.endswith('/'):
            raise ProcessorException(processor=processor, why=f'{option}: {text!r} has no slash at its end')
        else:
            found.append(pattern(processor, option, text[1:-1]))
    return frozenset(exact), found


def pattern(processor: str, option: str, given: object) -> re.Pattern[str]:
    """
    :raises ProcessorException: for what is no regular expression
    """
    try:
        return re.compile(str(given))
    except re.error as error:
        raise ProcessorException(processor=processor,
                                 why=f'{option}: {given!r} is no regular expression ({error})') from None


def domains(processor: str, option: str, given: Iterable[object]) -> list[str]:
    """*given* as names in normal form; the final dot may be left out, and one at the beginning is allowed.

    :raises ProcessorException: for what is no name
    """
    try:
        return [normal_name(f'{each.strip(".").lower()}.') for each in words(processor, option, given)]
    except InvalidField as error:
        raise ProcessorException(processor=processor, why=f'{option}: {error}') from error
