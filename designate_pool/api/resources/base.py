"""What the functions that carry out operations have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlencode

import falcon

from designate_pool.api.auth.keystone import CheckProject
from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.schema.answers import Json
from designate_pool.api.schema.operation import Handler
from designate_pool.api.services.neutron import NeutronClient
from designate_pool.api.services.zone_task_store import ZoneTaskStore
from designate_pool.api.services.zone_watcher import ZoneWatcher
from designate_pool.central.service import Central
from designate_pool.errors import SHARED, Forbidden, InvalidField
from designate_pool.model import Context, Domain, PageRequest
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.settings import ApiSettings
from designate_pool.storage.sql.database import Storage

#: For whole zones that are no zone file: these are held in memory.
WHOLE_ZONE_LIMIT = 32 << 20


@dataclasses.dataclass(frozen=True)
class Api:
    """What operations are carried out with.

    :ivar pool_name: the pool where a request names none
    :ivar watcher: of zones that clients wait for
    :ivar check_project: called with the request and the id of a project that is given something
    :ivar check_broker: raises a PoolError when no messages go through
    :ivar neutron: is asked for floating IPs; None where users have no tokens that it knows
    :ivar document: the OpenAPI document
    """

    central: Central
    pool_name: str
    settings: ApiSettings
    pool_managers: PoolManagerClient
    storage: Storage
    watcher: ZoneWatcher
    tasks: ZoneTaskStore
    check_project: CheckProject
    check_broker: Callable[[], object]
    neutron: NeutronClient | None
    document: str

    @property
    def whole_zone_limit(self) -> int:
        """How many bytes a JSON body with a whole zone may have."""
        return max(min(self.settings.max_body, WHOLE_ZONE_LIMIT), request.JSON_LIMIT)

    def own_domain(self, context: Context, zone_id: str) -> Domain:
        """A zone of the requester's own, not one that is only shared with its project.

        :raises DomainNotFound: when the context does not see the zone
        :raises Forbidden: when it sees the zone because that is shared with its project
        """
        domain = self.central.get_domain(context, zone_id)
        if not context.sees(domain.project_id):
            raise Forbidden(what=f'do this with {domain.name}', why=SHARED)
        return domain


def calls(call: Callable[[Central], Callable[..., Any]],
          context_of: Callable[[falcon.Request], Context] = requester) -> Handler:
    """The function of an operation that is one call of Central: with the requester, the variable parts of the path, and
    the fields of the body."""
    def carry_out(api: Api, req: falcon.Request, resp: falcon.Response, **path: str) -> Any:
        body = {} if req.context.operation.body is None else request.body(req)
        return call(api.central)(context_of(req), *path.values(), **body)
    return carry_out


def lists(find: Callable[[Central], Callable[..., list[Any]]],
          context_of: Callable[[falcon.Request], Context] = requester) -> Handler:
    """As :func:`calls`, for a list: the last argument of *find* is the page."""
    return lambda api, req, resp, **path: show_page(
        req, lambda context, page: find(api.central)(context, *path.values(), page), context_of(req))


def show_page(req: falcon.Request, find: Callable[[Context, PageRequest], list[Any]], context: Context | None = None,
              show: Callable[[Any, str], Json] | None = None) -> Json:
    """The page of a list that the query asks for, by filters and paging.

    :param find: finds the entries that the context sees; one entry more than wanted tells whether there is a next page
    :param context: that of the requester if not given
    :param show: shows an entry, if not the form of the list's entries
    """
    try:
        criterion = request.query(req)
    except InvalidField as error:
        if (field := error.kwargs['field']) not in request.PAGING:
            raise
        raise InvalidField(**error.kwargs, type=f'invalid_{field}') from None
    paging = {name: criterion.pop(name, None) for name in request.PAGING}
    limit = paging.pop('limit') or request.PAGE
    entries = find(context or requester(req), PageRequest(criterion, limit=limit + 1, **paging))
    form = req.context.operation.answers[200]
    shown = [(show or form.entry.show)(entry, req.prefix) for entry in entries[:limit]]
    links = {'self': req.url}
    if len(entries) > limit:
        links['next'] = f'{req.prefix}{req.path}?{urlencode({**req.params, "marker": shown[-1]["id"]})}'
    return {form.key: shown, 'links': links}


def show_all(req: falcon.Request, entries: Iterable[Any]) -> Json:
    """A list that is not read in pages."""
    form = req.context.operation.answers[200]
    return {form.key: [form.entry.show(entry, req.prefix) for entry in entries], 'links': {'self': req.url}}
