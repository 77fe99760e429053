"""A signed zone in memory, changed step by step; random zones and changes; and what other programs say of it."""

from __future__ import annotations

import bisect
import functools
import hashlib
import pathlib
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import dns.rdata
import dns.rdataclass
import dns.rdatatype
from hypothesis import strategies as st

from designate_pool.model import SignedDifference, SignedRecord, ZoneRecord
from designate_pool.protocol.names_and_rdata import normal_name
from designate_pool.signing import canonical, chain, keys, signer, verifier
from designate_pool.signing.signed_records import KeySet, Validity

APEX = 'example.org.'
#: Other programs know no other time.
NOW = int(time.time())
MARGIN = 86_400
TIMES = Validity(NOW - 3 * 3600, NOW + 21 * 86_400, 2 * 86_400)


def made(role: str, algorithm: int = 13, count: int = 1) -> list[keys.PrivateKey]:
    return [keys.load(keys.generate(role, algorithm)[1], role) for _ in range(count)]


def key_set(*signers: keys.PrivateKey, cds: bool = False, extra: Collection[keys.PrivateKey] = ()) -> KeySet:
    """Both keys of a pair sign as their flags have it; one key alone signs everything."""
    ksks = [one for one in signers if one.public[1] == 1]
    zsks = [one for one in signers if one.public[1] == 0] or ksks
    offered = ksks if cds else []
    return KeySet([one.public for one in (*signers, *extra)], 3600, ksks, zsks,
                  [keys.ds(APEX, one.public) for one in offered], [one.public for one in offered])


PAIR = key_set(*made('KSK'), *made('ZSK'))


class QuickSigner:
    """Its signatures are not valid, and cost nothing."""

    algorithm, tag, public = 13, 4711, bytes((1, 1, 3, 13)) + bytes(64)

    def sign(self, data: bytes) -> bytes:
        return hashlib.md5(data).digest()


QUICK = KeySet([QuickSigner.public], 3600, [QuickSigner()], [QuickSigner()])


@functools.cache
def wire(rtype: str, text: str) -> bytes:
    return dns.rdata.from_text('IN', rtype, text, relativize=False).to_wire() or b''


def record(name: str, rtype: str, text: str, ttl: int = 300) -> ZoneRecord:
    """*name* as in a zone file: relative, or ``@``."""
    return APEX if name == '@' else normal_name(f'{name}.{APEX}'), rtype, ttl, wire(rtype, text)


def soa(serial: int = 1, ttl: int = 3600, minimum: int = 300) -> ZoneRecord:
    return record('@', 'SOA', f'ns1.{APEX} hostmaster.{APEX} {serial} 3600 600 604800 {minimum}', ttl)


@functools.cache
def chain_key(name: str) -> bytes:
    return canonical.chain_key(canonical.name_wire(name))


def sign_zone(apex: str, records: Iterable[ZoneRecord], soa: ZoneRecord, keys: KeySet, times: Validity,
              denial: str) -> Iterator[SignedRecord]:
    """All signed records of a zone, signed at once.

    :param records: the zone's own, without the SOA
    :param denial: ``NSEC`` or ``NSEC3``
    """
    rrsets = chain.group(records)
    added = signer._apex_rrsets(soa, keys, denial)
    rrsets.setdefault(apex, {}).update(chain.group(added)[apex])
    yield from (SignedRecord(apex, rtype, '', ttl or 0, wire) for _, rtype, ttl, wire in added if rtype != 'SOA')
    names = [name for name in sorted(rrsets, key=chain_key) if not chain.is_occluded(name, apex, rrsets)]
    signing = signer._Signing(apex, keys, times)
    for name in names:
        for rtype in sorted(chain.signed_types(name, apex, rrsets[name])):
            yield from signing.signatures(name, rtype, *rrsets[name][rtype])
    if denial != 'NSEC':
        names = list(dict.fromkeys(above for name in names for above in (name, *chain.within(name, apex))))
    links = sorted((chain.link_of(name, apex, denial), name) for name in names)
    ttl = signer.denial_ttl(soa)
    for number, (link, name) in enumerate(links):
        following = links[(number + 1) % len(links)][0].field
        types = chain.bitmap(name, apex, rrsets.get(name, ()), denial)
        yield from signing.link(link, denial, ttl, chain.chain_rdata(denial, following, types))


class SignedZone:
    """A zone with its signed records, which answers as storage does what is around a change."""

    def __init__(self, records: Iterable[ZoneRecord], denial: str = 'NSEC', key_set: KeySet = PAIR,
                 is_signed: bool = True) -> None:
        self.records, self.denial, self.keys, self.soa = set(records), denial, key_set, soa()
        anew = sign_zone(APEX, self.records, self.soa, key_set, TIMES, denial)
        self.signed = Counter(anew if is_signed else ())

    def change(self, gone: Iterable[ZoneRecord] = (), added: Iterable[ZoneRecord] = (), key_set: KeySet | None = None,
               new_soa: ZoneRecord | None = None, unsigned: Iterable[str] = (),
               due: Collection[tuple[str, str]] = ()) -> tuple[SignedDifference, list[str]]:
        """Change and sign the zone, also what is not signed yet at some names; what was done, and what the verifier
        says."""
        gone, added = set(gone), set(added)
        self.records = self.records - gone | added
        self.keys, self.soa = key_set or self.keys, new_soa or soa(int.from_bytes(self.soa[3][-20:-16], 'big') + 1)
        changed: dict[str, set[str]] = {name: set() for name in unsigned}
        for name, rtype, _, _ in gone ^ added:
            changed.setdefault(name, set()).add(rtype)
        difference = signer.sign_change(APEX, changed, self.soa, self.keys, TIMES, self.denial, self, due)
        defects = self.verify(difference, changed) if self.keys is not QUICK else []
        self.apply(difference)
        return difference, defects

    def verify(self, difference: SignedDifference, changed: Mapping[str, Collection[str]]) -> list[str]:
        return verifier.verify_change(APEX, difference, changed, self.soa, self, NOW, MARGIN)

    def apply(self, difference: SignedDifference) -> None:
        assert not Counter(difference.gone) - self.signed, 'it removes what is not there'
        self.signed = self.signed - Counter(difference.gone) + Counter(difference.added)
        assert set(self.signed.values()) == {1}

    def whole(self) -> list[ZoneRecord]:
        return [self.soa, *self.records, *(one.record for one in self.signed)]

    def predecessors(self, chain_keys: Collection[bytes]) -> Mapping[bytes, SignedRecord]:
        links = sorted((one.chain_key, one) for one in self.signed if one.chain_key is not None)
        return {key: links[bisect.bisect_left(links, (key,)) - 1][1] for key in chain_keys if links}

    def signed_at(self, names: Collection[str]) -> Iterable[SignedRecord]:
        return [one for one in self.signed if one.name in names]

    def rrsets_at(self, names: Collection[str]) -> Iterable[ZoneRecord]:
        return [one for one in self.records if one[0] in names]

    def names_below(self, name: str, limit: int | None = None) -> Iterable[str]:
        key = chain_key(name)
        below = sorted({one[0] for one in self.records
                        if key + b'\0' < chain_key(one[0]) < key + b'\1'})
        return below[:limit]


def unsigned_part(zone: Iterable[SignedRecord]) -> set[tuple[str, str, str, int, bytes]]:
    """What of signed records does not depend on chance: an RRSIG without the signature."""
    return {(one.name, one.type, one.covered, one.ttl, one.wire[:18] if one.covered else one.wire) for one in zone}


def as_text(records: Iterable[ZoneRecord]) -> str:
    lines = [f'{name} {ttl} IN {rtype} {dns.rdata.from_wire(1, dns.rdatatype.from_text(rtype), data, 0, len(data))}'
             for name, rtype, ttl, data in records]
    return '\n'.join(sorted(lines, key=lambda line: line.split()[3] != 'SOA')) + '\n'


def said_by(program: list[str], records: Iterable[ZoneRecord], folder: pathlib.Path) -> str:
    """What a program says of a zone that it does not accept; empty for one that it does."""
    (folder / 'zone').write_text(as_text(records))
    done = subprocess.run([*program, str(folder / 'zone')], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr if done.returncode else ''


LABELS = ('a', 'b', 'c', 'www', '*', 'x1', '-', r'\000', r'\001', r'\255', r'a\.b', 'zz')
RDATA: Mapping[str, Sequence[tuple[str, ...]]] = {
    'A': (('192.0.2.1',), ('192.0.2.2',), ('192.0.2.1', '192.0.2.2')), 'AAAA': (('2001:db8::1',),),
    'MX': ((f'10 mail.{APEX}', '20 Mail.Example.NET.'), (f'10 mail.{APEX}',)), 'TXT': (('"x"',), ('"y" "z"', '"x"')),
    'TYPE1234': ((r'\# 2 0102',), (r'\# 0', r'\# 1 ff'))}
DELEGATION = (f'ns.{APEX}',), (f'ns.{APEX}', 'ns.example.net.')
DS = ('4711 13 2 ' + '00' * 32,)
#: By name and type, the TTL and the data.
Contents = dict[str, dict[str, tuple[int, tuple[str, ...]]]]


def contents_of(pick: Callable[[Sequence[Any]], Any], size: int) -> Contents:
    """Names, each with what a zone may have there; *pick* chooses one of several."""
    contents: Contents = {}
    for _ in range(pick(range(size + 1))):
        name = '.'.join(pick(LABELS) for _ in range(pick((1, 1, 2, 2, 3, 4))))
        kind = pick(('none', 'data', 'data', 'data', 'cut', 'cut', 'secure', 'dname', 'cname'))
        contents[name] = rrsets = {}
        if kind == 'cname':
            rrsets['CNAME'] = 300, ('www.example.com.',)
        elif kind != 'none':
            # BIND does not load delegations at wildcards.
            is_cut = kind in ('cut', 'secure') and not name.startswith('*')
            types = ('A', 'AAAA') if is_cut else tuple(RDATA)
            rrsets.update({rtype: (pick((60, 300)), pick(RDATA[rtype])) for rtype in (pick(types), pick(types))})
            if is_cut:
                rrsets['NS'] = 300, pick(DELEGATION)
            if is_cut and kind == 'secure':
                rrsets['DS'] = 300, DS
            if kind == 'dname':
                rrsets['DNAME'] = 300, ('example.com.',)
    return contents


CONTENTS = st.composite(lambda draw: contents_of(lambda options: draw(st.sampled_from(options)), 6))()
AT_APEX = [record('@', 'NS', f'ns.{APEX}'), record('@', 'A', '192.0.2.9'), record('ns', 'A', '192.0.2.53')]


def records_of(contents: Contents) -> set[ZoneRecord]:
    return {record(name, rtype, text, ttl) for name, rrsets in contents.items()
            for rtype, (ttl, texts) in rrsets.items() for text in texts}


def changes_of(steps: Iterable[Contents],
               present: set[ZoneRecord]) -> Iterator[tuple[set[ZoneRecord], set[ZoneRecord]]]:
    """Each of *steps* gives some names new contents: what it removes, and what it adds."""
    for step in steps:
        names = {normal_name(f'{name}.{APEX}') for name in step}
        gone = {one for one in present if one[0] in names}
        added = records_of(step)
        yield gone - added, added - gone
        present = present - gone | added
