"""Insertion of many rows into one table.

SQLAlchemy's own INSERT takes longer for a row than the database.  Here a statement is compiled once and values are
passed to the driver directly; PostgreSQL, for which long VALUES are slow, gets an array for each column.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from designate_pool.storage.sql.database import Tx


def insert(tx: Tx, table: sa.Table, same: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]) -> None:
    """Insert rows.

    :param same: by column, the value that all rows have
    :param columns: by column, a value for each row; at least one column
    """
    if not len(next(iter(columns.values()))):
        return
    if tx.dialect.name == 'postgresql':
        tx.execute(_from_arrays(table, tuple(same), tuple(columns), tx.dialect),
                   {**same, **{name: list(values) for name, values in columns.items()}})
        return
    repeated = (itertools.repeat(_bound(tx, table, name, [value])[0]) for name, value in same.items())
    rows = zip(*repeated, *(_bound(tx, table, name, values) for name, values in columns.items()))
    tx.exec_driver_sql(_of_values(table, (*same, *columns), tx.dialect), list(rows))


def _bound(tx: Tx, table: sa.Table, name: str, values: Sequence[Any]) -> Sequence[Any]:
    """*values* converted for the driver by the column's type."""
    convert = table.c[name].type.dialect_impl(tx.dialect).bind_processor(tx.dialect)
    return values if convert is None else [convert(value) for value in values]


@functools.lru_cache(maxsize=64)
def _of_values(table: sa.Table, names: Sequence[str], dialect: sa.Dialect) -> str:
    # PyMySQL looks for the word VALUES, and makes one statement of many rows.
    mark = '?' if dialect.paramstyle == 'qmark' else '%s'
    return f'{_into(table, names, dialect)} VALUES ({", ".join(mark for _ in names)})'


@functools.lru_cache(maxsize=64)
def _from_arrays(table: sa.Table, same: Sequence[str], names: Sequence[str], dialect: sa.Dialect) -> sa.TextClause:
    # Without a length: a cast to VARCHAR(n) would cut a value that the column must refuse.
    kinds = {name: sa.Text() if isinstance(kind := table.c[name].type, sa.String) else kind for name in names}
    taken = [f'c{number}' for number, _ in enumerate(names)]
    text = sa.text(f'{_into(table, (*same, *names), dialect)} '
                   f'SELECT {", ".join((*(f":{name}" for name in same), *taken))} '
                   f'FROM unnest({", ".join(f":{name}" for name in names)}) AS x ({", ".join(taken)})')
    return text.bindparams(*(sa.bindparam(name, type_=table.c[name].type) for name in same),
                           *(sa.bindparam(name, type_=sa.ARRAY(kind)) for name, kind in kinds.items()))


def _into(table: sa.Table, names: Sequence[str], dialect: sa.Dialect) -> str:
    quote = dialect.identifier_preparer.quote
    return f'INSERT INTO {quote(table.name)} ({", ".join(quote(name) for name in names)})'
