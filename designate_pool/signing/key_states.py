"""The life of keys: what each waits for, and what becomes of it when that has come (RFC 6781 section 4.1, RFC 7583).

The invariant: at any time, whatever caches may have of the zone, its keys and the DS of its parent can be validated
with whatever servers may answer.  So a step waits for every server, however few of them a change needs to be ACTIVE:
one that is a step behind would be bogus, not merely old.  ZSKs are published before they sign; KSKs sign together until
all servers of the parent have the DS of the new one; a CSK does both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from designate_pool.model import KeyRole, KeyState, SigningKey, SigningState
from designate_pool.serial import at_least
from designate_pool.settings import SigningPolicy
from designate_pool.signing import keys as key_records

_OWN_TIMES = {KeyState.PUBLISHED: 'publish_at', KeyState.READY: 'ready_at', KeyState.DS_SEEN: 'ds_seen_at',
              KeyState.ACTIVE: 'active_at', KeyState.RETIRING: 'retire_at', KeyState.REMOVED: 'remove_at'}
#: States of a key between its publication and its use, and after it: one key of a role at a time is in them.
_ROLLING = frozenset({KeyState.PUBLISHED, KeyState.READY, KeyState.DS_SEEN, KeyState.RETIRING})
#: Of one that is to follow the active one.
FOLLOWING = _ROLLING - {KeyState.RETIRING} | {KeyState.MADE}
#: The TTLs of which a key keeps the greatest one.
DNSKEY_TTL, DS_TTL, SIGNED_TTL = 'dnskey', 'ds', 'signed'


class KeyFacts(NamedTuple):
    """What is known of a zone.

    :ivar apex: its name
    :ivar serial: of the version that was the last to change its keys or renew signatures by one that is retiring
    :ivar servers: the serial that each server serves that may answer, by the server's name; None when it is not known
    :ivar skipped: the names of servers, of the parent's too, that are not waited for
    :ivar largest_ttl: of its RRsets; *soa_minimum*: for how long it may be cached that something does not exist
    :ivar signatures: by the tag of a key, how many signatures of the zone are by it, at least
    :ivar ds: the DS records that each server of the parent has, as text; None for one that did not answer
    :ivar is_leaving: whether signing is to end; *is_forced*: whether that waits neither for the parent nor for caches
    """

    apex: str
    serial: int
    servers: Mapping[str, int | None]
    largest_ttl: int
    soa_minimum: int
    signatures: Mapping[int, int] = {}
    ds: Mapping[str, Collection[str] | None] = {}
    skipped: Collection[str] = ()
    is_leaving: bool = False
    is_forced: bool = False

    @property
    def current(self) -> set[str]:
        """The servers that serve the version, or a newer one."""
        return {name for name, served in self.servers.items() if served is not None and at_least(served, self.serial)}

    @property
    def behind(self) -> list[str]:
        """The servers that are waited for."""
        return sorted(self.servers.keys() - self.current - {*self.skipped})

    @property
    def parents(self) -> dict[str, Collection[str] | None]:
        """As :attr:`ds`, without servers that are not waited for."""
        return {name: records for name, records in self.ds.items() if name not in self.skipped}


class KeyStep(NamedTuple):
    """What is next in the life of a key.

    :ivar role: of the key
    :ivar former: the key as it is; None for one that is to be made
    :ivar key: the key as it will be, with another state, or with only the time of its next one; None for one that stays
        as it is, or is to be made
    :ivar at: when it will be, as far as that is known; None when it is not
    :ivar waits_for: what it waits for; empty when nothing but time, or nothing
    """

    role: KeyRole
    former: SigningKey | None
    key: SigningKey | None
    at: datetime | None = None
    waits_for: str = ''

    @property
    def is_due(self) -> bool:
        """Whether something is to be done now."""
        return self.former is None or self.key is not None

    @property
    def since(self) -> datetime | None:
        """When the key got its state; None if that is not kept."""
        return getattr(self.former, _OWN_TIMES[self.former.state]) if self.former and self.former.state in _OWN_TIMES \
            else None


def plan(keys: Sequence[SigningKey], policy: SigningPolicy, facts: KeyFacts, now: datetime) -> list[KeyStep]:
    """One step for each key that is not removed, and one for each that is to be made; all that are due go together."""
    return list(_Plan(keys, policy, facts, now).steps())


def roles_of(keys: Iterable[SigningKey], policy: SigningPolicy) -> Sequence[KeyRole]:
    """The roles of a zone's keys: those that it has keys of, and of the policy when it has none."""
    present = {key.role for key in keys if key.state is not KeyState.REMOVED}
    has_csk = KeyRole.CSK in present if present else policy.keys == 'csk'
    return (KeyRole.CSK,) if has_csk else (KeyRole.KSK, KeyRole.ZSK)


def at_first(keys: Sequence[SigningKey]) -> Sequence[SigningKey]:
    """The keys of a zone, with the states that they have in the first version that is signed."""
    if any(key.state in key_records.IN_ZONE for key in keys):
        return keys
    return [dataclasses.replace(key, state=_first_state(key)) if key.state is KeyState.MADE else key for key in keys]


def zone_state(keys: Iterable[SigningKey], is_leaving: bool,
               ds: Mapping[str, Collection[str] | None] | None = None) -> SigningState:
    """How far the signing of a zone with these keys has come, by the *ds* at its parent where these matter."""
    states = {key.state for key in keys if key.role != KeyRole.ZSK and key.state in key_records.IN_ZONE}
    if is_leaving:
        return SigningState.DS_LEAVING if states else SigningState.UNSIGNING
    if states & {KeyState.ACTIVE, KeyState.DS_SEEN}:
        is_gone = ds is not None and not any(ds.values()) and states & {KeyState.PUBLISHED, KeyState.READY}
        return SigningState.DS_WAIT if is_gone else SigningState.SECURE
    if KeyState.READY in states:
        return SigningState.DS_WAIT
    return SigningState.SIGNED if states else SigningState.SIGNING


class _Plan:
    def __init__(self, keys: Sequence[SigningKey], policy: SigningPolicy, facts: KeyFacts, now: datetime) -> None:
        self.keys, self.policy, self.facts, self.time = keys, policy, facts, now

    def steps(self) -> Iterator[KeyStep]:
        if self.facts.is_leaving:
            yield from self._leaving()
            return
        for key in self.keys:
            if key.remove_at is not None and key.state in key_records.IN_ZONE - {KeyState.RETIRING}:
                # Signing was to end, and goes on.
                yield self._step(key, self.time, remove_at=None)
            elif key.state in _STEPS:
                yield from _STEPS[key.state](self, key)
        present = {key.role for key in self.keys if key.state not in (KeyState.RETIRING, KeyState.REMOVED)}
        for role in roles_of(self.keys, self.policy):
            if role not in present:
                yield KeyStep(role, None, None, self.time)

    def made(self, key: SigningKey) -> Iterator[KeyStep]:
        """The first keys sign at once: caches have nothing of the zone that would need another one."""
        if not any(other.state in key_records.IN_ZONE for other in self.keys):
            yield self._become(key, _first_state(key), publish_at=self.time)
        elif rolling := self._of_role(key, *_ROLLING):
            yield self._step(key, None, f'the rollover of the key {rolling[0].tag}')
        else:
            yield self._become(key, KeyState.PUBLISHED)

    def published(self, key: SigningKey) -> Iterator[KeyStep]:
        ttl = self._longest(DNSKEY_TTL, self.policy.dnskey_ttl, self.keys)
        if key.role != KeyRole.ZSK and not self._of_role(key, KeyState.ACTIVE):
            # Caches may have answers without signatures, and that there is no key.
            ttl = max(ttl, self._longest(SIGNED_TTL, self.facts.largest_ttl, self.keys), self.facts.soa_minimum)
        yield self._after_caches(key, KeyState.READY, ttl, '')

    def ready(self, key: SigningKey) -> Iterator[KeyStep]:
        if key.role == KeyRole.ZSK:
            yield from self._activate(key)
            return
        lacking = sorted(name for name, records in self.facts.parents.items()
                         if records is None or self._has_no_ds(key, records))
        if lacking or not self.facts.ds:
            yield self._step(key, None, f'the DS of the key {key.tag} at {", ".join(lacking) or "the parent"}')
        else:
            yield self._become(key, KeyState.DS_SEEN, active_at=self.time + timedelta(
                seconds=self._longest(DS_TTL, self.policy.parent_ds_ttl, self.keys)))

    def _has_no_ds(self, key: SigningKey, records: Collection[str]) -> bool:
        return key_records.ds_texts(self.facts.apex, key.public).isdisjoint(map(str.lower, records))

    def ds_seen(self, key: SigningKey) -> Iterator[KeyStep]:
        if any(records is not None and self._has_no_ds(key, records) for records in self.facts.parents.values()):
            yield self._become(key, KeyState.READY)
        else:
            seconds = self._longest(DS_TTL, self.policy.parent_ds_ttl, self.keys) if key.active_at else 0
            step = self._after(key, KeyState.ACTIVE, seconds, '')
            yield from self._activate(key) if step.key and step.key.state is KeyState.ACTIVE else [step]

    def active(self, key: SigningKey) -> Iterator[KeyStep]:
        """A key that is not followed by another one yet is rolled at the end of its life."""
        lifetime = self.policy.zsk_lifetime if key.role == KeyRole.ZSK else self.policy.ksk_lifetime
        since = key.active_at and min(key.active_at, self.time)
        end = since + timedelta(seconds=lifetime) if lifetime and since else None
        yield self._step(key, end, **({} if since == key.active_at else {'active_at': since}))
        if end is not None and end <= self.time and not self._of_role(key, KeyState.MADE, *_ROLLING):
            yield KeyStep(key.role, None, None, self.time)

    def retiring(self, key: SigningKey) -> Iterator[KeyStep]:
        if key.role == KeyRole.KSK:
            # The DS that caches have is the new one's already.
            yield self._become(key, KeyState.REMOVED)
            return
        remain = self.facts.signatures.get(key.tag, 0) > 0
        yield self._after_caches(key, KeyState.REMOVED, self._longest(SIGNED_TTL, self.facts.largest_ttl, [key]),
                                 f'signatures by the key {key.tag} to be renewed' if remain else '')

    def _activate(self, key: SigningKey) -> Iterator[KeyStep]:
        yield self._become(key, KeyState.ACTIVE)
        for former in self._of_role(key, KeyState.ACTIVE):
            yield self._become(former, KeyState.RETIRING)

    def _leaving(self) -> Iterator[KeyStep]:
        """All keys go together, when neither the parent nor caches have a DS that asks for signatures."""
        # What was scheduled for one that is retiring does not count for all.
        every = sorted((key for key in self.keys if key.state != KeyState.REMOVED),
                       key=lambda key: key.state == KeyState.RETIRING)
        was_offered = any(key.role != KeyRole.ZSK and key.state not in (KeyState.MADE, KeyState.PUBLISHED)
                          for key in every)
        present = sorted(name for name, records in self.facts.parents.items()
                         if records or records is None and was_offered)
        why = ''
        if present or was_offered and not self.facts.ds:
            why = f'the DS to be gone at {", ".join(present) or "the parent"}'
        seconds = self._longest(DS_TTL, self.policy.parent_ds_ttl, every) \
            if was_offered and not self.facts.is_forced else 0
        for number, key in enumerate(every):
            step = self._after(every[0], KeyState.REMOVED, seconds, why)
            if step.key is not None and step.key.state == KeyState.REMOVED:
                yield self._become(key, KeyState.REMOVED)
            else:
                yield step if not number else self._step(key, step.at, step.waits_for)

    def _after_caches(self, key: SigningKey, state: KeyState, ttl: int, why: str) -> KeyStep:
        """The step to *state* when all servers have had the zone as it is now for so long that caches have it too."""
        if self.facts.behind and not why:
            why = f'{", ".join(self.facts.behind)} to serve serial {self.facts.serial}'
        return self._after(key, state, self.policy.propagation_delay + ttl, why)

    def _after(self, key: SigningKey, state: KeyState, seconds: int, why: str) -> KeyStep:
        """The step to *state*, so many *seconds* after there was first no reason *why* not."""
        field = _OWN_TIMES[state]
        at: datetime | None = getattr(key, field)
        if why:  # again, if there is a time
            return self._step(key, None, why, **({} if at is None else {field: None}))
        latest = self.time + timedelta(seconds=seconds)
        if seconds and (at is None or at > latest):  # that one was written when the clock was ahead
            return self._step(key, latest, **{field: latest})
        return self._become(key, state) if not seconds or at is None or at <= self.time else self._step(key, at)

    def _longest(self, what: str, now: int, zone_keys: Iterable[SigningKey]) -> int:
        """The greatest TTL that caches may have, as it is *now* or was while one of these keys was in use."""
        return max([now, *(key.longest_ttls.get(what, 0) for key in zone_keys)])

    def _become(self, key: SigningKey, state: KeyState, **times: datetime) -> KeyStep:
        return self._step(key, self.time, state=state, **{**times, _OWN_TIMES[state]: self.time})

    def _step(self, key: SigningKey, at: datetime | None, why: str = '', /, **changes: Any) -> KeyStep:
        """The next step of a key: *changes* of it now, or none."""
        return KeyStep(key.role, key, dataclasses.replace(key, **changes) if changes else None, at, why)

    def _of_role(self, key: SigningKey, *states: KeyState) -> list[SigningKey]:
        """The other keys of the same role in *states*."""
        return [other for other in self.keys if other.role == key.role and other.id != key.id and other.state in states]


def _first_state(key: SigningKey) -> KeyState:
    return KeyState.ACTIVE if key.role == KeyRole.ZSK else KeyState.PUBLISHED


_STEPS = {KeyState.MADE: _Plan.made, KeyState.PUBLISHED: _Plan.published, KeyState.READY: _Plan.ready,
          KeyState.DS_SEEN: _Plan.ds_seen, KeyState.ACTIVE: _Plan.active, KeyState.RETIRING: _Plan.retiring}
