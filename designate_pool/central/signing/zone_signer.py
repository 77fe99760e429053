"""Signs the changes of zones as they are written.

The invariant: a version of a signed zone is written with its signatures, which code that does not make any has found
right, or it is not written at all.
"""

from __future__ import annotations

import base64
import collections
import dataclasses
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from designate_pool import metrics
from designate_pool.central.rules.journal import Change, JournalEntry, SignedChange
from designate_pool.central.signing.key_token import KeyToken, TokenKey
from designate_pool.deadline import Turns
from designate_pool.errors import KeyUnavailable, NotSigned, Refused, UnreadableSecret
from designate_pool.model import (ChangeKind, Domain, KeyRole, KeyState, SignedDifference, SignedRecord, SigningKey,
                                  SigningState, ZoneRecord, ZoneSigning, new_id)
from designate_pool.protocol import soa_rdata
from designate_pool.protocol.names_and_rdata import lies_in, rname
from designate_pool.settings import SigningPolicy
from designate_pool.signing import key_states, keys, signer, verifier
from designate_pool.signing.key_states import KeyStep
from designate_pool.signing.signed_records import KeySet, KeySigner, Validity
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.signing import signed_records, zone_signing
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.secrets import MARK, SecretCipher
from designate_pool.storage.zones import pools, recordsets

LOG = logging.getLogger(__name__)
#: Signatures begin so many seconds ago, for resolvers whose clocks are behind.
INCEPTION = 3 * 3600
#: RRsets whose signatures one version renews: the zone's own changes wait for about half a second meanwhile.
MOST_RENEWED = 2000
#: RRsets that one piece signs of a zone that is not published signed yet: each has a name in the chain, too.
MOST_PREPARED = 500
#: Private keys that are held in memory.
_MOST_KEYS = 10_000
_ALL = 2 ** 31 - 1


#: Types of recordsets that a signed zone cannot have of its own.
OWN_TYPES = frozenset({'DNSKEY', 'RRSIG', 'NSEC', 'NSEC3', 'NSEC3PARAM', 'CDS', 'CDNSKEY'})


def refuse_pool(tx: Tx, domain: Domain) -> None:
    """Refuse to have a signed zone in a pool one of whose servers does not serve signatures rightly."""
    for limit in pool_servers.limits_of(tx, domain.pool_id):
        if limit.what == 'signatures':
            raise Refused('server_cannot_sign', f'The zone {domain.name} cannot be signed in the pool '
                                                f'{domain.pool_name}: {limit.why}.', 409)


def soa_names(name_servers: Sequence[str], domain: Domain) -> str:
    """What :attr:`Domain.soa_names` is of a domain that is signed, with these name servers of its pool."""
    return f'{name_servers[0]} {rname(domain.email).to_text()}'


def last_expiry(policy: SigningPolicy) -> int:
    """In how many seconds signatures expire at the latest: those that expire later are not valid yet, as they were made
    when the clock was ahead."""
    return policy.validity + INCEPTION


class SignedZone(NamedTuple):
    """A zone that is to be signed, and how far that has come.

    :ivar keys: in the order in which they were made; also those that were removed
    :ivar policies: all that there are, by name
    :ivar steps: what is next for each key, and for keys that are to be made, where that was asked for
    """

    domain: Domain
    state: ZoneSigning
    keys: Sequence[SigningKey]
    policies: Mapping[str, SigningPolicy]
    steps: Sequence[KeyStep] = ()

    @property
    def policy(self) -> SigningPolicy:
        """Its policy.

        :raises Refused: when the configuration has none of that name
        """
        return policy_of(self.policies, self.state.policy)

    @property
    def is_held(self) -> bool:
        """Whether its signing cannot go on without an operator."""
        return self.state.state is SigningState.HELD

    @property
    def is_leaving(self) -> bool:
        """Whether its signing is to end."""
        return self.state.state in (SigningState.DS_LEAVING, SigningState.UNSIGNING)

    @property
    def outlives_signatures(self) -> bool:
        """Whether a server that is cut off may serve it for longer than its signatures are valid, as its policy has
        changed since its SOA was signed."""
        return self.domain.expire > self.policy.refresh

    @property
    def keys_in_zone(self) -> list[SigningKey]:
        """The keys whose DNSKEY records are in the zone."""
        return [key for key in self.keys if key.state in keys.IN_ZONE]

    @property
    def ds(self) -> list[str]:
        """The DS records that the parent is to have, as text."""
        return [] if self.is_leaving else [
            keys.ds_text(keys.ds(self.domain.name, key.public)) for key in keys.offered(self.keys)]


def policy_of(policies: Mapping[str, SigningPolicy], name: str) -> SigningPolicy:
    """A policy by name.

    :raises Refused: when the configuration has none of that name
    """
    if name not in policies:
        raise Refused('no_signing_policy', f'There is no section [dnssec_policy:{name}] in the configuration of '
                                           'Central.', 409)
    return policies[name]


class ZoneSigner:
    """The signer of the journal.

    :param policies: by name
    :param private_keys: keys of :class:`SecretCipher` for private keys; none where none may be stored
    :ivar makes_keys: whether it can make those of every role
    """

    def __init__(self, policies: Mapping[str, SigningPolicy], private_keys: Sequence[str],
                 token: KeyToken | None = None) -> None:
        self.policies = policies
        self.token = token
        self._has_cipher = bool(private_keys)
        self.makes_keys = self._has_cipher or token is not None and KeyRole.ZSK in token.roles
        self._cipher = SecretCipher(private_keys, '[service:central] signing_keys_file')
        self._signers: dict[str, KeySigner] = {}

    def zones(self, tx: Tx, domains: Iterable[Domain]) -> dict[str, SignedZone]:
        """Those of these domains that are to be signed, by id."""
        by_id = {domain.id: domain for domain in domains}
        states = zone_signing.states_of(tx, by_id)
        zone_keys = zone_signing.keys_of(tx, list(states))
        return {domain_id: SignedZone(by_id[domain_id], state, zone_keys[domain_id], self.policies)
                for domain_id, state in states.items()}

    def zone(self, tx: Tx, domain: Domain) -> SignedZone:
        """A domain that is to be signed.

        :raises NotSigned: when it is not
        """
        zones = self.zones(tx, [domain])
        if not zones:
            raise NotSigned(domain=domain.name)
        return zones[domain.id]

    def make_key(self, zone: str, role: KeyRole, algorithm: int,
                 tags: Collection[int]) -> tuple[SigningKey, str | None]:
        """A new key of a zone whose others have these tags, and its private part as it is stored; None in a token."""
        if self.token is not None and role in self.token.roles:
            return self.token.generate(zone, role, algorithm, tags), None
        public, private = keys.generate(role, algorithm, tags)
        key = SigningKey(new_id(), role, algorithm, keys.tag_of(public), public)
        return key, self.seal(key.id, private)

    def require_cipher(self) -> None:
        """Refuse to go on where private keys cannot be encrypted."""
        if not self._has_cipher:
            raise Refused('no_signing_keys_file', 'Zones cannot be signed here: [service:central] signing_keys_file is '
                                                  'not set.', 409)

    def seal(self, key_id: str, private: bytes) -> str:
        """A private key as it is stored."""
        self.require_cipher()
        return self._cipher.seal(base64.b64encode(private).decode(), key_id)

    def private_parts(self, tx: Tx, key_ids: Iterable[str]) -> dict[str, bytes]:
        """The private parts (PKCS #8, DER) of those of these keys that are stored with one, by id."""
        private: dict[str, bytes] = {}
        for key_id, text in zone_signing.private_of(tx, key_ids).items():
            if not text.startswith(MARK):
                raise UnreadableSecret(name=key_id, why='it is not encrypted')
            private[key_id] = base64.b64decode(self._cipher.reveal(text, key_id))
        return private

    def sign(self, tx: Tx, changes: Sequence[Change], now: datetime) -> Mapping[str, SignedChange]:
        """What the signer makes of changes, as :class:`designate_pool.central.rules.journal.Journal` has it stored.

        :raises Refused: when what was made does not verify
        """
        zones = self.zones(tx, [entry.domain for entry, _, _ in changes])
        signers = self._signers_of(tx, ((zone.domain.name, key) for zone in zones.values()
                                        for key in key_states.at_first(zone.keys) if key.state in keys.IN_ZONE))
        name_servers = {pool_id: pools.name_servers(tx, pool_id)
                        for pool_id in sorted({entry.domain.pool_id for entry, _, _ in changes})}
        signed: dict[str, SignedChange] = {}
        for entry, gone, added in changes:
            domain, former = entry.domain, entry.former
            zone = zones[domain.id]
            if zone.is_held and entry.kind is not ChangeKind.SIGNING:
                raise Refused('signing_held', f'The zone {domain.name} cannot be changed: {zone.state.why}.', 409)
            if not domain.has_signer:  # what was signed is deleted later, in pieces
                signed[domain.id] = SignedChange([], [], domain)
                continue
            domain = dataclasses.replace(domain, soa_names=soa_names(name_servers[domain.pool_id], domain))
            if own := OWN_TYPES.intersection(record[1] for record in added
                                             if record[0] == domain.name or not recordsets.is_signal(*record[:2])):
                raise Refused('has_signatures', f'The zone {domain.name} is signed here, and its signer alone makes '
                                                f'records of the type {min(own)}.', 409)
            if domain.pool_id != former.pool_id or domain.is_signed and not former.is_signed:
                refuse_pool(tx, domain)
            if entry.kind is ChangeKind.RESTORE or not former.is_signed and domain.ttl != former.ttl:
                # Its signatures may have ended, or all have another TTL: everything is prepared anew.
                domain = dataclasses.replace(domain, is_signed=False)
                zone = zone._replace(state=dataclasses.replace(zone.state, prepared_to=None, next_event_at=now))
                zone_signing.save_state(tx, zone.state, now)
            if not domain.is_signed and zone.state.prepared_to is None:
                signed[domain.id] = SignedChange([], [], domain)
                continue
            if domain.serial != former.serial:  # else the SOA stays as it is stored
                expire = min(domain.expire, zone.policy.refresh)
                domain = dataclasses.replace(domain, expire=expire, refresh=min(domain.refresh, expire // 2),
                                             retry=min(domain.retry, expire // 2))
            new = zone._replace(domain=domain, keys=zone.keys if former.is_signed else key_states.at_first(zone.keys))
            zone_keys = key_set(new, signers)
            try:
                made = _sign_change(tx, entry, gone, added, new, zone_keys, MOST_RENEWED // len(changes) or 1, now)
            except (KeyUnavailable, Refused):
                metrics.SIGNATURES_REFUSED.labels(domain.pool_name).inc()
                raise
            largest = 0 if former.is_signed else signed_records.largest_ttl(tx, domain)
            _note_ttls(tx, zone, made.added, largest, now)
            signed[domain.id] = SignedChange(*made, domain)
        return signed

    def _signers_of(self, tx: Tx, zone_keys: Iterable[tuple[str, SigningKey]]) -> Mapping[str, KeySigner]:
        """The signers of keys, each with its zone, by the key's id, and others."""
        if len(self._signers) > _MOST_KEYS:
            self._signers = {}
        signers = self._signers  # not emptied, as threads use it
        missing = {key.id: (zone, key) for zone, key in zone_keys if key.id not in signers}
        if missing:
            signers.update({key_id: TokenKey(self.token, zone, key) for key_id, (zone, key) in missing.items()
                            if key.token_uri is not None})
            for key_id, private in self.private_parts(tx, missing).items():
                signers[key_id] = keys.load(private, missing[key_id][1].role)
        if lacking := sorted(str(key.tag) for key_id, (_, key) in missing.items() if key_id not in signers):
            raise Refused('no_private_key', f'The private part of the key {", ".join(lacking)} is not here.', 500)
        return signers


def _note_ttls(tx: Tx, zone: SignedZone, added: Sequence[SignedRecord], largest: int, now: datetime) -> None:
    """Keep with keys the greatest TTLs that caches may have because of a version.

    :param largest: of what is signed already and was not published before
    """
    signed: dict[int | None, int] = {}
    for record in added:
        signed[record.key_tag] = max(record.ttl, signed.get(record.key_tag, 0))
    longer = []
    for key in zone.keys_in_zone:
        ttls = {key_states.SIGNED_TTL: max(largest, signed.get(key.tag, 0)),
                key_states.DNSKEY_TTL: zone.policy.dnskey_ttl, key_states.DS_TTL: zone.policy.parent_ds_ttl}
        longest = {what: max(ttl, key.longest_ttls.get(what, 0)) for what, ttl in ttls.items()}
        if longest != key.longest_ttls:
            longer.append(dataclasses.replace(key, longest_ttls=longest))
    zone_signing.save_keys(tx, longer, now)


def key_set(zone: SignedZone, signers: Mapping[str, KeySigner]) -> KeySet:
    """The keys that a zone has and that sign."""
    return keys.key_set(zone.domain.name, zone.keys, signers, zone.policy.dnskey_ttl, zone.is_leaving)


def _sign_change(tx: Tx, entry: JournalEntry, gone: Sequence[ZoneRecord], added: Sequence[ZoneRecord],
                 zone: SignedZone, zone_keys: KeySet, most: int, now: datetime) -> SignedDifference:
    """What a change of a zone does to its signed records.

    :param most: RRsets whose signatures are renewed, if that is what the change is for
    :raises Refused: when what was made does not verify
    """
    domain, policy, seconds = zone.domain, zone.policy, int(now.timestamp())
    soa: ZoneRecord = (domain.name, 'SOA', domain.ttl, soa_rdata.encode_as(domain.soa_names, domain))
    around = _Around(tx, domain, gone, added)
    changed = _changed_types(tx, entry, zone, [*gone, *added], now)
    due = _due_types(tx, zone, most, seconds) if entry.kind is ChangeKind.SIGNING else ()
    around.read({domain.name, *changed, *(name for name, _ in due)})
    change = signer.sign_change(
        domain.name, changed, soa, zone_keys, Validity(seconds - INCEPTION, seconds + policy.validity, policy.jitter),
        zone.state.denial, around, due, Turns().between)
    if defects := verifier.verify_change(domain.name, change, changed, soa, around, seconds, policy.refresh,
                                         Turns().between):
        LOG.error('the change of %s to serial %d is refused, since its signatures are wrong: %s', domain.name,
                  domain.serial, '; '.join(defects[:10]))
        raise Refused('signatures_wrong', f'The change of {domain.name} was not made, as its signatures would be '
                                          f'wrong ({defects[0]}). The zone stays as it was.', 500)
    metrics.SIGNATURES.labels(domain.pool_name).inc(sum(record.type == 'RRSIG' for record in change.added))
    return change


def _changed_types(tx: Tx, entry: JournalEntry, zone: SignedZone, records: Iterable[ZoneRecord],
                   now: datetime) -> dict[str, set[str]]:
    """The types that a change concerns, by name: of these records, and of those that get the TTL of the zone when that
    changes; none of names whose turn it is in the first signing of a zone, which is noted."""
    changed: dict[str, set[str]] = {}
    for name, rtype, _, _ in records:
        changed.setdefault(name, set()).add(rtype)
    domain, state = zone.domain, zone.state
    if entry.former.ttl != domain.ttl:
        for page in zone_snapshot.records_of(tx, domain.id):
            for name, rtype, ttl, _ in page:
                if ttl is None:
                    changed.setdefault(name, set()).add(rtype)
    if entry.kind is ChangeKind.SIGNING and not entry.former.is_signed:
        after = state.prepared_to or ''
        owners = signed_records.owners(tx, domain.id, after, MOST_PREPARED)
        for name in owners:
            changed.setdefault(name, set())
        zone_signing.save_state(tx, dataclasses.replace(
            state, prepared_to=owners[-1] if owners else after, next_event_at=now,
            why=f'its records are being signed, up to {owners[-1]}' if owners else None), now)
    return changed


def _due_types(tx: Tx, zone: SignedZone, most: int, now: int) -> Collection[tuple[str, str]]:
    """The names and types of the RRsets whose signatures are to be renewed."""
    # With those that would be due soon, so that a zone's signatures are renewed by few versions.
    policy = zone.policy
    soon = (policy.validity - policy.refresh - policy.jitter) // 10
    due = signed_records.due(tx, zone.domain.id, now + policy.refresh + soon, now + last_expiry(policy), most)
    for key in zone.keys:
        if key.state in (KeyState.RETIRING, KeyState.REMOVED) and len(due) < most:
            due += signed_records.by_key(tx, zone.domain.id, key.tag, most - len(due))
    return {(record.name, record.covered) for record in due}


class _Around:
    """What is around the names of a change, which is not written yet."""

    def __init__(self, tx: Tx, domain: Domain, gone: Sequence[ZoneRecord], added: Sequence[ZoneRecord]) -> None:
        self._tx, self._id, self._ttl = tx, domain.id, domain.ttl
        self._gone = collections.Counter(self._with_ttl(record) for record in gone)
        self._added: dict[str, list[ZoneRecord]] = {}
        for record in added:
            self._added.setdefault(record[0], []).append(self._with_ttl(record))
        self._changed = {*(record[0] for record in gone), *self._added}
        self._rrsets: dict[str, list[ZoneRecord]] = {}
        self._signed: dict[str, list[SignedRecord]] = {}

    def read(self, names: Collection[str]) -> None:
        """Read what is at *names* at once, as the signer asks for it piece by piece."""
        self.rrsets_at(names)
        self.signed_at(names)

    def rrsets_at(self, names: Collection[str]) -> Iterable[ZoneRecord]:
        missing = [name for name in names if name not in self._rrsets]
        if missing:
            self._rrsets.update({name: [] for name in missing})
            for record in map(self._with_ttl, signed_records.rrsets_at(self._tx, self._id, missing)):
                if self._gone[record]:
                    self._gone[record] -= 1
                else:
                    self._rrsets[record[0]].append(record)
            for name in missing:
                self._rrsets[name] += self._added.get(name, ())
        return [record for name in names for record in self._rrsets[name]]

    def signed_at(self, names: Collection[str]) -> Iterable[SignedRecord]:
        missing = [name for name in names if name not in self._signed]
        if missing:
            self._signed.update({name: [] for name in missing})
            for record in signed_records.signed_at(self._tx, self._id, missing):
                self._signed[record.name].append(record)
        return [record for name in names for record in self._signed[name]]

    def predecessors(self, chain_keys: Collection[bytes]) -> Mapping[bytes, SignedRecord]:
        return signed_records.predecessors(self._tx, self._id, chain_keys)

    def names_below(self, name: str, limit: int | None = None) -> Iterable[str]:
        below = {other for other in self._changed if other != name and lies_in(other, name)}
        most = _ALL if limit is None else limit + len(below)
        stored = [other for other in signed_records.names_below(self._tx, self._id, name, most) if other not in below]
        present = {record[0] for record in self.rrsets_at(sorted(below))}
        return [*stored, *sorted(present)][:limit]

    def _with_ttl(self, record: ZoneRecord) -> ZoneRecord:
        name, rtype, ttl, wire = record
        return name, rtype, self._ttl if ttl is None else ttl, wire
