"""The life of the keys of signed zones: what is due is done, one version after the other.

Every version is valid by itself, so a program that ends between two leaves nothing half done.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from designate_pool import logs
from designate_pool.central import events, transactions
from designate_pool.central.cast_queue import CastQueue
from designate_pool.central.managed_records import ManagedChange
from designate_pool.central.rules import domains as domain_rules, journal
from designate_pool.central.rules.journal import Journal, JournalEntry
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.signing import parent_ds, zone_signer
from designate_pool.central.signing.parent_ds import WHO, OwnParent
from designate_pool.central.signing.zone_signer import SignedZone, ZoneSigner, last_expiry
from designate_pool.errors import PoolError
from designate_pool.model import ChangeKind, Context, Domain, KeyRole, KeyState, SigningState, new_id, permitted
from designate_pool.signing import key_states, keys
from designate_pool.signing.key_states import KeyFacts, KeyStep
from designate_pool.storage.signing import signed_records, zone_signing
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains, versions

LOG = logging.getLogger(__name__)
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
                 event_sender: events.EventSender, allowance: Allowance,
                 abort_release: Callable[[Context, str], Domain]) -> None:
        self._storage = storage
        self._abort_release = abort_release
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
            with_events = {state.domain_id for state in claimed
                           if state.next_event_at is not None and state.next_event_at <= now}
            ids = [state.domain_id for state in claimed]
            try:
                with_events.update(self._renewed([domain_id for domain_id in ids if domain_id not in with_events]))
                for domain_id in ids:
                    if domain_id in with_events:
                        self.advance_or_note(domain_id, _MOST_PIECES)
            finally:
                if ids:
                    self._storage.run(zone_signing.release, ids, self._by)
            if len(ids) < MOST:
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
            self._renewed([domain_id])  # if keys alone are why
            self._storage.run(_postpone, domain_id, self._storage.now(),
                              str(error) if isinstance(error, PoolError) else 'an error that the log of Central has')

    def advance(self, domain_id: str, most: int) -> None:
        """Do what is due for one zone, in *most* pieces at most."""
        if self._storage.read(self._ends_release, domain_id, self._storage.now()):
            LOG.warning('the staged release of the zone %s is aborted, since signatures that servers have would end',
                        domain_id)
            self._abort_release(WHO, domain_id)
        former = self._storage.read(domains.get_many, [domain_id])
        for _ in range(most):
            if not transactions.run(self._storage, self._advance, domain_id, self._storage.now()):
                break
        for domain in self._announced(former).values():
            self._keep_ds(domain)

    def _ends_release(self, tx: Tx, domain_id: str, now: datetime) -> bool:
        """Whether a staged release has gone on for so long that servers need new signatures, which come after it."""
        zone = next(iter(self._signer.zones(tx, domains.get_many(tx, [domain_id]).values()).values()), None)
        if zone is None or zone.domain.release is None or zone.domain.freeze is not None or zone.domain.is_going or (
                not _is_due(zone.state.resign_at, now)):
            return False
        served = zone.domain.permitted
        return served is not None and served.is_signed and _outlived_at(tx, zone, served, now) <= now

    def _renewed(self, ids: Sequence[str]) -> Sequence[str]:
        """Renew signatures that are due of zones, a part of each, together; the ids of those for which more is due, and
        of all where one of them fails, since alone it fails without the others."""
        if not ids:
            return ()
        former = self._storage.read(domains.get_many, ids)
        try:
            rest = transactions.run(self._storage, self._renew, ids, self._storage.now())
        except Exception:  # pylint: disable=broad-except
            return ids
        self._announced(former)
        return rest

    def _announced(self, former: Mapping[str, Domain]) -> Mapping[str, Domain]:
        """Tell of the zones that have new versions; all of them as they are now."""
        after = self._storage.read(domains.get_many, former)
        # Of a version whose commit was not heard of, too.
        new = [domain for domain in after.values() if domain.serial != former[domain.id].serial]
        for domain in new:
            self._events.zone(events.UPDATE, WHO.actor, domain, changed=False)
        if new:
            self._casts.put(WHO, new)
        return after

    def _keep_ds(self, domain: Domain) -> None:
        """Have other zones that live here have what they are to have of a zone: the parent the DS records, and zones
        ``_signal`` CDS and CDNSKEY."""
        while (done := transactions.run(self._storage, self._kept_ds, domain, self._storage.now())) is not None:
            for number, (verb, recordset) in enumerate(done.events):
                self._events.zone(verb, WHO.actor, done.domain, done.changed and not number, recordset)
            self._casts.put(WHO, [done.domain])

    def _kept_ds(self, tx: Tx, domain: Domain, now: datetime) -> ManagedChange | None:
        """Change the next of these zones; None when all are as they are to be."""
        zone, who = self._signer.zones(tx, [domain]).get(domain.id), dataclasses.replace(WHO, kind=ChangeKind.API)
        if zone is None or zone.is_held:
            return None
        done = None
        if not domain.is_going:
            done = parent_ds.keep(tx, who, domain, zone.ds, zone.policy, now, self._journal, self._allowance)
        if done is None:
            is_offered = domain.is_signed and not domain.is_going and zone.state.state is not SigningState.UNSIGNING
            cds, cdnskeys = ((), ()) if not is_offered else keys.parent_request(
                domain.name, zone.keys_in_zone, zone.is_leaving)
            done = parent_ds.keep_signal(tx, who, domain, {'CDS': cds, 'CDNSKEY': cdnskeys}, zone.policy.signal_project,
                                         now, self._journal, self._allowance)
        if done is not None:
            zone_signing.schedule(tx, [domain.id], now + LOOK)
        return done

    def _renew(self, tx: Tx, ids: Sequence[str], now: datetime) -> list[str]:
        """Write a version of each of some zones whose signatures are due, and do nothing else for them; the ids of
        those for which more is due, or something else."""
        zones = self._signer.zones(tx, domains.lock_many(tx, ids).values())
        fit = [zone for zone in zones.values() if zone.domain.is_signed and zone.domain.freeze is None
               and zone.domain.release_state is None
               and not zone.domain.is_going and not zone.is_held]
        done = {zone.domain.id for zone in fit} - self._write_due(tx, fit, now)
        return [domain_id for domain_id in ids if domain_id not in done]

    def _write_due(self, tx: Tx, zones: Sequence[SignedZone], now: datetime, **changes: Any) -> set[str]:
        """Write versions of zones whose signatures are due, and *changes* of their states; the ids of those for which
        more is due."""
        resign_at = _resign_at(tx, zones, now)
        due = [zone for zone in zones if _is_due(resign_at[zone.domain.id], now) or zone.outlives_signatures]
        serials = {domain.id: domain.serial for domain in self._write(tx, [zone.domain for zone in due], True, now)}
        resign_at |= _resign_at(tx, due, now)
        states = []
        for zone in zones:
            domain_id, has_retiring = zone.domain.id, any(key.state is KeyState.RETIRING for key in zone.keys)
            serial = serials.get(domain_id, zone.state.serial) if has_retiring else zone.state.serial
            states.append(dataclasses.replace(zone.state, serial=serial, resign_at=resign_at[domain_id], **changes))
        zone_signing.save_states(tx, states, now)
        return {domain_id for domain_id, at in resign_at.items() if _is_due(at, now)}

    def _advance(self, tx: Tx, domain_id: str, now: datetime) -> bool:
        """Do what is due in one version, or a piece of it; whether more is due."""
        zones = self._signer.zones(tx, domains.lock_many(tx, [domain_id]).values())
        if domain_id not in zones:
            return False
        zone = zones[domain_id]
        domain, state = zone.domain, zone.state
        if domain.is_going or zone.is_held and state.prepared_to is None:
            # One that is restored goes on with its new version.
            zone_signing.save_state(tx, dataclasses.replace(state, next_event_at=None, resign_at=None), now)
            return False
        if (zone.is_held or not domain.is_signed) and (domain.freeze is not None or domain.release_state is not None):
            _postpone(tx, domain_id, now, 'its pool is frozen' if domain.freeze is not None else
                      'a change of it is being released in stages')
            return False
        if domain.freeze is not None:
            return self._renew_in_frozen_pool(tx, zone, now)
        return self._resume(tx, zone, now) if zone.is_held else self._roll(tx, zone, now)

    def _roll(self, tx: Tx, zone: SignedZone, now: datetime) -> bool:
        """Take the steps of its keys that are due, and renew signatures that are."""
        domain, state = zone.domain, zone.state
        parent = parent_ds.own_parent(tx, domain, zone.policy)
        longer = {key.id: dataclasses.replace(key, longest_ttls={**key.longest_ttls, key_states.DS_TTL: parent.ttl})
                  for key in zone.keys if key.longest_ttls.get(key_states.DS_TTL, 0) < parent.ttl}
        zone = zone._replace(keys=[longer.get(key.id, key) for key in zone.keys])
        facts = facts_of(tx, zone, parent)
        # What keys wait for begins with the first version that is signed.
        is_first = not domain.is_signed and not zone.is_leaving and bool(zone.keys_in_zone)
        steps = [] if is_first else key_states.plan(zone.keys, zone.policy, facts, now)
        due = [step for step in steps if step.is_due]
        lacking = next((step.role for step in due if step.former is None), None)
        if lacking is not None:  # alone: what failed later would leave it in the token
            made = self._signer.make_key(domain.name, lacking, state.algorithm, {key.tag for key in zone.keys})
            zone_signing.add_keys(tx, domain.id, [made], now)
            zone_signing.save_state(tx, dataclasses.replace(state, next_event_at=now), now)
            return True
        changed = longer | {step.key.id: step.key for step in due if step.key is not None}
        zone = zone._replace(keys=[changed.get(key.id, key) for key in zone.keys])
        is_signed = bool(zone.keys_in_zone)
        if is_signed and not domain.is_signed and self._prepare(tx, zone, now):
            return True
        zone_signing.save_keys(tx, [*changed.values()], now)
        stage = key_states.zone_state(zone.keys, zone.is_leaving, facts.ds)
        if stage is not state.state:
            LOG.info('%s: %s, was %s', domain.name, stage, state.state)
        waits = [step.waits_for for step in steps if step.waits_for]
        if parent.why and (any(key.state is KeyState.READY for key in zone.keys) or stage is SigningState.DS_LEAVING):
            waits.append(parent.why)
        has_new_states = any(step.key.state is not step.former.state for step in due if step.key and step.former)
        # Else keys would wait for servers anew whenever signatures are renewed, and for ever in a lively zone.
        goes_on = state.serial is None or has_new_states or not domain.is_signed or any(
            key.state is KeyState.RETIRING for key in zone.keys)
        resign_at = _resign_at(tx, [zone], now)[domain.id]
        writes = domain.has_signer and zone.is_leaving if not is_signed else (
            not domain.is_signed or has_new_states or state.serial is None or _is_due(resign_at, now)
            or zone.outlives_signatures)
        state = dataclasses.replace(state, state=stage, since=state.since if stage is state.state else now,
                                    why='; '.join(dict.fromkeys(waits)) or None,
                                    skipped={server: why for server, why in state.skipped.items()
                                             if server not in facts.current})
        if writes:
            zone_signing.save_state(tx, state, now)  # the signer reads it
            new, = self._write(tx, [domain], is_signed, now)
            state = dataclasses.replace(state, prepared_to=None, serial=new.serial if goes_on else state.serial)
            resign_at = _resign_at(tx, [zone], now)[domain.id]
            goes_on = goes_on or _is_due(resign_at, now)
            if domain.release is not None and (served := new.permitted) is not None and served.is_signed:
                resign_at = _outlived_at(tx, zone, served, now)  # servers get the new ones after it
        elif domain.release is not None and is_signed:
            goes_on, resign_at = False, state.resign_at
        else:
            goes_on = not is_signed and zone.is_leaving and bool(
                signed_records.purge(tx, [domain.id], zone_signer.MOST_RENEWED))
            if not is_signed and zone.is_leaving and not goes_on and not parent_ds.has_signal(tx, domain):
                zone_signing.delete_state(tx, domain.id)
                return False
        waits_for_signal = not is_signed and zone.is_leaving and not goes_on
        zone_signing.save_state(tx, dataclasses.replace(
            state, resign_at=resign_at if is_signed else None,
            next_event_at=now + LOOK if waits_for_signal else _next(steps, facts, parent, goes_on, now)), now)
        return goes_on

    def _renew_in_frozen_pool(self, tx: Tx, zone: SignedZone, now: datetime) -> bool:
        """Renew what is due of a zone whose pool is frozen, and nothing else; whether more is due.

        Changes that wait are on top of what servers have, whose signatures only a later version can renew: they wait
        no longer when a server that was cut off could come to serve signatures that have ended.
        """
        domain, state = zone.domain, zone.state
        if not _is_due(state.resign_at, now):
            _postpone(tx, domain.id, now, 'its pool is frozen')
            return False
        if domain.waits_for is not None:
            end = _outlived_at(tx, zone, permitted(domain, domain.version_before), now)
            if now < end:
                zone_signing.save_state(tx, dataclasses.replace(state, resign_at=end, next_event_at=now, why=(
                    f'its pool is frozen; its changes wait for the end of that until {end:%Y-%m-%d %H:%M} UTC, when '
                    'what servers have is to be signed anew')), now)
                return False
            LOG.warning('%s: its changes wait for the end of a freeze no longer, since the signatures that servers '
                        'have would end', domain.name)
            domain = journal.release(tx, WHO, domain, 'the signatures that servers have would end', now)
        return bool(self._write_due(tx, [zone._replace(domain=domain)], now, why='its pool is frozen',
                                    next_event_at=now))

    def _prepare(self, tx: Tx, zone: SignedZone, now: datetime) -> bool:
        """Sign one more piece of a zone that nobody gets signed yet; False when the next version can do the rest.

        Its changes meanwhile are signed as they are written, so that a piece is never done again.
        """
        domain, state = zone.domain, zone.state
        if state.prepared_to is None:
            if signed_records.purge(tx, [domain.id], zone_signer.MOST_RENEWED):
                zone_signing.save_state(tx, dataclasses.replace(state, next_event_at=now), now)
                return True
            zone_signing.save_state(tx, dataclasses.replace(state, prepared_to=''), now)
        rest = signed_records.owners(tx, domain.id, state.prepared_to or '', zone_signer.MOST_PREPARED)
        if len(rest) < zone_signer.MOST_PREPARED and not _is_due(_resign_at(tx, [zone], now)[domain.id], now):
            return False
        self._sign_piece(tx, domain, now)
        return True

    def _resume(self, tx: Tx, zone: SignedZone, now: datetime) -> bool:
        """Renew some signatures of a zone that was held, and publish it when none is due any more."""
        state = zone.state
        if _is_due(_resign_at(tx, [zone], now)[zone.domain.id], now):
            self._sign_piece(tx, zone.domain, now)
        else:
            new, = self._write(tx, [zone.domain], True, now, begins_anew=True)
            state = dataclasses.replace(state, state=key_states.zone_state(zone.keys, False), since=now,
                                        why=None, prepared_to=None, serial=new.serial)
        zone_signing.save_state(tx, dataclasses.replace(state, next_event_at=now), now)
        return True

    def _sign_piece(self, tx: Tx, domain: Domain, now: datetime) -> None:
        """Sign a part of what is due of a zone, and write no version."""
        self._journal.sign(tx, [(JournalEntry(WHO, domain, domain, kind=ChangeKind.SIGNING), (), ())], now)

    def _write(self, tx: Tx, former: Sequence[Domain], is_signed: bool, now: datetime,
               begins_anew: bool = False) -> list[Domain]:
        """Write versions with the keys and signatures that are due; the domains after them."""
        resigned = [(domain, domain_rules.resign(domain, now)) for domain in former]
        written = self._journal.write(tx, [JournalEntry(
            WHO, domain, dataclasses.replace(new, is_signed=is_signed, soa_names=new.soa_names if is_signed else ''),
            kind=ChangeKind.SIGNING, begins_anew=begins_anew) for domain, new in resigned], now)
        domains.save_many(tx, [(domain, '') for domain in written])
        return written


def facts_of(tx: Tx, zone: SignedZone, parent: OwnParent) -> KeyFacts:
    """What the next steps of a zone depend on."""
    domain, state = zone.domain, zone.state
    # What users say of the parent is not needed where the service itself knows.
    seen = {'the parent' if zone_signing.is_said(server) else server: ds
            for server, (_, ds) in state.ds_seen.items() if parent.domain is None or not zone_signing.is_said(server)}
    signatures = {key.tag: len(signed_records.by_key(tx, domain.id, key.tag, 1)) for key in zone.keys
                  if key.state is KeyState.RETIRING}
    return KeyFacts(
        domain.name, domain.serial if state.serial is None else state.serial, parent_ds.served_by(tx, domain),
        signed_records.largest_ttl(tx, domain), min(domain.minimum, domain.ttl), signatures,
        {**seen, **parent.ds}, state.skipped, zone.is_leaving,
        parent.domain is None and zone_signing.is_forced(state))


def _resign_at(tx: Tx, zones: Sequence[SignedZone], now: datetime) -> dict[str, datetime | None]:
    """When signatures of zones are to be renewed next, by id; None for no signatures."""
    expiries = signed_records.expiries(tx, [zone.domain.id for zone in zones])
    times: dict[str, datetime | None] = {}
    for zone in zones:
        domain_id, policy = zone.domain.id, zone.policy
        first, last = expiries.get(domain_id, (None, None))
        is_due = last is not None and last > now.timestamp() + last_expiry(policy) or any(
            signed_records.by_key(tx, domain_id, key.tag, 1) for key in zone.keys
            if key.state is KeyState.RETIRING and key.role is not KeyRole.KSK)
        times[domain_id] = now if is_due else None if first is None else datetime.fromtimestamp(
            first - policy.refresh + 1, now.tzinfo)
    return times


def _outlived_at(tx: Tx, zone: SignedZone, served: Domain | None, now: datetime) -> datetime:
    """When what servers have of a zone must be renewed, lest one that is cut off serves signatures that have ended;
    *now* where they have nothing that is signed."""
    ends = [int.from_bytes(wire[8:12], 'big') for _, rtype, _, wire in versions.signed_at(
        tx, zone.domain.id, served.serial) if rtype == 'RRSIG'] if served is not None else []
    return now if served is None or not ends else datetime.fromtimestamp(
        min(ends) - max(served.expire, zone.policy.refresh // 2), now.tzinfo)


def _is_due(at: datetime | None, now: datetime) -> bool:
    return at is not None and at <= now


def _next(steps: Sequence[KeyStep], facts: KeyFacts, parent: OwnParent, goes_on: bool,
          now: datetime) -> datetime | None:
    """When to look again; None for no reason to."""
    if goes_on:
        return now
    waited_for = []
    if any(step.waits_for for step in steps):  # what the parent has is reported
        is_behind = facts.behind or any(server not in facts.skipped and ds is None for server, ds in parent.ds.items())
        waited_for.append(now + (LOOK if is_behind else LOOK_AGAIN))
    return min([*waited_for, *(step.at for step in steps if step.at is not None and step.at > now)], default=None)


def _postpone(tx: Tx, domain_id: str, now: datetime, why: str) -> None:
    state = zone_signing.state_of(tx, domain_id)
    if state is not None:
        zone_signing.save_state(tx, dataclasses.replace(
            state, why=why, next_event_at=now + timedelta(minutes=1),
            resign_at=state.resign_at and max(state.resign_at, now + timedelta(minutes=1))), now)
