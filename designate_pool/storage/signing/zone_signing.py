"""The keys of zones, and how far their signing has come: rows of ``zone_keys`` and ``zone_signing``.

Private keys are stored as texts that the caller has encrypted.  Whoever writes has locked the domain, except for
claims.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from designate_pool.model import KeyRole, KeyState, SigningKey, SigningState, ZoneSigning
from designate_pool.storage.sql import bulk
from designate_pool.storage.sql.columns import storable
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities, chunks, count
from designate_pool.storage.sql.schema import ALIVE, domains, pools, signed_records, zone_keys, zone_signing
from designate_pool.storage.zones import domains as domain_store

TABLE = zone_signing
_LONGEST = 1024
IN_TOKEN = zone_keys.c.token_uri.is_not(None)
#: In the place of a server of the parent: who ended signing without waiting for them.
FORCED = 'forced by '
#: The same: who has said what they have.
CONFIRMED = 'confirmed by '
_STATES, _KEYS = Entities(ZoneSigning, TABLE), Entities(SigningKey, zone_keys)
_OF_DOMAINS = _STATES.select.where(TABLE.c.domain_id.in_(sa.bindparam('ids', expanding=True)))
_KEYS_OF_DOMAINS = (_KEYS.select.add_columns(zone_keys.c.domain_id)
                    .where(zone_keys.c.domain_id.in_(sa.bindparam('ids', expanding=True)))
                    .order_by(zone_keys.c.created_at, zone_keys.c.id))
#: A claim that ends late was made when the clock was ahead, by a program that may have ended.
_FREE = sa.or_(TABLE.c.claimed_until.is_(None), TABLE.c.claimed_until < sa.bindparam('now'),
               TABLE.c.claimed_until > sa.bindparam('late'))
_IS_IN_FROZEN_POOL = sa.exists().where(domains.c.id == TABLE.c.domain_id, domains.c.pool_id == pools.c.id,
                                       pools.c.freeze_id.is_not(None))
#: A statement for each time: one for both would use the index of neither.  What waits for others comes last, and a
#: frozen pool gets renewed signatures alone.
_DUE = [_STATES.select.where(column <= sa.bindparam('now'), _FREE, *conditions).order_by(column)
        .limit(sa.bindparam('most')).with_for_update(of=TABLE, skip_locked=True)
        for column, *conditions in ((TABLE.c.resign_at,), (TABLE.c.next_event_at, ~_IS_IN_FROZEN_POOL))]
_EXPIRING_AFTER = sa.select(TABLE.c.domain_id).where(TABLE.c.policy == sa.bindparam('policy'), sa.exists().where(
    signed_records.c.domain_id == TABLE.c.domain_id, signed_records.c.expires_at > sa.bindparam('after')))
_CHANGING = ('state', 'publish_at', 'ready_at', 'active_at', 'ds_seen_at', 'retire_at', 'remove_at',
             'token_uri', 'longest_ttls')


def state_of(tx: Tx, domain_id: str) -> ZoneSigning | None:
    """How far the signing of a domain has come; None for one that is not to be signed."""
    return states_of(tx, [domain_id]).get(domain_id)


def states_of(tx: Tx, ids: Iterable[str]) -> dict[str, ZoneSigning]:
    """As :func:`state_of`, by id, of those of these domains that are to be signed."""
    return {state.domain_id: state for part in chunks(ids) for state in _STATES.all(tx, _OF_DOMAINS, ids=part)}


def offering(tx: Tx, ids: Sequence[str]) -> set[str]:
    """Those of these domains whose parents are to change their DS, as CDS and CDNSKEY say."""
    states = states_of(tx, ids)
    zone_keys = keys_of(tx, list(states))
    return {domain_id for domain_id, state in states.items()
            if state.state in (SigningState.DS_WAIT, SigningState.DS_LEAVING) or any(
                key.state is KeyState.READY and key.role is not KeyRole.ZSK for key in zone_keys[domain_id])}


def save_state(tx: Tx, state: ZoneSigning, now: datetime) -> None:
    """Write how far the signing of a domain has come, the first time too."""
    values = _values(state, now)
    if not tx.execute(sa.update(TABLE).where(TABLE.c.domain_id == state.domain_id).values(values)).rowcount:
        tx.execute(sa.insert(TABLE), values | {'created_at': now})


def save_states(tx: Tx, states: Sequence[ZoneSigning], now: datetime) -> None:
    """Write how far the signing of a few domains has come that are to be signed already, in one statement."""
    if rows := [_values(state, now) for state in states]:
        ids, *columns = zip(*(row.values() for row in rows))
        bulk.update(tx, TABLE, ids, dict(zip([*rows[0]][1:], columns)), key='domain_id')


def _values(state: ZoneSigning, now: datetime) -> dict[str, Any]:
    return _STATES.values(state) | {'updated_at': now, 'why': state.why and storable(state.why, _LONGEST)}


def report_ds(tx: Tx, seen: Mapping[str, Mapping[str, Sequence[str] | None]], now: datetime) -> None:
    """Note which DS records each server of the parent has of these domains, and have those looked at where that is new.

    A domain whose signing is to end without waiting for them stays as it is.

    :param seen: by domain id, of those that may be signed: by server; None for one that did not answer, of which stays
        what it had, or what a user has said
    """
    def new(state: ZoneSigning) -> dict[str, tuple[str, Sequence[str] | None]] | None:
        former = {server: ds for server, (_, ds) in state.ds_seen.items()}
        confirmed = next((ds for server, ds in former.items() if server.startswith(CONFIRMED)), None)
        now_seen = {server: former.get(server, confirmed) if ds is None else ds
                    for server, ds in seen[state.domain_id].items()}
        return None if now_seen == former or is_forced(state) else {
            server: (now.isoformat(), ds) for server, ds in now_seen.items()}

    ids = [domain_id for domain_id, state in states_of(tx, seen).items() if new(state) is not None]
    domain_store.lock_many(tx, ids)  # or a step of their keys that is under way would write what it had read
    for domain_id, state in states_of(tx, ids).items():
        if (ds_seen := new(state)) is not None:
            tx.execute(sa.update(TABLE).where(TABLE.c.domain_id == domain_id).values(
                ds_seen=ds_seen, next_event_at=now, updated_at=now))


def schedule(tx: Tx, domain_ids: Iterable[str], at: datetime) -> None:
    """Have those of these domains looked at that are to be signed, at a time or before."""
    for part in chunks(domain_ids):
        tx.execute(sa.update(TABLE).where(TABLE.c.domain_id.in_(part), sa.or_(
            TABLE.c.next_event_at.is_(None), TABLE.c.next_event_at > at)).values(next_event_at=at))


def expiring_after(tx: Tx, policy: str, after: int) -> list[str]:
    """The ids of the domains of a policy with signatures that expire after a time, in seconds since the epoch."""
    return list(tx.execute(_EXPIRING_AFTER, {'policy': policy, 'after': after}).scalars())


def renew(tx: Tx, domain_ids: Iterable[str], now: datetime) -> None:
    """Have signatures of these domains renewed that are due, and their keys looked at."""
    for part in chunks(domain_ids):
        tx.execute(sa.update(TABLE).where(TABLE.c.domain_id.in_(part)).values(resign_at=now, next_event_at=now))


def is_said(server: str) -> bool:
    """Whether a user stands in the place of a server of the parent."""
    return server.startswith((CONFIRMED, FORCED))


def is_forced(state: ZoneSigning) -> bool:
    """Whether signing is to end without waiting for the parent."""
    return any(server.startswith(FORCED) for server in state.ds_seen)


def hold(tx: Tx, pool_id: str, why: str, now: datetime) -> None:
    """Have the signed domains of a pool stay as their servers have them, until somebody resumes their signing."""
    tx.execute(sa.update(TABLE).where(TABLE.c.domain_id.in_(_signed_of(pool_id))).values(
        state=SigningState.HELD, why=why, since=now, next_event_at=None, resign_at=None, prepared_to=None,
        updated_at=now))


def count_held(tx: Tx, pool_id: str, most: int) -> int:
    """How many domains of a pool there are whose signing is held, *most* at most."""
    # Of the others few have no signatures, so an index leads to those that are held.
    return count(tx, sa.select(TABLE.c.domain_id).where(
        TABLE.c.resign_at.is_(None), TABLE.c.state == SigningState.HELD, TABLE.c.domain_id.in_(_signed_of(pool_id))),
        most)


def _signed_of(pool_id: str) -> sa.Select[Any]:
    return sa.select(domains.c.id).where(domains.c.pool_id == pool_id, domains.c.is_signed,
                                         domains.c.deleted == ALIVE)


def delete_state(tx: Tx, domain_id: str) -> None:
    """Forget that a domain was to be signed; its keys stay."""
    tx.execute(sa.delete(TABLE).where(TABLE.c.domain_id == domain_id))


def claim_due(tx: Tx, by: str, now: datetime, until: datetime, most: int) -> list[ZoneSigning]:
    """Claim domains for which something is to be done now; rows locked by others are skipped."""
    due = {state.domain_id: state for query in _DUE for state in _STATES.all(
        tx, query, now=now, late=until + (until - now), most=most)}
    claimed = list(due.values())[:most]
    for part in chunks(state.domain_id for state in claimed):
        tx.execute(sa.update(TABLE).where(TABLE.c.domain_id.in_(part)).values(claimed_by=by, claimed_until=until))
    return claimed


def release(tx: Tx, ids: Collection[str], by: str) -> None:
    """Give up claims."""
    tx.execute(sa.update(TABLE).where(TABLE.c.domain_id.in_(ids), TABLE.c.claimed_by == by)
               .values(claimed_by=None, claimed_until=None))


def keys_of(tx: Tx, ids: Sequence[str]) -> dict[str, list[SigningKey]]:
    """The keys of each of these domains, in the order in which they were made."""
    keys: dict[str, list[SigningKey]] = {domain_id: [] for domain_id in ids}
    for part in chunks(ids):
        for *key, domain_id in tx.execute(_KEYS_OF_DOMAINS, {'ids': part}):
            keys[domain_id].append(SigningKey(*key))
    return keys


def add_keys(tx: Tx, domain_id: str, keys: Iterable[tuple[SigningKey, str | None]], now: datetime) -> None:
    """Store new keys of a domain, each with its private part, encrypted; None for one in a token."""
    for key, private in keys:
        tx.execute(sa.insert(zone_keys), _KEYS.values(key) | {
            'domain_id': domain_id, 'private': private, 'created_at': now, 'updated_at': now})


def save_keys(tx: Tx, keys: Sequence[SigningKey], now: datetime) -> None:
    """Write state and times of keys."""
    for part in chunks(keys):
        bulk.update(tx, zone_keys, [key.id for key in part], {
            'updated_at': [now for _ in part], **{name: [getattr(key, name) for key in part] for name in _CHANGING}})


def private_of(tx: Tx, key_ids: Iterable[str]) -> dict[str, str]:
    """The private parts of those of these keys that have one, by id, encrypted."""
    return {key: text for part in chunks(key_ids) for key, text in tx.execute(
        sa.select(zone_keys.c.id, zone_keys.c.private).where(zone_keys.c.id.in_(part), zone_keys.c.private.is_not(None))
    ).tuples()}


def unused_in_token(tx: Tx, made: Collection[str] = ()) -> dict[str, str | None]:
    """The keys in tokens that no domain has any more, by id: as :attr:`SigningKey.token_uri`; None for those of *made*
    that no domain ever had."""
    stored = tx.execute(sa.select(zone_keys.c.id).where(zone_keys.c.id.in_(made))).scalars() if made else ()
    return {**dict.fromkeys({*made}.difference(stored)), **dict(tx.execute(
        sa.select(zone_keys.c.id, zone_keys.c.token_uri).where(IN_TOKEN, zone_keys.c.state == KeyState.REMOVED)
    ).tuples().all())}


def forget_token(tx: Tx, key_id: str) -> None:
    """Note that a key is in no token any more."""
    tx.execute(sa.update(zone_keys).where(zone_keys.c.id == key_id).values(token_uri=None))


def expire_keys(tx: Tx, before: datetime, limit: int) -> int:
    """Delete keys that were removed from their zones before a time, *limit* at most, and are in no token; how many
    there were."""
    old = tx.execute(sa.select(zone_keys.c.id).where(zone_keys.c.state == KeyState.REMOVED, ~IN_TOKEN,
                                                     zone_keys.c.remove_at < before).limit(limit)).scalars().all()
    tx.execute(sa.delete(zone_keys).where(zone_keys.c.id.in_(old)))
    return len(old)
