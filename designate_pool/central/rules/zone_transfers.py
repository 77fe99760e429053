"""The transfer of a domain to another project: the owner requests it, and the other project accepts it with a key.

The invariants: a domain has at most one request that can be accepted; only the project that owns the domain can have
one; and an accepted request has moved the domain, in the same transaction.  Requests and their acceptance lock the
domain first, so that they exclude each other, its deletion, and a second transfer.

The domains above and below the transferred one may belong to either of the two projects: both agree to that.
"""

from __future__ import annotations

import base64
import dataclasses
import hmac
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from designate_pool.central.domain_changes import assign_to_project
from designate_pool.central.rules import plans
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.transactions import lock_domain
from designate_pool.central.validation import fields
from designate_pool.errors import DomainBeingDeleted, Forbidden, InvalidField, Locked, NotFound, Refused
from designate_pool.model import Context, Domain, TransferStatus, ZoneTransferAccept, ZoneTransferRequest
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, zone_transfers as store

#: Random octets of a key; it has 16 characters, capital letters and digits.
_KEY_OCTETS = 10


def new_key() -> str:
    """A random key, which accepts a transfer."""
    return base64.b32encode(secrets.token_bytes(_KEY_OCTETS)).decode()


def parse(given: Any) -> dict[str, Any]:
    """The values of a new request, checked."""
    fields.refuse_unknown(fields.mapping('transfer_request', given), '', ('target_project_id', 'description'))
    with fields.every_mistake() as checked:
        target = checked(fields.optional_text, 'target_project_id', given.get('target_project_id'), 36)
        return {'target_project_id': target or None,
                'description': checked(fields.description, 'description', given.get('description'))}


def parse_changes(given: Any) -> str | None:
    """The new description of a request."""
    fields.refuse_unknown(fields.mapping('transfer_request', given), '', ('description',))
    if 'description' not in given:
        raise InvalidField(field='description', why='missing')
    return fields.description('description', given['description'])


def create(tx: Tx, context: Context, domain_id: str, request_id: str, key: str, values: Mapping[str, Any],
           now: datetime) -> ZoneTransferRequest:
    """Create the transfer request of a domain."""
    domain, _ = lock_domain(tx, context, domain_id)
    present = store.REQUESTS.get(tx, request_id)
    if present is not None:
        return present  # the commit came through, the answer to it did not
    if store.has_active(tx, domain.id):
        raise Refused('duplicate_zone_transfer_request',
                      f'The zone {domain.name} has an active transfer request already.', 409)
    request = ZoneTransferRequest(request_id, domain.id, domain.shown_name, key=key, project_id=domain.project_id,
                                  created_at=now, updated_at=now, approved=domain.needs_approval, **values)
    plans.gate(tx, context, domain, lambda: [plans.zone_change(domain, {}, {
        'transfer_request': values['target_project_id'] or 'any project'})], now,
        lambda: dataclasses.replace(request, key='', status=TransferStatus.PENDING))
    store.REQUESTS.insert(tx, request)
    return request


def get(tx: Tx, context: Context, request_id: str) -> ZoneTransferRequest:
    """The request, for its owner, its target, and, if it names no target, everyone who knows its id."""
    request = store.REQUESTS.get(tx, request_id)
    if request is None or not _may_accept(context, request) and not context.sees(request.project_id):
        raise _missing(request_id)
    return request


def update(tx: Tx, context: Context, request_id: str, description: str | None, now: datetime) -> ZoneTransferRequest:
    """Change the description of a transfer request."""
    old = _locked(tx, context, request_id)
    if description == old.description:
        return old
    store.REQUESTS.update(tx, request_id, now, description=description)
    return dataclasses.replace(old, description=description, updated_at=now, version=old.version + 1)


def delete(tx: Tx, context: Context, request_id: str) -> ZoneTransferRequest:
    """Withdraw a request; the deleted request."""
    request = _locked(tx, context, request_id)
    store.REQUESTS.delete(tx, request_id)
    return request


def accept(tx: Tx, context: Context, accept_id: str, request_id: str, key: str, now: datetime,
           allowance: Allowance) -> tuple[ZoneTransferAccept, Domain]:
    """Move the domain of a request to the project of *context*.

    :raises NotFound: when there is none, or it is to another project and *key* is wrong
    :raises Forbidden: when it is to another project
    :raises Refused: when the request was accepted already, its domain has another owner, or *key* is not that of the
        request
    :raises NameTaken: when a domain above or below belongs to a third project
    :raises OverQuota: when the project may not have one domain more
    """
    request = store.REQUESTS.get(tx, request_id)
    if request is None:
        raise _missing(request_id)
    if not _may_accept(context, request):
        if not _is_key(request, key):
            raise _missing(request_id)
        raise Forbidden(what='take over the zone', why='it is offered to another project')
    domain = domains.lock(tx, request.domain_id)
    done = store.ACCEPTS.get(tx, accept_id)
    if done is not None and domain is not None:
        return done, domain  # the commit came through, the answer to it did not
    locked = store.REQUESTS.lock(tx, request_id)
    if locked is None:
        raise _missing(request_id)
    if locked.status is not TransferStatus.ACTIVE:
        raise _not_acceptable(request_id, 'it was accepted already')
    if not _is_key(locked, key):
        raise Refused('invalid_key', f'The key is not that of the transfer request {request_id}.', 403)
    if domain is None or domain.project_id != locked.project_id:
        raise _not_acceptable(request_id, 'its zone has another owner now')
    if domain.needs_approval and not locked.approved:
        raise _not_acceptable(request_id, 'changes of its zone need approval since; its owner has to request it anew')
    if domain.is_going:
        raise DomainBeingDeleted(domain=domain.name)
    if domain.lock_reason is not None:
        raise Locked.of(f'The zone {domain.name}', domain)
    domain = assign_to_project(tx, context, domain, context.project_id, now, allowance, domain.project_id)
    store.REQUESTS.update(tx, request_id, now, status=TransferStatus.COMPLETE)
    accepted = ZoneTransferAccept(accept_id, request_id, domain.id, context.project_id, TransferStatus.COMPLETE,
                                  created_at=now, updated_at=now)
    store.ACCEPTS.insert(tx, accepted)
    return accepted, domain


def _is_key(request: ZoneTransferRequest, key: str) -> bool:
    return hmac.compare_digest(request.key.encode(), key.encode())


def get_accept(tx: Tx, context: Context, accept_id: str) -> ZoneTransferAccept:
    """One accepted transfer."""
    accept = store.ACCEPTS.get(tx, accept_id)
    if accept is None or not context.sees(accept.project_id):
        raise NotFound(what=f'accepted transfer {accept_id}', type='zone_transfer_accept_not_found')
    return accept


def _may_accept(context: Context, request: ZoneTransferRequest) -> bool:
    return context.all_projects or request.target_project_id in (None, context.project_id)


def _locked(tx: Tx, context: Context, request_id: str) -> ZoneTransferRequest:
    """A request that the project of *context* owns, locked."""
    request = store.REQUESTS.lock(tx, request_id)
    if request is None or not context.sees(request.project_id):
        raise _missing(request_id)
    return request


def _not_acceptable(request_id: str, why: str) -> Refused:
    return Refused('invalid_zone_transfer_request', f'The transfer request {request_id} cannot be accepted: {why}.')


def _missing(request_id: str) -> NotFound:
    return NotFound(what=f'transfer request {request_id}', type='zone_transfer_request_not_found')
