"""Designate's tables: the columns that are read.

Enums are read as text.  ``tests/designate/takeover.py`` compares this with the tables that Designate itself makes.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from designate_pool.storage.sql.columns import Time

metadata = sa.MetaData()


class _NativeId(sa.types.TypeDecorator[str]):
    """PostgreSQL's UUID, as 32 hexadecimal digits."""

    impl = postgresql.UUID(as_uuid=False)
    cache_ok = True

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else value.replace('-', '')


class _Word(sa.types.TypeDecorator[str]):
    """A member of an enum, which PostgreSQL does not compare with text."""

    impl = sa.String(32)
    cache_ok = True

    def column_expression(self, column: Any) -> Any:
        return sa.cast(column, sa.String(32))


def _id(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.CHAR(32).with_variant(_NativeId(), 'postgresql'), primary_key=name == 'id',
                     index=name in ('zone_id', 'recordset_id'))


def _table(name: str, *columns: sa.Column[Any]) -> sa.Table:
    return sa.Table(name, metadata, _id('id'), sa.Column('created_at', Time), sa.Column('updated_at', Time), *columns)


def _text(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.String(255)) for name in names]


def _numbers(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Integer) for name in names]


def _words(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, _Word) for name in names]


pools = _table('pools', *_numbers('version'), *_text('name', 'description', 'tenant_id'))
pool_attributes = _table('pool_attributes', *_numbers('version'), *_text('key', 'value'), _id('pool_id'))
pool_ns_records = _table('pool_ns_records', _id('pool_id'), *_numbers('version', 'priority'), *_text('hostname'))
pool_also_notifies = _table('pool_also_notifies', _id('pool_id'), *_text('host'), *_numbers('version', 'port'))
zones = _table(
    'zones', *_numbers('version', 'ttl', 'serial', 'refresh', 'retry', 'expire', 'minimum'),
    *_text('deleted', 'tenant_id', 'name', 'email', 'description'), *_words('type', 'status', 'action'), _id('pool_id'),
    sa.Column('increment_serial', sa.Boolean), sa.Column('transferred_at', Time))
zone_masters = _table('zone_masters', *_numbers('version', 'port'), *_text('host'), _id('zone_id'))
zone_attributes = _table('zone_attributes', *_numbers('version'), *_text('key', 'value'), _id('zone_id'))
recordsets = _table('recordsets', *_numbers('version', 'ttl'), _id('zone_id'),
                    *_text('name', 'description', 'tenant_id'), *_words('type'))
records = _table(
    'records', *_numbers('version', 'serial'), _id('zone_id'), _id('recordset_id'), sa.Column('data', sa.Text),
    sa.Column('managed', sa.Boolean), _id('managed_resource_id'),
    *_text('managed_resource_type', 'managed_resource_region', 'managed_plugin_name', 'managed_extra',
           'managed_tenant_id'), *_words('action'))
zone_shares = _table('shared_zones', _id('zone_id'), *_text('project_id', 'target_project_id'))
quotas = _table('quotas', *_text('tenant_id', 'resource'), *_numbers('version', 'hard_limit'))
tlds = _table('tlds', *_numbers('version'), *_text('name', 'description'))
blacklists = _table('blacklists', *_numbers('version'), *_text('pattern', 'description'))
tsigkeys = _table('tsigkeys', *_numbers('version'), *_text('name', 'secret'), *_words('algorithm', 'scope'),
                  _id('resource_id'))
zone_transfer_requests = _table(
    'zone_transfer_requests', *_numbers('version'), _id('zone_id'),
    *_text('key', 'description', 'tenant_id', 'target_tenant_id'), *_words('status'))
zone_transfer_accepts = _table('zone_transfer_accepts', *_numbers('version'), _id('zone_id'),
                               _id('zone_transfer_request_id'), *_text('tenant_id'), *_words('status'))
