"""Domains that were moved to another pool: the pool that still keeps them, and what remains of them there.

Revision ID: 0032
Revises: 0031
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text

revision = '0032'
down_revision = '0031'


def upgrade() -> None:
    op.add_column('domains', sa.Column('former_pool_id', ascii_text(32)))
    op.add_column('domains', sa.Column('former_until', Time))
    op.add_column('domains', sa.Column('moved_id', ascii_text(32)))
    op.create_index(op.f('ix_domains_former_pool_id'), 'domains', ['former_pool_id'])


def downgrade() -> None:
    op.drop_index(op.f('ix_domains_former_pool_id'), 'domains')
    with op.batch_alter_table('domains') as batch:
        for column in ('moved_id', 'former_until', 'former_pool_id'):
            batch.drop_column(column)
