"""Whether a request's body is taken at all, decided when no more than its headers are there.

The HTTP server (:mod:`designate_pool.api.http.server`) passes a request with a body through the application
twice: first its headers alone, with :data:`HEAD` in the environment, and once more when the body is there.  So whoever
may not ask, and who sends more than the operation takes, is answered before the body costs memory or disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import falcon

from designate_pool.api.schema.operation import ApiOperation
from designate_pool.errors import BodyTooLarge, PoolError

#: In the environment while only the headers are there: called with the bytes that the body may have, it has it taken.
HEAD = 'designate_pool.head'
#: In the environment of a request whose headers were looked at by themselves before.
ADMITTED = 'designate_pool.admitted'


class Admission:
    """Falcon middleware; the last of them, so that all others have let the request pass.

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
        resp.complete = True  # nothing is carried out yet


class OnlyPosted:
    """An application that asks nobody who comes, so that the size alone decides: it takes bodies that are posted.

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
