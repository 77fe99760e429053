"""For which resources of other services, such as floating IPs, records are there.

Revision ID: 0036
Revises: 0035
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, exact_text, identifier, long_text

revision = '0036'
down_revision = '0035'

TABLE = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def upgrade() -> None:
    op.create_table(
        'managed_records',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('domain_id', identifier(), nullable=False),
        sa.Column('recordset_id', identifier()),
        sa.Column('data', long_text(), nullable=False),
        sa.Column('plugin', ascii_text(32), nullable=False, server_default=''),
        sa.Column('resource_type', ascii_text(32), nullable=False),
        sa.Column('resource_id', exact_text(100), nullable=False),
        sa.Column('region', exact_text(100), nullable=False, server_default=''),
        sa.Column('address', ascii_text(45), nullable=False, server_default=''),
        sa.Column('project_id', sa.String(36), nullable=False, server_default=''),
        sa.Column('event_at', Time),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_managed_records_domain_id'),
                                ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_managed_records')),
        **TABLE,
    )
    for column in ('domain_id', 'recordset_id', 'resource_id', 'address', 'project_id'):
        op.create_index(op.f(f'ix_managed_records_{column}'), 'managed_records', [column])


def downgrade() -> None:
    op.drop_table('managed_records')
