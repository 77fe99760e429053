"""``/v2/servers``: the servers of the API's pool, and what is commanded about them."""

from __future__ import annotations

import falcon

from designate_pool.api import fields, reading, views
from designate_pool.api.answering import answer, asker
from designate_pool.model import PoolServer
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.pool_manager import PoolManagerClient


class Servers:
    def __init__(self, central: CentralClient, pool_managers: PoolManagerClient, pool_name: str) -> None:
        self._central = central
        self._pool_managers = pool_managers
        self._pool_name = pool_name

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        reading.query(req, {})
        reports = self._central.report_servers(asker(req), self._pool_name)
        answer(resp, views.page('servers', [views.server_report(report, req.prefix) for report in reports],
                                {'self': req.url}))

    def on_post_reload(self, req: falcon.Request, resp: falcon.Response) -> None:
        reading.body(req, {}, optional=True)
        answer(resp, views.reloaded(self._pool_managers.reload_servers(asker(req), self._pool_name)))


class Server:
    """One server; what is commanded is written when it is answered, and carried out afterwards."""

    def __init__(self, central: CentralClient, pool_managers: PoolManagerClient, pool_name: str) -> None:
        self._central = central
        self._pool_managers = pool_managers
        self._pool_name = pool_name

    def on_get(self, req: falcon.Request, resp: falcon.Response, server_id: str) -> None:
        report = self._central.report_server(asker(req), fields.identifier('server_id', server_id))
        answer(resp, views.server_report(report, req.prefix))

    def on_post_maintenance(self, req: falcon.Request, resp: falcon.Response, server_id: str) -> None:
        reading.body(req, {}, optional=True)
        _accept(req, resp, self._central.rest_server(asker(req), fields.identifier('server_id', server_id)))

    def on_post_resume(self, req: falcon.Request, resp: falcon.Response, server_id: str) -> None:
        reading.body(req, {}, optional=True)
        _accept(req, resp, self._central.resume_server(asker(req), fields.identifier('server_id', server_id)))

    def on_post_drain(self, req: falcon.Request, resp: falcon.Response, server_id: str) -> None:
        wanted = reading.body(req, fields.SERVER_DRAIN, optional=True)
        _accept(req, resp, self._central.drain_server(asker(req), fields.identifier('server_id', server_id), **wanted))

    def on_post_resync(self, req: falcon.Request, resp: falcon.Response, server_id: str) -> None:
        wanted = reading.body(req, fields.SERVER_RESYNC, optional=True)
        found = self._pool_managers.compare_server(asker(req), self._pool_name,
                                                   fields.identifier('server_id', server_id), **wanted)
        answer(resp, views.comparison(found, req.prefix), 202 if found.mending else 200)


def _accept(req: falcon.Request, resp: falcon.Response, server: PoolServer) -> None:
    answer(resp, views.server(server, req.prefix), 202)
