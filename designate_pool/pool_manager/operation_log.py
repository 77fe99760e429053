"""The log of what became of operations: one line when one succeeds, one when it has failed.

A server that does not answer fails at everything, and at every try again.  That its circuit opened and closed is told
by whoever minds it; its rows are not, or a dead server would fill the log with every domain there is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from designate_pool import logs
from designate_pool.model import Action, AuditFinding, Outcome, ServerStatus
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.reconcile.domain_state import DomainState

LOG = logging.getLogger(__name__)


def written(rows: Iterable[ServerStatus], situations: Mapping[str, DomainState],
            lanes: Mapping[str, ServerWorker]) -> None:
    """Tell of those *rows* that have come to an end.

    :param situations: by domain id, from which the rows were written
    :param lanes: by server id
    """
    if not LOG.isEnabledFor(logging.INFO):
        return
    for row in rows:
        situation, lane = situations[row.domain_id], lanes.get(row.server_id)
        # A row that only goes to be tried again has no former outcome: it keeps the one that it has.
        if row.status is None or row.status is situation.former.get((row.server_id, row.action), row.status):
            continue
        server = row.server_id if lane is None else lane.server.label
        about = {'domain': situation.domain.name, 'server': server, 'action': row.action.value,
                 'request_id': _cause(row, situation.domain.request_id)}
        if row.status is Outcome.SUCCESS:
            serial = row.serial_number if row.action is Action.UPDATE else row.expected_serial
            logs.transition(LOG, logging.INFO, '%s of %s at serial %s on %s: SUCCESS', row.action, about['domain'],
                            serial, server, serial=serial, status='SUCCESS', **about)
        elif row.diverged and not row.attempts:
            logs.transition(LOG, logging.WARNING, '%s on %s: %s', about['domain'], server, row.last_error,
                            serial=row.serial_number, status='DIVERGED', error=row.last_error, **about)
        elif lane is None or not _is_silent(lane, row.action):
            logs.transition(LOG, logging.WARNING, '%s of %s at serial %s on %s: ERROR, tried %d times: %s', row.action,
                            about['domain'], row.expected_serial, server, row.attempts, row.last_error,
                            serial=row.expected_serial, status='ERROR', error=row.last_error, **about)


def _cause(row: ServerStatus, request_id: str) -> str:
    """The id of the finding that the row was due for, or of the request that changed the domain."""
    if row.finding_id is None or row.action is Action.DELETE:
        return request_id
    return AuditFinding.request_id_of(row.finding_id)


def _is_silent(lane: ServerWorker, action: Action) -> bool:
    by_dns = action is Action.UPDATE and not lane.backend.capabilities.fed_by_records
    return (lane.dns if by_dns else lane.control).is_open
