"""Signs zones change by change, and name by name those that are not signed yet.

The invariant: whatever the order in which a zone was signed and changed, its chain and the set of signed RRsets are the
same; signatures of RRsets that have not changed are kept.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from designate_pool.model import SignedDifference, SignedRecord, ZoneRecord
from designate_pool.protocol.names_and_rdata import type_number
from designate_pool.signing import canonical, chain
from designate_pool.signing.chain import NSEC, NSEC3PARAM, RRSIG, ChainLink
from designate_pool.signing.signed_records import KeySet, KeySigner, Neighbours, Validity

#: What the zone's keys make the apex have.
KEY_TYPES = frozenset({'DNSKEY', 'CDS', 'CDNSKEY'})
_RRSIG_HEAD = struct.Struct('!HBBIIIH')
_OWNED = struct.Struct('!HHI')


def sign_change(apex: str, changed: Mapping[str, Collection[str]], soa: ZoneRecord, keys: KeySet, times: Validity,
                denial: str, around: Neighbours, due: Collection[tuple[str, str]] = (),
                between: Callable[[Iterable[Any]], Iterable[Any]] = iter) -> SignedDifference:
    """What a change does to the signed records of a zone, which are signed with the same *denial* already.

    :param changed: the names and types of the RRsets that were added or removed, or have other data or another TTL;
        of names without types, what is not signed yet
    :param soa: the new one, which is signed in any case
    :param due: the names and types of RRsets that get new signatures though they have not changed
    :param between: gives others their turns between these
    """
    change = _Change(soa, _Signing(apex, keys, times), denial, around)
    change.look_at({apex, *changed})
    stored_chain = change.stored_link(apex)
    if stored_chain is not None and stored_chain.ttl != denial_ttl(soa):
        change.look_at(around.names_below(apex))
    for name, types in changed.items():
        # What is below a name that becomes a delegation, or is one no longer, leaves the chain or enters it.
        if 'DNAME' in types or 'NS' in types and name != apex:
            change.look_at(around.names_below(name))
    at_apex = {*changed.get(apex, ()), 'SOA', *change.replace_keys()}
    for name in change.names:
        change.sign(name, at_apex if name == apex else changed.get(name, ()))
    change.sign_links()
    change.renew({*due}.difference((record.name, record.covered) for record in change.gone), between)
    return SignedDifference(change.gone, change.added)


def denial_ttl(soa: ZoneRecord) -> int:
    """The TTL of NSEC and NSEC3 records: the lesser of the SOA's own and the one in it (RFC 9077)."""
    return min(soa[2] or 0, _minimum(soa))


def _minimum(soa: ZoneRecord) -> int:
    return int.from_bytes(soa[3][-4:], 'big')


def _apex_rrsets(soa: ZoneRecord, keys: KeySet, denial: str) -> list[ZoneRecord]:
    """The records that the apex has beside those that its zone's owner gave it."""
    made = [('DNSKEY', keys.ttl, keys.dnskeys), ('CDS', keys.ttl, keys.cds), ('CDNSKEY', keys.ttl, keys.cdnskeys)]
    if denial != NSEC:  # PowerDNS makes this record by itself, with that TTL
        made.append((NSEC3PARAM, _minimum(soa), [canonical.NSEC3PARAM]))
    return [soa, *((soa[0], rtype, ttl, wire) for rtype, ttl, wires in made for wire in sorted(set(wires)))]


class _Signing:
    """Makes signatures with the keys of one zone."""

    def __init__(self, apex: str, keys: KeySet, times: Validity) -> None:
        self._apex, self.keys, self._times = canonical.name_wire(apex), keys, times

    def signatures(self, name: str, rtype: str, ttl: int, wires: Sequence[bytes]) -> list[SignedRecord]:
        """The RRSIG records of an RRset, one for each key that signs it (RFC 4034 section 3.1.8.1)."""
        owner, number, (begins_at, expires_at) = canonical.name_wire(name), type_number(rtype), self._times.of(name)
        start = owner + _OWNED.pack(number, 1, ttl)
        rrset = b''.join([start + len(wire).to_bytes(2, 'big') + wire for wire in wires])
        made = []
        for signer in signers_of(rtype, self.keys, owner == self._apex):
            head = _RRSIG_HEAD.pack(number, signer.algorithm, canonical.label_count(owner), ttl, expires_at,
                                    begins_at, signer.tag) + self._apex
            made.append(SignedRecord(name, RRSIG, rtype, ttl, head + signer.sign(head + rrset), None, expires_at,
                                     signer.tag))
        return made

    def link(self, link: ChainLink, denial: str, ttl: int, wire: bytes) -> list[SignedRecord]:
        """A record of the chain, and its signatures."""
        return [SignedRecord(link.owner, denial, '', ttl, wire, link.key),
                *self.signatures(link.owner, denial, ttl, [wire])]


def signers_of(rtype: str, keys: KeySet, is_at_apex: bool = False) -> Sequence[KeySigner]:
    """Which keys sign RRsets of a type (RFC 4035 section 2.2, RFC 7344 section 4.1)."""
    return keys.key_signers if is_at_apex and rtype in KEY_TYPES else keys.zone_signers


class _Change:
    """The part of a zone that a change concerns, before and after it.

    :ivar names: the names of which everything is compared
    :ivar gone: the signed records that it removes; *added*: those that it adds
    """

    def __init__(self, soa: ZoneRecord, signing: _Signing, denial: str, around: Neighbours) -> None:
        self.apex, self.soa, self.signing, self.denial, self.around = soa[0], soa, signing, denial, around
        self.gone: list[SignedRecord] = []
        self.added: list[SignedRecord] = []
        self.names: dict[str, None] = {}
        self.rrsets: dict[str, dict[str, tuple[int, list[bytes]]]] = {}
        self.stored: dict[str, list[SignedRecord]] = {}
        self._links: dict[str, ChainLink] = {}
        self._of_apex = _apex_rrsets(soa, signing.keys, denial)

    def look_at(self, names: Iterable[str]) -> None:
        """Read what is at *names*, and above them."""
        new = [name for name in dict.fromkeys(names) if name not in self.names]
        self.names.update(dict.fromkeys(new))
        above = [name for name in dict.fromkeys(name for one in new for name in chain.within(one, self.apex))
                 if name not in self.rrsets]
        everywhere = list(dict.fromkeys([*new, *above]))
        self.rrsets.update({name: {} for name in everywhere})
        self.rrsets.update(chain.group(self.around.rrsets_at(everywhere)))
        if self.apex in new:
            self.rrsets[self.apex].update(chain.group(self._of_apex)[self.apex])
        linked = new if self.denial == NSEC else everywhere
        self._links.update({name: chain.link_of(name, self.apex, self.denial) for name in linked})
        self.read_stored({*new, *(self._links[name].owner for name in linked)})

    def read_stored(self, owners: Collection[str]) -> None:
        missing = [owner for owner in owners if owner not in self.stored]
        self.stored.update({owner: [] for owner in missing})
        for record in self.around.signed_at(missing):
            self.stored[record.name].append(record)

    def stored_link(self, name: str) -> SignedRecord | None:
        """The record of *name* in the chain before the change."""
        return next((record for record in self.stored[self._links[name].owner] if record.type == self.denial), None)

    def replace_keys(self) -> set[str]:
        """Exchange the keys, and what else the signer has at the apex; the types that have changed."""
        made = [SignedRecord(name, rtype, '', ttl or 0, wire) for name, rtype, ttl, wire in self._of_apex[1:]]
        stored = [record for record in self.stored[self.apex] if record.type not in (RRSIG, self.denial)]
        had, has = {record.record for record in stored}, {record.record for record in made}
        self.gone += [record for record in stored if record.record not in has]
        self.added += [record for record in made if record.record not in had]
        return {record.type for record in (*self.gone, *self.added)}

    def sign(self, name: str, types: Collection[str]) -> None:
        """Sign the RRsets of *name* that are of *types* or are not signed as the keys have it."""
        rrsets = self.rrsets[name]
        signed = set() if chain.is_occluded(name, self.apex, self.rrsets) \
            else chain.signed_types(name, self.apex, rrsets)
        present: dict[str, list[SignedRecord]] = {}
        for record in self.stored[name]:
            if record.type == RRSIG and record.covered != self.denial:
                present.setdefault(record.covered, []).append(record)
        for rtype in sorted({*signed, *present}):
            signatures = present.get(rtype, [])
            signers = signers_of(rtype, self.signing.keys, name == self.apex)
            if rtype not in signed or rtype in types or not _are_by(signatures, signers):
                self.gone += signatures
                if rtype in signed:
                    self.added += self.signing.signatures(name, rtype, *rrsets[rtype])

    def renew(self, due: Collection[tuple[str, str]], between: Callable[[Iterable[Any]], Iterable[Any]]) -> None:
        """Sign RRsets anew, by name and type, that have not changed."""
        names = {name for name, _ in due}
        stored = list(self.around.signed_at(names))
        rrsets = chain.group([*self.around.rrsets_at(names),
                              *(record.record for record in stored if record.type != RRSIG)])
        self.gone += [record for record in stored if (record.name, record.covered) in due]
        for name, rtype in between(due):
            self.added += self.signing.signatures(name, rtype, *rrsets[name][rtype])

    def sign_links(self) -> None:
        """Sign what changes in the chain."""
        removed: dict[bytes, SignedRecord] = {}
        new: dict[bytes, ChainLink] = {}
        bitmaps: dict[bytes, tuple[ChainLink, bytes]] = {}
        for name, link in self._links.items():
            stored = self.stored_link(name)
            if self._is_linked(name):
                bitmaps[link.key] = link, chain.bitmap(name, self.apex, self.rrsets[name], self.denial)
                if stored is None:
                    new[link.key] = link
            elif stored is not None:
                removed[link.key] = stored
        following = self._following(removed, new, bitmaps)
        ttl, signers = denial_ttl(self.soa), signers_of(self.denial, self.signing.keys)
        for record in removed.values():
            self.gone += self._with_signatures(record)
        for key, (link, types) in bitmaps.items():
            stored = next((record for record in self.stored[link.owner] if record.type == self.denial), None)
            field = following[key] if key in following else chain.split(stored)[0] if stored else link.field
            wire = chain.chain_rdata(self.denial, field, types)
            present = self._with_signatures(stored) if stored else []
            if not stored or (ttl, wire) != (stored.ttl, stored.wire) or not _are_by(present[1:], signers):
                self.gone += present
                self.added += self.signing.link(link, self.denial, ttl, wire)

    def _following(self, removed: Mapping[bytes, SignedRecord], new: Mapping[bytes, ChainLink],
                   bitmaps: dict[bytes, tuple[ChainLink, bytes]]) -> dict[bytes, bytes]:
        """The next names, as they are written, of those in the chain for which it is another one now.

        :param bitmaps: gets those of neighbours
        """
        touched = {*removed, *new}
        before = self.around.predecessors(touched) if touched else {}
        if not before:  # nothing was signed until now
            first = sorted(new.values())
            return {link.key: following.field for link, following in zip(first, first[1:] + first[:1])}
        gaps: dict[bytes, list[ChainLink]] = {}
        kept: dict[bytes, SignedRecord] = {}
        for key, record in before.items():
            while record.chain_key in removed:
                record = before[record.chain_key or b'']
            start = record.chain_key or b''
            kept[start] = record
            gaps.setdefault(start, []).extend([new[key]] if key in new else [])
        self.read_stored([record.name for record in kept.values()])
        following: dict[bytes, bytes] = {}
        for start, links in gaps.items():
            field, types = chain.split(kept[start])
            while (end := removed.get(chain.key_of_field(self.denial, field))) is not None:
                field = chain.split(end)[0]
            # The gap may lead from the last name over to the first.
            links = sorted(link for link in links if link.key > start) + sorted(
                link for link in links if link.key < start)
            following.update(zip((start, *(link.key for link in links)), (*(link.field for link in links), field)))
            bitmaps.setdefault(start, (ChainLink(start, kept[start].name, b''), types))
        return following

    def _is_linked(self, name: str) -> bool:
        """Whether *name* is in the chain after the change."""
        if chain.is_occluded(name, self.apex, self.rrsets):
            return False
        return bool(self.rrsets[name]) or self.denial != NSEC and any(True for _ in self.around.names_below(name, 1))

    def _with_signatures(self, record: SignedRecord) -> list[SignedRecord]:
        return [record, *(other for other in self.stored[record.name] if other.covered == record.type)]


def _are_by(signatures: Sequence[SignedRecord], signers: Sequence[KeySigner]) -> bool:
    """Whether *signatures* are one by each of *signers*."""
    return sorted((record.wire[2], record.key_tag or 0) for record in signatures) \
        == sorted((signer.algorithm, signer.tag) for signer in signers)
