"""HTTP Basic (RFC 7617) with a token as password: for status pages in a browser, and for nothing else."""

from __future__ import annotations

import base64
import binascii

from designate_pool.errors import Unauthorized

PAGE = '/status'
CHALLENGE = 'Basic realm="designate-pool", charset="UTF-8"'


def is_for(path: str) -> bool:
    """Whether *path* is the status page or below it."""
    return path == PAGE or path.startswith(f'{PAGE}/')


def password(method: str, path: str, authorization: str | None) -> str:
    """The token in the header Authorization; '' when there is none, or it is not for this.

    Browsers send it with requests of foreign pages too, so it must not allow any change.

    :raises Unauthorized: when the header is wrong
    """
    kind, _, rest = (authorization or '').partition(' ')
    if kind.lower() != 'basic' or method not in ('GET', 'HEAD') or not is_for(path):
        return ''
    try:
        return base64.b64decode(rest.strip(), validate=True).decode('utf-8').partition(':')[2]
    except (binascii.Error, ValueError):
        raise Unauthorized(why='what was sent is not HTTP Basic') from None
