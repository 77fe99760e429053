"""The operations of the API as values.

The routes, the document (:mod:`designate_pool.api.schema.openapi`), the rules of the policy and the labels of metrics
are made of them.  Each module of resources has its operations in ``OPERATIONS``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from designate_pool.api.schema.answers import AnswerForm
from designate_pool.api.schema.request_fields import Table

#: Carries out an operation.
Handler = Callable[..., Any]
#: Roles, each of which may do what the ones before it may.
ANYONE, READER, MEMBER, OPERATOR, ADMIN = 'anyone', 'reader', 'member', 'operator', 'admin'
#: The policy rule for choosing the pool of a new zone.
CREATE_IN_POOL = 'create_zone_in_pool'
#: The policy rule for creating a zone whose name is in the blacklists.
USE_BLACKLISTED = 'use_blacklisted_zone'
#: The policy rule that a role fulfils which may do all that *admin* may.
IS_ADMIN = 'is_admin'
#: The policy rule for locks that only those may lift whom it allows.
LOCK_AS_ADMIN = 'lock_as_administrator'


@dataclasses.dataclass(frozen=True)
class ApiOperation:
    """One method of one path.

    :ivar name: its id in the document, and its policy rule
    :ivar path: as falcon takes it, ``/v2/zones/{zone_id}``
    :ivar role: the least one that may do it by default; ``anyone`` needs no token
    :ivar answers: the form of the answer by status, the usual one first; None has no body
    :ivar handler: carries it out, see :meth:`Operations.add`
    :ivar tag: its group in the document
    :ivar has_location: whether the answer has the address of what it shows in the header Location
    :ivar body: the fields of the JSON body; None when there is none
    :ivar body_optional: whether the body may be left out
    :ivar media: the type of the body, if not JSON
    :ivar other_body: the fields of the JSON that may be sent in place of *media*
    :ivar answer_media: the type of the answer, if not JSON
    :ivar query: the parameters of the query
    :ivar headers: what it reads of the headers, besides those that all operations have
    :ivar errors: statuses of errors, besides those that all operations have
    :ivar default_rule: the policy rule that decides by default, if not that of *role*
    :ivar is_list: whether the query also has marker, limit, sort_key and sort_dir
    """

    name: str
    method: str
    path: str
    summary: str
    role: str
    answers: Mapping[int, AnswerForm | None]
    handler: Handler
    tag: str
    has_location: bool = False
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


class Operations:
    """The operations of a module, in the order of the document.

    :param tag: their group in the document, where an operation has no other
    """

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._operations: list[ApiOperation] = []

    def __iter__(self) -> Iterator[ApiOperation]:
        return iter(self._operations)

    def add(self, method: str, path: str, summary: str, role: str, answers: Mapping[int, AnswerForm | None],
            name: str = '', tag: str = '', **other: Any) -> Callable[[Handler], Handler]:
        """Decorate the function that carries out an operation; the operation has its name.

        The function is called with the :class:`~designate_pool.api.resources.base.Api`, the request, the response and
        the variable parts of the path.  It returns what the answer's form shows, or JSON already; or None, when there
        is no body or the function has written it to the response.

        :param name: of the operation, where one function carries out several
        :param other: further fields of the operation
        """
        def add(handler: Handler) -> Handler:
            self._operations.append(ApiOperation(name or handler.__name__, method, path, summary, role, answers,
                                                 handler, tag or self._tag, **other))
            return handler
        return add
