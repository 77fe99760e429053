"""Which pool a program is of.

Revision ID: 0018
Revises: 0017
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import exact_text

revision = '0018'
down_revision = '0017'


def upgrade() -> None:
    op.add_column('service_statuses', sa.Column('pool_name', exact_text(50), nullable=False, server_default=''))


def downgrade() -> None:
    op.execute("DELETE FROM service_statuses WHERE pool_name <> ''")
    with op.batch_alter_table('service_statuses') as batch:
        batch.drop_column('pool_name')
