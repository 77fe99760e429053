"""Converts external-dns's endpoints, the JSON of its webhook interface, to RRsets and back.

An endpoint is one RRset: ``dnsName`` and the names among its ``targets`` have no final dot, TXT data is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from designate_pool.errors import InvalidField
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import normal_name, parents
from designate_pool.protocol.rrset import RRset, rrset

Json = dict[str, Any]


class RefusedEndpoint(NamedTuple):
    """An endpoint that is not valid here, and why."""

    endpoint: Any
    why: str


class ZoneLookup(Protocol):
    """Zones by name."""

    def get(self, name: str, /) -> Zone | None:
        """The zone of exactly this name; None where there is none."""


#: Types whose data ends with a name.
_ENDS_WITH_NAME = frozenset({'CNAME', 'DNAME', 'MX', 'NAPTR', 'NS', 'PTR', 'SRV'})
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"(?:\s+"(?:[^"\\]|\\.)*")*', re.DOTALL)
#: Octets of one string of a TXT record (RFC 1035 section 3.3).
_MAX_STRING = 255


def endpoint_of(rrset: RRset) -> Json:
    """A set of records as an endpoint of external-dns."""
    targets = [_without_dot(data) if rrset.type in _ENDS_WITH_NAME else data for data in rrset.rdatas]
    return {'dnsName': _without_dot(rrset.name), 'targets': targets, 'recordType': rrset.type, 'recordTTL': rrset.ttl}


def adjust(given: Any, supports: Callable[[RRset], bool] = lambda _: True) -> tuple[list[Json], list[RefusedEndpoint]]:
    """The wanted endpoints as they will be listed once they exist, and those that are not valid.

    Unknown fields are kept, but not ``providerSpecific``: we list none, so external-dns would see a change each time.

    :param supports: whether the pool supports an RRset
    :raises InvalidField: when *given* is no list
    """
    adjusted, refused = [], []
    for number, endpoint in enumerate(_list(given, 'endpoints')):
        try:
            desired = _rrset(endpoint, f'endpoints[{number}]', 0)
            if not supports(desired):
                raise InvalidField(field=f'endpoints[{number}].recordType', why=f'{desired.type} cannot be held here')
        except InvalidField as error:
            refused.append(RefusedEndpoint(endpoint, str(error)))
            continue
        normal = endpoint_of(desired)
        if not endpoint.get('recordTTL'):
            del normal['recordTTL']
        adjusted.append({key: value for key, value in endpoint.items() if key != 'providerSpecific'} | normal)
    return adjusted, refused


def key_of(given: Any) -> tuple[str, str] | None:
    """The name and type of an endpoint that may not be valid otherwise; None when it has none."""
    try:
        name, rtype = given['dnsName'], given['recordType']
        return normal_name(_with_dot(name)), rtype.upper()
    except (AttributeError, KeyError, TypeError, InvalidField):
        return None


def apply_changes(zones: ZoneLookup, default_ttl: int, given: Any) -> None:
    """Change *zones* as external-dns has requested.

    Deleting what does not exist and creating what exists does nothing, because requests may be repeated.

    :param default_ttl: seconds, for new endpoints without a TTL
    :raises InvalidField: when the request is not valid, or a name is in none of the zones
    :raises ZoneError: when an RRset is not valid in its zone
    """
    if not isinstance(given, dict):
        raise InvalidField(field='changes', why='they have to be an object')
    changes = {str(key).lower(): value for key, value in given.items()}
    updated_keys = {_rrset(change, f'updatenew[{number}]', 0).key
                    for number, change in enumerate(_list(changes.get('updatenew'), 'updatenew'))}
    for kind in ('delete', 'updateold'):
        for number, change in enumerate(_list(changes.get(kind), kind)):
            old = _rrset(change, f'{kind}[{number}]', default_ttl)
            zone = zone_of(zones, old.name)
            if old.key in zone and not (kind == 'updateold' and old.key in updated_keys):
                zone.remove_record(old)
    for new in _new_rrsets(zones, default_ttl, changes):
        zone_of(zones, new.name).add_record(new, replace=True)


def zone_of(zones: ZoneLookup, name: str) -> Zone:
    """The zone that contains *name*: the one with the longest name.

    :raises InvalidField: when none does
    """
    for parent in (name, *parents(name)):
        zone = zones.get(parent)
        if zone is not None:
            return zone
    raise InvalidField(field=name, why='it lies in none of the zones that are served here')


def _new_rrsets(zones: ZoneLookup, default_ttl: int, changes: Mapping[str, Any]) -> Sequence[RRset]:
    """The new RRsets; endpoints of one name and type become one, with the TTL of the last."""
    by_key: dict[str, list[RRset]] = {}
    for kind in ('create', 'updatenew'):
        for number, change in enumerate(_list(changes.get(kind), kind)):
            new = _rrset(change, f'{kind}[{number}]', default_ttl)
            existing = zone_of(zones, new.name).get(new.name, new.type)
            if existing is not None and not change.get('recordTTL'):
                new = new._replace(ttl=existing.ttl)
            by_key.setdefault(new.key, []).append(new)
    return [new[-1] if len(new) == 1 else rrset(new[-1].name, new[-1].type, new[-1].ttl,
                                                [rdata for rrset in new for rdata in rrset.rdatas])
            for new in by_key.values()]


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
    return rrset(_with_dot(given['dnsName']), rtype, ttl, [_data(rtype, target) for target in given['targets']])


def _data(rtype: str, target: Any) -> str:
    text = str(target)
    if rtype in _ENDS_WITH_NAME:
        return _with_dot(text)
    if rtype in ('TXT', 'SPF') and not _QUOTED.fullmatch(text):
        return ' '.join(_quoted(text[start:start + _MAX_STRING]) for start in range(0, max(len(text), 1), _MAX_STRING))
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
