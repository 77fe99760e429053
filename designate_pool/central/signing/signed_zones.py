"""Requests about the signing of zones: turned on and off, keys rolled, the parent's DS."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from designate_pool.central import events, transactions
from designate_pool.central.cast_queue import CastQueue
from designate_pool.central.rules.journal import Journal
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.signing import key_events, key_token, parent_ds, zone_signer
from designate_pool.central.signing.key_events import KeyEvents
from designate_pool.central.signing.zone_signer import SignedZone, ZoneSigner
from designate_pool.central.validation import fields
from designate_pool.errors import Forbidden, InvalidField, NotSigned, Refused
from designate_pool.model import (Context, Domain, Endpoint, KeyRole, KeyState, SigningKey, SigningState, ZoneSigning,
                                  new_id)
from designate_pool.protocol.rules import Level, Rule, Violation
from designate_pool.settings import CentralSettings, SigningPolicy
from designate_pool.signing import canonical, key_states, keys, verifier
from designate_pool.storage import queries
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains, pools, recordsets, versions

_SIGNATURES = Rule('signatures', Level.ERROR, 'RFC 4035 section 5')
LOG = logging.getLogger(__name__)
#: What a request changes in the state of a zone; None for nothing.
Changes = Mapping[str, Any] | None
#: States in which resolvers may want the zone to be signed.
RELIED_ON = (SigningState.DS_WAIT, SigningState.SECURE, SigningState.DS_LEAVING, SigningState.HELD)


class SignedZones:
    """See :mod:`designate_pool.central.signing.signed_zones`."""

    def __init__(self, storage: Storage, settings: CentralSettings, casts: CastQueue,
                 event_sender: events.EventSender, allowance: Allowance, compute: Callable[..., Any],
                 abort_release: Callable[[Context, str], Domain]) -> None:
        self._storage = storage
        self._token = key_token.KeyToken(settings, compute) if settings.pkcs11_module else None
        self._signer = ZoneSigner(settings.signing_policies, settings.signing_keys, self._token)
        #: The journal, whose versions of signed zones are signed.
        self.journal = Journal(settings.journal_records, settings.history_records, self._signer.sign)
        self._key_events = KeyEvents(storage, self._signer, self.journal, casts, event_sender, allowance,
                                     abort_release)
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
        records = list(versions.whole_zone(self._storage.stream(versions.permitted_pages, domain.id)))
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

        def begin(tx: Tx, domain: Domain, now: datetime) -> None:
            self._begin(tx, domain, policy, now)

        def go_on(tx: Tx, zone: SignedZone, now: datetime) -> Changes:
            if zone.state.policy != policy:
                raise Refused('signed_already', f'The zone {zone.domain.name} is signed already, by the policy '
                                                f'{zone.state.policy}.', 409)
            if not zone.is_leaving:
                return None
            if not zone.domain.has_signer:
                begin(tx, zone.domain, now)
                return None
            with_ds = [key for key in zone.keys_in_zone if key.role is not KeyRole.ZSK]
            if len(with_ds) == 1 and with_ds[0].state in (KeyState.DS_SEEN, KeyState.ACTIVE):
                # The parent may have removed the DS.
                with_ds = [dataclasses.replace(with_ds[0], state=KeyState.READY, ready_at=now)]
                zone_signing.save_keys(tx, with_ds, now)
            return {'state': key_states.zone_state(with_ds, False, {}), 'since': now, 'ds_seen': {}, 'why': None,
                    'serial': None}
        return self._change(context, domain_id, go_on, begin)

    def disable(self, context: Context, domain_id: str, force: bool = False) -> SignedZone | None:
        """Have a zone unsigned once nothing relies on its signatures; what it waits for, None if it is done.

        :param force: at once, without waiting for the parent to remove the DS, or for caches
        """
        def leave(tx: Tx, zone: SignedZone, now: datetime) -> Changes:
            if zone.is_leaving and (not force or zone_signing.is_forced(zone.state)):
                return None
            return {'state': SigningState.DS_LEAVING, 'since': now, 'serial': None,
                    'ds_seen': _said(zone_signing.FORCED, context, now, ()) if force else {}}
        try:
            return self._change(context, domain_id, leave)
        except NotSigned:
            return None

    def roll(self, context: Context, domain_id: str, role: str) -> SignedZone:
        """Have a new key follow the active one of a role."""
        def follow(tx: Tx, zone: SignedZone, now: datetime) -> Changes:
            states = {key.state for key in zone.keys if key.role == role}
            if not zone.is_leaving and KeyState.ACTIVE in states and states & key_states.FOLLOWING:
                return None
            if role not in {*KeyRole}:
                raise InvalidField(field='role', why='KSK, ZSK or CSK')
            _refuse_following(zone, KeyRole(role))
            made = self._signer.make_key(zone.domain.name, KeyRole(role), zone.state.algorithm,
                                         {key.tag for key in zone.keys})
            zone_signing.add_keys(tx, zone.domain.id, [made], now)
            return {}
        return self._change(context, domain_id, follow)

    def confirm_ds(self, context: Context, domain_id: str, present: bool) -> SignedZone:
        """Take it that every server of the parent has the DS, or none has."""
        def confirm(tx: Tx, zone: SignedZone, now: datetime) -> Changes:
            if present and not zone.ds:
                why = 'is to have no DS any more: say that it is gone (--gone, "present": false)' if zone.is_leaving \
                    else 'has no DS yet that its parent could have: not all servers and caches have its keys'
                raise Refused('nothing_offered', f'The zone {zone.domain.name} {why}.', 409)
            return {'ds_seen': _said(zone_signing.CONFIRMED, context, now, zone.ds if present else ())}
        return self._change(context, domain_id, confirm)

    def skip_server(self, context: Context, domain_id: str, server: str, reason: str | None = None) -> SignedZone:
        """Wait no more for a server, by its label, or one of the parent's; without a reason, wait for it again."""
        server = fields.text('server', server, 255)
        reason = None if reason is None else fields.text('reason', reason, 255)

        def skip(tx: Tx, zone: SignedZone, now: datetime) -> Changes:
            parent = parent_ds.own_parent(tx, zone.domain, zone.policy)
            labels = {one.label for one in pool_servers.of_pool(tx, zone.domain.pool_name).servers}.union(
                (name for name in zone.state.ds_seen if not zone_signing.is_said(name)), parent.ds, zone.state.skipped)
            if server not in labels:
                raise InvalidField(field='server', why=f'it is none of {", ".join(sorted(labels))}')
            skipped = {**zone.state.skipped, server: reason}
            return {'skipped': {label: why for label, why in skipped.items() if why is not None}}
        return self._change(context, domain_id, skip)

    def resume(self, context: Context, domain_id: str, ds: Mapping[Endpoint, Sequence[str] | None],
               dnskeys: Collection[bytes] | None, force: bool = False) -> SignedZone:
        """Sign a zone anew that is held since the database was restored, if its keys are those that are relied on.

        :param ds: the DS records that each server of the parent has, as text; None for one that did not answer
        :param dnskeys: the rdata of the DNSKEY records that the zone's servers have; None when one did not answer
        :param force: whatever these are
        :raises Refused: when the database lacks a key
        """
        def resume(tx: Tx, zone: SignedZone, now: datetime) -> Changes:
            if not zone.is_held:
                raise Refused('not_held', f'The signing of {zone.domain.name} is not held.', 409)
            if not force and (why := _unfit(zone, ds, dnskeys)):
                raise Refused('keys_differ', f'The signing of {zone.domain.name} is still held: {why}.', 409)
            return {'prepared_to': '', 'why': 'its signatures are being renewed'}
        return self._change(context, domain_id, resume, or_held=True)

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

        def read(domain: Domain, roles: Sequence[KeyRole], now: datetime) -> list[tuple[SigningKey, bytes]]:
            imported = [_read(domain, private, public, roles, now) for private, public in files]
            LOG.info('%s: %s imports the keys %s', domain.name, context.user, [key.tag for key, _ in imported])
            return imported

        def begin(tx: Tx, domain: Domain, now: datetime) -> None:
            former = zone_signing.keys_of(tx, [domain.id])[domain.id]
            roles = key_states.roles_of(former, zone_signer.policy_of(self._signer.policies, policy))
            imported = read(domain, roles, now)
            active = [key.role for key, _ in imported if key.state is KeyState.ACTIVE]
            if {key.role for key, _ in imported} != set(roles) or len(active) > len(set(active)):
                raise Refused('keys_incomplete', f'By the policy {policy} the keys of {domain.name} have to be '
                                                 f'{" and ".join(roles)}, one of each that is active; end a rollover '
                                                 'where it was begun.', 409)
            if len({key.algorithm for key, _ in imported}) != 1:
                raise Refused('other_algorithm', f'The keys of {domain.name} have to be of one algorithm.', 409)
            self._store(tx, domain, former, imported, now)
            self._begin(tx, domain, policy, now, imported[0][0].algorithm)

        def follow(tx: Tx, zone: SignedZone, now: datetime) -> Changes:
            imported = read(zone.domain, key_states.roles_of(zone.keys, zone.policy), now)
            if zone.is_held:
                active = {key.role for key, _ in imported if key.state is KeyState.ACTIVE}
                zone_signing.save_keys(tx, [
                    dataclasses.replace(key, state=KeyState.RETIRING, retire_at=now)
                    for key in zone.keys if key.state is KeyState.ACTIVE and key.role in active], now)
                self._store(tx, zone.domain, zone.keys, imported, now)
                return None
            imported = [(SigningKey(key.id, key.role, key.algorithm, key.tag, key.public), private)
                        for key, private in imported]  # without the life that it had elsewhere
            for number, (key, _) in enumerate(imported):
                _refuse_following(zone._replace(keys=[*zone.keys, *(one for one, _ in imported[:number])]), key.role)
                if key.algorithm != zone.state.algorithm:
                    raise Refused('other_algorithm', f'The keys of {zone.domain.name} are of algorithm '
                                                     f'{zone.state.algorithm}, and the new {key.role} is of algorithm '
                                                     f'{key.algorithm}.', 409)
            self._store(tx, zone.domain, zone.keys, imported, now)
            return {}
        return self._change(context, domain_id, follow, begin, or_held=True)

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

    def _change(self, context: Context, domain_id: str, work: Callable[[Tx, SignedZone, datetime], Changes],
                begin: Callable[[Tx, Domain, datetime], None] | None = None, or_held: bool = False) -> SignedZone:
        """Do what a request is for, and what is due then.

        :param work: for a zone that is to be signed
        :param begin: for another one; None where there is nothing to do for it
        :param or_held: whether the signing may be held
        """
        domain_id = fields.domain_id(domain_id)
        transactions.run(self._storage, self._changed, context, domain_id, work, begin, or_held, self._storage.now())
        self._key_events.advance_or_note(domain_id, key_events.IN_REQUEST)
        return self.show(context, domain_id)

    def _changed(self, tx: Tx, context: Context, domain_id: str, work: Callable[[Tx, SignedZone, datetime], Changes],
                 begin: Callable[[Tx, Domain, datetime], None] | None, or_held: bool, now: datetime) -> None:
        domain, _ = transactions.lock_domain(tx, context, domain_id)
        if domain.needs_approval and not context.may_approve:
            raise Forbidden(what=f'change how {domain.name} is signed',
                            why='its changes need approval, so somebody who may approve changes has to')
        if begin is not None and zone_signing.state_of(tx, domain.id) is None:
            begin(tx, domain, now)
            return
        zone = self._signer.zone(tx, domain)
        if zone.is_held and not or_held:
            raise Refused('signing_held', f'The signing of {domain.name} is held: {zone.state.why}.', 409)
        changes = work(tx, zone, now)
        if changes is not None:
            zone_signing.save_state(tx, dataclasses.replace(zone.state, next_event_at=now, **changes), now)

    def _show(self, tx: Tx, context: Context, domain_id: str) -> SignedZone:
        zone = self._signer.zone(tx, queries.own_domain(tx, context, domain_id))
        zone = zone._replace(keys=_not_removed(zone))
        parent = parent_ds.own_parent(tx, zone.domain, zone.policy)
        steps = key_states.plan(zone.keys, zone.policy, key_events.facts_of(tx, zone, parent), self._storage.now())
        why = '; '.join(filter(None, [zone.state.why, _differs(zone)])) or None
        return zone._replace(steps=steps, state=dataclasses.replace(zone.state, why=why))

    def _begin(self, tx: Tx, domain: Domain, policy_name: str, now: datetime, algorithm: int | None = None) -> None:
        """Have a zone signed, with keys of an algorithm if not with that of the policy."""
        policy = zone_signer.policy_of(self._signer.policies, policy_name)
        _refuse_unfit(tx, domain, policy)
        zone_signing.save_state(tx, ZoneSigning(domain.id, policy_name, algorithm or policy.algorithm_number,
                                                policy.denial, now, next_event_at=now), now)
        # From now on its changes concern the signer, and the SOA stays as it is.
        domains.save(tx, dataclasses.replace(domain, soa_names=zone_signer.soa_names(
            pools.name_servers(tx, domain.pool_id), domain)))

    def _store(self, tx: Tx, domain: Domain, zone_keys: Sequence[SigningKey],
               imported: Sequence[tuple[SigningKey, bytes]], now: datetime) -> None:
        """Add keys, each with its private part, to those that a zone has or once had."""
        for key, private in imported:
            former = next((other for other in zone_keys if other.public == key.public), None)
            if any(other.tag == key.tag and other is not former and other.state is not KeyState.REMOVED
                   for other in zone_keys):
                raise Refused('key_tag_present', f'The zone {domain.name} has another key with the tag {key.tag}; make '
                                                 'another one, as signatures name their keys by the tag.', 409)
            if former is None:
                zone_signing.add_keys(tx, domain.id, [(key, self._signer.seal(key.id, private))], now)
            elif former.state is KeyState.REMOVED and former.role is key.role:
                zone_signing.save_keys(tx, [dataclasses.replace(key, id=former.id)], now)
            else:
                raise Refused('key_present', f'The zone {domain.name} has the key {key.tag} already.', 409)
            zone_keys = [*(other for other in zone_keys if other is not former), key]

    def _export(self, tx: Tx, context: Context, domain_id: str) -> list[tuple[str, str, str]]:
        zone = self._signer.zone(tx, queries.own_domain(tx, context, domain_id))
        domain, zone_keys = zone.domain, _not_removed(zone)
        if in_token := [f'{key.tag} ({key.token_uri})' for key in zone_keys if key.token_uri is not None]:
            raise Refused('key_in_token', f'The keys of {domain.name} cannot be exported: {", ".join(in_token)} is '
                                          'in a token, which gives no private key away.', 409)
        private = self._signer.private_parts(tx, [key.id for key in zone_keys])
        LOG.info('%s: %s exports the keys %s', domain.name, context.user, [key.tag for key in zone_keys])
        return [keys.bind_files(domain.name, key, private[key.id]) for key in zone_keys]


def refuse_relied_on(tx: Tx, domain: Domain, what: str) -> None:
    """Refuse what would make a signed zone go while the parent may have its DS: resolvers would take it for forged."""
    state = zone_signing.state_of(tx, domain.id) if domain.is_signed else None
    if state is not None and state.state in RELIED_ON:
        raise Refused('ds_at_parent', f'The zone {domain.name} cannot be {what}: it is signed, and its parent may have '
                                      'its DS, so that resolvers would refuse all answers below it. Disable signing '
                                      'first.', 409)


def _refuse_unfit(tx: Tx, domain: Domain, policy: SigningPolicy) -> None:
    """Refuse a domain that cannot be signed."""
    if domain.is_secondary:
        raise Refused('secondary_zone', f'The zone {domain.name} is a secondary zone: who runs its masters signs it.',
                      409)
    if domain.release_state is not None:
        raise Refused('release_runs', f'A change of {domain.name} is being released in stages; sign the zone when that '
                                      'has ended.', 409)
    own = recordsets.one_of_types(tx, domain.id, zone_signer.OWN_TYPES)
    if own is not None:
        raise Refused('has_signatures', f'The zone {domain.name} has the recordset {own.name} {own.type}, as signers '
                                        'make them; delete such recordsets first.', 409)
    if policy.denial == 'NSEC3' and len(canonical.name_wire(domain.name)) > 255 - 33:
        raise Refused('name_too_long', f'With a label of 32 characters before {domain.name}, the names of NSEC3 '
                                       'records (RFC 5155) would be too long; take a policy of NSEC.', 409)
    zone_signer.refuse_pool(tx, domain)


def _said(prefix: str, context: Context, now: datetime, ds: Sequence[str]) -> dict[str, tuple[str, Sequence[str]]]:
    """The DS records that all servers of a parent have, as a user says."""
    return {f'{prefix}{context.user or "an administrator"}': (now.isoformat(), ds)}


def _not_removed(zone: SignedZone) -> list[SigningKey]:
    return [key for key in zone.keys if key.state is not KeyState.REMOVED]


def _refuse_following(zone: SignedZone, role: KeyRole) -> None:
    """Refuse a key that cannot follow the active one of its role."""
    if zone.is_leaving or not any(key.role == role and key.state is KeyState.ACTIVE for key in zone.keys):
        raise Refused('no_active_key', f'The zone {zone.domain.name} has no active {role} that could be followed.', 409)
    if any(key.role == role and key.state is KeyState.MADE for key in zone.keys):
        raise Refused('key_waits', f'A new {role} of {zone.domain.name} waits for the rollover before it.', 409)


def _differs(zone: SignedZone) -> str:
    """What of a policy that was changed since does not apply to a zone that is signed by it."""
    state, policy, has_csk = zone.state, zone.policy, any(key.role is KeyRole.CSK for key in zone.keys)
    parts = [f'{what} = {new}' for what, new, is_same in (
        ('algorithm', policy.algorithm, policy.algorithm_number == state.algorithm),
        ('denial', policy.denial, policy.denial == state.denial),
        ('keys', policy.keys, not zone.keys or has_csk is (policy.keys == 'csk'))) if not is_same]
    return (f'it is signed as when that was turned on, without {", ".join(parts)} of the policy: for these, disable '
            'signing, and enable it again') if parts else ''


def _unfit(zone: SignedZone, ds: Mapping[Endpoint, Sequence[str] | None], dnskeys: Collection[bytes] | None) -> str:
    """Why a zone would not stay valid with its keys; empty if it would."""
    zone_keys = zone.keys_in_zone
    if dnskeys is None:
        return 'not all of its servers tell which keys they have'
    if lacking := sorted(keys.tag_of(dnskey) for dnskey in {*dnskeys} - {key.public for key in zone_keys}):
        return f'its servers have the keys {lacking}, which the database lacks: import them'
    if unserved := [key.tag for key in zone_keys if key.state is KeyState.ACTIVE and key.public not in dnskeys]:
        return f'the keys {unserved} are active in the database, and its servers do not have them'
    texts = set().union(*(keys.ds_texts(zone.domain.name, key.public) for key in zone_keys
                          if key.role is not KeyRole.ZSK and key.state is not KeyState.RETIRING))
    if not ds or any(records is None or records and texts.isdisjoint(records) for records in ds.values()):
        return 'not every server of the parent has the DS of one of its keys'
    return ''


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
