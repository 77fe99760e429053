"""What every answer has: JSON, a status, a request id; and what becomes of an error."""

from __future__ import annotations

import http
import json
import logging
import uuid
from typing import Any

import falcon

from designate_pool.api import reading, views
from designate_pool.errors import NotFound, PoolError
from designate_pool.model import Context

LOG = logging.getLogger(__name__)
REQUEST_ID = 'X-Openstack-Request-Id'


class _Falcon(PoolError):
    """{why}."""


class Envelope:
    """Falcon middleware: gives each request its id and context."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.context.request_id = f'req-{uuid.uuid4()}'
        resp.set_header(REQUEST_ID, req.context.request_id)
        req.context.asker = reading.context(req, req.context.request_id)


def asker(req: falcon.Request) -> Context:
    """Who asks; see :func:`designate_pool.api.reading.context`."""
    found: Context = req.context.asker
    return found


def answer(resp: falcon.Response, content: Any, status: int = 200, at: str | None = None) -> None:
    """Send *content* as JSON.

    :param at: the address of what was made, for the header Location
    """
    resp.status = status
    resp.content_type = falcon.MEDIA_JSON
    resp.text = json.dumps(content)
    if at is not None:
        resp.location = at


def handle_errors(app: falcon.App[Any, Any]) -> None:
    """Have every error answered in Designate's form."""
    # Falcon takes the handler of the nearest class
    app.add_error_handler(Exception, _unexpected)
    app.add_error_handler(falcon.HTTPError, _of_falcon)
    app.add_error_handler(PoolError, _of_ours)


def _of_ours(req: falcon.Request, resp: falcon.Response, error: PoolError, params: Any) -> None:
    if error.code >= 500:
        LOG.error('%s %s: %s [%s]', req.method, req.path, error, req.context.request_id)
    answer(resp, views.fault(error, req.context.request_id), error.code)


def _of_falcon(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: Any) -> None:
    if isinstance(error, falcon.HTTPRouteNotFound):
        return _of_ours(req, resp, NotFound(what='such address; the API begins at /v2'), params)
    phrase = http.HTTPStatus(error.status_code).phrase
    if isinstance(error, falcon.HTTPMethodNotAllowed):
        why = f'{req.method} is not possible here, only {dict(error.headers or {})["Allow"]}'
    else:
        why = (error.description or phrase).rstrip('.')
    found = _Falcon(why=why)
    found.code = error.status_code
    found.type = phrase.lower().replace(' ', '_').replace('-', '_')
    _of_ours(req, resp, found, params)
    resp.set_headers(error.headers or {})


def _unexpected(req: falcon.Request, resp: falcon.Response, error: Exception, params: Any) -> None:
    LOG.exception('%s %s failed [%s]', req.method, req.path, req.context.request_id, exc_info=error)
    answer(resp, views.fault(PoolError(), req.context.request_id), 500)
