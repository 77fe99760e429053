"""What stands in for Central answers as Central does: every operation is done on both, and what comes of it compared.

Compared are the classes of errors, and of answers the shape: the values that follow from what was given, and of the
others (ids, serials, times) whether there is one and of what kind.  Three things are known to differ, and no test of
the API may rest on them: the stand-in has no managed recordsets, nothing of it is another project's, and what it says
of a server is what a test has told it.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import pathlib
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from designate_pool.central.service import Central
from designate_pool.errors import PoolError
from designate_pool.model import Context, PageRequest, PlanState, RecordChange, StoredPlan, utcnow
from designate_pool.rpc.direct import Direct
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Inline
from designate_pool.storage.operations import heartbeats, pool_servers
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import plans, pools
from testing.databases import upgraded_sqlite
from testing.settings import central_settings
from tests.unit.api.stand_in import SERVERS, StandIn
from tests.unit.api.stand_in_kept import KEPT_POOL

WHO = Context(all_projects=True)
ABSENT = 'f' * 32
ZONE = {'name': 'example.com.', 'email': 'hostmaster@example.com'}
WWW = {'name': 'www.example.com.', 'type': 'A', 'records': ['192.0.2.1']}
KEY = {'name': 'key.example.', 'algorithm': 'hmac-sha256', 'secret': 'c2VjcmV0', 'scope': 'POOL'}
#: Of these it is compared only whether there is one.
NUMBERS = {'serial', 'reported_serial', 'serial_number', 'version', 'position', 'filled'}
#: Not told by the stand-in.
UNTOLD = {'request_id', 'journal_from', 'journal_to', 'journal_records', 'first_serial', 'generation', 'fingerprint',
          'filled_to', 'joined_at', 'note', 'catalog_epoch'}


class Quiet:
    """A pool manager that is told of changes, and does nothing."""

    def change(self, context: Context, domain: Any) -> None:
        pass

    create_domain = update_domain = delete_domain = change


class Both:
    """An operation's objects on one side.

    :ivar client: as the API has it
    """

    def __init__(self, client: Any, put_plan: Callable[[StoredPlan], object]) -> None:
        self.client = client
        self.pool_id = client.find_pools(WHO)[0].id
        self.zone = client.create_domain(WHO, ZONE)
        self.www = client.create_recordset(WHO, self.zone.id, WWW)
        self.key = client.create_tsigkey(WHO, {**KEY, 'resource_id': self.pool_id})
        self.service = client.find_service_statuses(WHO)[0]
        self.server = client.find_servers(WHO, 'default')[0]
        self.parked, self.stored = 'a' * 32, 'b' * 32
        put_plan(StoredPlan(self.parked, 'default', 'example.com.', self.server.label, PlanState.PARKED, self.zone.id,
                            self.server.id, document='{}'))
        client.put_plan(WHO, stored(self.stored))


def stored(plan_id: str) -> StoredPlan:
    return StoredPlan(plan_id, '', 'example.com.', 'bind', PlanState.STORED, document=json.dumps({'parts': []}),
                      creates=1)


@pytest.fixture
def central(tmp_path: pathlib.Path) -> Iterator[Both]:
    """Central itself, on SQLite."""
    storage = Storage(upgraded_sqlite(tmp_path / 'pool.sqlite'))
    caller = Direct(Inline().workers(1, 'casts'))
    service = Central(storage, PoolManagerClient(caller), Inline(), settings=central_settings())
    caller.serve('pool_manager.default', PoolManagerClient, Quiet())
    pool = service.find_pools(WHO)[0]
    service.update_pool(WHO, {'id': pool.id, 'name_servers': list(KEPT_POOL.name_servers)})
    storage.run(pools.publish, KEPT_POOL, utcnow())
    storage.run(pool_servers.register, 'default',
                [dataclasses.replace(each, pool_id='', fingerprint='f' * 64) for each in SERVERS], False, True,
                utcnow())
    for name, status in (('api', 'UP'), ('central', 'UP'), ('minidns', 'DOWN')):
        storage.run(heartbeats.say, name, 'one.example.com', '', status, {'version': '1.0'}, utcnow())
    yield Both(service, lambda plan: storage.run(plans.put, plan, utcnow()))
    storage.close()


@pytest.fixture
def stand_in() -> Both:
    made = StandIn()
    return Both(made, lambda plan: made.put_plan(WHO, plan))


def shape(value: Any, name: str = 'answer') -> Iterator[tuple[str, Any]]:
    """What is compared, by where it stands in the answer."""
    if dataclasses.is_dataclass(value):
        yield name, type(value).__name__
        for field in dataclasses.fields(value):
            if field.name not in UNTOLD:
                yield from shape(getattr(value, field.name), f'{name}.{field.name}')
    elif isinstance(value, tuple | list):
        yield name, type(value).__name__
        for number, each in enumerate(each for each in value if not getattr(each, 'managed', False)):
            yield from shape(each, f'{name}[{number}]')
    elif isinstance(value, datetime):
        yield name, 'a time' if value.tzinfo is not None else 'a time without a zone'
    elif isinstance(value, int) and name.rpartition('.')[2] in NUMBERS:
        yield name, 'a number'
    elif isinstance(value, dict):
        yield name, sorted(value)
    else:
        yield name, 'an id' if isinstance(value, str) and re.fullmatch('[0-9a-f]{32}', value) else value


def done(operation: Callable[[Both], Any], side: Both) -> dict[str, Any]:
    try:
        return dict(shape(operation(side)))
    except PoolError as error:
        return {type(error).__name__: sorted(error.kwargs)}


OPERATIONS: dict[str, Callable[[Both], Any]] = {
    'a zone is created': lambda its: its.client.create_domain(WHO, {**ZONE, 'name': 'example.net.', 'ttl': 60}),
    'with recordsets': lambda its: its.client.create_domain(
        WHO, {**ZONE, 'name': 'example.net.'}, [{**WWW, 'name': 'www.example.net.'}]),
    'a zone that is there': lambda its: its.client.create_domain(WHO, ZONE),
    'a name without its dot': lambda its: its.client.create_domain(WHO, {**ZONE, 'name': 'example.net'}),
    'a zone without an address': lambda its: its.client.create_domain(WHO, {'name': 'example.net.'}),
    'a zone of a pool that is not': lambda its: its.client.create_domain(
        WHO, {**ZONE, 'name': 'example.net.', 'pool_id': ABSENT}),
    'a zone is got': lambda its: its.client.get_domain(WHO, its.zone.id),
    'no zone is got': lambda its: its.client.get_domain(WHO, ABSENT),
    'zones are found': lambda its: its.client.find_domains(WHO, PageRequest({'name': 'example.*'}, None, 10, 'name')),
    'none is found': lambda its: its.client.find_domains(WHO, PageRequest({'name': 'other.*'}, None, 10, 'name')),
    'zones without a criterion': lambda its: its.client.find_domains(WHO),
    'zones after one': lambda its: its.client.find_domains(WHO, PageRequest({}, its.zone.id, 10, 'name', 'asc')),
    'zones after none': lambda its: its.client.find_domains(WHO, PageRequest({}, ABSENT, 10, 'name', 'asc')),
    'a zone is changed': lambda its: its.client.update_domain(WHO, its.zone.id, {'ttl': 77, 'description': 'ours'}),
    'no zone is changed': lambda its: its.client.update_domain(WHO, ABSENT, {'ttl': 77}),
    'a zone is deleted': lambda its: its.client.delete_domain(WHO, its.zone.id),
    'no zone is deleted': lambda its: its.client.delete_domain(WHO, ABSENT),
    'a zone that goes is changed': lambda its: (its.client.delete_domain(WHO, its.zone.id),
                                                its.client.update_domain(WHO, its.zone.id, {'ttl': 77})),
    'a zone that goes is deleted': lambda its: (its.client.delete_domain(WHO, its.zone.id),
                                                its.client.delete_domain(WHO, its.zone.id)),
    'a zone that goes is got': lambda its: (its.client.delete_domain(WHO, its.zone.id),
                                            its.client.get_domain(WHO, its.zone.id)),
    'a recordset is created': lambda its: its.client.create_recordset(
        WHO, its.zone.id, {**WWW, 'name': 'web.example.com.', 'ttl': 60, 'description': 'ours'}),
    'a recordset that is there': lambda its: its.client.create_recordset(WHO, its.zone.id, WWW),
    'a recordset in no zone': lambda its: its.client.create_recordset(WHO, ABSENT, WWW),
    'a recordset is got': lambda its: its.client.get_recordset(WHO, its.zone.id, its.www.id),
    'no recordset is got': lambda its: its.client.get_recordset(WHO, its.zone.id, ABSENT),
    'a recordset of no zone is got': lambda its: its.client.get_recordset(WHO, ABSENT, its.www.id),
    'recordsets are found': lambda its: its.client.find_recordsets(
        WHO, its.zone.id, PageRequest({'type': 'A'}, None, 10, 'name', 'asc')),
    'recordsets without a criterion': lambda its: its.client.find_recordsets(WHO, its.zone.id),
    'recordsets of no zone': lambda its: its.client.find_recordsets(WHO, ABSENT),
    'recordsets of all zones': lambda its: its.client.find_all_recordsets(WHO, PageRequest({'type': 'A'})),
    'a recordset is changed': lambda its: its.client.update_recordset(
        WHO, its.zone.id, its.www.id, {'records': ['192.0.2.7'], 'ttl': 9}),
    'no recordset is changed': lambda its: its.client.update_recordset(WHO, its.zone.id, ABSENT, {'ttl': 9}),
    'a recordset is deleted': lambda its: its.client.delete_recordset(WHO, its.zone.id, its.www.id),
    'no recordset is deleted': lambda its: its.client.delete_recordset(WHO, its.zone.id, ABSENT),
    'changes are applied': lambda its: its.client.apply_changes(
        WHO, its.zone.id, [RecordChange('web.example.com.', 'A', ('192.0.2.1',), 60)]),
    'changes of another serial': lambda its: its.client.apply_changes(
        WHO, its.zone.id, [RecordChange('web.example.com.', 'A', ('192.0.2.1',), 60)], serial=1),
    'changes in no zone': lambda its: its.client.apply_changes(WHO, ABSENT, []),
    'an import is announced': lambda its: its.client.announce_import(WHO),
    'an export is checked': lambda its: its.client.check_export(WHO, its.zone.id),
    'an export of no zone': lambda its: its.client.check_export(WHO, ABSENT),
    'the rows of a zone': lambda its: its.client.server_statuses(WHO, its.zone.id),
    'the rows of no zone': lambda its: its.client.server_statuses(WHO, ABSENT),
    'a plan is stored': lambda its: its.client.put_plan(WHO, stored('c' * 32)),
    'plans are found': lambda its: its.client.find_plans(WHO, PageRequest({'zone': 'example.*'})),
    'plans of a state': lambda its: its.client.find_plans(WHO, PageRequest({'state': 'PARKED'})),
    'a plan is got': lambda its: its.client.get_plan(WHO, its.stored),
    'a plan is got by its first digits': lambda its: its.client.get_plan(WHO, 'bbbb'),
    'no plan is got': lambda its: its.client.get_plan(WHO, ABSENT),
    'a plan is approved': lambda its: its.client.approve_plan(WHO, its.parked),
    'a stored plan is approved': lambda its: its.client.approve_plan(WHO, its.stored),
    'a plan is approved twice': lambda its: (its.client.approve_plan(WHO, its.parked),
                                             its.client.approve_plan(WHO, its.parked)),
    'a plan is dropped': lambda its: its.client.drop_plan(WHO, its.stored),
    'a plan that was applied is dropped': lambda its: (
        its.client.settle_plan(WHO, its.stored, PlanState.APPLIED), its.client.drop_plan(WHO, its.stored)),
    'a plan is settled': lambda its: its.client.settle_plan(WHO, its.stored, PlanState.FAILED, 'it broke'),
    'a plan of a pool manager is settled': lambda its: its.client.settle_plan(WHO, its.parked, PlanState.APPLIED),
    'a plan is settled otherwise': lambda its: (its.client.settle_plan(WHO, its.stored, PlanState.APPLIED),
                                                its.client.settle_plan(WHO, its.stored, PlanState.FAILED)),
    'no plan is settled': lambda its: its.client.settle_plan(WHO, ABSENT, PlanState.FAILED),
    'quotas': lambda its: its.client.get_quotas(WHO, 'blue'),
    'quotas are set': lambda its: (its.client.set_quotas(WHO, 'blue', {'zones': 7})['zones'],
                                   its.client.get_quotas(WHO, 'blue')['zones'],
                                   its.client.get_quotas(WHO, 'red')['zones'] == 7),
    'quotas are reset': lambda its: (its.client.set_quotas(WHO, 'blue', {'zones': 7}),
                                     its.client.reset_quotas(WHO, 'blue'),
                                     its.client.get_quotas(WHO, 'blue')['zones'] == 7),
    'servers': lambda its: its.client.find_servers(WHO, 'default'),
    'servers of no pool': lambda its: its.client.find_servers(WHO, 'other'),
    'reports of servers': lambda its: [each.server for each in its.client.report_servers(WHO, 'default')],
    'reports of no pool': lambda its: its.client.report_servers(WHO, 'other'),
    'a report of a server': lambda its: its.client.report_server(WHO, its.server.id).server,
    'a report of no server': lambda its: its.client.report_server(WHO, ABSENT),
    'a server rests': lambda its: its.client.rest_server(WHO, its.server.id),
    'no server rests': lambda its: its.client.rest_server(WHO, ABSENT),
    'a server that drains rests': lambda its: (its.client.drain_server(WHO, its.server.id),
                                               its.client.rest_server(WHO, its.server.id)),
    'a server is resumed': lambda its: (its.client.rest_server(WHO, its.server.id),
                                        its.client.resume_server(WHO, its.server.id)),
    'a server is drained': lambda its: its.client.drain_server(WHO, its.server.id, delete_zones=True),
    'pools': lambda its: its.client.find_pools(WHO, {'name': 'default'}),
    'no pools': lambda its: its.client.find_pools(WHO, {'name': 'other'}),
    'a pool': lambda its: its.client.get_pool(WHO, its.pool_id),
    'no pool': lambda its: its.client.get_pool(WHO, ABSENT),
    'a key': lambda its: its.client.get_tsigkey(WHO, its.key.id),
    'no key': lambda its: its.client.get_tsigkey(WHO, ABSENT),
    'keys': lambda its: its.client.find_tsigkeys(WHO, PageRequest({'name': 'key.*'})),
    'a key is made': lambda its: its.client.create_tsigkey(
        WHO, {**KEY, 'name': 'other.example.', 'scope': 'ZONE', 'resource_id': its.zone.id}),
    'a key that is there': lambda its: its.client.create_tsigkey(WHO, {**KEY, 'resource_id': its.pool_id}),
    'a key is changed': lambda its: its.client.update_tsigkey(
        WHO, its.key.id, {'secret': 'b3RoZXI=', 'scope': 'ZONE', 'resource_id': its.zone.id}),
    'no key is changed': lambda its: its.client.update_tsigkey(WHO, ABSENT, {'secret': 'b3RoZXI='}),
    'a key is deleted': lambda its: (its.client.delete_tsigkey(WHO, its.key.id),
                                     its.client.find_tsigkeys(WHO)),
    'no key is deleted': lambda its: its.client.delete_tsigkey(WHO, ABSENT),
    'services': lambda its: its.client.find_service_statuses(WHO, PageRequest({'service_name': 'central'})),
    'services by status': lambda its: names_of(its.client.find_service_statuses(WHO, PageRequest({'status': 'DOWN'}))),
    'a service': lambda its: its.client.get_service_status(WHO, its.service.id),
    'no service': lambda its: its.client.get_service_status(WHO, ABSENT),
}


def names_of(found: list[Any]) -> list[str]:
    return [each.service_name for each in found]


@pytest.mark.parametrize('operation', OPERATIONS.values(), ids=list(OPERATIONS))
def test_it_answers_as_central_does(operation: Callable[[Both], Any], central: Both, stand_in: Both) -> None:
    ours, its = done(operation, stand_in), done(operation, central)
    assert {name: (ours.get(name), its.get(name)) for name in ours | its if ours.get(name) != its.get(name)} == {}


def methods(service: type) -> dict[str, inspect.Signature]:
    return {name: inspect.signature(method) for name, method in inspect.getmembers(service, inspect.isfunction)
            if not name.startswith('_')}


def test_it_is_called_as_central_is() -> None:
    theirs = methods(Central)
    common = {name: signature for name, signature in methods(StandIn).items() if name in theirs}
    assert len(common) == 39
    assert {name: list(signature.parameters) for name, signature in common.items()} == {
        name: list(theirs[name].parameters) for name in common}


def test_every_operation_of_it_is_held_against_central() -> None:
    sources = inspect.getsource(inspect.getmodule(test_it_answers_as_central_does))  # type: ignore[arg-type]
    shared = methods(StandIn).keys() & methods(Central).keys()
    assert [name for name in sorted(shared) if f'client.{name}(' not in sources] == []
