"""Adding the records of a source to a zone: all of them, or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import NO_EXTRA, Extra, RRset, unpack


def add_pairs(zone: Zone, pairs: Mapping[str, str] | Iterable[tuple[str, str]], lenient: bool = False) -> None:
    """Add packed pairs in normal form.

    :param pairs: a dict becomes the zone's own (:meth:`designate_pool.planner.zone.zone.Zone.fill`)
    :raises ZoneError: when one of them is not allowed in the zone; none is added then
    """
    if len(zone):
        found = pairs.items() if isinstance(pairs, Mapping) else pairs
        add_all(zone, [unpack(key, value) for key, value in found], lenient)
    else:
        zone.fill(pairs, lenient)


def add_all(zone: Zone, rrsets: Iterable[RRset], lenient: bool = False, replace: bool = False) -> None:
    """Add RRsets.

    :param replace: whether existing RRsets of the same names and types are replaced
    :raises ZoneError: when one of them is not allowed in the zone; none is added then
    """
    rrsets = list(rrsets)
    if len(zone) or replace:
        trial = zone.copy()
        for each in rrsets:
            trial.add_record(each, replace=replace, lenient=lenient)
        for each in rrsets:
            zone.add_record(each, replace=replace, lenient=lenient)
        return
    zone.fill(((each.key, each.packed) for each in rrsets), lenient)
    extras: Mapping[str, Extra] = {each.key: each.extra for each in rrsets if each.extra != NO_EXTRA}
    for each in rrsets:
        if each.key in extras:
            zone.add_record(each, replace=True, lenient=lenient)
