"""Authentication and authorisation: one middleware before every operation.

The steps: who is the requester (:class:`.identity.Authenticator`), are there too many requests
(:mod:`designate_pool.api.http.limits`), does the policy allow it (:mod:`designate_pool.api.auth.policy`), and what
may the requester see: the :class:`~designate_pool.model.Context` that goes to Central with every call.

The default is refusal: of requests without a token for undeclared operations, and of tokens without a project.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import falcon

from designate_pool.api.auth import policy
from designate_pool.api.auth.identity import APPROVE_CHANGE, CHANGE_ALL_PROJECTS, Authenticator, Identity, check_rule
from designate_pool.api.http import request
from designate_pool.api.http.limits import PLACE, Place, RateLimits, network_of
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import ADMIN, ANYONE, ApiOperation
from designate_pool.errors import Forbidden, InvalidField, Unauthorized
from designate_pool.model import ChangeKind, Context, new_id

TOKEN = 'X-Auth-Token'
PROJECT = 'X-Project-Id'
SUDO = 'X-Auth-Sudo-Project-Id'
#: Its older name, which clients of Designate send.
SUDO_TENANT = 'X-Auth-Sudo-Tenant-Id'
ALL = 'X-Auth-All-Projects'
EDIT_MANAGED = 'X-Designate-Edit-Managed-Records'
HARD_DELETE = 'X-Designate-Hard-Delete'
#: What a program says that changes zones by plans.
CHANGE_KIND = 'X-Designate-Pool-Change-Kind'
KINDS = request_fields.one_of(ChangeKind.API.value, ChangeKind.PLAN.value)
_PROJECT = re.compile('[A-Za-z0-9_.-]{1,36}')
_UNPRINTABLE = re.compile('[^ -~]')
#: Methods that change nothing.
_READING = ('GET', 'HEAD', 'OPTIONS')


class NoAuth(Authenticator):
    """Everybody may do everything, for the project they name, or for all projects."""

    def challenge(self, req: falcon.Request) -> str:
        return 'None'

    def identify(self, req: falcon.Request) -> Identity:
        project = header_project(req, PROJECT)
        return Identity(project, (ADMIN,), user='', key=f'project {project}' if project else
                        f'address {network_of(req.remote_addr)}', needs_project=False)


class AuthMiddleware:
    """Falcon middleware; it comes after the one that finds the operation.

    :param rules: who may do what
    :param rates: how often
    """

    def __init__(self, authenticator: Authenticator, rules: policy.Rules, rates: RateLimits) -> None:
        self._authenticator = authenticator
        self._rules = rules
        self._rates = rates

    def process_resource(self, req: falcon.Request, resp: falcon.Response, resource: Any,
                         params: Mapping[str, Any]) -> None:
        operation: ApiOperation | None = req.context.operation
        sender = f'address {network_of(req.remote_addr)}'
        if operation is not None and operation.role == ANYONE and self._rules.allow(operation.name, NOBODY):
            self._rates.take(sender)
            req.context.requester = Context(request_id=req.context.request_id, operation_id=new_id())
            return
        try:
            identity = self._authenticator.identify(req)
        except Unauthorized as error:
            self._rates.take(sender)
            self._refuse(req, resp, error)
        self._rates.take(sender if identity is None else identity.key)
        if identity is None:
            self._refuse(req, resp, Unauthorized(why=f'send one in the header {TOKEN}'))
        place: Place | None = req.env.get(PLACE)
        if place is not None:
            place.assign_to(identity.key)
        req.context.allows = functools.partial(self._rules.allow, identity=identity)
        req.context.requester = context = self._context(req, identity)
        req.context.sees_pool = (identity.needs_project or not identity.project) \
            and req.context.allows(policy.ALL_PROJECTS)
        if operation is None:
            return
        what = operation.summary[0].lower() + operation.summary[1:]
        if not req.context.allows(operation.name):
            roles = ', '.join(identity.roles) or 'none'
            raise Forbidden(what=what, why=f'the policy {operation.name} does not allow your role ({roles})')
        if operation.role != ANYONE and identity.needs_project and not (context.project_id or context.all_projects):
            raise Forbidden(what=what, why='it needs a project, and the token has none')

    def admit_to_no_route(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Authenticate the requester of an address that does not exist.

        :raises Forbidden: when the policy lets it see nothing
        """
        self.process_resource(req, resp, None, {})
        if not req.context.allows(policy.IS_READER):
            raise Forbidden(what='see what there is', why=f'the policy {policy.IS_READER} does not allow your role')

    def _context(self, req: falcon.Request, identity: Identity) -> Context:
        """
        :raises Forbidden: when it names another project, or all, and the policy does not allow that
        """
        names = [header_project(req, header) for header in (SUDO, SUDO_TENANT)]
        if sudo := names[0] or names[1]:
            check_rule(req, policy.USE_SUDO, f'use the header {SUDO}')
        if may_edit_managed := request.flag(req, EDIT_MANAGED, 'edit_managed_records'):
            check_rule(req, policy.EDIT_MANAGED_RECORDS, f'use the header {EDIT_MANAGED}')
        if request.flag(req, HARD_DELETE):
            check_rule(req, policy.HARD_DELETE, f'use the header {HARD_DELETE}')
        if all_projects := request.flag(req, ALL, 'all_projects', 'all_tenants'):
            check_rule(req, policy.ALL_PROJECTS if req.method in _READING else CHANGE_ALL_PROJECTS,
                       f'use the header {ALL}')
        if_match = request.condition(req)
        project_id = sudo or identity.project
        all_projects = all_projects or not (identity.needs_project or project_id)
        return Context(request_id=req.context.request_id, project_id=project_id, user=identity.user,
                       operation_id=new_id(), all_projects=all_projects, may_edit_managed=may_edit_managed,
                       if_match=if_match, may_nest=all_projects and req.context.allows(policy.NEST_ZONES),
                       address=req.remote_addr, client=_UNPRINTABLE.sub('?', req.user_agent or '')[:64],
                       kind=ChangeKind(KINDS(CHANGE_KIND, req.get_header(CHANGE_KIND, default=ChangeKind.API.value))),
                       may_approve=req.method not in _READING and req.context.allows(APPROVE_CHANGE))

    def _refuse(self, req: falcon.Request, resp: falcon.Response, error: Unauthorized) -> NoReturn:
        resp.set_header('WWW-Authenticate', self._authenticator.challenge(req))
        raise error


#: The identity of requests without a token.
NOBODY = Identity('', (), user='', key='')


def header_project(req: falcon.Request, header: str) -> str:
    """The project that *header* names; '' when it is not there."""
    value = req.get_header(header)
    if value and not _PROJECT.fullmatch(value):
        raise InvalidField(field=header, why='must be 1 to 36 letters, digits, dots, dashes or underscores')
    return value or ''
