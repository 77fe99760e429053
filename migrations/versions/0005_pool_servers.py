"""The servers of each pool, where they stand, and the serial of the pool's catalog zone.

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, ascii_text, identifier

revision = '0005'
down_revision = '0004'


def upgrade() -> None:
    with op.batch_alter_table('pools') as pools:
        pools.add_column(sa.Column('reloads', sa.Integer, nullable=False, server_default='0'))
        pools.add_column(sa.Column('catalog_serial', sa.BigInteger))
        pools.create_check_constraint(op.f('ck_pools_catalog_serial'),
                                      'catalog_serial >= 0 AND catalog_serial <= 4294967295')
    op.create_table(
        'pool_servers',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('pool_id', identifier(), nullable=False),
        sa.Column('label', sa.String(300), nullable=False),
        sa.Column('driver', ascii_text(64), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('state_since', Time, nullable=False),
        sa.Column('joined_at', Time),
        sa.Column('fingerprint', ascii_text(64), nullable=False),
        sa.Column('position', sa.Integer, nullable=False, server_default='0'),
        sa.Column('filled_to', ascii_text(32)),
        sa.Column('filled', sa.Integer, nullable=False, server_default='0'),
        sa.Column('dismissed', sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column('delete_zones', sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column('catalog_epoch', sa.Integer, nullable=False, server_default='0'),
        sa.Column('note', sa.String(1024)),
        sa.Column('claimed_by', sa.String(64)),
        sa.Column('claimed_until', Time),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_pool_servers')),
        sa.ForeignKeyConstraint(['pool_id'], ['pools.id'], name=op.f('fk_pool_servers_pool_id')),
        sa.CheckConstraint("state IN ('joining', 'active', 'maintenance', 'draining', 'removed')",
                           name=op.f('ck_pool_servers_state')),
        sa.Index(op.f('ix_pool_servers_pool_id'), 'pool_id'),
        mysql_engine='InnoDB', mysql_charset='utf8mb4',
    )


def downgrade() -> None:
    op.drop_table('pool_servers')
    with op.batch_alter_table('pools') as pools:
        pools.drop_constraint(op.f('ck_pools_catalog_serial'), type_='check')
        pools.drop_column('catalog_serial')
        pools.drop_column('reloads')
