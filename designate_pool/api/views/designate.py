"""Values as Designate v2 shows them.  Pure: a value and the URL of the API in, JSON out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from designate_pool import consensus
from designate_pool.api.services import wait_verdict
from designate_pool.errors import InvalidField, PoolError
from designate_pool.model import (Action, Comparison, Domain, Endpoint, Outcome, Pool, PoolServer, RecordSet,
                                  RefreshState, Reloaded, ServerReport, ServerState, ServerStatus, ZoneTask,
                                  ZoneTaskStatus, dashed)

Json = dict[str, Any]
_DNS_PORT = 53
_RESTING = (ServerState.MAINTENANCE, ServerState.JOINING)


def moment(value: datetime | None) -> str | None:
    """A time in UTC without a time zone, as Designate writes it."""
    if value is None:
        return None
    if value.tzinfo is not timezone.utc:
        value = value.astimezone(timezone.utc)
    return value.isoformat(timespec='microseconds')[:-6]  # without +00:00


def zone(domain: Domain, base: str) -> Json:
    """A zone as the API answers it."""
    return {
        'id': dashed(domain.id),
        'name': domain.name,
        'email': domain.email,
        'ttl': domain.ttl,
        'serial': domain.serial,
        'status': domain.status.value,
        'action': domain.action.value,
        'description': domain.description,
        'type': 'SECONDARY' if domain.is_secondary else 'PRIMARY',
        'pool_id': dashed(domain.pool_id),
        'project_id': domain.project_id,
        'masters': masters(domain),
        'attributes': json.loads(domain.attributes) if domain.attributes else {},
        'transferred_at': moment(domain.transferred_at),
        'version': domain.version,
        'created_at': moment(domain.created_at),
        'updated_at': moment(domain.updated_at),
        'changed_at': moment(domain.changed_at),
        'converged_at': moment(domain.converged_at),
        'shared': domain.shared,
        'links': {'self': zone_address(domain.id, base)},
    }


def masters(domain: Domain) -> list[str]:
    """The masters, without the port where that is the usual one."""
    endpoints = [Endpoint.parse(master) for master in domain.masters.split(',') if master]
    return [endpoint.host if endpoint.port == _DNS_PORT else str(endpoint) for endpoint in endpoints]


def _secondary(domain: Domain, refreshed: RefreshState | None) -> Json | None:
    """How a secondary zone follows its masters."""
    if not domain.is_secondary:
        return None
    checked_at = refreshed.checked_at if refreshed else None
    return {
        'masters': masters(domain),
        'served': not domain.awaits_transfer,
        'transferred_at': moment(domain.transferred_at),
        'checked_at': moment(checked_at),
        'checked_with': refreshed.master if refreshed else None,
        'expires_at': moment(checked_at + timedelta(seconds=domain.expire)) if checked_at else None,
        'next_refresh_at': moment(refreshed.next_at) if refreshed else None,
        'failures': refreshed.failures if refreshed else 0,
        'last_error': refreshed.last_error if refreshed else None,
    }


def zone_address(domain_id: str, base: str) -> str:
    """The URL of a zone's resource."""
    return f'{base}/v2/zones/{dashed(domain_id)}'


def recordset(found: RecordSet, domain: Domain, base: str) -> Json:
    """A recordset as the API answers it."""
    return {
        'id': dashed(found.id),
        'name': found.name,
        'type': found.type,
        'records': [record.data for record in found.records],
        'ttl': found.ttl,
        'description': found.description,
        'status': found.status.value,
        'action': found.action.value,
        'zone_id': dashed(domain.id),
        'zone_name': domain.name,
        'project_id': found.project_id or domain.project_id,
        'version': found.version,
        'created_at': moment(found.created_at),
        'updated_at': moment(found.updated_at),
        'links': {'self': f'{zone_address(domain.id, base)}/recordsets/{dashed(found.id)}'},
    }


def zone_servers(domain: Domain, servers: Sequence[PoolServer], rows: Iterable[ServerStatus], pool: Pool,
                 base: str, parked: Mapping[str | None, str] | None = None,
                 refreshed: RefreshState | None = None) -> Json:
    """The state of a domain on each server of its pool, and how many of them are needed.

    A server is *current* when it has what is due: the domain's serial or a newer one, or no zone where the domain is
    being deleted.  A server *counts* when it is active, and, where the pool counts them, while it joins; ``total``,
    ``needed`` and ``current`` are about these, and ``resting`` names those that will count again.  A server without a
    row of a domain that is being deleted is left out unless it counts.

    :param servers: of the domain's pool; the removed ones are left out
    :param pool: of the domain; the counts are null where its threshold was never published
    :param parked: ids of the plans that wait for approval, by server
    :param refreshed: of a secondary domain; None where that is not known
    """
    by_server = consensus.by_server(rows)
    shown = []
    for server in servers:
        counts = wait_verdict.counts(server, pool)
        actions = by_server.get(server.id, {})
        if counts or server.state is not ServerState.REMOVED and (actions or not domain.is_going):
            shown.append(_on_server(domain, server, actions, counts, (parked or {}).get(server.id)))
    published, total = pool.published_at is not None, sum(server_status['counts'] for server_status in shown)
    return {
        'zone_id': dashed(domain.id),
        'zone_name': domain.name,
        'serial': domain.serial,
        'reported_serial': domain.reported_serial,
        'status': domain.status.value,
        'action': domain.action.value,
        'threshold_percentage': pool.threshold_percentage if published else None,
        'needed': wait_verdict.needed_of(total, pool),
        'total': total if published else None,
        'current': sum(server_status['counts'] and server_status['current'] for server_status in shown),
        'resting': [server_status['id'] for server_status in shown
                    if not server_status['counts'] and server_status['state'] in _RESTING],
        'servers': shown,
        'secondary': _secondary(domain, refreshed),
        'links': {'self': f'{zone_address(domain.id, base)}/servers', 'zone': zone_address(domain.id, base)},
    }


def _on_server(domain: Domain, server: PoolServer, rows: dict[Action, ServerStatus], counts: bool,
               plan_id: str | None) -> Json:
    row = row_that_matters(domain, rows)
    due = Action.DELETE if domain.action is Action.DELETE else Action.CREATE
    return {
        **_named(server),
        'counts': counts,
        'action': (row.action if row else due).value,
        'status': row.status.value if row and row.status else 'PENDING',
        'current': consensus.is_current(domain, rows),
        'serial': row.serial_number if row else None,
        'expected_serial': row.expected_serial if row else domain.serial,
        'diverged': row is not None and row.diverged,
        'last_error': row.last_error if row else None,
        'reason': row.reason.value if row and row.reason and row.last_error is not None else None,
        'attempts': row.attempts if row else 0,
        'next_attempt_at': moment(row.next_attempt_at) if row else None,
        'deadline_at': moment(row.deadline_at) if row else None,
        'plan_id': plan_id and dashed(plan_id),
        'created_at': moment(row.created_at) if row else None,
        'updated_at': moment(row.updated_at) if row else None,
    }


def _named(server: PoolServer) -> Json:
    """The identity of a server; its label has the driver, the address, and the view if there is one."""
    address, _, _ = server.label.removeprefix(f'{server.driver}:').partition('/')
    host, _, port = address.rpartition(':')
    return {
        'id': dashed(server.id),
        'name': server.label,
        'driver': server.driver,
        'host': host.strip('[]'),
        'port': int(port),
        'state': server.state.value,
        'state_since': moment(server.state_since),
    }


def row_that_matters(domain: Domain, rows: dict[Action, ServerStatus]) -> ServerStatus | None:
    """The row of what a server lacks: DELETE while the domain is deleted, CREATE until it succeeds, then UPDATE."""
    if domain.action is Action.DELETE:
        return rows.get(Action.DELETE)
    create, update = rows.get(Action.CREATE), rows.get(Action.UPDATE)
    if create and create.status is not Outcome.SUCCESS:
        return create
    return update or create


def server(found: PoolServer, base: str) -> Json:
    """A server of a pool as the API answers it."""
    return {
        **_named(found),
        'pool_id': dashed(found.pool_id),
        'key_name': found.key_name,
        'verify': found.verify.split(',') if found.verify else [],
        'joined_at': moment(found.joined_at),
        'filling': found.is_filling,
        'filled': found.filled,
        'dismissed': found.dismissed,
        'delete_zones': found.delete_zones,
        'note': found.note,
        'reason': found.reason and found.reason.value,
        'version': found.version,
        'created_at': moment(found.created_at),
        'updated_at': moment(found.updated_at),
        'links': {'self': server_address(found.id, base)},
    }


def server_address(server_id: str, base: str) -> str:
    """The URL of a server's resource."""
    return f'{base}/v2/servers/{dashed(server_id)}'


def server_report(report: ServerReport, base: str) -> Json:
    """A server with its state and failures; ``rows`` is null where they were not counted."""
    return {
        **server(report.server, base),
        'domains': report.domains,
        'rows': report.rows,
        'waiting': report.waiting,
        'failing': report.failing,
        'in_hand': report.in_hand,
        'oldest_due_at': moment(report.oldest),
        'failures': [{'zone_name': name, 'action': action, 'error': error} for name, action, error in report.failures],
    }


def comparison(found: Comparison, base: str) -> Json:
    """The differences of a server.

    ``extra`` is null where extra zones are not known, ``other`` where contents were not compared, ``primary`` where it
    was not asked for.
    """
    return {
        'server_id': dashed(found.server_id),
        'total': found.total,
        'missing': list(found.missing),
        'behind': [{'zone_name': name, 'serial': serves, 'expected_serial': expected}
                   for name, serves, expected in found.behind],
        'extra': None if found.extra is None else list(found.extra),
        'extra_complete': found.extra is not None and found.extra_complete,
        'other': None if found.other is None else [{'zone_name': name, 'why': why} for name, why in found.other],
        'unchecked': [{'zone_name': name, 'why': why} for name, why in found.unchecked],
        'primary': None if found.primary is None else list(found.primary),
        'mending': found.mending,
        'deleted': found.deleted,
        'links': {'server': server_address(found.server_id, base)},
    }


def reloaded(found: Reloaded) -> Json:
    return {'joined': list(found.joined), 'changed': list(found.changed), 'draining': list(found.draining)}


def imported(task: ZoneTask, base: str) -> Json:
    """An import of a zone as the API answers it."""
    links = {'self': f'{base}/v2/zones/tasks/imports/{dashed(task.id)}'}
    if task.domain_id is not None:
        links['zone'] = zone_address(task.domain_id, base)
    return {**_zone_task(task), 'links': links}


def exported(task: ZoneTask, base: str) -> Json:
    """An export; its file is made when it is fetched."""
    address = f'{base}/v2/zones/tasks/exports/{dashed(task.id)}'
    links, location = {'self': address}, None
    if task.status is ZoneTaskStatus.COMPLETE:
        links['export'] = location = f'{address}/export'
    return {**_zone_task(task), 'location': location, 'links': links}


def _zone_task(task: ZoneTask) -> Json:
    return {
        'id': dashed(task.id),
        'status': task.status.value,
        'message': task.message,
        'zone_id': None if task.domain_id is None else dashed(task.domain_id),
        'project_id': task.project_id,
        'version': task.version,
        'created_at': moment(task.created_at),
        'updated_at': moment(task.updated_at),
    }


#: Messages that Designate's own tests know word for word, by the type of the error.
_WORDS = {'blacklist_not_found': 'Could not find Blacklist', 'pool_not_found': 'Could not find Pool',
          'tld_not_found': 'Could not find Tld', 'tsigkey_not_found': 'Could not find TsigKey'}


#: An id, as the services write it.
_DIGITS = re.compile(r'\b[0-9a-f]{32}\b')


def fault(error: PoolError, request_id: str) -> Json:
    """An error in Designate's form."""
    message = _WORDS.get(error.type) or str(error)
    if error.code == 404:
        message = _DIGITS.sub(lambda found: dashed(found[0]), message)
    answer = {'code': error.code, 'type': error.type, 'message': message, 'request_id': request_id}
    if isinstance(error, InvalidField):
        every = error.kwargs.get('all') or [(error.kwargs['field'], error.kwargs['why'])]
        answer['errors'] = {'errors': [{'path': field.split('.'), 'message': why} for field, why in every]}
    return answer
