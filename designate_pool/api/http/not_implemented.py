"""What Designate has and this API does not: answered by 501 with what to do instead.

Where the path exists without the method, the answer is 405 (RFC 9110) with the same words.
"""

from __future__ import annotations

import re

from designate_pool.errors import NotImplementedHere

_METHODS = ('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE')
#: By a pattern of paths: what there is not, and what to do instead.
_ABSENT: tuple[tuple[str, tuple[str, str]], ...] = (
    ('/v2/reverse(/.*)?', ('There are no floating IPs',
                           'create the reverse zone and its PTR recordsets as any other')),
)
_COMPILED = tuple((re.compile(pattern), words) for pattern, words in _ABSENT)


def find(method: str, path: str) -> NotImplementedHere | None:
    """The answer to what Designate would do at *path*, if it is one of these."""
    for pattern, (what, instead) in _COMPILED:
        if method in _METHODS and pattern.fullmatch(path):
            return NotImplementedHere(what=what, instead=instead)
    return None
