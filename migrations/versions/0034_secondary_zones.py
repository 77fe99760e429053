"""Secondary zones: their masters, and when they are refreshed.

Revision ID: 0034
Revises: 0033
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, identifier

revision = '0034'
down_revision = '0033'

TABLE = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def upgrade() -> None:
    op.add_column('domains', sa.Column('masters', ascii_text(600), nullable=False, server_default=''))
    op.add_column('domains', sa.Column('soa_names', ascii_text(2021), nullable=False, server_default=''))
    op.add_column('domains', sa.Column('transferred_at', Time))
    op.add_column('domains', sa.Column('awaits_transfer', sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        'secondary_zones',
        sa.Column('domain_id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('next_at', Time, nullable=False),
        sa.Column('checked_at', Time),
        sa.Column('master', ascii_text(64)),
        sa.Column('failures', sa.Integer, nullable=False, server_default='0'),
        sa.Column('last_error', sa.String(1024)),
        sa.Column('is_requested', sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column('claimed_by', ascii_text(32)),
        sa.Column('claimed_until', Time),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], ondelete='CASCADE',
                                name=op.f('fk_secondary_zones_domain_id')),
        sa.PrimaryKeyConstraint('domain_id', name=op.f('pk_secondary_zones')),
        **TABLE,
    )
    op.create_index(op.f('ix_secondary_zones_next_at'), 'secondary_zones', ['next_at'])


def downgrade() -> None:
    op.drop_table('secondary_zones')
    with op.batch_alter_table('domains') as batch:
        for column in ('awaits_transfer', 'transferred_at', 'soa_names', 'masters'):
            batch.drop_column(column)
