"""Signed zones (DNSSEC): their records, keys and states, as they are stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from designate_pool.model.domains import ZoneRecord
from designate_pool.model.words import Word


class SignedRecord(NamedTuple):
    """A record that the signer made: RRSIG, NSEC or NSEC3, or one of the zone's keys at its apex.

    :ivar covered: the type that an RRSIG covers; empty for other types
    :ivar ttl: in seconds
    :ivar wire: rdata in canonical form
    :ivar chain_key: orders NSEC and NSEC3 records; None for other types
    :ivar expires_at: of an RRSIG, in seconds since the epoch; None for other types
    :ivar key_tag: of the key that made an RRSIG; None for other types
    """

    name: str
    type: str
    covered: str
    ttl: int
    wire: bytes
    chain_key: bytes | None = None
    expires_at: int | None = None
    key_tag: int | None = None

    @property
    def record(self) -> ZoneRecord:
        """The record as part of the zone's contents."""
        return self.name, self.type, self.ttl, self.wire


class SignedDifference(NamedTuple):
    """The signer's records that a change of a zone removes and adds."""

    gone: Sequence[SignedRecord]
    added: Sequence[SignedRecord]


class KeyRole(Word):
    """What a key signs.

    :cvar KSK: the zone's keys
    :cvar ZSK: everything else
    :cvar CSK: everything
    """

    KSK = 'KSK'
    ZSK = 'ZSK'
    CSK = 'CSK'


class KeyState(Word):
    """Where a key is in its life.

    :cvar MADE: it exists, and is not in the zone
    :cvar PUBLISHED: it is in the zone; caches may have the keys without it
    :cvar READY: it may be relied on: a ZSK may sign, the DS of a KSK is offered to the parent
    :cvar DS_SEEN: all servers of the parent have its DS; caches may have the former one
    :cvar ACTIVE: the zone is valid by it
    :cvar RETIRING: another one is active; caches may have what is valid by it alone
    :cvar REMOVED: it is no longer in the zone
    """

    MADE = 'made'
    PUBLISHED = 'published'
    READY = 'ready'
    DS_SEEN = 'ds-seen'
    ACTIVE = 'active'
    RETIRING = 'retiring'
    REMOVED = 'removed'


@dataclasses.dataclass(frozen=True, slots=True)
class SigningKey:
    """A key of a zone, without its private part.

    :ivar algorithm: its number
    :ivar public: the rdata of its DNSKEY record
    :ivar token_uri: of the key in a PKCS#11 token (RFC 7512); None for one whose private part is stored
    :ivar publish_at: when it was or will be published; likewise the others, each named for its state
    :ivar longest_ttls: the greatest TTL while it was in use, in seconds: ``signed`` of RRsets that it has signed,
        ``dnskey`` of the keys, ``ds`` of the DS as the policy says it
    """

    id: str
    role: KeyRole
    algorithm: int
    tag: int
    public: bytes
    state: KeyState = KeyState.MADE
    publish_at: datetime | None = None
    ready_at: datetime | None = None
    active_at: datetime | None = None
    ds_seen_at: datetime | None = None
    retire_at: datetime | None = None
    remove_at: datetime | None = None
    token_uri: str | None = None
    longest_ttls: Mapping[str, int] = dataclasses.field(default_factory=dict)


class SigningState(Word):
    """How far the signing of a zone has come.

    :cvar SIGNING: it is to be signed; servers have it unsigned
    :cvar SIGNED: the signed zone is published; caches may have unsigned answers
    :cvar DS_WAIT: the DS is offered to the parent
    :cvar SECURE: all servers of the parent have the DS
    :cvar DS_LEAVING: signing is to end; the parent still has the DS, or caches do
    :cvar UNSIGNING: nothing relies on the signatures any more; they are to be removed
    :cvar HELD: it cannot go on without an operator
    """

    SIGNING = 'signing'
    SIGNED = 'signed'
    DS_WAIT = 'ds_wait'
    SECURE = 'secure'
    DS_LEAVING = 'ds_leaving'
    UNSIGNING = 'unsigning'
    HELD = 'held'


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneSigning:
    """The signing of a zone.

    :ivar policy: its name
    :ivar algorithm: of the keys, the number; *denial*: ``NSEC`` or ``NSEC3``
    :ivar since: when it got this state
    :ivar serial: of the version that was the last to change its keys, or renew signatures by one that is retiring; None
        before the first, and before the next one that asks the parent to remove the DS, or no longer does
    :ivar next_event_at: when something is to be done; None for nothing before a request or a report
    :ivar resign_at: when the first signatures are to be renewed; None for no signatures
    :ivar why: why it is held, or what it waits for; None for neither
    :ivar skipped: by server id: why no key event waits for it
    :ivar ds_seen: by server of the parent: when it was asked, and the DS records that it had, as text
    :ivar prepared_to: of a domain that is not published signed yet: up to which name its records are signed, in order
        of their text; None when none is, and what there is of a former time is to be deleted first
    """

    domain_id: str
    policy: str
    algorithm: int
    denial: str
    since: datetime
    state: SigningState = SigningState.SIGNING
    next_event_at: datetime | None = None
    resign_at: datetime | None = None
    why: str | None = None
    skipped: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ds_seen: Mapping[str, tuple[str, Sequence[str] | None]] = dataclasses.field(default_factory=dict)
    serial: int | None = None
    prepared_to: str | None = None
