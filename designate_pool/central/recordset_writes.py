"""Writes the edits of recordsets."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from designate_pool.central import events
from designate_pool.central.rules import domains as rules
from designate_pool.central.rules.journal import Journal, JournalEntry
from designate_pool.central.rules.recordset_edits import RecordSetEdits
from designate_pool.model import Context, Domain, RecordSet
from designate_pool.storage.sql.bulk_insert import Insertion
from designate_pool.storage.sql.database import Dialect, Tx
from designate_pool.storage.zones import domains, managed_records, recordsets

#: What inserts the contents of a new domain, part by part.
InsertionParts = Generator[Sequence[Insertion], None, None]


class DomainEdits(NamedTuple):
    """The edits of one request.

    :ivar domain: locked
    :ivar present: the existing recordsets that they concern
    """

    context: Context
    domain: Domain
    edits: RecordSetEdits
    present: Sequence[RecordSet]


def write_edits(tx: Tx, changes: Sequence[DomainEdits], now: datetime, journal: Journal) -> list[tuple[Domain, bool]]:
    """Write edits of different domains; of each, the domain, with a new serial if its served contents change, and
    whether they do."""
    written = [each for each in changes if each.edits.contents]
    new = journal.write(tx, [JournalEntry(domain, rules.change(domain, now, events.request_id(context)), edits, present)
                             for context, domain, edits, present in written], now) if written else []
    if new:
        domains.save_many(tx, ((domain, each.context.operation_id) for domain, each in zip(new, written)))
        write_contents(tx, [(domain, each.edits) for domain, each in zip(new, written)], now)
        marked = managed_records.settle(tx, [each.id for change in written for each in change.present
                                             if each.managed and each.type not in ('SOA', 'NS')], now)
        for change in written:
            change.edits.marked_sets = [each.id for each in change.present if each.id in marked]
    write_settings(tx, [each.edits for each in changes], now)
    changed = {domain.id: domain for domain in new}
    return [(changed.get(each.domain.id, each.domain), each.domain.id in changed) for each in changes]


def write_contents(tx: Tx, changes: Sequence[tuple[Domain, RecordSetEdits]], now: datetime) -> None:
    """Write what edits change in the served contents of locked domains.

    :param changes: each with the domain with the serial that it gets by the edits
    """
    by_serial: dict[int, list[tuple[Domain, RecordSetEdits]]] = {}
    for domain, edits in changes:
        by_serial.setdefault(domain.serial, []).append((domain, edits))
    for serial, some in by_serial.items():
        recordsets.delete(tx, (each for _, edits in some for each in edits.gone_sets), serial, now)
        recordsets.delete_records(tx, (each for _, edits in some for each in edits.gone_records), serial, now)
        recordsets.touch_records(tx, (each for _, edits in some for each in edits.touched_records), serial, now)
    recordsets.insert(tx, [each for _, edits in changes for each in edits.new_sets], now)
    for serial, some in by_serial.items():
        ids = iter(recordsets.insert_records(tx, serial, (
            (domain.id, set_id, rdata.text, rdata.wire) for domain, edits in some
            for set_id, rdata in edits.new_records), now))
        for _, edits in some:
            edits.record_ids = list(itertools.islice(ids, len(edits.new_records)))


def write_settings(tx: Tx, changes: Iterable[RecordSetEdits], now: datetime) -> None:
    """Write the TTLs and descriptions that edits change."""
    alike: dict[tuple[int | None, str | None], list[str]] = {}
    for edits in changes:
        for settings, ids in edits.changed_sets.items():
            alike.setdefault(settings, []).extend(ids)
    for (ttl, description), ids in alike.items():
        recordsets.change(tx, ids, ttl, description, now)


def insertions(dialect: Dialect, domain: Domain, edits: RecordSetEdits, now: datetime) -> list[Insertion]:
    """What inserts the new recordsets and records of a new domain."""
    rows = ((domain.id, set_id, rdata.text, rdata.wire) for set_id, rdata in edits.new_records)
    return [recordsets.insertion(dialect, edits.new_sets, now),
            *(insertion for _, insertion in recordsets.record_insertions(dialect, domain.serial, rows, now))]
