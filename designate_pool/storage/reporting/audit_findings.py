"""The findings of audits."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from designate_pool.model import Action, AuditFinding, AuditKind, Outcome
from designate_pool.storage.sql.columns import storable
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities, chunks
from designate_pool.storage.sql.schema import audit_findings, domains, pool_manager_status
from designate_pool.storage.zones import pools as pool_store

TABLE = audit_findings
ROWS = pool_manager_status

_LONGEST = 1024
#: What was done about a finding of a comparison that repairs nothing.
UNREPAIRED = "nothing was changed: 'server resync --fix' repairs it"
#: What is done about signatures: to renew them in time is up to whoever signs the zone.
UNTOUCHED = 'nothing was changed: the pool does not touch signatures'
#: A row that became due for something else since, and whose server serves a serial, has been repaired.
_MENDED = sa.case(
    ((TABLE.c.kind != AuditKind.SIGNATURES) & (ROWS.c.diverged == sa.false())
     & (ROWS.c.updated_at >= TABLE.c.created_at) & sa.or_(
        (ROWS.c.status == Outcome.SUCCESS) & ROWS.c.next_attempt_at.is_(None),
        (sa.func.coalesce(ROWS.c.finding_id, '') != TABLE.c.id) & ROWS.c.serial_number.is_not(None)), sa.true()),
    (ROWS.c.id.is_not(None), sa.false()), else_=None)
_FINDINGS = Entities(AuditFinding, TABLE, mended=_MENDED)
_SELECT = _FINDINGS.select.select_from(TABLE.outerjoin(
    ROWS, (ROWS.c.server_id == TABLE.c.server_id) & (ROWS.c.domain_id == TABLE.c.domain_id)
    & (ROWS.c.action == Action.UPDATE)))


def add(tx: Tx, found: Iterable[AuditFinding]) -> None:
    """Store what an audit found; long texts are cut."""
    rows = [_FINDINGS.values(finding) | {'what': storable(finding.what, _LONGEST)} for finding in found]
    if rows:
        tx.execute(TABLE.insert(), rows)


def replace_unrepaired(tx: Tx, server_id: str, kinds: Collection[AuditKind], found: Iterable[AuditFinding]) -> None:
    """Put what a comparison *found* on a server in the place of what earlier ones of these kinds did."""
    tx.execute(TABLE.delete().where(TABLE.c.server_id == server_id, TABLE.c.kind.in_(kinds),
                                    TABLE.c.done == UNREPAIRED))
    add(tx, found)


def replace_signatures(tx: Tx, pool_id: str, after_id: str, last_id: str, checked: Collection[tuple[str, str]],
                       domain_ids: Collection[str], found: Iterable[AuditFinding]) -> list[AuditFinding]:
    """Put what was *found* about signatures in the place of what was found before, and return what is new of it.

    What was found about other domains in this range of ids is deleted; their zones are signed no more.

    :param checked: (domain id, server id) of what was looked at; of others of *domain_ids* the findings stay
    """
    present = {(row.domain_id, row.server_id, row.what): row.id for row in tx.execute(
        sa.select(TABLE.c.id, TABLE.c.domain_id, TABLE.c.server_id, TABLE.c.what).where(
            TABLE.c.pool_id == pool_id, TABLE.c.kind == AuditKind.SIGNATURES, TABLE.c.domain_id > after_id,
            TABLE.c.domain_id <= (last_id or '~')))}
    now = {(finding.domain_id, finding.server_id, storable(finding.what, _LONGEST)): finding for finding in found}
    gone = [finding_id for key, finding_id in present.items() if key not in now
            and (key[:2] in checked or key[0] not in domain_ids)]
    if gone:
        tx.execute(TABLE.delete().where(TABLE.c.id.in_(gone)))
    new = [finding for key, finding in now.items() if key not in present]
    add(tx, new)
    return new


def told_of_signatures(tx: Tx, pool_id: str, domain_ids: Iterable[str], beginning: str) -> dict[str, str]:
    """What was found about the signatures of these domains that begins so, by domain id."""
    return {domain_id: what for part in chunks(domain_ids) for domain_id, what in tx.execute(
        sa.select(TABLE.c.domain_id, TABLE.c.what).where(
            TABLE.c.pool_id == pool_id, TABLE.c.kind == AuditKind.SIGNATURES, TABLE.c.domain_id.in_(part),
            TABLE.c.what.startswith(beginning, autoescape=True))).tuples()}


def of_pool(tx: Tx, pool_name: str, limit: int, project_id: str | None = None) -> list[AuditFinding]:
    """The newest findings of a pool, the newest first; about domains of *project_id*, None for all."""
    own = sa.true() if project_id is None else TABLE.c.domain_id.in_(
        sa.select(domains.c.id).where(domains.c.project_id == project_id))
    return _read(tx, _SELECT.where(TABLE.c.pool_id == pool_store.id_of(pool_name), own), limit)


def of_domain(tx: Tx, domain_id: str, limit: int) -> list[AuditFinding]:
    """The newest findings about a domain, the newest first."""
    return _read(tx, _SELECT.where(TABLE.c.domain_id == domain_id), limit)


def forget(tx: Tx, pool_id: str, before: datetime, limit: int) -> int:
    """Delete at most *limit* findings of a pool made before a time; how many."""
    old = list(tx.execute(sa.select(TABLE.c.id).where(TABLE.c.pool_id == pool_id, TABLE.c.created_at < before)
                          .order_by(TABLE.c.created_at).limit(limit)).scalars())
    return tx.execute(TABLE.delete().where(TABLE.c.id.in_(old))).rowcount if old else 0


def _read(tx: Tx, statement: sa.Select[Any], limit: int) -> list[AuditFinding]:
    return _FINDINGS.all(tx, statement.order_by(TABLE.c.created_at.desc(), TABLE.c.id).limit(limit))
