"""How often a server has lost a zone: what was heard of it before counts no more.

Revision ID: 0021
Revises: 0020
"""

import sqlalchemy as sa
from alembic import op

revision = '0021'
down_revision = '0020'


def upgrade() -> None:
    op.add_column('pool_manager_status', sa.Column('incarnation', sa.Integer, nullable=False, server_default='0'))


def downgrade() -> None:
    with op.batch_alter_table('pool_manager_status') as batch:
        batch.drop_column('incarnation')
