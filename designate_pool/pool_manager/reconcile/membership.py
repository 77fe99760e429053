"""Which servers of a pool are sent to, which count, and which are owed every change.

The invariant: what counts is owed every change; what is owed a change and is not sent to now gets it later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from designate_pool import consensus
from designate_pool.model import PoolServer, ServerState

#: Sent to.
_WORKING = (ServerState.JOINING, ServerState.ACTIVE)
#: Owed every change.
_HOLDING = (*_WORKING, ServerState.MAINTENANCE)


@dataclasses.dataclass(frozen=True, slots=True)
class Members:
    """The servers by what they are good for now; ids in the order of the configuration.

    :ivar servers: all that the database knows, the removed ones too
    :ivar counting: those that thresholds are about
    :ivar holding: those that get rows for every change
    :ivar working: those that something is sent to
    """

    servers: tuple[PoolServer, ...]
    counting: tuple[str, ...]
    holding: tuple[str, ...]
    working: frozenset[str]

    @classmethod
    def of(cls, servers: Iterable[PoolServer], count_joining: bool = False) -> Members:
        """The members of a pool, from its rows of pool_servers.

        :param count_joining: whether a server counts before it is filled
        """
        servers = tuple(servers)
        return cls(servers, tuple(each.id for each in servers if consensus.counts(each, count_joining)),
                   tuple(each.id for each in servers if each.state in _HOLDING),
                   frozenset(each.id for each in servers if each.state in _WORKING))

    @property
    def resting(self) -> tuple[str, ...]:
        """Ids of those that are owed every change and do not count."""
        return tuple(server for server in self.holding if server not in self.counting)
