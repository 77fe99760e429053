"""Why an operation has failed, and why a note was written, as a word for programs.

Revision ID: 0022
Revises: 0021
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import ascii_text

revision = '0022'
down_revision = '0021'

TABLES = ('pool_manager_status', 'pool_servers')


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column('reason', ascii_text(32)))
    op.execute("UPDATE pool_servers SET reason = 'UNCHECKED' WHERE note LIKE 'its contents are not checked: %'")


def downgrade() -> None:
    for table in TABLES:
        with op.batch_alter_table(table) as batch:
            batch.drop_column('reason')
