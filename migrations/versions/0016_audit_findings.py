"""What audits found, and which finding a row of pool_manager_status is being mended for.

Revision ID: 0016
Revises: 0015
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, domain_name, identifier

revision = '0016'
down_revision = '0015'

TABLE = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def upgrade() -> None:
    op.create_table(
        'audit_findings',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('pool_id', identifier(), nullable=False),
        sa.Column('kind', ascii_text(16), nullable=False),
        sa.Column('domain_id', identifier(), nullable=False),
        sa.Column('name', domain_name(), nullable=False),
        sa.Column('server_id', ascii_text(32), nullable=False),
        sa.Column('label', sa.String(300), nullable=False),
        sa.Column('what', sa.String(1024), nullable=False),
        sa.Column('done', sa.String(255), nullable=False),
        sa.ForeignKeyConstraint(['pool_id'], ['pools.id'], name=op.f('fk_audit_findings_pool_id'),
                                ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_audit_findings')),
        **TABLE,
    )
    op.create_index(op.f('ix_audit_findings_pool_id_created_at'), 'audit_findings', ['pool_id', 'created_at'])
    op.create_index(op.f('ix_audit_findings_domain_id'), 'audit_findings', ['domain_id'])
    op.add_column('pool_manager_status', sa.Column('finding_id', ascii_text(32)))


def downgrade() -> None:
    with op.batch_alter_table('pool_manager_status') as batch:
        batch.drop_column('finding_id')
    op.drop_table('audit_findings')
