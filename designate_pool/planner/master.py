"""Zone files to packed pairs, and zones to zone files.

What is read is whole and in the normal form of :mod:`designate_pool.protocol.rrset`, or it is an error that names
the file and the line: a file that was cut short is never a smaller zone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from designate_pool.errors import SourceError, WrongSource
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import normal_text
from designate_pool.protocol.zonefile.errors import Mistake, ZoneFileErrors, line_field
from designate_pool.protocol.zonefile.reader import ZoneFileRecords, no_record


def read(lines: str | Iterable[str], origin: str, file: str = 'the zone file', require_soa: bool = True,
         outside: Callable[[str], object] | None = None,
         like: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """All of a zone file as packed pairs, in no particular order.

    :param lines: its text, or its lines
    :param origin: the zone's name
    :param file: what errors call it
    :param require_soa: whether a file without the zone's SOA is an error
    :param outside: called with a sentence for each record that is outside the zone, which is then left out; without
        it, such a record is an error
    :param like: packed pairs that are much the same: values that are equal are theirs, and so in memory once
    :raises SourceError: for what cannot be read, with the line
    """
    found: dict[str, str] = {}
    several: dict[str, list[str]] = {}
    records = _records(lines, origin, file, outside)
    for key, ttl, data in records:
        value = f'{ttl}\t{data}'
        if key not in found:
            there = like.get(key)
            found[key] = value if there is None or there != value else there
        elif found[key] != value:
            if found[key].partition('\t')[2] != data:
                records.check_alone(key)
            several.setdefault(key, []).append(value)
    for key, values in several.items():
        value = _merged([found[key], *values])
        there = like.get(key)
        found[key] = value if there is None or there != value else there
    if require_soa:
        records.check_soa()
    return found


def refuse(lines: str | Iterable[str], zone: Zone, file: str, require_apex: bool, lenient: bool) -> None:
    """Tell all that is wrong with a zone file that could not be read, or whose records do not fit *zone*.

    It takes more time and memory than :func:`read`, which tells the first.

    :param require_apex: whether a file without the zone's SOA or NS is an error
    :param lenient: whether records outside the zone are left out, and others fit as
        :meth:`designate_pool.planner.zone.zone.Zone.fill` says
    :raises SourceError: with a line for each mistake
    """
    mistakes = ZoneFileErrors(functools.partial(_error, file))
    records = ZoneFileRecords(lines, zone.name, mistakes, normal_text, _left_out if lenient else None)
    first: dict[str, tuple[str, int, str]] = {}
    for key, _, data in records:
        if first.setdefault(key, (data, records.number, records.line))[0] != data:
            records.check_alone(key)
    for rtype in ('SOA', 'NS') if require_apex else ():
        if f'{zone.name}\t{rtype}' not in first:
            if not mistakes.mention(rtype):  # else it may be there, and be the wrong one
                mistakes.add('', no_record(rtype, zone.name))
            break  # whatever has swallowed the SOA may have swallowed more
    for key, error in zone.violations(first, lenient):
        _, number, line = first[key]
        mistakes.add(line_field(number), str(error).rstrip('.'), line)
    mistakes.refuse()


def _left_out(what: str) -> None:
    """It has been told before."""


def stream(lines: str | Iterable[str], origin: str, file: str = 'the zone file', require_soa: bool = True,
           outside: Callable[[str], object] | None = None) -> Iterator[tuple[str, str]]:
    """The packed pairs of a zone file that is in the order of keys, as :func:`write` makes it, one after the other.

    No more than one RRset is in memory.  The SOA, which may be first in the file, comes at its place.

    :param lines: and the others are those of :func:`read`
    :raises SourceError: also for a record that is out of order; what came before is no zone then
    """
    records = _records(lines, origin, file, outside)
    soa_key = f'{records.zone}\tSOA'
    soa: str | None = None
    for key, value in _grouped(records):
        if key == soa_key:
            soa = value
            continue
        if soa is not None and key > soa_key:
            yield soa_key, soa
            soa = None
        yield key, value
    if soa is not None:
        yield soa_key, soa
    if require_soa:
        records.check_soa()


def write(zone: Zone) -> Iterator[str]:
    """The lines of the zone file of *zone*: the SOA where there is one, then all else in the order of keys.

    A record a line, names absolute.  What DNS has no words for (:class:`~designate_pool.protocol.rrset.Extra`) is
    not in it.
    """
    packed = zone.packed
    soa = f'{zone.name}\tSOA'
    if soa in packed:
        yield from _lines(soa, packed[soa])
    for key in sorted(packed):
        if key != soa:
            yield from _lines(key, packed[key])


def _lines(key: str, value: str) -> Iterator[str]:
    name, _, rtype = key.partition('\t')
    ttl, *rdatas = value.split('\t')
    for data in rdatas:
        yield f'{name} {ttl} IN {rtype} {data}\n'


def _records(lines: str | Iterable[str], origin: str, file: str,
             outside: Callable[[str], object] | None) -> ZoneFileRecords[str]:
    """:raises SourceError: for the first mistake"""
    return ZoneFileRecords(lines, origin, ZoneFileErrors(functools.partial(_error, file), 1), normal_text,
                           outside and (lambda what: outside(f'{file}, {what}')))


def _error(file: str, found: Sequence[Mistake]) -> SourceError:
    """The error of all that is wrong with *file*; where is '' for the file as a whole."""
    if len(found) > 1:
        return WrongSource(source=file, why=''.join(
            f'\n  {where}: {why}' if where else f'\n  {why}' for where, why in found))
    [(where, why)] = found
    return SourceError(source=f'{file}, {where}' if where else file, why=why)


def _grouped(records: ZoneFileRecords[str]) -> Iterator[tuple[str, str]]:
    """Records one after the other that are of one RRset, as that; keys have to rise, but for the SOA's."""
    soa_key = f'{records.zone}\tSOA'
    soa = ''
    last, last_ttl, there = '', 0, {''}
    for key, ttl, data in records:
        if key == last:
            if data not in there:
                records.check_alone(key)
                there.add(data)
            last_ttl = min(ttl, last_ttl)
        elif key == soa_key:
            # It is first in most files, and at both ends in what is written down from a transfer.
            value = f'{ttl}\t{data}'
            if not soa and key > last:
                yield key, value
            elif value != soa:
                records.refuse('the SOA comes after what it has to come before, or twice and not the same')
            soa = value
        elif key < last:
            records.refuse(f'{_words(key)} comes after {_words(last)}, and to be read as a stream a file has to be '
                           'in the order of its names')
        else:
            if last:
                yield last, _packed(last_ttl, there)
            last, last_ttl, there = key, ttl, {data}
    if last:
        yield last, _packed(last_ttl, there)


def _packed(ttl: int, datas: set[str]) -> str:
    # Most RRsets have one record, and sorting costs.
    return '\t'.join((str(ttl), *(sorted(datas) if len(datas) > 1 else datas)))


def _merged(values: Iterable[str]) -> str:
    """The packed RRset of packed records."""
    ttls, datas = zip(*(value.split('\t') for value in values))
    return _packed(min(map(int, ttls)), set(datas))


def _words(key: str) -> str:
    return key.replace('\t', ' ')
