"""Domains that were deleted in the database only, so that their servers keep them.

Revision ID: 0033
Revises: 0032
"""

import sqlalchemy as sa
from alembic import op

revision = '0033'
down_revision = '0032'


def upgrade() -> None:
    op.add_column('domains', sa.Column('abandoned', sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    with op.batch_alter_table('domains') as batch:
        batch.drop_column('abandoned')
