"""Pools, domains, recordsets and records.

Revision ID: 0001
"""

import uuid
from datetime import datetime, timezone

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import (Time, ascii_text, deletion_mark, domain_name, exact_text, identifier,
                                                long_text, rdata)

revision = '0001'
down_revision = None

TABLE = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}
STATUSES = "status IN ('PENDING', 'ACTIVE', 'ERROR', 'DELETED')"
SERIAL_RANGE = '{0} >= 0 AND {0} <= 4294967295'


def upgrade() -> None:
    pools = op.create_table(
        'pools',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('name', exact_text(50), nullable=False),
        sa.Column('description', sa.String(255)),
        sa.Column('project_id', sa.String(36)),
        sa.Column('provisioner', sa.String(16), nullable=False, server_default='unmanaged'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_pools')),
        sa.UniqueConstraint('name', name=op.f('uq_pools_name')),
        sa.CheckConstraint("provisioner IN ('unmanaged')", name=op.f('ck_pools_provisioner')),
        **TABLE,
    )
    op.create_table(
        'pool_attributes',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('key', sa.String(255), nullable=False),
        sa.Column('value', sa.String(255), nullable=False),
        sa.Column('position', sa.Integer, nullable=False, server_default='0'),
        sa.Column('pool_id', identifier(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_pool_attributes')),
        sa.ForeignKeyConstraint(['pool_id'], ['pools.id'], ondelete='CASCADE',
                                name=op.f('fk_pool_attributes_pool_id')),
        sa.Index(op.f('ix_pool_attributes_pool_id'), 'pool_id'),
        **TABLE,
    )
    op.create_table(
        'domains',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('deleted_at', Time),
        sa.Column('deleted', deletion_mark(), nullable=False, server_default='0'),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('pool_id', identifier(), nullable=False),
        sa.Column('project_id', sa.String(36), nullable=False, server_default=''),
        sa.Column('name', domain_name(), nullable=False),
        sa.Column('email', sa.String(255), nullable=False),
        sa.Column('description', sa.String(160)),
        sa.Column('ttl', sa.Integer, nullable=False),
        sa.Column('refresh', sa.Integer, nullable=False),
        sa.Column('retry', sa.Integer, nullable=False),
        sa.Column('expire', sa.Integer, nullable=False),
        sa.Column('minimum', sa.Integer, nullable=False),
        sa.Column('serial', sa.BigInteger, nullable=False),
        sa.Column('status', sa.String(16), nullable=False, server_default='ACTIVE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_domains')),
        sa.ForeignKeyConstraint(['pool_id'], ['pools.id'], name=op.f('fk_domains_pool_id')),
        sa.UniqueConstraint('name', 'deleted', name=op.f('uq_domains_name')),
        sa.CheckConstraint(SERIAL_RANGE.format('serial'), name=op.f('ck_domains_serial')),
        sa.CheckConstraint(STATUSES, name=op.f('ck_domains_status')),
        sa.Index(op.f('ix_domains_pool_id_id'), 'pool_id', 'id'),
        sa.Index(op.f('ix_domains_pool_id_status_updated_at'), 'pool_id', 'status', 'updated_at'),
        **TABLE,
    )
    op.create_table(
        'recordsets',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('deleted', deletion_mark(), nullable=False, server_default='0'),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('domain_id', identifier(), nullable=False),
        sa.Column('name', domain_name(), nullable=False),
        sa.Column('type', ascii_text(16), nullable=False),
        sa.Column('ttl', sa.Integer),
        sa.Column('description', sa.String(160)),
        sa.Column('managed', sa.Boolean, nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_recordsets')),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_recordsets_domain_id')),
        sa.UniqueConstraint('domain_id', 'name', 'type', 'deleted', name=op.f('uq_recordsets_domain_id')),
        **TABLE,
    )
    op.create_table(
        'records',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('domain_id', identifier(), nullable=False),
        sa.Column('recordset_id', identifier(), nullable=False),
        sa.Column('data', long_text(), nullable=False),
        sa.Column('wire', rdata(), nullable=False),
        sa.Column('status', sa.String(16), nullable=False, server_default='ACTIVE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_records')),
        sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_records_domain_id')),
        sa.ForeignKeyConstraint(['recordset_id'], ['recordsets.id'], name=op.f('fk_records_recordset_id')),
        sa.CheckConstraint(STATUSES, name=op.f('ck_records_status')),
        sa.Index(op.f('ix_records_recordset_id'), 'recordset_id'),
        sa.Index(op.f('ix_records_domain_id_status'), 'domain_id', 'status'),
        **TABLE,
    )
    now = datetime.now(timezone.utc)
    op.bulk_insert(pools, [{'id': uuid.uuid4().hex, 'created_at': now, 'updated_at': now, 'name': 'default'}])


def downgrade() -> None:
    for table in ('records', 'recordsets', 'domains', 'pool_attributes', 'pools'):
        op.drop_table(table)
