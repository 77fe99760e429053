"""Checks of single fields: each returns the value or raises an error that names the field."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from designate_pool.errors import DomainNotFound, InvalidField, PoolNotFound
from designate_pool.model import Outcome
from designate_pool.protocol.names_and_rdata import MAX_TTL, is_ttl
from designate_pool.serial import SPACE

_ID = re.compile('[0-9a-f]{32}')
_UNSTORABLE = re.compile('[\0\ud800-\udfff]')
_AGE = re.compile(r'(?=\d)(?:(?P<weeks>\d+)w)?(?:(?P<days>\d+)d)?(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?'
                  r'(?:(?P<seconds>\d+)s)?', re.ASCII)
#: Characters of the attributes of a domain as JSON, and of the name or the value of one.
MOST_ATTRIBUTES, LONGEST_ATTRIBUTE = 5000, 50


@contextlib.contextmanager
def every_mistake() -> Iterator[Callable[..., Any]]:
    """Gives a function that calls a check, and returns None if that refuses.

    :raises InvalidField: at the end, with all that was refused
    """
    mistakes: list[tuple[str, str]] = []

    def check(function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except InvalidField as error:
            mistakes.extend(error.kwargs.get('all') or [(error.kwargs['field'], error.kwargs['why'])])
            return None

    yield check
    if mistakes:
        raise InvalidField.of(mistakes)


def mapping(field: str, value: Any) -> Mapping[str, Any]:
    """A mapping."""
    if not isinstance(value, Mapping):
        raise InvalidField(field=field, why='not a mapping')
    return value


def sequence(field: str, value: Any) -> Sequence[Any]:
    """A list."""
    if not isinstance(value, (list, tuple)):
        raise InvalidField(field=field, why='missing' if value is None else 'not a list')
    return value


def text(field: str, value: Any, longest: int | None = None) -> str:
    """A text that can be stored, of *longest* characters at most."""
    if value is None:
        raise InvalidField(field=field, why='missing')
    if not isinstance(value, str):
        raise InvalidField(field=field, why='not a text')
    if _UNSTORABLE.search(value):
        raise InvalidField(field=field, why='holds a character that cannot be stored')
    if longest is not None and len(value) > longest:
        raise InvalidField(field=field, why=f'longer than {longest} characters')
    return value


def optional_text(field: str, value: Any, longest: int | None = None) -> str | None:
    """A text or None, see :func:`text`."""
    return None if value is None else text(field, value, longest)


def boolean(field: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidField(field=field, why='not true or false')
    return value


def description(field: str, value: Any) -> str | None:
    """A description, or None."""
    return optional_text(field, value, 160)


def attributes(field: str, value: Any) -> str:
    """The JSON of an object of texts, as it is kept; '' for an empty one."""
    try:
        values = json.loads(text(field, value))
    except ValueError:
        raise InvalidField(field=field, why='not JSON') from None
    for name, attribute in mapping(field, values).items():
        text(field, name, LONGEST_ATTRIBUTE)
        text(f'{field}.{name}', attribute, LONGEST_ATTRIBUTE)
    return text(field, json.dumps(values, ensure_ascii=False), MOST_ATTRIBUTES) if values else ''


def ttl(field: str, value: Any) -> int:
    """Seconds, 0 to 2**31 - 1 (RFC 2181 section 8)."""
    if not is_ttl(value):
        raise InvalidField(field=field, why=f'not a whole number from 0 to {MAX_TTL}')
    return int(value)


def optional_ttl(field: str, value: Any) -> int | None:
    """A TTL or None, see :func:`ttl`."""
    return None if value is None else ttl(field, value)


def version_at(field: str, value: Any, now: datetime) -> int | datetime:
    """A version of a zone as users name it: a serial, or a time when it was there.

    A time is one of ISO 8601, in UTC if it names no zone, or an age such as 2h, 3d or 1d12h.
    """
    reference = text(field, value)
    is_number = reference.isascii() and reference.isdigit()
    if is_number and len(reference) <= 10 and int(reference) < SPACE:
        return int(reference)
    try:
        if is_number:  # which ISO 8601 also has for a time
            raise ValueError
        return _moment(reference, now, -1)
    except (ValueError, OverflowError):
        raise InvalidField(field=field, why='not a serial, nor a time such as 2030-01-31T12:00 or 2h or 3d: '
                           f'{reference}') from None


def end_at(field: str, value: Any, now: datetime) -> datetime:
    """When something ends: a time as for :func:`version_at`, or from now on for as long as 2h, 3d or 1d12h."""
    try:
        end = _moment(text(field, value), now, 1)
    except (ValueError, OverflowError):
        raise InvalidField(field=field, why=f'not a time such as 2030-01-31T12:00 or 2h or 3d: {value}') from None
    if end <= now:
        raise InvalidField(field=field, why='is not in the future')
    return end


def _moment(reference: str, now: datetime, direction: int) -> datetime:
    if age := _AGE.fullmatch(reference):
        return now + direction * timedelta(**{unit: int(count) for unit, count in age.groupdict().items() if count})
    moment = datetime.fromisoformat(reference)
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)


def refuse_unknown(given: Mapping[str, Any], prefix: str, known: Sequence[str]) -> None:
    """Refuse keys that are not *known*."""
    for key in mapping(prefix.rstrip('.') or 'values', given):
        if key not in known:
            raise InvalidField(field=f'{prefix}{key}', why=f'unknown; known are {", ".join(known)}')


def identifier(value: Any) -> str | None:
    """An id or UUID as 32 hexadecimal digits; None for anything else."""
    plain = value.replace('-', '').lower() if isinstance(value, str) else ''
    return plain if _ID.fullmatch(plain) else None


def domain_id(value: Any) -> str:
    """The id of a domain; an invalid one is answered like an unknown one."""
    plain = identifier(value)
    if plain is None:
        raise DomainNotFound(domain=value)
    return plain


def pool_id(value: Any) -> str:
    """The id of a pool, likewise."""
    plain = identifier(value)
    if plain is None:
        raise PoolNotFound(pool=value)
    return plain


def outcome(field: str, value: Any) -> Outcome:
    """An outcome by its name."""
    try:
        return Outcome(value)
    except ValueError:
        raise InvalidField(field=field, why='not SUCCESS or ERROR') from None


def serial_number(field: str, value: Any) -> int:
    """A serial number."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < SPACE:
        raise InvalidField(field=field, why=f'not a whole number from 0 to {SPACE - 1}')
    return value
