"""Filters: which RRsets are managed at all.

A filter removes RRsets from both sides, so the target keeps them unchanged; with ``include_target`` off, RRsets that
are filtered at the source are deleted at the target.  The SOA is filtered only if it is named.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence

import dns.rdata
import dns.rdataclass
import dns.rdatatype
from dns.rdtypes.txtbase import TXTBase

from designate_pool.errors import ProcessorException
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import GENERATED, lies_in
from designate_pool.protocol.rrset import RRset


def string_list(processor: str, option: str, given: Iterable[object]) -> list[str]:
    """*given* as strings; ProcessorException for a single string, or no list."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ProcessorException(processor=processor, why=f'{option} must be a list, not {given!r}')
    return [str(item) for item in given]


def whole_number(processor: str, option: str, given: object) -> int:
    """*given*, a number or its digits (as from the environment), from 0; else ProcessorException."""
    if isinstance(given, str) and given.isdecimal():
        return int(given)
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise ProcessorException(processor=processor, why=f'{option} must be a whole number, not {given!r}')
    return given


def split_patterns(processor: str, option: str,
                   given: Iterable[object]) -> tuple[frozenset[str], list[re.Pattern[str]]]:
    """The plain strings of *given*, and the regular expressions, which are written between slashes."""
    exact, patterns = set(), []
    for text in string_list(processor, option, given):
        if not text.startswith('/'):
            exact.add(text)
        elif len(text) < 2 or not text.endswith('/'):
            raise ProcessorException(processor=processor, why=f'{option}: {text!r} has no slash at its end')
        else:
            try:
                patterns.append(re.compile(text[1:-1]))
            except re.error as error:
                raise ProcessorException(processor=processor, why=f'{option}: {text[1:-1]!r} is no regular expression '
                                                                  f'({error})') from None
    return frozenset(exact), patterns


_ALL_TYPES = frozenset(rtype.name for rtype in dns.rdatatype.RdataType) - GENERATED


class Filter(BaseProcessor):
    """Removes the RRsets that a subclass does not include."""

    def __init__(self, id: str, include_target: bool = True, lenient: bool = False) -> None:
        super().__init__(id, lenient)
        self.include_target = include_target

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        return self._filtered(desired)

    def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
        return self._filtered(existing) if self.include_target else existing

    def _filtered(self, zone: Zone) -> Zone:
        for rrset in zone:
            if self._applies_to(rrset) and not self._includes(zone, rrset):
                zone.remove_record(rrset)
        return zone

    def _applies_to(self, rrset: RRset) -> bool:
        """Whether the filter applies to *rrset*; others are kept."""
        return rrset.type != 'SOA'

    def _includes(self, zone: Zone, rrset: RRset) -> bool:
        raise NotImplementedError


class ListFilter(Filter):
    """A filter by a list.

    :cvar INCLUDES_MATCHES: whether RRsets that match are included, or all others
    """

    OPTION: str
    INCLUDES_MATCHES: bool

    def _includes(self, zone: Zone, rrset: RRset) -> bool:
        return self._matches(zone, rrset) is self.INCLUDES_MATCHES

    def _read(self, given: Iterable[object]) -> None:
        raise NotImplementedError

    def _matches(self, zone: Zone, rrset: RRset) -> bool:
        raise NotImplementedError


class _Allow(ListFilter):
    OPTION = 'allowlist'
    INCLUDES_MATCHES = True

    def __init__(self, id: str, allowlist: Iterable[object], include_target: bool = True,
                 lenient: bool = False) -> None:
        super().__init__(id, include_target, lenient)
        self._read(allowlist)


class _Reject(ListFilter):
    OPTION = 'rejectlist'
    INCLUDES_MATCHES = False

    def __init__(self, id: str, rejectlist: Iterable[object], include_target: bool = True,
                 lenient: bool = False) -> None:
        super().__init__(id, include_target, lenient)
        self._read(rejectlist)


class _ByType(ListFilter):

    def _read(self, given: Iterable[object]) -> None:
        self.types = frozenset(rtype.upper() for rtype in string_list(self.id, self.OPTION, given))

    def _applies_to(self, rrset: RRset) -> bool:
        return rrset.type != 'SOA' or 'SOA' in self.types

    def _matches(self, zone: Zone, rrset: RRset) -> bool:
        return rrset.type in self.types

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        if plan is None:
            return None
        types = plan.managed_types
        if self.INCLUDES_MATCHES:
            managed = self.types if types is None else types & self.types
        else:
            managed = (_ALL_TYPES if types is None else types) - self.types
        return dataclasses.replace(plan, managed_types=managed)


class _ByName(ListFilter):
    """By the name relative to the zone: ``www``, ``a.b``, the empty string or ``@`` for the apex; or by the absolute
    name, with its final dot; or by a ``/regular expression/`` that is searched for in the relative name.
    """

    def _read(self, given: Iterable[object]) -> None:
        exact, self.patterns = split_patterns(self.id, self.OPTION, given)
        self.exact = frozenset('' if value == '@' else value.lower() for value in exact)

    def _matches(self, zone: Zone, rrset: RRset) -> bool:
        name = relative_name(rrset.name, zone.name)
        return name in self.exact or rrset.name in self.exact or any(pattern.search(name) for pattern in self.patterns)


class _ByValue(ListFilter):
    """By data: an RRset matches if one of its records does.  Data is written as in a zone file, but TXT data as one
    string without quotes; or it is a ``/regular expression/`` that is searched for in the data.
    """

    def _read(self, given: Iterable[object]) -> None:
        self.exact, self.patterns = split_patterns(self.id, self.OPTION, given)

    def _matches(self, zone: Zone, rrset: RRset) -> bool:
        return any(text in self.exact or any(pattern.search(text) for pattern in self.patterns)
                   for text in match_texts(rrset))


class _ByNetwork(ListFilter):
    """By address: an RRset matches if one of its addresses is in one of the networks.  Other types are kept."""

    def _read(self, given: Iterable[object]) -> None:
        try:
            self.networks = [ipaddress.ip_network(network) for network in string_list(self.id, self.OPTION, given)]
        except ValueError as error:
            raise ProcessorException(processor=self.id, why=f'{self.OPTION}: {error}') from None

    def _applies_to(self, rrset: RRset) -> bool:
        return rrset.type in ('A', 'AAAA')

    def _matches(self, zone: Zone, rrset: RRset) -> bool:
        return any(ipaddress.ip_address(data) in network for data in rrset.rdatas for network in self.networks)


class TypeAllow(_Allow, _ByType):
    """Manage only RRsets of some types."""


class TypeReject(_Reject, _ByType):
    """Do not manage RRsets of some types."""


class NameAllow(_Allow, _ByName):
    """Manage only RRsets of some names."""


class NameReject(_Reject, _ByName):
    """Do not manage RRsets of some names."""


class ValueAllow(_Allow, _ByValue):
    """Manage only RRsets with some data."""


class ValueReject(_Reject, _ByValue):
    """Do not manage RRsets with some data."""


class NetworkAllow(_Allow, _ByNetwork):
    """Of addresses, manage only those in some networks."""


class NetworkReject(_Reject, _ByNetwork):
    """Do not manage addresses in some networks."""


class ZoneNameFilter(Filter):
    """Finds names that end in the zone's name twice, because a final dot was forgotten.

    :param error: whether such a name is an error; otherwise the RRset is removed
    """

    def __init__(self, id: str, error: bool = True, include_target: bool = True, lenient: bool = False) -> None:
        super().__init__(id, include_target, lenient)
        self.error = error

    def _includes(self, zone: Zone, rrset: RRset) -> bool:
        is_doubled = zone.name != '.' and lies_in(f'{relative_name(rrset.name, zone.name)}.', zone.name)
        if is_doubled and self.error:
            raise ProcessorException(processor=self.id, why=f'{rrset.name} {rrset.type} ends in {zone.name} twice')
        return not is_doubled


class IgnoreRootNs(Filter):
    """Does not manage the NS records of the apex."""

    def _includes(self, zone: Zone, rrset: RRset) -> bool:
        return rrset.type != 'NS' or rrset.name != zone.name


def relative_name(name: str, zone: str) -> str:
    """*name* without the zone's; empty for the apex."""
    return '' if name == zone else name.removesuffix(zone).removesuffix('.')


def match_texts(rrset: RRset) -> Iterator[str]:
    """The data of *rrset* to match; TXT data without quotes, and with escaped semicolons as in octoDNS."""
    for data in rrset.rdatas:
        if rrset.type not in ('TXT', 'SPF'):
            yield data
            continue
        parsed = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(rrset.type), data)
        assert isinstance(parsed, TXTBase)
        text = b''.join(parsed.strings).decode('utf-8', 'backslashreplace')
        yield text
        if ';' in text:
            yield text.replace(';', '\\;')
