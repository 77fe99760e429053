"""Which servers serve the present contents of a recordset.  Pure: values in, JSON out."""

from __future__ import annotations

from typing import Any

from designate_pool import consensus
from designate_pool.api.services import wait_verdict
from designate_pool.api.services.wait_verdict import WaitTarget, ZoneState
from designate_pool.model import Action, Domain, RecordSet, ServerState

_LEFT = (ServerState.DRAINING, ServerState.REMOVED)


def recordset_servers(domain: Domain, found: RecordSet, serial: int, state: ZoneState) -> dict[str, Any]:
    """The state of a recordset's last change on each server of the pool, with counts.

    :param serial: at which the recordset was changed last
    :param state: of *domain*, with servers, rows and pool
    :returns: with ids of 32 digits; ``needed`` and ``total`` are null where the pool's threshold is not known
    """
    target = WaitTarget(domain.id, serial)
    counting = wait_verdict.counting(state)
    ours = wait_verdict.needed(state)
    rows = consensus.by_server(state.rows)
    return {
        'zone_id': domain.id,
        'zone_name': domain.name,
        'recordset_id': found.id,
        'name': found.name,
        'type': found.type,
        'serial': serial,
        'status': found.status.value,
        'action': found.action.value,
        'needed': ours,
        'total': None if ours is None else len(counting),
        'current': len(wait_verdict.current(target, state)),
        'servers': [{
            'id': server.id,
            'name': server.label,
            'state': server.state.value,
            'counts': server in counting,
            'serial': row.serial_number if (row := rows.get(server.id, {}).get(Action.UPDATE)) else None,
            'served': consensus.serves(domain, rows.get(server.id, {}), serial),
        } for server in state.servers if server.state not in _LEFT or Action.UPDATE in rows.get(server.id, {})],
    }
