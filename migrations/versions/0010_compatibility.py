"""Which programs can use the tables, for those that do not know the newest migrations.

Revision ID: 0010
Revises: 0009
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import ascii_text

revision = '0010'
down_revision = '0009'


def upgrade() -> None:
    op.create_table(
        'schema_compatibility',
        sa.Column('oldest_revision', ascii_text(32), nullable=False),
        sa.PrimaryKeyConstraint('oldest_revision', name=op.f('pk_schema_compatibility')),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')


def downgrade() -> None:
    op.drop_table('schema_compatibility')
