"""Quotas of projects: defaults from the configuration, which can be overridden for each project.

The invariant: no request makes a zone larger than its project's quotas allow, even with concurrent requests, since a
zone is locked while it is changed.  The number of zones may exceed its limit by one for each simultaneous request.
When a quota is lowered below what exists, that stays, and may shrink.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from designate_pool.central.rules.recordset_edits import RecordSetEdits
from designate_pool.central.validation import fields
from designate_pool.errors import Forbidden, InvalidField, NotFound, OverQuota
from designate_pool.model import Context, Domain, RecordSet
from designate_pool.protocol.rules import ServerLimit
from designate_pool.storage import queries
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, quotas as store

T = TypeVar('T')
UNLIMITED = -1
#: Seconds for which quotas of a project are cached; another Central may change them meanwhile.
CACHED = timedelta(seconds=5)
_CACHE_SIZE = 10000
_MAX_LIMIT = (1 << 31) - 1
#: Seconds over which deletes are counted together.
_SPAN = 300


@dataclasses.dataclass(frozen=True, slots=True)
class ProjectQuotas:
    """The quotas of one project; -1 means unlimited.

    :ivar zone_recordsets: of one zone, without the managed ones; likewise *zone_records*
    :ivar api_export_size: recordsets of a zone that is exported
    :ivar deletes_per_hour: recordsets that requests delete in any hour, with those of deleted zones
    :ivar zone_deletes_per_hour: recordsets that requests delete in any hour in one zone that stays
    """

    zones: int = UNLIMITED
    zone_recordsets: int = UNLIMITED
    zone_records: int = UNLIMITED
    recordset_records: int = UNLIMITED
    api_export_size: int = UNLIMITED
    deletes_per_hour: int = UNLIMITED
    zone_deletes_per_hour: int = UNLIMITED

    def shown(self) -> dict[str, int]:
        """Name to limit, those of deletes only where there is one.

        Designate has none of deletes, and its clients send back all that they read.
        """
        return {name: limit for name, limit in dataclasses.asdict(self).items()
                if limit != UNLIMITED or name not in ('deletes_per_hour', 'zone_deletes_per_hour')}


RESOURCES = tuple(field.name for field in dataclasses.fields(ProjectQuotas))


class Allowance:
    """The quotas of every project; zones without one have none: those who create them may do everything anyway.

    :param count_deleted: whether deleted zones count that can be restored
    """

    def __init__(self, default: ProjectQuotas, clock: Callable[[], datetime], count_deleted: bool = False) -> None:
        self._default = default
        self._count_deleted = count_deleted
        self._nobody = ProjectQuotas()
        self._clock = clock
        self._cache: dict[str, tuple[datetime, ProjectQuotas]] = {}
        self._server_limits: dict[str, tuple[datetime, tuple[ServerLimit, ...]]] = {}

    def limits_of(self, tx: Tx, project_id: str) -> ProjectQuotas:
        """A project's quotas, cached for :data:`CACHED`."""
        if not project_id:
            return self._nobody
        return self._cached(self._cache, self.read, tx, project_id)

    def server_limits(self, tx: Tx, pool_id: str) -> Sequence[ServerLimit]:
        """What a pool's servers do not take of a zone, cached for :data:`CACHED`."""
        return self._cached(self._server_limits, pool_servers.limits_of, tx, pool_id)

    def _cached(self, cache: dict[str, tuple[datetime, T]], read: Callable[[Tx, str], T], tx: Tx, key: str) -> T:
        now = self._clock()
        read_at, value = cache.get(key, (None, None))
        if read_at is None or value is None or not timedelta(0) <= now - read_at < CACHED:
            value = read(tx, key)
            if len(cache) >= _CACHE_SIZE:
                cache.clear()
            cache[key] = now, value
        return value

    def read(self, tx: Tx, project_id: str) -> ProjectQuotas:
        """A project's quotas, from the database."""
        stored = store.of_project(tx, project_id) if project_id else {}
        return dataclasses.replace(self._default if project_id else self._nobody,
                                   **{name: stored[name] for name in RESOURCES if name in stored})

    def forget(self, project_id: str) -> None:
        """Remove a project's quotas from the cache."""
        self._cache.pop(project_id, None)

    def for_new_domain(self, tx: Tx, project_id: str) -> Growth:
        """A :class:`Growth` for one more domain of a project, if the project may have that."""
        limits = self.limits_of(tx, project_id)
        _check_count('zones', limits.zones, functools.partial(
            store.count_domains, tx, self._count_deleted, project_id), 1)
        return Growth(limits)

    def check_restored(self, tx: Tx, domain: Domain) -> None:
        """Refuse a deleted domain that is too large by now, or that the project may not have beside its others."""
        limits = self.limits_of(tx, domain.project_id)
        _check_count('zones', limits.zones, functools.partial(
            store.count_domains, tx, self._count_deleted, domain.project_id), 0 if self._count_deleted else 1)
        _check_count('zone_recordsets', limits.zone_recordsets, functools.partial(
            store.count_recordsets, tx, domain.id), 0)
        _check_count('zone_records', limits.zone_records, functools.partial(store.count_records, tx, domain.id), 0)

    def room_for(self, tx: Tx, project_id: str, count: int) -> int:
        """How many of *count* new domains the project may have."""
        limit = self.limits_of(tx, project_id).zones
        if limit == UNLIMITED:
            return count
        return max(0, min(count, limit - store.count_domains(tx, self._count_deleted, project_id, limit)))

    def check_sizes(self, tx: Tx, context: Context, domain_id: str | None, sizes: Sequence[int]) -> None:
        """Refuse a request that is certain to exceed the quotas, before it is parsed.

        :param domain_id: None for a new one; replacing as many records as the domain has is always allowed
        :param sizes: records of each wanted recordset
        :raises OverQuota: when a zone of these recordsets alone exceeds the quotas of its project
        """
        domain = None if domain_id is None else queries.domain(tx, context, domain_id)
        limits = self.limits_of(tx, context.project_id if domain is None else domain.project_id)
        for quota, size in (('recordset_records', max(sizes, default=0)), ('zone_records', sum(sizes)),
                            ('zone_recordsets', sum(size > 0 for size in sizes))):
            limit = getattr(limits, quota)
            if limit != UNLIMITED and size > limit \
                    and (domain_id is None or store.count_records(tx, domain_id, size) < size):
                check(quota, limit, size)

    def check_edits(self, tx: Tx, domain: Domain, present: Sequence[RecordSet], edits: RecordSetEdits) -> None:
        """Refuse edits that make a zone too large.

        :param domain: locked
        :param present: the recordsets that *edits* affect
        :raises OverQuota: when the zone would grow beyond its project's quotas
        """
        if not edits.new_sets and not edits.new_records:
            return
        limits = self.limits_of(tx, domain.project_id)
        _check_recordsets(limits, present, edits)
        more = len(edits.new_sets) - len(edits.gone_sets)
        if more > 0:
            _check_count('zone_recordsets', limits.zone_recordsets,
                         functools.partial(store.count_recordsets, tx, domain.id), more)
        gone = set(edits.gone_sets)
        lost = len(edits.gone_records) + sum(len(recordset.records) for recordset in present if recordset.id in gone)
        more = len(edits.new_records) - lost
        if more > 0:
            _check_count('zone_records', limits.zone_records,
                         functools.partial(store.count_records, tx, domain.id), more)

    def count_deletes(self, tx: Tx, context: Context, domain: Domain, edits: RecordSetEdits, now: datetime) -> Domain:
        """The locked domain with the deletes of *edits* counted, for the caller to write.

        Those of a project that the domain is shared with are that project's.

        :raises OverQuota: when they are more than its project, or one of its zones, may have in an hour
        """
        limits, count = self.limits_of(tx, domain.project_id), len(edits.gone_sets)
        if limits.zone_deletes_per_hour != UNLIMITED:
            domain = dataclasses.replace(domain, recent_deletes=add_deletes(
                'zone_deletes_per_hour', limits.zone_deletes_per_hour, domain.recent_deletes, count, now))
        self._count_for_project(tx, deleting_project(context, domain), count, now)
        return domain

    def count_deletion(self, tx: Tx, domain: Domain, now: datetime) -> None:
        """Count the deletion of a locked domain as that of its recordsets, and as one at least.

        :raises OverQuota: as :meth:`count_deletes`
        """
        limits = self.limits_of(tx, domain.project_id)
        if limits.deletes_per_hour != UNLIMITED:
            recordsets = store.count_recordsets(tx, domain.id, limits.deletes_per_hour + 1)
            self._count_for_project(tx, domain.project_id, max(1, recordsets), now)

    def _count_for_project(self, tx: Tx, project_id: str, count: int, now: datetime) -> None:
        limit = self.limits_of(tx, project_id).deletes_per_hour
        if limit != UNLIMITED:
            recent = store.lock_recent_deletes(tx, project_id, now)
            store.save_recent_deletes(tx, project_id, add_deletes('deletes_per_hour', limit, recent, count, now), now)

    def check_export(self, tx: Tx, context: Context, domain_id: str) -> Domain:
        """The domain, if it may be exported; the API makes the zone file when it is downloaded.

        :raises DomainNotFound: when it does not exist, or belongs to another project
        :raises NotFound: of a secondary one that is not served now
        :raises OverQuota: when it is larger than its project may export
        """
        domain = queries.own_domain(tx, context, domain_id)
        if domain.awaits_transfer:
            raise NotFound(what=f'content of {domain.name} now: its masters were not reached', type='no_contents')
        self._check_export_size(tx, domain)
        return domain

    def check_export_of_version(self, tx: Tx, context: Context, domain_id: str) -> None:
        """As :meth:`check_export`, for a version of a domain that may be deleted, or another project's, by now."""
        domain = domains.get(tx, domain_id)
        if domain is not None and context.sees(domain.project_id):
            self._check_export_size(tx, domain)

    def _check_export_size(self, tx: Tx, domain: Domain) -> None:
        limit = self.limits_of(tx, domain.project_id).api_export_size
        _check_count('api_export_size', limit, functools.partial(store.count_recordsets, tx, domain.id), 0)


def deleting_project(context: Context, domain: Domain) -> str:
    """Whose deletes those of a request are.  A transaction counts those of several in their order: each locks a row."""
    return context.project_id if queries.is_guest(context, domain) else domain.project_id


class Growth:
    """Checks the size of a new domain whose recordsets are created in parts."""

    def __init__(self, limits: ProjectQuotas) -> None:
        self._limits = limits
        self._recordsets = 0
        self._records = 0

    def add(self, edits: RecordSetEdits) -> None:
        """Count the new recordsets and records of a part.

        :raises OverQuota: when the domain becomes too large
        """
        _check_recordsets(self._limits, (), edits)
        self._recordsets += len(edits.new_sets)
        self._records += len(edits.new_records)
        check('zone_recordsets', self._limits.zone_recordsets, self._recordsets, False)
        check('zone_records', self._limits.zone_records, self._records, False)


def check_project(context: Context, project_id: str) -> None:
    """Refuse access to the quotas of another project without ``all_projects``."""
    if context.project_id != project_id and not context.all_projects:
        raise Forbidden(what='see or change the quotas of another project',
                        why='it needs the header X-Auth-All-Projects: true')


def parse_project_id(value: Any, field: str = 'project_id') -> str:
    """The id of a project, checked."""
    project_id = fields.text(field, value, 36)
    if not project_id:
        raise InvalidField(field=field, why='empty')
    return project_id


def parse_limits(given: Any) -> dict[str, int]:
    """Quotas to be set, checked."""
    fields.refuse_unknown(fields.mapping('quotas', given), '', RESOURCES)
    for name, limit in given.items():
        if isinstance(limit, bool) or not isinstance(limit, int) or not UNLIMITED <= limit <= _MAX_LIMIT:
            raise InvalidField(field=name, why=f'not a whole number from {UNLIMITED} (no limit) to {_MAX_LIMIT}')
    return dict(given)


def _check_recordsets(limits: ProjectQuotas, present: Sequence[RecordSet], edits: RecordSetEdits) -> None:
    if limits.recordset_records == UNLIMITED:
        return
    sizes: dict[str, int] = {}
    for recordset_id, _ in edits.new_records:
        sizes[recordset_id] = sizes.get(recordset_id, 0) + 1
    gone = set(edits.gone_records)
    for recordset in present:
        if recordset.id in sizes:
            sizes[recordset.id] += sum(record.id not in gone for record in recordset.records)
    check('recordset_records', limits.recordset_records, max(sizes.values(), default=0))


def _check_count(quota: str, limit: int, count: Callable[[int], int], more: int) -> None:
    """Refuse *more* than a quota allows; *count* counts up to a number, the whole only for the message."""
    if limit != UNLIMITED and count(limit + 1) + more > limit:
        check(quota, limit, count(_MAX_LIMIT) + more)


def add_deletes(quota: str, limit: int, recent: str, count: int, now: datetime) -> str:
    """*recent* deletes with *count* more.

    :param recent: ``number:count`` of each span of five minutes in which there were some, with blanks between.  Those
        count that may have a part in the last hour, so no hour has more than *limit*
    :raises OverQuota: when there are more than that
    """
    span = int(now.timestamp()) // _SPAN
    counts = {number: deletes for number, deletes in (map(int, part.split(':')) for part in recent.split())
              if number >= span - 3600 // _SPAN}
    counts[span] = counts.get(span, 0) + count
    check(quota, limit, sum(counts.values()))
    return ' '.join(f'{number}:{deletes}' for number, deletes in counts.items())


def check(quota: str, limit: int, found: int, is_whole: bool = True) -> None:
    """Refuse more than a quota allows; not *is_whole*: counted so far, and reading has stopped."""
    if limit != UNLIMITED and found > limit:
        raise OverQuota(quota=quota, limit=limit, found=found if is_whole else f'at least {found}')
