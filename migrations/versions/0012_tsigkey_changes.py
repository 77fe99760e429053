"""How often the TSIG keys have changed, so that a change is seen whatever the clocks say.

Revision ID: 0012
Revises: 0011
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import ascii_text

revision = '0012'
down_revision = '0011'


def upgrade() -> None:
    op.create_table(
        'change_counts',
        sa.Column('what', ascii_text(32), nullable=False),
        sa.Column('changes', sa.BigInteger, nullable=False, server_default='0'),
        sa.PrimaryKeyConstraint('what', name=op.f('pk_change_counts')),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
    op.execute("INSERT INTO change_counts (what, changes) VALUES ('tsigkeys', 0)")


def downgrade() -> None:
    op.drop_table('change_counts')
