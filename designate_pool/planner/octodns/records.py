"""Records as octoDNS has them: from ours, to ours.

octoDNS is wanted only by who names something of it, so it is imported when it is first asked for.

The invariant: what octoDNS does not touch comes back exactly as it was, since a :class:`Mirror` knows which record was
made from which RRset; and what octoDNS makes comes back in normal form.  Types that DNS does not know (octoDNS has
``ALIAS``, providers have their own) have their data as octoDNS's own text, or as JSON where that is no text.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import dns.rdataclass
import dns.rdatatype
from dns.rdtypes.ANY.TXT import TXT

from designate_pool.errors import InvalidField
from designate_pool.planner.sources import yaml_rdata
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import GENERATED, NO_EXTRA, Extra, RRset, normal_name, normal_rdata


@functools.cache
def octodns(module: str) -> Any:
    """A module of octoDNS, as in ``octodns('record')``.

    :raises InvalidField: when octoDNS is not installed
    """
    try:
        return importlib.import_module(f'octodns.{module}')
    except ModuleNotFoundError as error:
        if (error.name or '').partition('.')[0] != 'octodns':
            raise
        raise InvalidField(field='octoDNS', why="it is not installed; 'pip install designate-pool[octodns]' does that"
                           ) from None


class Mirror:
    """A zone of ours and the same zone of octoDNS, kept in step.

    :ivar zone: ours
    :ivar octodns: octoDNS's
    :param lenient: whether what octoDNS makes may have data that is none of its type
    """

    def __init__(self, zone: Zone, theirs: Any, lenient: bool = True) -> None:
        self.zone = zone
        self.octodns = theirs
        self._lenient = lenient
        #: By key: the record, and what it held when it was last looked at.
        self._records: dict[str, tuple[Any, str]] = {}

    @classmethod
    def of(cls, zone: Zone, refused: Callable[[RRset, str], None] | None = None, lenient: bool = True) -> Mirror:
        """Of a zone of ours.

        :param refused: called for each RRset that octoDNS cannot hold, with why; it is then in neither zone.  Without
            it, such an RRset is only in ours
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
    def of_theirs(cls, theirs: Any, like: Zone) -> Mirror:
        """Of a zone of octoDNS; it has the sub-zones and thresholds of *like*."""
        mirror = cls(like.empty(), theirs)
        mirror.ours(theirs)
        return mirror

    def ours(self, theirs: Any) -> Zone:
        """Our zone once octoDNS's is *theirs*; the same object where nothing has changed.

        :raises InvalidField: for a record that cannot be in a zone
        """
        found = {_key(record): (record, _held(record)) for record in theirs.records}
        gone = [key for key in self._records if key not in found]
        # Records are not to be changed in place, and some of octoDNS's own processors do it all the same.
        new = [record for key, (record, held) in found.items() if not self._knows(key, record, held)]
        self.octodns = theirs
        self._records = found
        if gone or new:
            zone = self.zone.copy()
            for key in gone:
                zone.remove_record(_at(zone, key))
            for record in new:
                zone.add_record(rrset_of(record, self._lenient), replace=True, lenient=True)
            self.zone = zone
        return self.zone

    def theirs(self, zone: Zone) -> Any:
        """octoDNS's zone once ours is *zone*."""
        before, after = self.zone, zone
        if before.packed == after.packed and before.extras == after.extras:
            return self.octodns
        changed = [key for key in {**before.packed, **after.packed}
                   if before.packed.get(key) != after.packed.get(key)
                   or before.extras.get(key, NO_EXTRA) != after.extras.get(key, NO_EXTRA)]
        for key in changed:
            if key in self._records:
                self.octodns.remove_record(self._records.pop(key)[0])
        for key in changed:
            if key in after:
                self._add(_at(after, key))
        self.zone = zone.copy()
        return self.octodns

    def rrset(self, record: Any) -> RRset:
        """The RRset of a record, whether it is in the zone or not."""
        key = _key(record)
        return _at(self.zone, key) if self._knows(key, record, _held(record)) else rrset_of(record)

    def record(self, rrset: RRset) -> Any:
        """The record of an RRset, whether it is in the zone or not."""
        if rrset.key in self._records and _at(self.zone, rrset.key) == rrset:
            return self._records[rrset.key][0]
        return record_of(rrset, self.octodns)

    def _add(self, rrset: RRset) -> None:
        record = record_of(rrset, self.octodns)
        self.octodns.add_record(record, lenient=True)
        self._records[rrset.key] = record, _held(record)

    def _knows(self, key: str, record: Any, held: str) -> bool:
        known = self._records.get(key)
        return known is not None and known[0] is record and known[1] == held


def record_of(rrset: RRset, theirs: Any) -> Any:
    """
    :param theirs: octoDNS's zone
    :raises InvalidField: for what octoDNS cannot have, or would change
    """
    known = octodns('record').Record.registered_types().get(rrset.type)
    if known is None or rrset.type in GENERATED:
        raise InvalidField(field=rrset.name, why='octoDNS does not know this type')
    try:
        values = [_value(rrset.type, text) for text in rrset.rdatas]
        single = issubclass(known, octodns('record').ValueMixin)
        data = {'type': rrset.type, 'ttl': rrset.ttl, **({'value': values[0]} if single else {'values': values}),
                **_settings(rrset.extra)}
        name = '' if rrset.name == theirs.name else rrset.name.removesuffix(f'.{theirs.name}')
        record = known(theirs, name, data)
        if rrset.type == 'URI' and {each['target'] for each in record.values} != {each['target'] for each in values}:
            raise ValueError('it makes all of a URI lower case')
        return record
    except (octodns('record').RecordException, octodns('idna').IdnaError, ValueError, LookupError, TypeError) as error:
        said = ' '.join(str(error).split())
        raise InvalidField(field=rrset.name, why=f'octoDNS cannot have {", ".join(rrset.rdatas)} ({said})') from error


def rrset_of(record: Any, lenient: bool = True) -> RRset:
    """
    :param lenient: whether data that is none of the type is kept as it is written; what has something in braces, which
        a processor is to fill in, always is
    :raises InvalidField: for what cannot be in a zone
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
    sub_zones = {each.removesuffix(f'.{zone.name}') for each in zone.sub_zones}
    return octodns('zone').Zone(zone.name, sub_zones, zone.update_pcent_threshold, zone.delete_pcent_threshold)


def _at(zone: Zone, key: str) -> RRset:
    name, _, rtype = key.partition('\t')
    found = zone.get(name, rtype)
    assert found is not None
    return found


def _key(record: Any) -> str:
    return f'{normal_name(record.fqdn)}\t{record._type}'


def _held(record: Any) -> str:
    return str(_plain(record.data))


def _values(record: Any) -> list[Any]:
    values = record.values if hasattr(record, 'values') else [record.value]
    # An empty text is data of TXT and SPF alone; elsewhere it stands for none.
    return [value for value in values if value or hasattr(value, 'to_raw_text')]


def _text(rtype: str, value: Any, lenient: bool) -> str:
    if not _is_dns(rtype):
        data = getattr(value, 'data', value)
        return str(data) if isinstance(data, str) else json.dumps(_plain(data), sort_keys=True)
    if hasattr(value, 'to_raw_text'):
        return _strings(value.to_raw_text().encode())
    text = str(octodns('record').value_to_rdata_text(value))
    try:
        return normal_rdata(rtype, text)
    except InvalidField:
        if not lenient and not ('{' in text and '}' in text):
            raise
        return re.sub(r'\s+', ' ', text)


def _strings(octets: bytes) -> str:
    """TXT data of strings of 255 octets and a shorter one."""
    pieces = [octets[start:start + 255] for start in range(0, len(octets), 255)]
    return TXT(dns.rdataclass.IN, dns.rdatatype.TXT, pieces or [b'']).to_text()


@functools.cache
def _is_dns(rtype: str) -> bool:
    try:
        dns.rdatatype.from_text(rtype)
    except dns.rdatatype.UnknownRdatatype:
        return False
    return True


def _extra(record: Any) -> Extra:
    block = _plain(record.octodns)
    ignored, included, excluded = (block.pop(name, None) for name in ('ignored', 'included', 'excluded'))
    moving = [name for name in ('dynamic', 'geo') if getattr(record, name, None)]
    data = _plain(record.data) if moving else {}
    dynamic = {**data.get('dynamic', {}), **({'geo': data['geo']} if 'geo' in moving else {})}
    if not (block or ignored or included or excluded or dynamic):
        return NO_EXTRA
    return Extra(bool(ignored), tuple(included or ()), tuple(excluded or ()), dynamic or None, block or None)


def _settings(extra: Extra) -> dict[str, Any]:
    """The inverse of :func:`_extra`."""
    if extra is NO_EXTRA:
        return {}
    block = {**_plain(extra.octodns or {}), **({'ignored': True} if extra.ignored else {}),
             **{name: list(ids) for name, ids in (('included', extra.included), ('excluded', extra.excluded)) if ids}}
    dynamic = _plain(extra.dynamic or {})
    geo = dynamic.pop('geo', None)
    return {name: value for name, value in (('octodns', block), ('dynamic', dynamic), ('geo', geo)) if value}


def _plain(value: Any) -> Any:
    """*value* as JSON has it: octoDNS's texts and mappings are of classes of their own."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, str) else value


def _value(rtype: str, text: str) -> Any:
    """What octoDNS's YAML would have for data of a type that octoDNS knows.

    :raises ValueError: when it can have nothing
    """
    if rtype in yaml_rdata.types():
        return yaml_rdata.from_rdata(rtype, text)
    return json.loads(text) if text.startswith('{') else text
