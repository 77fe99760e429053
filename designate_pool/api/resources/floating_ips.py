"""PTR records of floating IPs: ``/v2/reverse/floatingips``.

A PTR record that is not the present floating IP's is deleted by whoever asks next: that of an address that belongs to
another floating IP now, and that of one that is gone.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from typing import Any

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, show_all
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (ACTION, CHANGE_LINK, COUNT, TEXT, AnswerForm, Json, ListAnswer, choice,
                                               maybe)
from designate_pool.api.schema.operation import MEMBER, READER, Operations
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.api.services.neutron import NeutronClient
from designate_pool.errors import BadInput, ChangeMoved, NotFound, PoolError, Refused, WaitsForApproval
from designate_pool.model import PTR, Context, FloatingIp, new_id

LOG = logging.getLogger(__name__)
_ALL, _ONE = '/v2/reverse/floatingips', '/v2/reverse/floatingips/{floating_ip}'
_PTR = {
    'ptrdname': RequestField(request_fields.some_text, required=True, nullable=True, example='www.example.com.'),
    'description': RequestField(request_fields.text, nullable=True),
    'ttl': RequestField(request_fields.number, nullable=True, example=300),
    **dict.fromkeys(('id', 'address', 'action', 'status'), RequestField(request_fields.fixed, key='')),
}
FLOATING_IP = AnswerForm('FloatingIp', {
    'id': TEXT.of(lambda floating_ip: f'{floating_ip.region}:{floating_ip.id}').about(
        'Region and id, with a colon between them.'),
    'address': TEXT,
    'ptrdname': maybe(TEXT),
    'description': maybe(TEXT),
    'ttl': maybe(COUNT),
    'action': ACTION,
    'status': choice('ACTIVE', 'ERROR', 'INACTIVE', 'PENDING'),
}, {'self': lambda floating_ip: f'{_ALL}/{floating_ip.region}:{floating_ip.id}', **CHANGE_LINK}, 'change')
FLOATING_IPS = ListAnswer('FloatingIps', 'floatingips', FLOATING_IP)
OPERATIONS = Operations('floating_ips')


@OPERATIONS.add('GET', _ALL, 'List the floating IPs of a project with their PTR records', READER, {200: FLOATING_IPS},
                errors=(501, 502))
def list_floating_ips(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    return show_all(req, find_floating_ips(api, req))


@OPERATIONS.add('GET', _ONE, 'Show a floating IP with its PTR record', READER, {200: FLOATING_IP}, errors=(501, 502))
def show_floating_ip(api: Api, req: falcon.Request, resp: falcon.Response, floating_ip: str) -> FloatingIp:
    return _get(api, req, floating_ip)


@OPERATIONS.add('PATCH', _ONE, 'Set the PTR record of a floating IP, or delete it', MEMBER, {202: FLOATING_IP},
                body=_PTR, errors=(501, 502))
def update_floating_ip(api: Api, req: falcon.Request, resp: falcon.Response, floating_ip: str) -> FloatingIp:
    values = request.body(req, of=lambda: _get(api, req, floating_ip))
    context, _ = _of_project(api, req)
    if values['ptrdname'] is not None:
        present = _get(api, req, floating_ip)
        return api.central.set_floating_ip(
            context, {'region': present.region, 'id': present.id, 'address': present.address}, values)
    region, _, floating_ip_id = floating_ip.partition(':')
    try:
        api.central.unset_floating_ip(context, region, floating_ip_id.lower())
    except WaitsForApproval as waiting:
        raise WaitsForApproval(**{**waiting.kwargs, 'value': _get(api, req, floating_ip)}) from None
    # Designate answers null, which openstacksdk cannot read.
    return _get(api, req, floating_ip)


def check_approved(api: Api, req: falcon.Request, change_id: str, asker: Context, method: str,
                   arguments: Mapping[str, Any]) -> None:
    """Refuse to give a PTR record to a floating IP that is not any more that of who has asked for it.

    :raises ChangeMoved: when it is not
    :raises Refused: when the token of who approves it does not tell, as it sees none there of that project
    """
    if method != 'set_floating_ip':
        return
    region, key, address = (arguments['floating_ip'][name] for name in ('region', 'id', 'address'))
    shown = _neutron(api).floating_ips(req, asker.project_id, region)
    if not shown:
        raise Refused('floating_ips_not_shown', f'Neutron shows your token no floating IP of the project '
                                                f'{asker.project_id} in {region}, so whose {address} is is not known.',
                      409)
    if (region, key, address) not in shown:
        raise ChangeMoved(change=change_id, why=f'the floating IP {address} is another one by now')


def find_floating_ips(api: Api, req: falcon.Request, region: str | None = None) -> list[FloatingIp]:
    """Those of the requester's project, with their PTR records, after outdated ones were deleted.

    :param region: None for all
    """
    context, neutron = _of_project(api, req)
    # First, so that what others set while Neutron answers is not taken for outdated.
    former = api.central.find_managed_records(context, {'resource_type': PTR})
    neutron_ips = neutron.floating_ips(req, context.project_id, region)
    floating_ips = api.central.find_floating_ips(context, [neutron_ip._asdict() for neutron_ip in neutron_ips])
    # Neutron hides floating IPs from users without the rights to them, so only a region counts of which it shows some.
    shown = {(neutron_ip.region, neutron_ip.id) for neutron_ip in neutron_ips}
    regions = {neutron_ip.region for neutron_ip in neutron_ips}
    outdated = [managed.id for managed in former
                if managed.region in regions and (managed.region, managed.resource_id) not in shown]
    taken = {floating_ip.outdated: (floating_ip.region, floating_ip.id) for floating_ip in floating_ips
             if floating_ip.outdated is not None}
    if taken:
        # Another request may have set it after Neutron was asked.
        still = {(neutron_ip.region, neutron_ip.id)
                 for neutron_ip in neutron.floating_ips(req, context.project_id, region)}
        outdated += [managed_id for managed_id, key in taken.items() if key in still]
    if outdated:
        # An operation of its own: the request may go on to change the same zone.
        try:
            api.central.delete_managed_records(
                dataclasses.replace(context, all_projects=True, may_approve=True, operation_id=new_id()), outdated)
        except PoolError as error:
            if error.code >= 500:
                raise
            LOG.warning('outdated PTR records of floating IPs stay until the next request: %s', error)
    return floating_ips


def _get(api: Api, req: falcon.Request, key: str) -> FloatingIp:
    region, _, floating_ip_id = key.partition(':')
    for floating_ip in find_floating_ips(api, req, region):
        if floating_ip.id.lower() == floating_ip_id.lower():
            return floating_ip
    raise NotFound(what=f'floating IP {key} of this project')


def _of_project(api: Api, req: falcon.Request) -> tuple[Context, NeutronClient]:
    context, neutron = dataclasses.replace(requester(req), all_projects=False), _neutron(api)
    if not context.project_id:
        raise BadInput(why='floating IPs belong to a project, and the request names none')
    return context, neutron


def _neutron(api: Api) -> NeutronClient:
    if api.neutron is None:
        raise Refused('not_implemented', 'Floating IPs are those of Neutron, which needs [service:api] auth = '
                                         'keystone; instead, create the reverse zone and its PTR recordsets as any '
                                         'other.', 501)
    return api.neutron
