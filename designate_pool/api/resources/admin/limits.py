"""``/v2/limits``: the limits of the requester's project, under Designate's names."""

from __future__ import annotations

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.base import CentralResource
from designate_pool.api.schema.operation import READER, ApiOperation, Schema
from designate_pool.api.schema.response_types import maybe, shape

#: Of a domain name as text, with its final dot (RFC 1035, 3.1).
LONGEST_NAME = 255
OPERATIONS = (
    ApiOperation('show_limits', 'GET', '/v2/limits', "Show the limits of your project", READER, {200: 'Limits'}),
)
_LIMIT = {'type': 'integer', 'minimum': -1}
SCHEMAS: dict[str, Schema] = {
    'Limits': shape({
        'max_page_limit': _LIMIT,
        'max_recordset_name_length': _LIMIT,
        'max_recordset_records': _LIMIT,
        'max_zone_name_length': _LIMIT,
        'max_zone_records': _LIMIT,
        'max_zone_recordsets': _LIMIT,
        'max_zones': _LIMIT,
        'min_ttl': maybe({'type': 'integer', 'minimum': 0}),
    }, description='Quotas and fixed limits; -1 is without limit, and a min_ttl of null allows every TTL.'),
}


class LimitsResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        request.query(req, {})
        quotas = self._central.get_quotas(requester(req), requester(req).project_id)
        answer(resp, {
            'max_page_limit': request.LARGEST_PAGE,
            'max_recordset_name_length': LONGEST_NAME,
            'max_recordset_records': quotas['recordset_records'],
            'max_zone_name_length': LONGEST_NAME,
            'max_zone_records': quotas['zone_records'],
            'max_zone_recordsets': quotas['zone_recordsets'],
            'max_zones': quotas['zones'],
            'min_ttl': None,
        })
