"""The plans that wait for approval or were stored by an operator, and which RRsets on a server are ours.

Nothing ever wrote into the table of plans that revision 0004 made, so it is made anew.

Revision ID: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, domain_name, exact_text, identifier, long_text

revision = '0006'
down_revision = '0005'

TABLE = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def upgrade() -> None:
    op.drop_table('plans')
    op.create_table(
        'plans',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('pool_name', exact_text(50), nullable=False),
        sa.Column('zone', domain_name(), nullable=False),
        sa.Column('target', sa.String(300), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('domain_id', identifier()),
        sa.Column('server_id', ascii_text(32)),
        sa.Column('desired_digest', ascii_text(96), nullable=False),
        sa.Column('existing_digest', ascii_text(96), nullable=False),
        sa.Column('creates', sa.Integer, nullable=False, server_default='0'),
        sa.Column('updates', sa.Integer, nullable=False, server_default='0'),
        sa.Column('deletes', sa.Integer, nullable=False, server_default='0'),
        sa.Column('why', long_text()),
        sa.Column('document', long_text(), nullable=False),
        sa.Column('asked_by', sa.String(64)),
        sa.Column('expires_at', Time, nullable=False),
        sa.Column('applied_at', Time),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_plans')),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_plans_domain_id')),
        sa.CheckConstraint("state IN ('STORED', 'PARKED', 'APPROVED', 'APPLIED', 'FAILED', 'DROPPED')",
                           name=op.f('ck_plans_state')),
        sa.Index(op.f('ix_plans_domain_id_server_id'), 'domain_id', 'server_id'),
        sa.Index(op.f('ix_plans_state_expires_at'), 'state', 'expires_at'),
        sa.Index(op.f('ix_plans_pool_name_applied_at'), 'pool_name', 'applied_at'),
        **TABLE,
    )
    op.create_table(
        'owned_rrsets',
        sa.Column('server_id', ascii_text(32), nullable=False),
        sa.Column('domain_id', identifier(), nullable=False),
        sa.Column('name', domain_name(), nullable=False),
        sa.Column('type', ascii_text(16), nullable=False),
        sa.PrimaryKeyConstraint('server_id', 'domain_id', 'name', 'type', name=op.f('pk_owned_rrsets')),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_owned_rrsets_domain_id')),
        sa.Index(op.f('ix_owned_rrsets_domain_id'), 'domain_id'),
        **TABLE,
    )


def downgrade() -> None:
    op.drop_table('owned_rrsets')
    op.drop_table('plans')
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
