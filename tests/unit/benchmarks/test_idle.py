"""Statements that differ in their values alone are of one kind."""

from __future__ import annotations

import pytest

from benchmarks.idle import kind_of


@pytest.mark.parametrize(('statement', 'kind'), [
    ("SELECT a.id FROM a \n WHERE a.name = 'it''s' AND a.n > 1", 'SELECT a.id FROM a WHERE a.name = ? AND a.n > ?'),
    ("SELECT id_1 FROM a WHERE id IN ('x', 'y', 'z')", 'SELECT id_1 FROM a WHERE id IN (?, ...)'),
    ("UPDATE a SET text='\\'1', n=0.5", 'UPDATE a SET text=?, n=?'),
])
def test_kind(statement: str, kind: str) -> None:
    assert kind_of(statement) == kind
