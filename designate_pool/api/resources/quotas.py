"""``/v2/quotas``: how much a project may have; ``/v2/limits``: the same for the requester, under Designate's names."""

from __future__ import annotations

import falcon

from designate_pool.api.auth.identity import changing_any_project
from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, calls
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import COUNT, AnswerField, AnswerForm, Json, maybe
from designate_pool.api.schema.operation import ADMIN, READER, Operations
from designate_pool.api.schema.request_fields import RequestField

#: Of a domain name as text, with its final dot (RFC 1035, 3.1).
LONGEST_NAME = 255
_LIMIT = AnswerField({'type': 'integer', 'minimum': -1})
QUOTAS = AnswerForm('Quotas', {name: _LIMIT.about(description) for name, description in {
    'api_export_size': 'Recordsets of a zone that can be exported.',
    'deletes_per_hour': 'Recordsets that requests delete in an hour, with those of deleted zones.',
    'recordset_records': 'Records of a recordset.',
    'zone_deletes_per_hour': 'Recordsets that requests delete in an hour in one zone.',
    'zone_records': 'Records of a zone, without those generated from its pool.',
    'zone_recordsets': 'Recordsets of a zone, without those generated from its pool.',
    'zones': 'Zones of the project.',
}.items()}, None, 'deletes_per_hour', 'zone_deletes_per_hour',
    description='What a project may have; -1 is without limit, as is a limit of deletes that is not there.')
_MAX_QUOTAS = {f'max_{name}': name for name in ('recordset_records', 'zone_records', 'zone_recordsets', 'zones')}
LIMITS = AnswerForm('Limits', {
    **dict.fromkeys(('max_page_limit', 'max_recordset_name_length', 'max_zone_name_length', *_MAX_QUOTAS), _LIMIT),
    'min_ttl': maybe(COUNT),
}, description='Quotas and fixed limits; -1 is without limit, and a min_ttl of null allows every TTL.')
SET = {name: RequestField(request_fields.number_from(-1, request_fields.MAX_NUMBER)) for name in QUOTAS.fields}
_OWN, _OF_PROJECT = '/v2/quotas', '/v2/quotas/{project_id}'
OPERATIONS = Operations('quotas')
OPERATIONS.add('GET', _OF_PROJECT, 'Show the quotas of a project; of another one with X-Auth-All-Projects', READER,
               {200: QUOTAS}, 'show_quotas')(calls(lambda central: central.get_quotas))
OPERATIONS.add('DELETE', _OF_PROJECT, "Reset a project's quotas to those of the configuration", ADMIN, {204: None},
               'reset_quotas')(calls(lambda central: central.reset_quotas, changing_any_project))


@OPERATIONS.add('GET', _OWN, "Show the quotas of your project", READER, {200: QUOTAS})
def show_own_quotas(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    return api.central.get_quotas(requester(req), requester(req).project_id)


@OPERATIONS.add('PATCH', _OF_PROJECT, 'Set some quotas of a project', ADMIN, {200: QUOTAS}, body=SET)
def set_quotas(api: Api, req: falcon.Request, resp: falcon.Response, project_id: str) -> Json:
    values = request.changes(req)
    api.check_project(req, project_id)
    return api.central.set_quotas(requester(req), project_id, values)


@OPERATIONS.add('GET', '/v2/limits', "Show the limits of your project", READER, {200: LIMITS}, tag='limits')
def show_limits(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    request.query(req)
    quotas = api.central.get_quotas(requester(req), requester(req).project_id)
    return {'max_page_limit': request.LARGEST_PAGE, 'max_recordset_name_length': LONGEST_NAME,
            'max_zone_name_length': LONGEST_NAME, **{limit: quotas[name] for limit, name in _MAX_QUOTAS.items()},
            'min_ttl': None}
