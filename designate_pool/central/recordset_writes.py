"""Writes the edits of recordsets."""

from __future__ import annotations

import itertools
from datetime import datetime

from designate_pool.central.rules.recordset_edits import RecordSetEdits
from designate_pool.model import Domain
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import recordsets


def write_contents(tx: Tx, domain: Domain, edits: RecordSetEdits, now: datetime) -> None:
    """Write what *edits* change in the served contents of a locked domain.

    :param domain: with the serial that it gets by them
    """
    recordsets.delete(tx, edits.gone_sets, domain.serial, now)
    recordsets.delete_records(tx, edits.gone_records, domain.serial, now)
    recordsets.touch_records(tx, edits.touched_records, domain.serial, now)
    recordsets.insert(tx, edits.new_sets, now)
    edits.record_ids = insert_records(tx, domain, edits, now)


def write_settings(tx: Tx, edits: RecordSetEdits, now: datetime) -> None:
    """Write the TTLs and descriptions that *edits* change."""
    for (ttl, description), ids in edits.changed_sets.items():
        recordsets.change(tx, ids, ttl, description, now)


def insert_records(tx: Tx, domain: Domain, edits: RecordSetEdits, now: datetime) -> list[str]:
    """Their ids, in the order of ``new_records``."""
    set_ids, rdatas = zip(*edits.new_records) if edits.new_records else ((), ())
    return recordsets.insert_records(tx, domain.serial, zip(itertools.repeat(domain.id), set_ids, *zip(*rdatas)), now)
