"""Domains by the labels of their names from the root on; locks for whoever makes one; whom exports belong to.

Revision ID: 0014
Revises: 0013
"""

import contextlib

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import domain_name

revision = '0014'
down_revision = '0013'

INDEX = op.f('ix_domains_reversed_name_project_id_deleted')
TABLE = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def upgrade() -> None:
    # PostgreSQL lets nobody write while it builds an index, unless it is told to; what comes before is committed then,
    # and an index that could not be finished stays, and stays invalid.
    beside_writers = op.get_bind().dialect.name == 'postgresql'
    # Central fills it in: with a million domains that would hold up the upgrade for minutes.
    op.add_column('domains', sa.Column('reversed_name', domain_name()), if_not_exists=beside_writers or None)
    with op.get_context().autocommit_block() if beside_writers else contextlib.nullcontext():
        if beside_writers:
            op.drop_index(INDEX, postgresql_concurrently=True, if_exists=True)
        op.create_index(INDEX, 'domains', ['reversed_name', 'project_id', 'deleted'], postgresql_concurrently=True)
    locks = op.create_table(
        'name_locks',
        sa.Column('number', sa.Integer, nullable=False, autoincrement=False),
        sa.PrimaryKeyConstraint('number', name=op.f('pk_name_locks')),
        **TABLE,
    )
    op.bulk_insert(locks, [{'number': number} for number in range(64)])
    op.add_column('zone_tasks', sa.Column('may_nest', sa.Boolean, nullable=False, server_default=sa.false()))
    op.execute("UPDATE zone_tasks SET project_id = (SELECT domains.project_id FROM domains "
               "WHERE domains.id = zone_tasks.domain_id) WHERE kind = 'EXPORT' AND domain_id IS NOT NULL")


def downgrade() -> None:
    with op.batch_alter_table('zone_tasks') as batch:
        batch.drop_column('may_nest')
    op.drop_table('name_locks')
    with op.batch_alter_table('domains') as batch:
        batch.drop_index(INDEX)
        batch.drop_column('reversed_name')
