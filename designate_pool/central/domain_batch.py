"""Creates many small domains in one transaction: those of zone files, and those of requests that came together.

The invariant: a domain that is created here would be the same if it were created by itself.  So only the plain case is
done here: a name that no domain has or ever had, with none above or below it, that the lists, the quotas and the pool
allow.  All others are left to be created by themselves, which finds the error, if it is one.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from datetime import datetime

from designate_pool.central.rules import domains as rules
from designate_pool.central.rules import recordset_edits, zone_names
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.validation.names_and_rdata import Rdata
from designate_pool.central.validation.requests import NewDomain, WantedRecordSet
from designate_pool.errors import LostRace, PoolError
from designate_pool.model import Context, Domain, Pool, RecordSet, names
from designate_pool.protocol.names_and_rdata import lies_in
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, recordsets, zone_ancestry


@dataclasses.dataclass(frozen=True, slots=True)
class NewZone:
    """A domain that is to be created.

    :ivar domain_id: a new id
    :ivar sets: its recordsets, but for SOA and NS at the apex
    :ivar request_id: of the request or the import
    """

    domain_id: str
    wanted: NewDomain
    sets: Sequence[WantedRecordSet]
    request_id: str = ''


def create(tx: Tx, choose: Callable[[Tx], Pool | None], context: Context, zones: Sequence[NewZone],
           now: datetime, allowance: Allowance,
           also: Callable[[Tx, Sequence[Domain]], None] | None = None) -> list[Domain]:
    """Some of *zones* as new domains; 11 statements for all, two more if the pool has a catalog zone.

    :param choose: finds the pool of all of them, and shares it
    :param context: of all of them, but for the request
    :param zones: as many as :data:`designate_pool.storage.zones.domains.CHUNK`, at most
    :param also: called at the end with what was created, if anything was
    :raises LostRace: when one of the names is no longer free
    """
    made = _create(tx, choose(tx), context, zones, now, allowance)
    if made and also is not None:
        also(tx, made)
    return made


def _create(tx: Tx, pool: Pool | None, context: Context, zones: Sequence[NewZone], now: datetime,
            allowance: Allowance) -> list[Domain]:
    if pool is None or not pool.name_servers or not zones:
        return []
    there = domains.get_many(tx, [each.domain_id for each in zones])
    if there:
        return list(there.values())  # the commit came through, the answer to it did not
    plain = _plain(tx, context, pool, zones)
    made: list[Domain] = []
    sets: list[RecordSet] = []
    records: list[tuple[Domain, str, Rdata]] = []
    servers = rules.ns_rdatas(pool.name_servers)
    for each in plain[:allowance.room_for(tx, context.project_id, len(plain))]:
        domain = rules.begin(each.domain_id, each.wanted, pool, context.project_id, None, 0, now, each.request_id)
        try:
            edits = recordset_edits.plan(domain, (), each.sets, must_be_new=True)
            allowance.for_one_of_many(tx, context.project_id).add(edits)
        except PoolError:
            continue
        soa, ns = rules.from_pool(domain)
        made.append(domain)
        sets += [soa, ns, *edits.new_sets]
        records += [(domain, ns.id, rdata) for rdata in servers]
        records += [(domain, set_id, rdata) for set_id, rdata in edits.new_records]
    if not made:
        return []
    made.sort(key=lambda domain: domain.name)  # two that insert the same names wait for each other, not crosswise
    domains.insert_many(tx, made)
    recordsets.insert(tx, sets, now)
    for serial, some in itertools.groupby(sorted(records, key=_serial), key=_serial):
        recordsets.insert_records(tx, serial, ((domain.id, set_id, rdata.text, rdata.wire)
                                               for domain, set_id, rdata in some), now)
    _lock(tx, [each.name for each in made])
    catalog.bump(tx, pool.id, now, [each.id for each in made])
    return made


def _plain(tx: Tx, context: Context, pool: Pool, zones: Sequence[NewZone]) -> list[NewZone]:
    """The zones whose names can be given without looking at anything but these names."""
    by_name: dict[str, NewZone] = {}
    for each in zones:
        by_name.setdefault(each.wanted.name, each)
    wanted = list(by_name)
    left_out = (domains.ever_named(tx, wanted) | zone_names.refused(tx, context, wanted)
                | zone_ancestry.with_neighbours(tx, wanted))
    return [each for name, each in by_name.items()
            if name not in left_out and (above := names.above(name)) and by_name.keys().isdisjoint(above)
            and not (pool.catalog_zone is not None and lies_in(name, pool.catalog_zone))]


def _lock(tx: Tx, made: Sequence[str]) -> None:
    """Keep others from creating domains above and below until the commit.

    :raises LostRace: when there are some already
    """
    zone_ancestry.lock(tx, *made)
    if tx.dialect.name != 'sqlite' and zone_ancestry.with_neighbours(tx, made):
        raise LostRace(what=f'one of {len(made)} names')


def _serial(row: tuple[Domain, str, Rdata]) -> int:
    return row[0].serial
