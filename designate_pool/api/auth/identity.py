"""Who a request is from, and what resources need of that."""

from __future__ import annotations

import dataclasses

import falcon

from designate_pool.api.schema.operation import USE_BLACKLISTED
from designate_pool.errors import Forbidden
from designate_pool.model import Context

#: The policy rule for the header that lets a requester change what is another project's.
CHANGE_ALL_PROJECTS = 'change_all_projects'


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


def pool_requester(req: falcon.Request) -> Context:
    """The requester, for operations on a whole pool that name zones of any project.

    It sees the names of all zones where the policy allows it all projects.
    """
    requester: Context = req.context.requester
    return dataclasses.replace(requester, all_projects=requester.all_projects or req.context.sees_pool)


def changing_any_project(req: falcon.Request) -> Context:
    """The requester, seeing all projects if the policy lets it change those with a header: the address names one."""
    requester: Context = req.context.requester
    return dataclasses.replace(requester,
                               all_projects=requester.all_projects or req.context.allows(CHANGE_ALL_PROJECTS))


def zone_creator(req: falcon.Request) -> Context:
    """The requester, for the creation of a zone: with what the policy allows it beyond the operation's own rule."""
    requester: Context = req.context.requester
    return dataclasses.replace(requester, may_use_blacklisted=req.context.allows(USE_BLACKLISTED))


def check_rule(req: falcon.Request, rule: str, what: str) -> None:
    """Refuse a request whose requester the policy does not allow a further rule.

    :param what: the action, which needs more than the operation's own rule
    :raises Forbidden: when the policy does not allow it
    """
    if not req.context.allows(rule):
        raise Forbidden(what=what, why=f'the policy {rule} does not allow your role')
