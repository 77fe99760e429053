"""Requests to transfer zones to other projects, and their acceptance.

Revision ID: 0028
Revises: 0027
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, exact_text, identifier

revision = '0028'
down_revision = '0027'

TABLE = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}
STATUSES = "status IN ('ACTIVE', 'PENDING', 'DELETED', 'ERROR', 'COMPLETE')"


def upgrade() -> None:
    op.create_table(
        'zone_transfer_requests',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('domain_id', identifier(), nullable=False),
        sa.Column('project_id', sa.String(36), nullable=False, server_default=''),
        sa.Column('target_project_id', sa.String(36)),
        sa.Column('key', exact_text(160), nullable=False),
        sa.Column('description', sa.String(160)),
        sa.Column('status', ascii_text(16), nullable=False, server_default='ACTIVE'),
        sa.CheckConstraint(STATUSES, name=op.f('ck_zone_transfer_requests_status')),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_zone_transfer_requests_domain_id')),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_zone_transfer_requests')),
        **TABLE,
    )
    for columns in (['domain_id'], ['project_id', 'created_at'], ['target_project_id']):
        op.create_index(op.f(f'ix_zone_transfer_requests_{"_".join(columns)}'), 'zone_transfer_requests', columns)
    op.create_table(
        'zone_transfer_accepts',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('domain_id', identifier(), nullable=False),
        sa.Column('request_id', identifier(), nullable=False),
        sa.Column('project_id', sa.String(36), nullable=False),
        sa.Column('status', ascii_text(16), nullable=False, server_default='ACTIVE'),
        sa.CheckConstraint(STATUSES, name=op.f('ck_zone_transfer_accepts_status')),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_zone_transfer_accepts_domain_id')),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_zone_transfer_accepts')),
        **TABLE,
    )
    for columns in (['domain_id'], ['project_id', 'created_at']):
        op.create_index(op.f(f'ix_zone_transfer_accepts_{"_".join(columns)}'), 'zone_transfer_accepts', columns)


def downgrade() -> None:
    op.drop_table('zone_transfer_accepts')
    op.drop_table('zone_transfer_requests')
