"""Insertion of many rows into one table, and update of several with values of their own.

SQLAlchemy's own INSERT takes longer for a row than the database.  Here a statement is compiled once and values are
passed to the driver directly.  PostgreSQL, for which long VALUES and ARRAY are slow to parse, gets one text for each
column of text, numbers or octets, which it splits itself, and an array for each other one.  For MariaDB the values are
written here, since PyMySQL takes longer to escape them one by one than the database to insert them.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import chunks

#: Executes the statement of an insertion in a transaction.
Insertion = Callable[[Tx], object]
#: Characters of a statement for MariaDB, whose ``max_allowed_packet`` is 16 MiB by default; and those that cannot stand
#: in a literal as they are.
_LONG, _ESCAPED = 1_000_000, re.compile("[\\\\'\0\n\r\x1a]")
#: Between the values of a column in one text, and in place of one that is NULL.
_BETWEEN, _NULL = '\x1f', '\x1e'
#: How columns are written in one text, and what PostgreSQL makes of each value.
_AS_TEXT: Mapping[type[sa.types.TypeEngine[Any]], tuple[Callable[[Any], str] | None, str]] = {
    sa.String: (None, '{}'), sa.LargeBinary: (lambda value: value.hex(), "decode({}, 'hex')"),
    sa.Integer: (str, 'CAST({} AS BIGINT)')}


def insert(tx: Tx, table: sa.Table, same: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]) -> None:
    """Insert rows.

    :param same: by column, the value that all rows have
    :param columns: by column, a value for each row; at least one column
    """
    insertion(tx.dialect, table, same, columns)(tx)


def insertion(dialect: sa.Dialect, table: sa.Table, same: Mapping[str, Any],
              columns: Mapping[str, Sequence[Any]]) -> Insertion:
    """As :func:`insert`, but for PostgreSQL the statement is prepared and not executed yet."""
    if not len(next(iter(columns.values()))):
        return lambda tx: None
    alike = [name for name, values in columns.items() if values.count(values[0]) == len(values)][:len(columns) - 1]
    same = {**same, **{name: columns[name][0] for name in alike}}
    columns = {name: values for name, values in columns.items() if name not in alike}
    if dialect.name != 'postgresql':
        return functools.partial(_insert, table=table, same=same, columns=columns)
    values = {name: _joined(table.c[name].type, values) for name, values in columns.items()}
    joined = tuple(name for name, value in values.items() if isinstance(value, str))
    statement = _from_columns(table, tuple(same), tuple(columns), joined, dialect)
    return lambda tx: tx.execute(statement, {**same, **values})


def update(tx: Tx, table: sa.Table, ids: Sequence[str], columns: Mapping[str, Sequence[Any]],
           prepended: Mapping[str, tuple[Sequence[str], int]] | None = None, key: str = 'id') -> None:
    """Give each of several rows its own values, in one statement: an executemany sends one for each.

    :param ids: what the rows have in their column *key*; a few, as a value is searched among those of all rows
    :param columns: by column, a value for each row
    :param prepended: by column, a text for each row that is put before what is there, and how many characters of that
        are kept
    """
    quote = tx.dialect.identifier_preparer.quote
    mark = '?' if tx.dialect.name == 'sqlite' else '%s'
    cases = f'CASE {quote(key)}{f" WHEN {mark} THEN {mark}" * len(ids)} END'
    parameters: list[Any] = []

    def value(name: str, values: Sequence[Any]) -> str:
        if values.count(values[0]) == len(values):
            parameters.extend(_bound(tx, table, name, values[:1]))
            return mark
        for pair in zip(ids, _bound(tx, table, name, values)):
            parameters.extend(pair)
        return cases

    parts = [f'{quote(name)} = {value(name, values)}' for name, values in columns.items()]
    for name, (texts, kept) in (prepended or {}).items():
        both = value(name, texts), f'SUBSTR({quote(name)}, 1, {kept})'
        joined = f'CONCAT({", ".join(both)})' if tx.dialect.name == 'mysql' else ' || '.join(both)
        parts.append(f'{quote(name)} = {joined}')
    tx.exec_driver_sql(f'UPDATE {quote(table.name)} SET {", ".join(parts)} WHERE {quote(key)} IN '
                       f'({", ".join(mark for _ in ids)})', (*parameters, *ids))


def _insert(tx: Tx, table: sa.Table, same: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]) -> None:
    fixed = [_bound(tx, table, name, [value])[0] for name, value in same.items()]
    varying = [_bound(tx, table, name, values) for name, values in columns.items()]
    head = f'{_into(table, (*same, *columns), tx.dialect)} VALUES '
    if tx.dialect.name == 'mysql':
        cursor: Any = tx.connection.cursor()
        rows = zip(*map(itertools.repeat, _literals(fixed, cursor)), *(_literals(values, cursor) for values in varying))
        for statement in _statements(map(','.join, rows)):
            tx.exec_driver_sql(f'{head}({statement})', execution_options={'no_parameters': True})
    else:
        marks = ', '.join('?' for _ in (*fixed, *varying))
        for part in chunks(zip(*map(itertools.repeat, fixed), *varying)):
            tx.exec_driver_sql(f'{head}({marks})', part)


def _literals(values: Sequence[Any], cursor: Any) -> Iterable[str]:
    """The values as SQL literals; *cursor* is PyMySQL's, which writes any value, but takes long."""
    if all(isinstance(value, str) for value in values) and not _ESCAPED.search(_BETWEEN.join(values)):
        return [f"'{value}'" for value in values]
    return ['NULL' if value is None else str(value) if type(value) is int else
            f"x'{value.hex()}'" if isinstance(value, bytes) else cursor.mogrify('%s', (value,)) for value in values]


def _statements(rows: Iterable[str]) -> Iterator[str]:
    """Rows for one statement each, of about :data:`_LONG` characters unless a row is longer."""
    taken: list[str] = []
    length = 0
    for row in rows:
        if taken and length + len(row) > _LONG:
            yield '),('.join(taken)
            taken, length = [], 0
        taken.append(row)
        length += len(row)
    yield '),('.join(taken)


def _joined(kind: sa.types.TypeEngine[Any], values: Sequence[Any]) -> str | list[Any]:
    """*values* as one text, or as they are where they cannot be split again or are of another type."""
    written = _written(kind)
    if written is None:
        return list(values)
    convert, _ = written
    nulls = values.count(None)
    texts: Sequence[str] = values if not nulls and convert is None else [
        _NULL if value is None else (convert or str)(value) for value in values]
    joined = _BETWEEN.join(texts)
    is_plain = joined.count(_BETWEEN) == len(texts) - 1 and joined.count(_NULL) == nulls
    return joined if joined and is_plain else list(values)


def _written(kind: sa.types.TypeEngine[Any]) -> tuple[Callable[[Any], str] | None, str] | None:
    return next((written for sql_type, written in _AS_TEXT.items() if isinstance(kind, sql_type)), None)


def _bound(tx: Tx, table: sa.Table, name: str, values: Sequence[Any]) -> Sequence[Any]:
    """*values* of a column converted for the driver by the column's type."""
    convert = table.c[name].type.dialect_impl(tx.dialect).bind_processor(tx.dialect)
    return values if convert is None else [convert(value) for value in values]


@functools.lru_cache(maxsize=64)
def _from_columns(table: sa.Table, same: Sequence[str], names: Sequence[str], joined: Sequence[str],
                  dialect: sa.Dialect) -> sa.TextClause:
    """An INSERT that selects its rows from arrays of columns, or one text for those of *joined*."""
    # Without a length: a cast to VARCHAR(n) would cut a value that the column must refuse.
    kinds = {name: sa.Text() if isinstance(kind := table.c[name].type, sa.String) else kind for name in names}
    taken = [(_written(kinds[name]) or (None, '{}'))[1].format(f'c{number}') if name in joined else f'c{number}'
             for number, name in enumerate(names)]
    columns = ', '.join(f'c{number}' for number, _ in enumerate(names))
    values = [f'string_to_array(:{name}, chr({ord(_BETWEEN)}), chr({ord(_NULL)}))' if name in joined else f':{name}'
              for name in names]
    text = sa.text(f'{_into(table, (*same, *names), dialect)} '
                   f'SELECT {", ".join((*(f":{name}" for name in same), *taken))} '
                   f'FROM unnest({", ".join(values)}) AS x ({columns})')
    return text.bindparams(*(sa.bindparam(name, type_=table.c[name].type) for name in same),
                           *(sa.bindparam(name, type_=sa.Text() if name in joined else sa.ARRAY(kind))
                             for name, kind in kinds.items()))


def _into(table: sa.Table, names: Sequence[str], dialect: sa.Dialect) -> str:
    quote = dialect.identifier_preparer.quote
    return f'INSERT INTO {quote(table.name)} ({", ".join(quote(name) for name in names)})'
