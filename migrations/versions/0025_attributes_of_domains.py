"""Attributes of domains, for the scheduler.

Revision ID: 0025
Revises: 0024
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import exact_text

revision = '0025'
down_revision = '0024'


def upgrade() -> None:
    op.add_column('domains', sa.Column('attributes', exact_text(5000), nullable=False, server_default=''))


def downgrade() -> None:
    with op.batch_alter_table('domains') as batch:
        batch.drop_column('attributes')
