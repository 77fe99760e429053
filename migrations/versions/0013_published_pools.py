"""What pool managers publish of their configuration: threshold, catalog zone, and the names of the servers' keys.

Revision ID: 0013
Revises: 0012
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, domain_name

revision = '0013'
down_revision = '0012'


def upgrade() -> None:
    with op.batch_alter_table('pools') as pools:
        pools.add_column(sa.Column('threshold_percentage', sa.Integer))
        pools.add_column(sa.Column('catalog_zone', domain_name()))
        pools.add_column(sa.Column('count_joining_servers', sa.Boolean, nullable=False, server_default=sa.false()))
        pools.add_column(sa.Column('published_at', Time))
    with op.batch_alter_table('pool_servers') as servers:
        servers.add_column(sa.Column('key_name', domain_name()))


def downgrade() -> None:
    with op.batch_alter_table('pool_servers') as servers:
        servers.drop_column('key_name')
    with op.batch_alter_table('pools') as pools:
        pools.drop_column('published_at')
        pools.drop_column('count_joining_servers')
        pools.drop_column('catalog_zone')
        pools.drop_column('threshold_percentage')
