"""Zones in and out as zone files: ``/v2/zones/tasks/imports``, ``/v2/zones/tasks/exports``."""

from __future__ import annotations

import falcon

from designate_pool.api import fields, reading, views
from designate_pool.api.answering import answer, asker
from designate_pool.api.tasks import Import, Imports
from designate_pool.errors import PoolError
from designate_pool.model import new_id, utcnow
from designate_pool.rpc.central import CentralClient


class ZoneImports:
    """
    :param limit: how many bytes a zone file may have
    """

    def __init__(self, central: CentralClient, tasks: Imports, limit: int) -> None:
        self._central = central
        self._tasks = tasks
        self._limit = limit

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        reading.query(req, {})
        tasks = [views.imported(task, req.prefix) for task in self._tasks.visible(asker(req))]
        answer(resp, views.page('imports', tasks, {'self': req.url}))

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        task = self._carry_out(req, reading.zone_file(req, self._limit))
        self._tasks.add(task)
        shown = views.imported(task, req.prefix)
        answer(resp, shown, 202, at=shown['links']['self'])

    def _carry_out(self, req: falcon.Request, text: str) -> Import:
        who, began = asker(req), utcnow()
        try:
            domain = self._central.import_zone(who, text)
        except PoolError as error:
            # A fault of the zone file is the import's outcome; a fault of ours is the request's.
            if error.code >= 500:
                raise
            return Import(new_id(), who.project_id, began, utcnow(), None, str(error))
        return Import(new_id(), who.project_id, began, utcnow(), domain.id, f'{domain.name} imported')


class ZoneImport:
    def __init__(self, tasks: Imports) -> None:
        self._tasks = tasks

    def on_get(self, req: falcon.Request, resp: falcon.Response, import_id: str) -> None:
        task = self._tasks.get(asker(req), fields.identifier('import_id', import_id))
        answer(resp, views.imported(task, req.prefix))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, import_id: str) -> None:
        """Forget the import; the zone that it made stays."""
        self._tasks.remove(asker(req), fields.identifier('import_id', import_id))
        resp.status = 204


class ZoneExports:
    """An export is made whenever it is fetched: nothing is kept, its id is the zone's, any API process can serve it."""

    def __init__(self, central: CentralClient) -> None:
        self._central = central

    def on_post(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        domain = self._central.get_domain(asker(req), fields.identifier('zone_id', zone_id))
        shown = views.exported(domain, utcnow(), req.prefix)
        answer(resp, shown, 202, at=shown['links']['self'])


class ZoneExport:
    def __init__(self, central: CentralClient) -> None:
        self._central = central

    def on_get(self, req: falcon.Request, resp: falcon.Response, export_id: str) -> None:
        domain = self._central.get_domain(asker(req), fields.identifier('export_id', export_id))
        answer(resp, views.exported(domain, utcnow(), req.prefix))

    def on_get_file(self, req: falcon.Request, resp: falcon.Response, export_id: str) -> None:
        resp.text = self._central.export_zone(asker(req), fields.identifier('export_id', export_id))
        resp.content_type = 'text/dns'
