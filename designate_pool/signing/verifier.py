"""Verifies signed zones, and changes of signed zones before they are published.

The invariant: what has no defect here, validators accept.  It shares no code with the signer but the types of values:
names, data, the chain and the signed octets are made anew, by dnspython where it has them.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from typing import Any

import dns.dnssec
import dns.dnssecalgs
import dns.dnssectypes
import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from designate_pool.model import SignedDifference, SignedRecord, ZoneRecord
from designate_pool.signing.signed_records import Neighbours

#: Octets of rdata without names, which are as they are in canonical form; and NSEC, whose name stays (RFC 6840 5.1).
_AS_THEY_ARE = frozenset({'A', 'AAAA', 'CAA', 'CDNSKEY', 'CDS', 'DNSKEY', 'DS', 'NSEC', 'NSEC3', 'NSEC3PARAM', 'SSHFP',
                          'TLSA', 'TXT'})
_SEP = 257
#: The labels of a name from the right.
Labels = tuple[bytes, ...]
_RRsets = dict[str, tuple[int, set[bytes]]]
#: What others are to have turns between, as :meth:`designate_pool.deadline.Turns.between`.
Between = Callable[[Iterable[Any]], Iterable[Any]]


def verify_zone(records: Iterable[ZoneRecord], now: int, margin: int, between: Between = iter) -> list[str]:
    """What is wrong with a signed zone, one sentence each.

    :param records: all of them, with the SOA
    :param now: seconds since the epoch
    :param margin: for how many seconds more, at least, signatures are to be valid
    """
    zone = _grouped(between(records))
    apex = next((name for name, rrsets in zone.items() if 'SOA' in rrsets), None)
    if apex is None:
        return ['The zone has no SOA record.']
    checks = _Checks(apex, zone[apex], now, margin)
    defects = checks.of_keys()
    cuts = {_labels(name) for name, rrsets in zone.items() if checks.is_cut(name, rrsets)}
    hashed = {name for name, rrsets in zone.items() if 'NSEC3' in rrsets}
    visible = {name: _labels(name) for name in zone if name not in hashed and not checks.is_below(_labels(name), cuts)}
    for name, rrsets in between(zone.items()):
        defects += checks.of_name(name, rrsets, name not in visible and name not in hashed)
    names: dict[str, Set[int]] = {name: checks.types(name, zone[name]) for name in visible}
    order: dict[str, tuple[object, str]] = {name: (labels, name) for name, labels in visible.items()}
    if checks.denial == 'NSEC3':
        every = {_text(labels[:size]) for labels in visible.values()
                 for size in range(len(_labels(apex)), len(labels) + 1)}
        owners = {name: _hashed(name, apex) for name in every}
        names = {owners[name]: names.get(name, frozenset()) for name in every}
        order = {owner: (owner, owner) for owner in names}
    chain = [name for _, name in sorted(order.values())]
    for name, following in between(zip(chain, chain[1:] + chain[:1])):
        link = zone.get(name, {}).get(checks.denial)
        defects += checks.of_link(name, link and link[1], following, names[name])
    defects += [f'{name} has a record of {checks.denial} and does not belong to the chain.'
                for name, rrsets in zone.items() if checks.denial in rrsets and name not in names]
    return defects


def verify_change(apex: str, difference: SignedDifference, changed: Mapping[str, Collection[str]], soa: ZoneRecord,
                  around: Neighbours, now: int, margin: int, between: Between = iter) -> list[str]:
    """What would be wrong with a signed zone after a change, one sentence each, if nothing was before.

    Signatures that stay are not verified again.

    :param changed: the names and types of the RRsets that were added, removed or changed
    """
    below = {name for cut, types in changed.items() if 'DNAME' in types or 'NS' in types and cut != apex
             for name in around.names_below(cut)}
    owners = {record.name for record in (*difference.gone, *difference.added)}
    names = {apex, *changed, *below, *owners}
    above = {_text(labels[:size]) for labels in map(_labels, names) for size in range(len(_labels(apex)), len(labels))}
    zone = _grouped([soa, *around.rrsets_at(names | above)])
    before = list(around.signed_at(names))
    chained = {name: name for name in names}
    if any(record.type == 'NSEC3PARAM' for record in (*before, *difference.added)):
        chained = {_hashed(name, apex): name for name in {*changed, *below, *above, apex}}
        before += around.signed_at(chained.keys() - names)
    defects = _misplaced(difference, before)
    after = Counter(before) - Counter(difference.gone) + Counter(difference.added)
    for record in after:
        _add(zone, record.record)
    checks = _Checks(apex, zone.get(apex, {}), now, margin)
    defects += checks.of_keys()
    fresh = {record.wire for record in difference.added if record.type == 'RRSIG'}
    cuts = {_labels(name) for name in names | above if checks.is_cut(name, zone.get(name, {}))}
    links = {record.name: record for record in after if record.type == checks.denial}
    former = {record.name: record for record in before if record.type == checks.denial}
    new_types = {**changed, apex: {*changed.get(apex, ()), 'SOA'}}
    added_types: dict[str, set[str]] = {}
    for record in difference.added:
        added_types.setdefault(record.name, set()).add(record.type)
    for name in between(sorted(names)):
        rrsets = zone.get(name, {})
        touched = {rtype for rtype in rrsets if rtype in new_types.get(name, ())}
        touched |= added_types.get(name, set()) - {'RRSIG'}
        defects += checks.of_name(name, rrsets, checks.is_below(_labels(name), cuts), fresh, touched)
    for owner in between(sorted(chained.keys() | links.keys())):
        types: Set[int] = frozenset()
        if owner not in chained:  # a neighbour, of which only the hash is here
            types = _link(former[owner].wire, checks.denial, apex)[1] if owner in former else types
        elif checks.is_below(_labels(name := chained[owner]), cuts) or not (
                zone.get(name, {}).keys() - {'NSEC', 'RRSIG'}
                or checks.denial == 'NSEC3' and any(True for _ in around.names_below(name, 1))):
            defects += [f'{owner} has a record of {checks.denial} and does not belong to the chain.'] * (owner in links)
            continue
        else:
            types = checks.types(name, zone.get(name, {}))
        link = links.get(owner)
        defects += checks.of_link(owner, {link.wire} if link else None, None, types)
    # Only of well-formed records it can be said where they lead.
    return defects or _broken_chain(difference, checks.denial, apex, bool(former))


def _misplaced(difference: SignedDifference, before: Collection[SignedRecord]) -> list[str]:
    """Records that are removed though they are not there, or added though they are."""
    present = {record.record for record in before}
    staying = present.difference(record.record for record in difference.gone)
    return [f'{record.type} of {record.name} is removed, and is not there.' for record in difference.gone
            if record.record not in present] \
        + [f'{record.type} of {record.name} is added, and is there already.' for record in difference.added
           if record.record in staying]


def _broken_chain(difference: SignedDifference, denial: str, apex: str, was_signed: bool) -> list[str]:
    """Whether the new records of the chain lead from where the former ones began to where these ended, in order; the
    first ones all around."""
    def key(owner: str) -> object:
        return _labels(owner) if denial == 'NSEC' else owner

    def ends(records: Iterable[SignedRecord]) -> tuple[set[str], set[str]]:
        """The names from which the records lead, and those to which; the apex for both where they lead all around."""
        following = {record.name: _link(record.wire, denial, apex)[0] for record in records if record.type == denial}
        owners, targets = {*following}, {*following.values()}
        return (owners - targets, targets - owners) if owners != targets or not owners else ({apex}, {apex})

    defects = []
    links = sorted(((key(record.name), record) for record in difference.added if record.type == denial),
                   key=lambda link: link[0])  # type: ignore[arg-type, return-value]
    for (start, record), (after, other) in zip(links, links[1:] + links[:1]):
        if _is_between(start, after, key(_link(record.wire, denial, apex)[0])):
            defects.append(f'{denial} of {record.name} passes over {other.name}.')
    # As none passes over another one, each leads from where a former one began to where that one ended, if these are
    # the same names on the whole.
    former = ends(difference.gone) if was_signed else ({apex}, {apex})
    for way, before, after in zip(('from', 'to'), former, ends(difference.added)):
        defects += [f'The {denial} records no longer lead {way} {name}.' for name in sorted(before - after)]
        defects += [f'The {denial} records lead {way} {name}, as none did before.' for name in sorted(after - before)]
    return defects


def _is_between(start: object, key: object, end: object) -> bool:
    """Whether *key* lies after *start* and before *end* on the ring."""
    if start < end:  # type: ignore[operator]
        return start < key < end  # type: ignore[operator]
    return key > start or key < end  # type: ignore[operator]


class _Checks:
    """Checks of the parts of one zone.

    :ivar denial: what proves that names do not exist: ``NSEC`` or ``NSEC3``
    """

    def __init__(self, apex: str, rrsets: _RRsets, now: int, margin: int) -> None:
        self.apex, self._now, self._margin = apex, now, margin
        self._apex_wire = _wire(apex)
        self._dnskeys = rrsets.get('DNSKEY', (0, set[bytes]()))[1]
        self.denial = 'NSEC3' if 'NSEC3PARAM' in rrsets else 'NSEC'
        #: The flags of each key, and the key, by tag and algorithm.
        self._keys = defaultdict[tuple[int, int], list[tuple[int, Any]]](list)
        self._broken: list[str] = []
        for wire in self._dnskeys:
            tag, key = _public_key(wire)
            if key is None:
                self._broken.append(f'The DNSKEY record with the tag {tag} holds no key of a known algorithm.')
            else:
                self._keys[tag, wire[3]].append((int.from_bytes(wire[:2], 'big'), key))
        self._algorithms = {wire[3] for wire in self._dnskeys}

    def of_keys(self) -> list[str]:
        twice = [f'{len(keys)} DNSKEY records have the tag {tag}.' for (tag, _), keys in self._keys.items()
                 if len(keys) > 1]
        return [*self._broken, *twice] if self._dnskeys else [f'{self.apex} has no DNSKEY record.']

    def is_cut(self, name: str, rrsets: _RRsets) -> bool:
        return 'DNAME' in rrsets or 'NS' in rrsets and name != self.apex

    def is_below(self, labels: Labels, cuts: Collection[Labels]) -> bool:
        """Whether a name lies below one of *cuts*."""
        return any(labels[:size] in cuts for size in range(len(_labels(self.apex)), len(labels)))

    def types(self, name: str, rrsets: _RRsets) -> frozenset[int]:
        """The numbers of the types that the chain is to list at *name*."""
        listed = set(rrsets) - {'RRSIG', 'NSEC'}
        if name != self.apex and 'NS' in listed:
            listed &= {'NS', 'DS'}
        if self.denial == 'NSEC':
            listed |= {'NSEC', 'RRSIG'}
        elif listed - {'NS'} or 'NS' in listed and name == self.apex:
            listed.add('RRSIG')
        return frozenset(map(_number, listed))

    def of_link(self, owner: str, wires: Collection[bytes] | None, following: str | None,
                types: Set[int]) -> Iterator[str]:
        """Check the record of a name in the chain; its next name only where *following* is not None."""
        if not wires or len(wires) > 1:
            yield f'{owner} has {len(wires or ())} records of {self.denial}, and not one.'
            return
        wire = next(iter(wires))
        try:
            actual, listed = _link(wire, self.denial, self.apex)
        except (IndexError, ValueError, dns.exception.DNSException):
            yield f'{self.denial} of {owner} is malformed.'
            return
        if following is not None and actual != following:
            yield f'{self.denial} of {owner} names {actual} as the next name, which is {following}.'
        for number in sorted(listed ^ types):
            verb = 'lists' if number in listed else 'does not list'
            yield f'{self.denial} of {owner} {verb} the type {_type(number)}.'

    def of_name(self, name: str, rrsets: _RRsets, is_occluded: bool, fresh: Collection[bytes] | None = None,
                touched: Collection[str] = ()) -> Iterator[str]:
        """Check that exactly the RRsets of *name* are signed that must be, and validly.

        :param fresh: the signatures to verify; None for all
        :param touched: the types that are signed by *fresh* alone
        """
        signatures = defaultdict[str, list[bytes]](list)
        signatures_ttl, wires = rrsets.get('RRSIG', (0, set[bytes]()))
        for wire in wires:
            signatures[_type(int.from_bytes(wire[:2], 'big'))].append(wire)
        signed = {rtype for rtype in rrsets if rtype != 'RRSIG'} if not is_occluded else set()
        if 'NS' in signed and name != self.apex:
            signed &= {'DS', 'NSEC', 'NSEC3'}
        for rtype in sorted(signatures.keys() - signed):
            yield f'{rtype} of {name} is signed, and must not be or is not there.'
        for rtype in sorted(signed):
            ttl, data = rrsets[rtype]
            valid = set()
            for wire in signatures[rtype]:
                if fresh is not None and wire not in fresh:
                    if rtype in touched:
                        yield f'A former signature of {rtype} of {name} stays.'
                    if (int.from_bytes(wire[16:18], 'big'), wire[2]) in self._keys:
                        valid.add(wire[2])
                    continue
                defect = self._of_signature(name, rtype, ttl, data, wire)
                if defect is None:
                    valid.add(wire[2])
                else:
                    yield f'{rtype} of {name}: {defect}.'
            if not signatures[rtype]:
                yield f'{rtype} of {name} is not signed.'
            elif missing := self._algorithms - valid:
                yield f'{rtype} of {name} is not signed by algorithm {" and ".join(map(str, sorted(missing)))}.'

    def _of_signature(self, name: str, rtype: str, ttl: int, data: Collection[bytes], wire: bytes) -> str | None:
        """What is wrong with one signature; None when it is valid (RFC 4035 section 5.3)."""
        owner, number = _wire(name), _number(rtype)
        end = 18 + len(self._apex_wire)
        tag, algorithm = int.from_bytes(wire[16:18], 'big'), wire[2]
        expires, begins = int.from_bytes(wire[8:12], 'big'), int.from_bytes(wire[12:16], 'big')
        labels = _labels(name)
        if len(wire) <= end or wire[18:end] != self._apex_wire:
            return f'the signature names another zone than {self.apex}'
        if wire[3] != len(labels) - (labels[-1:] == (b'*',)) or int.from_bytes(wire[4:8], 'big') != ttl:
            return 'the signature has another number of labels or another TTL'
        if begins > self._now:
            return f'the signature is not valid before {begins}'
        if expires < self._now + self._margin:
            return f'the signature expires at {expires}'
        if (tag, algorithm) not in self._keys:
            return f'the signature is by the key {tag} of algorithm {algorithm}, which the zone does not have'
        signed = [wire[:end]]
        for item in sorted({_canonical(rtype, item) for item in data}):
            signed += [owner, number.to_bytes(2, 'big'), b'\0\1', ttl.to_bytes(4, 'big'), len(item).to_bytes(2, 'big'),
                       item]
        message = b''.join(signed)
        for flags, key in self._keys[tag, algorithm]:
            try:
                key.verify(wire[end:], message)
            except (InvalidSignature, ValueError):
                continue
            if rtype == 'DNSKEY' and flags != _SEP:
                return f'it is signed by the key {tag}, which is no key-signing key'
            return None
        return f'the signature by the key {tag} is wrong'


def _grouped(records: Iterable[ZoneRecord]) -> dict[str, _RRsets]:
    zone: dict[str, _RRsets] = {}
    for record in records:
        _add(zone, record)
    return zone


def _add(zone: dict[str, _RRsets], record: ZoneRecord) -> None:
    name, rtype, ttl, wire = record
    rrsets = zone.setdefault(name, {})
    if rtype in rrsets:
        rrsets[rtype] = min(rrsets[rtype][0], ttl or 0), rrsets[rtype][1] | {wire}
    else:
        rrsets[rtype] = ttl or 0, {wire}


@functools.lru_cache(20_000)
def _wire(name: str) -> bytes:
    return dns.name.from_text(name).canonicalize().to_wire() or b''


@functools.lru_cache(20_000)
def _labels(name: str) -> Labels:
    return dns.name.from_text(name).canonicalize().labels[-2::-1]


def _text(labels: Labels) -> str:
    return dns.name.Name((*labels[::-1], b'')).to_text()


@functools.lru_cache(256)
def _number(rtype: str) -> int:
    return int(dns.rdatatype.from_text(rtype))


@functools.lru_cache(256)
def _type(number: int) -> str:
    return dns.rdatatype.to_text(dns.rdatatype.RdataType(number))


@functools.lru_cache(20_000)
def _hashed(name: str, apex: str) -> str:
    """The name of the NSEC3 record of *name*."""
    return f'{dns.dnssec.nsec3_hash(name, None, 0, dns.dnssectypes.NSEC3Hash.SHA1).lower()}.{apex}'


def _canonical(rtype: str, wire: bytes) -> bytes:
    if rtype in _AS_THEY_ARE:
        return wire
    return dns.rdata.from_wire(dns.rdataclass.IN, dns.rdatatype.from_text(rtype), wire, 0, len(wire)).to_digestable()


@functools.lru_cache(20_000)
def _link(wire: bytes, denial: str, apex: str) -> tuple[str, frozenset[int]]:
    """The owner of the next record of the chain, and the types that are listed.

    :raises ValueError: for what is no record of the kind of chain that there may be
    :raises DNSException: likewise
    """
    parsed: Any = dns.rdata.from_wire(dns.rdataclass.IN, dns.rdatatype.from_text(denial), wire, 0, len(wire))
    types = frozenset(window * 256 + 8 * octet + bit for window, bits in parsed.windows
                      for octet, value in enumerate(bits) for bit in range(8) if value & 0x80 >> bit)
    if denial == 'NSEC':
        return parsed.next.to_text(), types
    if (parsed.algorithm, parsed.flags, parsed.iterations, parsed.salt) != (1, 0, 0, b''):
        raise ValueError('another hash, opt-out, iterations or salt')
    return f'{parsed.next_name(dns.name.root).to_text().rstrip(".").lower()}.{apex}', types


@functools.lru_cache(256)
def _public_key(dnskey: bytes) -> tuple[int, Any]:
    """The tag of the key in a DNSKEY record, and the key; None for one of an algorithm that is not known, or malformed.

    :raises DNSException: for what is no DNSKEY record
    """
    parsed: Any = dns.rdata.from_wire(dns.rdataclass.IN, dns.rdatatype.DNSKEY, dnskey, 0, len(dnskey))
    try:
        key: Any = dns.dnssecalgs.get_algorithm_cls_from_dnskey(parsed).public_cls.from_dnskey(parsed)
    except (ValueError, UnsupportedAlgorithm, dns.exception.DNSException):
        key = None
    return dns.dnssec.key_id(parsed), key
