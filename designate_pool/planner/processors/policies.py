"""Policies as processors: what one keeps back is shown as kept back, never as done."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.plan.policy import DEFAULT, Policy, parse
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource


class PolicyProcessor(BaseProcessor):
    """Keeps back what a policy does not allow; to be the last, so that it sees all changes.

    A plan for a zone that the target does not have, with nothing left in it but what is kept back, must not be applied:
    that would make the zone.

    :param policy: the policy, or its words; several allow what each of them allows
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
