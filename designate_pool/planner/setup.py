"""The setup of an engine: zones, and the providers, processors and outputs that they name."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Protocol, TextIO

from designate_pool.planner.providers.base import BaseProcessor, BaseSource
from designate_pool.planner.run_report import TargetResult


class Output(Protocol):
    """Shows the results of a run."""

    id: str

    def run(self, results: Sequence[TargetResult], file: TextIO, plan_id: str | None = None) -> None:
        """Write *results* to *file*, or to the output's own.

        :param plan_id: of the plan, if it was stored
        """


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneSetting:
    """The settings of one zone, or of the zones that its sources list.

    :ivar sources: ids of providers
    :ivar targets: ids of providers; empty for an alias that has those of its original
    :ivar processors: ids; they run between the first and the last processors of :class:`Setup`
    :ivar lenient: whether records that break a rule of zones are accepted
    :ivar alias: the zone whose records this one copies, instead of sources
    :ivar policy: see :mod:`designate_pool.planner.plan.policy`; empty for that of :class:`Setup`
    :ivar always_dry_run: the zone is planned and never applied
    :ivar ignore_subzone_adds: records of sub-zones in a source are ignored instead of an error
    :ivar glob: of a setting for many zones: a shell pattern for their names
    :ivar regex: of a setting for many zones: a regular expression that is searched for in their names
    """

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    processors: tuple[str, ...] = ()
    lenient: bool = False
    alias: str | None = None
    update_pcent_threshold: float | None = None
    delete_pcent_threshold: float | None = None
    policy: tuple[str, ...] = ()
    always_dry_run: bool = False
    ignore_subzone_adds: bool = False
    glob: str | None = None
    regex: re.Pattern[str] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Setup:
    """
    :ivar zones: by name; a name that begins with ``*`` is for all zones that its sources list and no other name matches
    :ivar providers: sources and targets by id
    :ivar first_processors: ids of processors that run before those of each zone
    :ivar last_processors: ids of processors that run after those of each zone
    :ivar policy: for zones without their own; empty for ``sync``
    :ivar target_policies: by target; they apply in addition to the zone's
    :ivar max_workers: how many zones are planned, and targets changed, in parallel
    :ivar plan_lifetime: how long a stored plan can be applied
    :ivar plans: the folder where plans are stored; None for the pool
    """

    zones: Mapping[str, ZoneSetting]
    providers: Mapping[str, BaseSource]
    processors: Mapping[str, BaseProcessor] = dataclasses.field(default_factory=dict)
    outputs: Sequence[Output] = ()
    first_processors: tuple[str, ...] = ()
    last_processors: tuple[str, ...] = ()
    policy: tuple[str, ...] = ()
    target_policies: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    max_workers: int = 1
    plan_lifetime: datetime.timedelta = datetime.timedelta(days=1)
    plans: str | None = None
