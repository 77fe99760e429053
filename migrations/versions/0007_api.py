"""What the API keeps: quotas, TSIG keys, tasks, which programs run; and since when a domain's last change is served.

Revision ID: 0007
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, domain_name, identifier, long_text, piece

revision = '0007'
down_revision = '0006'

TABLE = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def upgrade() -> None:
    with op.batch_alter_table('domains') as batch:
        batch.add_column(sa.Column('changed_at', Time))
        batch.add_column(sa.Column('converged_at', Time))
        batch.add_column(sa.Column('request_id', ascii_text(64), nullable=False, server_default=''))
        batch.create_index(op.f('ix_domains_pool_id_changed_at'), ['pool_id', 'changed_at'])
        batch.create_index(op.f('ix_domains_name'), ['name'])
        batch.create_index(op.f('ix_domains_project_id_name'), ['project_id', 'name'])
    op.create_index(op.f('ix_recordsets_name'), 'recordsets', ['name'])
    op.create_table(
        'quotas',
        sa.Column('project_id', sa.String(36), nullable=False),
        sa.Column('resource', ascii_text(32), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('hard_limit', sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint('project_id', 'resource', name=op.f('pk_quotas')),
        **TABLE,
    )
    op.create_table(
        'tsigkeys',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('name', domain_name(), nullable=False),
        sa.Column('algorithm', ascii_text(32), nullable=False),
        sa.Column('secret', sa.String(1024), nullable=False),
        sa.Column('scope', ascii_text(8), nullable=False),
        sa.Column('resource_id', identifier(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_tsigkeys')),
        sa.CheckConstraint("scope IN ('POOL', 'ZONE')", name=op.f('ck_tsigkeys_scope')),
        sa.UniqueConstraint('name', name=op.f('uq_tsigkeys_name')),
        sa.Index(op.f('ix_tsigkeys_resource_id'), 'resource_id'),
        **TABLE,
    )
    op.create_table(
        'zone_tasks',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('project_id', sa.String(36), nullable=False, server_default=''),
        sa.Column('kind', ascii_text(8), nullable=False),
        sa.Column('status', ascii_text(16), nullable=False, server_default='PENDING'),
        sa.Column('domain_id', identifier()),
        sa.Column('size', sa.BigInteger),
        sa.Column('message', long_text()),
        sa.Column('request_id', ascii_text(64), nullable=False, server_default=''),
        sa.Column('claimed_by', sa.String(64)),
        sa.Column('claimed_until', Time),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_zone_tasks')),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_zone_tasks_domain_id')),
        sa.CheckConstraint("kind IN ('IMPORT', 'EXPORT')", name=op.f('ck_zone_tasks_kind')),
        sa.CheckConstraint("status IN ('PENDING', 'COMPLETE', 'ERROR')", name=op.f('ck_zone_tasks_status')),
        sa.Index(op.f('ix_zone_tasks_project_id_created_at'), 'project_id', 'created_at'),
        sa.Index(op.f('ix_zone_tasks_status_created_at'), 'status', 'created_at'),
        sa.Index(op.f('ix_zone_tasks_domain_id'), 'domain_id'),
        **TABLE,
    )
    op.create_table(
        'zone_task_pieces',
        sa.Column('task_id', identifier(), nullable=False),
        sa.Column('number', sa.Integer, nullable=False, autoincrement=False),
        sa.Column('content', piece(), nullable=False),
        sa.PrimaryKeyConstraint('task_id', 'number', name=op.f('pk_zone_task_pieces')),
        sa.ForeignKeyConstraint(['task_id'], ['zone_tasks.id'], name=op.f('fk_zone_task_pieces_task_id'),
                                ondelete='CASCADE'),
        **TABLE,
    )
    op.create_table(
        'service_statuses',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('service_name', ascii_text(32), nullable=False),
        sa.Column('hostname', sa.String(255), nullable=False),
        sa.Column('status', ascii_text(8), nullable=False, server_default='UP'),
        sa.Column('heartbeated_at', Time, nullable=False),
        sa.Column('stats', long_text(), nullable=False),
        sa.Column('capabilities', long_text(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_service_statuses')),
        sa.CheckConstraint("status IN ('UP', 'DOWN', 'WARNING')", name=op.f('ck_service_statuses_status')),
        sa.UniqueConstraint('service_name', 'hostname', name=op.f('uq_service_statuses_service_name')),
        **TABLE,
    )


def downgrade() -> None:
    for table in ('service_statuses', 'zone_task_pieces', 'zone_tasks', 'tsigkeys', 'quotas'):
        op.drop_table(table)
    op.drop_index(op.f('ix_recordsets_name'), table_name='recordsets')
    with op.batch_alter_table('domains') as batch:
        batch.drop_index(op.f('ix_domains_project_id_name'))
        batch.drop_index(op.f('ix_domains_name'))
        batch.drop_index(op.f('ix_domains_pool_id_changed_at'))
        for column in ('request_id', 'converged_at', 'changed_at'):
            batch.drop_column(column)
