"""Attributes of the zones that imports make.

Revision ID: 0035
Revises: 0034
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import exact_text

revision = '0035'
down_revision = '0034'


def upgrade() -> None:
    op.add_column('zone_tasks', sa.Column('attributes', exact_text(5000), nullable=False, server_default=''))


def downgrade() -> None:
    with op.batch_alter_table('zone_tasks') as batch:
        batch.drop_column('attributes')
