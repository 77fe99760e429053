"""Policies as processors: what a policy forbids is shown as blocked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.plan.policy import DEFAULT, Policy, parse
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource


class PolicyProcessor(BaseProcessor):
    """Blocks the changes that a policy does not allow; must be the last processor, so that it sees all changes.

    A plan for a missing zone whose changes are all blocked must not be applied, since that would create the zone.

    :param policy: the policy, or its names; several policies allow what each of them allows
    """

    def __init__(self, id: str, policy: Policy | str | Sequence[str] = DEFAULT, lenient: bool = False) -> None:
        super().__init__(id, lenient)
        self.policy = policy if isinstance(policy, Policy) else parse(policy)

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        if plan is None:
            return None
        allowed, blocked = self.policy.split(plan.changes)
        if not blocked:
            return plan
        return dataclasses.replace(plan, changes=allowed, blocked=(*plan.blocked, *blocked))
