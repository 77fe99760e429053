"""The serial of a pool's catalog zone in a row of its own, and which change of it each domain came or went with.

Revision ID: 0011
Revises: 0010
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, identifier

revision = '0011'
down_revision = '0010'
#: They would go on raising the serial in the pool's row, and make domains without raising it.
breaks_older_programs = True

SERIAL = '{0} >= 0 AND {0} <= 4294967295'


def upgrade() -> None:
    op.create_table(
        'catalogs',
        sa.Column('pool_id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('serial', sa.BigInteger, nullable=False),
        sa.Column('changes', sa.BigInteger, nullable=False, server_default='0'),
        sa.PrimaryKeyConstraint('pool_id', name=op.f('pk_catalogs')),
        sa.ForeignKeyConstraint(['pool_id'], ['pools.id'], name=op.f('fk_catalogs_pool_id'), ondelete='CASCADE'),
        sa.CheckConstraint(SERIAL.format('serial'), name=op.f('ck_catalogs_serial')),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
    op.execute('INSERT INTO catalogs (pool_id, created_at, updated_at, serial) '
               'SELECT id, updated_at, updated_at, catalog_serial FROM pools WHERE catalog_serial IS NOT NULL')
    with op.batch_alter_table('domains') as domains:
        domains.add_column(sa.Column('catalog_change', sa.BigInteger))
        domains.create_index(op.f('ix_domains_pool_id_catalog_change'), ['pool_id', 'catalog_change'])
    with op.batch_alter_table('pool_servers') as servers:
        servers.add_column(sa.Column('catalog_from', sa.BigInteger))
        servers.create_check_constraint(op.f('ck_pool_servers_catalog_from'), SERIAL.format('catalog_from'))


def downgrade() -> None:
    with op.batch_alter_table('pool_servers') as servers:
        servers.drop_constraint(op.f('ck_pool_servers_catalog_from'), type_='check')
        servers.drop_column('catalog_from')
    op.drop_index(op.f('ix_domains_pool_id_catalog_change'), 'domains')
    with op.batch_alter_table('domains') as domains:
        domains.drop_column('catalog_change')
    op.execute('UPDATE pools SET catalog_serial = (SELECT serial FROM catalogs WHERE catalogs.pool_id = pools.id) '
               'WHERE id IN (SELECT pool_id FROM catalogs)')
    op.drop_table('catalogs')
