"""The versions of zones: who changed what with each serial.

History, former contents and incremental transfers (RFC 1995) are read from them.  Contents at a serial are the present
ones without the differences of all later versions.  A difference that is too large is not kept, nor are the oldest of a
zone that has many: contents before one of these cannot be had.

The *journal* of a domain is what incremental transfers may use: its versions after ``journal_from``.  A version that
changes the SOA in more than the serial is in no journal, which begins anew after it.  The primary changes with the
pool, before the domain has a serial for that; until then there are no differences, as they would delete a SOA that no
server has (RFC 1995 section 4).  Whoever writes has locked the domain.

Differences of what the signer made are kept beside those of the contents, for transfers only: history and former
contents are without them.  They are dropped when the journal no longer has their version.

The creation and the deletion of a domain are not rows here: ``domains.created_by`` and ``deleted_by`` have them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from designate_pool import serial as serials
from designate_pool.deadline import Turns
from designate_pool.errors import ContentsNotKept, DomainNotFound, Refused
from designate_pool.model import (LAST_STAGE, Actor, ChangedSet, ChangeKind, Context, Domain, Status, Version, ZoneHead,
                                  ZoneRecord, ZoneStep, differences, new_ids)
from designate_pool.model.differences import RecordDifference
from designate_pool.protocol import soa_rdata
from designate_pool.protocol.names_and_rdata import text_of_wire
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.serving.zone_snapshot import Ahead
from designate_pool.storage.sql import bulk
from designate_pool.storage.sql.database import Tx, see_one_state
from designate_pool.storage.sql.entities import chunks, delete_all
from designate_pool.storage.sql.schema import (ALIVE, domains, pool_renewals, records, recordsets, signed_records,
                                               zone_versions)
from designate_pool.storage.zones import recordsets as recordset_store

TABLE = zone_versions
#: Rows of one statement.
_AT_ONCE = 1000

_SERVED = (sa.select(records.c.id, records.c.recordset_id, recordsets.c.name, recordsets.c.type, recordsets.c.ttl,
                     records.c.wire)
           .join_from(records, recordsets, recordsets.c.id == records.c.recordset_id)
           .where(zone_snapshot.IS_PRESENT))
_SERVED_OF_SETS = _SERVED.where(records.c.recordset_id.in_(sa.bindparam('ids', expanding=True)))
_SERVED_BY_ID = _SERVED.where(records.c.id.in_(sa.bindparam('ids', expanding=True)))
#: With the texts of their data.
_IN_ORDER = (sa.select(recordsets.c.name, recordsets.c.type, recordsets.c.ttl, records.c.wire, records.c.data)
             .join_from(recordsets, records, records.c.recordset_id == recordsets.c.id)
             .where(recordsets.c.domain_id == sa.bindparam('domain_id'), recordsets.c.deleted == ALIVE,
                    recordsets.c.type != 'SOA', zone_snapshot.IS_PRESENT)
             .order_by(recordsets.c.name, recordsets.c.type))
_SIZE = TABLE.c.gone + TABLE.c.added
#: In the journal.
_SIZE_WITH_SIGNED = _SIZE + TABLE.c.signed_size
_IS_KEPT = TABLE.c.difference.is_not(None)
#: The update that has still to give a domain a serial for its new primary.
_AWAITED = sa.and_(pool_renewals.c.pool_id == domains.c.pool_id, pool_renewals.c.everywhere == sa.true(),
                   pool_renewals.c.after_id < domains.c.id)
_JOURNALS = (sa.select(domains.c.id, domains.c.serial, domains.c.journal_from, domains.c.journal_records,
                       domains.c.history_records)
             .where(domains.c.id.in_(sa.bindparam('ids', expanding=True))).order_by(domains.c.id).with_for_update())
_SHORTEN = (sa.update(domains).where(domains.c.id == sa.bindparam('key'))
            .values(journal_from=sa.bindparam('reach'), journal_records=sa.bindparam('remaining'),
                    history_records=sa.bindparam('kept')))
#: The records of one version are not read if they alone are too many.
_STEPS = sa.select(TABLE.c.number, TABLE.c.serial_number, TABLE.c.former_serial, _SIZE_WITH_SIGNED,
                   *(sa.case((_SIZE_WITH_SIGNED <= sa.bindparam('most'), column))
                     for column in (TABLE.c.difference, TABLE.c.signed_difference)))
#: Of some domains, after a serial; at least a row for each.
_OF_SOME = (_STEPS.add_columns(domains.c.id, domains.c.serial, domains.c.journal_from, domains.c.ttl)
            .select_from(domains.outerjoin(pool_renewals, _AWAITED).outerjoin(TABLE, sa.and_(
                TABLE.c.domain_id == domains.c.id, TABLE.c.domain_id.in_(sa.bindparam('ids', expanding=True)),
                TABLE.c.serial_number > sa.bindparam('after'), TABLE.c.serial_number > sa.case(
                    (domains.c.journal_from > domains.c.serial, -1), else_=domains.c.journal_from),
                domains.c.journal_to == domains.c.serial, pool_renewals.c.pool_id.is_(None))))
            .where(domains.c.id.in_(sa.bindparam('ids', expanding=True)), zone_snapshot.IS_SERVED)
            .limit(sa.bindparam('rows')))
_NEWEST_FIRST = (sa.select(TABLE.c.number, TABLE.c.serial_number)
                 .where(TABLE.c.domain_id == sa.bindparam('domain_id'), TABLE.c.number < sa.bindparam('before'))
                 .order_by(TABLE.c.number.desc()).limit(sa.bindparam('limit')))
_PAGE = _NEWEST_FIRST.add_columns(*(TABLE.c[name] for name in (
    'former_serial', 'kind', 'actor', 'project_id', 'request_id', 'created_at', 'gone', 'added', 'reason')))
_FIELDS = len(_PAGE.selected_columns)
_PAGE_WITH_RECORDS = _PAGE.add_columns(TABLE.c.difference, TABLE.c.former_soa)
_SIZES = _NEWEST_FIRST.add_columns(_SIZE, _IS_KEPT)
_SIGNED = _NEWEST_FIRST.add_columns(TABLE.c.signed_difference)
#: More than any version of a domain.
_NEWEST = 2 ** 31 - 1
_NO_SET: tuple[int | None, list[bytes]] = (None, [])
#: Why others' versions are not shown: whether there are such, and when, is not told.
_OF_OTHERS = 'it was not of this project then'
_ORIGINS = sa.select(domains.c.id, domains.c.name, domains.c.version, domains.c.serial, domains.c.project_id,
                     domains.c.created_at, domains.c.created_by, domains.c.deleted_at, domains.c.deleted_by,
                     domains.c.purged).where(domains.c.id == sa.bindparam('domain_id'))


class Span(NamedTuple):
    """A domain's id, an older serial and the present one."""

    domain_id: str
    have: int
    serial: int


class ServedRecord(NamedTuple):
    """A record that is served; *ttl* is None for the domain's."""

    id: str
    recordset_id: str
    name: str
    type: str
    ttl: int | None
    wire: bytes


class NewVersion(NamedTuple):
    """A version to write.

    :ivar difference: packed; None where it is not kept; likewise *signed_difference*, of *signed_size* records
    :ivar former_soa: by field of :class:`ZoneHead`; ``primary`` is the first name server, and ``project_id`` the owner.
        None for the same as now
    """

    version: Version
    difference: bytes | None = b''
    former_soa: Mapping[str, Any] | None = None
    signed_difference: bytes | None = b''
    signed_size: int = 0


def of(context: Context, former: Domain, domain: Domain, kind: ChangeKind, gone: int = 0, added: int = 0) -> Version:
    """The version to which *context* brings a domain."""
    return Version(domain.id, domain.version, domain.serial, former.serial, kind, context.actor, domain.project_id,
                   domain.request_id, gone=gone, added=added)


def served(tx: Tx, recordset_ids: Sequence[str], record_ids: Sequence[str]) -> list[ServedRecord]:
    """The served records of these recordsets, and these records."""
    return [ServedRecord(*row) for query, ids in ((_SERVED_OF_SETS, recordset_ids), (_SERVED_BY_ID, record_ids))
            for part in chunks(ids) for row in tx.execute(query, {'ids': part})]


def write(tx: Tx, new: Sequence[NewVersion], now: datetime) -> None:
    """Store versions."""
    for part in chunks(new, _AT_ONCE):
        every = [item.version for item in part]
        bulk.insert(tx, TABLE, {'created_at': now}, {
            **{name: [getattr(item, name) for item in part]
               for name in ('difference', 'signed_difference', 'signed_size')},
            'former_soa': [None if item.former_soa is None else json.dumps(item.former_soa) for item in part],
            'kind': [version.kind for version in every],
            'actor': [actor_text(version.actor) for version in every],
            'serial_number': [version.serial for version in every],
            **{name: [getattr(version, name) for version in every]
               for name in ('domain_id', 'number', 'former_serial', 'project_id', 'request_id', 'gone', 'added',
                            'reason')},
            'id': new_ids(len(part))})


def write_deletion(tx: Tx, domain_id: str, now: datetime) -> None:
    """Store the deletion of a domain, which its row has until now, since it is restored."""
    domain = tx.execute(_ORIGINS, {'domain_id': domain_id}).first()
    if domain is not None and domain.deleted_by:
        write(tx, [NewVersion(_origin(domain, is_deletion=True))], domain.deleted_at or now)


def actor_text(actor: Actor) -> str:
    """An actor as it is stored."""
    return json.dumps({name: value for name, value in dataclasses.asdict(actor).items() if value})


def actor_of(text: str | None) -> Actor:
    """An actor from its stored text."""
    return Actor.of(json.loads(text or '{}'))


def origin_text(version: Version) -> str:
    """A creation or deletion as the domain's row has it, and its time if that is not the row's."""
    at = {} if version.created_at is None else {'created_at': version.created_at.isoformat()}
    return json.dumps({'kind': version.kind, 'serial': version.serial, 'former_serial': version.former_serial,
                       'project_id': version.project_id, 'request_id': version.request_id,
                       'actor': dataclasses.asdict(version.actor), **at})


def steps(tx: Tx, wanted: Collection[Span], most: int) -> dict[Span, list[ZoneStep]] | None:
    """What leads from older serials of zones to the present ones, in one statement.

    Empty where the journal does not go back that far.  Zones that are at other serials by now, or not served,
    are left out.  None if more than *most* records have to be read.
    """
    has_wrapped = any(span.have > span.serial for span in wanted)
    rows = tx.execute(_OF_SOME, {'ids': sorted({span.domain_id for span in wanted}), 'most': most, 'rows': most + 1,
                                 'after': -1 if has_wrapped else min(span.have for span in wanted)}).all()
    if len(rows) > most or sum(row[3] or 0 for row in rows) > most:
        return None
    by_domain: dict[tuple[str, int], tuple[int | None, int, list[Sequence[Any]]]] = {}
    for *row, domain_id, serial, reach, ttl in rows:
        _, _, versions = by_domain.setdefault((domain_id, serial), (reach, ttl, []))
        if row[0] is not None:
            versions.append(row)
    return {span: _steps_since(span, *by_domain[span.domain_id, span.serial])
            for span in wanted if (span.domain_id, span.serial) in by_domain}


def trim(tx: Tx, domain: Domain, most: int) -> tuple[int, int]:
    """The first serial and the size of the domain's journal without its oldest versions: of *most* records at most."""
    rows = tx.execute(sa.select(TABLE.c.number, TABLE.c.former_serial, _SIZE_WITH_SIGNED)
                      .where(TABLE.c.domain_id == domain.id).order_by(TABLE.c.number.desc()).limit(most)).all()
    reach, size = domain.serial, 0
    for number, former_serial, count in rows:
        if reach == domain.journal_from or size + count > most:
            # Servers may have an older version while changes wait.
            if domain.is_signed and not domain.waits_for and domain.release_state is None:
                tx.execute(sa.update(TABLE).where(TABLE.c.domain_id == domain.id, TABLE.c.number <= number,
                                                  TABLE.c.signed_difference != b'').values(signed_difference=None))
            break
        reach, size = former_serial, size + count
    return reach, size


def drop_oldest(tx: Tx, domain: Domain, most: int, needed: int | None = None) -> int:
    """Drop the domain's oldest differences, until they have *most* records at most; how many they have.

    :param needed: a serial whose contents are needed
    """
    kept, cut, oldest = 0, None, None
    for number, serial, count, is_kept in _newest_first(tx, domain.id, _SIZES):
        needed = None if serial == needed else needed
        if not is_kept and count <= most:
            break  # those before were dropped
        if is_kept and cut is None and needed is None and kept + count > most:
            cut = number
        kept += count if is_kept and cut is None else 0
        oldest = number
    if cut is not None:
        tx.execute(sa.update(TABLE).where(TABLE.c.domain_id == domain.id, TABLE.c.number.between(oldest, cut), _IS_KEPT)
                   .values(difference=None))
    return kept


#: Servers may have former versions of these.
_RELEASED = sa.select(domains.c.id).where(domains.c.status.in_((Status.PENDING, Status.ERROR)),
                                          domains.c.release_state.is_not(None))


def expire(tx: Tx, before: datetime, limit: int) -> int:
    """Delete versions from before a time, the oldest first, *limit* at most; how many were deleted."""
    old = tx.execute(sa.select(TABLE.c.id, TABLE.c.domain_id, TABLE.c.serial_number, _SIZE_WITH_SIGNED,
                               sa.case((_IS_KEPT, _SIZE), else_=0))
                     .where(TABLE.c.created_at < before, TABLE.c.domain_id.not_in(_RELEASED))
                     .order_by(TABLE.c.created_at).limit(limit)).all()
    stale: dict[str, list[tuple[int, int, int]]] = {}
    for _, domain_id, serial, count, in_history in old:
        stale.setdefault(domain_id, []).append((serial, count, in_history))
    shorter = []
    for part in chunks(sorted(stale)):
        for row in tx.execute(_JOURNALS, {'ids': part}):
            reach, remaining = row.journal_from, row.journal_records
            for serial, count, _ in stale[row.id]:
                if reach is not None and _age(serial, row.serial) < _age(row.journal_from, row.serial):
                    remaining -= count
                    reach = min(reach, serial, key=lambda serial: _age(serial, row.serial))
            kept = row.history_records - sum(in_history for _, _, in_history in stale[row.id])
            shorter.append({'key': row.id, 'reach': reach, 'remaining': max(0, remaining), 'kept': max(0, kept)})
    if shorter:
        tx.execute(_SHORTEN, shorter)
    delete_all(tx, TABLE.c.id, (row.id for row in old))
    return len(old)


def find(tx: Tx, domain_id: str, limit: int = _AT_ONCE, before: int | None = None,
         project_id: str | None = None) -> list[Version]:
    """The versions of a domain, newest first, with its creation and deletion.

    :param limit: how many at most
    :param before: the number of the last one of the page before
    :param project_id: only those of the time when this project owned the domain
    """
    domain = tx.execute(_ORIGINS, {'domain_id': domain_id}).first()
    if domain is None:
        return []
    rows = _newest_first(tx, domain_id, _of_project(_PAGE, project_id), before, limit)
    listed = [_version(domain_id, row) for row in itertools.islice(rows, limit)]
    is_last = len(listed) < limit
    if domain.deleted_at and domain.deleted_by and before is None:
        listed[:0] = [_origin(domain, is_deletion=True)]
    if domain.created_by and is_last and (before is None or before > 1):
        listed.append(_origin(domain))
    return [version for version in listed if project_id in (None, version.project_id)][:limit]


def of_recordset(tx: Tx, domain_id: str, name: str, rtype: str | None, limit: int, before: int | None = None,
                 project_id: str | None = None) -> list[tuple[Version, RecordDifference]]:
    """Those versions that :func:`find` finds which changed records of a name, and a type if one is given, with these.

    Not the records that the domain was created with.
    """
    changes: list[tuple[Version, RecordDifference]] = []
    for row in _newest_first(tx, domain_id, _of_project(_PAGE_WITH_RECORDS, project_id), before):
        gone, added = ([record for record in side if record[0] == name and rtype in (None, record[1])]
                       for side in differences.unpack(row.difference or b''))
        if gone or added:
            changes.append((_version(domain_id, row), RecordDifference(gone, added)))
            if len(changes) == limit:
                break
    return changes


def permitted_pages(tx: Tx, domain_id: str, ahead: Ahead = iter, stage: int = LAST_STAGE
                    ) -> Generator[tuple[ZoneHead, Sequence[ZoneRecord]], None, None]:
    """Pages of a zone at the version that servers of a stage may have: its head with some of its records; at least one
    page.

    All pages are of one serial.  There is none if the zone is not served.  It must be the first call of its
    transaction.

    :param ahead: as for :func:`zone_snapshot.records_of`, and so is the order of the records
    """
    see_one_state(tx)
    head = zone_snapshot.head(tx, domain_id, stage)
    if head is None:
        return
    if head.is_held:
        former = _permitted(tx, domain_id, head)
        if head.is_signed:
            former += signed_at(tx, domain_id, head.serial)
        for start in range(0, max(1, len(former)), _AT_ONCE):
            yield head, former[start:start + _AT_ONCE]
        return
    is_empty = True
    with contextlib.closing(zone_snapshot.records_of(tx, domain_id, ahead, head.is_signed)) as read:
        for page in read:
            is_empty = False
            yield head, page
    if is_empty:
        yield head, ()


def whole_zone(pages: Iterable[tuple[ZoneHead, Sequence[ZoneRecord]]]) -> Iterator[ZoneRecord]:
    """The records of :func:`permitted_pages`, the SOA first, each with its TTL."""
    for number, (head, page) in enumerate(pages):
        if not number:
            yield head.name, 'SOA', head.ttl, soa_rdata.encode(head)
        for name, rtype, ttl, wire in page:
            yield name, rtype, head.ttl if ttl is None else ttl, wire


def permitted_texts(tx: Tx, domain_id: str,
                    stage: int = LAST_STAGE) -> tuple[ZoneHead, list[tuple[str, str, int | None, str]]] | None:
    """The head, and name, type, TTL (None for the zone's) and data of every record but the SOA, of the version that
    servers of a stage may have; None if the zone is not served.  It must be the first call of its transaction."""
    see_one_state(tx)
    head = zone_snapshot.head(tx, domain_id, stage)
    if head is None:
        return None
    if not head.is_held:
        return head, list(recordset_store.contents(tx, domain_id))
    return head, [(name, rtype, ttl, text_of_wire(rtype, wire))
                  for name, rtype, ttl, wire in _permitted(tx, domain_id, head)]


def _permitted(tx: Tx, domain_id: str, head: ZoneHead) -> list[ZoneRecord]:
    """The records at the serial of a head that is held."""
    serial = head.serial if head.contents_serial is None else head.contents_serial
    _, past = _version_at(tx, domain_id, serial, None, None)
    present = (record for page in zone_snapshot.records_of(tx, domain_id) for record in page)
    return list(Turns().between(differences.undo(present, past.differences())))


def signed_at(tx: Tx, domain_id: str, serial: int) -> list[ZoneRecord]:
    """What the signer had made of a zone whose changes wait, at the serial that servers may have."""
    undone = itertools.takewhile(lambda row: row.serial_number != serial, _newest_first(tx, domain_id, _SIGNED))
    present = tx.execute(sa.select(*(signed_records.c[name] for name in ('name', 'type', 'ttl', 'wire')))
                         .where(signed_records.c.domain_id == domain_id)).tuples()
    return list(differences.undo(present, [differences.unpack(row.signed_difference) for row in undone]))


def rows_at(tx: Tx, domain_id: str, at: int | datetime, project_id: str | None = None, expired: datetime | None = None,
            name: str | None = None) -> tuple[ZoneHead, Iterator[tuple[str, str, int | None, str]]]:
    """The head and the records, without the SOA, that a zone had at a serial or a time, also after it was deleted.

    It must be the first call of its transaction.  The records are in the form and the order of
    :func:`recordsets.contents`, fetched as they are consumed.

    :param project_id: only of the time when this project owned the domain
    :param expired: versions from before may have been deleted
    :param name: only the records of this name
    :raises DomainNotFound: when there is no such domain
    :raises ContentsNotKept: when it never had the serial, was not there, or its contents then are not kept
    """
    see_one_state(tx)
    head, past = _version_at(tx, domain_id, at, project_id, expired)
    query = _IN_ORDER if name is None else _IN_ORDER.where(recordsets.c.name == name)
    present = tx.execute(query, {'domain_id': domain_id}, execution_options={'yield_per': _AT_ONCE})
    rows = differences.undo_in_order(map(tuple, present), past.differences(), text_of_wire)
    return head, (row for row in rows if name in (None, row[0]))


def between(tx: Tx, domain_id: str, first: int | datetime, second: int | datetime, project_id: str | None = None,
            expired: datetime | None = None,
            most: int | None = None) -> tuple[ZoneHead, ZoneHead, list[ChangedSet]]:
    """The heads of two versions of a zone, and the recordsets that differ, by name and type, the SOA first.

    Other parameters and errors are as those of :func:`rows_at`.

    :param most: how many recordsets may have been changed between them, and may differ
    :raises Refused: when there are more
    """
    see_one_state(tx)
    heads, pasts = zip(*(_version_at(tx, domain_id, at, project_id, expired) for at in (first, second)))
    undone = [list(past.differences()) for past in pasts]
    newer, older = sorted(undone, key=len)
    keys = {record[:2] for difference in older[len(newer):] for side in difference for record in side}
    _refuse_more(keys, most)
    names = sorted({name for name, _ in keys})
    same_ttl = heads[0].ttl == heads[1].ttl  # of all records that have not their own
    present = [tuple(row[:4]) for where in ([recordsets.c.name.in_(part) for part in chunks(names)] if same_ttl else
                                            [sa.true()])
               for row in tx.execute(_IN_ORDER.where(where), {'domain_id': domain_id})]
    turns = Turns()
    sets = [_sets(head.ttl, turns.between(differences.undo(present, later)), keys if same_ttl else None)
            for head, later in zip(heads, undone)]
    soas = [((soa_rdata.text(head, ''.join(head.name_servers[:1])),), head.ttl) for head in heads]
    changed = [ChangedSet(heads[0].name, 'SOA', *soas[1], *soas[0])] if soas[0] != soas[1] else []
    for key in turns.between(sorted(sets[0].keys() | sets[1].keys())):
        former, latter = sets[0].get(key, _NO_SET), sets[1].get(key, _NO_SET)
        if former[0] != latter[0] or sorted(former[1]) != sorted(latter[1]):
            changed.append(ChangedSet(*key, _texts(key[1], latter[1]), latter[0], _texts(key[1], former[1]), former[0]))
    _refuse_more(changed, most)
    return *heads, changed


def _refuse_more(changed: Collection[Any], most: int | None) -> None:
    if most is not None and len(changed) > most:
        raise Refused('difference_too_large', f'More than {most} recordsets have changed between these versions; '
                                              'choose versions that are closer, or compare their exports.', 413)


def _sets(zone_ttl: int, contents: Iterable[ZoneRecord],
          keys: Collection[tuple[str, str]] | None) -> dict[tuple[str, str], tuple[int, list[bytes]]]:
    """TTL and data of the recordsets with these keys."""
    sets: dict[tuple[str, str], tuple[int, list[bytes]]] = {}
    for name, rtype, ttl, wire in contents:
        if keys is None or (name, rtype) in keys:
            sets.setdefault((name, rtype), (zone_ttl if ttl is None else ttl, []))[1].append(wire)
    return sets


def _texts(rtype: str, wires: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(sorted(text_of_wire(rtype, wire) for wire in wires))


class Past(NamedTuple):
    """A version of a zone, with the packed differences of all later ones, newest first, and what its SOA had else.

    :ivar since: when the zone had it first
    """

    serial: int
    since: datetime
    undone: Sequence[bytes]
    soa: Mapping[str, Any]

    def differences(self) -> Iterator[RecordDifference]:
        """What each later version changed, newest first."""
        return map(differences.unpack, self.undone)


def _version_at(tx: Tx, domain_id: str, at: int | datetime, project_id: str | None,
                expired: datetime | None) -> tuple[ZoneHead, Past]:
    """The head that a zone had, and its version then (see :func:`rows_at`)."""
    domain = tx.execute(_ORIGINS, {'domain_id': domain_id}).first()
    head = zone_snapshot.newest_head(tx, domain_id, if_served=False)
    if domain is None or head is None:
        raise DomainNotFound(domain=domain_id)
    past = _past(tx, domain, at, project_id, expired)
    if domain.purged:
        raise _not_kept(domain, at, 'the zone was deleted, and then its records')
    values = dict(past.soa)
    primary = values.pop('primary', None)
    return dataclasses.replace(head, **values, serial=past.serial, name_servers=(
        head.name_servers if primary is None else
        (primary, *(server for server in head.name_servers if server != primary)))), past


def undone_since(tx: Tx, domain_id: str, at: int | datetime, project_id: str | None,
                 expired: datetime | None) -> tuple[Past, list[RecordDifference]]:
    """As :func:`rows_at`: the version, and the differences between it and the present contents, newest first."""
    past = _past(tx, tx.execute(_ORIGINS, {'domain_id': domain_id}).one(), at, project_id, expired)
    return past, list(past.differences())


def _past(tx: Tx, domain: Any, at: int | datetime, project_id: str | None, expired: datetime | None) -> Past:
    """The version of a zone at a serial or a time (see :func:`rows_at`)."""
    serial, owner, since = domain.serial, domain.project_id, domain.created_at
    undone: list[bytes] = []
    soa: dict[str, Any] = {}
    deletion = [(_origin(domain, is_deletion=True), b'', None)] if domain.deleted_at and domain.deleted_by else []
    for version, packed, former_soa in itertools.chain(deletion, (
            (_version(domain.id, row), row.difference, row.former_soa)
            for row in _newest_first(tx, domain.id, _PAGE_WITH_RECORDS))):
        is_there, begun = version.kind is not ChangeKind.DELETE, version.created_at or since
        if version.serial != serial:
            if version.serial == version.former_serial:  # how the release of its deletion went on
                continue
            break
        is_own = project_id in (None, owner)
        if begun <= at if isinstance(at, datetime) else is_there and is_own and serial == at:
            if not is_own:
                raise _not_kept(domain, at, _OF_OTHERS)
            if not is_there:
                raise _not_kept(domain, at, f'it was deleted at {_shown(begun)}')
            return Past(serial, begun, undone, soa)
        since = begun
        if packed is None:
            break
        undone.append(packed)
        soa.update(json.loads(former_soa or '{}'))
        serial, owner = version.former_serial, soa.pop('project_id', owner)
    else:
        origin = _origin(domain) if domain.created_by else None
        begun = origin and origin.created_at or domain.created_at
        if isinstance(at, datetime) and at < begun:
            how = 'taken over' if origin and origin.kind is ChangeKind.TAKEOVER else 'created'
            raise _not_kept(domain, at, f'it was {how} at {_shown(begun)}')
        since = begun if expired is None or origin and origin.serial == serial else max(begun, expired)
        if project_id in (None, owner) and (at == serial if isinstance(at, int) else at >= since):
            return Past(serial, begun, undone, soa)
    if project_id not in (None, owner):
        raise _not_kept(domain, at, _OF_OTHERS)
    raise _not_kept(domain, at, f'they are kept since serial {serial} of {_shown(since)}')


def _not_kept(domain: Any, at: int | datetime, why: str) -> ContentsNotKept:
    return ContentsNotKept(domain=domain.name, why=why, at=_shown(at) if isinstance(at, datetime) else f'serial {at}')


def _shown(moment: datetime) -> str:
    return f'{moment:%Y-%m-%d %H:%M:%S} UTC'


def _newest_first(tx: Tx, domain_id: str, query: sa.Select[Any], before: int | None = None,
                  at_once: int = _AT_ONCE) -> Iterator[Any]:
    """The rows of a query for versions of a domain, newest first; *before* is as for :func:`find`."""
    before = _NEWEST if before is None else before
    while rows := tx.execute(query, {'domain_id': domain_id, 'before': before, 'limit': at_once}).all():
        yield from rows
        if len(rows) < at_once:
            break
        before = rows[-1].number


def _of_project(query: sa.Select[Any], project_id: str | None) -> sa.Select[Any]:
    return query if project_id is None else query.where(TABLE.c.project_id == project_id)


def _version(domain_id: str, row: Sequence[Any]) -> Version:
    number, serial, former_serial, kind, actor, *others = row[:_FIELDS]
    return Version(domain_id, number, serial, former_serial, kind, actor_of(actor), *others)


def _origin(domain: Any, is_deletion: bool = False) -> Version:
    """The creation, or the deletion, of a domain, which its row has."""
    number, at, text = ((domain.version, domain.deleted_at, domain.deleted_by) if is_deletion else
                        (1, domain.created_at, domain.created_by))
    values = json.loads(text)
    if 'created_at' in values:
        at = datetime.fromisoformat(values.pop('created_at'))
    return Version(domain.id, number, created_at=at, kind=ChangeKind(values.pop('kind')),
                   actor=Actor.of(values.pop('actor')), **values)


def _age(serial: int, newest: int) -> int:
    """How far *serial* lies behind (RFC 1982)."""
    return (newest - serial) % serials.SPACE


def _steps_since(span: Span, reach: int | None, ttl: int, rows: Sequence[Sequence[Any]]) -> list[ZoneStep]:
    """The changes since a serial, step by step; *rows* are the journal's since then at least, *reach* is its own."""
    behind = _age(span.have, span.serial)
    if reach is None or not behind <= _age(reach, span.serial) < serials.HALF:
        return []
    later = (row for row in rows if _age(row[1], span.serial) < behind)
    result, at = [], span.have
    for _, serial, former_serial, _, packed, signed in sorted(later, key=lambda row: row[0]):
        if serial == former_serial:
            continue
        if former_serial != at or packed is None or signed is None:
            return []
        gone, added = differences.unpack(packed, ttl)
        if same := set(gone).intersection(added):  # only whether the TTL is the zone's has changed
            gone, added = ([record for record in part if record not in same] for part in (gone, added))
        if signed:
            gone, added = ([*part, *more] for part, more in zip((gone, added), differences.unpack(signed)))
        result.append(ZoneStep(serial, gone, added))  # type: ignore[arg-type]
        at = serial
    return result if at == span.serial else []
