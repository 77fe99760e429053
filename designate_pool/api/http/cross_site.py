"""Protection against cross-site requests where no token is required.

Any page that a user visits can make the browser send requests, also to this machine, and under a name that the page
chooses (DNS rebinding).  A page cannot suppress the headers by which browsers tell the origin of a request, so these
are trusted.  Browsers without them still send the content type of a form with its contents, even when it is empty.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from designate_pool.api.http.envelope import refuse_outside
from designate_pool.api.schema.request_fields import printable
from designate_pool.errors import Forbidden, PoolError, WrongContentType

Wsgi = Callable[..., Any]
#: A host, with or without a port: an address, which cannot be rebound (a name does not end in a number), or a name.
_HOST = re.compile(r'(?:\[[0-9a-f:.]+\]|[0-9]+(?:\.[0-9]+){3}\.?|(?P<name>[^][:@/,\s]+))(?::[0-9]{1,5})?')
_READING = ('GET', 'HEAD')
#: The types that a page may send to other sites without a preflight request of the browser.
_OF_FORMS = ('application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain')


class CrossSiteGuard:
    """*app*, closed to web pages of other sites.

    :param hosts: its names, besides addresses, localhost and the name of this machine
    """

    def __init__(self, app: Wsgi, hosts: Collection[str] = ()) -> None:
        self._app = app
        own = socket.gethostname()
        self._hosts = {name.lower().rstrip('.') for name in (*hosts, 'localhost', own, own.partition('.')[0])}

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        why = self._sign_of_page(environ)
        kind = environ.get('CONTENT_TYPE', '').partition(';')[0].strip().lower()
        error: PoolError
        if why is not None:
            error = Forbidden(what='send requests from a web page of another site', why=why)
        elif kind in _OF_FORMS and environ['REQUEST_METHOD'] not in _READING:
            error = WrongContentType(wanted='of a type that no web form has', found=printable(kind))
        else:
            return self._app(environ, start_response)
        return refuse_outside(error, start_response)

    def _sign_of_page(self, environ: Mapping[str, Any]) -> str | None:
        host = environ.get('HTTP_HOST', '')
        match = _HOST.fullmatch(host.lower())
        name = match and (match['name'] or 'localhost').rstrip('.')
        if host and not (name and (name in self._hosts or name.endswith('.localhost'))):
            return f"the header Host says {printable(host)}; if that is a name of this server, add it to 'hosts'"
        origin = environ.get('HTTP_ORIGIN')
        if origin is not None and _netloc(origin) != host.lower():
            return f'the header Origin says {printable(origin)}'
        site = environ.get('HTTP_SEC_FETCH_SITE', 'same-origin')
        # none: the user has typed or bookmarked the address, so it is a navigation that reads
        allowed = ('same-origin', 'none') if environ['REQUEST_METHOD'] in _READING else ('same-origin',)
        if site not in allowed and not _is_navigation(environ):
            return f'the header Sec-Fetch-Site says {printable(site)}'
        return None


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ''


def _is_navigation(environ: Mapping[str, Any]) -> bool:
    """Whether the user follows a link to a page of ours; the page with the link cannot read ours."""
    return environ['REQUEST_METHOD'] in _READING and environ.get('HTTP_SEC_FETCH_MODE') == 'navigate' \
        and environ.get('HTTP_SEC_FETCH_DEST') == 'document'
