"""Reading zone files (master files, RFC 1035 section 5) to packed pairs, and writing zones to them.

A file is read completely, to the normal form of :mod:`designate_pool.protocol.rrset`, or there is an error with the
file and the line: a truncated file is never read as a smaller zone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

from designate_pool.errors import SourceError
from designate_pool.model import some
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import normal_text
from designate_pool.protocol.zonefile import Mistake, ZoneFileErrors, ZoneFileRecords, line_field, no_record

#: RRsets that a warning names.
MOST_TOLD = 5


def read(lines: str | Iterable[str], origin: str, file: str = 'the zone file', require_soa: bool = True,
         outside: Callable[[str], object] | None = None,
         warn: Callable[[str], object] | None = None) -> dict[str, str]:
    """A zone file as packed pairs, in no particular order.

    :param file: its name in errors
    :param require_soa: whether a file without the zone's SOA is an error
    :param outside: called with a sentence for each record outside the zone, which is then ignored; without it, such a
        record is an error
    :param warn: called with a sentence when RRsets have several TTLs
    :raises SourceError: for the first error, with its line
    """
    pairs: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}
    records = ZoneFileRecords(lines, origin, ZoneFileErrors(functools.partial(_error, file), 1), normal_text,
                              outside and (lambda what: outside(f'{file}, {what}')))
    for key, ttl, data in records:
        value = f'{ttl}\t{data}'
        if key not in pairs:
            pairs[key] = value
        elif pairs[key] != value:
            if pairs[key].partition('\t')[2] != data:
                records.check_alone(key)
            repeated.setdefault(key, []).append(value)
    mixed: list[str] = []
    for key, values in repeated.items():
        ttls, datas = zip(*(value.split('\t') for value in (pairs[key], *values)))
        mixed += [key.replace('\t', ' ')] if len(set(ttls)) > 1 else []
        pairs[key] = '\t'.join((str(min(map(int, ttls))), *sorted(set(datas))))
    if require_soa:
        records.check_soa()
    if mixed and warn is not None:
        warn(f'{file}: of several TTLs in an RRset the lowest is used: {some(mixed, MOST_TOLD)}')
    return pairs


def raise_all_errors(lines: str | Iterable[str], zone: Zone, file: str, require_apex: bool, lenient: bool) -> None:
    """Report all errors of a zone file that could not be read, or whose records are not allowed in *zone*.

    It takes more time and memory than :func:`read`, which reports the first error.

    :param lenient: whether records outside the zone are ignored, and others allowed as in
        :meth:`designate_pool.planner.zone.zone.Zone.fill`
    :raises SourceError: with a line for each error
    """
    mistakes = ZoneFileErrors(functools.partial(_error, file))
    records = ZoneFileRecords(lines, zone.name, mistakes, normal_text,
                              # read() has reported the records outside already.
                              (lambda what: None) if lenient else None)
    first: dict[str, tuple[str, int, str]] = {}
    for key, _, data in records:
        if first.setdefault(key, (data, records.number, records.line))[0] != data:
            records.check_alone(key)
    for rtype in ('SOA', 'NS') if require_apex else ():
        if f'{zone.name}\t{rtype}' not in first:
            if not mistakes.mention(rtype):  # otherwise the record may exist, and be invalid
                mistakes.add('', no_record(rtype, zone.name))
            break  # the error that hides the SOA may hide the NS records too
    for key, error in zone.violations({key: f'0\t{data}' for key, (data, _, _) in first.items()}, lenient):
        _, number, line = first[key]
        mistakes.add(line_field(number), str(error).rstrip('.'), line)
    mistakes.refuse()


def write(zone: Zone) -> Iterator[str]:
    """The lines of the zone file of *zone*: the SOA if there is one, then all other records in the order of keys.

    One record on a line, with absolute names, without :class:`~designate_pool.protocol.rrset.Extra`.
    """
    soa = f'{zone.name}\tSOA'
    for key in (*([soa] if soa in zone else []), *sorted(zone.packed.keys() - {soa})):
        name, _, rtype = key.partition('\t')
        ttl, *rdatas = zone.packed[key].split('\t')
        for data in rdatas:
            yield f'{name} {ttl} IN {rtype} {data}\n'


def _error(file: str, found: Sequence[Mistake]) -> SourceError:
    """The error for the mistakes in *file*; the place of one is '' for the whole file."""
    if len(found) > 1:
        return SourceError(source=file, why='it has these mistakes:' + ''.join(
            f'\n  {where}: {why}' if where else f'\n  {why}' for where, why in found))
    [(where, why)] = found
    return SourceError(source=f'{file}, {where}' if where else file, why=why)
