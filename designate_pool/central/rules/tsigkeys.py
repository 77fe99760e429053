"""The rules for TSIG keys that may transfer zones.

The invariant: names are unique among these keys and those of the pools' servers, regardless of case and final dot.
"""

from __future__ import annotations

from typing import Any

from designate_pool.central.entries import EntryKind
from designate_pool.central.validation import fields
from designate_pool.errors import InvalidField, Refused
from designate_pool.model import HIDDEN_SECRET, TSIG_ALGORITHMS, KeyScope, Status, StoredTsigKey
from designate_pool.protocol import tsig
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, pools, tsigkeys as store


def _check(tx: Tx, new: StoredTsigKey, old: StoredTsigKey | None) -> None:
    plain = new.name.lower().rstrip('.')
    if (old is None or new.name != old.name) and (
            plain in {name.lower().rstrip('.') for name in pool_servers.key_names(tx)}
            or store.ids_of_names(tx, (plain, f'{plain}.')) - {new.id}):
        raise Refused('duplicate_tsigkey', f'A TSIG key named {new.name} exists already.', 409)
    if old is not None and (new.scope, new.resource_id) == (old.scope, old.resource_id):
        return
    if new.scope is KeyScope.POOL:
        exists = pools.get(tx, new.resource_id) is not None
    else:
        domain = domains.get(tx, new.resource_id)
        exists = domain is not None and domain.status is not Status.DELETED
    if not exists:
        raise InvalidField(field='resource_id', why=f'there is no {new.scope.value.lower()} {new.resource_id}')


def _name(field: str, value: Any) -> str:
    """Its spelling is kept."""
    name = fields.text(field, value, 255)
    if not tsig.is_name(name):
        raise InvalidField(field=field, why=f'not {tsig.NAME}')
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


TSIGKEYS = EntryKind(store.TSIGKEYS, StoredTsigKey, 'tsigkey', 'TSIG key', {
    'name': _name,
    'algorithm': _algorithm,
    'secret': _secret,
    'scope': _scope,
    'resource_id': _resource_id,
}, _check, hidden=('secret',))
