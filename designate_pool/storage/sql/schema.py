"""The tables.

Names are ASCII and compared octet by octet.  Ids are 32 hexadecimal digits.  Times are UTC to the microsecond and come
back as aware datetimes.  A row that may be deleted and made again carries ``deleted``: '0' while it lives, then its own
id, so that UNIQUE (name, deleted) lets one live row and any number of dead ones share a name.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from designate_pool.model import (LONGEST_LABEL, Action, AuditKind, ChangeKind, KeyRole, KeyScope, KeyState, Outcome,
                                  PlanState, Reason, ServerState, SigningState, Status, Task, TransferStatus, Word,
                                  ZoneTaskKind, ZoneTaskStatus)
from designate_pool.storage.sql.columns import (Time, ascii_text, chain_key, deletion_mark, domain_name, exact_text,
                                                identifier, long_text, piece, rdata)

#: Of ``deleted``, while the row lives.
ALIVE = '0'
MAX_SERIAL = 4294967295
#: Characters of a domain's attributes.
MOST_ATTRIBUTES = 5000
#: How many operations a domain remembers, and how many characters of the id of each; its serial takes 8 more.
OPERATIONS, OPERATION = 32, 16
#: Characters of a secondary domain's masters, and of the two names in its SOA.
MOST_MASTERS, SOA_NAMES = 3300, 2021

metadata = sa.MetaData(naming_convention={
    'pk': 'pk_%(table_name)s',
    'fk': 'fk_%(table_name)s_%(column_0_name)s',
    'uq': 'uq_%(table_name)s_%(column_0_name)s',
    'ix': 'ix_%(table_name)s_%(column_0_N_name)s',
    'ck': 'ck_%(table_name)s_%(constraint_name)s',
})


def words(kind: Any, name: str) -> sa.Enum:
    """An enum kept as text with a CHECK, the same on every database."""
    return sa.Enum(kind, name=name, native_enum=False, create_constraint=True, length=16,
                   values_callable=lambda each: [member.value for member in each])


class Code(sa.types.TypeDecorator[Word]):
    """An enum kept as text of *length* characters, which may be compared with any text."""

    impl = ascii_text(32)
    cache_ok = True

    def __init__(self, kind: type[Word], length: int = 32) -> None:
        super().__init__()
        self.kind = kind
        self.length = length
        self.impl = ascii_text(length)

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Word | None:
        return None if value is None else self.kind(value)


class Json(sa.types.TypeDecorator[Any]):
    """A value that is kept as JSON."""

    impl = long_text()
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str:
        return json.dumps(value)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:
        return None if value is None else json.loads(value)


def serials(*names: str, nullable: bool = False) -> list[sa.schema.SchemaItem]:
    """Columns of serials, with a check of each that it is from 0 to 2**32 - 1."""
    return [item for name in names for item in (
        sa.Column(name, sa.BigInteger, nullable=nullable),
        sa.CheckConstraint(f'{name} >= 0 AND {name} <= {MAX_SERIAL}', name=name))]


def times() -> list[sa.Column[Any]]:
    """When a row was created, and when it was last changed."""
    return [sa.Column('created_at', Time, nullable=False), sa.Column('updated_at', Time, nullable=False)]


def entity(has_version: bool = True) -> list[sa.Column[Any]]:
    """The columns of a row with an id, which may be changed."""
    version = sa.Column('version', sa.Integer, nullable=False, server_default='1')
    return [sa.Column('id', identifier(), primary_key=True), *times(), *([version] if has_version else [])]


def claim(claimant: sa.types.TypeEngine[str] = sa.String(64)) -> list[sa.Column[Any]]:
    """Who works on what a row is about, and until when others leave it to that."""
    return [sa.Column('claimed_by', claimant), sa.Column('claimed_until', Time)]


def counts(*names: str, kind: type[sa.Integer] = sa.Integer) -> list[sa.Column[Any]]:
    """Columns of counts, from 0."""
    return [sa.Column(name, kind, nullable=False, server_default='0') for name in names]


def flags(*names: str) -> list[sa.Column[Any]]:
    """Columns of flags, false at first."""
    return [sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false()) for name in names]


def moments(*names: str) -> list[sa.Column[Any]]:
    """Columns of times, NULL at first."""
    return [sa.Column(name, Time) for name in names]


def indexes(*keys: str) -> list[sa.Index]:
    """An index for each of *keys*: its columns, with blanks between them."""
    return [sa.Index(None, *key.split()) for key in keys]


schema_compatibility = sa.Table(
    'schema_compatibility', metadata,
    sa.Column('oldest_revision', ascii_text(32), primary_key=True))

pools = sa.Table(
    'pools', metadata, *entity(),
    sa.Column('name', exact_text(50), nullable=False),
    sa.Column('description', sa.String(255)),
    sa.Column('project_id', exact_text(36)),
    sa.Column('provisioner', sa.Enum('unmanaged', name='provisioner', native_enum=False, create_constraint=True,
                                     length=16), nullable=False, server_default='unmanaged'),
    *counts('reloads'),
    # What the pool managers' configuration says, for those who do not have it.
    sa.Column('threshold_percentage', sa.Integer),
    sa.Column('catalog_zone', domain_name()),
    *flags('count_joining_servers', 'requires_approval'),
    sa.Column('probe_interval', sa.Float),
    sa.Column('published_at', Time),
    # While it is frozen: the id of the freeze, and all of it.
    sa.Column('freeze_id', ascii_text(32)),
    sa.Column('freeze', long_text()),
    sa.Column('release_stages', long_text()),
    sa.UniqueConstraint('name'),
)

#: The catalog zones of those pools that have one.
catalogs = sa.Table(
    'catalogs', metadata,
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id', ondelete='CASCADE'), primary_key=True),
    *times(),
    *serials('serial'),
    *counts('changes', kind=sa.BigInteger),
)

pool_attributes = sa.Table(
    'pool_attributes', metadata, *entity(),
    sa.Column('key', sa.String(255), nullable=False),
    sa.Column('value', sa.String(255), nullable=False),
    *counts('position'),
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id', ondelete='CASCADE'), nullable=False),
    sa.Index(None, 'pool_id'),
)

domains = sa.Table(
    'domains', metadata, *entity(),
    *moments('deleted_at', 'changed_at', 'converged_at', 'former_until', 'transferred_at'),
    sa.Column('deleted', deletion_mark(), nullable=False, server_default=ALIVE),
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id'), nullable=False),
    sa.Column('project_id', exact_text(36), nullable=False, server_default=''),
    sa.Column('name', domain_name(), nullable=False),
    sa.Column('email', sa.String(255), nullable=False),
    sa.Column('description', sa.String(160)),
    *(sa.Column(name, sa.Integer, nullable=False) for name in ('ttl', 'refresh', 'retry', 'expire', 'minimum')),
    *serials('serial'),
    *serials('reported_serial', 'journal_from', 'journal_to', 'first_serial', 'content_serial', nullable=True),
    sa.Column('generation', sa.BigInteger, nullable=False, server_default='1'),
    sa.Column('action', words(Action, 'action'), nullable=False, server_default='CREATE'),
    sa.Column('status', words(Status, 'status'), nullable=False, server_default='PENDING'),
    sa.Column('request_id', ascii_text(64), nullable=False, server_default=''),
    *counts('journal_records', 'history_records'),
    sa.Column('catalog_change', sa.BigInteger),
    sa.Column('reversed_name', domain_name(), nullable=False),
    sa.Column('attributes', exact_text(MOST_ATTRIBUTES), nullable=False, server_default=''),
    # The newest operations first, each with its serial in hexadecimal digits; see storage.zones.domains.lock_for.
    sa.Column('operations', ascii_text(OPERATIONS * (OPERATION + 8)), nullable=False, server_default=''),
    *flags('shared', 'abandoned', 'awaits_transfer', 'purged', 'locked_by_admin', 'requires_approval', 'is_signed'),
    sa.Column('lock_reason', sa.String(255)),
    *counts('locked_recordsets'),
    sa.Column('recent_deletes', ascii_text(255), nullable=False, server_default=''),
    *(sa.Column(name, ascii_text(32)) for name in ('former_pool_id', 'moved_id')),
    sa.Column('masters', ascii_text(MOST_MASTERS), nullable=False, server_default=''),
    sa.Column('soa_names', ascii_text(SOA_NAMES), nullable=False, server_default=''),
    # As its creator wrote it, where that is not in lower case.
    sa.Column('given_name', domain_name()),
    # By whom and how, as JSON; see storage.zones.versions.
    *(sa.Column(name, long_text()) for name in ('created_by', 'deleted_by')),
    # See model.freezes.
    sa.Column('held_by', ascii_text(32)),
    sa.Column('version_before', long_text()),
    sa.Column('release_state', long_text()),
    sa.UniqueConstraint('name', 'deleted'),
    *indexes('pool_id id', 'status pool_id id', 'pool_id changed_at', 'pool_id catalog_change',
             'project_id name', 'reversed_name project_id deleted', 'former_pool_id'),
    # Beside the UNIQUE one: MariaDB takes an index for an order only when nothing stands between name and id.
    sa.Index(None, 'name'),
)

#: One of these rows is locked by whoever makes a domain, for as long as it takes to look for others around it.  It is
#: written, since of two nodes of a Galera cluster each locks for itself, and what both have written they find out.
name_locks = sa.Table(
    'name_locks', metadata,
    sa.Column('number', sa.Integer, primary_key=True, autoincrement=False),
    *counts('uses', kind=sa.BigInteger),
)

recordsets = sa.Table(
    'recordsets', metadata, *entity(),
    sa.Column('deleted', deletion_mark(), nullable=False, server_default=ALIVE),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), nullable=False),
    sa.Column('name', domain_name(), nullable=False),
    sa.Column('type', ascii_text(16), nullable=False),
    sa.Column('ttl', sa.Integer),
    sa.Column('description', sa.String(160)),
    *flags('managed', 'locked_by_admin'),
    sa.Column('lock_reason', sa.String(255)),
    # Of the project that created it, where that is not the domain's.
    sa.Column('project_id', exact_text(36)),
    # As that of a domain.
    sa.Column('given_name', domain_name()),
    sa.UniqueConstraint('domain_id', 'name', 'type', 'deleted'),
    sa.Index(None, 'name'),
)

records = sa.Table(
    'records', metadata, *entity(),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), nullable=False),
    sa.Column('recordset_id', identifier(), sa.ForeignKey('recordsets.id'), nullable=False),
    sa.Column('data', long_text(), nullable=False),
    sa.Column('wire', rdata(), nullable=False),
    *serials('serial_number'),
    sa.Column('task', words(Task, 'task'), nullable=False, server_default='ADD'),
    sa.Column('status', words(Status, 'status'), nullable=False, server_default='PENDING'),
    sa.CheckConstraint("(task = 'NONE' AND status IN ('ACTIVE', 'DELETED')) OR "
                       "(task <> 'NONE' AND status IN ('PENDING', 'ERROR'))", name='task_status'),
    *indexes('recordset_id', 'domain_id status'),
)

zone_versions = sa.Table(
    'zone_versions', metadata,
    sa.Column('id', identifier(), primary_key=True),
    sa.Column('created_at', Time, nullable=False),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), nullable=False),
    # The domain's version then.
    sa.Column('number', sa.Integer, nullable=False),
    *serials('serial_number', 'former_serial'),
    sa.Column('kind', Code(ChangeKind, 16), nullable=False),
    sa.Column('project_id', exact_text(36), nullable=False),
    sa.Column('actor', long_text(), nullable=False),
    sa.Column('request_id', ascii_text(64), nullable=False),
    *counts('gone', 'added'),
    # See model.differences; NULL: not kept.
    sa.Column('difference', piece()),
    # The same of the records that the signer made.
    sa.Column('signed_difference', piece()),
    *counts('signed_size'),
    # Of the version before, as JSON; NULL: but for the serial it is the same.
    sa.Column('former_soa', long_text()),
    # As who made it says.
    sa.Column('reason', sa.String(255)),
    *indexes('domain_id number', 'domain_id serial_number', 'created_at'),
)

pool_manager_status = sa.Table(
    'pool_manager_status', metadata, *entity(),
    sa.Column('server_id', ascii_text(32), nullable=False),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), nullable=False),
    sa.Column('action', words(Action, 'action'), nullable=False),
    sa.Column('status', words(Outcome, 'status')),
    *serials('serial_number', nullable=True),
    *serials('expected_serial'),
    sa.Column('last_error', sa.String(1024)),
    *counts('attempts', 'incarnation'),
    *moments('next_attempt_at', 'deadline_at', 'seen_at'),
    *claim(),
    *flags('diverged'),
    sa.Column('finding_id', ascii_text(32)),
    # Without a CHECK, since a newer version may write words that this one does not know.
    sa.Column('reason', Code(Reason)),
    sa.CheckConstraint("action <> 'NONE'", name='some_action'),
    sa.UniqueConstraint('server_id', 'domain_id', 'action'),
    *indexes('domain_id', 'server_id next_attempt_at'),
)

#: Who calls a server for a name without a row above.
name_claims = sa.Table(
    'name_claims', metadata,
    sa.Column('name', domain_name(), primary_key=True),
    sa.Column('server_id', ascii_text(32), primary_key=True),
    sa.Column('claimed_by', sa.String(64), nullable=False),
    sa.Column('claimed_until', Time, nullable=False),
)

#: Pools whose domains are being brought to the pool's present name servers.
pool_renewals = sa.Table(
    'pool_renewals', metadata,
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id', ondelete='CASCADE'), primary_key=True),
    *times(),
    sa.Column('run', identifier(), nullable=False),
    sa.Column('everywhere', sa.Boolean, nullable=False),
    sa.Column('request_id', ascii_text(64), nullable=False),
    sa.Column('former_primary', ascii_text(1010), nullable=False),
    sa.Column('actor', long_text(), nullable=False),
    sa.Column('after_id', ascii_text(32), nullable=False),
    sa.Column('left_out', Json, nullable=False),
    sa.Column('claimed_until', Time, nullable=False),
)

#: The rounds that look at every domain of a pool: where the present one is, and what the last one found.
audits = sa.Table(
    'audits', metadata,
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id', ondelete='CASCADE'), primary_key=True),
    sa.Column('kind', Code(AuditKind, 16), primary_key=True),
    *times(),
    sa.Column('version', sa.Integer, nullable=False, server_default='1'),
    sa.Column('started_at', Time, nullable=False),
    sa.Column('after_id', ascii_text(32), nullable=False, server_default=''),
    sa.Column('next_at', Time),
    *counts('sent', 'heard', 'domains'),
    *counts('pairs', 'asked', 'unanswered', 'findings', kind=sa.BigInteger),
    sa.Column('last_started_at', Time),
    sa.Column('last_seconds', sa.Float),
    sa.Column('last_domains', sa.Integer),
    *(sa.Column(f'last_{name}', sa.BigInteger) for name in ('pairs', 'asked', 'unanswered', 'findings')),
    *claim(),
    sa.CheckConstraint("kind IN ('SERIALS', 'CONTENTS', 'SIGNATURES', 'UNSETTLED', 'EXTRA')", name='kind'),
)

#: What they found, so that people see it afterwards.
audit_findings = sa.Table(
    'audit_findings', metadata,
    sa.Column('id', identifier(), primary_key=True),
    sa.Column('created_at', Time, nullable=False),
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id', ondelete='CASCADE'), nullable=False),
    sa.Column('kind', Code(AuditKind, 16), nullable=False),
    sa.Column('domain_id', identifier(), nullable=False),
    sa.Column('name', domain_name(), nullable=False),
    sa.Column('server_id', ascii_text(32), nullable=False),
    sa.Column('label', sa.String(LONGEST_LABEL), nullable=False),
    sa.Column('what', sa.String(1024), nullable=False),
    sa.Column('done', sa.String(255), nullable=False),
    *indexes('pool_id created_at', 'domain_id'),
)

pool_servers = sa.Table(
    'pool_servers', metadata, *entity(),
    sa.Column('pool_id', identifier(), sa.ForeignKey('pools.id'), nullable=False),
    sa.Column('label', sa.String(LONGEST_LABEL), nullable=False),
    sa.Column('driver', ascii_text(64), nullable=False),
    sa.Column('state', words(ServerState, 'state'), nullable=False),
    sa.Column('state_since', Time, nullable=False),
    sa.Column('joined_at', Time),
    sa.Column('fingerprint', ascii_text(64), nullable=False),
    *counts('position', 'filled', 'catalog_epoch'),
    sa.Column('filled_to', ascii_text(32)),
    *flags('dismissed', 'delete_zones', 'polled'),
    *serials('catalog_from', nullable=True),
    sa.Column('note', sa.String(1024)),
    *claim(),
    sa.Column('key_name', domain_name()),
    sa.Column('reason', Code(Reason)),
    sa.Column('verify', ascii_text(1024)),
    sa.Column('limits', ascii_text(4096), nullable=False, server_default=''),
    sa.Column('silent_since', Time),
    sa.Index(None, 'pool_id'),
)

plans = sa.Table(
    'plans', metadata, *entity(has_version=False),
    sa.Column('pool_name', exact_text(50), nullable=False),
    sa.Column('zone', domain_name(), nullable=False),
    sa.Column('target', sa.String(300), nullable=False),
    sa.Column('state', words(PlanState, 'state'), nullable=False),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id')),
    sa.Column('server_id', ascii_text(32)),
    sa.Column('desired_digest', ascii_text(96), nullable=False),
    sa.Column('existing_digest', ascii_text(96), nullable=False),
    *counts('creates', 'updates', 'deletes'),
    sa.Column('why', long_text()),
    sa.Column('document', long_text(), nullable=False),
    sa.Column('asked_by', sa.String(255)),
    sa.Column('expires_at', Time, nullable=False),
    sa.Column('applied_at', Time),
    sa.Column('project_id', exact_text(36)),
    sa.Column('asking_project_id', exact_text(36)),
    *indexes('domain_id server_id', 'state expires_at', 'pool_name applied_at'),
)

#: Which RRsets on a server that is fed by records are ours.
owned_rrsets = sa.Table(
    'owned_rrsets', metadata,
    sa.Column('server_id', ascii_text(32), primary_key=True),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), primary_key=True),
    sa.Column('name', domain_name(), primary_key=True),
    sa.Column('type', ascii_text(16), primary_key=True),
    sa.Index(None, 'domain_id'),
)

#: What a project may have, where it is not what the configuration says; -1 is without limit.
quotas = sa.Table(
    'quotas', metadata,
    sa.Column('project_id', exact_text(36), primary_key=True),
    sa.Column('resource', ascii_text(32), primary_key=True),
    *times(),
    sa.Column('hard_limit', sa.Integer, nullable=False),
)

#: How many recordsets projects have deleted lately, where that is limited.
project_deletes = sa.Table(
    'project_deletes', metadata,
    sa.Column('project_id', exact_text(36), primary_key=True),
    sa.Column('recent_deletes', ascii_text(255), nullable=False, server_default=''),
    sa.Column('updated_at', Time, nullable=False),
    *indexes('updated_at'),
)

#: Keys that may transfer zones from MiniDNS: all of a pool, or one.
tsigkeys = sa.Table(
    'tsigkeys', metadata, *entity(),
    sa.Column('name', domain_name(), nullable=False),
    sa.Column('algorithm', ascii_text(32), nullable=False),
    sa.Column('secret', sa.String(1024), nullable=False),
    sa.Column('scope', Code(KeyScope, 8), nullable=False),
    sa.Column('resource_id', identifier(), nullable=False),
    sa.CheckConstraint("scope IN ('POOL', 'ZONE')", name='scope'),
    sa.UniqueConstraint('name'),
    sa.Index(None, 'resource_id'),
)

#: Zones lie below one of these names, if there are any.
tlds = sa.Table(
    'tlds', metadata, *entity(),
    sa.Column('name', ascii_text(255), nullable=False),
    sa.Column('description', sa.String(160)),
    sa.UniqueConstraint('name'),
)

#: Zones do not have names in which one of these patterns is found.
blacklists = sa.Table(
    'blacklists', metadata, *entity(),
    sa.Column('pattern', exact_text(255), nullable=False),
    sa.Column('description', sa.String(160)),
    sa.UniqueConstraint('pattern'),
)

#: When a secondary domain is refreshed next, and how the last refresh ended.
secondary_zones = sa.Table(
    'secondary_zones', metadata,
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id', ondelete='CASCADE'), primary_key=True),
    *times(),
    sa.Column('next_at', Time, nullable=False),
    sa.Column('checked_at', Time),
    sa.Column('master', ascii_text(320)),
    *counts('failures'),
    sa.Column('last_error', sa.String(1024)),
    *flags('is_requested'),
    *claim(ascii_text(32)),
    sa.Index(None, 'next_at'),
)

#: How far the signing of a zone has come, and when it goes on.
zone_signing = sa.Table(
    'zone_signing', metadata,
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id', ondelete='CASCADE'), primary_key=True),
    *times(),
    sa.Column('state', Code(SigningState, 16), nullable=False),
    sa.Column('policy', exact_text(50), nullable=False),
    sa.Column('algorithm', sa.Integer, nullable=False),
    sa.Column('denial', ascii_text(8), nullable=False),
    sa.Column('since', Time, nullable=False),
    *serials('serial', nullable=True),
    *moments('next_event_at', 'resign_at'),
    sa.Column('why', sa.String(1024)),
    sa.Column('skipped', Json, nullable=False),
    sa.Column('ds_seen', Json, nullable=False),
    sa.Column('prepared_to', domain_name()),
    *claim(),
    *indexes('next_event_at', 'resign_at'),
)

#: The keys of zones.
zone_keys = sa.Table(
    'zone_keys', metadata, *entity(has_version=False),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id', ondelete='CASCADE'), nullable=False),
    sa.Column('role', Code(KeyRole, 8), nullable=False),
    sa.Column('algorithm', sa.Integer, nullable=False),
    sa.Column('tag', sa.Integer, nullable=False),
    sa.Column('public', rdata(), nullable=False),
    # Encrypted; NULL for a key in a token, and after it was destroyed.
    sa.Column('private', long_text()),
    sa.Column('token_uri', sa.String(1024)),
    sa.Column('state', Code(KeyState, 16), nullable=False),
    sa.Column('longest_ttls', Json, nullable=False),
    *moments('publish_at', 'ready_at', 'active_at', 'ds_seen_at', 'retire_at', 'remove_at'),
    *indexes('domain_id', 'state remove_at'),
)

#: What the signer has added to zones.
signed_records = sa.Table(
    'signed_records', metadata,
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id', ondelete='CASCADE'), primary_key=True),
    # Of name, type and rdata, by which a row is found.
    sa.Column('digest', identifier(), primary_key=True),
    sa.Column('name', domain_name(), nullable=False),
    sa.Column('type', ascii_text(16), nullable=False),
    sa.Column('covered', ascii_text(16), nullable=False, server_default=''),
    sa.Column('ttl', sa.Integer, nullable=False),
    sa.Column('wire', rdata(), nullable=False),
    sa.Column('chain_key', chain_key()),
    sa.Column('expires_at', sa.BigInteger),
    sa.Column('key_tag', sa.Integer),
    *indexes('domain_id name', 'domain_id chain_key', 'domain_id expires_at', 'domain_id key_tag'),
)

#: How often something has changed that programs keep in memory: they read it again when the number is another one.
change_counts = sa.Table(
    'change_counts', metadata,
    sa.Column('what', ascii_text(32), primary_key=True),
    *counts('changes', kind=sa.BigInteger),
)

#: Imports and exports of zones as zone files.
zone_tasks = sa.Table(
    'zone_tasks', metadata, *entity(),
    sa.Column('project_id', exact_text(36), nullable=False, server_default=''),
    sa.Column('kind', Code(ZoneTaskKind, 8), nullable=False),
    sa.Column('status', Code(ZoneTaskStatus, 16), nullable=False, server_default='PENDING'),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id')),
    sa.Column('size', sa.BigInteger),
    sa.Column('message', long_text()),
    sa.Column('request_id', ascii_text(64), nullable=False, server_default=''),
    *claim(),
    *flags('may_nest', 'may_use_blacklisted', 'may_approve'),
    sa.Column('pool_id', ascii_text(32)),
    sa.Column('attributes', exact_text(MOST_ATTRIBUTES), nullable=False, server_default=''),
    sa.Column('actor', long_text()),
    sa.CheckConstraint("kind IN ('IMPORT', 'EXPORT')", name='kind'),
    sa.CheckConstraint("status IN ('PENDING', 'COMPLETE', 'ERROR')", name='status'),
    *indexes('project_id created_at', 'status created_at', 'domain_id'),
)

_TRANSFER_STATUSES = "status IN ('ACTIVE', 'PENDING', 'DELETED', 'ERROR', 'COMPLETE')"
#: Requests of owners that other projects take over their zones.
zone_transfer_requests = sa.Table(
    'zone_transfer_requests', metadata, *entity(),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), nullable=False),
    sa.Column('project_id', exact_text(36), nullable=False, server_default=''),
    sa.Column('target_project_id', exact_text(36)),
    sa.Column('key', exact_text(160), nullable=False),
    sa.Column('description', sa.String(160)),
    sa.Column('status', Code(TransferStatus, 16), nullable=False, server_default='ACTIVE'),
    *flags('approved'),
    sa.CheckConstraint(_TRANSFER_STATUSES, name='status'),
    *indexes('domain_id', 'project_id created_at', 'target_project_id'),
)

#: Which project accepted such a request, which may be deleted since.
zone_transfer_accepts = sa.Table(
    'zone_transfer_accepts', metadata, *entity(),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id'), nullable=False),
    sa.Column('request_id', identifier(), nullable=False),
    sa.Column('project_id', exact_text(36), nullable=False),
    sa.Column('status', Code(TransferStatus, 16), nullable=False, server_default='ACTIVE'),
    sa.CheckConstraint(_TRANSFER_STATUSES, name='status'),
    *indexes('domain_id', 'project_id created_at'),
)

#: Which other projects may use a zone.
zone_shares = sa.Table(
    'zone_shares', metadata, *entity(has_version=False),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id', ondelete='CASCADE'), nullable=False),
    sa.Column('project_id', exact_text(36), nullable=False, server_default=''),
    sa.Column('target_project_id', exact_text(36), nullable=False),
    sa.UniqueConstraint('domain_id', 'target_project_id'),
    sa.Index(None, 'target_project_id'),
)

#: For which resources of other services records are there: a record stays while one of these rows names it.
managed_records = sa.Table(
    'managed_records', metadata, *entity(has_version=False),
    sa.Column('domain_id', identifier(), sa.ForeignKey('domains.id', ondelete='CASCADE'), nullable=False),
    # None in a row that only keeps when the last event of the resource was.
    sa.Column('recordset_id', identifier()),
    sa.Column('data', long_text(), nullable=False),
    sa.Column('plugin', ascii_text(32), nullable=False, server_default=''),
    sa.Column('resource_type', ascii_text(32), nullable=False),
    sa.Column('resource_id', exact_text(100), nullable=False),
    sa.Column('region', exact_text(100), nullable=False, server_default=''),
    sa.Column('address', ascii_text(45), nullable=False, server_default=''),
    sa.Column('project_id', exact_text(36), nullable=False, server_default=''),
    sa.Column('event_at', Time),
    *indexes('domain_id', 'recordset_id', 'resource_id', 'address', 'project_id'),
)

#: The zone file of an import, in pieces, until it has been read.
zone_task_pieces = sa.Table(
    'zone_task_pieces', metadata,
    sa.Column('task_id', identifier(), sa.ForeignKey('zone_tasks.id', ondelete='CASCADE'), primary_key=True),
    sa.Column('number', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('content', piece(), nullable=False),
)

#: Which programs run where, by what they say of themselves.
service_statuses = sa.Table(
    'service_statuses', metadata, *entity(has_version=False),
    sa.Column('service_name', ascii_text(32), nullable=False),
    sa.Column('hostname', sa.String(255), nullable=False),
    sa.Column('status', ascii_text(8), nullable=False, server_default='UP'),
    sa.Column('heartbeated_at', Time, nullable=False),
    sa.Column('stats', Json, nullable=False),
    sa.Column('capabilities', Json, nullable=False),
    sa.Column('pool_name', exact_text(50), nullable=False, server_default=''),
    sa.CheckConstraint("status IN ('UP', 'DOWN', 'WARNING')", name='status'),
    sa.Index(None, 'service_name', 'hostname', 'pool_name'),
)
