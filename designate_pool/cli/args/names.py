"""Names as people type them, completed.  Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: The least digits that are taken for the beginning of an id.
PREFIX = 4
_ID = re.compile('[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}')


def is_id(text: str) -> bool:
    """Whether *text* is a UUID, with or without dashes."""
    return _ID.fullmatch(text) is not None


def is_absolute(name: str) -> bool:
    """Whether *name* ends with a dot that is not escaped (RFC 1035 section 5.1)."""
    before = name.removesuffix('.')
    return before != name and (len(before) - len(before.rstrip('\\'))) % 2 == 0


def of_zone(name: str) -> str:
    """A zone's name with its final dot."""
    return name if is_absolute(name) else name + '.'


def in_zone(name: str, zone: str) -> str:
    """A recordset's name in the zone *zone* (absolute): ``@`` is the zone itself, ``www`` is completed with it.

    A name that ends with the zone's, only without the final dot, is taken as meant: ``www.example.com`` in
    ``example.com.`` gets its dot and not the zone a second time.
    """
    if name == '@':
        return zone
    if is_absolute(name):
        return name
    before = f'{name}.'[:-len(zone)]
    if zone != '.' and f'{name}.'.lower().endswith(zone.lower()) and (not before or is_absolute(before)):
        return name + '.'
    return f'{name}.' if zone == '.' else f'{name}.{zone}'


def is_called(given: str, thing: Mapping[str, Any]) -> bool:
    """Whether *given* is the id or the name of *thing*, as the API shows it; final dots are ignored."""
    return _plain(given) == _plain(thing['id']) \
        or 'name' in thing and given.lower().rstrip('.') == thing['name'].lower().rstrip('.')


def may_be_called(given: str, thing: Mapping[str, Any]) -> bool:
    """Whether *given* is the host of *thing* or the beginning of its id; others may have the same."""
    plain = _plain(given)
    return given.lower() == thing.get('host') or len(plain) >= PREFIX and _plain(thing['id']).startswith(plain)


def _plain(id: str) -> str:
    return id.replace('-', '').lower()
