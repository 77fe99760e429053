"""What a manager works with: zones, and the things that they name."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Protocol, TextIO

from designate_pool.planner.providers.base import BaseProcessor, BaseSource
from designate_pool.planner.run_report import TargetResult


class Output(Protocol):
    """Something that shows what a run found."""

    id: str

    def run(self, parts: Sequence[TargetResult], file: TextIO) -> None:
        """Show *parts*, on *file* unless the output has its own."""


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneSetting:
    """How one zone is made, or many: those that the sources list.

    :ivar sources: ids of providers, as all the names here
    :ivar targets: of an alias: empty for those of the zone that it is an alias of
    :ivar processors: between those that all zones have first and those that all have last
    :ivar lenient: whether records that break a rule of zones are taken
    :ivar alias: the zone that this one has its records from, instead of from sources
    :ivar policy: words of :mod:`designate_pool.planner.plan.policy`; empty leaves it to :class:`Setup`
    :ivar always_dry_run: it is planned and never applied
    :ivar ignore_subzone_adds: what a source has of zones below is left out, and no error
    :ivar glob: of a setting for many zones: which of the sources' zones, as file names are matched
    :ivar regex: the same, as a regular expression that is found somewhere in the name
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
    :ivar zones: by name; a name that begins with ``*`` is for all zones that its sources list and no other name is for
    :ivar providers: sources and targets by id
    :ivar first_processors: ids of those that every zone has before its own
    :ivar last_processors: ids of those that every zone has after its own
    :ivar policy: for zones that say none; empty for ``sync``
    :ivar target_policies: by target: what it allows of what the zone's policy allows
    :ivar max_workers: how many zones are planned, and targets changed, at once
    :ivar plan_lifetime: how long a stored plan can be applied
    :ivar plans: the folder where plans are kept; None for the pool
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
