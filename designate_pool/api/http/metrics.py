"""Metrics of requests: how many by operation and status, and their durations."""

from __future__ import annotations

import time
from typing import Any

import falcon

from designate_pool import metrics

#: In place of an operation: for an unknown path or method, or a request refused earlier.
NONE = 'none'


class RequestMetrics:
    """Falcon middleware; as the first one it sees the work of all others.

    The label is the operation's name in the document, so an invented path makes no new label.
    """

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.context.began_at = time.monotonic()

    def process_response(self, req: falcon.Request, resp: falcon.Response, resource: Any, req_succeeded: bool) -> None:
        if not hasattr(req.context, 'began_at') or getattr(req.context, 'is_head_admitted', False):
            return  # falcon refuses some methods before any middleware; headers alone are no request yet
        operation = getattr(req.context, 'operation', None)
        name = NONE if operation is None else operation.name
        metrics.REQUESTS.labels(name, str(resp.status_code)).inc()
        metrics.REQUEST_SECONDS.labels(name).observe(time.monotonic() - req.context.began_at)
