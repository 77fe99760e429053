"""Which files of name servers are left over."""

from __future__ import annotations

import hashlib

import dns.name
import pytest

from tests.torture.name_servers import leftover_files

LIVING, GONE = ['a.example.', 'b.a.example.'], ['c.example.', 'z.a.example.']


def hashed(name: str) -> str:
    return hashlib.sha256(dns.name.from_text(name).to_digestable()).hexdigest()


@pytest.mark.parametrize(('files', 'left'), [
    ([], []),
    (['a.example.7.db', 'a.example.7.db.jnl', 'b.a.example.1.db', 'named.conf', 'log'], []),
    (['c.example.7.db', 'a.example.7.db'], ['c.example.7.db']),
    (['zones/z.a.example.zone'], ['zones/z.a.example.zone']),
    (['a.example.7.db', 'a.example.12.db', 'a.example.7.db.jnl'], ['a.example.7.db', 'a.example.7.db.jnl']),
    (['one/a.example.7.db', 'two/a.example.8.db'], []),
    ([f'state/{hashed("a.example.")}.zone', f'state/{hashed("c.example.")}.json'],
     [f'state/{hashed("c.example.")}.json']),
    (['example.7.db', 'c.example', 'ac.example.1.db'], ['c.example']),
], ids=['nothing', 'living', 'gone', 'gone, in a folder', 'former', 'folders', 'hashed', 'other names'])
def test_leftover_files(files: list[str], left: list[str]) -> None:
    assert leftover_files(files, LIVING, GONE) == left
