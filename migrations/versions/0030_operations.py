"""The newest operations of a domain, by which one that is repeated is recognized.

Revision ID: 0030
Revises: 0029
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import ascii_text

revision = '0030'
down_revision = '0029'


def upgrade() -> None:
    op.add_column('domains', sa.Column('operations', ascii_text(768), nullable=False, server_default=''))


def downgrade() -> None:
    with op.batch_alter_table('domains') as batch:
        batch.drop_column('operations')
