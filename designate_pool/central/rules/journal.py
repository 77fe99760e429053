"""The journal of a zone's changes, for incremental transfers (RFC 1995).

The invariant: the journal's entries for a serial, applied to the zone at the serial before, give the zone at that
serial, except the SOA.  A change that cannot be expressed so, or is larger than a whole journal, empties the journal:
servers with an older serial then transfer the whole zone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from designate_pool.central.rules.recordset_edits import RecordSetEdits, served_ttl
from designate_pool.model import Change, Domain, RecordSet
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import journal
from designate_pool.storage.zones.journal import DomainChange, JournalRecord


class JournalEntry(NamedTuple):
    """A change from *former* to *domain* that is to be journalled; *present*: existing recordsets that get records."""

    former: Domain
    domain: Domain
    edits: RecordSetEdits
    present: Sequence[RecordSet]


class Journal:
    """Writes the journals of domains, of *most* records each; 0 for no journals."""

    def __init__(self, most: int) -> None:
        self._most = most

    def write(self, tx: Tx, changes: Sequence[JournalEntry], now: datetime) -> list[Domain]:
        """Write changes of domains into their journals, before the edits; the domains with their new journal fields."""
        small = [entry for entry in changes if len(entry.edits.new_records) + len(entry.edits.gone_records)
                 + len(entry.edits.gone_sets) <= self._most]
        of_set = {set_id: number for number, entry in enumerate(small) for set_id in entry.edits.gone_sets}
        of_record = {record_id: number for number, entry in enumerate(small)
                     for record_id in (*entry.edits.gone_records, *entry.edits.touched_records)}
        former: list[list[JournalRecord]] = [[] for _ in small]  # what each removes or touches, as it is before it
        for record in journal.held(tx, list(of_set), list(of_record)):
            former[of_record[record.id] if record.id in of_record else of_set[record.recordset_id]].append(record)
        written: dict[str, tuple[list[Change], list[Change]]] = {}
        for entry, records in zip(small, former):
            gone, added = difference(entry.domain, entry.edits, records, entry.present)
            if 0 < len(gone) + len(added) <= self._most:
                written[entry.domain.id] = gone, added
        journal.write(tx, [DomainChange(entry.domain.id, entry.domain.serial, *written[entry.domain.id])
                           for entry in small if entry.domain.id in written], now)
        return [self._extended(tx, entry, sum(map(len, written[entry.domain.id]))) if entry.domain.id in written
                else cut(tx, entry.domain)[0] for entry in changes]

    def _extended(self, tx: Tx, entry: JournalEntry, size: int) -> Domain:
        """The domain of *entry*, whose journal has got *size* more records."""
        former, domain = entry.former, entry.domain
        # A program that kept no journal may have changed the domain meanwhile, during an upgrade.
        goes_on = former.journal_from is not None and former.journal_to == former.serial
        domain = dataclasses.replace(domain, journal_from=former.journal_from if goes_on else former.serial,
                                     journal_to=domain.serial, journal_records=domain.journal_records + size)
        if domain.journal_records <= self._most:
            return domain
        # Trim more than necessary, so that the next changes need not do so too.
        begin, count = journal.trim(tx, domain, self._most - self._most // 4)
        return dataclasses.replace(domain, journal_from=begin, journal_records=count)


def difference(domain: Domain, edits: RecordSetEdits, former: Iterable[JournalRecord],
               present: Iterable[RecordSet]) -> tuple[list[Change], list[Change]]:
    """The records that *edits* remove and add; *former* are those that they remove or touch, in their former state."""
    sets = {recordset.id: (recordset.name, recordset.type, recordset.ttl) for recordset in [*present, *edits.new_sets]}
    ttls = {set_id: ttl for (ttl, _), ids in edits.changed_sets.items() for set_id in ids}
    touched = set(edits.touched_records)
    gone: list[Change] = []
    added: list[Change] = []
    for record in former:
        before = served_ttl(domain, record.ttl)
        after = served_ttl(domain, ttls.get(record.recordset_id, record.ttl))
        if record.id not in touched:
            gone.append((record.name, record.type, before, record.wire))
        elif after != before:
            gone.append((record.name, record.type, before, record.wire))
            added.append((record.name, record.type, after, record.wire))
    for set_id, rdata in edits.new_records:
        name, rtype, ttl = sets[set_id]
        added.append((name, rtype, served_ttl(domain, ttls.get(set_id, ttl)), rdata.wire))
    return gone, added


def cut(tx: Tx, *changed: Domain) -> list[Domain]:
    """Empty the journals of domains: they begin at their current serials."""
    journal.forget(tx, [domain.id for domain in changed if domain.journal_from is not None])
    return [dataclasses.replace(domain, journal_from=None, journal_to=None, journal_records=0) for domain in changed]
