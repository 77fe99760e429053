"""The round that looks for zones on servers that no domain explains.

Revision ID: 0015
Revises: 0014
"""

from alembic import op

revision = '0015'
down_revision = '0014'


def upgrade() -> None:
    _allow("'SERIALS', 'CONTENTS', 'UNSETTLED', 'EXTRA'")


def downgrade() -> None:
    op.execute("DELETE FROM audits WHERE kind = 'EXTRA'")
    _allow("'SERIALS', 'CONTENTS', 'UNSETTLED'")


def _allow(kinds: str) -> None:
    with op.batch_alter_table('audits') as batch:
        batch.drop_constraint(op.f('ck_audits_kind'), type_='check')
        batch.create_check_constraint(op.f('ck_audits_kind'), f'kind IN ({kinds})')
