"""What an operator can set for the pool manager."""

from __future__ import annotations

import dataclasses

from designate_pool.pool_manager.reconcile.row_transitions import Tries


@dataclasses.dataclass(frozen=True, slots=True)
class ManagerSettings:
    """Times are seconds.

    :ivar name: this process among the pool managers of the pool
    :ivar periodic_sync_interval: in which every domain is asked for on every server
    :ivar contents_audit_interval: in which every zone's contents are compared on every server; 0 for never
    :ivar contents_audit_rate: octets a second that are transferred from one server for that
    :ivar extra_zones_interval: in which every server is asked for zones that no domain explains; 0 for never
    :ivar claim_seconds: how long work that one pool manager took is left to it; longer than any driver's call
    :ivar count_joining_servers: whether a server counts before it has every domain
    :ivar delete_zones_of_removed_servers: whether the zones are deleted from a server whose section is gone
    :ivar max_deletes_per_hour: how many RRsets may be deleted in an hour from the servers that are fed by records,
        before an operator has to approve each further plan that deletes; 0 for any number
    :ivar plan_lifetime: how long a plan waits to be approved
    :ivar batch_size: how many domains are worked on with one statement
    :ivar measured: whether anybody can ask for metrics, so that those from the database are worth their price
    """

    name: str = 'pool-manager'
    tries: Tries = Tries()
    periodic_sync_interval: float = 120.0
    contents_audit_interval: float = 0.0
    contents_audit_rate: float = 1e6
    extra_zones_interval: float = 0.0
    claim_seconds: float = 30.0
    batch_size: int = 200
    max_deletes_per_hour: int = 1000
    plan_lifetime: float = 604800.0
    circuit_failures: int = 3
    circuit_probe_interval: float = 2.0
    count_joining_servers: bool = False
    delete_zones_of_removed_servers: bool = False
    measured: bool = False
