"""Runs the revisions on the connection that designate_pool.storage.sql.migrate hands in."""

from alembic import context

from designate_pool.storage.sql.schema import metadata

connection = context.config.attributes['connection']
# PostgreSQL keeps a table locked until the transaction ends that altered it.  With SQLite all of it is one transaction,
# and with MariaDB each statement is.
each_alone = connection.dialect.name == 'postgresql'
if each_alone:
    connection.rollback()
context.configure(connection=connection, target_metadata=metadata, compare_type=True,
                  transaction_per_migration=each_alone, on_version_apply=context.config.attributes.get('on_step'))
if each_alone:
    with context.begin_transaction():
        context.run_migrations()
else:
    context.run_migrations()
