"""Plans as the API shows them.  Pure, as :mod:`designate_pool.api.views.designate`."""

from __future__ import annotations

import json

from designate_pool.api.views.designate import Json, moment, server_address, zone_address
from designate_pool.model import StoredPlan, dashed


def plan(found: StoredPlan, base: str) -> Json:
    """A plan without its document, as lists have it."""
    links = {'self': plan_address(found.id, base)}
    if found.domain_id is not None:
        links['zone'] = zone_address(found.domain_id, base)
    if found.server_id is not None:
        links['server'] = server_address(found.server_id, base)
    return {
        'id': dashed(found.id),
        'pool_name': found.pool_name,
        'zone_name': found.zone,
        'zone_id': found.domain_id and dashed(found.domain_id),
        'target': found.target,
        'server_id': found.server_id and dashed(found.server_id),
        'state': found.state.value,
        'creates': found.creates,
        'updates': found.updates,
        'deletes': found.deletes,
        'why': found.why,
        'desired_digest': found.desired_digest,
        'existing_digest': found.existing_digest,
        'asked_by': found.asked_by,
        'expires_at': moment(found.expires_at),
        'applied_at': moment(found.applied_at),
        'created_at': moment(found.created_at),
        'updated_at': moment(found.updated_at),
        'links': links,
    }


def whole_plan(found: StoredPlan, base: str) -> Json:
    """A plan as the API answers it, with its document."""
    return {**plan(found, base), 'document': json.loads(found.document or '{}')}


def plan_address(plan_id: str, base: str) -> str:
    """The URL of a plan's resource."""
    return f'{base}/v2/plans/{dashed(plan_id)}'
