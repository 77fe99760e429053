"""A small Central and pool manager in memory, for testing the API and the command alone.

Central keeps domains, recordsets and servers, and remembers who asked; the pool manager says what it is told to say.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from designate_pool.central.validation import masters
from designate_pool.errors import (DomainBeingDeleted, DomainNotFound, DuplicateDomain, DuplicateRecordSet,
                                   InvalidField, PlanNotFound, PoolError, PoolNotFound, RecordSetNotFound, SerialMoved,
                                   ServerNotFound, WrongPlanState, WrongServerState)
from designate_pool.model import (Action, Comparison, Context, Domain, Outcome, PageRequest, PlanState, Pool,
                                  PoolServer, Record, RecordChange, RecordSet, Reloaded, Server, ServerReport,
                                  ServerState, ServerStatus, Status, StoredPlan, Task, new_id, utcnow)
from tests.unit.api.stand_in_kept import BEGAN, POOL_ID, Kept, select

SERVER_IDS = tuple(f'{digit * 32}' for digit in '123')
POOL = Pool(name='default', threshold_percentage=66, published_at=datetime(2026, 5, 1, 11, tzinfo=timezone.utc),
            servers=tuple(Server(id=each, driver='fake', host=f'192.0.2.{number}')
                          for number, each in enumerate(SERVER_IDS, 1)))
SERVERS = tuple(PoolServer(each.id, POOL_ID, each.label, each.driver, ServerState.ACTIVE,
                           state_since=BEGAN, created_at=BEGAN, updated_at=BEGAN)
                for each in POOL.servers)
FIRST_SERIAL = 1_700_000_000


class StandIn(Kept):
    """Has the methods of :class:`designate_pool.central.service.Central` that the API calls.

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
        values = {'ttl': 3600, 'pool_id': POOL_ID, **_parsed(domain)}
        if not values['name'].endswith('.'):
            raise InvalidField(field='name', why='must end with a dot')
        if 'email' not in values:
            raise InvalidField(field='email', why='missing')
        if values['pool_id'] != POOL_ID:
            raise PoolNotFound(pool=values['pool_id'])
        if any(each.name == values['name'] for each in self.domains.values()):
            raise DuplicateDomain(domain=values['name'])
        now = utcnow()
        made = Domain(id=new_id(), pool_name=POOL.name, serial=FIRST_SERIAL + len(self.domains),
                      project_id=context.project_id, created_at=now, updated_at=now, changed_at=now, **values)
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

    def find_domains(self, context: Context, page: PageRequest = PageRequest()) -> list[Domain]:
        self._enter(context)
        return select(list(self.domains.values()), page)

    def update_domain(self, context: Context, domain_id: str, values: Mapping[str, Any]) -> Domain:
        return self._raise_serial(self.get_domain(context, domain_id), **_parsed(values))

    def delete_domain(self, context: Context, domain_id: str, delete_shares: bool = False) -> Domain:
        found = self.get_domain(context, domain_id)
        self.domains[domain_id] = dataclasses.replace(found, action=Action.DELETE, status=Status.PENDING,
                                                      deleted_at=found.deleted_at or utcnow())
        return self.domains[domain_id]

    def create_recordset(self, context: Context, domain_id: str, recordset: Mapping[str, Any]) -> RecordSet:
        domain = self.get_domain(context, domain_id)
        if any((each.domain_id, each.name, each.type) == (domain_id, recordset['name'], recordset['type'])
               for each in self.recordsets.values()):
            raise DuplicateRecordSet(name=recordset['name'], rtype=recordset['type'])
        self._raise_serial(domain)
        return self._put_recordset(domain_id, recordset)

    def _put_recordset(self, domain_id: str, recordset: Mapping[str, Any]) -> RecordSet:
        values = dict(recordset)
        now = utcnow()
        made = RecordSet(id=new_id(), domain_id=domain_id, records=_records(values.pop('records')), created_at=now,
                         updated_at=now, **values)
        self.recordsets[made.id] = made
        return made

    def get_recordset(self, context: Context, domain_id: str, recordset_id: str) -> RecordSet:
        self.get_domain(context, domain_id)
        found = self.recordsets.get(recordset_id)
        if found is None or found.domain_id != domain_id:
            raise RecordSetNotFound(recordset=recordset_id)
        return found

    def find_recordsets(self, context: Context, domain_id: str, page: PageRequest = PageRequest()) -> list[RecordSet]:
        self.get_domain(context, domain_id)
        found = [each for each in self.recordsets.values() if each.domain_id == domain_id]
        return select(found, page)

    def update_recordset(self, context: Context, domain_id: str, recordset_id: str,
                         values: Mapping[str, Any]) -> RecordSet:
        found = self.get_recordset(context, domain_id, recordset_id)
        changes = dict(values)
        if 'records' in changes:
            changes['records'] = _records(changes['records'])
        self._raise_serial(self.domains[domain_id])
        self.recordsets[recordset_id] = dataclasses.replace(found, **changes)
        return self.recordsets[recordset_id]

    def delete_recordset(self, context: Context, domain_id: str, recordset_id: str) -> RecordSet:
        found = self.get_recordset(context, domain_id, recordset_id)
        self._raise_serial(self.domains[domain_id])
        del self.recordsets[found.id]
        return dataclasses.replace(found, records=tuple(dataclasses.replace(each, task=Task.DELETE)
                                                        for each in found.records))

    def apply_changes(self, context: Context, domain_id: str, changes: Sequence[RecordChange],
                      serial: int | None = None) -> Domain:
        domain = self.get_domain(context, domain_id)
        if serial not in (None, domain.serial):
            raise SerialMoved(domain=domain.name, found=domain.serial, wanted=serial)
        self.changes.append(list(changes))
        return self._raise_serial(domain)

    def put_plan(self, context: Context, plan: StoredPlan) -> StoredPlan:
        self._enter(context)
        now = utcnow()
        self.plans[plan.id] = dataclasses.replace(
            plan, pool_name=plan.pool_name or POOL.name, created_at=now, updated_at=now,
            expires_at=plan.expires_at or now + timedelta(days=7))
        return self.plans[plan.id]

    def find_plans(self, context: Context, page: PageRequest = PageRequest()) -> list[StoredPlan]:
        self._enter(context)
        found = [dataclasses.replace(each, document='') for each in reversed(self.plans.values())]
        return select(found, page)

    def get_plan(self, context: Context, plan_id: str) -> StoredPlan:
        self._enter(context)
        found = [each for each in self.plans.values() if each.id.startswith(plan_id)]
        if not found:
            raise PlanNotFound(plan=plan_id)
        return found[0]

    def approve_plan(self, context: Context, plan_id: str) -> StoredPlan:
        plan = self.get_plan(context, plan_id)
        if plan.state not in (PlanState.PARKED, PlanState.APPROVED):
            raise WrongPlanState(plan=plan.id, state=plan.state, why='only a parked plan can be approved')
        return self._settle_plan(plan, PlanState.APPROVED, plan.why)

    def drop_plan(self, context: Context, plan_id: str) -> StoredPlan:
        plan = self.get_plan(context, plan_id)
        if plan.state in (PlanState.APPLIED, PlanState.FAILED):
            raise WrongPlanState(plan=plan.id, state=plan.state, why='it was applied already')
        return self._settle_plan(plan, PlanState.DROPPED, 'dropped by command')

    def settle_plan(self, context: Context, plan_id: str, state: PlanState, why: str | None = None) -> StoredPlan:
        plan = self.get_plan(context, plan_id)
        if plan.domain_id is not None:
            raise WrongPlanState(plan=plan.id, state=plan.state, why='its pool manager records how it ends')
        if plan.state not in (PlanState.STORED, PlanState.FAILED, state):
            raise WrongPlanState(plan=plan.id, state=plan.state, why=f'it cannot become {state}')
        return self._settle_plan(plan, state, why)

    def _settle_plan(self, plan: StoredPlan, state: PlanState, why: str | None) -> StoredPlan:
        applied = state in (PlanState.APPLIED, PlanState.FAILED)
        self.plans[plan.id] = dataclasses.replace(plan, state=state, why=why, updated_at=utcnow(),
                                                  applied_at=utcnow() if applied else plan.applied_at)
        return self.plans[plan.id]

    def announce_import(self, context: Context) -> None:
        self._enter(context)

    def check_export(self, context: Context, domain_id: str) -> Domain:
        return self.get_domain(context, domain_id)

    def server_statuses(self, context: Context, domain_id: str) -> list[ServerStatus]:
        self._enter(context)
        if self.steps:
            self.steps.pop(0)()
        if domain_id not in self.domains:
            raise DomainNotFound(domain=domain_id)
        return self.rows[domain_id]

    def find_servers(self, context: Context, pool_name: str) -> list[PoolServer]:
        return [each.server for each in self.report_servers(context, pool_name)]

    def report_servers(self, context: Context, pool_name: str) -> list[ServerReport]:
        self._enter(context)
        if pool_name != POOL.name:
            raise PoolNotFound(pool=pool_name)
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
        if server.state is ServerState.REMOVED or (server.state, state) == (ServerState.DRAINING,
                                                                            ServerState.MAINTENANCE):
            raise WrongServerState(server=server.label, state=server.state, why='it is being removed')
        return self.put(server_id, state, **values)

    def _raise_serial(self, domain: Domain, **values: Any) -> Domain:
        if domain.action is Action.DELETE:
            raise DomainBeingDeleted(domain=domain.name)
        action = Action.CREATE if domain.action is Action.CREATE else Action.UPDATE
        now = utcnow()
        self.domains[domain.id] = dataclasses.replace(domain, serial=domain.serial + 1, action=action,
                                                      status=Status.PENDING, updated_at=now, changed_at=now, **values)
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
                       delete_extra: int | None = None, contents: bool = False,
                       primary: bool = False) -> Comparison:
        self.asked.append((pool_name, server_id, fix, delete_extra, contents))
        if self.fault is not None:
            raise self.fault
        lacking = len(self.comparison.missing) + len(self.comparison.behind) + len(self.comparison.other or ())
        return dataclasses.replace(self.comparison, server_id=server_id, mending=lacking if fix else 0,
                                   deleted=delete_extra or 0)


def _records(texts: Sequence[str]) -> tuple[Record, ...]:
    return tuple(Record(data=data, id=new_id()) for data in texts)


class Failing(PoolError):
    """It failed."""


def _parsed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a domain with the masters as they are stored."""
    return {**values, 'masters': masters.parse('masters', values['masters'])} if values.get('masters') else {
        key: value for key, value in values.items() if key != 'masters'}
