"""The rules for TSIG keys that may transfer zones; each function that takes a transaction is the work of one.

The invariant: names are unique among these keys and those of the pools' servers, regardless of case and final dot.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import dns.exception
import dns.name

from designate_pool.central.validation import fields
from designate_pool.errors import InvalidField, NotFound, Refused
from designate_pool.model import HIDDEN_SECRET, TSIG_ALGORITHMS, KeyScope, PageRequest, Status, StoredTsigKey
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, pools
from designate_pool.storage.zones import tsigkeys as store


def parse(given: Any, whole: bool) -> dict[str, Any]:
    """The values of a key, checked, with the secret.

    :param whole: whether all are required
    """
    fields.refuse_unknown(fields.mapping('tsigkey', given), '', tuple(_CHECKS))
    return {key: check(key, given.get(key)) for key, check in _CHECKS.items() if whole or key in given}


def create(tx: Tx, key_id: str, values: Mapping[str, Any], now: datetime) -> StoredTsigKey:
    """Create a key with a new id."""
    present = store.get(tx, key_id)
    if present is not None:
        return present  # the commit came through, the answer to it did not
    key = StoredTsigKey(id=key_id, **{name: value for name, value in values.items() if name != 'secret'})
    _check_name(tx, key)
    _check_resource(tx, key)
    store.insert(tx, key, values['secret'], now)
    return get(tx, key_id)


def update(tx: Tx, key_id: str, values: Mapping[str, Any], now: datetime) -> StoredTsigKey:
    """Change a key."""
    old = store.lock(tx, key_id)
    if old is None:
        raise _missing(key_id)
    new = dataclasses.replace(old, **{name: value for name, value in values.items() if name != 'secret'})
    if new == old and 'secret' not in values:
        return old
    if new.name != old.name:
        _check_name(tx, new)
    if (new.scope, new.resource_id) != (old.scope, old.resource_id):
        _check_resource(tx, new)
    store.save(tx, new, values.get('secret'), now)
    return get(tx, key_id)


def delete(tx: Tx, key_id: str) -> StoredTsigKey:
    """Delete a key; the key as it was."""
    key = get(tx, key_id)
    if not store.delete(tx, key_id):
        raise _missing(key_id)
    return key


def get(tx: Tx, key_id: str) -> StoredTsigKey:
    """One key, without its secret."""
    key = store.get(tx, key_id)
    if key is None:
        raise _missing(key_id)
    return key


def find(tx: Tx, page: PageRequest) -> list[StoredTsigKey]:
    """The keys that match, without their secrets."""
    return store.find(tx, page)


def _missing(key_id: str) -> NotFound:
    return NotFound(what=f'TSIG key {key_id}', type='tsigkey_not_found')


def _check_name(tx: Tx, key: StoredTsigKey) -> None:
    plain = key.name.lower().rstrip('.')
    if plain in {name.lower().rstrip('.') for name in pool_servers.key_names(tx)} \
            or store.ids_of_names(tx, (plain, f'{plain}.')) - {key.id}:
        raise Refused('duplicate_tsigkey', f'A TSIG key named {key.name} exists already.', 409)


def _check_resource(tx: Tx, key: StoredTsigKey) -> None:
    if key.scope is KeyScope.POOL:
        exists = pools.get(tx, key.resource_id) is not None
    else:
        domain = domains.get(tx, key.resource_id)
        exists = domain is not None and domain.status is not Status.DELETED
    if not exists:
        raise InvalidField(field='resource_id', why=f'there is no {key.scope.value.lower()} {key.resource_id}')


def _name(field: str, value: Any) -> str:
    """Any domain name; its spelling is kept."""
    name = fields.text(field, value, 255)
    try:
        if not name.isascii() or len(dns.name.from_text(name).labels) < 2:
            raise ValueError
    except (dns.exception.DNSException, ValueError):
        raise InvalidField(field=field, why='not a domain name') from None
    return name


def _algorithm(field: str, value: Any) -> str:
    algorithm = fields.text(field, value).lower()
    if algorithm not in TSIG_ALGORITHMS:
        raise InvalidField(field=field, why=f'not one of {", ".join(TSIG_ALGORITHMS)}')
    return algorithm


def _secret(field: str, value: Any) -> str:
    """Any text, as in Designate; a key whose secret is not Base64 is for nobody."""
    secret = fields.text(field, value, 1024)
    if secret in ('', HIDDEN_SECRET):
        raise InvalidField(field=field, why='empty, or what is shown in its place')
    return secret


def _scope(field: str, value: Any) -> KeyScope:
    try:
        return KeyScope(value)
    except ValueError:
        raise InvalidField(field=field, why=f'not one of {", ".join(KeyScope)}') from None


def _resource_id(field: str, value: Any) -> str:
    resource_id = fields.identifier(fields.text(field, value))
    if resource_id is None:
        raise InvalidField(field=field, why='not a UUID')
    return resource_id


_CHECKS: dict[str, Any] = {
    'name': _name,
    'algorithm': _algorithm,
    'secret': _secret,
    'scope': _scope,
    'resource_id': _resource_id,
}
