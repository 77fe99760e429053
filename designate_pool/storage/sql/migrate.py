"""Migration of a database to a revision of the tables.

Concurrent upgrades of one database are safe: the second waits for the first and finds nothing to do.  With PostgreSQL
each migration is a transaction of its own, so that no table stays locked until the last one is done.  alembic is
imported only for a migration: its import takes a quarter of a program's start.

A migration only adds, so that programs of the version before can still use the tables.  One that cannot has
``breaks_older_programs = True`` in its module.  The oldest revision whose programs can use the tables is stored in the
database, since a program does not know later migrations.
"""

from __future__ import annotations

import contextlib
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa
from sqlalchemy import exc

import designate_pool
from designate_pool import errors
from designate_pool.storage.sql.database import Storage, Tx, make_engine
from designate_pool.storage.sql.schema import schema_compatibility

if TYPE_CHECKING:
    import alembic.config

_LOCK_SECONDS, _LOCK_PAUSE = 300, 0.2
#: PostgreSQL's code.
_DEADLOCK = '40P01'
#: Any number that no other program uses for an advisory lock in the same PostgreSQL database.
_LOCK_NUMBER = 0x64706F6F6C
_VERSION = sa.table('alembic_version', sa.column('version_num', sa.String))
#: The revision that makes the tables: every program can use them as they are since then, but for those that say no.
_FIRST = '0001'


class Revisions(NamedTuple):
    """The revisions that a database stores.

    :ivar found: the revision of the tables; None if there are none of ours
    :ivar oldest: the lowest revision whose programs can use them; None if that was not stored yet
    """

    found: str | None
    oldest: str | None

    def serve(self, wanted: str) -> bool:
        """Whether a program whose newest migration is *wanted* can use the tables."""
        if self.found is None or self.oldest is None:
            return self.found == wanted
        return self.found == wanted or self.oldest <= wanted < self.found


def upgrade(url: str, revision: str = 'head') -> None:
    """Create the tables, or upgrade them to *revision*.

    :raises designate_pool.errors.BadInput: *url* is not of a known database
    :raises designate_pool.errors.DatabaseTooNew: a newer version has created tables that this one cannot use
    """
    if revision == 'head' and _ready(revisions(url)):
        return
    import alembic.command

    _migrate(url, lambda config: alembic.command.upgrade(config, revision))


def downgrade(url: str, revision: str) -> None:
    """Downgrade the tables to *revision*: its name, ``-1`` for the previous one, ``base`` for no tables."""
    import alembic.command

    _migrate(url, lambda config: alembic.command.downgrade(config, revision))


def current(url: str) -> str | None:
    """The revision of the database; None if it has no tables of ours."""
    return revisions(url).found


def revisions(url: str) -> Revisions:
    """The revisions that the database stores."""
    storage = Storage(url)
    try:
        return storage.read(_revisions)
    finally:
        storage.close()


def head() -> str:
    """The revision that this program needs: the highest number at the beginning of a migration's file name."""
    return max(path.name.partition('_')[0] for path in (folder() / 'versions').glob('[0-9]*_*.py'))


def check(storage: Storage) -> None:
    """Check that this program can use the tables.

    :raises designate_pool.errors.DatabaseNotReady: the database is not at the revision that this program needs
    :raises designate_pool.errors.DatabaseTooNew: a newer version has created tables that this one cannot use
    """
    revisions = storage.read(_revisions)
    if not _ready(revisions):
        raise errors.DatabaseNotReady(found=revisions.found or 'none', wanted=head())


def revise(url: str, message: str) -> None:
    """Generate the next revision from the differences of an up-to-date database to the schema.  For developers."""
    import alembic.command

    number = f'{int(head()) + 1:04}'
    _migrate(url, lambda config: alembic.command.revision(config, message, autogenerate=True, rev_id=number))


def folder() -> pathlib.Path:
    """The folder of the migrations: inside the installed package, beside it in a checkout."""
    package = pathlib.Path(designate_pool.__file__).parent
    installed = package / 'migrations'
    return installed if installed.is_dir() else package.parent / 'migrations'


def _revisions(tx: Tx) -> Revisions:
    inspector = sa.inspect(tx)
    if not inspector.has_table(_VERSION.name):
        return Revisions(None, None)
    kept = inspector.has_table(schema_compatibility.name)
    return Revisions(tx.scalar(sa.select(_VERSION.c.version_num)),
                     tx.scalar(sa.select(schema_compatibility.c.oldest_revision)) if kept else None)


def _ready(at: Revisions) -> bool:
    """Whether this program can use the tables as they are.

    :raises designate_pool.errors.DatabaseTooNew: they are newer, and it cannot
    """
    newest = head()
    if at.found is not None and at.found > newest and not at.serve(newest):
        raise errors.DatabaseTooNew(found=at.found, wanted=newest)
    return at.serve(newest)


def _note_compatibility(tx: Tx, config: alembic.config.Config) -> None:
    """Store which programs can use the tables now, in the transaction of the migration that was applied."""
    import alembic.script

    if not sa.inspect(tx).has_table(schema_compatibility.name):
        return
    current = tx.scalar(sa.select(_VERSION.c.version_num))
    applied = alembic.script.ScriptDirectory.from_config(config).walk_revisions('base', current or 'base')
    breaking = [script.revision for script in applied if getattr(script.module, 'breaks_older_programs', False)]
    tx.execute(schema_compatibility.delete())
    tx.execute(schema_compatibility.insert().values(oldest_revision=max([_FIRST, *breaking])))


def _migrate(url: str, command: Callable[[alembic.config.Config], object]) -> None:
    """Run *command*, again if PostgreSQL ends it for a deadlock with a program, which locks tables in its own order.

    Each migration is a transaction there: those that are done stay so, and nothing is left of the one that was ended.
    """
    end = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return _migrate_once(url, command)
        except exc.OperationalError as error:
            if getattr(error.orig, 'pgcode', None) != _DEADLOCK or time.monotonic() > end:
                raise
            time.sleep(_LOCK_PAUSE)


def _migrate_once(url: str, command: Callable[[alembic.config.Config], object]) -> None:
    import alembic.config

    # SQLite alters a table by creating it again, and drops the old one while others refer to it.
    engine = make_engine(url, foreign_keys=False)
    config = alembic.config.Config()
    config.set_main_option('script_location', str(folder()).replace('%', '%%'))
    config.attributes['on_step'] = lambda ctx, **_: _note_compatibility(ctx.connection, config)
    try:
        with engine.connect() as connection, _alone(connection):
            if engine.dialect.name != 'postgresql' and not connection.in_transaction():
                connection.begin()
            config.attributes['connection'] = connection
            command(config)
            if engine.dialect.name == 'sqlite':
                broken = connection.exec_driver_sql('PRAGMA foreign_key_check').all()
                assert not broken, f'the migration left references to rows that do not exist: {broken[:10]}'
            connection.commit()
    finally:
        engine.dispose()


@contextlib.contextmanager
def _alone(connection: sa.Connection) -> Iterator[None]:
    """Exclude other migrations of the same database, as long as *connection* lives; on SQLite its write lock does."""
    if connection.dialect.name == 'postgresql':
        # Whoever waits for a lock in a statement has a snapshot, which an index that is built beside writers waits for.
        end = time.monotonic() + _LOCK_SECONDS
        while not connection.scalar(sa.text('SELECT pg_try_advisory_lock(:number)'), {'number': _LOCK_NUMBER}):
            connection.rollback()
            if time.monotonic() > end:
                raise _other_migration()
            time.sleep(_LOCK_PAUSE)
        connection.execute(sa.text(f"SET lock_timeout = '{_LOCK_SECONDS}s'"))
        connection.commit()
    elif connection.dialect.name == 'mysql':
        name = sa.func.concat('designate-pool ', sa.func.md5(sa.func.database()))
        if not connection.scalar(sa.select(sa.func.get_lock(name, _LOCK_SECONDS))):
            raise _other_migration()
    # It ends with the connection: released here, it would be free before the new revision is committed.
    yield


def _other_migration() -> errors.Conflict:
    return errors.Conflict(why=f'another migration of this database has been under way for {_LOCK_SECONDS} s')
