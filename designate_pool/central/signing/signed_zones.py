"""Requests about the signing of zones: turned on and off, keys rolled, the parent's DS."""

from __future__ import annotations

import dataclasses
import functools
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from designate_pool.central import events, transactions
from designate_pool.central.cast_queue import CastQueue
from designate_pool.central.rules.journal import Journal
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.signing import key_events, key_token, parent_ds, zone_signer
from designate_pool.central.signing.key_events import KeyEvents
from designate_pool.central.signing.zone_signer import ZoneSigner
from designate_pool.central.validation import fields
from designate_pool.errors import Forbidden, InvalidField, NotSigned, Refused
from designate_pool.model import (Context, Domain, Endpoint, KeyRole, KeyState, SigningKey, SigningState, ZoneSigning,
                                  new_id)
from designate_pool.protocol import soa_rdata
from designate_pool.protocol.rules import Level, Rule, Violation
from designate_pool.settings import CentralSettings, SigningPolicy
from designate_pool.signing import canonical, key_states, keys, verifier
from designate_pool.signing.key_states import KeyStep
from designate_pool.storage import queries
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains, recordsets, versions

_SIGNATURES = Rule('signatures', Level.ERROR, 'RFC 4035 section 5')
LOG = logging.getLogger(__name__)
_LEAVING = (SigningState.DS_LEAVING, SigningState.UNSIGNING)
#: States in which resolvers may want the zone to be signed.
RELIED_ON = (SigningState.DS_WAIT, SigningState.SECURE, SigningState.DS_LEAVING, SigningState.HELD)


class SignedZone(NamedTuple):
    """How far the signing of a zone has come.

    :ivar ds: the DS records that the parent is to have, as text
    :ivar steps: what is next for each key, and for keys that are to be made
    """

    domain: Domain
    state: ZoneSigning
    keys: Sequence[SigningKey]
    ds: Sequence[str]
    steps: Sequence[KeyStep]


class SignedZones:
    """See :mod:`designate_pool.central.signing.signed_zones`."""

    def __init__(self, storage: Storage, settings: CentralSettings, casts: CastQueue,
                 event_sender: events.EventSender, allowance: Allowance, compute: Callable[..., Any]) -> None:
        self._storage = storage
        self._run = functools.partial(transactions.run, storage)
        self._token = key_token.KeyToken(settings, compute) if settings.pkcs11_module else None
        self._signer = ZoneSigner(settings.signing_policies, settings.signing_keys, self._token)
        #: The journal, whose versions of signed zones are signed.
        self.journal = Journal(settings.journal_records, settings.history_records, self._signer)
        self._key_events = KeyEvents(storage, self._signer, self.journal, casts, event_sender, allowance)
        #: Does what is due for all signed zones.
        self.run_due = self._key_events.run_due

    def show(self, context: Context, domain_id: str) -> SignedZone:
        """How far the signing of a zone of the context's has come.

        :raises NotSigned: when it is not signed
        """
        return self._storage.read(self._show, context, fields.domain_id(domain_id))

    def verification(self, domain: Domain) -> Callable[[], list[Violation]]:
        """Read a zone as servers get it; the result tells what is wrong with its signatures, if it is signed here."""
        if not domain.is_signed:
            return list
        pages = list(self._storage.stream(versions.permitted_pages, domain.id))
        head = pages[0][0]
        records = [(head.name, 'SOA', head.ttl, soa_rdata.encode(head)), *(
            (name, rtype, head.ttl if ttl is None else ttl, wire)
            for _, page in pages for name, rtype, ttl, wire in page)]
        now = int(self._storage.now().timestamp())
        return lambda: [Violation(_SIGNATURES, domain.name, 'RRSIG', 'records', why)
                        for why in verifier.verify_zone(records, now, 0)]

    def enable(self, context: Context, domain_id: str, policy: str = 'default') -> SignedZone:
        """Have a zone signed; one that is to be unsigned stays signed.

        :raises Refused: when it cannot be
        """
        if not self._signer.makes_keys:
            self._signer.require_cipher()
        if policy not in self._signer.policies:
            raise InvalidField(field='policy', why=f'there is no section [dnssec_policy:{policy}]')
        return self._change(context, domain_id, self._enable, policy)

    def disable(self, context: Context, domain_id: str, force: bool = False) -> SignedZone | None:
        """Have a zone unsigned once nothing relies on its signatures; what it waits for, None if it is done.

        :param force: at once, without waiting for the parent to remove the DS, or for caches
        """
        try:
            return self._change(context, domain_id, self._disable, force)
        except NotSigned:
            return None

    def roll(self, context: Context, domain_id: str, role: str) -> SignedZone:
        """Have a new key follow the active one of a role."""
        return self._change(context, domain_id, self._roll, role)

    def confirm_ds(self, context: Context, domain_id: str, present: bool) -> SignedZone:
        """Take it that every server of the parent has the DS, or none has."""
        return self._change(context, domain_id, self._confirm_ds, present)

    def skip_server(self, context: Context, domain_id: str, server: str, reason: str | None) -> SignedZone:
        """Wait no more for a server, by its label, or one of the parent's; without a reason, wait for it again."""
        return self._change(context, domain_id, self._skip, fields.text('server', server, 255),
                            None if reason is None else fields.text('reason', reason, 255))

    def resume(self, context: Context, domain_id: str, ds: Mapping[Endpoint, Sequence[str] | None],
               dnskeys: Collection[bytes] | None, force: bool = False) -> SignedZone:
        """Sign a zone anew that is held since the database was restored, if its keys are those that are relied on.

        :param ds: the DS records that each server of the parent has, as text; None for one that did not answer
        :param dnskeys: the rdata of the DNSKEY records that the zone's servers have; None when one did not answer
        :param force: whatever these are
        :raises Refused: when the database lacks a key
        """
        return self._change(context, domain_id, self._resume, ds, dnskeys, force)

    def export_keys(self, context: Context, domain_id: str) -> list[tuple[str, str, str]]:
        """The keys that a zone has, as of :func:`designate_pool.signing.keys.bind_files`: for Central's host alone."""
        return self._storage.read(self._export, context, fields.domain_id(domain_id))

    def import_keys(self, context: Context, domain_id: str, files: Sequence[tuple[str, str]],
                    policy: str = 'default') -> SignedZone:
        """Have a zone signed with keys that it has elsewhere, which sign at once; those of one that is signed here
        already follow its own of their roles.

        :param files: of each key the private part, as :func:`designate_pool.signing.keys.read_key` takes it, and a text
            with its DNSKEY record
        :param policy: of a zone that is not signed here yet
        :raises Refused: when the zone would not stay valid with them
        """
        self._signer.require_cipher()
        return self._change(context, domain_id, self._import, files, policy)

    def empty_token(self) -> None:
        """Delete from the token of this Central the keys that no zone has any more, or that were made here and that
        none has got."""
        if self._token is None:
            return
        before = time.monotonic() - key_token.PENDING
        made = [key_id for key_id, at in [*self._token.made.items()] if at < before]
        for key_id, uri in self._storage.read(zone_signing.unused_in_token, made).items():
            if uri in (None, self._token.uri_of(key_id)):
                self._token.destroy(key_id)
                self._storage.run(zone_signing.forget_token, key_id)
        for key_id in made:
            self._token.made.pop(key_id, None)

    def _change(self, context: Context, domain_id: str, work: Any, *args: Any) -> SignedZone:
        domain_id = fields.domain_id(domain_id)
        self._run(self._changed, context, domain_id, work, args, self._storage.now())
        self._key_events.advance_or_note(domain_id, key_events.IN_REQUEST)
        return self.show(context, domain_id)

    def _changed(self, tx: Tx, context: Context, domain_id: str, work: Any, args: Sequence[Any],
                 now: datetime) -> None:
        domain, _ = transactions.lock_domain(tx, context, domain_id)
        if domain.needs_approval and not context.may_approve:
            raise Forbidden(what=f'change how {domain.name} is signed',
                            why='its changes need approval, so somebody who may approve changes has to')
        state = zone_signing.state_of(tx, domain.id)
        if state is not None and state.state is SigningState.HELD and work not in (self._import, self._resume):
            raise Refused('signing_held', f'The signing of {domain.name} is held: {state.why}.', 409)
        work(tx, context, domain, *args, now)

    def _show(self, tx: Tx, context: Context, domain_id: str) -> SignedZone:
        domain = queries.own_domain(tx, context, domain_id)
        state = _state(tx, domain)
        zone_keys = [key for key in zone_signing.keys_of(tx, [domain_id])[domain_id]
                     if key.state is not KeyState.REMOVED]
        policy = self._signer.policy(state.policy)
        parent = parent_ds.own_parent(tx, domain, policy)
        steps = key_states.plan(zone_keys, key_events.key_policy(policy, zone_keys, parent),
                                key_events.facts_of(tx, domain, state, zone_keys, parent), self._storage.now())
        ds = key_events.wanted_ds(domain, state, zone_keys, policy)
        if differs := _differs(state, zone_keys, policy):
            state = dataclasses.replace(state, why='; '.join([*filter(None, [state.why]), differs]))
        return SignedZone(domain, state, zone_keys, ds, steps)

    def _enable(self, tx: Tx, context: Context, domain: Domain, policy_name: str, now: datetime) -> None:
        state = zone_signing.state_of(tx, domain.id)
        policy = self._signer.policy(policy_name)
        if state is not None:
            if state.policy != policy_name:
                raise Refused('signed_already', f'The zone {domain.name} is signed already, by the policy '
                                                f'{state.policy}.', 409)
            if state.state not in _LEAVING:
                return
            if domain.has_signer:
                zone_keys = [key for key in zone_signing.keys_of(tx, [domain.id])[domain.id]
                             if key.role is not KeyRole.ZSK and key.state in keys.IN_ZONE]
                if len(zone_keys) == 1 and zone_keys[0].state in (KeyState.DS_SEEN, KeyState.ACTIVE):
                    # The parent may have removed the DS.
                    zone_keys = [dataclasses.replace(zone_keys[0], state=KeyState.READY, ready_at=now)]
                    zone_signing.save_keys(tx, zone_keys, now)
                zone_signing.save_state(tx, dataclasses.replace(
                    state, state=key_states.zone_state(zone_keys, False, {}), since=now, next_event_at=now, ds_seen={},
                    why=None, serial=None), now)
                return
        self._begin(tx, domain, policy_name, policy.algorithm_number, now)

    def _begin(self, tx: Tx, domain: Domain, policy_name: str, algorithm: int, now: datetime) -> None:
        policy = self._signer.policy(policy_name)
        self._refuse_unfit(tx, domain, policy)
        zone_signing.save_state(tx, ZoneSigning(domain.id, policy_name, algorithm, policy.denial, now,
                                                next_event_at=now), now)
        # From now on its changes concern the signer, and the SOA stays as it is.
        domains.save(tx, dataclasses.replace(domain, soa_names=zone_signer.soa_names(tx, domain)))

    def _refuse_unfit(self, tx: Tx, domain: Domain, policy: SigningPolicy) -> None:
        if domain.is_secondary:
            raise Refused('secondary_zone', f'The zone {domain.name} is a secondary zone: who runs its masters '
                                            'signs it.', 409)
        if domain.release_state is not None:
            raise Refused('release_runs', f'A change of {domain.name} is being released in stages; sign the zone when '
                                          'that has ended.', 409)
        own = recordsets.one_of_types(tx, domain.id, zone_signer.OWN_TYPES)
        if own is not None:
            raise Refused('has_signatures', f'The zone {domain.name} has the recordset {own.name} {own.type}, as '
                                            'signers make them; delete such recordsets first.', 409)
        if not domain.refresh < domain.expire <= policy.refresh:
            raise Refused('expire_unfit', f'Expire in the SOA of {domain.name}, {domain.expire} s, has to be more than '
                                          f'its refresh, and at most {policy.refresh} s (refresh of the policy), as '
                                          'signatures have to outlive it.', 409)
        if policy.denial == 'NSEC3' and len(canonical.name_wire(domain.name)) > 255 - 33:
            raise Refused('name_too_long', f'With a label of 32 characters before {domain.name}, the names of NSEC3 '
                                           'records (RFC 5155) would be too long; take a policy of NSEC.', 409)
        zone_signer.refuse_pool(tx, domain)

    def _disable(self, tx: Tx, context: Context, domain: Domain, force: bool, now: datetime) -> None:
        state = _state(tx, domain)
        if state.state in _LEAVING and (not force or zone_signing.is_forced(state)):
            return
        ds_seen = {f'{zone_signing.FORCED}{context.user or "an administrator"}': (now.isoformat(), ())} if force else {}
        zone_signing.save_state(tx, dataclasses.replace(
            state, state=SigningState.DS_LEAVING, since=now, next_event_at=now, ds_seen=ds_seen, serial=None), now)

    def _roll(self, tx: Tx, context: Context, domain: Domain, role: str, now: datetime) -> None:
        state = _state(tx, domain)
        states = {key.state for key in zone_signing.keys_of(tx, [domain.id])[domain.id] if key.role == role}
        if state.state in _LEAVING or KeyState.ACTIVE not in states or not states & key_states.FOLLOWING:
            self._add(tx, domain, _role(role), None, now)

    def _add(self, tx: Tx, domain: Domain, role: KeyRole, imported: tuple[bytes, bytes] | None, now: datetime) -> None:
        """Have a key follow that of its role: a new one, or one whose public and private part are given."""
        state = _state(tx, domain)
        zone_keys = zone_signing.keys_of(tx, [domain.id])[domain.id]
        if state.state in _LEAVING or not any(key.role == role and key.state is KeyState.ACTIVE for key in zone_keys):
            raise Refused('no_active_key', f'The zone {domain.name} has no active {role} that could be followed.', 409)
        if any(key.role == role and key.state is KeyState.MADE for key in zone_keys):
            raise Refused('key_waits', f'A new {role} of {domain.name} waits for the rollover before it.', 409)
        if imported is None:
            made = self._signer.make_key(domain.name, role, state.algorithm, {key.tag for key in zone_keys})
        else:
            public, private = imported
            if public[3] != state.algorithm:
                raise Refused('other_algorithm', f'The keys of {domain.name} are of algorithm {state.algorithm}, and '
                                                 f'the new {role} is of algorithm {public[3]}.', 409)
            key = SigningKey(new_id(), role, public[3], keys.tag_of(public), public)
            made = key, self._signer.seal(key.id, private)
        self._store(tx, domain, *made, now)
        zone_signing.save_state(tx, dataclasses.replace(state, next_event_at=now), now)

    def _store(self, tx: Tx, domain: Domain, key: SigningKey, private: str | None, now: datetime) -> None:
        """Add a key, which may be one that the zone once had, with its private part as it is stored."""
        zone_keys = zone_signing.keys_of(tx, [domain.id])[domain.id]
        former = next((other for other in zone_keys if other.public == key.public), None)
        if any(other.tag == key.tag and other is not former and other.state is not KeyState.REMOVED
               for other in zone_keys):
            raise Refused('key_tag_present', f'The zone {domain.name} has another key with the tag {key.tag}; make '
                                             'another one, as signatures name their keys by the tag.', 409)
        if former is None:
            zone_signing.add_keys(tx, domain.id, [(key, private)], now)
        elif former.state is KeyState.REMOVED and former.role is key.role:
            zone_signing.save_keys(tx, [dataclasses.replace(key, id=former.id)], now)
        else:
            raise Refused('key_present', f'The zone {domain.name} has the key {key.tag} already.', 409)

    def _export(self, tx: Tx, context: Context, domain_id: str) -> list[tuple[str, str, str]]:
        domain = queries.own_domain(tx, context, domain_id)
        zone_keys = [key for key in zone_signing.keys_of(tx, [domain_id])[domain_id]
                     if key.state is not KeyState.REMOVED]
        if in_token := [f'{key.tag} ({key.token_uri})' for key in zone_keys if key.token_uri is not None]:
            raise Refused('key_in_token', f'The keys of {domain.name} cannot be exported: {", ".join(in_token)} is '
                                          'in a token, which gives no private key away.', 409)
        private = self._signer.private_parts(tx, [key.id for key in zone_keys])
        LOG.info('%s: %s exports the keys %s', domain.name, context.user, [key.tag for key in zone_keys])
        return [keys.bind_files(domain.name, key, private[key.id]) for key in zone_keys]

    def _import(self, tx: Tx, context: Context, domain: Domain, files: Sequence[tuple[str, str]], policy_name: str,
                now: datetime) -> None:
        state = zone_signing.state_of(tx, domain.id)
        policy = self._signer.policy(policy_name if state is None else state.policy)
        roles = key_events.roles_of(policy, zone_signing.keys_of(tx, [domain.id])[domain.id])
        imported = [_read(domain, private, public, roles, now) for private, public in files]
        LOG.info('%s: %s imports the keys %s', domain.name, context.user, [key.tag for key, _ in imported])
        if state is not None and state.state is SigningState.HELD:
            zone_keys = zone_signing.keys_of(tx, [domain.id])[domain.id]
            active = {key.role for key, _ in imported if key.state is KeyState.ACTIVE}
            zone_signing.save_keys(tx, [
                dataclasses.replace(key, state=KeyState.RETIRING, retire_at=now)
                for key in zone_keys if key.state is KeyState.ACTIVE and key.role in active], now)
            for key, private in imported:
                self._store(tx, domain, key, self._signer.seal(key.id, private), now)
            return
        if state is not None:
            for key, private in imported:
                self._add(tx, domain, key.role, (key.public, private), now)
            return
        if {key.role for key, _ in imported} != set(roles) or any(
                sum(key.role is role and key.state is KeyState.ACTIVE for key, _ in imported) > 1 for role in roles):
            raise Refused('keys_incomplete', f'By the policy {policy_name} the keys of {domain.name} have to be '
                                             f'{" and ".join(roles)}, one of each that is active; end a rollover where '
                                             'it was begun.', 409)
        if len({key.algorithm for key, _ in imported}) != 1:
            raise Refused('other_algorithm', f'The keys of {domain.name} have to be of one algorithm.', 409)
        for key, private in imported:
            self._store(tx, domain, key, self._signer.seal(key.id, private), now)
        self._begin(tx, domain, policy_name, imported[0][0].algorithm, now)

    def _resume(self, tx: Tx, context: Context, domain: Domain, ds: Mapping[Endpoint, Sequence[str] | None],
                dnskeys: Collection[bytes] | None, force: bool, now: datetime) -> None:
        state = _state(tx, domain)
        if state.state is not SigningState.HELD:
            raise Refused('not_held', f'The signing of {domain.name} is not held.', 409)
        zone_keys = [key for key in zone_signing.keys_of(tx, [domain.id])[domain.id] if key.state in keys.IN_ZONE]
        if not force and (why := _unfit(domain, zone_keys, ds, dnskeys)):
            raise Refused('keys_differ', f'The signing of {domain.name} is still held: {why}.', 409)
        zone_signing.save_state(tx, dataclasses.replace(state, prepared_to='', next_event_at=now,
                                                        why='its signatures are being renewed'), now)

    def _confirm_ds(self, tx: Tx, context: Context, domain: Domain, present: bool, now: datetime) -> None:
        state = _state(tx, domain)
        zone_keys = zone_signing.keys_of(tx, [domain.id])[domain.id]
        texts = key_events.wanted_ds(domain, state, zone_keys, self._signer.policy(state.policy)) if present else []
        if present and not texts:
            raise Refused('nothing_offered', f'The zone {domain.name} has no DS yet that its parent could have: its '
                                             'keys are not published everywhere.', 409)
        zone_signing.save_state(tx, dataclasses.replace(state, next_event_at=now, ds_seen={
            f'{zone_signing.CONFIRMED}{context.user or "an administrator"}': (now.isoformat(), texts)}), now)

    def _skip(self, tx: Tx, context: Context, domain: Domain, server: str, reason: str | None,
              now: datetime) -> None:
        state = _state(tx, domain)
        parent = parent_ds.own_parent(tx, domain, self._signer.policy(state.policy))
        labels = {one.label for one in pool_servers.of_pool(tx, domain.pool_name).servers}.union(
            state.ds_seen, parent.ds, state.skipped)
        if server not in labels:
            raise InvalidField(field='server', why=f'it is none of {", ".join(sorted(labels))}')
        skipped = {other: why for other, why in {**state.skipped, server: reason}.items() if why is not None}
        zone_signing.save_state(tx, dataclasses.replace(state, next_event_at=now, skipped=skipped), now)


def change_owner(tx: Tx, domain: Domain, now: datetime) -> None:
    """Look again at zones whose DS records were put into parents, after *domain* has got another owner."""
    zone_signing.schedule(tx, parent_ds.concerned(tx, domain), now)


def refuse_relied_on(tx: Tx, domain: Domain, what: str) -> None:
    """Refuse what would make a signed zone go while the parent may have its DS: resolvers would take it for forged."""
    state = zone_signing.state_of(tx, domain.id) if domain.is_signed else None
    if state is not None and state.state in RELIED_ON:
        raise Refused('ds_at_parent', f'The zone {domain.name} cannot be {what}: it is signed, and its parent may have '
                                      'its DS, so that resolvers would refuse all answers below it. Disable signing '
                                      'first.', 409)


def _differs(state: ZoneSigning, zone_keys: Sequence[SigningKey], policy: SigningPolicy) -> str:
    """What of a policy that was changed since does not apply to a zone that is signed by it."""
    has_csk = any(key.role is KeyRole.CSK for key in zone_keys)
    parts = [f'{what} = {new}' for what, new, is_same in (
        ('algorithm', policy.algorithm, policy.algorithm_number == state.algorithm),
        ('denial', policy.denial, policy.denial == state.denial),
        ('keys', policy.keys, not zone_keys or has_csk is (policy.keys == 'csk'))) if not is_same]
    return (f'it is signed as when that was turned on, without {", ".join(parts)} of the policy: for these, disable '
            'signing, and enable it again') if parts else ''


def _unfit(domain: Domain, zone_keys: Sequence[SigningKey], ds: Mapping[Endpoint, Sequence[str] | None],
           dnskeys: Collection[bytes] | None) -> str:
    """Why a zone would not stay valid with these keys; empty if it would."""
    if dnskeys is None:
        return 'not all of its servers tell which keys they have'
    if lacking := sorted(keys.tag_of(dnskey) for dnskey in {*dnskeys} - {key.public for key in zone_keys}):
        return f'its servers have the keys {lacking}, which the database lacks: import them'
    if unserved := [key.tag for key in zone_keys if key.state is KeyState.ACTIVE and key.public not in dnskeys]:
        return f'the keys {unserved} are active in the database, and its servers do not have them'
    texts = {keys.ds_text(keys.ds(domain.name, key.public, digest)) for digest in (keys.SHA256, keys.SHA384)
             for key in zone_keys if key.role is not KeyRole.ZSK and key.state is not KeyState.RETIRING}
    if not ds or any(records is None or records and texts.isdisjoint(records) for records in ds.values()):
        return 'not every server of the parent has the DS of one of its keys'
    return ''


def _state(tx: Tx, domain: Domain) -> ZoneSigning:
    state = zone_signing.state_of(tx, domain.id)
    if state is None:
        raise NotSigned(domain=domain.name)
    return state


def _role(role: str) -> KeyRole:
    try:
        return KeyRole(role)
    except ValueError:
        raise InvalidField(field='role', why='KSK, ZSK or CSK') from None


def _read(domain: Domain, private: str, public: str, roles: Sequence[KeyRole],
          now: datetime) -> tuple[SigningKey, bytes]:
    """A key in files, with the state that it has by them."""
    zone, dnskey = keys.read_dnskey(public)
    role = KeyRole.CSK if KeyRole.CSK in roles else KeyRole.ZSK if dnskey[:2] == b'\1\0' else KeyRole.KSK
    from_private, der = keys.read_key(private, role)
    if zone != domain.name or dnskey != from_private:
        raise InvalidField(field='private_key', why='the DNSKEY record beside it is not that of this key as a '
                                                    f'{role} of {domain.name}')
    life = keys.read_times(private, now)
    if life is None:
        raise InvalidField(field='private_key', why=f'by its times the key {keys.tag_of(dnskey)} is not in the zone')
    return dataclasses.replace(life, id=new_id(), role=role, algorithm=dnskey[3], tag=keys.tag_of(dnskey),
                               public=dnskey), der
