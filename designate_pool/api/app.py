"""The WSGI application: which address leads where."""

from __future__ import annotations

from typing import Any

import falcon

from designate_pool.api.answering import Envelope, handle_errors
from designate_pool.api.health import Health, Versions
from designate_pool.api.plans import Plan, Plans
from designate_pool.api.reading import JSON_LIMIT
from designate_pool.api.recordsets import RecordSet, RecordSets
from designate_pool.api.servers import Server, Servers
from designate_pool.api.tasks import Imports
from designate_pool.api.transfers import ZoneExport, ZoneExports, ZoneImport, ZoneImports
from designate_pool.api.zones import Zone, ZoneChanges, Zones, ZoneServers
from designate_pool.model import Pool
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.pool_manager import PoolManagerClient

IMPORT_LIMIT = 64 << 20


def create_app(central: CentralClient, pool: Pool, import_limit: int = IMPORT_LIMIT, *,
               pool_managers: PoolManagerClient, count_joining_servers: bool = False) -> falcon.App[Any, Any]:
    """The API as a WSGI application.

    :param pool: as read from the configuration: the one whose servers are commanded, and its threshold
    :param import_limit: how many bytes a zone file may have, and what else holds a whole zone (changes, a plan) unless
        all requests may have more
    :param count_joining_servers: whether servers count in the threshold before they are filled
    """
    app: falcon.App[Any, Any] = falcon.App(middleware=[Envelope()])
    app.req_options.strip_url_path_trailing_slash = True
    handle_errors(app)
    whole = max(import_limit, JSON_LIMIT)
    imports, exported, versions = Imports(), ZoneExport(central), Versions()
    app.add_route('/', versions)
    app.add_route('/v2', versions, suffix='v2')
    app.add_route('/healthz', Health(central))
    app.add_route('/v2/zones', Zones(central, whole))
    app.add_route('/v2/zones/{zone_id}', Zone(central))
    app.add_route('/v2/zones/{zone_id}/servers', ZoneServers(central, pool, count_joining_servers))
    app.add_route('/v2/zones/{zone_id}/changes', ZoneChanges(central, whole))
    app.add_route('/v2/zones/{zone_id}/recordsets', RecordSets(central))
    app.add_route('/v2/zones/{zone_id}/recordsets/{recordset_id}', RecordSet(central))
    app.add_route('/v2/zones/{zone_id}/tasks/export', ZoneExports(central))
    app.add_route('/v2/zones/tasks/imports', ZoneImports(central, imports, import_limit))
    app.add_route('/v2/zones/tasks/imports/{import_id}', ZoneImport(imports))
    app.add_route('/v2/zones/tasks/exports/{export_id}', exported)
    app.add_route('/v2/zones/tasks/exports/{export_id}/export', exported, suffix='file')
    plan = Plan(central)
    app.add_route('/v2/plans', Plans(central, whole))
    app.add_route('/v2/plans/{plan_id}', plan)
    for command in ('approve', 'settle'):
        app.add_route(f'/v2/plans/{{plan_id}}/{command}', plan, suffix=command)
    servers, server = Servers(central, pool_managers, pool.name), Server(central, pool_managers, pool.name)
    app.add_route('/v2/servers', servers)
    app.add_route('/v2/servers/reload', servers, suffix='reload')
    app.add_route('/v2/servers/{server_id}', server)
    for command in ('maintenance', 'resume', 'drain', 'resync'):
        app.add_route(f'/v2/servers/{{server_id}}/{command}', server, suffix=command)
    return app
