"""Runs the revisions on the connection that designate_pool.storage.sql.migrate hands in."""

from alembic import context

from designate_pool.storage.sql.schema import metadata

context.configure(connection=context.config.attributes['connection'], target_metadata=metadata, compare_type=True)
context.run_migrations()
