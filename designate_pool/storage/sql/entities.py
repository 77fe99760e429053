"""The rows of a table as objects of a dataclass."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.deadline import Turns
from designate_pool.errors import LostRace
from designate_pool.model import PageRequest
from designate_pool.storage.sql import pages
from designate_pool.storage.sql.columns import Time
from designate_pool.storage.sql.database import Tx

T = TypeVar('T')
#: How many ids one statement names.
CHUNK = 500


class Entities(Generic[T]):
    """A table whose rows are objects of one kind.

    :param kind: the dataclass; the table has a column for each of its fields, and the key ``id``
    :param sort_keys: columns by which lists are sorted, the default one first
    :param criteria: what lists are searched by: a column, whose value is compared, or a function of the value that
        makes the condition
    :param newest_first: whether the order of lists is descending unless another one is asked for
    :param as_json: whether rows are read by :func:`rows_as_json`
    :param joined: fields that are not columns of the table: expressions
    """

    def __init__(self, kind: type[T], table: sa.Table, sort_keys: Sequence[str] = (),
                 criteria: Mapping[str, Any] | None = None, newest_first: bool = False, as_json: bool = False,
                 **joined: Any) -> None:
        self.kind = kind
        self.table = table
        self.fields = tuple(field.name for field in dataclasses.fields(kind))  # type: ignore[arg-type]
        self.columns = self.columns_with(joined)
        self.select = sa.select(*self.columns)
        self._joined = joined
        self._sort_keys = {name: table.c[name] for name in sort_keys}
        self._criteria = criteria or {}
        self._newest_first = newest_first
        #: The rows of a statement on :attr:`select`, which may have more columns, with its parameters.
        self.rows: Callable[[Tx, Any, Mapping[str, object]], Sequence[Sequence[Any]]] = (
            rows_as_json if as_json else pages.all_rows)
        # Built once: building a statement takes as long as executing it.
        self._by_id = self.select.where(table.c.id == sa.bindparam('id')) if 'id' in table.c else self.select
        self._locked = self._by_id.with_for_update(of=table)

    def columns_with(self, joined: Mapping[str, sa.ColumnElement[Any]]) -> tuple[sa.ColumnElement[Any], ...]:
        """The columns of a statement that has other expressions for the fields that are not columns of the table."""
        return tuple(joined[name].label(name) if name in joined else self.table.c[name] for name in self.fields)

    def get(self, tx: Tx, entity_id: str, *conditions: Any) -> T | None:
        """One entity by its id."""
        return self.one(tx, self._by_id.where(*conditions) if conditions else self._by_id, id=entity_id)

    def lock(self, tx: Tx, entity_id: str, *conditions: Any) -> T | None:
        """As :meth:`get`, locked until this transaction ends."""
        return self.one(tx, self._locked.where(*conditions) if conditions else self._locked, id=entity_id)

    def one(self, tx: Tx, statement: sa.Select[Any], **parameters: object) -> T | None:
        """The first entity that a statement on :attr:`select` finds."""
        return next(iter(self.all(tx, statement, **parameters)), None)

    def all(self, tx: Tx, statement: sa.Executable, **parameters: object) -> list[T]:
        """All entities that a statement on :attr:`select` finds."""
        return [self.kind(*row) for row in self.rows(tx, statement, parameters)]

    def find(self, tx: Tx, page: PageRequest, *among: Any, select: sa.Select[Any] | None = None,
             **parameters: object) -> list[T]:
        """The entities of a page.

        :param among: conditions on all that the requester may see
        :param select: instead of :attr:`select`, with these conditions; a constant if there are *parameters*, or no
            conditions
        :raises InvalidField: for an unknown criterion, or as :func:`designate_pool.storage.sql.pages.one_page`
        """
        if select is None:
            select = self.select.where(*among) if among else self.select
        return [self.kind(*row) for row in pages.one_page(
            tx, select, self.table.c.id, self._sort_keys, page,
            next(iter(self._sort_keys)), among, None if among and not parameters else parameters,
            pages.conditions(page.criterion, self._criteria), self._newest_first, self.rows)]

    def values(self, entity: T) -> dict[str, Any]:
        """The columns of an entity."""
        return {name: getattr(entity, name) for name in self.fields if name not in self._joined}

    def insert(self, tx: Tx, entity: T) -> None:
        """Store a new entity.

        :raises LostRace: when another transaction has taken its place meanwhile
        """
        with lost_race(f'entry of {self.table.name}'):
            tx.execute(self.table.insert(), self.values(entity))

    def update(self, tx: Tx, entity_id: str, now: datetime, **values: Any) -> None:
        """Write values of a locked entity that has a version.

        :raises LostRace: as :meth:`insert`
        """
        with lost_race(f'entry of {self.table.name}'):
            tx.execute(self.table.update().where(self.table.c.id == entity_id).values(
                updated_at=now, version=self.table.c.version + 1, **values))

    def delete(self, tx: Tx, entity_id: str) -> bool:
        """Delete an entity; whether it existed."""
        return tx.execute(self.table.delete().where(self.table.c.id == entity_id)).rowcount > 0


def rows_as_json(tx: Tx, statement: sa.Executable, parameters: Mapping[str, object]) -> Sequence[Sequence[Any]]:
    """The rows of a statement of many columns, none of octets, each of which MariaDB puts into one text.

    PyMySQL takes longer to read the descriptions of 50 columns than the database to find the row.
    """
    if tx.dialect.name != 'mysql' or not isinstance(statement, sa.Select):
        return pages.all_rows(tx, statement, parameters)
    packed, converters = _packed(statement, tx.dialect)
    return [_values(text, converters) for text in tx.execute(packed, parameters).scalars()]


def _values(text: str, converters: Iterable[tuple[int, Callable[[Any], Any]]]) -> list[Any]:
    row: list[Any] = json.loads(text)
    for number, convert in converters:
        if row[number] is not None:
            row[number] = convert(row[number])
    return row


def all_of_each(tx: Tx, *queries: tuple[Entities[Any], sa.Select[Any]], **parameters: object) -> list[list[Any]]:
    """The entities that each statement finds, in the order of the statements; from MariaDB in one round trip.

    :param queries: tables whose rows are read as JSON, and statements on their :attr:`~Entities.select`
    :param parameters: of all statements
    """
    if tx.dialect.name != 'mysql':
        return [entities.all(tx, statement, **parameters) for entities, statement in queries]
    union, converters = _united(tuple(statement for _, statement in queries), tx.dialect)
    lists: list[list[Any]] = [[] for _ in queries]
    for number, text in tx.execute(union, parameters):
        lists[number].append(queries[number][0].kind(*_values(text, converters[number])))
    return lists


@functools.lru_cache(maxsize=20)
def _united(statements: Sequence[sa.Select[Any]],
            dialect: sa.Dialect) -> tuple[sa.CompoundSelect[Any], Sequence[Sequence[tuple[int, Callable[[Any], Any]]]]]:
    """Statements as one, whose rows have the number of their statement first; and the converters of each."""
    packed = [_packed(statement, dialect) for statement in statements]
    return (sa.union_all(*(statement.with_only_columns(sa.literal_column(str(number)), *statement.selected_columns)
                           for number, (statement, _) in enumerate(packed))),
            [converters for _, converters in packed])


@functools.lru_cache(maxsize=200)
def _packed(statement: sa.Select[Any],
            dialect: sa.Dialect) -> tuple[sa.Select[Any], Sequence[tuple[int, Callable[[Any], Any]]]]:
    """A statement that has each row as an array in JSON; and what makes values of its items, by their numbers."""
    columns = statement.selected_columns
    converters = [(number, convert) for number, column in enumerate(columns) if (
        convert := _time if isinstance(column.type, Time) else
        column.type.dialect_impl(dialect).result_processor(dialect, None)) is not None]
    return statement.with_only_columns(sa.func.json_array(*columns)), converters


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def chunks(values: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """*values* in lists of at most *size*; between two of them other green threads may run."""
    source, turns = iter(values), Turns()
    part = list(itertools.islice(source, size))
    while part:
        yield part
        if part := list(itertools.islice(source, size)):
            turns.give()


def delete_all(tx: Tx, column: sa.Column[Any], values: Iterable[Any]) -> None:
    """Delete the rows of a column's table that have one of these values in it."""
    for part in chunks(values):
        tx.execute(sa.delete(column.table).where(column.in_(part)))


def values_among(tx: Tx, column: sa.Column[T], values: Iterable[T], *conditions: Any) -> set[T]:
    """Those of *values* that a column has in rows that meet conditions."""
    return {value for part in chunks(values)
            for value in tx.execute(sa.select(column).where(column.in_(part), *conditions)).scalars()}


def count(tx: Tx, statement: sa.Select[Any], most: int | None = None) -> int:
    """How many rows a statement finds; counted up to *most*."""
    return int(tx.execute(sa.select(sa.func.count()).select_from(statement.limit(most).subquery())).scalar_one())


def exists(tx: Tx, table: sa.FromClause, *conditions: Any) -> bool:
    """Whether a row of a table meets all conditions."""
    return tx.execute(sa.select(sa.literal(1)).select_from(table).where(*conditions).limit(1)).first() is not None


@contextlib.contextmanager
def lost_race(what: str) -> Iterator[None]:
    """Make a violated constraint the error of who was second, whose transaction is run again.

    :raises LostRace: in place of an integrity error
    """
    try:
        yield
    except exc.IntegrityError as error:
        raise LostRace(what=what) from error
