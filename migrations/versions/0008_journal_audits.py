"""How far a domain's journal reaches back; the rounds of the audits, servers that serve other contents;
and an index of the domains that are not at rest.

Revision ID: 0008
Revises: 0007
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, identifier

revision = '0008'
down_revision = '0007'

TABLE = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def upgrade() -> None:
    with op.batch_alter_table('domains') as batch:
        batch.add_column(sa.Column('journal_from', sa.BigInteger))
        batch.add_column(sa.Column('journal_to', sa.BigInteger))
        batch.add_column(sa.Column('journal_records', sa.Integer, nullable=False, server_default='0'))
        batch.create_check_constraint(op.f('ck_domains_journal_from'),
                                      'journal_from >= 0 AND journal_from <= 4294967295')
        batch.create_check_constraint(op.f('ck_domains_journal_to'), 'journal_to >= 0 AND journal_to <= 4294967295')
        batch.create_index(op.f('ix_domains_status_pool_id_id'), ['status', 'pool_id', 'id'])
        batch.drop_index(op.f('ix_domains_pool_id_status_updated_at'))
    op.create_index(op.f('ix_record_changes_created_at'), 'record_changes', ['created_at'])
    with op.batch_alter_table('pool_manager_status') as batch:
        batch.add_column(sa.Column('diverged', sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        'audits',
        sa.Column('pool_id', identifier(), nullable=False),
        sa.Column('kind', ascii_text(16), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('started_at', Time, nullable=False),
        sa.Column('after_id', ascii_text(32), nullable=False, server_default=''),
        sa.Column('next_at', Time),
        sa.Column('sent', sa.Integer, nullable=False, server_default='0'),
        sa.Column('heard', sa.Integer, nullable=False, server_default='0'),
        sa.Column('domains', sa.Integer, nullable=False, server_default='0'),
        sa.Column('pairs', sa.BigInteger, nullable=False, server_default='0'),
        sa.Column('asked', sa.BigInteger, nullable=False, server_default='0'),
        sa.Column('unanswered', sa.BigInteger, nullable=False, server_default='0'),
        sa.Column('findings', sa.BigInteger, nullable=False, server_default='0'),
        sa.Column('last_started_at', Time),
        sa.Column('last_seconds', sa.Float),
        sa.Column('last_domains', sa.Integer),
        sa.Column('last_pairs', sa.BigInteger),
        sa.Column('last_asked', sa.BigInteger),
        sa.Column('last_unanswered', sa.BigInteger),
        sa.Column('last_findings', sa.BigInteger),
        sa.Column('claimed_by', sa.String(64)),
        sa.Column('claimed_until', Time),
        sa.PrimaryKeyConstraint('pool_id', 'kind', name=op.f('pk_audits')),
        sa.ForeignKeyConstraint(['pool_id'], ['pools.id'], name=op.f('fk_audits_pool_id'), ondelete='CASCADE'),
        sa.CheckConstraint("kind IN ('SERIALS', 'CONTENTS')", name=op.f('ck_audits_kind')),
        **TABLE,
    )


def downgrade() -> None:
    op.drop_table('audits')
    with op.batch_alter_table('pool_manager_status') as batch:
        batch.drop_column('diverged')
    op.drop_index(op.f('ix_record_changes_created_at'), 'record_changes')
    op.execute('DELETE FROM record_changes')
    with op.batch_alter_table('domains') as batch:
        batch.create_index(op.f('ix_domains_pool_id_status_updated_at'), ['pool_id', 'status', 'updated_at'])
        batch.drop_index(op.f('ix_domains_status_pool_id_id'))
        batch.drop_constraint(op.f('ck_domains_journal_to'), type_='check')
        batch.drop_constraint(op.f('ck_domains_journal_from'), type_='check')
        batch.drop_column('journal_records')
        batch.drop_column('journal_to')
        batch.drop_column('journal_from')
