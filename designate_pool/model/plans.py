"""Stored plans: reviewed first, and applied later exactly as reviewed."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from designate_pool.model.words import Word


class PlanState(Word):
    """The state of a stored plan."""

    #: Made by an operator, who may apply it.
    STORED = 'STORED'
    #: Made by a pool manager, and too dangerous to be applied without approval.
    PARKED = 'PARKED'
    #: A parked plan that an operator has approved; a pool manager applies it next.
    APPROVED = 'APPROVED'
    APPLIED = 'APPLIED'
    #: Applied in part, or not at all.
    FAILED = 'FAILED'
    #: Rejected by an operator, or outdated, since the domain or the zone on the server has changed.
    DROPPED = 'DROPPED'


@dataclasses.dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan in the database.

    :ivar zone: the zone's name; for a plan of many zones, their number
    :ivar target: the label of the server, or the ids of the targets
    :ivar domain_id: for a plan of a pool manager, else None
    :ivar server_id: for a plan of a pool manager, else None
    :ivar why: why it is unsafe, one reason on each line; or why it failed or was dropped
    :ivar document: JSON; for a plan of a pool manager, of :meth:`designate_pool.planner.plan.plan.Plan.document`
    :ivar asked_by: who approved, applied or dropped it; None if unknown
    :ivar applied_at: when it was applied, completely or in part
    """

    id: str
    pool_name: str
    zone: str
    target: str
    state: PlanState
    domain_id: str | None = None
    server_id: str | None = None
    desired_digest: str = ''
    existing_digest: str = ''
    creates: int = 0
    updates: int = 0
    deletes: int = 0
    why: str | None = None
    document: str = ''
    asked_by: str | None = None
    expires_at: datetime | None = None
    applied_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
