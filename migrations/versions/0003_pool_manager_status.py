"""What each server has done of what was asked of it: pool_manager_status.

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, identifier

revision = '0003'
down_revision = '0002'

SERIAL_RANGE = '{0} >= 0 AND {0} <= 4294967295'


def upgrade() -> None:
    op.create_table(
        'pool_manager_status',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('server_id', ascii_text(32), nullable=False),
        sa.Column('domain_id', identifier(), nullable=False),
        sa.Column('action', sa.String(16), nullable=False),
        sa.Column('status', sa.String(16)),
        sa.Column('serial_number', sa.BigInteger),
        sa.Column('expected_serial', sa.BigInteger, nullable=False),
        sa.Column('last_error', sa.String(1024)),
        sa.Column('attempts', sa.Integer, nullable=False, server_default='0'),
        sa.Column('next_attempt_at', Time),
        sa.Column('deadline_at', Time),
        sa.Column('claimed_by', sa.String(64)),
        sa.Column('claimed_until', Time),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_pool_manager_status')),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_pool_manager_status_domain_id')),
        sa.UniqueConstraint('server_id', 'domain_id', 'action', name=op.f('uq_pool_manager_status_server_id')),
        sa.CheckConstraint("action IN ('NONE', 'CREATE', 'UPDATE', 'DELETE')",
                           name=op.f('ck_pool_manager_status_action')),
        sa.CheckConstraint("action <> 'NONE'", name=op.f('ck_pool_manager_status_some_action')),
        sa.CheckConstraint("status IN ('SUCCESS', 'ERROR')", name=op.f('ck_pool_manager_status_status')),
        sa.CheckConstraint(SERIAL_RANGE.format('serial_number'), name=op.f('ck_pool_manager_status_serial_number')),
        sa.CheckConstraint(SERIAL_RANGE.format('expected_serial'),
                           name=op.f('ck_pool_manager_status_expected_serial')),
        sa.Index(op.f('ix_pool_manager_status_domain_id'), 'domain_id'),
        sa.Index(op.f('ix_pool_manager_status_server_id_next_attempt_at'), 'server_id', 'next_attempt_at'),
        mysql_engine='InnoDB', mysql_charset='utf8mb4',
    )


def downgrade() -> None:
    op.drop_table('pool_manager_status')
