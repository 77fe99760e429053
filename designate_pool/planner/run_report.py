"""What a run found and did: a part for each zone on each target."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from designate_pool.errors import UnsafePlan
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.zone.zone import Zone


@dataclasses.dataclass(frozen=True, slots=True)
class TargetResult:
    """One zone on one target.

    :ivar target_id: the provider's id; what names many zones at once and cannot be resolved has a part as well
    :ivar plan: None when nothing is to be done, or :attr:`error` says why nothing is known
    :ivar dangers: what makes the plan unsafe, worst first
    :ivar forced: whether it may be applied all the same
    :ivar only_planned: the zone's setting forbids to apply it, so it endangers nothing
    :ivar result: what became of the changes; None when applying was not tried
    :ivar error: why it could not be planned, or applied
    :ivar earlier: changes of a stored plan that an interrupted run had made before
    :ivar desired: what the sources gave, before the target made it fit itself; None where there is no plan
    :ivar existing: what the target has, as it was compared; kept only when a stored plan is applied
    """

    zone: str
    target_id: str
    plan: Plan | None = None
    dangers: tuple[UnsafePlan, ...] = ()
    forced: bool = False
    only_planned: bool = False
    result: ApplyResult | None = None
    error: str | None = None
    earlier: int = 0
    desired: Zone | None = None
    existing: Zone | None = None

    @property
    def is_unsafe(self) -> bool:
        """Whether it must not be applied as it stands."""
        return bool(self.dangers) and not self.forced and not self.only_planned

    @property
    def changes(self) -> int:
        """How many changes are planned."""
        return len(self.plan.changes) if self.plan is not None else 0

    @property
    def has_failed(self) -> bool:
        return self.error is not None or self.result is not None and not self.result.ok


def lines_of(error: str) -> list[str]:
    """An error, and each of the mistakes that it lists (:class:`~designate_pool.errors.WrongSource`), in a line."""
    return [' '.join(each.split()) for each in error.split('\n  ')]


@dataclasses.dataclass(frozen=True, slots=True)
class RunReport:
    """
    :ivar parts: zones below others before these, then by name; targets as the zone lists them
    :ivar plan_id: of the plan that was stored or applied
    """

    parts: Sequence[TargetResult]
    plan_id: str | None = None

    @property
    def applied(self) -> int:
        """How many changes were made, on all targets together."""
        return sum(part.result.applied for part in self.parts if part.result is not None)

    def __int__(self) -> int:
        return self.applied

    def __radd__(self, other: int) -> int:
        return other + self.applied

    @property
    def changes(self) -> int:
        """How many changes are planned, on all targets together."""
        return sum(part.changes for part in self.parts)

    @property
    def failed(self) -> list[TargetResult]:
        """The parts that could not be planned, or not be applied in full."""
        return [part for part in self.parts if part.has_failed]

    @property
    def unsafe(self) -> list[TargetResult]:
        """The parts that need force, and have not got it."""
        return [part for part in self.parts if part.is_unsafe]
