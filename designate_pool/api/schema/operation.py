"""What can be asked of the API: each operation as a value.

From these come the routes' document (:mod:`designate_pool.api.schema.openapi`), the policy's rules, and the labels of
metrics.  Each module of resources has its own in ``OPERATIONS``, and the shapes of what it answers in ``SCHEMAS``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from designate_pool.api.schema.request_fields import Table

Schema = Mapping[str, Any]

#: Roles, each of which may do what the ones before it may.
ANYONE, READER, MEMBER, OPERATOR, ADMIN = 'anyone', 'reader', 'member', 'operator', 'admin'
#: The rule of those who say which pool a new zone goes to.
CREATE_IN_POOL = 'create_zone_in_pool'
#: How much a body may hold: little, all of a zone as JSON, a zone file.
SMALL, ZONE, FILE = 'small', 'zone', 'file'


@dataclasses.dataclass(frozen=True)
class ApiOperation:
    """One method of one address.

    :ivar name: its id in the document, and the policy's rule
    :ivar path: as falcon takes it, ``/v2/zones/{zone_id}``
    :ivar role: the least that may do it, unless a policy file says otherwise; ``anyone`` needs no token
    :ivar answers: the name of a schema by status; None has no body
    :ivar body: what the JSON body may hold; None when there is none
    :ivar body_optional: whether the body may be left out
    :ivar media: of the body, where it is no JSON
    :ivar answer_media: of the answer, where it is no JSON
    :ivar query: what may follow the question mark
    :ivar body_size: how much the body may hold
    :ivar is_list: whether marker, limit, sort_key and sort_dir may as well
    """

    name: str
    method: str
    path: str
    summary: str
    role: str
    answers: Mapping[int, str | None]
    body: Table | None = None
    body_optional: bool = False
    media: str = 'application/json'
    answer_media: str = 'application/json'
    query: Table = dataclasses.field(default_factory=dict)
    is_list: bool = False
    body_size: str = SMALL
