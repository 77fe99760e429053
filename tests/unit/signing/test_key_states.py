"""The life of keys: by situations, and by walks at random on which caches never have what cannot be validated."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

import pytest

from designate_pool.model import KeyRole, KeyState, SigningKey, SigningState
from designate_pool.settings import SigningPolicy
from designate_pool.signing import key_states, keys
from designate_pool.signing.key_states import KeyFacts
from tests.unit.signing.zones import APEX

T0 = datetime(2030, 1, 1, tzinfo=timezone.utc)
POLICY = SigningPolicy(zsk_lifetime=5000, dnskey_ttl=100, propagation_delay=10, parent_ds_ttl=200)
CSK = dataclasses.replace(POLICY, keys='csk')
FACTS = KeyFacts(APEX, serial=5, servers={'a': 5, 'b': 6}, largest_ttl=300, soa_minimum=400)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def key(role: str, state: KeyState, tag: int = 0, **times: datetime) -> SigningKey:
    public = (256 if role == 'ZSK' else 257).to_bytes(2, 'big') + bytes((3, 13)) + tag.to_bytes(64, 'big')
    return SigningKey(f'{role}{tag}', KeyRole(role), 13, tag, public, state, **times)


def ds_of(one: SigningKey, digest: int = 2) -> str:
    return keys.ds_text(keys.ds(APEX, one.public, digest))


def told(held: Iterable[SigningKey], facts: KeyFacts = FACTS, policy: SigningPolicy = POLICY,
         now: float = 0) -> list[str]:
    """The plan in short: the key, what becomes of it, when in seconds, and what it waits for."""
    lines = []
    for step in key_states.plan(list(held), policy, facts, at(now)):
        name = step.former.id if step.former else f'new {step.role}'
        becomes = f'-> {step.key.state if step.key and step.former and step.key.state != step.former.state else "."}'
        when = f' at {(step.at - T0).total_seconds():.0f}' if step.at else ''
        lines.append(f'{name} {becomes}{when}{" now" if step.is_due else ""}'
                     f'{": " + step.waits_for if step.waits_for else ""}')
    return lines


ZSK, KSK = key('ZSK', KeyState.ACTIVE, 1, active_at=T0), key('KSK', KeyState.ACTIVE, 2, active_at=T0)
NEW_ZSK, NEW_KSK = key('ZSK', KeyState.PUBLISHED, 3, publish_at=T0), key('KSK', KeyState.PUBLISHED, 4, publish_at=T0)
BEHIND = FACTS._replace(servers={'a': 4, 'b': 5, 'c': None})


def to(one: SigningKey, state: KeyState, **times: datetime) -> SigningKey:
    return dataclasses.replace(one, state=state, **times)  # type: ignore[arg-type]


def had(one: SigningKey, **ttls: int) -> SigningKey:
    return dataclasses.replace(one, longest_ttls=ttls)


@pytest.mark.parametrize(('held', 'changes', 'now', 'expected'), [
    ([], {}, 0, ['new KSK -> . at 0 now', 'new ZSK -> . at 0 now']),
    ([to(ZSK, KeyState.MADE), to(KSK, KeyState.MADE)], {}, 0,
     ['ZSK1 -> active at 0 now', 'KSK2 -> published at 0 now']),
    # A new zone: caches may have it without signatures, up to its TTLs.
    ([ZSK, NEW_KSK], {}, 7, ['ZSK1 -> . at 5000', 'KSK4 -> . at 417 now']),
    ([ZSK, NEW_KSK], {'servers': BEHIND.servers}, 7,
     ['ZSK1 -> . at 5000', 'KSK4 -> .: a, c to serve serial 5']),
    ([ZSK, NEW_KSK], {'servers': BEHIND.servers, 'skipped': {'a', 'c'}}, 7,
     ['ZSK1 -> . at 5000', 'KSK4 -> . at 417 now']),
    ([ZSK, to(NEW_KSK, KeyState.PUBLISHED, ready_at=at(417))], {}, 416, ['ZSK1 -> . at 5000', 'KSK4 -> . at 417']),
    ([ZSK, to(NEW_KSK, KeyState.PUBLISHED, ready_at=at(417))], {}, 417,
     ['ZSK1 -> . at 5000', 'KSK4 -> ready at 417 now']),
    ([ZSK, to(NEW_KSK, KeyState.PUBLISHED, ready_at=at(417))], {'servers': BEHIND.servers}, 417,
     ['ZSK1 -> . at 5000', 'KSK4 -> . now: a, c to serve serial 5']),
    # The DS at every server of the parent.
    ([ZSK, to(NEW_KSK, KeyState.READY)], {}, 0, ['ZSK1 -> . at 5000', 'KSK4 -> .: the DS of the key 4 at the parent']),
    ([ZSK, to(NEW_KSK, KeyState.READY)], {'ds': {'p': [ds_of(NEW_KSK)], 'q': [ds_of(KSK)], 'r': None}}, 0,
     ['ZSK1 -> . at 5000', 'KSK4 -> .: the DS of the key 4 at q, r']),
    ([ZSK, to(NEW_KSK, KeyState.READY)], {'ds': {'p': [ds_of(NEW_KSK).upper(), 'x']}}, 3,
     ['ZSK1 -> . at 5000', 'KSK4 -> ds-seen at 3 now']),
    # A parent may make it of the key by itself, with another digest.
    ([ZSK, to(NEW_KSK, KeyState.READY)], {'ds': {'p': [ds_of(NEW_KSK, 4)]}}, 3,
     ['ZSK1 -> . at 5000', 'KSK4 -> ds-seen at 3 now']),
    # Two KSKs: the former one goes when caches have the DS of the new one.
    ([KSK, to(NEW_KSK, KeyState.DS_SEEN, active_at=at(9)), ZSK], {}, 8,
     ['KSK2 -> .', 'KSK4 -> . at 9', 'ZSK1 -> . at 5000']),
    ([KSK, to(NEW_KSK, KeyState.DS_SEEN, active_at=at(9)), ZSK], {}, 9,
     ['KSK2 -> .', 'KSK4 -> active at 9 now', 'KSK2 -> retiring at 9 now', 'ZSK1 -> . at 5000']),
    ([to(KSK, KeyState.RETIRING), to(NEW_KSK, KeyState.ACTIVE), ZSK], {}, 9,
     ['KSK2 -> removed at 9 now', 'KSK4 -> .', 'ZSK1 -> . at 5000']),
    # A ZSK at the end of its life, published, then used, then no longer in caches.
    ([ZSK, KSK], {}, 5000, ['ZSK1 -> . at 5000', 'new ZSK -> . at 5000 now', 'KSK2 -> .']),
    ([ZSK, to(NEW_ZSK, KeyState.MADE), KSK], {}, 5000,
     ['ZSK1 -> . at 5000', 'ZSK3 -> published at 5000 now', 'KSK2 -> .']),
    ([ZSK, NEW_ZSK, KSK], {}, 1, ['ZSK1 -> . at 5000', 'ZSK3 -> . at 111 now', 'KSK2 -> .']),
    ([ZSK, to(NEW_ZSK, KeyState.READY), KSK], {}, 111,
     ['ZSK1 -> . at 5000', 'ZSK3 -> active at 111 now', 'ZSK1 -> retiring at 111 now', 'KSK2 -> .']),
    ([to(ZSK, KeyState.RETIRING), to(NEW_ZSK, KeyState.ACTIVE), KSK], {'signatures': {1: 7}}, 111,
     ['ZSK1 -> .: signatures by the key 1 to be renewed', 'ZSK3 -> .', 'KSK2 -> .']),
    ([to(ZSK, KeyState.RETIRING), to(NEW_ZSK, KeyState.ACTIVE), KSK], {}, 111,
     ['ZSK1 -> . at 421 now', 'ZSK3 -> .', 'KSK2 -> .']),
    ([to(ZSK, KeyState.RETIRING, remove_at=at(421)), to(NEW_ZSK, KeyState.ACTIVE), KSK], {}, 421,
     ['ZSK1 -> removed at 421 now', 'ZSK3 -> .', 'KSK2 -> .']),
    ([to(ZSK, KeyState.RETIRING), to(NEW_ZSK, KeyState.ACTIVE), KSK, to(NEW_ZSK, KeyState.MADE, id='Z')], {}, 111,
     ['ZSK1 -> . at 421 now', 'ZSK3 -> .', 'KSK2 -> .', 'Z -> .: the rollover of the key 1']),
    # Turned off: the DS leaves first.
    ([ZSK, KSK], {'is_leaving': True}, 0, ['ZSK1 -> .: the DS to be gone at the parent',
                                           'KSK2 -> .: the DS to be gone at the parent']),
    ([ZSK, KSK], {'is_leaving': True, 'ds': {'p': [], 'q': [ds_of(KSK)], 'r': None}}, 0,
     ['ZSK1 -> .: the DS to be gone at q, r', 'KSK2 -> .: the DS to be gone at q, r']),
    ([ZSK, KSK], {'is_leaving': True, 'ds': {'p': []}}, 1, ['ZSK1 -> . at 201 now', 'KSK2 -> . at 201']),
    ([to(ZSK, KeyState.ACTIVE, remove_at=at(201)), KSK], {'is_leaving': True, 'ds': {'p': []}}, 201,
     ['ZSK1 -> removed at 201 now', 'KSK2 -> removed at 201 now']),
    ([ZSK, NEW_KSK], {'is_leaving': True}, 1, ['ZSK1 -> removed at 1 now', 'KSK4 -> removed at 1 now']),
    ([ZSK, NEW_KSK], {'is_leaving': True, 'ds': {'p': ['x']}}, 1, ['ZSK1 -> .: the DS to be gone at p',
                                                                   'KSK4 -> .: the DS to be gone at p']),
    ([ZSK, KSK], {'is_leaving': True, 'is_forced': True, 'ds': {'forced': []}}, 1,
     ['ZSK1 -> removed at 1 now', 'KSK2 -> removed at 1 now']),
    ([to(ZSK, KeyState.ACTIVE, remove_at=at(201)), KSK], {'is_leaving': True, 'is_forced': True, 'ds': {'forced': []}},
     1, ['ZSK1 -> removed at 1 now', 'KSK2 -> removed at 1 now']),
    # Caches have what had a greater TTL than it has now.
    ([had(ZSK, dnskey=900, ds=999), NEW_ZSK, KSK], {}, 1, ['ZSK1 -> . at 5000', 'ZSK3 -> . at 911 now', 'KSK2 -> .']),
    ([had(to(ZSK, KeyState.RETIRING), signed=700), had(to(NEW_ZSK, KeyState.ACTIVE), signed=999), KSK], {}, 111,
     ['ZSK1 -> . at 821 now', 'ZSK3 -> .', 'KSK2 -> .']),
    ([ZSK, had(KSK, ds=900)], {'is_leaving': True, 'ds': {'p': []}}, 1, ['ZSK1 -> . at 901 now', 'KSK2 -> . at 901']),
    # Times that were written when the clock was ahead.
    ([ZSK, to(NEW_KSK, KeyState.PUBLISHED, ready_at=at(9999))], {}, 7, ['ZSK1 -> . at 5000', 'KSK4 -> . at 417 now']),
    ([ZSK, KSK, to(NEW_KSK, KeyState.DS_SEEN, active_at=at(9999))], {}, 7,
     ['ZSK1 -> . at 5000', 'KSK2 -> .', 'KSK4 -> . at 207 now']),
    ([to(ZSK, KeyState.ACTIVE, active_at=at(9999)), KSK], {}, 7, ['ZSK1 -> . at 5007 now', 'KSK2 -> .']),
    # Turned on again before it is off.
    ([to(ZSK, KeyState.ACTIVE, remove_at=at(201)), KSK], {}, 1, ['ZSK1 -> . at 1 now', 'KSK2 -> .']),
])
def test_what_a_key_waits_for(held: list[SigningKey], changes: dict[str, object], now: float,
                              expected: list[str]) -> None:
    assert told(held, FACTS._replace(**changes), POLICY, now) == expected  # type: ignore[arg-type]


def test_the_ds_that_caches_may_have_is_waited_for_with_its_former_ttl() -> None:
    held = [had(KSK, ds=900), to(NEW_KSK, KeyState.READY), ZSK]
    steps = key_states.plan(held, POLICY, FACTS._replace(ds={'p': [ds_of(NEW_KSK)]}), at(3))
    assert [step.key.active_at for step in steps if step.key is not None] == [at(903)]


def test_since_when_a_key_has_its_state() -> None:
    steps = key_states.plan([ZSK, to(KSK, KeyState.MADE)], POLICY, FACTS, at(5))
    assert [step.since for step in steps] == [T0, None]


@pytest.mark.parametrize(('state', 'is_leaving', 'expected'), [
    (KeyState.MADE, False, SigningState.SIGNING), (KeyState.PUBLISHED, False, SigningState.SIGNED),
    (KeyState.READY, False, SigningState.DS_WAIT), (KeyState.DS_SEEN, False, SigningState.SECURE),
    (KeyState.ACTIVE, False, SigningState.SECURE), (KeyState.ACTIVE, True, SigningState.DS_LEAVING),
    (KeyState.REMOVED, True, SigningState.UNSIGNING)])
def test_how_far_a_zone_is(state: KeyState, is_leaving: bool, expected: SigningState) -> None:
    assert key_states.zone_state([to(KSK, state), ZSK], is_leaving) == expected


@pytest.mark.parametrize(('state', 'ds', 'expected'), [
    (KeyState.READY, {}, SigningState.DS_WAIT), (KeyState.PUBLISHED, {'p': ()}, SigningState.DS_WAIT),
    (KeyState.READY, {'p': None, 'q': ('x',)}, SigningState.SECURE), (KeyState.RETIRING, {}, SigningState.SECURE)])
def test_a_rollover_is_secure_with_a_ds_at_the_parent_alone(
        state: KeyState, ds: dict[str, tuple[str, ...] | None], expected: SigningState) -> None:
    assert key_states.zone_state([KSK, to(NEW_KSK, state), ZSK], False, ds) == expected


class Edition(NamedTuple):
    """A version of a zone: the tags of keys in it, of those that sign them, and of those that sign the rest."""

    dnskeys: frozenset[int] = frozenset()
    key_signers: frozenset[int] = frozenset()
    zone_signers: frozenset[int] = frozenset()


class World:
    """A zone, servers that lag behind, a parent whose servers lag behind, and caches that have whatever they served."""

    def __init__(self, policy: SigningPolicy, seed: int) -> None:
        self.policy, self.random, self.now, self.tags = policy, random.Random(seed), 0.0, 10
        self.keys: list[SigningKey] = []
        self.editions, self.by_tag = [Edition()], dict[int, int]()
        self.servers, self.parents = {'a': 0, 'b': 0}, dict.fromkeys('pq', frozenset[int]())
        self.served: dict[Edition, float] = {}
        self.ds_served: dict[frozenset[int], float] = {}
        self.is_leaving = False
        self.states: set[str] = set()

    def step(self) -> None:
        self.now += self.random.choice([1, 5, 30, 150])
        for name in self.servers:
            if self.random.random() < 0.4:
                self.see(self.editions[self.servers[name]], self.policy.propagation_delay)
                self.servers[name] = len(self.editions) - 1
        offered = frozenset(() if self.is_leaving else (one.tag for one in self.offered()))
        for name in self.parents:
            if self.random.random() < 0.2 and (offered or self.is_leaving):
                self.parents[name] = offered
        for number in self.servers.values():
            self.see(self.editions[number])
        for ds in self.parents.values():
            self.ds_served[ds] = self.now
        self.plan()
        self.check()

    def see(self, edition: Edition, later: float = 0) -> None:
        self.served[edition] = max(self.now + later, self.served.get(edition, 0))

    def offered(self) -> list[SigningKey]:
        wanted = [one for one in self.keys if one.role != 'ZSK' and one.state in ('ready', 'ds-seen')]
        return wanted or [one for one in self.keys if one.role != 'ZSK' and one.state == 'active']

    def plan(self) -> None:
        facts = KeyFacts(APEX, len(self.editions) - 1, dict(self.servers), 300, 400, self.by_tag,
                         {name: [ds_of(one) for one in self.keys if one.tag in tags]
                          for name, tags in self.parents.items()}, (), self.is_leaving)
        for step in key_states.plan(self.keys, self.policy, facts, at(self.now)):
            if not step.is_due:
                continue
            if step.former is None:
                self.make(step.role)
            elif step.key is not None:
                self.keys = [step.key if one.id == step.key.id else one for one in self.keys]
        self.states |= {f'{one.role} {one.state}' for one in self.keys}
        self.publish()

    def make(self, role: str) -> None:
        self.tags += 1
        self.keys.append(key(role, KeyState.MADE, self.tags))

    def publish(self) -> None:
        signers = {one.id: one for one in self.keys}
        result = keys.key_set(APEX, self.keys, signers, 100)  # type: ignore[arg-type]
        wanted = frozenset(one.tag for one in result.zone_signers)
        # A part of the signatures is renewed at a time.
        present = self.editions[-1].zone_signers
        partly = wanted | present if wanted and present - wanted and self.random.random() < 0.5 else wanted
        edition = Edition(frozenset(int.from_bytes(public[4:], 'big') for public in result.dnskeys),
                          frozenset(one.tag for one in result.key_signers), partly)
        self.by_tag = dict.fromkeys(partly, 3)
        if edition != self.editions[-1]:
            self.editions.append(edition)

    def check(self) -> None:
        def cached(ttl: float) -> list[Edition]:
            return [edition for edition, last in self.served.items() if last >= self.now - ttl]

        for ds in (ds for ds, last in self.ds_served.items() if ds and last >= self.now - self.policy.parent_ds_ttl):
            for of_keys in cached(100):
                assert ds & of_keys.dnskeys & of_keys.key_signers, (self.now, ds, of_keys)
            assert Edition() not in cached(400), (self.now, ds)
        for of_keys in cached(100):
            for of_data in cached(300):
                assert not of_keys.dnskeys or of_data.zone_signers <= of_keys.dnskeys or \
                    not any(self.ds_served), (self.now, of_keys, of_data)


@pytest.mark.parametrize('seed', range(12))
@pytest.mark.parametrize('policy', [POLICY, CSK], ids=['pair', 'single'])
def test_caches_never_have_what_cannot_be_validated(policy: SigningPolicy, seed: int) -> None:
    world, roles = World(policy, seed), key_states.roles_of((), policy)
    for number in range(1, 900):
        world.step()
        if number % 300 == 150 and not any(one.state == 'made' for one in world.keys):
            world.make(roles[0])
    assert {f'{role} {state}' for role in roles for state in ('published', 'ready', 'active', 'retiring', 'removed')} \
        <= world.states
    world.is_leaving = True
    for _ in range(200):
        world.step()
    assert world.editions[-1] == Edition()


@pytest.mark.parametrize('flaw', ['propagation_delay', 'dnskey_ttl', 'parent_ds_ttl'])
def test_the_walks_see_a_step_that_is_too_early(flaw: str) -> None:
    def walk(seed: int) -> None:
        world = World(POLICY, seed)
        plan = world.plan

        def plan_too_early() -> None:
            world.policy = dataclasses.replace(POLICY, **{flaw: -1000})  # type: ignore[arg-type]
            plan()
            world.policy = POLICY

        world.plan = plan_too_early  # type: ignore[method-assign]
        for number in range(1, 600):
            world.step()
            if number % 200 == 100:
                world.make('KSK')
        world.is_leaving = True
        for _ in range(200):
            world.step()

    with pytest.raises(AssertionError):
        for seed in range(10):
            walk(seed)
