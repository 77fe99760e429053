"""The contract of the service ``central``, version 1.0, and its client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from designate_pool.model import (Blacklist, Context, Domain, FloatingIp, ManagedRecord, Outcome, PlanState, Pool,
                                  PoolServer, RecordChange, RecordSet, RefreshTask, Report, ServerReport, ServerStatus,
                                  ServiceStatus, StoredPlan, StoredTsigKey, Tld, ZoneShare, ZoneTransferAccept,
                                  ZoneTransferIn, ZoneTransferRequest)
from designate_pool.rpc.client import RpcClient

TOPIC = 'central'
VERSION = '1.0'
#: Seconds to wait for calls that process a whole zone: 100,000 records take half a minute on a busy machine.
LONG = 600.0


class CentralClient:
    """Calls to Central.  They raise errors of :mod:`designate_pool.errors`."""

    def __init__(self, caller: RpcClient) -> None:
        self._caller = caller

    def _call(self, context: Context, method: str, **arguments: Any) -> Any:
        return self._caller.call(TOPIC, context, method, **arguments)

    def create_domain(self, context: Context, domain: Mapping[str, Any],
                      recordsets: Sequence[Mapping[str, Any]] = ()) -> Domain:
        """Create a domain, optionally with recordsets, in one transaction and with one serial.

        :param domain: ``name`` and ``email``; optional ``ttl``, ``description``, ``attributes`` (the JSON of
            an object of texts), ``pool_name`` or ``pool_id``.  For a secondary domain ``masters`` (addresses, each
            with a port if that is not 53) in place of ``email`` and ``ttl``
        :param recordsets: mappings with ``name``, ``type``, ``records`` (texts), optional ``ttl``, ``description``
        """
        return self._caller.call(TOPIC, context, 'create_domain', patience=LONG if recordsets else None,
                                 domain=dict(domain), recordsets=[dict(each) for each in recordsets])

    def get_domain(self, context: Context, domain_id: str) -> Domain:
        return self._call(context, 'get_domain', domain_id=domain_id)

    def find_domains(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                     limit: int | None = None, sort_key: str | None = None,
                     sort_dir: str | None = None) -> list[Domain]:
        """The domains that match *criterion*.

        :param criterion: ``name``, ``email``, ``description`` (in these ``*`` matches any text), ``status``,
            ``pool_id``, ``ttl``, ``type``
        """
        return self._call(context, 'find_domains', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def update_domain(self, context: Context, domain_id: str, values: Mapping[str, Any]) -> Domain:
        """Change ``email``, ``ttl``, ``description``, ``attributes`` or ``masters``."""
        return self._call(context, 'update_domain', domain_id=domain_id, values=dict(values))

    def refresh_domain(self, context: Context, domain_id: str) -> Domain:
        """Have a secondary domain refreshed from its masters, now.

        :raises BadInput: for a primary one
        """
        return self._call(context, 'refresh_domain', domain_id=domain_id)

    def claim_refreshes(self, context: Context, pool_name: str, seconds: float, most: int) -> list[RefreshTask]:
        """Claim secondary domains of a pool that are due to be refreshed; :meth:`store_transfer`,
        :meth:`confirm_refresh` or :meth:`fail_refresh` ends the claim.

        :param seconds: for which nobody else gets them
        """
        return self._call(context, 'claim_refreshes', pool_name=pool_name, seconds=seconds, most=most)

    def store_transfer(self, context: Context, domain_id: str, claim: str, master: str,
                       transfer: ZoneTransferIn) -> None:
        """Store what a master has sent of a claimed domain; nothing if the claim was lost.

        :param master: ``address:port``
        :raises TransferRejected: when it does not follow from what is stored, or is no zone
        :raises OverQuota: when it is larger than the project's zones may be
        """
        self._caller.call(TOPIC, context, 'store_transfer', patience=LONG, domain_id=domain_id, claim=claim,
                          master=master, transfer=transfer)

    def confirm_refresh(self, context: Context, domain_id: str, claim: str, master: str) -> None:
        """Note that a master has the serial that is stored."""
        self._call(context, 'confirm_refresh', domain_id=domain_id, claim=claim, master=master)

    def fail_refresh(self, context: Context, domain_id: str, claim: str, error: str) -> None:
        """Note that no master could be asked, or that what they sent was refused.

        :param error: in words, shown to the owner
        """
        self._call(context, 'fail_refresh', domain_id=domain_id, claim=claim, error=error)

    def give_domain(self, context: Context, domain_id: str, project_id: str) -> Domain:
        """Move a domain to another project.

        :raises NameTaken: when it lies above or below a domain of a third project, unless *context* may nest domains
        :raises OverQuota: when the new project's quota is exhausted
        """
        return self._call(context, 'give_domain', domain_id=domain_id, project_id=project_id)

    def move_domain(self, context: Context, domain_id: str, pool_id: str | None = None) -> Domain:
        """Move a domain to another pool; its servers delete it when that pool serves it, after a time.

        :param pool_id: None for the pool that the domain's attributes choose
        :raises PoolWithoutServers: when that pool has no servers
        :raises DomainBeingMoved: when the pool does not serve it yet to which it was moved last
        """
        return self._call(context, 'move_domain', domain_id=domain_id, pool_id=pool_id)

    def delete_domain(self, context: Context, domain_id: str, delete_shares: bool = False) -> Domain:
        """Begin the deletion of a domain.

        :param delete_shares: whether it may be shared with other projects
        :raises ZoneShared: when it is, and may not be
        """
        return self._call(context, 'delete_domain', domain_id=domain_id, delete_shares=delete_shares)

    def abandon_domain(self, context: Context, domain_id: str, delete_shares: bool = False) -> Domain:
        """Delete a domain in the database, so that its servers keep what they have.

        :param delete_shares: as for :meth:`delete_domain`
        :raises ZoneShared: as :meth:`delete_domain`
        :raises ZoneInCatalog: when servers that read the catalog zone of its pool would delete it
        :raises DomainBeingMoved: when it is being moved and its pool does not serve it yet
        """
        return self._call(context, 'abandon_domain', domain_id=domain_id, delete_shares=delete_shares)

    def share_domain(self, context: Context, domain_id: str, values: Mapping[str, Any]) -> ZoneShare:
        """Let another project see a domain, and have recordsets of its own in it.

        :param values: ``target_project_id``
        :raises BadInput: when the project owns the domain
        :raises DuplicateSharedZone: when the domain is shared with it already
        """
        return self._call(context, 'share_domain', domain_id=domain_id, values=dict(values))

    def find_shares(self, context: Context, domain_id: str, criterion: Mapping[str, Any] | None = None,
                    marker: str | None = None, limit: int | None = None, sort_key: str | None = None,
                    sort_dir: str | None = None) -> list[ZoneShare]:
        """The shares of a domain, by ``target_project_id``; a project that it is shared with finds its own."""
        return self._call(context, 'find_shares', domain_id=domain_id, criterion=dict(criterion or {}), marker=marker,
                          limit=limit, sort_key=sort_key, sort_dir=sort_dir)

    def get_share(self, context: Context, domain_id: str, share_id: str) -> ZoneShare:
        """One share, for the owner of the domain."""
        return self._call(context, 'get_share', domain_id=domain_id, share_id=share_id)

    def unshare_domain(self, context: Context, domain_id: str, share_id: str) -> None:
        """
        :raises SharedZoneHasRecordSets: when the project still has recordsets in the domain
        :raises SharedZoneHasSubZone: when it has zones below
        """
        self._call(context, 'unshare_domain', domain_id=domain_id, share_id=share_id)

    def create_transfer_request(self, context: Context, domain_id: str,
                                values: Mapping[str, Any]) -> ZoneTransferRequest:
        """Request that another project take over a domain; its key is generated.

        :param values: optional ``target_project_id`` (the only project that can accept) and ``description``
        :raises DuplicateZoneTransferRequest: when the domain has an active request
        """
        return self._call(context, 'create_transfer_request', domain_id=domain_id, values=dict(values))

    def find_transfer_requests(self, context: Context, criterion: Mapping[str, Any] | None = None,
                               marker: str | None = None, limit: int | None = None, sort_key: str | None = None,
                               sort_dir: str | None = None) -> list[ZoneTransferRequest]:
        """The transfer requests of the sender's project, and those to it; by ``status``."""
        return self._call(context, 'find_transfer_requests', criterion=dict(criterion or {}), marker=marker,
                          limit=limit, sort_key=sort_key, sort_dir=sort_dir)

    def get_transfer_request(self, context: Context, transfer_request_id: str) -> ZoneTransferRequest:
        """One request, with its key.  Every project sees one that names no target."""
        return self._call(context, 'get_transfer_request', transfer_request_id=transfer_request_id)

    def update_transfer_request(self, context: Context, transfer_request_id: str,
                                values: Mapping[str, Any]) -> ZoneTransferRequest:
        """Change the ``description``."""
        return self._call(context, 'update_transfer_request', transfer_request_id=transfer_request_id,
                          values=dict(values))

    def delete_transfer_request(self, context: Context, transfer_request_id: str) -> None:
        self._call(context, 'delete_transfer_request', transfer_request_id=transfer_request_id)

    def create_transfer_accept(self, context: Context, transfer_request_id: str, key: str) -> ZoneTransferAccept:
        """Accept a transfer request: its domain moves to the sender's project.

        :raises InvalidZoneTransferRequest: when it was accepted already
        :raises WrongTransferKey: when *key* is not its key
        :raises NameTaken: when a domain above or below belongs to a third project
        :raises OverQuota: when the project may not have one domain more
        """
        return self._call(context, 'create_transfer_accept', transfer_request_id=transfer_request_id, key=key)

    def find_transfer_accepts(self, context: Context, criterion: Mapping[str, Any] | None = None,
                              marker: str | None = None, limit: int | None = None, sort_key: str | None = None,
                              sort_dir: str | None = None) -> list[ZoneTransferAccept]:
        """What the sender's project accepted; by ``status``."""
        return self._call(context, 'find_transfer_accepts', criterion=dict(criterion or {}), marker=marker,
                          limit=limit, sort_key=sort_key, sort_dir=sort_dir)

    def get_transfer_accept(self, context: Context, transfer_accept_id: str) -> ZoneTransferAccept:
        return self._call(context, 'get_transfer_accept', transfer_accept_id=transfer_accept_id)

    def create_recordset(self, context: Context, domain_id: str, recordset: Mapping[str, Any]) -> RecordSet:
        return self._call(context, 'create_recordset', domain_id=domain_id, recordset=dict(recordset))

    def get_recordset(self, context: Context, domain_id: str, recordset_id: str) -> RecordSet:
        return self._call(context, 'get_recordset', domain_id=domain_id, recordset_id=recordset_id)

    def find_recordsets(self, context: Context, domain_id: str, criterion: Mapping[str, Any] | None = None,
                        marker: str | None = None, limit: int | None = None, sort_key: str | None = None,
                        sort_dir: str | None = None) -> list[RecordSet]:
        """The recordsets of a domain that match *criterion*.

        :param criterion: ``name``, ``data``, ``description`` (in these ``*`` matches any text), ``type``, ``status``,
            ``ttl``
        """
        return self._call(context, 'find_recordsets', domain_id=domain_id, criterion=dict(criterion or {}),
                          marker=marker, limit=limit, sort_key=sort_key, sort_dir=sort_dir)

    def find_all_recordsets(self, context: Context, criterion: Mapping[str, Any] | None = None,
                            marker: str | None = None, limit: int | None = None, sort_key: str | None = None,
                            sort_dir: str | None = None) -> list[tuple[Domain, RecordSet]]:
        """Like :meth:`find_recordsets`, for all domains that *context* sees; each recordset with its domain."""
        return self._call(context, 'find_all_recordsets', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def update_recordset(self, context: Context, domain_id: str, recordset_id: str,
                         values: Mapping[str, Any]) -> RecordSet:
        """Change ``records`` (texts, which replace all present ones), ``ttl`` or ``description``."""
        return self._call(context, 'update_recordset', domain_id=domain_id, recordset_id=recordset_id,
                          values=dict(values))

    def delete_recordset(self, context: Context, domain_id: str, recordset_id: str) -> RecordSet:
        return self._call(context, 'delete_recordset', domain_id=domain_id, recordset_id=recordset_id)

    def apply_changes(self, context: Context, domain_id: str, changes: Sequence[RecordChange],
                      serial: int | None = None) -> Domain:
        """Make many changes of records in one transaction and with one serial.

        :param serial: the domain's serial when it was read; None to apply the changes to any serial
        :raises SerialMoved: when the domain has another serial now; nothing has been changed then
        :raises RecordSetNotFound: when a recordset that should be deleted does not exist
        """
        return self._caller.call(TOPIC, context, 'apply_changes', patience=LONG, domain_id=domain_id,
                                 changes=list(changes), serial=serial)

    def find_floating_ips(self, context: Context, floating_ips: Sequence[Mapping[str, str]]) -> list[FloatingIp]:
        """Floating IPs of the project of *context*, in their order, with their PTR records.

        :param floating_ips: as Neutron has them now: mappings with ``region``, ``id`` and ``address``
        """
        return self._call(context, 'find_floating_ips', floating_ips=[dict(each) for each in floating_ips])

    def set_floating_ip(self, context: Context, floating_ip: Mapping[str, str], ptr: Mapping[str, Any]) -> FloatingIp:
        """Give a floating IP of the project of *context* a PTR record, in a reverse zone that is created if it is not
        there.

        :param ptr: ``ptrdname``; optional ``ttl`` and ``description``
        """
        return self._call(context, 'set_floating_ip', floating_ip=dict(floating_ip), ptr=dict(ptr))

    def unset_floating_ip(self, context: Context, region: str, floating_ip_id: str) -> None:
        """Delete the PTR record of a floating IP.

        :raises NotFound: when it has none of the project of *context*
        """
        self._call(context, 'unset_floating_ip', region=region, floating_ip_id=floating_ip_id)

    def find_managed_records(self, context: Context,
                             criterion: Mapping[str, Any] | None = None) -> list[ManagedRecord]:
        """For which resources of other services records are there.

        :param criterion: fields of :class:`~designate_pool.model.ManagedRecord`, each with a text or a list of texts
        """
        return self._call(context, 'find_managed_records', criterion=dict(criterion or {}))

    def delete_managed_records(self, context: Context, ids: Sequence[str]) -> None:
        """Delete managed records by the ids that :meth:`find_managed_records` finds; those that are gone are no error.
        """
        self._call(context, 'delete_managed_records', ids=list(ids))

    def set_resource_records(self, context: Context, resource: Mapping[str, str], domain_id: str | None,
                             records: Sequence[Mapping[str, str]], at: datetime | None = None) -> None:
        """Give a resource of another service exactly these records in one domain, and none in others.

        :param resource: ``plugin``, ``resource_type``, ``resource_id``
        :param domain_id: None for no domain
        :param records: mappings with ``name``, ``type`` and ``data``
        :param at: when the event was that this follows; nothing is done if a later one was processed already
        """
        self._call(context, 'set_resource_records', resource=dict(resource), domain_id=domain_id,
                   records=[dict(each) for each in records], at=at)

    def import_zone(self, context: Context, text: str, pool_name: str | None = None) -> Domain:
        """Create a domain from a zone file (RFC 1035 section 5) in one message.  Zone tasks import larger files."""
        return self._caller.call(TOPIC, context, 'import_zone', patience=LONG, text=text, pool_name=pool_name)

    def export_zone(self, context: Context, domain_id: str) -> str:
        """The domain as a zone file in one message.  Zone tasks export larger zones."""
        return self._caller.call(TOPIC, context, 'export_zone', patience=LONG, domain_id=domain_id)

    def look_for_imports(self, context: Context) -> None:
        """Make a Central look for waiting imports at once; otherwise it looks every few seconds.

        :raises ServiceUnavailable: when the message could not be sent
        """
        self._caller.cast(TOPIC, context, 'look_for_imports')

    def check_export(self, context: Context, domain_id: str) -> Domain:
        """Check whether a domain may be exported, and return it.

        :raises OverQuota: when it is larger than its project's quota for exports
        """
        return self._call(context, 'check_export', domain_id=domain_id)

    def server_statuses(self, context: Context, domain_id: str) -> list[ServerStatus]:
        """A domain's rows of pool_manager_status."""
        return self._call(context, 'server_statuses', domain_id=domain_id)

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
        return self._call(context, 'find_pools', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def get_pool(self, context: Context, pool_id: str) -> Pool:
        return self._call(context, 'get_pool', pool_id=pool_id)

    def update_pool(self, context: Context, pool: Mapping[str, Any]) -> Pool:
        """Change a pool.  New name servers give each of its domains a new serial.

        :param pool: its ``id`` and the values to change
        """
        return self._caller.call(TOPIC, context, 'update_pool', patience=LONG, pool=dict(pool))

    def delete_pool(self, context: Context, pool_id: str) -> None:
        self._call(context, 'delete_pool', pool_id=pool_id)

    def find_servers(self, context: Context, pool_name: str) -> list[PoolServer]:
        """The servers of a pool, with the removed ones, in the order of the configuration."""
        return self._call(context, 'find_servers', pool_name=pool_name)

    def report_servers(self, context: Context, pool_name: str) -> list[ServerReport]:
        """The state of the work on each server of a pool."""
        return self._call(context, 'report_servers', pool_name=pool_name)

    def report_server(self, context: Context, server_id: str) -> ServerReport:
        """The state of the work on one server, with the number of its rows and some failures that *context* sees."""
        return self._call(context, 'report_server', server_id=server_id)

    def rest_server(self, context: Context, server_id: str) -> PoolServer:
        """Put a server into maintenance: nothing is sent to it, and it does not count.

        :raises WrongServerState: when it is draining or removed
        """
        return self._call(context, 'rest_server', server_id=server_id)

    def resume_server(self, context: Context, server_id: str) -> PoolServer:
        """Take a server out of maintenance; what it missed becomes due.  A server that is joining counts from now on;
        one that was drained by command joins again.
        """
        return self._call(context, 'resume_server', server_id=server_id)

    def drain_server(self, context: Context, server_id: str, delete_zones: bool = False) -> PoolServer:
        """Remove a server from its pool, even while its section is still in the configuration.

        :param delete_zones: whether to delete the zones from it, if it answers
        """
        return self._call(context, 'drain_server', server_id=server_id, delete_zones=delete_zones)

    def put_plan(self, context: Context, plan: StoredPlan) -> StoredPlan:
        """Store an operator's plan."""
        return self._call(context, 'put_plan', plan=plan)

    def find_plans(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                   limit: int | None = None, sort_key: str | None = None,
                   sort_dir: str | None = None) -> list[StoredPlan]:
        """The plans that match *criterion*, newest first, without their documents.

        Plans of domains are included if *context* sees the domain.  Operators' plans, which may be about any zone, are
        included only if *context* sees all projects.

        :param criterion: ``state`` (one, or several separated by commas), ``zone`` (``*`` matches any text),
            ``domain_id``, ``server_id``, ``pool_name``
        """
        return self._call(context, 'find_plans', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def get_plan(self, context: Context, plan_id: str) -> StoredPlan:
        """
        :param plan_id: the id or at least its first four digits; also for the methods below
        """
        return self._call(context, 'get_plan', plan_id=plan_id)

    def approve_plan(self, context: Context, plan_id: str) -> StoredPlan:
        """Approve a parked plan, so that its pool manager applies it.

        :raises WrongPlanState: when it is not parked, or has expired
        """
        return self._call(context, 'approve_plan', plan_id=plan_id)

    def drop_plan(self, context: Context, plan_id: str) -> StoredPlan:
        """Drop a plan, so that it is never applied.

        :raises WrongPlanState: when it has been applied already
        """
        return self._call(context, 'drop_plan', plan_id=plan_id)

    def settle_plan(self, context: Context, plan_id: str, state: PlanState, why: str | None = None) -> StoredPlan:
        """Record how an operator's plan ended: APPLIED, FAILED or DROPPED.

        :raises WrongPlanState: when it has been recorded already, or the plan is a pool manager's
        """
        return self._call(context, 'settle_plan', plan_id=plan_id, state=state, why=why)

    def update_status(self, context: Context, domain: Domain, status: Outcome, serial_number: int) -> None:
        """Report that the pool serves one domain at a serial, or that this has failed."""
        self._call(context, 'update_status', domain=domain, status=status, serial_number=serial_number)

    def update_statuses(self, context: Context, reports: Sequence[Report]) -> None:
        """:meth:`update_status` for many domains in one message and one transaction."""
        self._call(context, 'update_statuses', reports=list(reports))

    def outrun_serial(self, context: Context, domain_id: str, serial: int) -> Domain:
        """Raise a domain's serial above one that a server serves but that the pool has never issued.

        Nothing is done if the domain's serial is not older by now, or if it is being deleted.

        :param serial: the serial that the server serves
        """
        return self._call(context, 'outrun_serial', domain_id=domain_id, serial=serial)

    def create_tsigkey(self, context: Context, tsigkey: Mapping[str, Any]) -> StoredTsigKey:
        """Create a TSIG key that may transfer zones from MiniDNS.

        :param tsigkey: ``name``, ``algorithm``, ``secret`` (Base64), ``scope`` (POOL or ZONE), ``resource_id``
        """
        return self._call(context, 'create_tsigkey', tsigkey=dict(tsigkey))

    def find_tsigkeys(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                      limit: int | None = None, sort_key: str | None = None,
                      sort_dir: str | None = None) -> list[StoredTsigKey]:
        """The TSIG keys that match *criterion*.

        :param criterion: ``name`` (``*`` matches any text), ``algorithm``, ``scope``, ``resource_id``
        """
        return self._call(context, 'find_tsigkeys', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def get_tsigkey(self, context: Context, tsigkey_id: str) -> StoredTsigKey:
        return self._call(context, 'get_tsigkey', tsigkey_id=tsigkey_id)

    def update_tsigkey(self, context: Context, tsigkey_id: str, values: Mapping[str, Any]) -> StoredTsigKey:
        """Change values that :meth:`create_tsigkey` takes."""
        return self._call(context, 'update_tsigkey', tsigkey_id=tsigkey_id, values=dict(values))

    def delete_tsigkey(self, context: Context, tsigkey_id: str) -> None:
        self._call(context, 'delete_tsigkey', tsigkey_id=tsigkey_id)

    def create_tld(self, context: Context, tld: Mapping[str, Any]) -> Tld:
        """Add a name to the list of top-level domains: ``name``, optional ``description``."""
        return self._call(context, 'create_tld', tld=dict(tld))

    def find_tlds(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                  limit: int | None = None, sort_key: str | None = None, sort_dir: str | None = None) -> list[Tld]:
        """Top-level domains that match: ``name`` and ``description`` (``*`` stands for anything)."""
        return self._call(context, 'find_tlds', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def get_tld(self, context: Context, tld_id: str) -> Tld:
        return self._call(context, 'get_tld', tld_id=tld_id)

    def update_tld(self, context: Context, tld_id: str, values: Mapping[str, Any]) -> Tld:
        """Change what :meth:`create_tld` takes; zones that there are stay."""
        return self._call(context, 'update_tld', tld_id=tld_id, values=dict(values))

    def delete_tld(self, context: Context, tld_id: str) -> None:
        """Remove a name from the list; when it was the last, zones may have any name."""
        self._call(context, 'delete_tld', tld_id=tld_id)

    def create_blacklist(self, context: Context, blacklist: Mapping[str, Any]) -> Blacklist:
        """Add a pattern of names that zones may not have: ``pattern``, optional ``description``."""
        return self._call(context, 'create_blacklist', blacklist=dict(blacklist))

    def find_blacklists(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                        limit: int | None = None, sort_key: str | None = None,
                        sort_dir: str | None = None) -> list[Blacklist]:
        """Blacklists that match: ``pattern`` and ``description`` (``*`` stands for anything)."""
        return self._call(context, 'find_blacklists', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def get_blacklist(self, context: Context, blacklist_id: str) -> Blacklist:
        return self._call(context, 'get_blacklist', blacklist_id=blacklist_id)

    def update_blacklist(self, context: Context, blacklist_id: str, values: Mapping[str, Any]) -> Blacklist:
        """Change what :meth:`create_blacklist` takes; zones that there are stay."""
        return self._call(context, 'update_blacklist', blacklist_id=blacklist_id, values=dict(values))

    def delete_blacklist(self, context: Context, blacklist_id: str) -> None:
        self._call(context, 'delete_blacklist', blacklist_id=blacklist_id)

    def get_quotas(self, context: Context, project_id: str) -> dict[str, int]:
        """A project's quotas, -1 for no limit: ``zones``, ``zone_recordsets``, ``zone_records``,
        ``recordset_records``, ``api_export_size``.

        :param project_id: '' for requests without a project
        :raises Forbidden: when it is not the project of *context*, which does not see all projects; also for the
            methods below
        """
        return self._call(context, 'get_quotas', project_id=project_id)

    def set_quotas(self, context: Context, project_id: str, values: Mapping[str, int]) -> dict[str, int]:
        """Change some of a project's quotas.

        :returns: all its quotas after the change
        """
        return self._call(context, 'set_quotas', project_id=project_id, values=dict(values))

    def reset_quotas(self, context: Context, project_id: str) -> None:
        """Reset a project's quotas to those in the configuration."""
        self._call(context, 'reset_quotas', project_id=project_id)

    def find_service_statuses(self, context: Context, criterion: Mapping[str, Any] | None = None,
                              marker: str | None = None, limit: int | None = None, sort_key: str | None = None,
                              sort_dir: str | None = None) -> list[ServiceStatus]:
        """The statuses of services that match *criterion*.

        :param criterion: ``service_name``, ``hostname`` (``*`` matches any text), ``status``
        """
        return self._call(context, 'find_service_statuses', criterion=dict(criterion or {}), marker=marker,
                          limit=limit, sort_key=sort_key, sort_dir=sort_dir)

    def get_service_status(self, context: Context, service_id: str) -> ServiceStatus:
        return self._call(context, 'get_service_status', service_id=service_id)
