"""Web pages of others are kept out where nobody is asked for a token.

A browser sends what any page that its user visits tells it to, also to this machine, and under a name of its own choice
that leads here (DNS rebinding).  What browsers say of a request's origin no page can leave out, so it is believed.
Browsers that say nothing of it still say that a form's contents are a form's, also of one that is empty.
"""

from __future__ import annotations

import http
import ipaddress
import json
import re
import socket
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from designate_pool.api.http.envelope import REQUEST_ID
from designate_pool.api.schema.json_types import printable
from designate_pool.api.views import designate
from designate_pool.errors import Forbidden, PoolError, WrongContentType

Wsgi = Callable[..., Any]
_HOST = re.compile(r'(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^][:@/,\s]+))(?::[0-9]{1,5})?')
_READING = ('GET', 'HEAD')
#: The types that a page may send anywhere without its visitor's browser asking first.
_OF_FORMS = ('application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain')


class CrossSiteGuard:
    """*app* for all but web pages that come from elsewhere.

    :param hosts: names by which it is called, beside addresses, localhost and the name of this machine
    """

    def __init__(self, app: Wsgi, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._hosts = {name.lower().rstrip('.') for name in (*hosts, 'localhost', *_own_names())}

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        error = self._fault(environ)
        if error is None:
            return self._app(environ, start_response)
        request_id = f'req-{uuid.uuid4()}'
        body = json.dumps(designate.fault(error, request_id)).encode()
        start_response(f'{error.code} {http.HTTPStatus(error.code).phrase}', [
            ('Content-Type', 'application/json'), ('Content-Length', str(len(body))), (REQUEST_ID, request_id)])
        return [body]

    def _fault(self, environ: Mapping[str, Any]) -> PoolError | None:
        why = self._sign_of_page(environ)
        if why is not None:
            return Forbidden(what='send requests from a web page of another site', why=why)
        kind = environ.get('CONTENT_TYPE', '').partition(';')[0].strip().lower()
        if kind in _OF_FORMS and environ['REQUEST_METHOD'] not in _READING:
            return WrongContentType(wanted='of a type that no web form has', found=printable(kind))
        return None

    def _sign_of_page(self, environ: Mapping[str, Any]) -> str | None:
        host = environ.get('HTTP_HOST', '')
        if host and not self._is_own(host):
            return f"the header Host says {printable(host)}; if that is a name of this server, add it to 'hosts'"
        origin = environ.get('HTTP_ORIGIN')
        if origin is not None and _netloc(origin) != host.lower():
            return f'the header Origin says {printable(origin)}'
        site = environ.get('HTTP_SEC_FETCH_SITE', 'same-origin')
        # none: somebody has typed or kept the address, and so what follows is read
        allowed = ('same-origin', 'none') if environ['REQUEST_METHOD'] in _READING else ('same-origin',)
        if site not in allowed and not _is_navigation(environ):
            return f'the header Sec-Fetch-Site says {printable(site)}'
        return None

    def _is_own(self, host: str) -> bool:
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return False
        name = found['address'] or found['name'].rstrip('.')
        if name in self._hosts or name.endswith('.localhost'):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True  # nobody can make an address lead elsewhere


def _own_names() -> tuple[str, str]:
    name = socket.gethostname()
    return name, name.partition('.')[0]


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ''


def _is_navigation(environ: Mapping[str, Any]) -> bool:
    """Whether somebody follows a link to a page of ours, which the page with the link does not get to see."""
    return environ['REQUEST_METHOD'] in _READING and environ.get('HTTP_SEC_FETCH_MODE') == 'navigate' \
        and environ.get('HTTP_SEC_FETCH_DEST') == 'document'
