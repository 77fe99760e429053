"""Admission of a request's body, decided by its headers alone.

The HTTP server (:mod:`designate_pool.api.http.server`) passes a request with a body through the application twice:
first its headers, with :data:`HEAD` in the environment, and again when the body has arrived.  So requests that are not
allowed or too large are refused before the body costs memory or disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import falcon

from designate_pool.api.schema.operation import ApiOperation
from designate_pool.errors import BodyTooLarge, PoolError

#: In the environment of headers alone: a function that admits the body, called with the bytes that it may have.
HEAD = 'designate_pool.head'
#: In the environment of a request whose headers were checked before.
ADMITTED = 'designate_pool.admitted'


class Admission:
    """Falcon middleware; the last one, so that all others have accepted the request.

    :param limits: bytes by the sizes of operations
    """

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = limits

    def process_resource(self, req: falcon.Request, resp: falcon.Response, resource: Any,
                         params: Mapping[str, Any]) -> None:
        operation: ApiOperation | None = req.context.operation
        admit = req.env.get(HEAD)
        if operation is None or admit is None:
            return
        limit = self._limits[operation.body_size]
        if (req.content_length or 0) > limit:
            raise BodyTooLarge(limit=limit)
        admit(limit)
        req.context.is_head_admitted = True
        resp.complete = True  # the operation is not carried out yet


class OnlyPosted:
    """Admission for an application without authentication: only POST may have a body, up to a size.

    :param limit: bytes
    """

    def __init__(self, app: Callable[..., Any], limit: int) -> None:
        self._app = app
        self._limit = limit

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        admit = environ.get(HEAD)
        if admit is None:
            return self._app(environ, start_response)
        limit = self._limit if environ['REQUEST_METHOD'] == 'POST' else 0
        try:
            if int(environ.get('CONTENT_LENGTH') or 0) > limit:
                raise BodyTooLarge(limit=limit)
            admit(limit)
        except PoolError as error:
            answer = f'{error}\n'.encode()
            status = '413 Content Too Large' if isinstance(error, BodyTooLarge) else '503 Service Unavailable'
            start_response(status, [('Content-Type', 'text/plain'), ('Content-Length', str(len(answer)))])
            return [answer]
        start_response('200 OK', [('Content-Length', '0')])
        return []
