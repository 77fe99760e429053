"""The WSGI application."""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Callable
from typing import Any

import falcon

from designate_pool.api import operation_registry
from designate_pool.api.auth.keystone import CheckProject, any_project
from designate_pool.api.auth.middleware import AuthMiddleware, NoAuth
from designate_pool.api.auth.policy import AllowAll
from designate_pool.api.http.envelope import Envelope, answer, handle_errors
from designate_pool.api.http.limits import RateLimits
from designate_pool.api.http.request import path_part
from designate_pool.api.resources.base import Api
from designate_pool.api.resources.designate_admin import EXTENSIONS
from designate_pool.api.schema.answers import AnswerForm, Json
from designate_pool.api.schema.openapi import make_document
from designate_pool.api.schema.operation import ApiOperation
from designate_pool.api.services.neutron import NeutronClient
from designate_pool.api.services.zone_task_store import ZoneTaskStore
from designate_pool.api.services.zone_watcher import ZoneWatcher
from designate_pool.api.status import resource as status_resource
from designate_pool.central.service import Central
from designate_pool.errors import PoolError, WaitsForApproval
from designate_pool.model import Pool, Status, dashed
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.settings import ApiSettings
from designate_pool.storage.sql.database import Storage


def create_app(central: Central, pool: Pool, settings: ApiSettings = ApiSettings(), *,
               pool_managers: PoolManagerClient, storage: Storage, gate: AuthMiddleware | None = None,
               watcher: ZoneWatcher | None = None, tasks: ZoneTaskStore | None = None,
               check_project: CheckProject = any_project, check_broker: Callable[[], object] = lambda: None,
               neutron: NeutronClient | None = None) -> falcon.App[Any, Any]:
    """The API as a WSGI application; for the parameters see :class:`designate_pool.api.resources.base.Api` too.

    :param pool: as read from the configuration
    :param gate: authenticates and authorises; without it everybody may do everything
    :param watcher: started; without it nobody can wait
    """
    gate = gate or AuthMiddleware(NoAuth(), AllowAll(), RateLimits(0, 1))
    present = settings.enabled_extensions_admin if settings.enable_api_admin else ()
    absent = [f'/admin/{extension}' for extension in EXTENSIONS if extension not in present]
    operations = operation_registry.operations(absent)
    documented = [operation for operation in operations
                  if neutron is not None or not operation.path.startswith('/v2/reverse')]
    app: falcon.App[Any, Any] = falcon.App(middleware=[Envelope(operations), gate])
    app.req_options.strip_url_path_trailing_slash = True
    handle_errors(app, gate.admit_to_no_route)
    app.add_error_handler(PoolError, status_resource.answer_error)
    if watcher is None:
        watcher = ZoneWatcher(storage)
    api = Api(central, pool.name, settings, pool_managers, storage, watcher,
              tasks or ZoneTaskStore(storage), check_project, check_broker, neutron,
              json.dumps(make_document(documented)))
    responders: dict[str, dict[str, Any]] = {}
    for operation in operations:
        responders.setdefault(operation.path, {})[f'on_{operation.method.lower()}'] = functools.partial(
            _respond, api, operation)
    for path, by_name in responders.items():
        app.add_route(path, types.SimpleNamespace(**by_name))
    return app


def _respond(api: Api, operation: ApiOperation, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
    """Carry out an operation, and answer what its function returns in the form of its answer."""
    parts = {name: path_part(name, value) for name, value in path.items()}
    resp.status, form = next(iter(operation.answers.items()))
    try:
        value = operation.handler(api, req, resp, **parts)
    except WaitsForApproval as waiting:
        answer(resp, _shown_as_waiting(waiting, operation.answers.get(waiting.code, form), req), waiting.code)
        return
    if value is None or form is None:
        return
    shown = value if isinstance(value, dict) else form.show(value, req.prefix)
    if form.has_etag and not isinstance(value, dict):
        resp.set_header('ETag', value.etag)
    answer(resp, shown)
    if operation.has_location:
        resp.location = shown['links']['self']


def _shown_as_waiting(waiting: WaitsForApproval, form: AnswerForm | None, req: falcon.Request) -> Json:
    """What a change that waits for approval asks for, as it will be, with a link to the change."""
    assert form is not None
    shown = form.show(waiting.kwargs['value'], req.prefix)
    return {**shown, 'status': Status.PENDING.value,
            'links': {**shown['links'], 'change': f'{req.prefix}/v2/changes/{dashed(waiting.kwargs["plan"])}'}}
