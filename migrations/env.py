"""Runs the revisions on the connection that designate_pool.storage.migrate hands in."""

from alembic import context

from designate_pool.storage.schema import metadata

context.configure(connection=context.config.attributes['connection'], target_metadata=metadata, compare_type=True)
context.run_migrations()
