"""All tables of version 0.1.0.

Revision ID: 0001
"""

from datetime import datetime, timezone

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import (Time, ascii_text, chain_key, deletion_mark, domain_name, exact_text,
                                                identifier, long_text, piece, rdata)

revision = '0001'
down_revision = None

metadata = sa.MetaData(naming_convention={
    'pk': 'pk_%(table_name)s',
    'fk': 'fk_%(table_name)s_%(column_0_name)s',
    'uq': 'uq_%(table_name)s_%(column_0_name)s',
    'ix': 'ix_%(table_name)s_%(column_0_N_name)s',
    'ck': 'ck_%(table_name)s_%(constraint_name)s',
})
STATUSES = 'PENDING', 'ACTIVE', 'ERROR', 'DELETED'
ACTIONS = 'NONE', 'CREATE', 'UPDATE', 'DELETE'
TRANSFER_STATUSES = "status IN ('ACTIVE', 'PENDING', 'DELETED', 'ERROR', 'COMPLETE')"


def table(name, *columns):
    sa.Table(name, metadata, *columns, mysql_engine='InnoDB', mysql_charset='utf8mb4')


def words(name, *values):
    return sa.Enum(*values, name=name, native_enum=False, create_constraint=True, length=16)


def serial(name, nullable=False):
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def serial_check(name):
    return sa.CheckConstraint(f'{name} >= 0 AND {name} <= 4294967295', name=name)


def times():
    return [sa.Column('created_at', Time, nullable=False), sa.Column('updated_at', Time, nullable=False)]


table(
    'schema_compatibility',
    sa.Column('oldest_revision', ascii_text(32), primary_key=True),
)

table(
    'pools',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('name', exact_text(50), nullable=False),
    sa.Column('description', sa.String(255)),
    sa.Column('project_id', exact_text(36)),
    sa.Column('provisioner', words('provisioner', 'unmanaged'), nullable=False, server_default='unmanaged'),
    sa.Column('reloads', sa.Integer, nullable=False, server_default='0'),
    sa.Column('threshold_percentage', sa.Integer),
    sa.Column('catalog_zone', domain_name()),
    sa.Column('count_joining_servers', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('requires_approval', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('probe_interval', sa.Float),
    sa.Column('published_at', Time),
    sa.Column('freeze_id', ascii_text(32)),
    sa.Column('freeze', long_text()),
    sa.Column('release_stages', long_text()),
    sa.UniqueConstraint('name'),
)

table(
    'catalogs',
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id', ondelete='CASCADE'), primary_key=True),
    *times(),
    serial('serial'),
    sa.Column('changes', sa.BigInteger, nullable=False, server_default='0'),
    serial_check('serial'),
)

table(
    'pool_attributes',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('key', sa.String(255), nullable=False),
    sa.Column('value', sa.String(255), nullable=False),
    sa.Column('position', sa.Integer, nullable=False, server_default='0'),
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id', ondelete='CASCADE'), nullable=False),
    sa.Index(None, 'pool_id'),
)

table(
    'domains',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('deleted_at', Time),
    sa.Column('deleted', deletion_mark(), nullable=False, server_default='0'),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id'), nullable=False),
    sa.Column('project_id', exact_text(36), nullable=False, server_default=''),
    sa.Column('name', domain_name(), nullable=False),
    sa.Column('email', sa.String(255), nullable=False),
    sa.Column('description', sa.String(160)),
    sa.Column('ttl', sa.Integer, nullable=False),
    sa.Column('refresh', sa.Integer, nullable=False),
    sa.Column('retry', sa.Integer, nullable=False),
    sa.Column('expire', sa.Integer, nullable=False),
    sa.Column('minimum', sa.Integer, nullable=False),
    serial('serial'),
    serial('reported_serial', nullable=True),
    sa.Column('generation', sa.BigInteger, nullable=False, server_default='1'),
    sa.Column('action', words('action', *ACTIONS), nullable=False, server_default='CREATE'),
    sa.Column('status', words('status', *STATUSES), nullable=False, server_default='PENDING'),
    sa.Column('changed_at', Time),
    sa.Column('converged_at', Time),
    sa.Column('request_id', ascii_text(64), nullable=False, server_default=''),
    serial('journal_from', nullable=True),
    serial('journal_to', nullable=True),
    sa.Column('journal_records', sa.Integer, nullable=False, server_default='0'),
    sa.Column('history_records', sa.Integer, nullable=False, server_default='0'),
    serial('first_serial', nullable=True),
    serial('content_serial', nullable=True),
    sa.Column('catalog_change', sa.BigInteger),
    sa.Column('reversed_name', domain_name(), nullable=False),
    sa.Column('attributes', exact_text(5000), nullable=False, server_default=''),
    sa.Column('operations', ascii_text(768), nullable=False, server_default=''),
    sa.Column('shared', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('former_pool_id', ascii_text(32)),
    sa.Column('former_until', Time),
    sa.Column('moved_id', ascii_text(32)),
    sa.Column('abandoned', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('masters', ascii_text(3300), nullable=False, server_default=''),
    sa.Column('soa_names', ascii_text(2021), nullable=False, server_default=''),
    sa.Column('given_name', domain_name()),
    sa.Column('transferred_at', Time),
    sa.Column('awaits_transfer', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('lock_reason', sa.String(255)),
    sa.Column('locked_by_admin', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('locked_recordsets', sa.Integer, nullable=False, server_default='0'),
    sa.Column('recent_deletes', ascii_text(255), nullable=False, server_default=''),
    sa.Column('purged', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('requires_approval', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('is_signed', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('created_by', long_text()),
    sa.Column('deleted_by', long_text()),
    sa.Column('held_by', ascii_text(32)),
    sa.Column('version_before', long_text()),
    sa.Column('release_state', long_text()),
    serial_check('serial'),
    serial_check('reported_serial'),
    serial_check('journal_from'),
    serial_check('journal_to'),
    serial_check('first_serial'),
    serial_check('content_serial'),
    sa.UniqueConstraint('name', 'deleted'),
    sa.Index(None, 'pool_id', 'id'),
    sa.Index(None, 'status', 'pool_id', 'id'),
    sa.Index(None, 'pool_id', 'changed_at'),
    sa.Index(None, 'pool_id', 'catalog_change'),
    sa.Index(None, 'name'),
    sa.Index(None, 'project_id', 'name'),
    sa.Index(None, 'reversed_name', 'project_id', 'deleted'),
    sa.Index(None, 'former_pool_id'),
)

table(
    'name_locks',
    sa.Column('number', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('uses', sa.BigInteger, nullable=False, server_default='0'),
)

table(
    'recordsets',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('deleted', deletion_mark(), nullable=False, server_default='0'),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), nullable=False),
    sa.Column('name', domain_name(), nullable=False),
    sa.Column('type', ascii_text(16), nullable=False),
    sa.Column('ttl', sa.Integer),
    sa.Column('description', sa.String(160)),
    sa.Column('managed', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('lock_reason', sa.String(255)),
    sa.Column('locked_by_admin', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('project_id', exact_text(36)),
    sa.Column('given_name', domain_name()),
    sa.UniqueConstraint('domain_id', 'name', 'type', 'deleted'),
    sa.Index(None, 'name'),
)

table(
    'records',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), nullable=False),
    sa.Column('recordset_id', identifier(), sa.ForeignKey('recordsets.id'), nullable=False),
    sa.Column('data', long_text(), nullable=False),
    sa.Column('wire', rdata(), nullable=False),
    serial('serial_number'),
    sa.Column('task', words('task', 'NONE', 'ADD', 'UPDATE', 'DELETE'), nullable=False, server_default='ADD'),
    sa.Column('status', words('status', *STATUSES), nullable=False, server_default='PENDING'),
    serial_check('serial_number'),
    sa.CheckConstraint("(task = 'NONE' AND status IN ('ACTIVE', 'DELETED')) OR "
                       "(task <> 'NONE' AND status IN ('PENDING', 'ERROR'))", name='task_status'),
    sa.Index(None, 'recordset_id'),
    sa.Index(None, 'domain_id', 'status'),
)

table(
    'zone_versions',
    sa.Column('id', identifier(), primary_key=True),
    sa.Column('created_at', Time, nullable=False),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), nullable=False),
    sa.Column('number', sa.Integer, nullable=False),
    serial('serial_number'),
    serial('former_serial'),
    sa.Column('kind', ascii_text(16), nullable=False),
    sa.Column('project_id', exact_text(36), nullable=False),
    sa.Column('actor', long_text(), nullable=False),
    sa.Column('request_id', ascii_text(64), nullable=False),
    sa.Column('gone', sa.Integer, nullable=False, server_default='0'),
    sa.Column('added', sa.Integer, nullable=False, server_default='0'),
    sa.Column('difference', piece()),
    sa.Column('signed_difference', piece()),
    sa.Column('signed_size', sa.Integer, nullable=False, server_default='0'),
    sa.Column('former_soa', long_text()),
    sa.Column('reason', sa.String(255)),
    serial_check('serial_number'),
    serial_check('former_serial'),
    sa.Index(None, 'domain_id', 'number'),
    sa.Index(None, 'domain_id', 'serial_number'),
    sa.Index(None, 'created_at'),
)

table(
    'pool_manager_status',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('server_id', ascii_text(32), nullable=False),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), nullable=False),
    sa.Column('action', words('action', *ACTIONS), nullable=False),
    sa.Column('status', words('status', 'SUCCESS', 'ERROR')),
    serial('serial_number', nullable=True),
    serial('expected_serial'),
    sa.Column('last_error', sa.String(1024)),
    sa.Column('attempts', sa.Integer, nullable=False, server_default='0'),
    sa.Column('next_attempt_at', Time),
    sa.Column('deadline_at', Time),
    sa.Column('seen_at', Time),
    sa.Column('claimed_by', sa.String(64)),
    sa.Column('claimed_until', Time),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('diverged', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('finding_id', ascii_text(32)),
    sa.Column('incarnation', sa.Integer, nullable=False, server_default='0'),
    sa.Column('reason', ascii_text(32)),
    serial_check('serial_number'),
    serial_check('expected_serial'),
    sa.CheckConstraint("action <> 'NONE'", name='some_action'),
    sa.UniqueConstraint('server_id', 'domain_id', 'action'),
    sa.Index(None, 'domain_id'),
    sa.Index(None, 'server_id', 'next_attempt_at'),
)

table(
    'name_claims',
    sa.Column('name', domain_name(), primary_key=True),
    sa.Column('server_id', ascii_text(32), primary_key=True),
    sa.Column('claimed_by', sa.String(64), nullable=False),
    sa.Column('claimed_until', Time, nullable=False),
)

table(
    'pool_renewals',
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id', ondelete='CASCADE'), primary_key=True),
    *times(),
    sa.Column('run', identifier(), nullable=False),
    sa.Column('everywhere', sa.Boolean, nullable=False),
    sa.Column('request_id', ascii_text(64), nullable=False),
    sa.Column('former_primary', ascii_text(1010), nullable=False),
    sa.Column('actor', long_text(), nullable=False),
    sa.Column('after_id', ascii_text(32), nullable=False),
    sa.Column('left_out', long_text(), nullable=False),
    sa.Column('claimed_until', Time, nullable=False),
)

table(
    'audits',
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id', ondelete='CASCADE'), primary_key=True),
    sa.Column('kind', ascii_text(16), primary_key=True),
    *times(),
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
    sa.CheckConstraint("kind IN ('SERIALS', 'CONTENTS', 'SIGNATURES', 'UNSETTLED', 'EXTRA')", name='kind'),
)

table(
    'audit_findings',
    sa.Column('id', identifier(), primary_key=True),
    sa.Column('created_at', Time, nullable=False),
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id', ondelete='CASCADE'), nullable=False),
    sa.Column('kind', ascii_text(16), nullable=False),
    sa.Column('domain_id', identifier(), nullable=False),
    sa.Column('name', domain_name(), nullable=False),
    sa.Column('server_id', ascii_text(32), nullable=False),
    sa.Column('label', sa.String(300), nullable=False),
    sa.Column('what', sa.String(1024), nullable=False),
    sa.Column('done', sa.String(255), nullable=False),
    sa.Index(None, 'pool_id', 'created_at'),
    sa.Index(None, 'domain_id'),
)

table(
    'pool_servers',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id'), nullable=False),
    sa.Column('label', sa.String(300), nullable=False),
    sa.Column('driver', ascii_text(64), nullable=False),
    sa.Column('state', words('state', 'joining', 'active', 'maintenance', 'draining', 'removed'), nullable=False),
    sa.Column('state_since', Time, nullable=False),
    sa.Column('joined_at', Time),
    sa.Column('fingerprint', ascii_text(64), nullable=False),
    sa.Column('position', sa.Integer, nullable=False, server_default='0'),
    sa.Column('filled_to', ascii_text(32)),
    sa.Column('filled', sa.Integer, nullable=False, server_default='0'),
    sa.Column('dismissed', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('delete_zones', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('polled', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('catalog_epoch', sa.Integer, nullable=False, server_default='0'),
    serial('catalog_from', nullable=True),
    sa.Column('note', sa.String(1024)),
    sa.Column('claimed_by', sa.String(64)),
    sa.Column('claimed_until', Time),
    sa.Column('key_name', domain_name()),
    sa.Column('reason', ascii_text(32)),
    sa.Column('verify', ascii_text(1024)),
    sa.Column('limits', ascii_text(4096), nullable=False, server_default=''),
    sa.Column('silent_since', Time),
    serial_check('catalog_from'),
    sa.Index(None, 'pool_id'),
)

table(
    'plans',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('pool_name', exact_text(50), nullable=False),
    sa.Column('zone', domain_name(), nullable=False),
    sa.Column('target', sa.String(300), nullable=False),
    sa.Column('state', words('state', 'STORED', 'PARKED', 'APPROVED', 'APPLIED', 'FAILED', 'DROPPED'), nullable=False),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id')),
    sa.Column('server_id', ascii_text(32)),
    sa.Column('desired_digest', ascii_text(96), nullable=False),
    sa.Column('existing_digest', ascii_text(96), nullable=False),
    sa.Column('creates', sa.Integer, nullable=False, server_default='0'),
    sa.Column('updates', sa.Integer, nullable=False, server_default='0'),
    sa.Column('deletes', sa.Integer, nullable=False, server_default='0'),
    sa.Column('why', long_text()),
    sa.Column('document', long_text(), nullable=False),
    sa.Column('asked_by', sa.String(255)),
    sa.Column('expires_at', Time, nullable=False),
    sa.Column('applied_at', Time),
    sa.Column('project_id', exact_text(36)),
    sa.Column('asking_project_id', exact_text(36)),
    sa.Index(None, 'domain_id', 'server_id'),
    sa.Index(None, 'state', 'expires_at'),
    sa.Index(None, 'pool_name', 'applied_at'),
)

table(
    'owned_rrsets',
    sa.Column('server_id', ascii_text(32), primary_key=True),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), primary_key=True),
    sa.Column('name', domain_name(), primary_key=True),
    sa.Column('type', ascii_text(16), primary_key=True),
    sa.Index(None, 'domain_id'),
)

table(
    'quotas',
    sa.Column('project_id', exact_text(36), primary_key=True),
    sa.Column('resource', ascii_text(32), primary_key=True),
    *times(),
    sa.Column('hard_limit', sa.Integer, nullable=False),
)

table(
    'project_deletes',
    sa.Column('project_id', exact_text(36), primary_key=True),
    sa.Column('recent_deletes', ascii_text(255), nullable=False, server_default=''),
    sa.Column('updated_at', Time, nullable=False),
    sa.Index(None, 'updated_at'),
)

table(
    'tsigkeys',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('name', domain_name(), nullable=False),
    sa.Column('algorithm', ascii_text(32), nullable=False),
    sa.Column('secret', sa.String(1024), nullable=False),
    sa.Column('scope', ascii_text(8), nullable=False),
    sa.Column('resource_id', identifier(), nullable=False),
    sa.CheckConstraint("scope IN ('POOL', 'ZONE')", name='scope'),
    sa.UniqueConstraint('name'),
    sa.Index(None, 'resource_id'),
)

table(
    'tlds',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('name', ascii_text(255), nullable=False),
    sa.Column('description', sa.String(160)),
    sa.UniqueConstraint('name'),
)

table(
    'blacklists',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('pattern', exact_text(255), nullable=False),
    sa.Column('description', sa.String(160)),
    sa.UniqueConstraint('pattern'),
)

table(
    'secondary_zones',
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id', ondelete='CASCADE'), primary_key=True),
    *times(),
    sa.Column('next_at', Time, nullable=False),
    sa.Column('checked_at', Time),
    sa.Column('master', ascii_text(320)),
    sa.Column('failures', sa.Integer, nullable=False, server_default='0'),
    sa.Column('last_error', sa.String(1024)),
    sa.Column('is_requested', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('claimed_by', ascii_text(32)),
    sa.Column('claimed_until', Time),
    sa.Index(None, 'next_at'),
)

table(
    'change_counts',
    sa.Column('what', ascii_text(32), primary_key=True),
    sa.Column('changes', sa.BigInteger, nullable=False, server_default='0'),
)

table(
    'zone_tasks',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('project_id', exact_text(36), nullable=False, server_default=''),
    sa.Column('kind', ascii_text(8), nullable=False),
    sa.Column('status', ascii_text(16), nullable=False, server_default='PENDING'),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id')),
    sa.Column('size', sa.BigInteger),
    sa.Column('message', long_text()),
    sa.Column('request_id', ascii_text(64), nullable=False, server_default=''),
    sa.Column('claimed_by', sa.String(64)),
    sa.Column('claimed_until', Time),
    sa.Column('may_nest', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('pool_id', ascii_text(32)),
    sa.Column('may_use_blacklisted', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('may_approve', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column('attributes', exact_text(5000), nullable=False, server_default=''),
    sa.Column('actor', long_text()),
    sa.CheckConstraint("kind IN ('IMPORT', 'EXPORT')", name='kind'),
    sa.CheckConstraint("status IN ('PENDING', 'COMPLETE', 'ERROR')", name='status'),
    sa.Index(None, 'project_id', 'created_at'),
    sa.Index(None, 'status', 'created_at'),
    sa.Index(None, 'domain_id'),
)

table(
    'zone_transfer_requests',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), nullable=False),
    sa.Column('project_id', exact_text(36), nullable=False, server_default=''),
    sa.Column('target_project_id', exact_text(36)),
    sa.Column('key', exact_text(160), nullable=False),
    sa.Column('description', sa.String(160)),
    sa.Column('status', ascii_text(16), nullable=False, server_default='ACTIVE'),
    sa.Column('approved', sa.Boolean, nullable=False, server_default=sa.false()),
    sa.CheckConstraint(TRANSFER_STATUSES, name='status'),
    sa.Index(None, 'domain_id'),
    sa.Index(None, 'project_id', 'created_at'),
    sa.Index(None, 'target_project_id'),
)

table(
    'zone_transfer_accepts',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), nullable=False),
    sa.Column('request_id', identifier(), nullable=False),
    sa.Column('project_id', exact_text(36), nullable=False),
    sa.Column('status', ascii_text(16), nullable=False, server_default='ACTIVE'),
    sa.CheckConstraint(TRANSFER_STATUSES, name='status'),
    sa.Index(None, 'domain_id'),
    sa.Index(None, 'project_id', 'created_at'),
)

table(
    'zone_shares',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id', ondelete='CASCADE'), nullable=False),
    sa.Column('project_id', exact_text(36), nullable=False, server_default=''),
    sa.Column('target_project_id', exact_text(36), nullable=False),
    sa.UniqueConstraint('domain_id', 'target_project_id'),
    sa.Index(None, 'target_project_id'),
)

table(
    'managed_records',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id', ondelete='CASCADE'), nullable=False),
    sa.Column('recordset_id', identifier()),
    sa.Column('data', long_text(), nullable=False),
    sa.Column('plugin', ascii_text(32), nullable=False, server_default=''),
    sa.Column('resource_type', ascii_text(32), nullable=False),
    sa.Column('resource_id', exact_text(100), nullable=False),
    sa.Column('region', exact_text(100), nullable=False, server_default=''),
    sa.Column('address', ascii_text(45), nullable=False, server_default=''),
    sa.Column('project_id', exact_text(36), nullable=False, server_default=''),
    sa.Column('event_at', Time),
    sa.Index(None, 'domain_id'),
    sa.Index(None, 'recordset_id'),
    sa.Index(None, 'resource_id'),
    sa.Index(None, 'address'),
    sa.Index(None, 'project_id'),
)

table(
    'zone_signing',
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id', ondelete='CASCADE'), primary_key=True),
    *times(),
    sa.Column('state', ascii_text(16), nullable=False),
    sa.Column('policy', exact_text(50), nullable=False),
    sa.Column('algorithm', sa.Integer, nullable=False),
    sa.Column('denial', ascii_text(8), nullable=False),
    sa.Column('since', Time, nullable=False),
    sa.Column('serial', sa.BigInteger),
    sa.CheckConstraint('serial >= 0 AND serial <= 4294967295', name='serial'),
    sa.Column('next_event_at', Time),
    sa.Column('resign_at', Time),
    sa.Column('why', sa.String(1024)),
    sa.Column('skipped', long_text(), nullable=False),
    sa.Column('ds_seen', long_text(), nullable=False),
    sa.Column('prepared_to', domain_name()),
    sa.Column('claimed_by', sa.String(64)),
    sa.Column('claimed_until', Time),
    sa.Index(None, 'next_event_at'),
    sa.Index(None, 'resign_at'),
)

table(
    'zone_keys',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id', ondelete='CASCADE'), nullable=False),
    sa.Column('role', ascii_text(8), nullable=False),
    sa.Column('algorithm', sa.Integer, nullable=False),
    sa.Column('tag', sa.Integer, nullable=False),
    sa.Column('public', rdata(), nullable=False),
    sa.Column('private', long_text()),
    sa.Column('token_uri', sa.String(1024)),
    sa.Column('state', ascii_text(16), nullable=False),
    sa.Column('longest_ttls', long_text(), nullable=False),
    sa.Column('publish_at', Time),
    sa.Column('ready_at', Time),
    sa.Column('active_at', Time),
    sa.Column('ds_seen_at', Time),
    sa.Column('retire_at', Time),
    sa.Column('remove_at', Time),
    sa.Index(None, 'domain_id'),
    sa.Index(None, 'state', 'remove_at'),
)

table(
    'signed_records',
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id', ondelete='CASCADE'), primary_key=True),
    sa.Column('digest', identifier(), primary_key=True),
    sa.Column('name', domain_name(), nullable=False),
    sa.Column('type', ascii_text(16), nullable=False),
    sa.Column('covered', ascii_text(16), nullable=False, server_default=''),
    sa.Column('ttl', sa.Integer, nullable=False),
    sa.Column('wire', rdata(), nullable=False),
    sa.Column('chain_key', chain_key()),
    sa.Column('expires_at', sa.BigInteger),
    sa.Column('key_tag', sa.Integer),
    sa.Index(None, 'domain_id', 'name'),
    sa.Index(None, 'domain_id', 'chain_key'),
    sa.Index(None, 'domain_id', 'expires_at'),
    sa.Index(None, 'domain_id', 'key_tag'),
)

table(
    'zone_task_pieces',
    sa.Column('task_id', identifier(), sa.ForeignKey('zone_tasks.id', ondelete='CASCADE'), primary_key=True),
    sa.Column('number', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('content', piece(), nullable=False),
)

table(
    'service_statuses',
    sa.Column('id', identifier(), primary_key=True),
    *times(),
    sa.Column('service_name', ascii_text(32), nullable=False),
    sa.Column('hostname', sa.String(255), nullable=False),
    sa.Column('status', ascii_text(8), nullable=False, server_default='UP'),
    sa.Column('heartbeated_at', Time, nullable=False),
    sa.Column('stats', long_text(), nullable=False),
    sa.Column('capabilities', long_text(), nullable=False),
    sa.Column('pool_name', exact_text(50), nullable=False, server_default=''),
    sa.CheckConstraint("status IN ('UP', 'DOWN', 'WARNING')", name='status'),
    sa.Index(None, 'service_name', 'hostname', 'pool_name'),
)


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=False)
    now = datetime.now(timezone.utc)
    op.bulk_insert(metadata.tables['pools'], [
        # The id of Designate's first pool, which clients and configurations know.
        {'id': '794ccc2cd75144feb57f8894c9f5c842', 'created_at': now, 'updated_at': now, 'name': 'default'}])
    op.bulk_insert(metadata.tables['name_locks'], [{'number': number} for number in range(64)])
    op.bulk_insert(metadata.tables['change_counts'], [{'what': 'tsigkeys'}])


def downgrade() -> None:
    metadata.drop_all(op.get_bind(), checkfirst=False)
