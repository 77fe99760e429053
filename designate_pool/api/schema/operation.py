"""The operations of the API as values.

The document (:mod:`designate_pool.api.schema.openapi`), the rules of the policy and the labels of metrics are made of
them.  Each module of resources has its operations in ``OPERATIONS``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from designate_pool.api.schema.answers import AnswerForm
from designate_pool.api.schema.request_fields import Table

#: Roles, each of which may do what the ones before it may.
ANYONE, READER, MEMBER, OPERATOR, ADMIN = 'anyone', 'reader', 'member', 'operator', 'admin'
#: The policy rule for choosing the pool of a new zone.
CREATE_IN_POOL = 'create_zone_in_pool'
#: The policy rule for creating a zone whose name is in the blacklists.
USE_BLACKLISTED = 'use_blacklisted_zone'


@dataclasses.dataclass(frozen=True)
class ApiOperation:
    """One method of one path.

    :ivar name: its id in the document, and its policy rule
    :ivar path: as falcon takes it, ``/v2/zones/{zone_id}``
    :ivar role: the least one that may do it by default; ``anyone`` needs no token
    :ivar answers: the form of the answer by status; None has no body
    :ivar body: the fields of the JSON body; None when there is none
    :ivar body_optional: whether the body may be left out
    :ivar media: the type of the body, if not JSON
    :ivar other_body: the fields of the JSON that may be sent in place of *media*
    :ivar answer_media: the type of the answer, if not JSON
    :ivar query: the parameters of the query
    :ivar headers: what it reads of the headers, besides those that all operations have
    :ivar errors: statuses of errors, besides those that all operations have
    :ivar default_rule: the policy rule that decides by default, if not that of *role*
    :ivar tag: its group in the document, if it is not called as its module
    :ivar is_list: whether the query also has marker, limit, sort_key and sort_dir
    """

    name: str
    method: str
    path: str
    summary: str
    role: str
    answers: Mapping[int, AnswerForm | None]
    body: Table | None = None
    body_optional: bool = False
    media: str = 'application/json'
    other_body: Table | None = None
    answer_media: str = 'application/json'
    query: Table = dataclasses.field(default_factory=dict)
    is_list: bool = False
    headers: Table = dataclasses.field(default_factory=dict)
    errors: tuple[int, ...] = ()
    default_rule: str | None = None
    tag: str = ''
