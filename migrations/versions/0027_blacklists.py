"""Patterns of names that zones may not have, and who may have them all the same.

Revision ID: 0027
Revises: 0026
"""

import sqlalchemy as sa
from alembic import op

from designate_pool.storage.sql.columns import Time, exact_text, identifier

revision = '0027'
down_revision = '0026'


def upgrade() -> None:
    op.create_table(
        'blacklists',
        sa.Column('id', identifier(), nullable=False),
        sa.Column('created_at', Time, nullable=False),
        sa.Column('updated_at', Time, nullable=False),
        sa.Column('version', sa.Integer, nullable=False, server_default='1'),
        sa.Column('pattern', exact_text(255), nullable=False),
        sa.Column('description', sa.String(160)),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_blacklists')),
        sa.UniqueConstraint('pattern', name=op.f('uq_blacklists_pattern')),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
    op.add_column('zone_tasks', sa.Column('may_use_blacklisted', sa.Boolean, nullable=False,
                                          server_default=sa.false()))


def downgrade() -> None:
    with op.batch_alter_table('zone_tasks') as batch:
        batch.drop_column('may_use_blacklisted')
    op.drop_table('blacklists')
