"""What every answer has: JSON, a status, a request id; how errors are answered, and requests are counted."""

from __future__ import annotations

import http
import json
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import falcon

from designate_pool import metrics
from designate_pool.api.schema.answers import Json
from designate_pool.api.schema.operation import ApiOperation
from designate_pool.api.schema.request_fields import printable
from designate_pool.errors import InvalidField, NotFound, PoolError
from designate_pool.model import Context, dashed

LOG = logging.getLogger(__name__)
#: A line for each request that may change something.
WRITE_LOG = logging.getLogger('designate_pool.api.writes')
_READING = ('GET', 'HEAD', 'OPTIONS')
#: Without authentication, and where it has failed.
_NOBODY = 'nobody'
REQUEST_ID = 'X-Openstack-Request-Id'
#: Characters of a path that are logged.
_LONGEST_PATH = 200
#: Other ids are not accepted: they could forge lines of a log.
_REQUEST_ID = re.compile('req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_HOST = re.compile(r'(\[[0-9a-f:.]+\]|[a-z0-9_.-]*)(:[0-9]{0,5})?', re.IGNORECASE | re.ASCII)
#: In metrics, in place of an operation: for an unknown path or method, or a request refused earlier.
_NO_OPERATION = 'none'
#: Messages that Designate's own tests know word for word, by the type of the error.
_WORDS = {'blacklist_not_found': 'Could not find Blacklist', 'pool_not_found': 'Could not find Pool',
          'tld_not_found': 'Could not find Tld', 'tsigkey_not_found': 'Could not find TsigKey'}
#: An id, as the services write it.
_DIGITS = re.compile(r'\b[0-9a-f]{32}\b')


class HttpError(PoolError):
    """{why}."""

    def __init__(self, code: int, phrase: str, why: str) -> None:
        super().__init__(why=why)
        self.code = code
        self.type = phrase.lower().replace(' ', '_').replace('-', '_')


class Envelope:
    """Falcon middleware around all others: gives each request an id, finds its operation, and counts it.

    The operation, in ``req.context.operation``, is None for an unknown path or method: the answer is 404, 405 or that
    to OPTIONS.  A client that does not accept the media type of the answer gets 406.  Requests are counted by the name
    of the operation, so an invented path makes no new label.
    """

    def __init__(self, operations: Iterable[ApiOperation]) -> None:
        self._operations = {(operation.method, operation.path): operation for operation in operations}

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.context.began_at = time.monotonic()
        req.context.operation = None
        sent = (req.get_header(REQUEST_ID) or '').strip().lower()
        req.context.request_id = sent if _REQUEST_ID.fullmatch(sent) else f'req-{uuid.uuid4()}'
        resp.set_header(REQUEST_ID, req.context.request_id)
        resp.set_header('Cache-Control', 'no-store')  # unless an operation sets it
        if not _HOST.fullmatch(req.env.get('HTTP_HOST', '')):  # it becomes part of links
            raise InvalidField(field='Host', why='neither the name of a host nor an address')
        if req.method == 'HEAD':
            # Carried out as GET, without the body at the end.
            req.context.is_head = True
            req.method = 'GET'

    def process_resource(self, req: falcon.Request, resp: falcon.Response, resource: Any,
                         params: Mapping[str, Any]) -> None:
        operation = self._operations.get((req.method, req.uri_template or ''))
        req.context.operation = operation
        # Errors are always JSON, so a client that accepts JSON is never refused.
        if operation is not None and not (req.client_accepts(operation.answer_media) or req.client_accepts_json):
            raise falcon.HTTPNotAcceptable(description=f'The answer is {operation.answer_media}')

    def process_response(self, req: falcon.Request, resp: falcon.Response, resource: Any, req_succeeded: bool) -> None:
        if getattr(req.context, 'is_head', False):
            req.method = 'HEAD'
        if not hasattr(req.context, 'operation'):
            return  # falcon refuses some methods before any middleware
        name = _NO_OPERATION if req.context.operation is None else req.context.operation.name
        metrics.REQUESTS.labels(name, str(resp.status_code)).inc()
        metrics.REQUEST_SECONDS.labels(name).observe(time.monotonic() - req.context.began_at)
        if req.method not in _READING:
            who = getattr(req.context, 'requester', None) or Context()
            WRITE_LOG.info('%s %s: %s by %s from %s [%s]', req.method, printable(req.path, _LONGEST_PATH),
                           resp.status_code, printable(who.user, _LONGEST_PATH) if who.user else _NOBODY,
                           req.remote_addr, req.context.request_id)


def refuse_outside(error: PoolError, start_response: Any) -> list[bytes]:
    """Answer *error* in a WSGI wrapper of the application, as the application does."""
    request_id = f'req-{uuid.uuid4()}'
    body = json.dumps(fault(error, request_id)).encode()
    start_response(f'{error.code} {http.HTTPStatus(error.code).phrase}', [
        ('Content-Type', falcon.MEDIA_JSON), ('Content-Length', str(len(body))), (REQUEST_ID, request_id),
        *([] if error.seconds is None else [('Retry-After', str(error.seconds))])])
    return [body]


def fault(error: PoolError, request_id: str) -> Json:
    """An error in Designate's form."""
    message = _WORDS.get(error.type) or str(error)
    if error.code == 404:
        message = _DIGITS.sub(lambda found: dashed(found[0]), message)
    answer = {'code': error.code, 'type': error.type, 'message': message, 'request_id': request_id}
    if isinstance(error, InvalidField):
        every = error.kwargs.get('all') or [(error.kwargs['field'], error.kwargs['why'])]
        answer['errors'] = {'errors': [{'path': field.split('.'), 'message': why} for field, why in every]}
    return answer


def requester(req: falcon.Request) -> Context:
    """The requester, as :class:`designate_pool.api.auth.middleware.AuthMiddleware` has authenticated it."""
    context: Context = req.context.requester
    return context


def answer(resp: falcon.Response, content: Any, status: int | None = None) -> None:
    """Send *content* as JSON."""
    if status is not None:
        resp.status = status
    resp.content_type = falcon.MEDIA_JSON
    resp.text = json.dumps(content)


def handle_errors(app: falcon.App[Any, Any], admit: Callable[[falcon.Request, falcon.Response], None]) -> None:
    """Answer every error in Designate's form.

    :param admit: raises a PoolError for a requester who is not told what addresses there are
    """
    def of_no_route(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: Any) -> None:
        try:
            if req.path.startswith('/v2/'):
                admit(req, resp)
        except PoolError as refused:
            answer_error(req, resp, refused, params)
        else:
            _of_falcon(req, resp, error, params)

    # Falcon chooses the handler of the nearest class.
    app.add_error_handler(Exception, _unexpected)
    app.add_error_handler(falcon.HTTPError, _of_falcon)
    app.add_error_handler(falcon.HTTPRouteNotFound, of_no_route)
    app.add_error_handler(PoolError, answer_error)


def answer_error(req: falcon.Request, resp: falcon.Response, error: PoolError, params: Any) -> None:
    """Answer *error* in Designate's form."""
    if error.code >= 500 and error.code != 501:
        LOG.log(logging.DEBUG if error.is_logged else logging.ERROR, '%s %s: %s [%s]', req.method,
                printable(req.path, _LONGEST_PATH), error, req.context.request_id)
    if error.seconds is not None:
        resp.set_header('Retry-After', str(error.seconds))
    answer(resp, fault(error, req.context.request_id), error.code)


def _of_falcon(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: Any) -> None:
    if not hasattr(req.context, 'request_id'):
        # Falcon refuses some methods before it calls any middleware.
        req.context.request_id = f'req-{uuid.uuid4()}'
        resp.set_header(REQUEST_ID, req.context.request_id)
    if isinstance(error, falcon.HTTPRouteNotFound):
        what = 'such address; the API begins at /v2, and /openapi.json describes it'
        return answer_error(req, resp, NotFound(what=what), params)
    phrase = http.HTTPStatus(error.status_code).phrase
    if isinstance(error, falcon.HTTPMethodNotAllowed):
        why = f'{req.method} is not possible here, only {dict(error.headers or {})["Allow"]}'
    else:
        why = (error.description or phrase).rstrip('.')
    answer_error(req, resp, HttpError(error.status_code, phrase, why), params)
    resp.set_headers(error.headers or {})


def _unexpected(req: falcon.Request, resp: falcon.Response, error: Exception, params: Any) -> None:
    LOG.exception('%s %s failed [%s]', req.method, printable(req.path, _LONGEST_PATH), req.context.request_id,
                  exc_info=error)
    answer(resp, fault(PoolError(), req.context.request_id), 500)
