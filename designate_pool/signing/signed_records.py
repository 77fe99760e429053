"""What the signer has to be given."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from designate_pool.model import SignedRecord, ZoneRecord


class Validity(NamedTuple):
    """From when until when signatures are valid, in seconds since the epoch.

    :ivar jitter: by how many seconds, at most, those of a name begin and expire before that
    """

    inception: int
    expiration: int
    jitter: int = 0

    def of(self, name: str) -> tuple[int, int]:
        """From when until when signatures at *name* are valid: always at the same distance, so that re-signing is
        spread evenly, and equally long, so that the end tells the beginning."""
        earlier = zlib.crc32(name.encode()) % (self.jitter + 1)
        return self.inception - earlier, self.expiration - earlier


class KeySigner(Protocol):
    """Signs with one private key."""

    @property
    def algorithm(self) -> int:
        """The number of its algorithm (RFC 4034 appendix A.1)."""

    @property
    def tag(self) -> int:
        """The tag of the key (RFC 4034 appendix B)."""

    def sign(self, data: bytes) -> bytes:
        """The signature of *data* as an RRSIG has it."""


class KeySet(NamedTuple):
    """The keys of a zone at one serial.

    :ivar dnskeys: the rdata of the DNSKEY records; likewise *cds* and *cdnskeys*
    :ivar ttl: of all of these
    :ivar key_signers: sign DNSKEY, CDS and CDNSKEY; *zone_signers* sign all other RRsets
    """

    dnskeys: Sequence[bytes]
    ttl: int
    key_signers: Sequence[KeySigner]
    zone_signers: Sequence[KeySigner]
    cds: Sequence[bytes] = ()
    cdnskeys: Sequence[bytes] = ()


class Neighbours(Protocol):
    """What is around the names of a change: unsigned records as they are after it, signed ones as they are before."""

    def predecessors(self, chain_keys: Collection[bytes]) -> Mapping[bytes, SignedRecord]:
        """For each key the NSEC or NSEC3 record with the greatest one below; if there is none, the greatest of all."""

    def signed_at(self, names: Collection[str]) -> Iterable[SignedRecord]:
        """All signed records that *names* own."""

    def rrsets_at(self, names: Collection[str]) -> Iterable[ZoneRecord]:
        """All unsigned records that *names* own, but for the SOA."""

    def names_below(self, name: str, limit: int | None = None) -> Iterable[str]:
        """The names below *name* that have unsigned records, each once; no more than *limit*."""
