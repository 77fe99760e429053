"""What Designate has and this has not: it is answered 501, with what to do instead.

Where only the method is not there the answer is 405, as RFC 9110 has it, with the same words.
"""

from __future__ import annotations

import re

from designate_pool.errors import NotImplementedHere

_ANY = ('GET', 'POST', 'PUT', 'PATCH', 'DELETE')
_OWNERSHIP = ('Zone transfers between projects are not supported',
              'export the zone, delete it, and import it in the other project')
_ABSENT: tuple[tuple[tuple[str, ...], str, tuple[str, str]], ...] = (
    (_ANY, '/v2/reverse(/.*)?', ('There are no floating IPs',
                                 'create the reverse zone and its PTR recordsets as any other')),
    (_ANY, '/v2/tlds(/.*)?', ('There is no list of top-level domains', 'let the policy say who may create zones')),
    (_ANY, '/v2/blacklists(/.*)?', ('There are no blacklists', 'let the policy say who may create zones')),
    (_ANY, '/v2/zones/tasks/transfer_(requests|accepts)(/.*)?', _OWNERSHIP),
    (_ANY, '/v2/zones/[^/]+/tasks/transfer_requests(/.*)?', _OWNERSHIP),
    (_ANY, '/v2/zones/[^/]+/shares(/.*)?', ('Zones are not shared between projects',
                                            'give the other project a token of this one')),
    (_ANY, '/v2/zones/[^/]+/tasks/abandon', ('A zone cannot be abandoned', 'put the servers that are to keep it into '
                                             'maintenance or drain them, then delete the zone')),
    (_ANY, '/v2/zones/[^/]+/tasks/xfr', ('Secondary zones are not supported',
                                         'import the zone, or have designate-pool-sync read it from its primary')),
    (_ANY, '/v2/zones/[^/]+/tasks/pool_move', ('A zone is not moved between pools',
                                               'export it, delete it, and import it in the other pool')),
)
_COMPILED = tuple((methods, re.compile(pattern), words) for methods, pattern, words in _ABSENT)


def find(method: str, path: str) -> NotImplementedHere | None:
    """The answer to what Designate would do at *path*, if it is one of these."""
    for methods, pattern, (what, instead) in _COMPILED:
        if (method in methods or method == 'HEAD') and pattern.fullmatch(path):
            return NotImplementedHere(what=what, instead=instead)
    return None
