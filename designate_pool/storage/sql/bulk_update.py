"""Update of several rows of one table, each with values of its own, in one statement.

SQLAlchemy's executemany, and PyMySQL's, send a statement for each such row, which takes longer than to write the values
of all rows into one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from designate_pool.storage.sql.bulk_insert import bound
from designate_pool.storage.sql.database import Tx


def update(tx: Tx, table: sa.Table, ids: Sequence[str], columns: Mapping[str, Sequence[Any]],
           prepended: Mapping[str, tuple[Sequence[str], int]] | None = None) -> None:
    """Give rows new values.

    :param ids: what the rows have in their column ``id``; a few, as a value is searched among those of all rows
    :param columns: by column, a value for each row
    :param prepended: by column, a text for each row that is put before what is there, and how many characters of that
        are kept
    """
    quote = tx.dialect.identifier_preparer.quote
    mark = '?' if tx.dialect.name == 'sqlite' else '%s'
    cases = f'CASE {quote("id")}{f" WHEN {mark} THEN {mark}" * len(ids)} END'
    parameters: list[Any] = []

    def value(name: str, values: Sequence[Any]) -> str:
        if values.count(values[0]) == len(values):
            parameters.extend(bound(tx, table, name, values[:1]))
            return mark
        for pair in zip(ids, bound(tx, table, name, values)):
            parameters.extend(pair)
        return cases

    parts = [f'{quote(name)} = {value(name, values)}' for name, values in columns.items()]
    for name, (texts, kept) in (prepended or {}).items():
        both = value(name, texts), f'SUBSTR({quote(name)}, 1, {kept})'
        joined = f'CONCAT({", ".join(both)})' if tx.dialect.name == 'mysql' else ' || '.join(both)
        parts.append(f'{quote(name)} = {joined}')
    tx.exec_driver_sql(f'UPDATE {quote(table.name)} SET {", ".join(parts)} WHERE {quote("id")} IN '
                       f'({", ".join(mark for _ in ids)})', (*parameters, *ids))
