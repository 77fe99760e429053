"""Who a request is from, and what of that resources ask."""

from __future__ import annotations

import dataclasses

import falcon

from designate_pool.errors import Forbidden
from designate_pool.model import Context


@dataclasses.dataclass(frozen=True, slots=True)
class Identity:
    """Who asks.

    :ivar project: the project whose zones it may use; '' is nobody's
    :ivar roles: in lower case, as they are called in the policy
    :ivar user: a name for people
    :ivar key: what its requests are counted under
    :ivar needs_project: whether it sees nothing without a project; else it sees all
    """

    project: str
    roles: tuple[str, ...]
    user: str
    key: str
    needs_project: bool = True


def pool_requester(req: falcon.Request) -> Context:
    """Who asks, for what concerns the pool as a whole and names zones of any project.

    It sees the names of all projects' zones where the policy lets it ask for all projects.
    """
    requester: Context = req.context.requester
    return dataclasses.replace(requester, all_projects=requester.all_projects or req.context.sees_pool)


def check_rule(req: falcon.Request, rule: str, what: str) -> None:
    """
    :param what: is wanted that the operation's own rule says nothing of
    :raises Forbidden: when the policy is against it
    """
    if not req.context.allows(rule):
        raise Forbidden(what=what, why=f'the policy {rule} does not allow your role')
