"""The settings of the pool manager."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Tries:
    """How often and how far apart an operation is tried; times are seconds.

    :ivar timeout: of one poll
    :ivar backoff_initial: the pause after the first ERROR; it doubles with each one up to *backoff_maximum*
    """

    timeout: float = 30.0
    retry_interval: float = 2.0
    max_retries: int = 3
    backoff_initial: float = 5.0
    backoff_maximum: float = 300.0

    @property
    def round_seconds(self) -> float:
        """The longest time that a round of polls can take."""
        return (1 + self.max_retries) * self.timeout + self.max_retries * self.retry_interval


@dataclasses.dataclass(frozen=True, slots=True)
class ManagerSettings:
    """Times are seconds.

    :ivar name: of this process, unique among the pool managers of the pool
    :ivar periodic_sync_interval: of the audit of serials
    :ivar contents_audit_interval: of the audit of contents; 0 for never
    :ivar contents_audit_rate: octets a second that are transferred from one server for it
    :ivar extra_zones_interval: of the audit for orphans; 0 for never
    :ivar claim_seconds: how long a claim lasts; longer than any driver's call
    :ivar count_joining_servers: whether a server counts before it has every domain
    :ivar delete_zones_of_removed_servers: whether zones are deleted from a server whose section was removed
    :ivar max_deletes_per_hour: RRsets that may be deleted in an hour from servers fed by records; an operator has to
        approve each further plan that deletes; 0 for any number
    :ivar plan_lifetime: how long a plan waits for approval
    :ivar batch_size: domains in one step, at most
    :ivar measured: whether metrics are served, so that those from the database are worth their cost
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
