"""``/v2/pools``, and a zone's name servers, which are its pool's."""

from __future__ import annotations

import dataclasses
import json
import operator

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, calls, show_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (COUNT, FLAG, FREEZE, ID, TEXT, TEXT_BY_NAME, TEXTS, VERSIONED,
                                               AnswerForm, Json, ListAnswer, inline, many, maybe, one)
from designate_pool.api.schema.operation import ADMIN, OPERATOR, READER, Operations
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.model import Freeze, Pool, dashed

_ONE = '/v2/pools/{pool_id}'
FILTERS = dict.fromkeys(('name', 'description'), RequestField(request_fields.some_text))
NAME_SERVER = AnswerForm('NameServer', {'hostname': TEXT.of(operator.itemgetter(0)),
                                        'priority': COUNT.of(operator.itemgetter(1))})
NAME_SERVERS = AnswerForm('NameServers', {'nameservers': many(one(NAME_SERVER)).of('ns_records')})
POOL = AnswerForm('Pool', {
    'id': ID,
    'name': TEXT,
    'description': maybe(TEXT),
    'project_id': maybe(TEXT),
    'provisioner': TEXT,
    'attributes': TEXT_BY_NAME.of(lambda pool: json.loads(pool.attributes or '{}')),
    # By priority: the first is the primary of every SOA.
    'ns_records': many(one(NAME_SERVER)),
    'also_notifies': TEXTS,
    'threshold_percentage': maybe(COUNT).of(
        lambda pool: pool.threshold_percentage if pool.published_at is not None else None).about(
        'Null where no pool manager has published it yet; so are the next two.'),
    'catalog_zone': maybe(TEXT),
    'count_joining_servers': maybe(FLAG).of(
        lambda pool: pool.count_joining_servers if pool.published_at is not None else None),
    'freeze': maybe(inline(AnswerForm('', {**FREEZE.fields, 'user': TEXT.about('Who froze it.')}))).of(
        lambda pool: Freeze.parse(pool.freeze)).about('Null where it is not frozen.'),
    'requires_approval': FLAG.about('Whether changes of its zones wait for approval.'),
    **VERSIONED,
}, {'self': lambda pool: f'/v2/pools/{dashed(pool.id)}'})
POOLS = ListAnswer('Pools', 'pools', POOL)
LIMITS = AnswerForm('PoolLimits', {
    'limits': many(inline(AnswerForm('', {'what': TEXT, 'limit': COUNT, 'why': TEXT}))),
}, description="What the pool's servers do not take of a zone, as refusals name it.")
OPERATIONS = Operations('pools')
OPERATIONS.add('GET', _ONE, 'Show a pool', OPERATOR, {200: POOL}, 'show_pool')(calls(lambda central: central.get_pool))
OPERATIONS.add('DELETE', _ONE, 'Delete a pool that has no zones', ADMIN, {204: None}, 'delete_pool')(
    calls(lambda central: central.delete_pool))
OPERATIONS.add('POST', f'{_ONE}/tasks/freeze', 'Freeze a pool: changes of its zones wait, its servers get nothing new',
               ADMIN, {200: POOL}, 'freeze_pool', body=request_fields.FREEZE)(
    calls(lambda central: central.frozen_pools.freeze))
OPERATIONS.add('POST', f'{_ONE}/tasks/unfreeze', 'Unfreeze a pool: what has waited goes out', ADMIN, {200: POOL},
               'unfreeze_pool')(calls(lambda central: central.frozen_pools.unfreeze))


@OPERATIONS.add('GET', '/v2/pools', 'List pools', OPERATOR, {200: POOLS}, query=FILTERS, is_list=True)
def list_pools(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    return show_page(req, lambda context, page: api.central.find_pools(context, *dataclasses.astuple(page)))


@OPERATIONS.add('POST', '/v2/pools', 'Create a pool', ADMIN, {201: POOL}, body=request_fields.POOL_CREATE,
                has_location=True)
def create_pool(api: Api, req: falcon.Request, resp: falcon.Response) -> Pool:
    return api.central.create_pool(requester(req), request.body(req))


@OPERATIONS.add('GET', f'{_ONE}/limits', "Show what a pool's servers do not take of a zone", READER, {200: LIMITS})
def show_pool_limits(api: Api, req: falcon.Request, resp: falcon.Response, pool_id: str) -> Json:
    request.query(req)
    return LIMITS.show(None, limits=[limit._asdict() for limit in api.central.pool_limits(requester(req), pool_id)])


@OPERATIONS.add('PATCH', _ONE, 'Change a pool; new name servers give every zone of it a new serial', ADMIN, {202: POOL},
                body=request_fields.POOL_UPDATE)
def update_pool(api: Api, req: falcon.Request, resp: falcon.Response, pool_id: str) -> Pool:
    values = request.changes(req, lambda: POOL.show(api.central.get_pool(requester(req), pool_id), req.prefix))
    return api.central.update_pool(requester(req), {'id': pool_id, **values})


@OPERATIONS.add('GET', '/v2/zones/{zone_id}/nameservers', "List a zone's name servers", READER, {200: NAME_SERVERS})
def list_zone_nameservers(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Json:
    domain = api.own_domain(requester(req), zone_id)
    return NAME_SERVERS.show(api.central.get_pool(requester(req), domain.pool_id))
