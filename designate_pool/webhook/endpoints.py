"""external-dns's endpoints, as its webhook interface has them in JSON, to RRsets and back.

An endpoint is one RRset: ``dnsName`` and the names among its ``targets`` have no final dot, TXT data is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from designate_pool.errors import InvalidField
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset, normal_name, parents, rrset

Json = dict[str, Any]


class RefusedEndpoint(NamedTuple):
    """An endpoint that cannot be, and why."""

    endpoint: Any
    why: str


class ZoneLookup(Protocol):
    """Zones by name."""

    def get(self, name: str, /) -> Zone | None:
        """None for a name that is no zone's."""


#: Types whose data ends with a name.
_ENDS_WITH_NAME = frozenset({'CNAME', 'DNAME', 'MX', 'NAPTR', 'NS', 'PTR', 'SRV'})
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"(?:\s+"(?:[^"\\]|\\.)*")*', re.DOTALL)
#: Octets of one string of a TXT record (RFC 1035 section 3.3).
_STRING = 255


def endpoint_of(found: RRset) -> Json:
    """What external-dns is told of an RRset."""
    targets = [_without_dot(each) if found.type in _ENDS_WITH_NAME else each for each in found.rdatas]
    return {'dnsName': _without_dot(found.name), 'targets': targets, 'recordType': found.type, 'recordTTL': found.ttl}


def adjusted(given: Any,
             supports: Callable[[RRset], bool] = lambda _: True) -> tuple[list[Json], list[RefusedEndpoint]]:
    """Endpoints that external-dns wants, as they will be told of once they are there; and those that cannot be.

    Each is judged by itself.  What we do not know is kept, but for ``providerSpecific``: none of it is ours, and what
    is not told of again would be wanted again and again.

    :param supports: whether the pool can hold an RRset
    :raises InvalidField: for what is no list
    """
    found, refused = [], []
    for place, each in enumerate(_list(given, 'endpoints')):
        try:
            wanted = _rrset(each, f'endpoints[{place}]', 0)
            if not supports(wanted):
                raise InvalidField(field=f'endpoints[{place}].recordType', why=f'{wanted.type} cannot be held here')
        except InvalidField as error:
            refused.append(RefusedEndpoint(each, str(error)))
            continue
        told = endpoint_of(wanted)
        if not each.get('recordTTL'):
            del told['recordTTL']
        found.append({key: value for key, value in each.items() if key != 'providerSpecific'} | told)
    return found, refused


def key_of(given: Any) -> tuple[str, str] | None:
    """The name and type that an endpoint is about, whatever else is wrong with it; None where that cannot be said."""
    try:
        name, rtype = given['dnsName'], given['recordType']
        return normal_name(_with_dot(name)), rtype.upper()
    except (AttributeError, KeyError, TypeError, InvalidField):
        return None


def apply_changes(zones: ZoneLookup, default_ttl: int, given: Any) -> None:
    """Make the changes that external-dns sends in the zones that they are about.

    Deleting what is not there and creating what is there does nothing: changes may be sent again.

    :param zones: by name; they are changed
    :param default_ttl: seconds, for endpoints that give none and are new
    :raises InvalidField: for what is no set of changes, or about none of the zones
    :raises ZoneError: for what cannot be in a zone
    """
    if not isinstance(given, dict):
        raise InvalidField(field='changes', why='they have to be an object')
    changes = {str(key).lower(): value for key, value in given.items()}
    coming_back = {_rrset(each, f'updatenew[{place}]', 0).key
                   for place, each in enumerate(_list(changes.get('updatenew'), 'updatenew'))}
    for kind in ('delete', 'updateold'):
        for place, each in enumerate(_list(changes.get(kind), kind)):
            old = _rrset(each, f'{kind}[{place}]', default_ttl)
            zone = zone_of(zones, old.name)
            if old.key in zone and not (kind == 'updateold' and old.key in coming_back):
                zone.remove_record(old)
    for new in _together(zones, default_ttl, changes):
        zone_of(zones, new.name).add_record(new, replace=True)


def zone_of(zones: ZoneLookup, name: str) -> Zone:
    """The zone that *name* lies in: the one with the longest name.

    :raises InvalidField: when it lies in none
    """
    for each in (name, *parents(name)):
        found = zones.get(each)
        if found is not None:
            return found
    raise InvalidField(field=name, why='it lies in none of the zones that are served here')


def _together(zones: ZoneLookup, default_ttl: int, changes: Mapping[str, Any]) -> Sequence[RRset]:
    """The RRsets that come; endpoints of one name and type are one RRset, with the TTL of the last."""
    found: dict[str, list[RRset]] = {}
    for kind in ('create', 'updatenew'):
        for place, each in enumerate(_list(changes.get(kind), kind)):
            new = _rrset(each, f'{kind}[{place}]', default_ttl)
            there = zone_of(zones, new.name).get(new.name, new.type)
            if there is not None and not each.get('recordTTL'):
                new = new._replace(ttl=there.ttl)
            found.setdefault(new.key, []).append(new)
    return [last if len(all_of_it) == 1 else rrset(last.name, last.type, last.ttl,
                                                   [rdata for each in all_of_it for rdata in each.rdatas])
            for all_of_it in found.values() for last in all_of_it[-1:]]


def _rrset(given: Any, place: str, default_ttl: int) -> RRset:
    if not isinstance(given, dict):
        raise InvalidField(field=place, why='an endpoint has to be an object')
    if given.get('setIdentifier'):
        raise InvalidField(field=f'{place}.setIdentifier', why='answers that depend on who asks are not served here')
    for key, kind in (('dnsName', str), ('recordType', str), ('targets', list)):
        if not isinstance(given.get(key), kind):
            raise InvalidField(field=f'{place}.{key}', why='missing, or of the wrong kind')
    rtype = given['recordType'].upper()
    ttl = given.get('recordTTL') or default_ttl
    return rrset(_with_dot(given['dnsName']), rtype, ttl, [_data(rtype, each) for each in given['targets']])


def _data(rtype: str, target: Any) -> str:
    text = str(target)
    if rtype in _ENDS_WITH_NAME:
        return _with_dot(text)
    if rtype in ('TXT', 'SPF') and not _QUOTED.fullmatch(text):
        return ' '.join(_quoted(text[start:start + _STRING]) for start in range(0, max(len(text), 1), _STRING))
    return text


def _quoted(text: str) -> str:
    escaped = text.replace('\\', '\\\\').replace('"', '\\"')
    return f'"{escaped}"'


def _list(given: Any, place: str) -> Sequence[Any]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise InvalidField(field=place, why='it has to be a list')
    return given


def _with_dot(name: str) -> str:
    return name if name.endswith('.') else f'{name}.'


def _without_dot(name: str) -> str:
    return name.removesuffix('.') if name != '.' else name
