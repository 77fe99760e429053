"""Who a request is from, and what resources need of that."""

from __future__ import annotations

import base64
import binascii
import dataclasses
from typing import Protocol

import falcon

from designate_pool.api.http.envelope import requester
from designate_pool.api.schema.operation import USE_BLACKLISTED
from designate_pool.errors import Forbidden, Unauthorized
from designate_pool.model import Context

#: Below it browsers may send the token as a password.
STATUS_PAGE = '/status'
BASIC_CHALLENGE = 'Basic realm="designate-pool", charset="UTF-8"'
#: The policy rule for the header that lets a requester change what is another project's.
CHANGE_ALL_PROJECTS = 'change_all_projects'
#: The policy rule for changes that wait for nobody's approval, and for approving those of others.
APPROVE_CHANGE = 'approve_change'


@dataclasses.dataclass(frozen=True, slots=True)
class Identity:
    """The requester.

    :ivar project: whose zones it may use; '' for none
    :ivar roles: in lower case, as they are called in the policy
    :ivar user: a name for people
    :ivar key: under which its requests are counted
    :ivar needs_project: whether it sees nothing without a project; else it sees all
    """

    project: str
    roles: tuple[str, ...]
    user: str
    key: str
    needs_project: bool = True


class Authenticator(Protocol):
    """A way of authentication."""

    def identify(self, req: falcon.Request) -> Identity | None:
        """The requester; None when the request has no credentials.

        :raises Unauthorized: when the credentials are wrong
        """

    def challenge(self, req: falcon.Request) -> str:
        """The header WWW-Authenticate of a refusal (RFC 9110 section 11.6.1)."""


def pool_requester(req: falcon.Request) -> Context:
    """The requester, for operations on a whole pool that name zones of any project.

    It sees the names of all zones where the policy allows it all projects.
    """
    context = requester(req)
    return dataclasses.replace(context, all_projects=context.all_projects or req.context.sees_pool)


def changing_any_project(req: falcon.Request) -> Context:
    """The requester, seeing all projects if the policy lets it change those with a header: the address names one."""
    context = requester(req)
    return dataclasses.replace(context, all_projects=context.all_projects or req.context.allows(CHANGE_ALL_PROJECTS))


def zone_creator(req: falcon.Request) -> Context:
    """The requester, for the creation of a zone: with what the policy allows it beyond the operation's own rule."""
    return dataclasses.replace(requester(req), may_use_blacklisted=req.context.allows(USE_BLACKLISTED))


def check_rule(req: falcon.Request, rule: str, what: str) -> None:
    """Raise Forbidden unless the policy allows the requester a further rule, which the action *what* needs."""
    if not req.context.allows(rule):
        raise Forbidden(what=what, why=f'the policy {rule} does not allow your role')


def is_status_page(path: str) -> bool:
    """Whether *path* is the status page or below it."""
    return path == STATUS_PAGE or path.startswith(f'{STATUS_PAGE}/')


def basic_password(method: str, path: str, authorization: str | None) -> str:
    """The token that is the password of HTTP Basic (RFC 7617); '' when there is none, or it is not for this.

    Browsers send it with requests of foreign pages too, so it must not allow any change.

    :raises Unauthorized: when the header is wrong
    """
    kind, _, rest = (authorization or '').partition(' ')
    if kind.lower() != 'basic' or method not in ('GET', 'HEAD') or not is_status_page(path):
        return ''
    try:
        return base64.b64decode(rest.strip(), validate=True).decode('utf-8').partition(':')[2]
    except (binascii.Error, ValueError):
        raise Unauthorized(why='what was sent is not HTTP Basic') from None
