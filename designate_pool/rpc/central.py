"""The contract of the service ``central``, version 1.0, and its client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from designate_pool.model import (Context, Domain, Outcome, PlanState, Pool, PoolServer, RecordChange, RecordSet,
                                  Report, ServerReport, ServerStatus, ServiceStatus, StoredPlan, StoredTsigKey, Tld)
from designate_pool.rpc.client import RpcClient

TOPIC = 'central'
VERSION = '1.0'
#: Seconds for what handles a whole zone: a hundred thousand records take half a minute on a busy machine.
LONG = 600.0


class CentralClient:
    """Calls to Central; each raises the errors named in :mod:`designate_pool.errors`."""

    def __init__(self, caller: RpcClient) -> None:
        self._caller = caller

    def _call(self, context: Context, method: str, **arguments: Any) -> Any:
        return self._caller.call(TOPIC, context, method, **arguments)

    def create_domain(self, context: Context, domain: Mapping[str, Any],
                      recordsets: Sequence[Mapping[str, Any]] = ()) -> Domain:
        """Create a domain, with recordsets if wanted, in one transaction and at one serial.

        :param domain: ``name`` and ``email``; optional ``ttl``, ``description``, ``pool_name`` or ``pool_id``
        :param recordsets: mappings with ``name``, ``type``, ``records`` (texts), optional ``ttl``, ``description``
        """
        return self._caller.call(TOPIC, context, 'create_domain', patience=LONG if recordsets else None,
                                 domain=dict(domain), recordsets=[dict(each) for each in recordsets])

    def get_domain(self, context: Context, domain_id: str) -> Domain:
        return self._call(context, 'get_domain', domain_id=domain_id)

    def find_domains(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                     limit: int | None = None, sort_key: str | None = None,
                     sort_dir: str | None = None) -> list[Domain]:
        """Domains that match: ``name`` (``*`` stands for anything), ``email`` and ``description`` likewise, ``status``,
        ``pool_id``, ``ttl``, ``type``.
        """
        return self._call(context, 'find_domains', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def update_domain(self, context: Context, domain_id: str, values: Mapping[str, Any]) -> Domain:
        """Change ``email``, ``ttl`` or ``description``."""
        return self._call(context, 'update_domain', domain_id=domain_id, values=dict(values))

    def give_domain(self, context: Context, domain_id: str, project_id: str) -> Domain:
        """Have a domain be another project's.

        :raises NameTaken: when it lies above or below one of yet another project's, unless the asker may have that
        :raises OverQuota: when that project may not have one more
        """
        return self._call(context, 'give_domain', domain_id=domain_id, project_id=project_id)

    def delete_domain(self, context: Context, domain_id: str) -> Domain:
        return self._call(context, 'delete_domain', domain_id=domain_id)

    def create_recordset(self, context: Context, domain_id: str, recordset: Mapping[str, Any]) -> RecordSet:
        return self._call(context, 'create_recordset', domain_id=domain_id, recordset=dict(recordset))

    def get_recordset(self, context: Context, domain_id: str, recordset_id: str) -> RecordSet:
        return self._call(context, 'get_recordset', domain_id=domain_id, recordset_id=recordset_id)

    def find_recordsets(self, context: Context, domain_id: str, criterion: Mapping[str, Any] | None = None,
                        marker: str | None = None, limit: int | None = None, sort_key: str | None = None,
                        sort_dir: str | None = None) -> list[RecordSet]:
        """Recordsets of a domain that match: ``name`` (``*`` stands for anything), ``data`` and ``description``
        likewise, ``type``, ``status``, ``ttl``.
        """
        return self._call(context, 'find_recordsets', domain_id=domain_id, criterion=dict(criterion or {}),
                          marker=marker, limit=limit, sort_key=sort_key, sort_dir=sort_dir)

    def find_all_recordsets(self, context: Context, criterion: Mapping[str, Any] | None = None,
                            marker: str | None = None, limit: int | None = None, sort_key: str | None = None,
                            sort_dir: str | None = None) -> list[tuple[Domain, RecordSet]]:
        """As :meth:`find_recordsets`, of all domains that the asker sees, each with its domain."""
        return self._call(context, 'find_all_recordsets', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def update_recordset(self, context: Context, domain_id: str, recordset_id: str,
                         values: Mapping[str, Any]) -> RecordSet:
        """Change ``records`` (texts, the whole new set), ``ttl`` or ``description``."""
        return self._call(context, 'update_recordset', domain_id=domain_id, recordset_id=recordset_id,
                          values=dict(values))

    def delete_recordset(self, context: Context, domain_id: str, recordset_id: str) -> RecordSet:
        return self._call(context, 'delete_recordset', domain_id=domain_id, recordset_id=recordset_id)

    def apply_changes(self, context: Context, domain_id: str, changes: Sequence[RecordChange],
                      serial: int | None = None) -> Domain:
        """Make many record changes in one transaction and at one serial.

        :param serial: the domain's when it was read
        :raises SerialMoved: when it has another one by now; nothing is changed then
        :raises RecordSetNotFound: when a recordset that is to go is not there
        """
        return self._caller.call(TOPIC, context, 'apply_changes', patience=LONG, domain_id=domain_id,
                                 changes=list(changes), serial=serial)

    def import_zone(self, context: Context, text: str, pool_name: str | None = None) -> Domain:
        """Create a domain from a whole zone file (RFC 1035 section 5), in one message; tasks take larger ones."""
        return self._caller.call(TOPIC, context, 'import_zone', patience=LONG, text=text, pool_name=pool_name)

    def export_zone(self, context: Context, domain_id: str) -> str:
        """The domain as a zone file, in one message; tasks take larger ones."""
        return self._caller.call(TOPIC, context, 'export_zone', patience=LONG, domain_id=domain_id)

    def look_for_imports(self, context: Context) -> None:
        """Have a Central look at once for imports that wait; without it they wait a few seconds more.

        :raises ServiceUnavailable: when it could not even be sent
        """
        self._caller.cast(TOPIC, context, 'look_for_imports')

    def check_export(self, context: Context, domain_id: str) -> Domain:
        """The domain, which may be exported.

        :raises OverQuota: when the domain is larger than what its project may export
        """
        return self._call(context, 'check_export', domain_id=domain_id)

    def server_statuses(self, context: Context, domain_id: str) -> list[ServerStatus]:
        """The rows of pool_manager_status for a domain."""
        return self._call(context, 'server_statuses', domain_id=domain_id)

    def create_pool(self, context: Context, pool: Mapping[str, Any]) -> Pool:
        return self._call(context, 'create_pool', pool=dict(pool))

    def find_pools(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                   limit: int | None = None, sort_key: str | None = None,
                   sort_dir: str | None = None) -> list[Pool]:
        return self._call(context, 'find_pools', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def get_pool(self, context: Context, pool_id: str) -> Pool:
        return self._call(context, 'get_pool', pool_id=pool_id)

    def update_pool(self, context: Context, pool: Mapping[str, Any]) -> Pool:
        """Change a pool (``id`` and what changes); new name servers give every domain of it a new serial."""
        return self._caller.call(TOPIC, context, 'update_pool', patience=LONG, pool=dict(pool))

    def delete_pool(self, context: Context, pool_id: str) -> None:
        self._call(context, 'delete_pool', pool_id=pool_id)

    def find_servers(self, context: Context, pool_name: str) -> list[PoolServer]:
        """The servers of a pool, in the order of the configuration, the removed ones too."""
        return self._call(context, 'find_servers', pool_name=pool_name)

    def report_servers(self, context: Context, pool_name: str) -> list[ServerReport]:
        """How it goes with each server of a pool."""
        return self._call(context, 'report_servers', pool_name=pool_name)

    def report_server(self, context: Context, server_id: str) -> ServerReport:
        """How it goes with one server, with all its rows counted and some of the failures that the asker may see."""
        return self._call(context, 'report_server', server_id=server_id)

    def rest_server(self, context: Context, server_id: str) -> PoolServer:
        """Put a server into maintenance: nothing more is sent to it, and it does not count.

        :raises WrongServerState: when it drains or is removed
        """
        return self._call(context, 'rest_server', server_id=server_id)

    def resume_server(self, context: Context, server_id: str) -> PoolServer:
        """Take a server out of maintenance, all that it missed being due then; have one that joins count as it is; have
        one that was drained by command join again.
        """
        return self._call(context, 'resume_server', server_id=server_id)

    def drain_server(self, context: Context, server_id: str, delete_zones: bool = False) -> PoolServer:
        """Take a server out of its pool, and keep it out though its section is still there.

        :param delete_zones: delete its zones there, if it answers
        """
        return self._call(context, 'drain_server', server_id=server_id, delete_zones=delete_zones)

    def put_plan(self, context: Context, plan: StoredPlan) -> StoredPlan:
        """Keep an operator's plan, to be applied or not."""
        return self._call(context, 'put_plan', plan=plan)

    def find_plans(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                   limit: int | None = None, sort_key: str | None = None,
                   sort_dir: str | None = None) -> list[StoredPlan]:
        """Plans that match, without their documents, the newest first: ``state`` (one, or several with commas),
        ``zone`` (``*`` stands for anything), ``domain_id``, ``server_id``, ``pool_name``.

        Of plans of domains, those of the domains that the asker sees; plans of operators, which may be about any
        zone, only where the asker sees all projects.
        """
        return self._call(context, 'find_plans', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def get_plan(self, context: Context, plan_id: str) -> StoredPlan:
        """
        :param plan_id: or its first digits, four at least; for the methods below too
        """
        return self._call(context, 'get_plan', plan_id=plan_id)

    def approve_plan(self, context: Context, plan_id: str) -> StoredPlan:
        """Have a parked plan applied by its pool manager.

        :raises WrongPlanState: when it is not parked, or has expired
        """
        return self._call(context, 'approve_plan', plan_id=plan_id)

    def drop_plan(self, context: Context, plan_id: str) -> StoredPlan:
        """Have a plan not applied.

        :raises WrongPlanState: when it was applied already
        """
        return self._call(context, 'drop_plan', plan_id=plan_id)

    def settle_plan(self, context: Context, plan_id: str, state: PlanState, why: str | None = None) -> StoredPlan:
        """Tell what became of an operator's plan: APPLIED, FAILED or DROPPED.

        :raises WrongPlanState: when that was told already, or it is a pool manager's
        """
        return self._call(context, 'settle_plan', plan_id=plan_id, state=state, why=why)

    def update_status(self, context: Context, domain: Domain, status: Outcome, serial_number: int) -> None:
        """Tell what the pool agrees on for one domain."""
        self._call(context, 'update_status', domain=domain, status=status, serial_number=serial_number)

    def update_statuses(self, context: Context, reports: Sequence[Report]) -> None:
        """:meth:`update_status` for many domains in one message and one transaction."""
        self._call(context, 'update_statuses', reports=list(reports))

    def outrun_serial(self, context: Context, domain_id: str, serial: int) -> Domain:
        """Give the domain a serial above one that a server serves and that was never issued.

        :param serial: what the server serves; nothing is done where the domain's own is as new by now, or it is going
        """
        return self._call(context, 'outrun_serial', domain_id=domain_id, serial=serial)

    def create_tsigkey(self, context: Context, tsigkey: Mapping[str, Any]) -> StoredTsigKey:
        """Create a TSIG key that may transfer zones from MiniDNS: ``name``, ``algorithm``, ``secret`` (Base64),
        ``scope`` (POOL or ZONE), ``resource_id``.
        """
        return self._call(context, 'create_tsigkey', tsigkey=dict(tsigkey))

    def find_tsigkeys(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                      limit: int | None = None, sort_key: str | None = None,
                      sort_dir: str | None = None) -> list[StoredTsigKey]:
        """TSIG keys that match: ``name`` (``*`` stands for anything), ``algorithm``, ``scope``, ``resource_id``."""
        return self._call(context, 'find_tsigkeys', criterion=dict(criterion or {}), marker=marker, limit=limit,
                          sort_key=sort_key, sort_dir=sort_dir)

    def get_tsigkey(self, context: Context, tsigkey_id: str) -> StoredTsigKey:
        return self._call(context, 'get_tsigkey', tsigkey_id=tsigkey_id)

    def update_tsigkey(self, context: Context, tsigkey_id: str, values: Mapping[str, Any]) -> StoredTsigKey:
        """Change what :meth:`create_tsigkey` takes."""
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

    def get_quotas(self, context: Context, project_id: str) -> dict[str, int]:
        """What a project may have, -1 being without limit: ``zones``, ``zone_recordsets``, ``zone_records``,
        ``recordset_records``, ``api_export_size``.

        :param project_id: '' for nobody's, who asks without a project
        :raises Forbidden: when it is another project's than the asker's, without *all_projects*; below too
        """
        return self._call(context, 'get_quotas', project_id=project_id)

    def set_quotas(self, context: Context, project_id: str, values: Mapping[str, int]) -> dict[str, int]:
        """Change some of a project's quotas; all of them as they are then."""
        return self._call(context, 'set_quotas', project_id=project_id, values=dict(values))

    def reset_quotas(self, context: Context, project_id: str) -> None:
        """Let the configuration's quotas be the project's."""
        self._call(context, 'reset_quotas', project_id=project_id)

    def find_service_statuses(self, context: Context, criterion: Mapping[str, Any] | None = None,
                              marker: str | None = None, limit: int | None = None, sort_key: str | None = None,
                              sort_dir: str | None = None) -> list[ServiceStatus]:
        """Which services run where: ``service_name``, ``hostname`` (``*`` stands for anything), ``status``."""
        return self._call(context, 'find_service_statuses', criterion=dict(criterion or {}), marker=marker,
                          limit=limit, sort_key=sort_key, sort_dir=sort_dir)

    def get_service_status(self, context: Context, service_id: str) -> ServiceStatus:
        return self._call(context, 'get_service_status', service_id=service_id)
