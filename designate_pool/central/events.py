"""Events of domains, and of lists of names: log lines, metrics, notifications.

They are sent after the commit, so only what has happened is reported, and their failure does not affect the change.
An accepted request is ``dns.zone.create``, ``dns.recordset.update`` and so on; the pool's result is a transition:
``dns.zone.active``, ``dns.zone.error``, ``dns.zone.deleted``.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from designate_pool import logs, metrics
from designate_pool.model import (Actor, Blacklist, Context, Domain, Pool, RecordSet, Status, StoredTsigKey, Tld,
                                  ZoneShare, ZoneTask, ZoneTransferAccept, ZoneTransferRequest, dashed)
from designate_pool.rpc.notifications import SILENT, Sink, put_zone_task

LOG = logging.getLogger(__name__)
CREATE, UPDATE, DELETE = 'create', 'update', 'delete'
SHARE, UNSHARE = 'share', 'unshare'
FREEZE, UNFREEZE = 'freeze', 'unfreeze'
#: Records of a recordset that a notification names.
MOST_RECORDS = 1000
#: Fields that notifications leave out.
_TIMES = ('created_at', 'updated_at')
Value = TypeVar('Value', bound=Tld | Blacklist | StoredTsigKey | Pool | ZoneShare | ZoneTransferRequest
                | ZoneTransferAccept)


class DomainTransition(NamedTuple):
    """A domain before and after a change of its status."""

    former: Domain
    domain: Domain


class EventSender:
    """Sends Central's events; *announce* is called when a TSIG key has changed, or with the name of a pool that has."""

    def __init__(self, notifications: Sink, announce: Callable[..., None] = lambda *pool_names: None) -> None:
        self._notifications = notifications
        self._announce = announce

    def zone(self, verb: str, actor: Actor, domain: Domain, changed: bool = True,
             recordset: RecordSet | None = None) -> None:
        """A change of a domain, or of one of its recordsets, was accepted.

        :param verb: ``create``, ``update`` or ``delete``
        :param changed: whether the domain has a new serial
        """
        if changed:
            metrics.TRANSITIONS.labels(domain.pool_name, Status.PENDING.value).inc()
            logs.transition(LOG, logging.INFO, '%s of %s at serial %d by %s: PENDING', domain.action, domain.name,
                            domain.serial, str(actor) or 'nobody', domain=domain.name, server=None,
                            action=domain.action.value, serial=domain.serial, status=Status.PENDING.value,
                            request_id=domain.request_id, actor=dataclasses.asdict(actor))
        if self._notifications is SILENT:
            return
        if recordset is None:
            self._put(f'dns.zone.{verb}', actor, zone_payload(domain))
        else:
            self._put(f'dns.recordset.{verb}', actor, recordset_payload(domain, recordset))

    def value(self, verb: str, context: Context, value: Value) -> Value:
        """A value that belongs to no zone, or a transfer or share of one, was created, changed or deleted; *value*."""
        kind, payload = _VALUES[type(value)]
        if isinstance(value, StoredTsigKey):
            self._announce()
        elif isinstance(value, Pool):
            self._announce(value.name)
        self._put(f'dns.{kind}.{verb}', context.actor, payload(value) | {'request_id': request_id(context) or None})
        return value

    def import_ended(self, task: ZoneTask) -> None:
        """An import is COMPLETE, or has failed; the API sends the other events of imports."""
        put_zone_task(self._notifications, UPDATE, task)

    def transitions(self, actor: Actor, transitions: Iterable[DomainTransition]) -> None:
        """The pool has reached consensus, or failed to."""
        for former, domain in transitions:
            failed, action = domain.status is Status.ERROR, former.action.value
            logs.transition(
                LOG, logging.WARNING if failed else logging.INFO, '%s of %s at serial %d: %s, was %s', action,
                domain.name, domain.serial, domain.status, former.status, domain=domain.name, server=None,
                action=action, serial=domain.serial, status=domain.status.value, request_id=domain.request_id)
            metrics.TRANSITIONS.labels(domain.pool_name, domain.status.value).inc()
            if not failed and domain.changed_at is not None and domain.converged_at is not None:
                metrics.CONVERGENCE_SECONDS.labels(domain.pool_name, action.lower()).observe(
                    max(0.0, (domain.converged_at - domain.changed_at).total_seconds()))
            if self._notifications is not SILENT:
                self._put(f'dns.zone.{domain.status.value.lower()}', actor, zone_payload(domain) | {
                    'former_status': former.status.value, 'former_action': action})

    def _put(self, event_type: str, actor: Actor, payload: dict[str, Any]) -> None:
        self._notifications.put(event_type, payload | {'actor': dataclasses.asdict(actor)})


def changed_by_another_request(context: Context, domain: Domain) -> bool:
    """Whether an earlier request than that of *context* had made the change already."""
    return bool(context.request_id) and domain.request_id != request_id(context)


def request_id(context: Context) -> str:
    """The request id as a domain keeps it: ASCII, 64 characters at most."""
    return context.request_id.encode('ascii', 'replace').decode()[:64]


def zone_payload(domain: Domain) -> dict[str, Any]:
    """The payload of an event of a zone."""
    return {'id': dashed(domain.id), 'name': domain.name, 'serial': domain.serial, 'status': domain.status.value,
            'action': domain.action.value, 'ttl': domain.ttl, 'project_id': domain.project_id or None,
            'pool_id': dashed(domain.pool_id), 'pool_name': domain.pool_name, 'request_id': domain.request_id or None}


def recordset_payload(domain: Domain, recordset: RecordSet) -> dict[str, Any]:
    """The payload of an event of a recordset."""
    return {'id': dashed(recordset.id), 'zone_id': dashed(domain.id), 'zone_name': domain.name,
            'name': recordset.name, 'type': recordset.type, 'ttl': recordset.ttl,
            'records': [record.data for record in recordset.records[:MOST_RECORDS]],
            'serial': domain.serial, 'status': recordset.status.value, 'action': recordset.action.value,
            'project_id': recordset.project_id or domain.project_id or None, 'pool_id': dashed(domain.pool_id),
            'pool_name': domain.pool_name, 'request_id': domain.request_id or None}


def _entry_payload(entry: Tld | Blacklist) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(entry).items() if name not in _TIMES} | {
        'id': dashed(entry.id)}


def _tsigkey_payload(key: StoredTsigKey) -> dict[str, Any]:
    return {'id': dashed(key.id), 'name': key.name, 'algorithm': key.algorithm, 'scope': key.scope.value,
            'resource_id': dashed(key.resource_id), 'version': key.version}


def _pool_payload(pool: Pool) -> dict[str, Any]:
    return {'id': dashed(pool.id), 'name': pool.name, 'description': pool.description, 'project_id': pool.project_id,
            'ns_records': [{'hostname': host, 'priority': priority} for host, priority in pool.ns_records],
            'also_notifies': list(pool.also_notifies), 'attributes': json.loads(pool.attributes or '{}'),
            'version': pool.version, 'freeze': pool.freeze and json.loads(pool.freeze)}


def _share_payload(share: ZoneShare) -> dict[str, Any]:
    return {'id': dashed(share.id), 'zone_id': dashed(share.domain_id), 'project_id': share.project_id or None,
            'target_project_id': share.target_project_id}


def _transfer_payload(transfer: ZoneTransferRequest | ZoneTransferAccept) -> dict[str, Any]:
    payload = {'id': dashed(transfer.id), 'zone_id': dashed(transfer.domain_id), 'status': transfer.status.value,
               'project_id': transfer.project_id or None, 'version': transfer.version}
    if isinstance(transfer, ZoneTransferAccept):
        return payload | {'zone_transfer_request_id': dashed(transfer.request_id)}
    return payload | {'zone_name': transfer.zone_name, 'target_project_id': transfer.target_project_id,
                      'description': transfer.description}


#: The kind of events, and their payload.
_VALUES: dict[type, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    Tld: ('tld', _entry_payload),
    Blacklist: ('blacklist', _entry_payload),
    StoredTsigKey: ('tsigkey', _tsigkey_payload),
    Pool: ('pool', _pool_payload),
    ZoneShare: ('zone', _share_payload),
    ZoneTransferRequest: ('zone_transfer_request', _transfer_payload),
    ZoneTransferAccept: ('zone_transfer_accept', _transfer_payload),
}
