"""Locks of names that are written, so that nodes of a Galera cluster find out that two of them have one.

Revision ID: 0023
Revises: 0022
"""

import sqlalchemy as sa
from alembic import op

revision = '0023'
down_revision = '0022'


def upgrade() -> None:
    op.add_column('name_locks', sa.Column('uses', sa.BigInteger, nullable=False, server_default='0'))


def downgrade() -> None:
    with op.batch_alter_table('name_locks') as batch:
        batch.drop_column('uses')
