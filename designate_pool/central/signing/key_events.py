"""The life of the keys of signed zones: what is due is done, one version after the other.

Every version is valid by itself, so a program that ends between two leaves nothing half done.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from designate_pool import logs
from designate_pool.central import events, transactions
from designate_pool.central.cast_queue import CastQueue
from designate_pool.central.managed_records import ManagedChange
from designate_pool.central.rules import domains as domain_rules
from designate_pool.central.rules import journal
from designate_pool.central.rules.journal import Journal, JournalEntry
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.signing import parent_ds, zone_signer
from designate_pool.central.signing.parent_ds import OwnParent
from designate_pool.central.signing.zone_signer import ZoneSigner, last_expiry
from designate_pool.errors import PoolError
from designate_pool.model import (ChangeKind, Context, Domain, KeyRole, KeyState, SigningKey, SigningState, ZoneSigning,
                                  new_id, permitted)
from designate_pool.serial import at_least
from designate_pool.settings import SigningPolicy
from designate_pool.signing import key_states, keys
from designate_pool.signing.key_states import KeyFacts, KeyPolicy, KeyStep
from designate_pool.storage.signing import signed_records, zone_signing
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains, versions

LOG = logging.getLogger(__name__)
WHO = Context(user='signing', all_projects=True, kind=ChangeKind.SIGNING)
#: How long a program may take for what is due of one zone, and zones that one claims at once.
CLAIM, MOST = timedelta(minutes=5), 20
#: After so long it is looked again whether servers have what is waited for, and whether anything else has come.
LOOK, LOOK_AGAIN = timedelta(seconds=5), timedelta(minutes=10)
#: Claims before other housekeeping has its turn.
_MOST_CLAIMS = 20
#: Pieces of work that follow each other at once, before other zones have their turn; and what a request waits for.
_MOST_PIECES, IN_REQUEST = 200, 10


class KeyEvents:
    """Does what is due for signed zones."""

    def __init__(self, storage: Storage, signer: ZoneSigner, to: Journal, casts: CastQueue,
                 event_sender: events.EventSender, allowance: Allowance) -> None:
        self._storage = storage
        self._allowance = allowance
        self._signer = signer
        self._journal = to
        self._casts = casts
        self._events = event_sender
        self._by = new_id()
        self._looked_at = datetime.min.replace(tzinfo=timezone.utc)

    def run_due(self) -> None:
        """Do what is due for zones that no other Central is at work on, where keys can be made."""
        for _ in range(_MOST_CLAIMS if self._signer.makes_keys else 0):
            now = self._storage.now()
            if not timedelta() <= now - self._looked_at < timedelta(hours=1):
                self._renew_future(now)
            claimed = self._storage.run(zone_signing.claim_due, self._by, now, now + CLAIM, MOST)
            for state in claimed:
                try:
                    self.advance_or_note(state.domain_id, _MOST_PIECES)
                finally:
                    self._storage.run(zone_signing.release, state.domain_id, self._by)
            if len(claimed) < MOST:
                break

    def _renew_future(self, now: datetime) -> None:
        """Have signatures renewed that are not valid yet, since they were made when the clock was ahead."""
        self._looked_at = now
        for name, policy in self._signer.policies.items():
            ids = self._storage.read(zone_signing.expiring_after, name, int(now.timestamp()) + last_expiry(policy))
            if ids:
                self._storage.run(zone_signing.renew, ids, now)

    def advance_or_note(self, domain_id: str, most: int) -> None:
        """As :meth:`advance`; when that fails, note why, and try again in a minute."""
        try:
            self.advance(domain_id, most)
        except Exception as error:  # other zones go on
            logs.failure(LOG, error, 'the signing of the zone %s does not go on; tried again in a minute',
                         domain_id)
            with contextlib.suppress(Exception):  # the same one, if keys are not why
                self.advance(domain_id, most, of_keys=False)
            self._storage.run(_postpone, domain_id, self._storage.now(),
                              str(error) if isinstance(error, PoolError) else 'an error that the log of Central has')

    def advance(self, domain_id: str, most: int, of_keys: bool = True) -> None:
        """Do what is due for one zone, in *most* pieces at most; without *of_keys* signatures alone are renewed."""
        former = self._storage.read(domains.get, domain_id)
        for _ in range(most):
            if not transactions.run(self._storage, self._advance, domain_id, self._storage.now(), of_keys):
                break
        domain = self._storage.read(domains.get, domain_id)
        # Of a version whose commit was not heard of, too.
        if domain is not None and former is not None and domain.serial != former.serial:
            self._events.zone(events.UPDATE, WHO.actor, domain, changed=False)
            self._casts.put(WHO, [domain])
        while domain is not None and self._keep_ds(domain):
            pass

    def _keep_ds(self, domain: Domain) -> bool:
        """Have the next zone that lives here have what it is to have of a zone: the parent the DS records, or one of
        its zones ``_signal`` CDS and CDNSKEY; whether there was one."""
        done = transactions.run(self._storage, self._kept_ds, domain, self._storage.now())
        if done is None:
            return False
        for number, (verb, recordset) in enumerate(done.events):
            self._events.zone(verb, WHO.actor, done.domain, done.changed and not number, recordset)
        self._casts.put(WHO, [done.domain])
        return True

    def _kept_ds(self, tx: Tx, domain: Domain, now: datetime) -> ManagedChange | None:
        state, who = zone_signing.state_of(tx, domain.id), dataclasses.replace(WHO, kind=ChangeKind.API)
        if state is None or state.state is SigningState.HELD:
            return None
        policy, done = self._signer.policy(state.policy), None
        zone_keys = zone_signing.keys_of(tx, [domain.id])[domain.id]
        if not domain.is_going:
            done = parent_ds.keep(tx, who, domain, wanted_ds(domain, state, zone_keys, policy), policy, now,
                                  self._journal, self._allowance)
        if done is None:
            is_offered = domain.is_signed and not domain.is_going and state.state is not SigningState.UNSIGNING
            cds, cdnskeys = keys.parent_request(
                domain.name, [key for key in zone_keys if key.state in keys.IN_ZONE],
                None if state.state is SigningState.DS_LEAVING else policy.digests) if is_offered else ((), ())
            done = parent_ds.keep_signal(tx, who, domain, {'CDS': cds, 'CDNSKEY': cdnskeys}, policy.signal_project,
                                         now, self._journal, self._allowance)
        if done is not None:
            zone_signing.schedule(tx, [domain.id], now + LOOK)
        return done

    def _advance(self, tx: Tx, domain_id: str, now: datetime, of_keys: bool) -> bool:
        """Do what is due in one version, or a piece of it; whether more is due."""
        domain, state = domains.lock(tx, domain_id), zone_signing.state_of(tx, domain_id)
        if state is not None and state.state is SigningState.HELD and state.prepared_to is None:
            zone_signing.save_state(tx, dataclasses.replace(state, next_event_at=None, resign_at=None), now)
            return False
        if domain is None or state is None or domain.is_going:
            if state is not None:  # one that is restored goes on with its new version
                zone_signing.save_state(tx, dataclasses.replace(state, next_event_at=None, resign_at=None), now)
            return False
        policy = self._signer.policy(state.policy)
        zone_keys = zone_signing.keys_of(tx, [domain_id])[domain_id]
        is_held = state.state is SigningState.HELD
        if (is_held or not domain.is_signed) and (domain.freeze is not None or domain.release_state is not None):
            _postpone(tx, domain_id, now, 'its pool is frozen' if domain.freeze is not None else
                      'a change of it is being released in stages')
            return False
        if domain.freeze is not None:
            return self._renew_in_frozen_pool(tx, domain, state, zone_keys, policy, now)
        is_leaving = state.state in (SigningState.DS_LEAVING, SigningState.UNSIGNING)
        parent = parent_ds.own_parent(tx, domain, policy)
        longer = {key.id: dataclasses.replace(key, longest_ttls={**key.longest_ttls, key_states.DS_TTL: parent.ttl})
                  for key in zone_keys if key.longest_ttls.get(key_states.DS_TTL, 0) < parent.ttl}
        zone_keys = [longer.get(key.id, key) for key in zone_keys]
        facts = facts_of(tx, domain, state, zone_keys, parent)
        if is_held:
            return self._resume(tx, domain, state, zone_keys, policy, now)
        # What keys wait for begins with the first version that is signed.
        is_first = not domain.is_signed and not is_leaving and any(key.state in keys.IN_ZONE for key in zone_keys)
        steps = key_states.plan(zone_keys, key_policy(policy, zone_keys, parent), facts, now) \
            if of_keys and not is_first else []
        due = [step for step in steps if step.is_due]
        lacking = next((step.role for step in due if step.former is None), None)
        if lacking is not None:  # alone: what failed later would leave it in the token
            made = self._signer.make_key(domain.name, lacking, state.algorithm, {key.tag for key in zone_keys})
            zone_signing.add_keys(tx, domain_id, [made], now)
            zone_signing.save_state(tx, dataclasses.replace(state, next_event_at=now), now)
            return True
        changed = [step.key for step in due if step.key is not None]
        by_id = {**longer, **{key.id: key for key in changed}}
        after = [by_id.get(key.id, key) for key in zone_keys]
        is_signed = any(key.state in keys.IN_ZONE for key in after)
        if is_signed and not domain.is_signed and self._prepare(tx, domain, state, after, policy, now):
            return True
        zone_signing.save_keys(tx, [*by_id.values()], now)
        stage = key_states.zone_state(after, is_leaving, facts.ds)
        if stage is not state.state:
            LOG.info('%s: %s, was %s', domain.name, stage, state.state)
        waits = [step.waits_for for step in steps if step.waits_for]
        if parent.why and (any(key.state is KeyState.READY for key in after) or stage is SigningState.DS_LEAVING):
            waits.append(parent.why)
        state = dataclasses.replace(state, state=stage, since=state.since if stage is state.state else now,
                                    why='; '.join(dict.fromkeys(waits)) or None,
                                    skipped={server: why for server, why in state.skipped.items()
                                             if not _serves(facts, server)})
        zone_signing.save_state(tx, state, now)
        due_signatures = is_signed and domain.is_signed and _has_due(tx, domain_id, after, policy, now)
        has_new_states = any(key.state is not step.former.state for step in due
                             if (key := step.key) is not None and step.former is not None)
        is_unsigned = not is_signed and is_leaving and domain.has_signer
        has_new_request = state.serial is None  # to the parent, by CDS
        if is_unsigned or is_signed and (not domain.is_signed or has_new_states or due_signatures or has_new_request):
            new = self._write(tx, domain, is_signed, now)
            state = dataclasses.replace(state, prepared_to=None)
            # Else keys would wait for servers anew whenever signatures are renewed, and for ever in a lively zone.
            if state.serial is None or has_new_states or not domain.is_signed or any(
                    key.state is KeyState.RETIRING for key in after):
                state = dataclasses.replace(state, serial=new.serial)
        else:
            new = None
        goes_on = new is not None and (is_signed or bool(due))
        if not is_signed and is_leaving and not goes_on:
            goes_on = bool(signed_records.purge(tx, [domain_id], zone_signer.MOST_RENEWED))
            if not goes_on and not parent_ds.has_signal(tx, domain):
                zone_signing.delete_state(tx, domain_id)
                return False
        zone_signing.save_state(tx, dataclasses.replace(
            state, next_event_at=_next(steps, facts, parent, goes_on, now) if is_signed or goes_on or not is_leaving
            else now + LOOK,
            resign_at=_resign_at(tx, domain_id, policy, now) if is_signed else None), now)
        return goes_on

    def _renew_in_frozen_pool(self, tx: Tx, domain: Domain, state: ZoneSigning, zone_keys: Sequence[SigningKey],
                              policy: SigningPolicy, now: datetime) -> bool:
        """Renew what is due of a zone whose pool is frozen, and nothing else; whether more is due.

        Changes that wait are on top of what servers have, whose signatures only a later version can renew: they wait
        no longer when a server that was cut off could come to serve signatures that have ended.
        """
        if state.resign_at is None or state.resign_at > now:
            _postpone(tx, domain.id, now, 'its pool is frozen')
            return False
        if domain.waits_for is not None:
            served = permitted(domain, domain.version_before)
            expiry = min((int.from_bytes(wire[8:12], 'big') for _, rtype, _, wire in versions.signed_at(
                tx, domain.id, served.serial) if rtype == 'RRSIG'), default=0) if served is not None else 0
            last = expiry - max(domain.expire, policy.refresh // 2)
            if now.timestamp() < last:
                end = datetime.fromtimestamp(last, now.tzinfo)
                zone_signing.save_state(tx, dataclasses.replace(state, resign_at=end, next_event_at=now, why=(
                    f'its pool is frozen; its changes wait for the end of that until {end:%Y-%m-%d %H:%M} UTC, when '
                    'what servers have is to be signed anew')), now)
                return False
            LOG.warning('%s: its changes wait for the end of a freeze no longer, since the signatures that servers '
                        'have would end', domain.name)
            domain = journal.release(tx, WHO, domain, 'the signatures that servers have would end', now)
        is_due = _has_due(tx, domain.id, zone_keys, policy, now)
        new = self._write(tx, domain, True, now) if is_due else None
        zone_signing.save_state(tx, dataclasses.replace(
            state, serial=state.serial if new is None else new.serial, why='its pool is frozen', next_event_at=now,
            resign_at=_resign_at(tx, domain.id, policy, now)), now)
        return is_due

    def _prepare(self, tx: Tx, domain: Domain, state: ZoneSigning, zone_keys: Sequence[SigningKey],
                 policy: SigningPolicy, now: datetime) -> bool:
        """Sign one more piece of a zone that nobody gets signed yet; False when the next version can do the rest.

        Its changes meanwhile are signed as they are written, so that a piece is never done again.
        """
        if state.prepared_to is None:
            if signed_records.purge(tx, [domain.id], zone_signer.MOST_RENEWED):
                zone_signing.save_state(tx, dataclasses.replace(state, next_event_at=now), now)
                return True
            zone_signing.save_state(tx, dataclasses.replace(state, prepared_to=''), now)
        rest = signed_records.owners(tx, domain.id, state.prepared_to or '', zone_signer.MOST_PREPARED)
        if len(rest) < zone_signer.MOST_PREPARED and not _has_due(tx, domain.id, zone_keys, policy, now):
            return False
        self._journal.sign(tx, [(JournalEntry(WHO, domain, domain, kind=ChangeKind.SIGNING), (), ())], now)
        return True

    def _resume(self, tx: Tx, domain: Domain, state: ZoneSigning, zone_keys: Sequence[SigningKey],
                policy: SigningPolicy, now: datetime) -> bool:
        """Renew some signatures of a zone that was held, and publish it when none is due any more."""
        is_due = _has_due(tx, domain.id, zone_keys, policy, now)
        if is_due:
            self._journal.sign(tx, [(JournalEntry(WHO, domain, domain, kind=ChangeKind.SIGNING), (), ())], now)
        else:
            new = self._write(tx, domain, True, now, begins_anew=True)
            state = dataclasses.replace(state, state=key_states.zone_state(zone_keys, False), since=now,
                                        why=None, prepared_to=None, serial=new.serial)
        zone_signing.save_state(tx, dataclasses.replace(state, next_event_at=now), now)
        return True

    def _write(self, tx: Tx, domain: Domain, is_signed: bool, now: datetime, begins_anew: bool = False) -> Domain:
        """Write a version with the keys and signatures that are due."""
        new = domain_rules.resign(domain, now)
        new = dataclasses.replace(new, is_signed=is_signed, soa_names=new.soa_names if is_signed else '')
        new, = self._journal.write(tx, [JournalEntry(WHO, domain, new, kind=ChangeKind.SIGNING,
                                                     begins_anew=begins_anew)], now)
        domains.save(tx, new)
        return new


def key_policy(policy: SigningPolicy, zone_keys: Sequence[SigningKey], parent: OwnParent) -> KeyPolicy:
    """A policy as the plan of key states takes it, for a zone with such a parent; the roles are those that it has keys
    of."""
    lifetimes = {KeyRole.KSK: policy.ksk_lifetime, KeyRole.CSK: policy.ksk_lifetime, KeyRole.ZSK: policy.zsk_lifetime}
    return KeyPolicy(roles_of(policy, zone_keys), {role: seconds for role, seconds in lifetimes.items() if seconds},
                     policy.dnskey_ttl, policy.propagation_delay,
                     max(policy.parent_ds_ttl, parent.ttl), digests=policy.digests)


def roles_of(policy: SigningPolicy, zone_keys: Sequence[SigningKey]) -> Sequence[KeyRole]:
    """The roles of the keys of a zone: those that it has keys of, and of the policy when it has none."""
    present = {key.role for key in zone_keys if key.state is not KeyState.REMOVED}
    has_csk = KeyRole.CSK in present if present else policy.keys == 'csk'
    return (KeyRole.CSK,) if has_csk else (KeyRole.KSK, KeyRole.ZSK)


def wanted_ds(domain: Domain, state: ZoneSigning, zone_keys: Sequence[SigningKey],
              policy: SigningPolicy) -> list[str]:
    """The DS records that the parent is to have, as text."""
    return [] if state.state in (SigningState.DS_LEAVING, SigningState.UNSIGNING) else [
        keys.ds_text(keys.ds(domain.name, key.public, digest))
        for key in keys.offered(zone_keys) for digest in policy.digests]


def facts_of(tx: Tx, domain: Domain, state: ZoneSigning, zone_keys: Sequence[SigningKey],
             parent: OwnParent) -> KeyFacts:
    """What the next steps of a zone depend on."""
    # What users say of the parent is not needed where the service itself knows.
    seen = {server: ds for server, (_, ds) in state.ds_seen.items()
            if parent.domain is None or not server.startswith((zone_signing.CONFIRMED, zone_signing.FORCED))}
    signatures = {key.tag: len(signed_records.by_key(tx, domain.id, key.tag, 1)) for key in zone_keys
                  if key.state is KeyState.RETIRING}
    return KeyFacts(
        domain.name, domain.serial if state.serial is None else state.serial, parent_ds.served_by(tx, domain),
        signed_records.largest_ttl(tx, domain), min(domain.minimum, domain.ttl), signatures,
        {**seen, **parent.ds}, state.skipped,
        state.state in (SigningState.DS_LEAVING, SigningState.UNSIGNING),
        parent.domain is None and zone_signing.is_forced(state))


def _has_due(tx: Tx, domain_id: str, zone_keys: Sequence[SigningKey], policy: SigningPolicy, now: datetime) -> bool:
    seconds = int(now.timestamp())
    return bool(signed_records.due(tx, domain_id, seconds + policy.refresh, seconds + last_expiry(policy), 1)) or any(
        signed_records.by_key(tx, domain_id, key.tag, 1) for key in zone_keys
        if key.state is KeyState.RETIRING and key.role is not KeyRole.KSK)


def _resign_at(tx: Tx, domain_id: str, policy: SigningPolicy, now: datetime) -> datetime | None:
    first = signed_records.first_expiry(tx, domain_id)
    return None if first is None else datetime.fromtimestamp(first - policy.refresh, now.tzinfo)


def _serves(facts: KeyFacts, server: str) -> bool:
    """Whether a server of the pool serves the version that key events wait for."""
    served = facts.servers.get(server)
    return served is not None and at_least(served, facts.serial)


def _next(steps: Sequence[KeyStep], facts: KeyFacts, parent: OwnParent, goes_on: bool,
          now: datetime) -> datetime | None:
    """When to look again; None for no reason to."""
    if goes_on:
        return now
    waited_for = []
    if any(step.waits_for for step in steps):  # what the parent has is reported
        is_behind = any(server not in facts.skipped and not _serves(facts, server) for server in facts.servers) or any(
            server not in facts.skipped and ds is None for server, ds in parent.ds.items())
        waited_for.append(now + (LOOK if is_behind else LOOK_AGAIN))
    return min([*waited_for, *(step.at for step in steps if step.at is not None and step.at > now)], default=None)


def _postpone(tx: Tx, domain_id: str, now: datetime, why: str) -> None:
    state = zone_signing.state_of(tx, domain_id)
    if state is not None:
        zone_signing.save_state(tx, dataclasses.replace(
            state, why=why, next_event_at=now + timedelta(minutes=1),
            resign_at=state.resign_at and max(state.resign_at, now + timedelta(minutes=1))), now)
