"""Keys of zones: made, imported, and as DNSKEY, DS, CDS and CDNSKEY records.

Algorithms are those of RFC 9904: ECDSAP256SHA256 (13), ED25519 (15), and RSASHA256 (8) for keys that are imported.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (Encoding, NoEncryption, PrivateFormat, load_der_private_key,
                                                          load_pem_private_key)
from dns.dnssecalgs.ecdsa import PrivateECDSAP256SHA256
from dns.dnssecalgs.eddsa import PrivateED25519
from dns.dnssecalgs.rsa import PrivateRSASHA256

from designate_pool.errors import InvalidField
from designate_pool.model import KeyRole, KeyState, SigningKey
from designate_pool.signing import canonical
from designate_pool.signing.signed_records import KeySet, KeySigner

RSASHA256, ECDSAP256SHA256, ED25519 = 8, 13, 15
_KINDS: Mapping[int, Any] = {RSASHA256: PrivateRSASHA256, ECDSAP256SHA256: PrivateECDSAP256SHA256,
                             ED25519: PrivateED25519}
_NAMES = {RSASHA256: 'RSASHA256', ECDSAP256SHA256: 'ECDSAP256SHA256', ED25519: 'ED25519'}
#: What a CDS and a CDNSKEY record say to have the DS removed (RFC 8078 section 4).
CDS_DELETE, CDNSKEY_DELETE = bytes(5), bytes((0, 0, 3, 0, 0))
#: The shortest RSA key, in bits.
SHORTEST_RSA = 2048
#: The digests of DS records: SHA-256, by which they are offered, and SHA-384.
_DIGESTS: dict[int, Callable[[bytes], Any]] = {2: hashlib.sha256, 4: hashlib.sha384}
#: The times in BIND's files, in the order of a key's life: the state that each begins, and what has the time of it.
_BIND_TIMES = {'Publish': (KeyState.PUBLISHED, 'publish_at'), 'Activate': (KeyState.ACTIVE, 'active_at'),
               'Inactive': (KeyState.RETIRING, 'retire_at'), 'Delete': (KeyState.REMOVED, 'remove_at')}
_BIND_TIME = '%Y%m%d%H%M%S'
#: How long public keys are.
OCTETS = {ECDSAP256SHA256: 64, ED25519: 32}
_DNSKEY = re.compile(r'^([^\s;]\S*)[^;\n]*\sDNSKEY\s+(\d+)\s+3\s+(\d+)\s+([^;\n]+)', re.MULTILINE)


#: The states of keys that are in the zone.
IN_ZONE = frozenset({KeyState.PUBLISHED, KeyState.READY, KeyState.DS_SEEN, KeyState.ACTIVE, KeyState.RETIRING})


class PrivateKey:
    """Signs with a private key that is in memory.

    :param role: decides the flags of its DNSKEY record, and so its tag
    :raises InvalidField: for a key that zones must not be signed with
    """

    def __init__(self, key: Any, role: str) -> None:
        self.algorithm = next((number for number, kind in _KINDS.items() if isinstance(key, kind.key_cls)), 0)
        if not self.algorithm or self.algorithm == ECDSAP256SHA256 and not isinstance(key.curve, ec.SECP256R1):
            raise _unfit('it is no key of RSA, ECDSA P-256 or Ed25519')
        if self.algorithm == RSASHA256 and not SHORTEST_RSA <= key.key_size <= 4096:
            raise _unfit(f'RSA keys have {SHORTEST_RSA} to 4096 bits, and this one has {key.key_size}')
        self._key = _KINDS[self.algorithm](key)
        self.public = dnskey(role, self.algorithm, self._key.public_key().encode_key_bytes())
        self.tag = tag_of(self.public)

    def sign(self, data: bytes) -> bytes:
        """The signature of *data* as an RRSIG has it."""
        return self._key.sign(data, deterministic=False)  # which older OpenSSL cannot be

    def to_der(self) -> bytes:
        """The private key (PKCS #8, not encrypted)."""
        der: bytes = self._key.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        return der


def generate(role: str, algorithm: int = ECDSAP256SHA256, tags: Collection[int] = ()) -> tuple[bytes, bytes]:
    """Make a key: the rdata of its DNSKEY record, and the private key (PKCS #8, DER).

    :param tags: of the zone's other keys, which it must not have: two keys under one tag are told apart by trial
    :raises InvalidField: for an algorithm that new keys must not have
    """
    if algorithm not in _KINDS:
        raise InvalidField(field='algorithm', why='keys are of algorithm 8, 13 or 15')
    size = (SHORTEST_RSA,) if algorithm == RSASHA256 else ()
    while (key := PrivateKey(_KINDS[algorithm].generate(*size).key, role)).tag in tags:
        pass
    return key.public, key.to_der()


def dnskey(role: str, algorithm: int, public: bytes) -> bytes:
    """The rdata of the DNSKEY record of a public key."""
    return (256 if role == KeyRole.ZSK else 257).to_bytes(2, 'big') + bytes((3, algorithm)) + public


def load(private: bytes, role: str) -> PrivateKey:
    """The signer with a private key (PKCS #8, DER)."""
    return PrivateKey(load_der_private_key(private, None), role)


def read_key(text: str, role: str) -> tuple[bytes, bytes]:
    """Import a private key: the rdata of its DNSKEY record, and the key as of :func:`generate`.

    :param text: PEM without a password, or BIND's format (``Private-key-format: v1.3``)
    :raises InvalidField: for a key that cannot be read, or must not be used
    """
    try:
        if '-----BEGIN' in text:
            key = PrivateKey(load_pem_private_key(text.encode(), None), role)
        else:
            key = PrivateKey(_from_bind(dict(_fields(text))), role)
    except (ValueError, TypeError, KeyError, OverflowError, binascii.Error, UnsupportedAlgorithm):
        # Their messages may have parts of the key.
        raise _unfit('it is neither PEM without a password nor the file .private of BIND') from None
    return key.public, key.to_der()


def read_dnskey(text: str) -> tuple[str, bytes]:
    """The zone and the rdata of the first DNSKEY record in a text that has each on one line, as BIND's file ``.key``.

    :raises InvalidField: when there is none
    """
    match = _DNSKEY.search(text)
    try:
        if match is None:
            raise ValueError
        zone, flags, algorithm, key = match.groups()
        rdata = int(flags).to_bytes(2, 'big') + bytes((3, int(algorithm))) + _octets(''.join(key.split()))
    except (ValueError, OverflowError):
        raise InvalidField(field='public_key', why='there is no DNSKEY record beside the private key') from None
    return f'{zone.rstrip(".").lower()}.', rdata


def read_times(text: str, now: datetime) -> SigningKey | None:
    """The state and times of a key by those in BIND's file ``.private``, as a key without anything else; it is active
    since now where there are none, and None where it is not in the zone now.

    :raises InvalidField: for what is no time
    """
    fields = dict(_fields(text))
    times: dict[str, Any] = {}
    states: list[KeyState | None] = []
    for name, (state, attribute) in _BIND_TIMES.items():
        if name.lower() in fields:
            try:
                at = datetime.strptime(fields[name.lower()].split()[0], _BIND_TIME).replace(tzinfo=timezone.utc)
            except (ValueError, IndexError):
                raise _unfit(f'its {name} is no time') from None
            states.append(state if at <= now else None)
            times |= {attribute: at} if at <= now else {}
    past = [state for state in states if state is not None] if states else [KeyState.ACTIVE]
    if not past or past[-1] is KeyState.REMOVED:
        return None
    return SigningKey('', KeyRole.CSK, 0, 0, b'', past[-1], **times or {'active_at': now})


def bind_files(zone: str, key: SigningKey, private: bytes) -> tuple[str, str, str]:
    """A key as BIND's tools write it: the name of its two files without suffix, the text of ``.key``, and that of
    ``.private``.

    :param private: PKCS #8, DER
    """
    times = [f'{name}: {at.astimezone(timezone.utc).strftime(_BIND_TIME)}\n'
             for name, (_, attribute) in _BIND_TIMES.items() if (at := getattr(key, attribute)) is not None]
    fields = ''.join(f'{name}: {base64.b64encode(octets).decode()}\n' for name, octets in _to_bind(
        load_der_private_key(private, None)).items())
    text = f'Private-key-format: v1.3\nAlgorithm: {key.algorithm} ({_NAMES[key.algorithm]})\n{fields}{"".join(times)}'
    flags = int.from_bytes(key.public[:2], 'big')
    return (f'K{zone}+{key.algorithm:03d}+{key.tag:05d}',
            f'{zone} IN DNSKEY {flags} 3 {key.algorithm} {base64.b64encode(key.public[4:]).decode()}\n', text)


def _to_bind(key: Any) -> dict[str, bytes]:
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return {'PrivateKey': key.private_numbers().private_value.to_bytes(32, 'big')}
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return {'PrivateKey': key.private_bytes_raw()}
    numbers = key.private_numbers()
    values = (numbers.public_numbers.n, numbers.public_numbers.e, numbers.d, numbers.p, numbers.q, numbers.dmp1,
              numbers.dmq1, numbers.iqmp)
    return {name: value.to_bytes((value.bit_length() + 7) // 8, 'big') for name, value in zip(_RSA, values)}


def _fields(text: str) -> Iterable[tuple[str, str]]:
    for line in text.splitlines():
        name, colon, value = line.partition(':')
        if colon:
            yield name.strip().lower(), value.strip()


def _from_bind(fields: Mapping[str, str]) -> Any:
    """The key in a file of BIND, by the names of its fields in lower case."""
    algorithm = int(fields['algorithm'].split()[0])
    if algorithm in (1, 3, 5, 6, 7):
        raise _unfit(f'algorithm {algorithm} is no longer used in DNSSEC, since it signs by MD5 or SHA-1 (RFC 9904); '
                     'roll to algorithm 13 where it is used first')
    if algorithm == ECDSAP256SHA256:
        return ec.derive_private_key(int.from_bytes(_octets(fields['privatekey']), 'big'), ec.SECP256R1())
    if algorithm == ED25519:
        return ed25519.Ed25519PrivateKey.from_private_bytes(_octets(fields['privatekey']))
    if algorithm != RSASHA256:
        raise _unfit(f'it is of algorithm {algorithm}, and only 8, 13 and 15 are supported')
    n, e, d, p, q, dp, dq, qi = (int.from_bytes(_octets(fields[name.lower()]), 'big') for name in _RSA)
    return rsa.RSAPrivateNumbers(p, q, d, dp, dq, qi, rsa.RSAPublicNumbers(e, n)).private_key()


_RSA = ('Modulus', 'PublicExponent', 'PrivateExponent', 'Prime1', 'Prime2', 'Exponent1', 'Exponent2', 'Coefficient')


def _octets(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _unfit(why: str) -> InvalidField:
    return InvalidField(field='private_key', why=why)


def tag_of(dnskey: bytes) -> int:
    """The tag of a key (RFC 4034 appendix B)."""
    total = sum(dnskey[1::2]) + (sum(dnskey[::2]) << 8)
    return (total + (total >> 16)) & 0xffff


def ds(name: str, dnskey: bytes, digest: int = 2) -> bytes:
    """The rdata of the DS, and of the CDS, record of a key of the zone *name* (RFC 4034 section 5.1)."""
    return tag_of(dnskey).to_bytes(2, 'big') + bytes((dnskey[3], digest)) \
        + _DIGESTS[digest](canonical.name_wire(name) + dnskey).digest()


def ds_text(wire: bytes) -> str:
    """A DS record's rdata as text, in lower case."""
    return f'{int.from_bytes(wire[:2], "big")} {wire[2]} {wire[3]} {wire[4:].hex()}'


def ds_texts(name: str, dnskey: bytes) -> set[str]:
    """The DS records by which a parent may have a key of the zone *name*, which it may make of the key by itself."""
    return {ds_text(ds(name, dnskey, digest)) for digest in _DIGESTS}


def key_set(apex: str, keys: Iterable[SigningKey], signers: Mapping[str, KeySigner], ttl: int,
            is_leaving: bool = False) -> KeySet:
    """The keys of a zone as their states have them published and used.

    :param signers: by the key's id, of those that sign
    :param ttl: of DNSKEY, CDS and CDNSKEY
    :param is_leaving: whether the parent is to remove the DS
    """
    in_zone = [key for key in keys if key.state in IN_ZONE]
    with_ds = _with_ds(in_zone)
    of_zone = [key for key in in_zone if key.role != KeyRole.KSK]
    # The DS that caches have is that of another key by then.
    key_signing = [key for key in with_ds if key.state != KeyState.RETIRING]
    # A zone that is new has no active CSK yet.
    signing = _in_states(of_zone, KeyState.ACTIVE) or of_zone
    cds, cdnskeys = parent_request(apex, in_zone, is_leaving)
    return KeySet(dnskeys=[key.public for key in in_zone], ttl=ttl, cds=cds, cdnskeys=cdnskeys,
                  key_signers=[signers[key.id] for key in key_signing],
                  zone_signers=[signers[key.id] for key in signing])


def parent_request(apex: str, keys: Iterable[SigningKey],
                   is_leaving: bool) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """The rdata of the CDS and the CDNSKEY records of a zone; see :func:`key_set`."""
    if is_leaving:
        return [CDS_DELETE], [CDNSKEY_DELETE]
    public = [key.public for key in offered(keys)]
    return [ds(apex, dnskey) for dnskey in public], public


def offered(keys: Iterable[SigningKey]) -> list[SigningKey]:
    """The keys of which the parent is to have the DS: once one is ready, of it alone."""
    with_ds = _with_ds(keys)
    return _in_states(with_ds, KeyState.READY, KeyState.DS_SEEN) or _in_states(with_ds, KeyState.ACTIVE)


def _with_ds(keys: Iterable[SigningKey]) -> list[SigningKey]:
    return [key for key in keys if key.role != KeyRole.ZSK]


def _in_states(keys: Iterable[SigningKey], *states: KeyState) -> list[SigningKey]:
    return [key for key in keys if key.state in states]
