"""The log of operations: one line when one succeeds, one when it has failed.

Failures on a server whose circuit is open are not logged, since there would be one for every domain.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from designate_pool import logs
from designate_pool.model import Action, AuditFinding, Outcome, ServerStatus
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.reconcile.domain_state import DomainState

#: Operators filter by this name.
LOG = logging.getLogger('designate_pool.pool_manager.operation_log')


def log_ended(rows: Iterable[ServerStatus], states: Mapping[str, DomainState],
              workers: Mapping[str, ServerWorker]) -> None:
    """Log those *rows* that have ended.

    :param states: by domain id, of the rows
    :param workers: by server id
    """
    if not LOG.isEnabledFor(logging.INFO):
        return
    for row in rows:
        state, worker = states[row.domain_id], workers.get(row.server_id)
        # A row that is only retried keeps its outcome and has no former one.
        if row.status is None or row.status is state.former_outcomes.get((row.server_id, row.action), row.status):
            continue
        server = row.server_id if worker is None else worker.server.label
        about = {'domain': state.domain.name, 'server': server, 'action': row.action.value,
                 'request_id': _cause(row, state.domain.request_id)}
        if row.status is Outcome.SUCCESS:
            serial = row.serial_number if row.action is Action.UPDATE else row.expected_serial
            logs.transition(LOG, logging.INFO, '%s of %s at serial %s on %s: SUCCESS', row.action, about['domain'],
                            serial, server, serial=serial, status='SUCCESS', **about)
        elif row.diverged and not row.attempts:
            logs.transition(LOG, logging.WARNING, '%s on %s: DIVERGED: %s', about['domain'], server, row.last_error,
                            serial=row.serial_number, status='DIVERGED', error=row.last_error, **about)
        elif worker is None or not _is_silent(worker, row.action):
            logs.transition(LOG, logging.WARNING, '%s of %s at serial %s on %s: ERROR, tried %d times: %s', row.action,
                            about['domain'], row.expected_serial, server, row.attempts, row.last_error,
                            serial=row.expected_serial, status='ERROR', error=row.last_error, **about)


def _cause(row: ServerStatus, request_id: str) -> str:
    """The id of the audit finding that made the row due, or of the request that changed the domain."""
    if row.finding_id is None or row.action is Action.DELETE:
        return request_id
    return AuditFinding.request_id_of(row.finding_id)


def _is_silent(worker: ServerWorker, action: Action) -> bool:
    by_dns = action is Action.UPDATE and not worker.backend.capabilities.fed_by_records
    return (worker.dns if by_dns else worker.control).is_open
