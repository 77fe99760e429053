"""The journal of a zone's changes, for incremental transfers (RFC 1995).

The invariant: the journal's entries for a serial, applied to the zone at the serial before, give the zone at that
serial, except the SOA.  A change that cannot be expressed so, or is larger than a whole journal, empties the journal:
servers with an older serial then transfer the whole zone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import datetime

from designate_pool.central.rules.recordset_edits import RecordSetEdits
from designate_pool.model import Change, Domain, RecordSet
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import journal
from designate_pool.storage.zones.journal import JournalRecord


class Journal:
    """
    :param most: records that a domain's journal may hold; 0 for no journals
    """

    def __init__(self, most: int) -> None:
        self._most = most

    def write(self, tx: Tx, former: Domain, domain: Domain, edits: RecordSetEdits, present: Iterable[RecordSet],
              now: datetime) -> Domain:
        """Write the changes of *edits* into the journal, before the edits; the domain with its new journal fields.

        :param former: the domain before the change
        :param domain: the domain with its new serial
        :param present: the existing recordsets that get records
        """
        if len(edits.new_records) + len(edits.gone_records) + len(edits.gone_sets) > self._most:
            return self.cut(tx, domain)
        held = journal.held(tx, edits.gone_sets, [*edits.gone_records, *edits.touched_records])
        gone, added = difference(domain, edits, held, present)
        size = len(gone) + len(added)
        if not 0 < size <= self._most:
            return self.cut(tx, domain)
        journal.write(tx, domain.id, domain.serial, gone, added, now)
        # A program that kept no journal may have changed the domain meanwhile, during an upgrade.
        goes_on = former.journal_from is not None and former.journal_to == former.serial
        domain = dataclasses.replace(domain, journal_from=former.journal_from if goes_on else former.serial,
                                     journal_to=domain.serial, journal_records=domain.journal_records + size)
        if domain.journal_records <= self._most:
            return domain
        # Trim more than necessary, so that the next changes need not do so too.
        reach, left = journal.trim(tx, domain, self._most - self._most // 4)
        return dataclasses.replace(domain, journal_from=reach, journal_records=left)

    def cut(self, tx: Tx, domain: Domain) -> Domain:
        """Empty the domain's journal: it begins at the current serial."""
        if domain.journal_from is not None:
            journal.forget(tx, [domain.id])
        return dataclasses.replace(domain, journal_from=None, journal_to=None, journal_records=0)


def difference(domain: Domain, edits: RecordSetEdits, held: Iterable[JournalRecord],
               present: Iterable[RecordSet]) -> tuple[list[Change], list[Change]]:
    """The records that *edits* remove from the zone, and those that they add.

    :param held: the records that they remove or touch, in their former state
    """
    sets = {each.id: (each.name, each.type, each.ttl) for each in [*present, *edits.new_sets]}
    ttls = {set_id: ttl for (ttl, _), ids in edits.changed_sets.items() for set_id in ids}
    touched = set(edits.touched_records)
    gone: list[Change] = []
    added: list[Change] = []
    for each in held:
        before = _served(domain, each.ttl)
        after = _served(domain, ttls.get(each.recordset_id, each.ttl))
        if each.id not in touched:
            gone.append((each.name, each.type, before, each.wire))
        elif after != before:
            gone.append((each.name, each.type, before, each.wire))
            added.append((each.name, each.type, after, each.wire))
    for set_id, rdata in edits.new_records:
        name, rtype, ttl = sets[set_id]
        added.append((name, rtype, _served(domain, ttls.get(set_id, ttl)), rdata.wire))
    return gone, added


def cut_many(tx: Tx, changed: Sequence[Domain]) -> list[Domain]:
    """:meth:`Journal.cut` for many domains at once."""
    with_journal = [domain.id for domain in changed if domain.journal_from is not None]
    journal.forget(tx, with_journal)
    return [dataclasses.replace(domain, journal_from=None, journal_to=None, journal_records=0) for domain in changed]


def _served(domain: Domain, ttl: int | None) -> int:
    return domain.ttl if ttl is None else ttl
