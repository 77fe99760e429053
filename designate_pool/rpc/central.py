"""The contract of the service ``central``, version 1.0, and its client."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from designate_pool.model import Context, Domain, Outcome, Pool, RefreshTask, Report, ZoneTransferIn
from designate_pool.rpc.client import RpcClient

TOPIC = 'central'
#: Seconds to wait for calls that process a whole zone: 100,000 records take half a minute on a busy machine.
LONG = 600.0


class CentralClient:
    """Calls of the other services to Central, which the API has in its process; they raise its errors."""

    def __init__(self, caller: RpcClient) -> None:
        self._caller = caller
        self._call = functools.partial(caller.call, TOPIC)

    def get_domain(self, context: Context, domain_id: str) -> Domain:
        """A domain that the context sees; DomainNotFound when there is none, or it is deleted."""
        return self._call(context, 'get_domain', domain_id=domain_id)

    def refresh_domain(self, context: Context, domain_id: str) -> Domain:
        """Have a secondary domain refreshed from its masters, now; BadInput for a primary one."""
        return self._call(context, 'refresh_domain', domain_id=domain_id)

    def claim_refreshes(self, context: Context, pool_name: str, seconds: float, most: int,
                        but_projects: Sequence[str] = (), but_masters: Sequence[str] = ()) -> list[RefreshTask]:
        """Claim secondary domains of a pool that are due to be refreshed; :meth:`store_transfer`,
        :meth:`confirm_refresh` or :meth:`fail_refresh` ends the claim.

        :param seconds: for which nobody else gets them
        :param but_projects: whose domains are not claimed
        :param but_masters: addresses, of first masters of domains that are not claimed
        """
        return self._call(context, 'claim_refreshes', pool_name=pool_name, seconds=seconds, most=most,
                          but_projects=list(but_projects), but_masters=list(but_masters))

    def store_transfer(self, context: Context, domain_id: str, claim: str, master: str,
                       transfer: ZoneTransferIn) -> None:
        """Store what a master has sent of a claimed domain; nothing if the claim was lost.

        :param master: ``address:port``
        :raises TransferRejected: when it does not follow from what is stored, or is no zone
        :raises OverQuota: when it is larger than the project's zones may be
        """
        self._call(context, 'store_transfer', patience=LONG, domain_id=domain_id, claim=claim, master=master,
                   transfer=transfer)

    def confirm_refresh(self, context: Context, domain_id: str, claim: str, master: str) -> None:
        """Note that a master has the serial that is stored."""
        self._call(context, 'confirm_refresh', domain_id=domain_id, claim=claim, master=master)

    def fail_refresh(self, context: Context, domain_id: str, claim: str, error: str) -> None:
        """Note that no master could be asked, or their zone was refused; *error* is shown to the owner."""
        self._call(context, 'fail_refresh', domain_id=domain_id, claim=claim, error=error)

    def set_resource_records(self, context: Context, resource: Mapping[str, str], domain_id: str | None,
                             records: Sequence[Mapping[str, str]], at: datetime | None = None) -> None:
        """Give a resource of another service exactly these records in one domain, and none in others.

        :param resource: ``plugin``, ``resource_type``, ``resource_id``
        :param domain_id: None for no domain
        :param records: mappings with ``name``, ``type`` and ``data``
        :param at: when the event was that this follows; nothing is done if a later one was processed already
        """
        self._call(context, 'set_resource_records', resource=dict(resource), domain_id=domain_id,
                   records=[dict(record) for record in records], at=at)

    def wake_imports(self, context: Context) -> None:
        """Have every Central look for waiting imports at once; otherwise they look every few seconds."""
        self._caller.cast(TOPIC, context, 'wake_imports', to_all=True)

    def create_pool(self, context: Context, pool: Mapping[str, Any]) -> Pool:
        """Create a pool; its servers are in the configuration of its pool managers.

        :param pool: ``name``; optional ``description``, ``project_id``, ``name_servers`` (host names, the primary of
            the SOA first) or ``ns_records`` (mappings with ``hostname`` and ``priority``), ``also_notifies``,
            ``attributes`` (the JSON of an object of texts)
        """
        return self._call(context, 'create_pool', pool=dict(pool))

    def find_pools(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                   limit: int | None = None, sort_key: str | None = None,
                   sort_dir: str | None = None) -> list[Pool]:
        """A page of pools, by ``name`` or ``description`` (``*`` is any text), ``id`` or ``project_id``."""
        return self._call(context, 'find_pools', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def get_pool(self, context: Context, pool_id: str) -> Pool:
        """A pool by its id; PoolNotFound when there is none."""
        return self._call(context, 'get_pool', pool_id=pool_id)

    def update_pool(self, context: Context, pool: Mapping[str, Any]) -> Pool:
        """Change a pool: its ``id`` and the values to change.  New name servers give its domains new serials."""
        return self._call(context, 'update_pool', patience=LONG, pool=dict(pool))

    def delete_pool(self, context: Context, pool_id: str) -> None:
        """Delete a pool; Refused while it has zones or running programs, Conflict for the last one."""
        self._call(context, 'delete_pool', pool_id=pool_id)

    def update_status(self, context: Context, domain: Domain, status: Outcome, serial_number: int) -> None:
        """Report that the pool serves one domain at a serial, or that this has failed."""
        self._call(context, 'update_status', domain=domain, status=status, serial_number=serial_number)

    def update_statuses(self, context: Context, reports: Sequence[Report]) -> None:
        """Report the states of many domains in one message and one transaction."""
        self._call(context, 'update_statuses', reports=list(reports))

    def raise_serial_above(self, context: Context, domain_id: str, serial: int) -> Domain:
        """Raise the serial of a domain, unless it is newer or going, above one that the pool has never issued."""
        return self._call(context, 'raise_serial_above', domain_id=domain_id, serial=serial)
