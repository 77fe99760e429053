"""Keyset pagination and search conditions for all tables."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.errors import InvalidField
from designate_pool.model import PageRequest
from designate_pool.storage.sql.database import Tx

#: Rows of a page if no limit is given.
DEFAULT_LIMIT = 1000
MAX_LIMIT = 10000
#: Parameters of a page: how many rows it has, and the id and the value of the row before it.
_LIMIT = sa.bindparam('rows_of_page', type_=sa.Integer)
_MARKER, _MARKED = 'marker', 'value_of_marker'
#: The character before a special one in the patterns of LIKE; not a backslash, which names may contain.
ESCAPE = '|'
#: What MariaDB says when a text that is not ASCII is searched for in a column of ASCII.
_OTHER_CHARACTERS = 1267


def all_rows(tx: Tx, statement: Any, parameters: Mapping[str, object]) -> Sequence[Any]:
    """The rows of a statement, read at once: one by one takes longer."""
    return tx.execute(statement, parameters).all()


def one_page(tx: Tx, statement: sa.Select[Any], key: sa.Column[Any], sort_keys: Mapping[str, sa.Column[Any]],
             page: PageRequest, default_key: str = 'name', among: Sequence[Any] = (),
             parameters: Mapping[str, Any] | None = None, conditions: Sequence[Any] = (),
             newest_first: bool = False,
             execute: Callable[[Tx, Any, Mapping[str, object]], Sequence[Any]] = all_rows) -> list[Any]:
    """The rows of *statement* that follow the row of the page's marker.

    Rows are ordered by the sort key and then by *key*, the table's id, so that the order is total.

    :param sort_keys: columns by which rows may be sorted; rows without a value are last, in descending order first
    :param among: conditions on the row of the marker, so that it reveals nothing of rows that the requester may not see
    :param page: whose criterion has been made *conditions*, or is in the *statement*
    :param parameters: of a *statement* that is a constant, whose pages are built once, except with *conditions*:
        building one takes longer than reading a few rows
    :param conditions: further ones, on the rows
    :param newest_first: whether the order is descending if neither a sort key nor a direction is given
    :param execute: makes the rows of a statement with its parameters
    :raises InvalidField: for a sort key, direction, limit or marker that does not exist
    """
    marker, limit, sort_key, sort_dir = page.marker, page.limit, page.sort_key, page.sort_dir
    column = sort_keys.get(sort_key or default_key)
    if column is None:
        raise InvalidField(field='sort_key', why=f'unknown; known are {", ".join(sort_keys)}',
                           type='invalid_sort_key')
    if sort_dir not in (None, 'asc', 'desc'):
        raise InvalidField(field='sort_dir', why='neither asc nor desc', type='invalid_sort_dir')
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT):
        raise InvalidField(field='limit', why=f'not a whole number from 1 to {MAX_LIMIT}', type='invalid_limit')
    values = {**(parameters or {}), _LIMIT.key: limit or DEFAULT_LIMIT}
    start = _Start.OF_ALL
    if marker is not None:
        values |= {_MARKER: marker, _MARKED: (marked := _marked(tx, key, column, marker, among))}
        start = _Start.OF_UNSET if marked is None else _Start.OF_SET
    build = _page.__wrapped__ if parameters is None or conditions else _page
    descending = sort_dir == 'desc' or newest_first and sort_key is None and sort_dir is None
    query = build(statement.where(*conditions) if conditions else statement, key, column, descending, start)
    try:
        return list(execute(tx, query, values))
    except exc.OperationalError as error:
        if error.orig is None or error.orig.args[:1] != (_OTHER_CHARACTERS,):
            raise
        return []  # as on other databases: no row has such a text


class _Start(enum.Enum):
    """Where a page begins: at the first row, or after one that has a value in the sort column, or has none."""

    OF_ALL = enum.auto()
    OF_SET = enum.auto()
    OF_UNSET = enum.auto()


def _marked(tx: Tx, key: sa.Column[Any], column: sa.Column[Any], marker: str, among: Sequence[Any]) -> Any:
    is_key = isinstance(marker, str) and '\0' not in marker
    statement = _by_marker(key, column).where(*among) if among else _by_marker(key, column)
    row = tx.execute(statement, {_MARKER: marker}).first() if is_key else None
    if row is None:
        raise InvalidField(field='marker', why='no such id', type='invalid_marker')
    return row[0]


@functools.lru_cache(maxsize=256)
def _by_marker(key: sa.Column[Any], column: sa.Column[Any]) -> sa.Select[Any]:
    return sa.select(column).where(key == sa.bindparam(_MARKER, type_=key.type))


@functools.lru_cache(maxsize=256)
def _page(statement: sa.Select[Any], key: sa.Column[Any], column: sa.Column[Any], descending: bool,
          start: _Start) -> sa.Select[Any]:
    if start is not _Start.OF_ALL:
        statement = statement.where(_after(key, column, descending, start is _Start.OF_UNSET))
    order = [*_unset(column), column, key] if column is not key else [key]
    return statement.order_by(*(expression.desc() if descending else expression for expression in order)).limit(_LIMIT)


def _after(key: sa.Column[Any], column: sa.Column[Any], descending: bool, is_unset: bool) -> Any:
    marker, value = sa.bindparam(_MARKER, type_=key.type), sa.bindparam(_MARKED, type_=column.type)
    further = key < marker if descending else key > marker
    if is_unset:
        same = sa.and_(column.is_(None), further)
        return sa.or_(column.is_not(None), same) if descending else same
    if column.nullable:
        beyond = column < value if descending else sa.or_(column > value, column.is_(None))
        return sa.or_(beyond, sa.and_(column == value, further))
    # Spelled out, since MariaDB uses no index for the comparison of row values.
    if descending:
        return sa.and_(column <= value, sa.or_(column < value, further))
    return sa.and_(column >= value, sa.or_(column > value, further))


def _unset(column: sa.Column[Any]) -> list[Any]:
    """The sort expression that puts rows without a value last, which databases do differently by default."""
    return [sa.case((column.is_(None), 1), else_=0)] if column.nullable else []


def like(column: Any, value: str) -> Any:
    """Whether *column* matches *value*, in which ``*`` stands for anything."""
    if '*' not in value:
        return column == value
    return column.like(escaped(value).replace('*', '%'), escape=ESCAPE)


def escaped(text: str) -> str:
    """*text* as a pattern that matches only itself, with :data:`ESCAPE`."""
    for special in (ESCAPE, '%', '_'):
        text = text.replace(special, ESCAPE + special)
    return text


def number(field: str, value: str) -> int:
    """The value of a search key that is a number.

    :raises InvalidField: when *value* is none
    """
    if not value.isascii() or not value.isdigit() or len(value) > 10:
        raise InvalidField(field=field, why='not a whole number')
    return int(value)


def conditions(criterion: Mapping[str, Any], known: Mapping[str, Any]) -> list[Any]:
    """The conditions of a request's search keys.

    :param known: by search key a column, whose value is compared, or a function of the value that makes the condition
    :raises InvalidField: for an unknown search key, or a value that is not a text
    """
    refuse_unknown(criterion, known)
    return [known[key] == value if isinstance(known[key], sa.ColumnElement) else known[key](value)
            for key, value in criterion.items()]


def refuse_unknown(criterion: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Check the search keys of a request and their values.

    :raises InvalidField: for an unknown search key, or a value that is not a text
    """
    for key, value in criterion.items():
        if key not in known:
            raise InvalidField(field=str(key), why=f'cannot be searched by; {", ".join(known)} can')
        if not isinstance(value, str) or '\0' in value:
            raise InvalidField(field=key, why='not a text')
