"""The changes of recordsets that lead a zone back to the contents that it had at an older serial.

The invariant: after them the zone has the records and TTLs of then, but for recordsets that somebody else has now, or
had last: the pool, a resource of another service, or another project.  To a guest of a shared zone, all are somebody
else's that were not its own then.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime

from designate_pool.central.validation import names_and_rdata
from designate_pool.deadline import Turns
from designate_pool.errors import InvalidField
from designate_pool.model import ChangedSet, Context, Domain, RecordSet, Revert, ZoneRecord, differences
from designate_pool.protocol.names_and_rdata import lies_in, text_of_wire
from designate_pool.storage import queries
from designate_pool.storage.sql.database import Tx, see_one_state
from designate_pool.storage.zones import recordsets, versions

_Key = tuple[str, str]


def read(tx: Tx, context: Context, domain_id: str, to: int | datetime, expired: datetime, name: str | None,
         rtype: str | None) -> Revert:
    """What leads a domain back to a serial or a time, all or what concerns recordsets of this name and type.

    It must be the first call of its transaction.

    :param expired: versions from before may have been deleted
    :raises InvalidField: for a name or a type that no recordset of the domain can have
    :raises ContentsNotKept: as :func:`designate_pool.storage.zones.versions.rows_at`
    """
    see_one_state(tx)
    domain = queries.domain(tx, context, domain_id)
    if rtype is not None:
        rtype = names_and_rdata.record_type('type', rtype)
    if name is not None:
        name = names_and_rdata.name('name', name)
        if not lies_in(name, domain.name):
            raise InvalidField(field='name', why=f'not inside the zone {domain.name}')
    return of_domain(tx, context, domain, to, expired, name, rtype)


def of_domain(tx: Tx, context: Context, domain: Domain, to: int | datetime, expired: datetime | None = None,
              name: str | None = None, rtype: str | None = None, of_guests: bool = False) -> Revert:
    """As :func:`read`, of a domain that does not change meanwhile; *name* and *rtype* were checked.

    :param of_guests: whether the recordsets that guests have now are led back too
    """
    owner = domain.project_id if queries.is_guest(context, domain) else context.scope
    past, undone = versions.undone_since(tx, domain.id, to, owner, expired)
    keys = {record[:2] for difference in undone for side in difference for record in side
            if name in (None, record[0]) and rtype in (None, record[1])}
    names = {key[0] for key in keys}
    present = [recordset for recordset in recordsets.at_names(tx, domain.id, names)
               if (recordset.name, recordset.type) in keys]
    if of_guests:
        present = [dataclasses.replace(recordset, project_id=None) for recordset in present]
    records = [record[2:] for record in versions.served(tx, [recordset.id for recordset in present], ())]
    former = [record for record in differences.undo(records, undone) if record[:2] in keys]
    return plan(context, domain, past.serial, past.since, former, present,
                recordsets.last_deleted(tx, domain.id, names))


def plan(context: Context, domain: Domain, serial: int, since: datetime, former: Iterable[ZoneRecord],
         present: Iterable[RecordSet], deleted: Mapping[_Key, RecordSet]) -> Revert:
    """The changes of *present* recordsets to *former* records, which are of *serial*.

    :param since: when the domain got this serial
    :param deleted: the last one of each name and type that was deleted, as far as it is known
    """
    sets: dict[_Key, tuple[int | None, list[str]]] = {}
    for name, rtype, ttl, wire in Turns().between(former):
        sets.setdefault((name, rtype), (ttl, []))[1].append(text_of_wire(rtype, wire))
    by_key = {(recordset.name, recordset.type): recordset for recordset in present}
    changes: list[ChangedSet] = []
    unchanged: list[tuple[str, str, str]] = []
    for key in sorted({*sets, *by_key}):
        ttl, texts = sets.get(key, (None, []))
        old = by_key.get(key) or RecordSet(*key)
        now = [record.data for record in old.records]
        if sorted(texts) == sorted(now) and ttl == old.ttl:
            continue
        why = _why_not(context, domain, by_key.get(key) or deleted.get(key), since if texts else None)
        if why is None:
            changes.append(ChangedSet(*key, tuple(sorted(texts)), ttl, tuple(now), old.ttl))
        elif why:
            unchanged.append((*key, why))
    return Revert(domain.serial, serial, changes, unchanged)


def _why_not(context: Context, domain: Domain, last: RecordSet | None, since: datetime | None) -> str | None:
    """Why a recordset is left as it is; '' for what guests are not told, None if it is not.

    :param since: when it must have been there at the latest, for a guest to have had it then
    """
    if queries.is_guest(context, domain):
        is_own = last is not None and last.project_id == context.project_id and not last.managed
        return None if is_own and last and (since is None or last.created_at and last.created_at <= since) else ''
    if last is not None and last.managed:
        return 'it is managed: by the pool, or for a floating IP, an instance or a signed zone'
    return 'it belongs to another project' if last is not None and last.project_id else None
