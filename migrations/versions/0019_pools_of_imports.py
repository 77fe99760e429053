"""Which pool an import makes its zone in.

Revision ID: 0019
Revises: 0018
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import ascii_text

revision = '0019'
down_revision = '0018'


def upgrade() -> None:
    op.add_column('zone_tasks', sa.Column('pool_id', ascii_text(32)))


def downgrade() -> None:
    # What is under way would end in another pool.
    op.execute("DELETE FROM zone_tasks WHERE pool_id IS NOT NULL AND status = 'PENDING'")
    with op.batch_alter_table('zone_tasks') as batch:
        batch.drop_column('pool_id')
