"""The records of the signer, keys of zones, and how far their signing has come, in each kind of database."""

from __future__ import annotations

import base64
import dataclasses
from datetime import datetime, timedelta, timezone

import pytest

from designate_pool.errors import UnreadableSecret
from designate_pool.model import (Freeze, KeyRole, KeyState, SignedDifference, SignedRecord, SigningKey, SigningState,
                                  Status, ZoneSigning, new_id)
from designate_pool.storage.reporting import purge
from designate_pool.storage.signing import signed_records, zone_signing
from designate_pool.storage.sql import secrets
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains, pools, recordsets, zone_keys
from designate_pool.storage.sql.secrets import SecretCipher
from designate_pool.storage.zones import domains as domain_store
from testing.databases import count_statements
from testing.zones import EXAMPLE, insert_zone
from tests.fixtures.signing import TAGS, chain_key, link, of_zone, signature

NOW = datetime(2026, 11, 29, 12, tzinfo=timezone.utc)
OLD, NEW = (base64.urlsafe_b64encode(bytes([number]) * 32).decode() for number in (1, 2))


def zone(storage: Storage, label: str = 'a') -> str:
    return storage.run(lambda tx: insert_zone(tx, EXAMPLE, name=f'{label}.example.'))


def put(storage: Storage, domain_id: str, *added: SignedRecord, gone: tuple[SignedRecord, ...] = ()) -> None:
    storage.run(lambda tx: signed_records.replace(tx, {domain_id: SignedDifference(gone, added)}))


def rows(storage: Storage, domain_id: str) -> set[SignedRecord]:
    return set(storage.run(lambda tx: of_zone(tx, domain_id)))


def test_records_are_replaced_by_what_they_say(storage: Storage) -> None:
    key, other = zone(storage), zone(storage, 'b')
    first, second = (signature('a.example.', rtype, 'a.example.', 2000) for rtype in ('A', 'NS'))
    put(storage, key, first, second)
    put(storage, other, first)
    renewed = signature('a.example.', 'A', 'a.example.', 3000)
    with count_statements(storage) as counter:
        put(storage, key, renewed, gone=(first,))
    assert counter.total() == 2
    assert rows(storage, key) == {second, renewed} and rows(storage, other) == {first}
    with pytest.raises(ValueError, match='not there'):
        put(storage, key, gone=(first,))
    assert set(storage.read(signed_records.signed_at, key, ['a.example.', 'www.a.example.'])) == {second, renewed}


def test_signatures_are_found_by_when_they_expire_and_by_their_key(storage: Storage) -> None:
    key = zone(storage)
    made = [signature(f'{number}.a.example.', 'A', 'a.example.', 1000 + number, tag=TAGS[number % 2])
            for number in range(4)]
    put(storage, key, *made, link('0.a.example.', 'a.example.'))
    assert storage.read(signed_records.due, key, 1003, 9000, 10) == made[:3]
    assert storage.read(signed_records.due, key, 1003, 9000, 2) == made[:2]
    assert storage.read(signed_records.due, key, 1001, 1002, 10) == made[:1]
    assert storage.read(signed_records.due, key, 1000, 1002, 10) == made[3:4]
    assert set(storage.read(signed_records.by_key, key, TAGS[1], 10)) == {made[1], made[3]}
    assert storage.read(signed_records.expiries, [key, zone(storage, 'b')]) == {key: (1000, 1003)}


def test_predecessors_of_many_names_are_one_statement(storage: Storage) -> None:
    keys = [zone(storage, label) for label in 'abc']
    links = {name: link(name, 'a.example.')
             for name in ('a.example.', 'b.a.example.', 'd.a.example.', 'x.d.a.example.')}
    for key in keys[:2]:
        put(storage, key, *links.values(), signature('c.a.example.', 'A', 'a.example.', 1))
    asked = [chain_key(f'{label}.a.example.') for label in ('c', 'a', 'z', 'd')]
    with count_statements(storage) as counter:
        before = storage.read(signed_records.predecessors, keys[0], asked)
    assert counter.total() == 1
    assert before == {asked[0]: links['b.a.example.'], asked[1]: links['a.example.'],
                      asked[2]: links['x.d.a.example.'], asked[3]: links['b.a.example.']}
    least = b'\1'
    assert storage.read(signed_records.predecessors, keys[0], [least]) == {least: links['x.d.a.example.']}
    assert storage.read(signed_records.predecessors, keys[2], [least]) == {}
    many = [b'b' + bytes([number]) for number in range(250)]
    assert len(storage.read(signed_records.predecessors, keys[0], many)) == 250


def test_what_users_have_at_names_and_below_them_is_read(storage: Storage) -> None:
    key = zone(storage)
    names = {'a.example.', 'www.a.example.'}
    read = storage.read(signed_records.rrsets_at, key, names)
    types = {rtype for _, rtype, _, _ in read}
    assert {name for name, _, _, _ in read} <= names and 'NS' in types and 'SOA' not in types
    below = storage.read(signed_records.names_below, key, 'a.example.', 100)
    assert below and all(name.endswith('.a.example.') for name in below) and len(below) == len(set(below))
    assert len(storage.read(signed_records.names_below, key, 'a.example.', 1)) == 1
    assert storage.read(signed_records.names_below, key, below[0], 1) == []
    first, second, *_ = below
    storage.run(lambda tx: tx.execute(recordsets.update().where(recordsets.c.name == first).values(
        name=f'x\\.{second}')) and None)
    assert storage.read(signed_records.names_below, key, second, 1) == []
    storage.run(lambda tx: tx.execute(recordsets.update().where(recordsets.c.name == f'x\\.{second}').values(
        name=f'x\\\\.{second}')) and None)
    assert storage.read(signed_records.names_below, key, second, 1) == [f'x\\\\.{second}']


def state(domain_id: str, **values: object) -> ZoneSigning:
    return dataclasses.replace(ZoneSigning(domain_id, 'default', 13, 'NSEC', NOW), **values)  # type: ignore[arg-type]


def test_due_zones_are_claimed_once_and_not_those_of_frozen_pools(storage: Storage) -> None:
    keys = [zone(storage, label) for label in 'abcd']
    due: list[dict[str, object]] = [{'next_event_at': NOW}, {'resign_at': NOW},
                                    {'next_event_at': NOW + timedelta(9)}, {}]
    for key, times in zip(keys, due):
        storage.run(zone_signing.save_state, state(key, **times), NOW)
    until = NOW + timedelta(minutes=1)
    claimed = storage.run(zone_signing.claim_due, 'one', NOW, until, 10)
    assert {claimed_state.domain_id for claimed_state in claimed} == set(keys[:2])
    assert storage.run(zone_signing.claim_due, 'two', NOW, until, 10) == []
    storage.run(zone_signing.release, keys[:1], 'one')
    again = storage.run(zone_signing.claim_due, 'two', NOW, until, 10)
    assert [claimed_state.domain_id for claimed_state in again] == keys[:1]
    storage.run(zone_signing.release, keys[:1], 'two')
    ahead = NOW + timedelta(300)
    assert len(storage.run(zone_signing.claim_due, 'with a wrong clock', ahead, ahead + timedelta(minutes=1), 10)) == 3
    again = storage.run(zone_signing.claim_due, 'two', NOW, until, 10)
    assert {claimed_state.domain_id for claimed_state in again} == set(keys[:2])
    storage.run(zone_signing.release, keys[:1], 'two')
    freeze = Freeze(new_id(), 'an incident', NOW)
    storage.run(lambda tx: tx.execute(pools.update().values(freeze_id=freeze.id, freeze=freeze.text)) and None)
    assert storage.run(zone_signing.claim_due, 'two', NOW, until, 10) == []


def test_how_far_the_signing_of_a_zone_has_come_is_kept(storage: Storage) -> None:
    key = zone(storage)
    assert storage.read(zone_signing.state_of, key) is None
    later = state(key, state=SigningState.DS_WAIT, why='waits for 192.0.2.3', skipped={'x': 'it is gone'},
                  ds_seen={'192.0.2.53': ('2026-11-29', ['1 13 2 00'])}, resign_at=NOW + timedelta(1))
    for each in (state(key), later):
        storage.run(zone_signing.save_state, each, NOW)
    read = storage.read(zone_signing.state_of, key)
    assert read is not None and dataclasses.replace(read, ds_seen=later.ds_seen) == later
    assert [list(value) for value in read.ds_seen.values()] == [['2026-11-29', ['1 13 2 00']]]
    storage.run(zone_signing.delete_state, key)
    assert storage.read(zone_signing.states_of, [key]) == {}


def test_private_keys_are_encrypted_each_for_itself_and_rotated(storage: Storage) -> None:
    domain_id, other = zone(storage), zone(storage, 'b')
    keys = [SigningKey(new_id(), role, 13, tag, b'\1\1\3\15' + bytes(64))
            for role, tag in zip((KeyRole.KSK, KeyRole.ZSK), TAGS)]
    old, both, new = SecretCipher([OLD]), SecretCipher([NEW, OLD]), SecretCipher([NEW], '[x] file')
    secret = base64.b64encode(bytes(1300)).decode()  # as long as one of RSA with 2048 bits
    for number, key in enumerate(keys):
        storage.run(zone_signing.add_keys, domain_id, [(key, old.seal(secret, key.id))], NOW + timedelta(number))
    in_token = SigningKey(new_id(), KeyRole.CSK, 13, 1, b'\1', token_uri='pkcs11:token=zone')
    storage.run(zone_signing.add_keys, domain_id, [(in_token, None)], NOW + timedelta(2))
    assert storage.read(zone_signing.keys_of, [domain_id, other]) == {domain_id: [*keys, in_token], other: []}
    changed = dataclasses.replace(keys[0], state=KeyState.ACTIVE, active_at=NOW)
    storage.run(zone_signing.save_keys, [changed, keys[1]], NOW)
    assert storage.read(zone_signing.keys_of, [domain_id])[domain_id] == [changed, keys[1], in_token]

    ids, private = sorted(key.id for key in keys), zone_keys.c.private
    assert storage.run(secrets.rotate, private, both, '', 1) == [(ids[0], None)]
    assert storage.run(secrets.rotate, private, both, ids[0], 9) == [(ids[1], None)]
    texts = storage.read(zone_signing.private_of, [*ids, in_token.id])
    assert sorted(texts) == ids and {new.reveal(text, key) for key, text in texts.items()} == {secret}
    assert not any(secret[:50] in text for text in texts.values())
    with pytest.raises(UnreadableSecret, match=r'no key in \[x\] file'):
        new.reveal(texts[ids[0]], ids[1])


def test_all_of_a_deleted_zone_is_purged_with_it_page_by_page(storage: Storage) -> None:
    key = zone(storage)
    put(storage, key, *(signature(f'{number}.a.example.', 'A', 'a.example.', 1) for number in range(30)))
    storage.run(zone_signing.save_state, state(key), NOW)
    in_token, leaving = (SigningKey(new_id(), KeyRole.CSK, 13, 1, b'\1', token_uri='pkcs11:x') for _ in range(2))
    storage.run(zone_signing.add_keys, key, [(SigningKey(new_id(), KeyRole.CSK, 13, 1, b'\1'), 'text'),
                                             (in_token, None)], NOW)
    storage.run(zone_signing.add_keys, zone(storage, 'b'), [(leaving, None), (dataclasses.replace(
        leaving, id=new_id()), None)], NOW)
    storage.run(zone_signing.save_keys, [dataclasses.replace(leaving, state=KeyState.REMOVED, remove_at=NOW)], NOW)
    assert storage.read(zone_signing.unused_in_token) == {leaving.id: 'pkcs11:x'}
    storage.run(lambda tx: tx.execute(domains.update().where(domains.c.id == key).values(
        deleted=key, status=Status.DELETED, deleted_at=NOW)) and None)
    storage.run(domain_store.mark_purged, [key])
    in_token = dataclasses.replace(in_token, state=KeyState.REMOVED)
    assert storage.run(purge.purge_contents, [key], 20) == 20 and len(rows(storage, key)) == 10
    assert storage.run(purge.purge_contents, [key], 1000) > 10
    assert rows(storage, key) == set() and storage.read(zone_signing.keys_of, [key]) == {key: [in_token]}
    assert storage.read(zone_signing.state_of, key) is None
    # What is in a token stays until that has deleted it.
    assert storage.run(zone_signing.expire_keys, NOW + timedelta(1), 10) == 0
    assert storage.read(zone_signing.unused_in_token) == {leaving.id: 'pkcs11:x', in_token.id: 'pkcs11:x'}
    for each in (leaving, in_token):
        storage.run(zone_signing.forget_token, each.id)
    assert storage.read(zone_signing.unused_in_token) == {}
    assert storage.run(zone_signing.expire_keys, NOW + timedelta(1), 10) == 1
    storage.run(purge.purge_contents, [key], 20)
    assert storage.read(zone_signing.keys_of, [key]) == {key: []}
