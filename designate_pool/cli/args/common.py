"""Arguments that several commands have, and names of things in them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any


def add_zone(parser: argparse.ArgumentParser, **options: Any) -> None:
    parser.add_argument('zone', metavar='ZONE', **{'help': 'name or id; the final dot may be left out', **options})


def add_pool(parser: argparse.ArgumentParser, **options: Any) -> None:
    parser.add_argument('pool', metavar='POOL',
                        **{'help': 'name, or id or the first four or more digits of it', **options})


def add_recordset(parser: argparse.ArgumentParser) -> None:
    add_zone(parser)
    parser.add_argument('recordset', metavar='RECORDSET', help='id, or name: www, @ for the zone itself, or in full')
    parser.add_argument('type', metavar='TYPE', nargs='?', help='needed where the name has recordsets of several types')


def add_attributes(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option of scheduling attributes.

    :param what: what they are for
    """
    parser.add_argument('--attribute', action=_Attribute, metavar='NAME=VALUE', dest='attributes',
                        help=f'an attribute {what}; may be given again')


class _Attribute(argparse.Action):
    """Collects attributes in a mapping."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        name, equals, value = str(values).partition('=')
        if not name or not equals:
            parser.error(f'{values!r} is not an attribute like service_tier=gold')
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), name: value})


def add_page(parser: argparse.ArgumentParser, keys: Sequence[str]) -> None:
    """Options for part of a long list and its order.

    :param keys: what it can be sorted by
    """
    parser.add_argument('--limit', type=positive, metavar='N', help='at most this many')
    parser.add_argument('--marker', metavar='ID', help='begin after the entry with this id')
    parser.add_argument('--sort', type=_order(keys), metavar='KEY[:desc]',
                        help=f'let the API sort by one of {", ".join(keys)}; --sort-column sorts what was fetched')


def page(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """What :func:`add_page` found, as :meth:`designate_pool.cli.http.client.Client.every` takes it."""
    key, direction = parsed_args.sort or (None, None)
    return {'most': parsed_args.limit, 'marker': parsed_args.marker, 'sort_key': key, 'sort_dir': direction}


def positive(text: str) -> int:
    """The type of an option that is a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'{text!r} is no whole number from 1')
    return int(text)


def _order(keys: Sequence[str]) -> Any:
    def order(text: str) -> tuple[str, str]:
        key, _, direction = text.partition(':')
        if key not in keys or direction not in ('', 'asc', 'desc'):
            raise argparse.ArgumentTypeError(f'{text!r} is none of {", ".join(keys)}, with :desc or without')
        return key, direction or 'asc'

    return order


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
