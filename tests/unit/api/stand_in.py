"""A small Central and pool manager in memory, for testing the API and the command alone.

Central keeps domains, recordsets and servers, and remembers who asked; the pool manager says what it is told to say.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from designate_pool.errors import (DomainNotFound, DuplicateDomain, InvalidField, PlanNotFound, PoolError,
                                   RecordSetNotFound, SerialMoved, ServerNotFound, WrongPlanState, WrongServerState)
from designate_pool.model import (Action, Comparison, Context, Domain, Outcome, PlanState, Pool, PoolServer, Record,
                                  RecordChange, RecordSet, Reloaded, Server, ServerReport, ServerState, ServerStatus,
                                  Status, StoredPlan, new_id, utcnow)
from tests.unit.api.stand_in_kept import POOL_ID, Kept

SERVER_IDS = tuple(f'{digit * 32}' for digit in '123')
POOL = Pool(name='default', threshold_percentage=66, published_at=datetime(2026, 5, 1, 11, tzinfo=timezone.utc),
            servers=tuple(Server(id=each, driver='fake', host=f'192.0.2.{number}')
                          for number, each in enumerate(SERVER_IDS, 1)))
SERVERS = tuple(PoolServer(each.id, POOL_ID, each.label, each.driver, ServerState.ACTIVE,
                           state_since=datetime(2026, 5, 1, 11, 48, tzinfo=timezone.utc))
                for each in POOL.servers)
FIRST_SERIAL = 1_700_000_000


class StandIn(Kept):
    """Has the methods of :class:`designate_pool.rpc.central.CentralClient` that the API calls.

    :ivar steps: what happens in the pool, one step each time that somebody asks for a domain's rows or for one server
    :ivar reports: how it goes with each server, by id
    :ivar changes: what came as changes of zones
    """

    def __init__(self) -> None:
        super().__init__()
        self.domains: dict[str, Domain] = {}
        self.recordsets: dict[str, RecordSet] = {}
        self.rows: dict[str, list[ServerStatus]] = {}
        self.changes: list[list[RecordChange]] = []
        self.plans: dict[str, StoredPlan] = {}
        self.reports = {each.id: ServerReport(each) for each in SERVERS}
        self.contexts: list[Context] = []
        self.fault: Exception | None = None
        self.steps: list[Callable[[], object]] = []

    def _enter(self, context: Context) -> None:
        self.contexts.append(context)
        if self.fault is not None:
            raise self.fault

    def create_domain(self, context: Context, domain: Mapping[str, Any],
                      recordsets: Sequence[Mapping[str, Any]] = ()) -> Domain:
        self._enter(context)
        values = {'ttl': 3600, 'pool_id': POOL_ID, **domain}
        if not values['name'].endswith('.'):
            raise InvalidField(field='name', why='must end with a dot')
        if any(each.name == values['name'] for each in self.domains.values()):
            raise DuplicateDomain(domain=values['name'])
        made = Domain(id=new_id(), pool_name=POOL.name, serial=FIRST_SERIAL + len(self.domains),
                      project_id=context.project_id, created_at=utcnow(), **values)
        self.domains[made.id] = made
        self.rows[made.id] = []
        for each in recordsets:
            self._put_recordset(made.id, each)
        return made

    def get_domain(self, context: Context, domain_id: str) -> Domain:
        self._enter(context)
        if domain_id not in self.domains:
            raise DomainNotFound(domain=domain_id)
        return self.domains[domain_id]

    def find_domains(self, context: Context, **wanted: Any) -> list[Domain]:
        self._enter(context)
        return _select(list(self.domains.values()), **wanted)

    def update_domain(self, context: Context, domain_id: str, values: Mapping[str, Any]) -> Domain:
        return self._raise_serial(self.get_domain(context, domain_id), **values)

    def delete_domain(self, context: Context, domain_id: str) -> Domain:
        found = self.get_domain(context, domain_id)
        self.domains[domain_id] = dataclasses.replace(found, action=Action.DELETE, status=Status.PENDING)
        return self.domains[domain_id]

    def create_recordset(self, context: Context, domain_id: str, recordset: Mapping[str, Any]) -> RecordSet:
        self._raise_serial(self.get_domain(context, domain_id))
        return self._put_recordset(domain_id, recordset)

    def _put_recordset(self, domain_id: str, recordset: Mapping[str, Any]) -> RecordSet:
        values = dict(recordset)
        records = tuple(Record(data=data) for data in values.pop('records'))
        made = RecordSet(id=new_id(), domain_id=domain_id, records=records, created_at=utcnow(), **values)
        self.recordsets[made.id] = made
        return made

    def get_recordset(self, context: Context, domain_id: str, recordset_id: str) -> RecordSet:
        self.get_domain(context, domain_id)
        found = self.recordsets.get(recordset_id)
        if found is None or found.domain_id != domain_id:
            raise RecordSetNotFound(recordset=recordset_id)
        return found

    def find_recordsets(self, context: Context, domain_id: str, **wanted: Any) -> list[RecordSet]:
        self._enter(context)
        return _select([each for each in self.recordsets.values() if each.domain_id == domain_id], **wanted)

    def update_recordset(self, context: Context, domain_id: str, recordset_id: str,
                         values: Mapping[str, Any]) -> RecordSet:
        found = self.get_recordset(context, domain_id, recordset_id)
        changes = dict(values)
        if 'records' in changes:
            changes['records'] = tuple(Record(data=data) for data in changes['records'])
        self._raise_serial(self.domains[domain_id])
        self.recordsets[recordset_id] = dataclasses.replace(found, **changes)
        return self.recordsets[recordset_id]

    def delete_recordset(self, context: Context, domain_id: str, recordset_id: str) -> RecordSet:
        found = self.get_recordset(context, domain_id, recordset_id)
        self._raise_serial(self.domains[domain_id])
        return self.recordsets.pop(found.id)

    def apply_changes(self, context: Context, domain_id: str, changes: Sequence[RecordChange],
                      serial: int | None = None) -> Domain:
        domain = self.get_domain(context, domain_id)
        if serial not in (None, domain.serial):
            raise SerialMoved(domain=domain.name, found=domain.serial, wanted=serial)
        self.changes.append(list(changes))
        return self._raise_serial(domain)

    def put_plan(self, context: Context, plan: StoredPlan) -> StoredPlan:
        self._enter(context)
        self.plans[plan.id] = dataclasses.replace(plan, pool_name=plan.pool_name or POOL.name, created_at=utcnow())
        return self.plans[plan.id]

    def find_plans(self, context: Context, criterion: Mapping[str, Any], marker: str | None = None,
                   limit: int = 1000, sort_key: str | None = None, sort_dir: str | None = None) -> list[StoredPlan]:
        self._enter(context)
        found = [dataclasses.replace(each, document='') for each in self.plans.values()]
        return _select(found, criterion, marker, limit, sort_key, sort_dir)

    def get_plan(self, context: Context, plan_id: str) -> StoredPlan:
        self._enter(context)
        found = [each for each in self.plans.values() if each.id.startswith(plan_id)]
        if not found:
            raise PlanNotFound(plan=plan_id)
        return found[0]

    def approve_plan(self, context: Context, plan_id: str) -> StoredPlan:
        plan = self.get_plan(context, plan_id)
        if plan.state is not PlanState.PARKED:
            raise WrongPlanState(plan=plan.id, state=plan.state, why='only a parked plan can be approved')
        return self._settle_plan(plan, PlanState.APPROVED, plan.why)

    def drop_plan(self, context: Context, plan_id: str) -> StoredPlan:
        return self._settle_plan(self.get_plan(context, plan_id), PlanState.DROPPED, 'dropped by command')

    def settle_plan(self, context: Context, plan_id: str, state: PlanState, why: str | None = None) -> StoredPlan:
        return self._settle_plan(self.get_plan(context, plan_id), state, why)

    def _settle_plan(self, plan: StoredPlan, state: PlanState, why: str | None) -> StoredPlan:
        self.plans[plan.id] = dataclasses.replace(plan, state=state, why=why)
        return self.plans[plan.id]

    def get_quotas(self, context: Context, project_id: str) -> dict[str, int]:
        self._enter(context)
        return {'zones': 10, 'zone_recordsets': 500, 'zone_records': -1, 'recordset_records': 20, 'api_export_size': -1}

    def import_zone(self, context: Context, text: str) -> Domain:
        self._enter(context)
        if '$ORIGIN' not in text:
            raise InvalidField(field='zone file', why='line 1: there is no $ORIGIN')
        return self.create_domain(context, {'name': text.split()[1], 'email': 'hostmaster@example.com'})

    def look_for_imports(self, context: Context) -> None:
        self._enter(context)

    def check_export(self, context: Context, domain_id: str) -> Domain:
        return self.get_domain(context, domain_id)

    def server_statuses(self, context: Context, domain_id: str) -> list[ServerStatus]:
        self._enter(context)
        if self.steps:
            self.steps.pop(0)()
        return self.rows.get(domain_id, [])

    def find_servers(self, context: Context, pool_name: str) -> list[PoolServer]:
        self._enter(context)
        return [each.server for each in self.reports.values()] if pool_name == POOL.name else []

    def report_servers(self, context: Context, pool_name: str) -> list[ServerReport]:
        self._enter(context)
        assert pool_name == POOL.name
        return list(self.reports.values())

    def report_server(self, context: Context, server_id: str) -> ServerReport:
        self._enter(context)
        if self.steps:
            self.steps.pop(0)()
        if server_id not in self.reports:
            raise ServerNotFound(server=server_id)
        return self.reports[server_id]

    def rest_server(self, context: Context, server_id: str) -> PoolServer:
        return self._command(context, server_id, ServerState.MAINTENANCE)

    def resume_server(self, context: Context, server_id: str) -> PoolServer:
        return self._command(context, server_id, ServerState.ACTIVE)

    def drain_server(self, context: Context, server_id: str, delete_zones: bool = False) -> PoolServer:
        return self._command(context, server_id, ServerState.DRAINING, dismissed=True, delete_zones=delete_zones)

    def _command(self, context: Context, server_id: str, state: ServerState, **values: Any) -> PoolServer:
        self._enter(context)
        if server_id not in self.reports:
            raise ServerNotFound(server=server_id)
        server = self.reports[server_id].server
        if server.state is ServerState.REMOVED:
            raise WrongServerState(server=server.label, state=server.state, why='it is gone')
        return self.put(server_id, state, **values)

    def _raise_serial(self, domain: Domain, **values: Any) -> Domain:
        self.domains[domain.id] = dataclasses.replace(domain, serial=domain.serial + 1, action=Action.UPDATE,
                                                      status=Status.PENDING, **values)
        return self.domains[domain.id]

    # What the rest of the system would do.

    def put(self, server_id: str, state: ServerState, **values: Any) -> PoolServer:
        """Have a server in *state*, and in its report what *values* of it say."""
        report = self.reports[server_id]
        told = {name: values.pop(name) for name in list(values) if hasattr(report, name)}
        server = dataclasses.replace(report.server, state=state, **values)
        self.reports[server_id] = dataclasses.replace(report, server=server, **told)
        return server

    def row(self, domain_id: str, server: int, action: Action, status: Outcome | None = None,
            serial: int | None = None, **values: Any) -> None:
        """Write a row for the *server*-th server of the pool."""
        values.setdefault('expected_serial', self.domains[domain_id].serial)
        self.rows[domain_id].append(ServerStatus(SERVER_IDS[server], domain_id, action, status=status,
                                                 serial_number=serial, **values))

    def settle(self, domain_id: str) -> None:
        """All servers have what is due."""
        found = self.domains[domain_id]
        if found.action is Action.DELETE:
            del self.domains[domain_id]
            return
        self.rows[domain_id] = []
        for server in range(len(SERVER_IDS)):
            self.row(domain_id, server, Action.UPDATE, Outcome.SUCCESS, found.serial)
        self.domains[domain_id] = dataclasses.replace(found, action=Action.NONE, status=Status.ACTIVE,
                                                      reported_serial=found.serial)

    def fail(self, domain_id: str, why: str) -> None:
        """All servers refuse what is due."""
        found = self.domains[domain_id]
        for server in range(len(SERVER_IDS)):
            self.row(domain_id, server, Action.UPDATE, Outcome.ERROR, found.serial - 1, last_error=why, attempts=4)
        self.domains[domain_id] = dataclasses.replace(found, status=Status.ERROR)


class StandInPoolManager:
    """Has the methods of :class:`designate_pool.rpc.pool_manager.PoolManagerClient` that the API calls.

    :ivar comparison: what it says of any server
    :ivar asked: what it was asked, without who asked
    """

    def __init__(self) -> None:
        self.comparison = Comparison(SERVER_IDS[0], total=3, extra=())
        self.reloaded = Reloaded()
        self.fault: Exception | None = None
        self.asked: list[tuple[Any, ...]] = []

    def reload_servers(self, context: Context, pool_name: str) -> Reloaded:
        self.asked.append((pool_name,))
        if self.fault is not None:
            raise self.fault
        return self.reloaded

    def compare_server(self, context: Context, pool_name: str, server_id: str, fix: bool = False,
                       delete_extra: int | None = None, contents: bool = False) -> Comparison:
        self.asked.append((pool_name, server_id, fix, delete_extra, contents))
        if self.fault is not None:
            raise self.fault
        lacking = len(self.comparison.missing) + len(self.comparison.behind) + len(self.comparison.other or ())
        return dataclasses.replace(self.comparison, server_id=server_id, mending=lacking if fix else 0,
                                   deleted=delete_extra or 0)


class Failing(PoolError):
    """It failed."""


def _select(items: list[Any], criterion: Mapping[str, Any], marker: str | None, limit: int, sort_key: str | None,
            sort_dir: str | None) -> list[Any]:
    found = [item for item in items
             if all(fnmatch.fnmatchcase(str(getattr(item, name)), str(value)) for name, value in criterion.items())]
    if sort_key is not None:
        found.sort(key=lambda item: getattr(item, sort_key), reverse=sort_dir == 'desc')
    ids = [item.id for item in found]
    start = ids.index(marker) + 1 if marker in ids else 0
    return found[start:start + limit]
