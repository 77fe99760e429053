"""What is counted of requests: how many of each operation came to which status, and what they took."""

from __future__ import annotations

import time
from typing import Any

import falcon

from designate_pool import metrics

#: In the place of an operation: an address or method that there is not, or a request that was refused before.
NONE = 'none'


class RequestMetrics:
    """Falcon middleware; as the first of them it sees all that the others do.

    The label is the operation's name in the document, so a made-up address makes no new label.
    """

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.context.began_at = time.monotonic()

    def process_response(self, req: falcon.Request, resp: falcon.Response, resource: Any, req_succeeded: bool) -> None:
        if not hasattr(req.context, 'began_at') or getattr(req.context, 'is_head_admitted', False):
            return  # some methods falcon refuses before it asks any middleware; headers alone are no request yet
        operation = getattr(req.context, 'operation', None)
        name = NONE if operation is None else operation.name
        metrics.REQUESTS.labels(name, str(resp.status_code)).inc()
        metrics.REQUEST_SECONDS.labels(name).observe(time.monotonic() - req.context.began_at)
