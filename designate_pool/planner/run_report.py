"""What a run planned and applied: one result for each zone on each target."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from designate_pool.errors import UnsafePlan, UnsafePlans
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.zone.zone import Zone


@dataclasses.dataclass(frozen=True, slots=True)
class TargetResult:
    """One zone on one target.

    :ivar zone: the zone's name; or a name with ``*`` whose zones could not be listed
    :ivar plan: None when there is nothing to do, or planning failed (:attr:`error`)
    :ivar dangers: what makes the plan unsafe, worst first
    :ivar only_planned: the zone's setting forbids applying it, so no danger counts
    :ivar result: how the changes ended; None when they were not applied
    :ivar error: why it could not be planned, or applied
    :ivar applied_before: changes of a stored plan that an interrupted run had already made
    :ivar desired: the zone from the sources, before it was fitted to the target; None without a plan
    :ivar existing: the target's zone as it was compared; kept only when a stored plan is applied
    """

    zone: str
    target_id: str
    plan: Plan | None = None
    dangers: tuple[UnsafePlan, ...] = ()
    forced: bool = False
    only_planned: bool = False
    result: ApplyResult | None = None
    error: str | None = None
    applied_before: int = 0
    desired: Zone | None = None
    existing: Zone | None = None

    @property
    def is_unsafe(self) -> bool:
        """Whether it must not be applied."""
        return bool(self.dangers) and not self.forced and not self.only_planned

    @property
    def changes(self) -> int:
        """How many changes are planned."""
        return len(self.plan.changes) if self.plan is not None else 0

    @property
    def has_failed(self) -> bool:
        """Whether it could not be planned, or not be applied in full."""
        return self.error is not None or self.result is not None and not self.result.ok


def raise_if_unsafe(results: Sequence[TargetResult]) -> None:
    """Raise UnsafePlan for plans that are unsafe and not forced: the danger of the only one, or the worst of each."""
    unsafe = [result for result in results if result.is_unsafe]
    if len(unsafe) > 1:
        raise UnsafePlans(count=len(unsafe), listing=''.join(f'\n  {result.dangers[0]}' for result in unsafe),
                          zones=list(dict.fromkeys(result.zone for result in unsafe)))
    for result in unsafe:
        raise result.dangers[0]


def lines_of(error: str) -> list[str]:
    """An error and the mistakes that it lists, a line for each."""
    return [' '.join(line.split()) for line in error.split('\n  ')]


@dataclasses.dataclass(frozen=True, slots=True)
class RunReport:
    """
    :ivar results: sub-zones before their parents, then by name; targets in the order of the zone's setting
    :ivar plan_id: of the plan that was stored or applied
    :ivar expires_at: until when that can be applied
    """

    results: Sequence[TargetResult]
    plan_id: str | None = None
    expires_at: datetime | None = None

    @property
    def applied(self) -> int:
        """How many changes were made, on all targets together."""
        return sum(result.result.applied for result in self.results if result.result is not None)

    @property
    def changes(self) -> int:
        """How many changes are planned, on all targets together."""
        return sum(result.changes for result in self.results)

    @property
    def failed(self) -> list[TargetResult]:
        """The results that could not be planned, or not be applied in full."""
        return [result for result in self.results if result.has_failed]

    @property
    def unsafe(self) -> list[TargetResult]:
        """The results with dangers that are not forced."""
        return [result for result in self.results if result.is_unsafe]
