"""Checks of the options of processors."""

from __future__ import annotations

import re
from collections.abc import Iterable

from designate_pool.errors import InvalidField, ProcessorException
from designate_pool.protocol.names_and_rdata import normal_name


def string_list(processor: str, option: str, given: Iterable[object]) -> list[str]:
    """*given* as strings.

    :raises ProcessorException: when it is a single string, or no list
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ProcessorException(processor=processor, why=f'{option} must be a list, not {given!r}')
    return [str(item) for item in given]


def whole_number(processor: str, option: str, given: object) -> int:
    """*given* as a whole number from 0; a string of digits, such as from the environment, is accepted.

    :raises ProcessorException: for anything else
    """
    if isinstance(given, str) and given.isdecimal():
        return int(given)
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise ProcessorException(processor=processor, why=f'{option} must be a whole number, not {given!r}')
    return given


def split_patterns(processor: str, option: str,
                   given: Iterable[object]) -> tuple[frozenset[str], list[re.Pattern[str]]]:
    """The plain strings of *given*, and the regular expressions, which are written between slashes.

    :raises ProcessorException: for an invalid regular expression, or one without its second slash
    """
    exact, patterns = set(), []
    for text in string_list(processor, option, given):
        if not text.startswith('/'):
            exact.add(text)
        elif len(text) < 2 or not text.endswith('/'):
            raise ProcessorException(processor=processor, why=f'{option}: {text!r} has no slash at its end')
        else:
            patterns.append(pattern(processor, option, text[1:-1]))
    return frozenset(exact), patterns


def pattern(processor: str, option: str, given: object) -> re.Pattern[str]:
    """*given* as a regular expression.

    :raises ProcessorException: for an invalid regular expression
    """
    try:
        return re.compile(str(given))
    except re.error as error:
        raise ProcessorException(processor=processor,
                                 why=f'{option}: {given!r} is no regular expression ({error})') from None


def domains(processor: str, option: str, given: Iterable[object]) -> list[str]:
    """*given* as names in normal form; the final dot is optional, and a leading dot is allowed.

    :raises ProcessorException: for an invalid name
    """
    try:
        return [normal_name(f'{name.strip(".").lower()}.') for name in string_list(processor, option, given)]
    except InvalidField as error:
        raise ProcessorException(processor=processor, why=f'{option}: {error}') from error
