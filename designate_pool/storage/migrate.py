"""Bringing a database to a revision of the tables, and telling which one it is at.

Two upgrades at once of one database are safe: the second waits for the first and finds nothing to do.  alembic is
imported where there is something to do: a quarter of what a program takes to start would be for it alone.
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import sqlalchemy as sa

import designate_pool
from designate_pool import errors
from designate_pool.storage.sessions import Storage, Tx, make_engine

if TYPE_CHECKING:
    import alembic.config

_LOCK_SECONDS = 300
#: Any number that no other program uses for an advisory lock in the same PostgreSQL database.
_LOCK_NUMBER = 0x64706F6F6C
_VERSION = sa.table('alembic_version', sa.column('version_num', sa.String))


def upgrade(url: str, revision: str = 'head') -> None:
    """Make the tables, or bring them to *revision*.

    :raises designate_pool.errors.BadInput: *url* is not of a known database
    """
    if revision == 'head' and current(url) == head():
        return
    import alembic.command

    _migrate(url, lambda config: alembic.command.upgrade(config, revision))


def downgrade(url: str, revision: str) -> None:
    """Take the tables back to *revision*: its name, ``-1`` for the one before the present, ``base`` for no tables."""
    import alembic.command

    _migrate(url, lambda config: alembic.command.downgrade(config, revision))


def current(url: str) -> str | None:
    """The revision that the database is at; None when it has no tables of ours."""
    storage = Storage(url)
    try:
        return storage.read(_revision)
    finally:
        storage.close()


def head() -> str:
    """The revision that this program needs: the highest number that a migration's file begins with."""
    return max(path.name.partition('_')[0] for path in (folder() / 'versions').glob('[0-9]*_*.py'))


def check(storage: Storage) -> None:
    """
    :raises designate_pool.errors.DatabaseNotReady: the database is not at the revision that this program needs
    """
    found = storage.read(_revision)
    if found != head():
        raise errors.DatabaseNotReady(found=found or 'none', wanted=head())


def revise(url: str, message: str) -> None:
    """Write the next revision: what the database, which is at the head, lacks of the schema.  For developers."""
    import alembic.command

    number = f'{int(head()) + 1:04}'
    _migrate(url, lambda config: alembic.command.revision(config, message, autogenerate=True, rev_id=number))


def folder() -> pathlib.Path:
    """The migrations: inside the package where it is installed, beside it in a checkout."""
    package = pathlib.Path(designate_pool.__file__).parent
    installed = package / 'migrations'
    return installed if installed.is_dir() else package.parent / 'migrations'


def _config() -> alembic.config.Config:
    import alembic.config

    config = alembic.config.Config()
    config.set_main_option('script_location', str(folder()).replace('%', '%%'))
    return config


def _revision(tx: Tx) -> str | None:
    if not sa.inspect(tx).has_table(_VERSION.name):
        return None
    return tx.scalar(sa.select(_VERSION.c.version_num))


def _migrate(url: str, command: Callable[[alembic.config.Config], object]) -> None:
    # SQLite alters a table by making it anew, which drops the old one while others refer to it.
    engine = make_engine(url, foreign_keys=False)
    config = _config()
    try:
        with engine.begin() as tx, _alone(tx):
            config.attributes['connection'] = tx
            command(config)
            if engine.dialect.name == 'sqlite':
                broken = tx.exec_driver_sql('PRAGMA foreign_key_check').all()
                assert not broken, f'the migration left references to rows that do not exist: {broken[:10]}'
    finally:
        engine.dispose()


@contextlib.contextmanager
def _alone(tx: Tx) -> Iterator[None]:
    """Keep other migrations of the same database out; SQLite's write lock does so by itself."""
    if tx.dialect.name == 'postgresql':
        tx.execute(sa.text(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'"))
        tx.execute(sa.text('SELECT pg_advisory_xact_lock(:number)'), {'number': _LOCK_NUMBER})
        yield
    elif tx.dialect.name == 'mysql':
        name = sa.func.concat('designate-pool ', sa.func.md5(sa.func.database()))
        if not tx.scalar(sa.select(sa.func.get_lock(name, _LOCK_SECONDS))):
            raise errors.Conflict(why=f'another migration of this database has been under way for {_LOCK_SECONDS} s')
        # It goes with the connection: let go of here, it would be free before the new revision is committed.
        yield
    else:
        yield
