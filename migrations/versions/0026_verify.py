"""The addresses at which a server is verified.

Revision ID: 0026
Revises: 0025
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import ascii_text

revision = '0026'
down_revision = '0025'


def upgrade() -> None:
    op.add_column('pool_servers', sa.Column('verify', ascii_text(1024)))


def downgrade() -> None:
    with op.batch_alter_table('pool_servers') as batch:
        batch.drop_column('verify')
