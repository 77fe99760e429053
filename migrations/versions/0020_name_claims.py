"""Who calls a server for a name without a row of pool_manager_status.

Revision ID: 0020
Revises: 0019
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, domain_name

revision = '0020'
down_revision = '0019'


def upgrade() -> None:
    op.create_table(
        'name_claims',
        sa.Column('name', domain_name(), nullable=False),
        sa.Column('server_id', ascii_text(32), nullable=False),
        sa.Column('claimed_by', sa.String(64), nullable=False),
        sa.Column('claimed_until', Time, nullable=False),
        sa.PrimaryKeyConstraint('name', 'server_id', name=op.f('pk_name_claims')),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')


def downgrade() -> None:
    op.drop_table('name_claims')
