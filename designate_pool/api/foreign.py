"""Web pages of others are kept out where nobody is asked for a token.

A browser sends what any page that its user visits tells it to, also to this machine, and under a name of its own choice
that leads here (DNS rebinding).  What browsers say of a request's origin no page can leave out, so it is believed.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from designate_pool.api import views
from designate_pool.api.answering import REQUEST_ID
from designate_pool.api.kinds import shown
from designate_pool.errors import Forbidden

Wsgi = Callable[..., Any]


class NoForeignPages:
    """*app* for all but web pages that come from elsewhere.

    :param hosts: names by which it is called, beside addresses, localhost and the name of this machine
    """

    def __init__(self, app: Wsgi, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._hosts = {name.lower().rstrip('.') for name in (*hosts, 'localhost', *_own_names())}

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        why = self._fault(environ)
        if why is None:
            return self._app(environ, start_response)
        error = Forbidden(what='what a web page from elsewhere asks for', why=why)
        request_id = f'req-{uuid.uuid4()}'
        body = json.dumps(views.fault(error, request_id)).encode()
        start_response('403 Forbidden', [('Content-Type', 'application/json'), ('Content-Length', str(len(body))),
                                         (REQUEST_ID, request_id)])
        return [body]

    def _fault(self, environ: Mapping[str, Any]) -> str | None:
        host = environ.get('HTTP_HOST', '')
        if host and not self._is_own(host):
            return f"the header Host says {shown(host)}; if that is a name of this server, add it to 'hosts'"
        origin = environ.get('HTTP_ORIGIN')
        if origin is not None and _netloc(origin) != host.lower():
            return f'the header Origin says {shown(origin)}'
        site = environ.get('HTTP_SEC_FETCH_SITE', 'none')
        if site not in ('none', 'same-origin') and not _is_navigation(environ):
            return f'the header Sec-Fetch-Site says {shown(site)}'
        return None

    def _is_own(self, host: str) -> bool:
        name = host.lower()
        name = name[1:].partition(']')[0] if name.startswith('[') else name.rpartition(':')[0] or name
        name = name.rstrip('.')
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
    return environ['REQUEST_METHOD'] in ('GET', 'HEAD') and environ.get('HTTP_SEC_FETCH_MODE') == 'navigate' \
        and environ.get('HTTP_SEC_FETCH_DEST') == 'document'
