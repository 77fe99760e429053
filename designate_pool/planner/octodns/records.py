"""Conversion between octoDNS's records and our RRsets.

octoDNS is optional, so it is imported when it is first needed.

Records that octoDNS does not change are converted back exactly, since a :class:`ZoneMirror` knows which record was made
from which RRset; records that octoDNS makes are converted to normal form.  The data of types that DNS does not have
(octoDNS's ``ALIAS``, types of single providers) is octoDNS's text, or JSON if it is no text.
"""

from __future__ import annotations

import functools
import importlib
import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

import dns.rdatatype

from designate_pool.errors import InvalidField
from designate_pool.planner.sources import yaml_rdata
from designate_pool.planner.targets.yaml_target import extra_data, octodns_value
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import GENERATED, normal_name, normal_rdata, rdata_without_dots
from designate_pool.protocol.rrset import NO_EXTRA, Extra, RRset

LOG = logging.getLogger(__name__)


@functools.cache
def octodns(module: str) -> Any:
    """A module of octoDNS, as in ``octodns('record')``; InvalidField when octoDNS is not installed."""
    try:
        return importlib.import_module(f'octodns.{module}')
    except ModuleNotFoundError as error:
        if (error.name or '').partition('.')[0] != 'octodns':
            raise
        raise InvalidField(field='octoDNS', why="it is not installed; 'pip install designate-pool[octodns]' does that"
                           ) from None


class ZoneMirror:
    """Our zone and the same zone of octoDNS, kept in sync.

    :param lenient: whether data of octoDNS's records that is invalid for its type is accepted
    """

    def __init__(self, zone: Zone, octodns_zone: Any, lenient: bool = True) -> None:
        self.zone = zone
        self.octodns_zone = octodns_zone
        self._lenient = lenient
        #: By key: the record, and its data when it was last compared.
        self._records: dict[str, tuple[Any, str]] = {}

    @classmethod
    def of(cls, zone: Zone, refused: Callable[[RRset, str], None] | None = None, lenient: bool = True) -> ZoneMirror:
        """The mirror of our *zone*.

        :param refused: called for each RRset that octoDNS cannot hold, with the reason; it is then in neither zone.
            Without it, such an RRset is in our zone only
        """
        mirror = cls(zone.copy(), _empty(zone), lenient)
        for rrset in zone:
            try:
                mirror._add(rrset)
            except InvalidField as error:
                if refused is not None:
                    refused(rrset, error.kwargs['why'])
                    mirror.zone.remove_record(rrset)
        return mirror

    @classmethod
    def of_octodns(cls, octodns_zone: Any, like: Zone) -> ZoneMirror:
        """The mirror of a zone of octoDNS, with the sub-zones and thresholds of *like*."""
        mirror = cls(like.empty(), octodns_zone)
        mirror.from_octodns(octodns_zone)
        return mirror

    def from_octodns(self, octodns_zone: Any) -> Zone:
        """Our zone after taking over *octodns_zone*, the same if unchanged; InvalidField for an alien record."""
        states = {_key(record): (record, _state(record)) for record in octodns_zone.records}
        gone = [key for key in self._records if key not in states]
        # Some of octoDNS's own processors change records in place, although they must not.
        new = [record for key, (record, state) in states.items() if not self._knows(key, record, state)]
        self.octodns_zone = octodns_zone
        self._records = states
        if gone or new:
            zone = self.zone.copy()
            for key in gone:
                zone.remove_record(zone[key])
            for record in new:
                zone.add_record(rrset_of(record, self._lenient), replace=True, lenient=True)
            self.zone = zone
        return self.zone

    def to_octodns(self, zone: Zone) -> Any:
        """Take over our *zone*; returns octoDNS's."""
        before, after = self.zone, zone
        if before.packed == after.packed and before.extras == after.extras:
            return self.octodns_zone
        changed = [key for key in {**before.packed, **after.packed}
                   if before.packed.get(key) != after.packed.get(key)
                   or before.extras.get(key, NO_EXTRA) != after.extras.get(key, NO_EXTRA)]
        for key in changed:
            if key in self._records:
                self.octodns_zone.remove_record(self._records.pop(key)[0])
        for key in changed:
            if key in after:
                self._add(after[key])
        self.zone = zone.copy()
        return self.octodns_zone

    def rrset(self, record: Any) -> RRset:
        """The RRset of a record, whether it is in the zone or not."""
        key = _key(record)
        return self.zone[key] if self._knows(key, record, _state(record)) else rrset_of(record)

    def record(self, rrset: RRset) -> Any:
        """The record of an RRset, whether it is in the zone or not."""
        if rrset.key in self._records and self.zone[rrset.key] == rrset:
            return self._records[rrset.key][0]
        return record_of(rrset, self.octodns_zone)

    def _add(self, rrset: RRset) -> None:
        record = record_of(rrset, self.octodns_zone)
        self.octodns_zone.add_record(record, lenient=True)
        self._records[rrset.key] = record, _state(record)

    def _knows(self, key: str, record: Any, state: str) -> bool:
        entry = self._records.get(key)
        return entry is not None and entry[0] is record and entry[1] == state


def record_of(rrset: RRset, octodns_zone: Any) -> Any:
    """octoDNS's record of *rrset*; InvalidField for one that octoDNS cannot hold, or would change."""
    record_class = octodns('record').Record.registered_types().get(rrset.type)
    if record_class is None or rrset.type in GENERATED:
        raise InvalidField(field=rrset.name, why='octoDNS does not know this type')
    try:
        values = [octodns_value(rrset.type, text) for text in rrset.rdatas]
        single = issubclass(record_class, octodns('record').ValueMixin)
        data = {'type': rrset.type, 'ttl': rrset.ttl, **({'value': values[0]} if single else {'values': values}),
                **to_plain(extra_data(rrset.extra))}
        name = '' if rrset.name == octodns_zone.name else rrset.name.removesuffix(f'.{octodns_zone.name}')
        record = record_class(octodns_zone, name, data)
        if rrset.type == 'URI' and {kept['target'] for kept in record.values} != {value['target'] for value in values}:
            raise ValueError('it makes all of a URI lower case')
        return record
    except (octodns('record').RecordException, octodns('idna').IdnaError, ValueError, LookupError, TypeError) as error:
        said = ' '.join(str(error).split())
        raise InvalidField(field=rrset.name, why=f'octoDNS cannot have {", ".join(rrset.rdatas)} ({said})') from error


def rrset_of(record: Any, lenient: bool = True) -> RRset:
    """The RRset of octoDNS's *record*.

    :param lenient: whether data that is invalid for the type is kept as text; data with braces, which a processor
        fills in, always is
    :raises InvalidField: for a record that cannot be in a zone
    """
    name = normal_name(record.fqdn)
    try:
        texts = {_text(record._type, value, lenient) for value in _values(record)}
    except InvalidField as error:
        raise InvalidField(field=f'{name} {record._type}', why=error.kwargs['why']) from None
    if not texts:
        raise InvalidField(field=f'{name} {record._type}', why='it has no data')
    return RRset(name, record._type, record.ttl, tuple(sorted(texts)), _extra(record))


def _empty(zone: Zone) -> Any:
    sub_zones = {sub_zone.removesuffix(f'.{zone.name}') for sub_zone in zone.sub_zones}
    return octodns('zone').Zone(zone.name, sub_zones, zone.update_pcent_threshold, zone.delete_pcent_threshold)


def _key(record: Any) -> str:
    return f'{normal_name(record.fqdn)}\t{record._type}'


def _state(record: Any) -> str:
    return str(to_plain(record.data))


def _values(record: Any) -> list[Any]:
    values = record.values if hasattr(record, 'values') else [record.value]
    # An empty string is data for TXT and SPF only; for other types it means no value.
    return [value for value in values if value or hasattr(value, 'to_raw_text')]


def _text(rtype: str, value: Any, lenient: bool) -> str:
    if not _is_dns(rtype):
        data = getattr(value, 'data', value)
        return str(data) if isinstance(data, str) else json.dumps(to_plain(data), sort_keys=True)
    if hasattr(value, 'to_raw_text'):
        return yaml_rdata.txt_rdata(value.to_raw_text().encode())
    text = str(octodns('record').value_to_rdata_text(value))
    has_braces = '{' in text and '}' in text
    try:
        if has_braces:
            return normal_rdata(rtype, text)
        data, lacked_dot = rdata_without_dots(rtype, text)
        if lacked_dot:  # octoDNS has such names of lenient records alone
            LOG.warning('%s %s has a name without the final dot, which is taken for an absolute one', rtype, text)
        return data
    except InvalidField:
        if not lenient and not has_braces:
            raise
        return re.sub(r'\s+', ' ', text)


@functools.cache
def _is_dns(rtype: str) -> bool:
    try:
        dns.rdatatype.from_text(rtype)
    except dns.rdatatype.UnknownRdatatype:
        return False
    return True


def _extra(record: Any) -> Extra:
    block = to_plain(record.octodns)
    ignored, included, excluded = (block.pop(name, None) for name in ('ignored', 'included', 'excluded'))
    moving = [name for name in ('dynamic', 'geo') if getattr(record, name, None)]
    data = to_plain(record.data) if moving else {}
    dynamic = {**data.get('dynamic', {}), **({'geo': data['geo']} if 'geo' in moving else {})}
    if not (block or ignored or included or excluded or dynamic):
        return NO_EXTRA
    return Extra(bool(ignored), tuple(included or ()), tuple(excluded or ()), dynamic or None, block or None)


def to_plain(value: Any) -> Any:
    """*value* of plain JSON types; octoDNS has its own classes for strings and mappings."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_plain(item) for item in value]
    return str(value) if isinstance(value, str) else value
