"""Top-level domains that zones may lie below.

Revision ID: 0024
Revises: 0023
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, identifier

revision = '0024'
down_revision = '0023'


def upgrade() -> None:
    op.create_table(
        'tlds',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('name', ascii_text(255), nullable=False),
        sa.Column('description', sa.String(160)),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_tlds')),
        sa.UniqueConstraint('name', name=op.f('uq_tlds_name')),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')


def downgrade() -> None:
    op.drop_table('tlds')
