"""The journal that IXFR is made from, and the plans that wait for approval.

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, domain_name, identifier, long_text, rdata

revision = '0004'
down_revision = '0003'

TABLE = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def upgrade() -> None:
    op.create_table(
        'record_changes',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('domain_id', identifier(), nullable=False),
        sa.Column('serial_number', sa.BigInteger, nullable=False),
        sa.Column('added', sa.Boolean, nullable=False),
        sa.Column('name', domain_name(), nullable=False),
        sa.Column('type', ascii_text(16), nullable=False),
        sa.Column('ttl', sa.Integer, nullable=False),
        sa.Column('wire', rdata(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_record_changes')),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_record_changes_domain_id')),
        sa.CheckConstraint('serial_number >= 0 AND serial_number <= 4294967295',
                           name=op.f('ck_record_changes_serial_number')),
        sa.Index(op.f('ix_record_changes_domain_id_serial_number'), 'domain_id', 'serial_number'),
        **TABLE,
    )
    op.create_table(
        'plans',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('expires_at', Time, nullable=False),
        sa.Column('domain_id', identifier(), nullable=False),
        sa.Column('server_id', ascii_text(32), nullable=False),
        sa.Column('state', ascii_text(16), nullable=False),
        sa.Column('desired_digest', ascii_text(96), nullable=False),
        sa.Column('existing_digest', ascii_text(96), nullable=False),
        sa.Column('changes', long_text(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_plans')),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_plans_domain_id')),
        sa.Index(op.f('ix_plans_domain_id_server_id'), 'domain_id', 'server_id'),
        **TABLE,
    )


def downgrade() -> None:
    op.drop_table('plans')
    op.drop_table('record_changes')
