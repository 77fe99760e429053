"""What the sessions of a database are doing, as a run that does not become consistent notes it."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from testing.databases import DatabaseServer
from testing.processes import wait_until
from tests.torture import leftovers


@pytest.mark.parametrize(('make', 'begin', 'shown'), [
    ('postgresql', 'SELECT 12345', ['idle in transaction', 'SELECT 12345']),
    ('mariadb', 'START TRANSACTION WITH CONSISTENT SNAPSHOT', ['RUNNING'])])
def test_an_open_transaction_is_shown(make: str, begin: str, shown: list[str], request: pytest.FixtureRequest) -> None:
    server: DatabaseServer = request.getfixturevalue(make)
    url = server.create_database()
    engine = sa.create_engine(url)

    def is_shown() -> bool:
        return any(all(text in line for text in shown) for line in leftovers.sessions(url))

    try:
        assert not is_shown()
        with engine.connect() as connection:
            connection.execute(sa.text(begin))
            wait_until(is_shown, 'it is shown')  # MariaDB renews the table ten times a second
    finally:
        engine.dispose()
