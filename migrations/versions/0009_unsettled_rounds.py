"""The round over the domains that have not come to rest, which the pool managers of a pool share.

Revision ID: 0009
Revises: 0008
"""

from alembic import op

revision = '0009'
down_revision = '0008'


def upgrade() -> None:
    _allow("'SERIALS', 'CONTENTS', 'UNSETTLED'")


def downgrade() -> None:
    op.execute("DELETE FROM audits WHERE kind = 'UNSETTLED'")
    _allow("'SERIALS', 'CONTENTS'")


def _allow(kinds: str) -> None:
    with op.batch_alter_table('audits') as batch:
        batch.drop_constraint(op.f('ck_audits_kind'), type_='check')
        batch.create_check_constraint(op.f('ck_audits_kind'), f'kind IN ({kinds})')
