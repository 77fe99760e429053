"""What resources have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import falcon

from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.http.request import find_page, listing
from designate_pool.api.schema.answers import Json, ListAnswer
from designate_pool.api.schema.request_fields import Table
from designate_pool.central.service import Central
from designate_pool.errors import SHARED, Forbidden, ServiceUnavailable
from designate_pool.model import Context, Domain, PageRequest

T = TypeVar('T')


class CentralResource:
    """A resource that Central is asked for."""

    def __init__(self, central: Central) -> None:
        self._central = central

    def own_domain(self, req: falcon.Request, zone_id: str) -> Domain:
        """A zone of the requester's, for what those that it is shared with may not."""
        return own_domain(self._central, requester(req), zone_id)


def own_domain(central: Central, context: Context, zone_id: str) -> Domain:
    """A zone of the requester's own, not one that is only shared with its project.

    :raises DomainNotFound: when the context does not see the zone
    :raises Forbidden: when it sees the zone because that is shared with its project
    """
    domain = central.get_domain(context, zone_id)
    if not context.sees(domain.project_id):
        raise Forbidden(what=f'do this with {domain.name}', why=SHARED)
    return domain


def available(given: T | None) -> T:
    """What the API has only with a database.

    :raises ServiceUnavailable: where it has none
    """
    if given is None:
        raise ServiceUnavailable(service='the database', why='this API was given none to look at')
    return given


def answer_page(req: falcon.Request, resp: falcon.Response, page: ListAnswer, filters: Table,
                find: Callable[[Context, PageRequest], list[Any]], context: Context | None = None,
                show: Callable[[Any, str], Json] | None = None) -> None:
    """Send one page of a list.

    :param find: finds the entries that the context sees
    :param context: that of the requester if not given
    :param show: shows an entry, if not :meth:`AnswerForm.show` of the list's entries
    """
    requester_context, show = context or requester(req), show or page.entry.show
    entries, links = find_page(req, listing(req, filters), lambda wanted: find(requester_context, wanted))
    answer(resp, {page.key: [show(entry, req.prefix) for entry in entries], 'links': links})
