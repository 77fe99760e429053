"""Which servers of a pool count for thresholds, which have rows for every change, and which are called and polled.

The invariant: a server that counts has rows for every change; a server that has rows but is not in service now gets
the changes later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from designate_pool import consensus
from designate_pool.model import PoolServer, ServerState

#: Called and polled.
_IN_SERVICE = (ServerState.JOINING, ServerState.ACTIVE)
#: With rows for every change.
_TRACKED = (*_IN_SERVICE, ServerState.MAINTENANCE)


@dataclasses.dataclass(frozen=True, slots=True)
class Members:
    """The servers by their present role; ids in the order of the configuration.

    :ivar servers: all servers in the database, including removed ones
    :ivar counting: those that count for thresholds
    :ivar tracked: those that have rows for every change
    :ivar in_service: those that are called and polled
    """

    servers: tuple[PoolServer, ...]
    counting: tuple[str, ...]
    tracked: tuple[str, ...]
    in_service: frozenset[str]

    @classmethod
    def of(cls, servers: Iterable[PoolServer], count_joining: bool = False) -> Members:
        """The members of a pool, from its rows of pool_servers.

        :param count_joining: whether a joining server counts before it has every domain
        """
        servers = tuple(servers)
        return cls(servers, tuple(server.id for server in servers if consensus.counts(server, count_joining)),
                   tuple(server.id for server in servers if server.state in _TRACKED),
                   frozenset(server.id for server in servers if server.state in _IN_SERVICE))

    @property
    def uncounted(self) -> tuple[str, ...]:
        """Ids of servers that have rows for every change and do not count."""
        return tuple(server for server in self.tracked if server not in self.counting)
