"""The serial that a domain began with: what servers serve of a former domain of its name is older.

Revision ID: 0029
Revises: 0028
"""

import sqlalchemy as sa
from alembic import op

revision = '0029'
down_revision = '0028'


def upgrade() -> None:
    # Of domains that exist nothing says with which serial they began; all that servers serve of them counts, as before.
    op.add_column('domains', sa.Column('first_serial', sa.BigInteger))


def downgrade() -> None:
    with op.batch_alter_table('domains') as batch:
        batch.drop_column('first_serial')
