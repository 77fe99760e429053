"""Who a request is from, as far as the API is concerned."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Identity:
    """Who asks.

    :ivar project: whose zones it works on; '' is nobody's
    :ivar roles: in lower case, as they are called in the policy
    :ivar user: a name for people
    :ivar key: what its requests are counted under
    :ivar needs_project: whether it sees nothing without a project; else it sees all
    """

    project: str
    roles: tuple[str, ...]
    user: str
    key: str
    needs_project: bool = True
