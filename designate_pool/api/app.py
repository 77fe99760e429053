"""The WSGI application and its routes."""

from __future__ import annotations

from typing import Any

import falcon

from designate_pool.api import operation_registry
from designate_pool.api.auth.keystone import CheckProject, any_project
from designate_pool.api.auth.middleware import AuthMiddleware, NoAuth
from designate_pool.api.auth.policy import AllowAll
from designate_pool.api.http.envelope import Envelope, handle_errors
from designate_pool.api.http.limits import RateLimits
from designate_pool.api.http.request import JSON_LIMIT, PathParameters
from designate_pool.api.resources.audits import AuditFindingsResource, AuditsResource
from designate_pool.api.resources.designate_admin import (EXTENSIONS, AdminExportResource, AdminQuotasResource,
                                                          CountsResource, TenantsResource)
from designate_pool.api.resources.floating_ips import FloatingIpResource, FloatingIps, FloatingIpsResource
from designate_pool.api.resources.health import (HealthResource, ServiceStatusesResource, ServiceStatusResource,
                                                 VersionsResource)
from designate_pool.api.resources.plans import PlanResource, PlansResource
from designate_pool.api.resources.pools import NameServersResource, PoolResource, PoolsResource
from designate_pool.api.resources.quotas import LimitsResource, QuotasResource
from designate_pool.api.resources.recordsets import AllRecordSetsResource, RecordSetResource, RecordSetsResource
from designate_pool.api.resources.servers import ServerResource, ServersResource
from designate_pool.api.resources.tlds_blacklists_tsigkeys import KINDS, KindResource, OneOfKindResource
from designate_pool.api.resources.zone_imports_exports import (NewZoneExportResource, ZoneExportResource,
                                                               ZoneExportsResource, ZoneImportBatchesResource,
                                                               ZoneImportResource, ZoneImportsResource)
from designate_pool.api.resources.zone_servers import (RecordSetServersResource, StatusReader, ZoneExplanationResource,
                                                       ZoneWaitResource)
from designate_pool.api.resources.zone_transfers import (NewTransferRequestResource, TransferAcceptResource,
                                                         TransferAcceptsResource, TransferRequestResource,
                                                         TransferRequestsResource, ZoneShareResource,
                                                         ZoneSharesResource)
from designate_pool.api.resources.zones import (ZoneAbandonResource, ZoneChangesResource, ZoneMoveResource,
                                                ZoneProjectResource, ZoneRefreshResource, ZoneResource,
                                                ZoneServersResource, ZonesResource)
from designate_pool.api.schema.openapi import OpenApiDocument, make_document
from designate_pool.api.services.neutron import NeutronClient
from designate_pool.api.services.zone_task_store import ZoneTaskStore
from designate_pool.api.services.zone_watcher import ZoneWatcher
from designate_pool.api.status.resource import Files, PoolPage, ZonePage, ZoneSearch
from designate_pool.central.service import Central
from designate_pool.model import Pool
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.settings import ApiSettings
from designate_pool.storage.sql.database import Storage

#: For whole zones that are no zone file: these are held in memory.
WHOLE_ZONE_LIMIT = 32 << 20


def create_app(central: Central, pool: Pool, settings: ApiSettings = ApiSettings(), *,
               pool_managers: PoolManagerClient, gate: AuthMiddleware | None = None,
               storage: Storage | None = None, watcher: ZoneWatcher | None = None,
               tasks: ZoneTaskStore | None = None, check_project: CheckProject = any_project,
               neutron: NeutronClient | None = None) -> falcon.App[Any, Any]:
    """The API as a WSGI application.

    :param pool: as read from the configuration: the default where a request names none
    :param gate: authenticates and authorises; without it everybody may do everything
    :param storage: status pages and audits are read from it; without it, and without *watcher*, such requests get 503
    :param watcher: of zones that clients wait for
    :param neutron: is asked for floating IPs; without it, requests about them get 501
    :param tasks: imports and exports, where they are not those of *storage*
    :param check_project: called with the request and the id of a project that is given something
    """
    whole = max(min(settings.max_body, WHOLE_ZONE_LIMIT), JSON_LIMIT)
    gate = gate or AuthMiddleware(NoAuth(), AllowAll(), RateLimits(0, 1))
    app: falcon.App[Any, Any] = falcon.App(
        middleware=[Envelope(operation_registry.operations()), gate, PathParameters()])
    app.req_options.strip_url_path_trailing_slash = True
    handle_errors(app, gate.admit_to_no_route)
    absent = [f'/admin/{extension}' for extension in EXTENSIONS if extension not in settings.admin]
    if neutron is None:
        absent.append('/v2/reverse')
    tasks, versions = tasks or ZoneTaskStore(storage), VersionsResource()
    exported = ZoneExportResource(central, tasks)
    status_reader = StatusReader(central, storage)
    app.add_route('/', versions)
    app.add_route('/v2', versions, suffix='v2')
    app.add_route('/openapi.json', OpenApiDocument(make_document(operation_registry.tagged(absent))))
    app.add_route('/healthz', HealthResource(central))
    app.add_route('/v2/zones', ZonesResource(central, whole))
    app.add_route('/v2/zones/{zone_id}', ZoneResource(central))
    app.add_route('/v2/zones/{zone_id}/servers', ZoneServersResource(status_reader))
    app.add_route('/v2/zones/{zone_id}/explain', ZoneExplanationResource(status_reader))
    app.add_route('/v2/zones/{zone_id}/wait', ZoneWaitResource(status_reader, watcher))
    app.add_route('/v2/zones/{zone_id}/project', ZoneProjectResource(central, check_project))
    app.add_route('/v2/zones/{zone_id}/changes', ZoneChangesResource(central, whole))
    app.add_route('/v2/zones/{zone_id}/recordsets', RecordSetsResource(central))
    app.add_route('/v2/zones/{zone_id}/recordsets/{recordset_id}', RecordSetResource(central))
    app.add_route('/v2/zones/{zone_id}/recordsets/{recordset_id}/servers',
                  RecordSetServersResource(status_reader, storage))
    app.add_route('/v2/zones/{zone_id}/tasks/export', NewZoneExportResource(central, tasks))
    app.add_route('/v2/zones/tasks/imports', ZoneImportsResource(central, tasks, settings.max_body, whole))
    app.add_route('/v2/zones/tasks/imports/{import_id}', ZoneImportResource(tasks))
    app.add_route('/v2/zones/tasks/import_batches', ZoneImportBatchesResource(central, tasks, whole))
    app.add_route('/v2/zones/tasks/exports', ZoneExportsResource(tasks))
    app.add_route('/v2/zones/tasks/exports/{export_id}', exported)
    app.add_route('/v2/zones/tasks/exports/{export_id}/export', exported, suffix='file')
    app.add_route('/v2/zones/{zone_id}/tasks/transfer_requests', NewTransferRequestResource(central, check_project))
    app.add_route('/v2/zones/tasks/transfer_requests', TransferRequestsResource(central))
    app.add_route('/v2/zones/tasks/transfer_requests/{transfer_request_id}', TransferRequestResource(central))
    app.add_route('/v2/zones/tasks/transfer_accepts', TransferAcceptsResource(central))
    app.add_route('/v2/zones/tasks/transfer_accepts/{transfer_accept_id}', TransferAcceptResource(central))
    floating_ips = FloatingIps(central, neutron)
    app.add_route('/v2/reverse/floatingips', FloatingIpsResource(floating_ips))
    app.add_route('/v2/reverse/floatingips/{floating_ip}', FloatingIpResource(floating_ips))
    app.add_route('/v2/zones/{zone_id}/shares', ZoneSharesResource(central, check_project))
    app.add_route('/v2/zones/{zone_id}/shares/{share_id}', ZoneShareResource(central))
    app.add_route('/v2/zones/{zone_id}/tasks/xfr', ZoneRefreshResource(central))
    app.add_route('/v2/zones/{zone_id}/tasks/pool_move', ZoneMoveResource(central))
    app.add_route('/v2/zones/{zone_id}/tasks/abandon', ZoneAbandonResource(central))
    app.add_route('/v2/zones/{zone_id}/nameservers', NameServersResource(central))
    recordsets = AllRecordSetsResource(central)
    app.add_route('/v2/recordsets', recordsets)
    app.add_route('/v2/recordsets/{recordset_id}', recordsets, suffix='one')
    app.add_route('/v2/pools', PoolsResource(central))
    app.add_route('/v2/pools/{pool_id}', PoolResource(central))
    app.add_route('/v2/pools/{pool_id}/audits', AuditsResource(central, storage))
    app.add_route('/v2/pools/{pool_id}/audits/findings', AuditFindingsResource(central, storage))
    for kind in KINDS:
        app.add_route(f'/v2/{kind.name}s', KindResource(central, kind))
        app.add_route(f'/v2/{kind.name}s/{{{kind.name}_id}}', OneOfKindResource(central, kind))
    app.add_route('/v2/limits', LimitsResource(central))
    quotas = QuotasResource(central, check_project)
    app.add_route('/v2/quotas', quotas)
    app.add_route('/v2/quotas/{project_id}', quotas, suffix='of')
    if 'quotas' in settings.admin:
        app.add_route('/admin/quotas/{project_id}', AdminQuotasResource(central, check_project))
    if 'reports' in settings.admin:
        report, tenants = CountsResource(storage), TenantsResource(storage)
        app.add_route('/admin/reports/counts', report)
        app.add_route('/admin/reports/counts/{report}', report, suffix='one')
        app.add_route('/admin/reports/tenants', tenants)
        app.add_route('/admin/reports/tenants/{project_id}', tenants, suffix='one')
    if 'zones' in settings.admin:
        app.add_route('/admin/zones/export/{zone_id}', AdminExportResource(central, tasks))
    app.add_route('/v2/service_statuses', ServiceStatusesResource(central))
    app.add_route('/v2/service_statuses/{service_id}', ServiceStatusResource(central))
    app.add_route('/status', PoolPage(status_reader, storage, pool.name))
    app.add_route('/status/zones', ZoneSearch(status_reader))
    app.add_route('/status/zones/{zone}', ZonePage(status_reader, storage))
    for name in ('style.css', 'refresh.js'):
        app.add_route(f'/status/{name}', Files())
    plan = PlanResource(central)
    app.add_route('/v2/plans', PlansResource(central, whole))
    app.add_route('/v2/plans/{plan_id}', plan)
    for command in ('approve', 'settle'):
        app.add_route(f'/v2/plans/{{plan_id}}/{command}', plan, suffix=command)
    servers = ServersResource(status_reader, pool_managers, pool.name)
    server = ServerResource(status_reader, pool_managers)
    app.add_route('/v2/servers', servers)
    app.add_route('/v2/servers/reload', servers, suffix='reload')
    app.add_route('/v2/servers/{server_id}', server)
    for command in ('maintenance', 'resume', 'drain', 'resync'):
        app.add_route(f'/v2/servers/{{server_id}}/{command}', server, suffix=command)
    return app
