"""Plans that are kept: to be applied later exactly as they were seen."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from designate_pool.model.words import Word


class PlanState(Word):
    """Where a kept plan stands."""

    #: Made by an operator, to be applied or not.
    STORED = 'STORED'
    #: Made by a pool manager, and too dangerous to be applied unasked.
    PARKED = 'PARKED'
    #: An operator said yes to a parked plan; a pool manager applies it next.
    APPROVED = 'APPROVED'
    APPLIED = 'APPLIED'
    #: Applied in part, or not at all.
    FAILED = 'FAILED'
    #: One of the two sides moved, or an operator said no.
    DROPPED = 'DROPPED'


@dataclasses.dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan as the database keeps it.

    :ivar zone: its name; of a plan of many zones, how many there are
    :ivar target: the label of the server, or the ids of the targets
    :ivar domain_id: of a pool manager's plan, else None; *server_id* likewise
    :ivar why: what makes it unsafe, a line each; or why it failed or was dropped
    :ivar document: JSON; of a pool manager's plan that of :meth:`designate_pool.planner.plan.plan.Plan.document`
    :ivar asked_by: who approved, applied or dropped it, as far as is known
    :ivar applied_at: when it was applied, also in part
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
