"""``/v2/zones/{zone_id}/recordsets``."""

from __future__ import annotations

import falcon

from designate_pool.api import fields, reading, views
from designate_pool.api.answering import answer, asker
from designate_pool.errors import BadInput
from designate_pool.rpc.central import CentralClient


class RecordSets:
    def __init__(self, central: CentralClient) -> None:
        self._central = central

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        domain_id = fields.identifier('zone_id', zone_id)
        wanted = reading.listing(req, fields.RECORDSET_FILTERS)
        domain = self._central.get_domain(asker(req), domain_id)
        found = self._central.find_recordsets(asker(req), domain_id, **wanted.ask())
        page, links = reading.page_links(req, found, wanted.limit)
        answer(resp, views.page('recordsets', [views.recordset(each, domain, req.prefix) for each in page], links))

    def on_post(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        domain_id = fields.identifier('zone_id', zone_id)
        given = reading.body(req, fields.RECORDSET_CREATE)
        wanted = {name: value for name, value in given.items() if value is not None}
        domain = self._central.get_domain(asker(req), domain_id)
        created = self._central.create_recordset(asker(req), domain_id, wanted)
        shown = views.recordset(created, domain, req.prefix)
        answer(resp, shown, 202, at=shown['links']['self'])


class RecordSet:
    def __init__(self, central: CentralClient) -> None:
        self._central = central

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> None:
        domain_id, found_id = _ids(zone_id, recordset_id)
        domain = self._central.get_domain(asker(req), domain_id)
        found = self._central.get_recordset(asker(req), domain_id, found_id)
        answer(resp, views.recordset(found, domain, req.prefix))

    def on_put(self, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> None:
        domain_id, found_id = _ids(zone_id, recordset_id)
        values = reading.body(req, fields.RECORDSET_UPDATE)
        if not values:
            raise BadInput(why='the body names nothing to change')
        domain = self._central.get_domain(asker(req), domain_id)
        changed = self._central.update_recordset(asker(req), domain_id, found_id, values)
        answer(resp, views.recordset(changed, domain, req.prefix), 202)

    on_patch = on_put

    def on_delete(self, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> None:
        domain_id, found_id = _ids(zone_id, recordset_id)
        domain = self._central.get_domain(asker(req), domain_id)
        deleted = self._central.delete_recordset(asker(req), domain_id, found_id)
        answer(resp, views.recordset(deleted, domain, req.prefix), 202)


def _ids(zone_id: str, recordset_id: str) -> tuple[str, str]:
    return fields.identifier('zone_id', zone_id), fields.identifier('recordset_id', recordset_id)
