"""Zones that are shared with other projects, and the projects of the recordsets that those create in them.

Revision ID: 0031
Revises: 0030
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, identifier

revision = '0031'
down_revision = '0030'

TABLE = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def upgrade() -> None:
    op.create_table(
        'zone_shares',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('domain_id', identifier(), nullable=False),
        sa.Column('project_id', sa.String(36), nullable=False, server_default=''),
        sa.Column('target_project_id', sa.String(36), nullable=False),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_zone_shares_domain_id'),
                                ondelete='CASCADE'),
        sa.UniqueConstraint('domain_id', 'target_project_id', name=op.f('uq_zone_shares_domain_id')),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_zone_shares')),
        **TABLE,
    )
    op.create_index(op.f('ix_zone_shares_target_project_id'), 'zone_shares', ['target_project_id'])
    op.add_column('domains', sa.Column('shared', sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column('recordsets', sa.Column('project_id', sa.String(36)))


def downgrade() -> None:
    with op.batch_alter_table('recordsets') as batch:
        batch.drop_column('project_id')
    with op.batch_alter_table('domains') as batch:
        batch.drop_column('shared')
    op.drop_table('zone_shares')
