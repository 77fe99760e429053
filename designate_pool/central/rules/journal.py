"""The versions of zones, and the journal of those that incremental transfers use (RFC 1995).

The invariant: the difference of a version, applied to the zone at the serial before, gives the zone at its serial,
except the SOA.  A change of the SOA other than of its serial, and one that is not kept since it is too large, begin the
journal anew: servers with an older serial then transfer the whole zone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from designate_pool.central.events import request_id
from designate_pool.central.rules.recordset_edits import RecordSetEdits
from designate_pool.deadline import Turns
from designate_pool.errors import Refused
from designate_pool.model import (ChangeKind, Context, Domain, RecordSet, SignedDifference, SignedRecord, ZoneRecord,
                                  differences)
from designate_pool.storage.serving import catalog
from designate_pool.storage.signing import signed_records
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, pools, versions
from designate_pool.storage.zones.versions import NewVersion, ServedRecord

#: Octets of a difference, beyond which it is not kept: a statement has them twice, and MariaDB's longest has 16 MiB.
_MOST_OCTETS = 4_000_000
_SOA = 'email', 'ttl', 'refresh', 'retry', 'expire', 'minimum', 'soa_names'

_NO_EDITS = RecordSetEdits()


class JournalEntry(NamedTuple):
    """A change from *former* to *domain*; *present*: existing recordsets that get records or are deleted.

    :ivar kind: None for that of *context*
    :ivar begins_anew: whether servers with an older serial have to transfer the whole zone
    :ivar former_primary: in the SOA until now; '' for the same as from now on
    """

    context: Context
    former: Domain
    domain: Domain
    edits: RecordSetEdits = _NO_EDITS
    present: Sequence[RecordSet] = ()
    kind: ChangeKind | None = None
    begins_anew: bool = False
    former_primary: str = ''

    @property
    def former_soa(self) -> dict[str, Any] | None:
        """The SOA before, where it has changed in more than the serial."""
        values = {name: getattr(self.former, name) for name in _SOA}
        if self.former_primary:
            return {**values, 'primary': self.former_primary}
        return values if any(getattr(self.domain, name) != value for name, value in values.items()) else None


class SignedChange(NamedTuple):
    """The records of the signer that a change removes and adds, and the domain after it."""

    gone: Sequence[SignedRecord]
    added: Sequence[SignedRecord]
    domain: Domain


#: A change with the records that it removes and adds, with None for the TTL of the zone.
Change = tuple[JournalEntry, Sequence[ZoneRecord], Sequence[ZoneRecord]]


class Journal:
    """Writes the versions of domains, and what the signer makes of them.

    :param most: records of them that IXFR may use, with those of the signer
    :param kept: records that are kept, without those
    :param sign: makes the signed changes, by id, of domains that are or were signed, before anything of them is written
    """

    def __init__(self, most: int, kept: int,
                 sign: Callable[[Tx, Sequence[Change], datetime], Mapping[str, SignedChange]] | None = None) -> None:
        self._most = most
        self._kept = kept
        self._sign = sign

    def write(self, tx: Tx, changes: Sequence[JournalEntry], now: datetime) -> list[Domain]:
        """Write the versions that changes of domains make, before the edits; the domains with new journal fields."""
        small: list[JournalEntry] = []
        signer_changes: list[JournalEntry] = []
        for entry in changes:
            if entry.former.freeze is not None and entry.former.former_pool_id is None:
                pools.hold(tx, entry.former.pool_id, entry.former)  # or the end of the freeze would miss the change
            # The first transfer from a master comes after no contents, and needs no difference.
            is_first = entry.kind is ChangeKind.REFRESH and entry.begins_anew and not entry.present
            size = len(entry.edits.new_records) + len(entry.edits.gone_records) + len(entry.edits.gone_sets)
            if entry.domain.has_signer or entry.former.has_signer:
                signer_changes.append(entry)
                small.append(entry)
            elif not is_first and size <= self._kept or _oldest_needed(entry.domain) is not None:
                small.append(entry)
        of_set = {set_id: number for number, entry in enumerate(small) for set_id in entry.edits.gone_sets}
        of_record = {record_id: number for number, entry in enumerate(small)
                     for record_id in (*entry.edits.gone_records, *entry.edits.touched_records)}
        former: list[list[ServedRecord]] = [[] for _ in small]  # what each removes or touches, as it is before it
        for record in versions.served(tx, list(of_set), list(of_record)):
            former[of_record[record.id] if record.id in of_record else of_set[record.recordset_id]].append(record)
        written: dict[str, tuple[list[ZoneRecord], list[ZoneRecord]]] = {}
        for entry, records in zip(small, former):
            gone, added = difference(entry.edits, records, entry.present)
            written[entry.domain.id] = gone, added
        if signer_changes:
            signed = self.sign(tx, [(entry, *written[entry.domain.id]) for entry in signer_changes], now)
            changes = [entry._replace(domain=signed[entry.domain.id].domain) if entry.domain.id in signed else entry
                       for entry in changes]
        else:
            signed = {}
        new = [self._version(entry, written.get(entry.domain.id), signed.get(entry.domain.id)) for entry in changes]
        versions.write(tx, new, now)
        return [self._extended(tx, entry, version) for entry, version in zip(changes, new)]

    def sign(self, tx: Tx, changes: Sequence[Change], now: datetime) -> Mapping[str, SignedChange]:
        """Have changes signed, and store what the signer makes of them, but no version."""
        assert self._sign is not None
        signed = self._sign(tx, changes, now)
        signed_records.replace(tx, {key: SignedDifference(change.gone, change.added) for key, change in signed.items()})
        return signed

    def _version(self, entry: JournalEntry, written: tuple[Sequence[ZoneRecord], Sequence[ZoneRecord]] | None,
                 signed: SignedChange | None) -> NewVersion:
        edits, packed = entry.edits, None
        if written is None:
            gone = len(edits.gone_records) + sum(len(old.records) for old in entry.present if old.id in edits.gone_sets)
            added = len(edits.new_records)
        else:
            gone, added = map(len, written)
            packed = _packed(entry, *written, self._kept)
        signed_size = 0
        signed_packed: bytes | None = b''
        if signed is not None and (entry.domain.is_signed or entry.former.is_signed):
            signed_size = len(signed.gone) + len(signed.added)
            signed_packed = _packed(entry, [record.record for record in signed.gone],
                                    [record.record for record in signed.added], self._most)
        return NewVersion(versions.of(entry.context, entry.former, entry.domain, entry.kind or entry.context.kind, gone,
                                      added), packed, entry.former_soa, signed_packed, signed_size)

    def _extended(self, tx: Tx, entry: JournalEntry, new: NewVersion) -> Domain:
        """The domain of *entry*, whose journal has got a version."""
        former, domain = entry.former, entry.domain
        in_history = new.version.gone + new.version.added
        size = in_history + new.signed_size
        # Servers that have the contents before under the former serial cannot use the difference from it.
        is_turned_back = (release := former.release) is not None and release.turned_back is not None
        if (is_turned_back or None in (new.difference, new.signed_difference) or new.former_soa or entry.begins_anew
                or domain.is_signed is not former.is_signed or size > self._most or not self._most):
            domain = dataclasses.replace(domain, journal_from=None, journal_to=None, journal_records=0)
        else:
            # A program that writes no versions may have changed the domain meanwhile.
            goes_on = former.journal_from is not None and former.journal_to == former.serial
            domain = dataclasses.replace(domain, journal_from=former.journal_from if goes_on else former.serial,
                                         journal_to=domain.serial,
                                         journal_records=(domain.journal_records if goes_on else 0) + size)
        if new.difference is not None:
            domain = dataclasses.replace(domain, history_records=domain.history_records + in_history)
        # Cut more than necessary, so that the next changes need not do so too.
        if domain.journal_records > self._most:
            begin, count = versions.trim(tx, domain, self._most - self._most // 4)
            domain = dataclasses.replace(domain, journal_from=begin, journal_records=count)
        if domain.history_records > self._kept:
            domain = dataclasses.replace(domain, history_records=versions.drop_oldest(
                tx, domain, self._kept - self._kept // 4, _oldest_needed(domain)))
        return domain


def _packed(entry: JournalEntry, gone: Sequence[ZoneRecord], added: Sequence[ZoneRecord], most: int) -> bytes | None:
    """A difference of *most* records at most, or one that is needed, packed; None for a larger one."""
    if len(gone) + len(added) <= most or _oldest_needed(entry.domain) is not None:
        packed = differences.pack(gone, added, Turns().between)
        if len(packed) <= _MOST_OCTETS:
            return packed
    if _oldest_needed(entry.domain) is not None:
        raise Refused('too_large_to_wait', f'The change of {entry.domain.name} is too large to be kept until all '
                                           'servers have it; make it in parts.', 409)
    return None


def _oldest_needed(domain: Domain) -> int | None:
    """The serial of the oldest version that servers may have, if that is not the newest: the changes after it wait for
    the end of a freeze, or are released in stages."""
    release = domain.release
    if domain.waits_for is None and release is None:
        return None
    oldest = domain.permitted or (None if release is None or release.version is None else domain.permitted_at(0))
    return None if oldest is None else oldest.serial


def note(tx: Tx, context: Context, former: Domain, domain: Domain, kind: ChangeKind, now: datetime,
         reason: str | None = None) -> None:
    """Write a version of a domain at the same serial as before."""
    owner = None if former.project_id == domain.project_id else {'project_id': former.project_id}
    version = dataclasses.replace(versions.of(context, former, domain, kind), request_id=request_id(context),
                                  reason=reason)
    versions.write(tx, [NewVersion(version, former_soa=owner)], now)


def release(tx: Tx, context: Context, former: Domain, reason: str, now: datetime) -> Domain:
    """Let servers have the changes of a domain that wait for the end of a freeze."""
    domain = dataclasses.replace(former, held_by=None, version_before=None, updated_at=now, version=former.version + 1)
    note(tx, context, former, domain, ChangeKind.RELEASE, now, reason)
    domains.save(tx, domain)
    catalog.bump(tx, domain.pool_id, now, [domain.id], may_wait=False)
    return domain


def difference(edits: RecordSetEdits, former: Iterable[ServedRecord], present: Iterable[RecordSet]
               ) -> tuple[list[ZoneRecord], list[ZoneRecord]]:
    """The records that *edits* remove and add; *former* are those that they remove or touch, in their former state."""
    turns = Turns()
    sets = {recordset.id: (recordset.name, recordset.type, recordset.ttl)
            for recordset in turns.between([*present, *edits.new_sets])}
    ttls = {set_id: ttl for (ttl, _), ids in edits.changed_sets.items() for set_id in ids}
    touched = set(edits.touched_records)
    gone: list[ZoneRecord] = []
    added: list[ZoneRecord] = []
    for record in turns.between(former):
        after = ttls.get(record.recordset_id, record.ttl)
        if record.id not in touched:
            gone.append((record.name, record.type, record.ttl, record.wire))
        elif after != record.ttl:
            gone.append((record.name, record.type, record.ttl, record.wire))
            added.append((record.name, record.type, after, record.wire))
    for set_id, rdata in turns.between(edits.new_records):
        name, rtype, ttl = sets[set_id]
        added.append((name, rtype, ttls.get(set_id, ttl), rdata.wire))
    return gone, added
