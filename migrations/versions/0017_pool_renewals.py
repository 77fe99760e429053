"""How far the domains of a pool have been brought to its name servers.

Revision ID: 0017
Revises: 0016
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, identifier

revision = '0017'
down_revision = '0016'

TABLE = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def upgrade() -> None:
    op.create_table(
        'pool_renewals',
        sa.Column('pool_id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('run', identifier(), nullable=False),
        sa.Column('everywhere', sa.Boolean, nullable=False),
        sa.Column('request_id', ascii_text(64), nullable=False),
        sa.Column('after_id', ascii_text(32), nullable=False),
        sa.Column('claimed_until', Time, nullable=False),
        sa.ForeignKeyConstraint(['pool_id'], ['pools.id'], name=op.f('fk_pool_renewals_pool_id'),
                                ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('pool_id', name=op.f('pk_pool_renewals')),
        **TABLE,
    )


def downgrade() -> None:
    op.drop_table('pool_renewals')
