"""What servers serve of a zone's signatures (RFC 4034, RFC 4035), and what is wrong with it.

The invariant: nothing is found on a server whose SOA and keys have signatures that verify, by each algorithm of the
keys, and that stay valid for longer than the margin, if all servers with the same serial serve the same keys, and
signatures of the same age, and if one of the keys is one that a DS record of the parent zone names, where that has any.
Servers with different serials are not compared: one of them has yet to transfer the zone.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple

import dns.dnssec
import dns.dnssectypes
import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdataset
import dns.rdatatype
import dns.rrset

#: What is asked, with DO: these are signed by the keys of both roles, and each transfer that has new signatures has
#: another one of the SOA.
ASKED = (dns.rdatatype.SOA, dns.rdatatype.DNSKEY)
#: Flags of a DNSKEY: that it signs zones (RFC 4034 section 2.1.1), and that it is revoked (RFC 5011 section 7).
_ZONE, _REVOKED = 0x0100, 0x0080


class KeyId(NamedTuple):
    """What a signature calls the key by which it was made; several keys may have it."""

    tag: int
    algorithm: int

    def __str__(self) -> str:
        return f'{self.tag} ({_word(self.algorithm)})'


@dataclasses.dataclass(frozen=True, slots=True)
class ServedSignatures:
    """What one server serves.

    :ivar keys: with their rdata
    :ivar soa_expires_at: when the last signature of the SOA expires, seconds since 1970; None if it has none
    :ivar expires_at: when the first of all signatures that were seen expires; *begins_at*: since when all are valid
    :ivar faults: what is wrong with them whenever they are looked at, in words
    """

    serial: int
    keys: frozenset[tuple[KeyId, bytes]] = frozenset()
    soa_expires_at: int | None = None
    expires_at: int | None = None
    faults: tuple[str, ...] = ()
    begins_at: int = 0

    @property
    def is_signed(self) -> bool:
        """Whether any key or signature was seen."""
        return bool(self.keys) or self.expires_at is not None


def questions(name: str) -> list[dns.message.Message]:
    """The queries for a zone, to send over TCP, where no answer is truncated."""
    return [dns.message.make_query(name, rtype, flags=0, want_dnssec=True) for rtype in ASKED]


def read_answers(answers: Sequence[dns.message.Message]) -> ServedSignatures | None:
    """What the *answers* to :func:`questions` say; None if they are not those of a server that serves the zone."""
    rrsets, signatures = {}, dict[int, list[Any]]()
    for rtype, answer in zip(ASKED, answers, strict=True):
        if answer.rcode() != dns.rcode.NOERROR or not answer.flags & dns.flags.AA:
            return None
        name = answer.question[0].name
        rrsets[rtype] = answer.get_rrset(answer.answer, name, dns.rdataclass.IN, rtype)
        signatures[rtype] = list(answer.get_rrset(answer.answer, name, dns.rdataclass.IN, dns.rdatatype.RRSIG,
                                                  rtype) or ())
    soa, keys = (rrsets[rtype] for rtype in ASKED)
    if soa is None:
        return None
    all_signatures = [signature for of_type in signatures.values() for signature in of_type]
    return ServedSignatures(
        soa[0].serial, frozenset((_id_of(key), key.to_wire() or b'') for key in keys or ()),
        max((signature.expiration for signature in signatures[dns.rdatatype.SOA]), default=None),
        min((signature.expiration for signature in all_signatures), default=None),
        tuple(_faults(soa, keys, signatures)) if keys is not None or all_signatures else (),
        max((signature.inception for signature in all_signatures), default=0))


def judge(served: Mapping[str, ServedSignatures], now: int, margin: float, must_be_signed: bool = True,
          ds: Collection[str] = (), zone: str = '.') -> dict[str, list[str]]:
    """What is wrong on each server, in words that are the same each time.

    :param served: by what people call the servers
    :param margin: seconds for which signatures should be valid yet
    :param must_be_signed: False where that is known only if one of them signs the zone
    :param ds: the DS records of *zone* in its parent, each as text: tag, algorithm, digest type, hex digits
    """
    faults = {server: list(one.faults) for server, one in served.items()}
    must_be_signed = must_be_signed or any(one.is_signed for one in served.values())
    for server, one in served.items():
        if must_be_signed and not one.is_signed:
            faults[server].append('it serves the zone without signatures')
        elif one.expires_at is not None and one.expires_at < now + margin:
            faults[server].append(f'its signatures {"have expired" if one.expires_at <= now else "expire"} at '
                                  f'{_moment(one.expires_at)}')
        if one.begins_at > now:
            faults[server].append(f'its signatures are not valid before {_moment(one.begins_at)}')
        if ds and not any(_names(record, zone, rdata) for record in ds for _, rdata in one.keys):
            faults[server].append('none of its keys is that of a DS record in the parent zone: '
                                  f'{", ".join(sorted(ds))}')
    by_serial = collections.defaultdict[int, dict[str, ServedSignatures]](dict)
    for server, one in sorted(served.items()):
        if one.is_signed:
            by_serial[one.serial][server] = one
    for of_serial in by_serial.values():
        for server, what in _compare(of_serial):
            faults[server].append(what)
    return faults


def _compare(served: Mapping[str, ServedSignatures]) -> Iterator[tuple[str, str]]:
    """How servers with one serial differ: (server, in words)."""
    newest = max(served, key=lambda server: served[server].soa_expires_at or 0)
    (usual, _), = collections.Counter(one.keys for one in served.values()).most_common(1)
    model = next(server for server, one in served.items() if one.keys == usual)
    for server, one in served.items():
        if one.soa_expires_at is not None and one.soa_expires_at < (served[newest].soa_expires_at or 0):
            yield server, (f'its signatures of serial {one.serial} are older than those of {newest}: they were renewed '
                           'without a new serial')
        if one.keys == usual:
            continue
        ours, theirs = ({key for key, _ in keys} for keys in (one.keys, usual))
        other = sorted({key for key, _ in one.keys - usual} & theirs)
        if other:
            yield server, f'under the tag {_listed(other)} it serves another key than {model}'
        if ours != theirs:
            yield server, f'it serves the keys {_listed(sorted(ours))}, and {model} serves {_listed(sorted(theirs))}'


def _faults(soa: dns.rrset.RRset, keys: dns.rrset.RRset | None, signatures: Mapping[int, Sequence[Any]]) -> Iterator[
        str]:
    """What is wrong with the answers of one server."""
    if keys is None:
        yield 'it serves signatures and no keys'
        return
    by_id = collections.defaultdict[KeyId, list[Any]](list)
    for key in keys:
        by_id[_id_of(key)].append(key)
    for key_id, several in sorted(by_id.items()):
        if len(several) > 1:
            yield f'it serves {len(several)} keys under the tag {key_id}'
    algorithms = {int(key.algorithm) for key in keys if key.flags & _ZONE and not key.flags & _REVOKED}
    for what, rrset in (('SOA', soa), ('keys', keys)):
        made = signatures[rrset.rdtype]
        for algorithm in sorted(algorithms - {int(signature.algorithm) for signature in made}):
            yield f'it has no signature of its {what} by the algorithm {_word(algorithm)}, of which it serves a key'
        for key_id, several in sorted(_by_signer(made).items()):
            if key_id in by_id and not all(_verifies(rrset, signature, by_id[key_id]) for signature in several):
                yield (f'the signature of its {what} by the key {key_id} is not by the key that it serves under that '
                       'tag')


def _by_signer(signatures: Iterable[Any]) -> dict[KeyId, list[Any]]:
    by_id = collections.defaultdict[KeyId, list[Any]](list)
    for signature in signatures:
        by_id[KeyId(signature.key_tag, int(signature.algorithm))].append(signature)
    return by_id


def _verifies(rrset: dns.rrset.RRset, signature: Any, keys: Sequence[Any]) -> bool:
    """Whether *signature* is by one of *keys*; True for an algorithm that cannot be verified here."""
    rdataset = dns.rdataset.from_rdata_list(rrset.ttl, keys)
    try:
        dns.dnssec.validate_rrsig(rrset, signature, {rrset.name: rdataset}, now=signature.inception)
    except dns.exception.UnsupportedAlgorithm:
        return True
    except (dns.exception.DNSException, ValueError):
        return False
    return True


def _names(ds: str, zone: str, dnskey: bytes) -> bool:
    """Whether a DS record is of a key (RFC 4034 section 5.1.4); True for a digest that cannot be made here."""
    key: Any = dns.rdata.from_wire('IN', 'DNSKEY', dnskey, 0, len(dnskey))
    tag, algorithm, digest, octets = ds.split(' ')
    if (int(tag), int(algorithm)) != _id_of(key):
        return False
    try:
        made = dns.dnssec.make_ds(zone, key, dns.dnssectypes.DSDigest.make(int(digest)), validating=True)
        return bool(made.digest.hex() == octets)
    except dns.exception.UnsupportedAlgorithm:
        return True


def _id_of(key: Any) -> KeyId:
    return KeyId(dns.dnssec.key_id(key), int(key.algorithm))


def _word(algorithm: int) -> str:
    return dns.dnssec.algorithm_to_text(dns.dnssectypes.Algorithm.make(algorithm))


def _listed(keys: Iterable[KeyId]) -> str:
    return ', '.join(map(str, keys)) or 'none'


def _moment(seconds: int) -> str:
    return f'{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC'
