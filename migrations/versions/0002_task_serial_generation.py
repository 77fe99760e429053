"""What the pool manager needs: a record's task and serial, a domain's action, generation and reported serial.

All that lives already is served, so it becomes ACTIVE with nothing due, records at their domain's serial.

Revision ID: 0002
Revises: 0001
"""

from datetime import datetime, timezone

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, deletion_mark, identifier

revision = '0002'
down_revision = '0001'

SERIAL_RANGE = '{0} >= 0 AND {0} <= 4294967295'
DOMAIN_CHECKS = {
    'action': "action IN ('NONE', 'CREATE', 'UPDATE', 'DELETE')",
    'reported_serial': SERIAL_RANGE.format('reported_serial'),
}
RECORD_CHECKS = {
    'serial_number': SERIAL_RANGE.format('serial_number'),
    'task': "task IN ('NONE', 'ADD', 'UPDATE', 'DELETE')",
    'task_status': "(task = 'NONE' AND status IN ('ACTIVE', 'DELETED')) OR "
                   "(task <> 'NONE' AND status IN ('PENDING', 'ERROR'))",
}

domains = sa.table('domains', sa.column('id', identifier()), sa.column('deleted', deletion_mark()),
                   sa.column('deleted_at', Time), sa.column('serial', sa.BigInteger), sa.column('action', sa.String),
                   sa.column('status', sa.String), sa.column('generation', sa.BigInteger),
                   sa.column('reported_serial', sa.BigInteger))
recordsets = sa.table('recordsets', sa.column('id', identifier()), sa.column('deleted', deletion_mark()))
records = sa.table('records', sa.column('domain_id', identifier()), sa.column('recordset_id', identifier()),
                   sa.column('serial_number', sa.BigInteger), sa.column('task', sa.String),
                   sa.column('status', sa.String))


def upgrade() -> None:
    op.add_column('domains', sa.Column('reported_serial', sa.BigInteger))
    op.add_column('domains', sa.Column('generation', sa.BigInteger, nullable=False, server_default='1'))
    op.add_column('domains', sa.Column('action', sa.String(16), nullable=False, server_default='CREATE'))
    op.add_column('records', sa.Column('serial_number', sa.BigInteger))
    op.add_column('records', sa.Column('task', sa.String(16), nullable=False, server_default='ADD'))
    _backfill()
    with op.batch_alter_table('domains') as batch:
        batch.alter_column('status', existing_type=sa.String(16), existing_nullable=False, server_default='PENDING')
        for name, condition in DOMAIN_CHECKS.items():
            batch.create_check_constraint(op.f(f'ck_domains_{name}'), condition)
    with op.batch_alter_table('records') as batch:
        batch.alter_column('status', existing_type=sa.String(16), existing_nullable=False, server_default='PENDING')
        batch.alter_column('serial_number', existing_type=sa.BigInteger, nullable=False)
        for name, condition in RECORD_CHECKS.items():
            batch.create_check_constraint(op.f(f'ck_records_{name}'), condition)


def _backfill() -> None:
    # A name's living domain is of a later generation than its deleted ones.
    op.execute(domains.update().where(domains.c.deleted == '0').values(
        action='NONE', status='ACTIVE', generation=2, reported_serial=domains.c.serial))
    op.execute(domains.update().where(domains.c.deleted != '0').values(
        action='NONE', status='DELETED', generation=1, reported_serial=domains.c.serial))
    serial = sa.select(domains.c.serial).where(domains.c.id == records.c.domain_id).scalar_subquery()
    gone = sa.or_(records.c.recordset_id.in_(sa.select(recordsets.c.id).where(recordsets.c.deleted != '0')),
                  records.c.domain_id.in_(sa.select(domains.c.id).where(domains.c.deleted != '0')))
    op.execute(records.update().values(task='NONE', serial_number=serial,
                                       status=sa.case((gone, 'DELETED'), else_='ACTIVE')))


def downgrade() -> None:
    """Without task and action nothing tells what is being deleted, so that is deleted now; all else becomes ACTIVE."""
    going = sa.or_(domains.c.action == 'DELETE', domains.c.status == 'DELETED')
    op.execute(domains.update().where(going, domains.c.deleted == '0').values(
        deleted=domains.c.id, deleted_at=datetime.now(timezone.utc)))
    op.execute(records.delete().where(sa.or_(records.c.task == 'DELETE', records.c.status == 'DELETED')))
    with op.batch_alter_table('records') as batch:
        for name in RECORD_CHECKS:
            batch.drop_constraint(op.f(f'ck_records_{name}'), type_='check')
        batch.alter_column('status', existing_type=sa.String(16), existing_nullable=False, server_default='ACTIVE')
        batch.drop_column('task')
        batch.drop_column('serial_number')
    with op.batch_alter_table('domains') as batch:
        for name in DOMAIN_CHECKS:
            batch.drop_constraint(op.f(f'ck_domains_{name}'), type_='check')
        batch.alter_column('status', existing_type=sa.String(16), existing_nullable=False, server_default='ACTIVE')
        batch.drop_column('action')
        batch.drop_column('generation')
        batch.drop_column('reported_serial')
    op.execute(records.update().values(status='ACTIVE'))
    op.execute(domains.update().values(status=sa.case((domains.c.deleted == '0', 'ACTIVE'), else_='DELETED')))
