"""Arguments that many commands have: which zone, which recordset, which page of a list."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
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
    """
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
