"""Many small zone files imported together: what becomes of each, on each database, as if it were imported by itself."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool.api.services.zone_task_store import ZoneTaskStore
from designate_pool.central import domain_creator, import_worker, zonefile_parser
from designate_pool.central.import_worker import ImportWorker
from designate_pool.central.service import Central
from designate_pool.model import Context, Outcome, ZoneTask, ZoneTaskKind, ZoneTaskStatus, new_id, new_ids, utcnow
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import zone_tasks
from testing.databases import count_statements
from tests.fixtures.central import NS, WHO, Caller, Clock, contents, create, noted

RED, BLUE = Context(request_id='req-1', project_id='red'), Context(project_id='blue')
IMPORT = ZoneTaskKind.IMPORT


@pytest.fixture
def tasks(database: Storage) -> ZoneTaskStore:
    return ZoneTaskStore(database)


def zone_file(name: str, *lines: str) -> bytes:
    head = f'$ORIGIN {name}', '$TTL 300', '@ SOA ns1 hostmaster 1 7200 900 1209600 600'
    return '\n'.join((*head, *lines, '')).encode()


def run(central: Central, tasks: ZoneTaskStore, *zone_files: bytes, who: Context = RED) -> list[ZoneTask]:
    """The imports of these files when they have ended."""
    stored = tasks.store_imports(who, zone_files)
    assert central.imports.run_next(import_worker.SMALL) and not central.imports.run_next(import_worker.SMALL)
    return [tasks.get(IMPORT, who, each.id) for each in stored]


def counted(database: Storage, *tables: sa.Table) -> list[int]:
    return database.read(lambda tx: [tx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                                     for table in tables])


def alone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tasks whose zones are created by themselves."""
    return noted(monkeypatch, ImportWorker, '_import', lambda worker, task, claim: task.id)


@pytest.mark.all_databases
def test_zones_are_as_when_they_are_imported_by_themselves(
        central: Central, database: Storage, tasks: ZoneTaskStore, caller: Caller,
        monkeypatch: pytest.MonkeyPatch) -> None:
    single = alone(monkeypatch)
    ended = run(central, tasks, *(zone_file(
        f'{name}.example.', f'$TTL {ttl}', 'www A 192.0.2.1', '    A 192.0.2.2', 'ftp 60 CNAME www',
        '* TXT "one two" three') for name, ttl in (('first', 300), ('second', 7), ('third', 300))))
    assert single == []
    assert [(each.status, each.message) for each in ended] == [
        (ZoneTaskStatus.COMPLETE, f'{name}.example. imported') for name in ('first', 'second', 'third')]
    assert counted(database, schema.zone_task_pieces) == [0]
    together = central.get_domain(RED, ended[1].domain_id or '')
    by_itself = tasks.store_import(BLUE, [zone_file(
        'fourth.example.', '$TTL 7', 'www A 192.0.2.1', '    A 192.0.2.2', 'ftp 60 CNAME www',
        '* TXT "one two" three')])
    central.imports.run_next()
    alike = central.get_domain(BLUE, tasks.get(IMPORT, BLUE, by_itself.id).domain_id or '')
    assert single == [by_itself.id]
    assert contents(central, together) == sorted(
        each.replace('fourth', 'second') for each in contents(central, alike))
    different = {'id', 'name', 'email', 'project_id', 'request_id'}
    assert {name: getattr(together, name) for name in together.__slots__ if name not in different} \
        == {name: getattr(alike, name) for name in alike.__slots__ if name not in different}
    assert sorted(domain.name for method, domain in caller.cast_domains) == [
        'first.example.', 'fourth.example.', 'second.example.', 'third.example.']
    assert stored_rows(database, together.id) == sorted(
        each.replace('fourth', 'second') for each in stored_rows(database, alike.id))


def stored_rows(database: Storage, domain_id: str) -> list[str]:
    """What is stored of the recordsets and records of a domain, but for ids."""
    sets, records, domains = schema.recordsets, schema.records, schema.domains
    return database.read(lambda tx: sorted(map(repr, tx.execute(sa.select(
        sets.c.type, sets.c.ttl, sets.c.managed, sets.c.version, sets.c.deleted, sets.c.project_id, records.c.task,
        records.c.status, records.c.serial_number, records.c.version, records.c.wire, domains.c.deleted,
        sa.func.length(domains.c.reversed_name) - sa.func.length(domains.c.name), domains.c.catalog_change,
        domains.c.operations)
        .join_from(sets, records, records.c.recordset_id == sets.c.id, isouter=True)
        .join(domains, domains.c.id == sets.c.domain_id).where(sets.c.domain_id == domain_id)))))


def test_each_has_the_outcome_that_is_its_own(central: Central, tasks: ZoneTaskStore,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    create(central, 'there.example.', who=RED)
    create(central, 'foreign.example.', who=BLUE)
    create(central, 'above.example.', who=RED)
    create(central, 'below.inner.example.', who=RED)
    gone = create(central, 'gone.example.', who=RED)
    central.update_status(WHO, central.delete_domain(RED, gone.id), Outcome.SUCCESS, gone.serial + 1)
    central.blacklists.create(WHO, {'pattern': '^bad'})
    single = alone(monkeypatch)
    files = {
        'plain.example.': ['www A 192.0.2.1'],
        'there.example.': [],
        'foreign.example.': [],
        'sub.above.example.': [],
        'x.foreign.example.': [],
        'inner.example.': [],
        'gone.example.': [],
        'bad.example.': [],
        'wrong.example.': ['www A 192.0.2.300'],
        'ns.example.': ['@ NS ns.elsewhere.example.'],
        'both.example.': [],
        'nested.both.example.': [],
        'one.': [],
        'ns1.example.net.': [],
        'last.example.': ['$GENERATE 1-2000 h$ A 192.0.2.1'],
    }
    again = zone_file('plain.example.')
    ended = dict(zip([*files, 'again'], run(central, tasks, *(zone_file(name, *lines)
                                                              for name, lines in files.items()), again)))
    said = {name: each.message if each.status is ZoneTaskStatus.ERROR else 'COMPLETE' for name, each in ended.items()}
    assert {name for name, message in said.items() if message == 'COMPLETE'} == {
        'plain.example.', 'sub.above.example.', 'inner.example.', 'gone.example.', 'ns.example.', 'both.example.',
        'nested.both.example.', 'last.example.'}
    assert said['again'] == 'The zone plain.example. exists already.'
    assert said['there.example.'] == 'The zone there.example. exists already.'
    assert 'blacklists' in (said['bad.example.'] or '') and 'line 4' in (said['wrong.example.'] or '')
    assert 'the name of a pool' in (said['ns1.example.net.'] or '')
    assert "its name servers are the pool's" in (ended['ns.example.'].message or '')
    plain = {'plain.example.', 'ns.example.', 'both.example.'}
    assert single == [each.id for name, each in ended.items() if name not in plain]
    assert contents(central, central.get_domain(RED, ended['plain.example.'].domain_id or '')) == [
        *(each.replace('example.com.', 'plain.example.') for each in NS), 'www.plain.example. A 192.0.2.1']


def test_whoever_waits_for_several_is_told_of_each_that_has_ended(central: Central, database: Storage,
                                                                  tasks: ZoneTaskStore) -> None:
    stored = tasks.store_imports(RED, [zone_file(f'z{number}.example.') for number in range(4)])
    now = utcnow()
    database.run(zone_tasks.claim, 'somebody', now, now + timedelta(hours=1))  # the first
    tasks.remove(IMPORT, RED, stored[2].id)
    central.imports.run_next(import_worker.SMALL)
    assert [each.status.value for each in tasks.wait_for_all(stored, 0.01)] == [
        'PENDING', 'COMPLETE', 'PENDING', 'COMPLETE']
    assert [each.status.value for each in tasks.wait_for_all(stored[1:], 60)] == ['COMPLETE', 'PENDING', 'COMPLETE']


def test_no_more_zones_than_the_quota_allows(central: Central, tasks: ZoneTaskStore,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    central.set_quotas(WHO, 'red', {'zones': 3, 'zone_records': 2})
    single = alone(monkeypatch)
    ended = run(central, tasks, zone_file('large.example.', 'www A 192.0.2.1', '    A 192.0.2.2', '    A 192.0.2.3'),
                *(zone_file(f'z{number}.example.', 'www A 192.0.2.1') for number in range(5)))
    assert [each.status for each in ended].count(ZoneTaskStatus.COMPLETE) == 3 == len(central.find_domains(RED))
    assert 'zone_records allows 2' in (ended[0].message or '') and 'zones allows 3' in (ended[-1].message or '')
    assert len(single) == 3


@pytest.mark.all_databases
def test_a_transaction_that_fails_leaves_nothing_and_each_is_imported_by_itself(
        central: Central, database: Storage, tasks: ZoneTaskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    single = alone(monkeypatch)

    def fail(*arguments: Any, **more: Any) -> Any:
        assert counted(database, schema.domains) == [0]
        raise RuntimeError('no catalog')

    monkeypatch.setattr(domain_creator.catalog, 'bump', fail)
    stored = tasks.store_imports(RED, [zone_file(f'z{number}.example.') for number in range(3)])
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(ImportWorker, '_run', lambda *arguments: None)
        central.imports.run_next(import_worker.SMALL)
    assert counted(database, schema.domains) == [0] and single == []
    monkeypatch.undo()
    assert {tasks.get(IMPORT, RED, each.id).status for each in stored} == {ZoneTaskStatus.PENDING}


@pytest.mark.parametrize('padding', [0, import_worker.TINY])
def test_one_that_kills_centrals_takes_no_others_with_it(
        central: Central, tasks: ZoneTaskStore, clock: Clock, monkeypatch: pytest.MonkeyPatch, padding: int) -> None:
    stored = [tasks.store_import(RED, [zone_file(f'z{number}.example.') + b';' * padding]) for number in range(4)]
    once = zonefile_parser.parse

    class Killed(BaseException):
        pass

    def kill(text: Any, *rest: Any) -> Any:
        lines = list(text)
        if 'z1.example.' in lines[0]:
            raise Killed
        return once(lines, *rest)

    monkeypatch.setattr(zonefile_parser, 'parse', kill)
    for _ in range(3 * import_worker.MOST_TRIES):
        with contextlib.suppress(Killed):
            while central.imports.run_next(import_worker.SMALL):
                pass
        clock.now += import_worker.LEASE + 1
    ended = [tasks.get(IMPORT, RED, each.id) for each in stored]
    assert [each.status.value for each in ended] == ['COMPLETE', 'ERROR', 'COMPLETE', 'COMPLETE']
    assert 'never ended' in (ended[1].message or '')


def test_one_that_is_deleted_meanwhile_comes_to_nothing(central: Central, tasks: ZoneTaskStore,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    stored = tasks.store_imports(RED, [zone_file(f'z{number}.example.') for number in range(3)])
    parse = zonefile_parser.parse

    def deleted_first(*arguments: Any) -> Any:
        monkeypatch.undo()
        tasks.remove(IMPORT, RED, stored[1].id)
        return parse(*arguments)

    monkeypatch.setattr(zonefile_parser, 'parse', deleted_first)
    assert central.imports.run_next(import_worker.SMALL)
    assert sorted(each.name for each in central.find_domains(RED)) == ['z0.example.', 'z2.example.']


def test_of_a_tiny_file_with_many_records_no_more_are_made_than_show_that(
        central: Central, tasks: ZoneTaskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    made, begun, wanted = list[Any](), list[int](), zonefile_parser.WantedRecordSet

    def noted_set(name: str, rtype: str, rdatas: tuple[Any, ...], *others: Any) -> Any:
        made.extend(rdatas)
        return wanted(name, rtype, rdatas, *others)

    monkeypatch.setattr(zonefile_parser, 'WantedRecordSet', noted_set)
    monkeypatch.setattr(ImportWorker, '_import', lambda worker, task, claim: begun.append(len(made)))
    lines = [f'$GENERATE 1-250 h{number} A 192.0.2.$' for number in range(20)]
    tasks.store_imports(Context(), [zone_file('many.example.', *lines), zone_file('few.example.')])
    central.imports.run_next(import_worker.SMALL)
    assert len(begun) == 1 and 1000 < begun[0] < 1500


@pytest.mark.all_databases
def test_many_take_as_many_statements_as_a_few(central: Central, database: Storage, tasks: ZoneTaskStore) -> None:
    statements: list[str] = []
    for engine in database.engines:
        sa.event.listen(engine, 'before_cursor_execute', lambda *arguments: statements.append(arguments[2]))
    taken = []
    for start, number in ((0, 2), (100, 60)):
        stored = tasks.store_imports(RED, [zone_file(f'z{each}.example.', 'www A 192.0.2.1')
                                           for each in range(start, start + number)])
        statements.clear()
        central.imports.run_next(import_worker.SMALL)
        taken.append(len(statements))
        assert {tasks.get(IMPORT, RED, each.id).status for each in stored} == {ZoneTaskStatus.COMPLETE}
    assert taken[1] <= taken[0] <= (28 if database.engine.dialect.name == 'postgresql' else 27), taken


@pytest.mark.all_databases
def test_several_whose_commit_came_through_without_an_answer_are_stored_once(database: Storage) -> None:
    tasks = [ZoneTask(task_id, IMPORT, project_id='red', size=1) for task_id in new_ids(3)]
    for _ in range(2):
        assert database.run(zone_tasks.put_imports, tasks, [[b';']] * 3, utcnow(), 2)
    assert counted(database, schema.zone_tasks, schema.zone_task_pieces) == [3, 3]


def test_one_whose_commit_came_through_without_an_answer_is_not_refused_for_later_ones(database: Storage) -> None:
    first, later = (ZoneTask(new_id(), IMPORT, project_id='red', size=1) for _ in range(2))
    for task in (first, later, first):
        assert database.run(zone_tasks.put_imports, [task], [[b';']], utcnow(), 1 if task is first else 2)
    assert counted(database, schema.zone_tasks, schema.zone_task_pieces) == [2, 2]


def test_a_larger_zone_file_does_not_wait_for_later_small_ones(central: Central, tasks: ZoneTaskStore,
                                                               clock: Clock) -> None:
    lines = (f'host{number} A 192.0.2.1' for number in range(2000))
    larger, = tasks.store_imports(RED, [zone_file('larger.example.', *lines)])
    assert larger.size is not None and import_worker.TINY < larger.size < import_worker.SMALL
    clock.now += 0.01  # of two of one moment either may be the first
    later = tasks.store_imports(RED, [zone_file(f'zone{number}.example.') for number in range(6)])

    def ended() -> list[bool]:
        return [tasks.get(IMPORT, RED, each.id).status is ZoneTaskStatus.COMPLETE for each in (larger, *later)]

    central.imports.run_next(import_worker.SMALL)
    assert ended() == [True] + [False] * 6
    while central.imports.run_next(import_worker.SMALL):
        pass
    assert all(ended())


class Rounds:
    """In place of the event that ends the looks for tasks: so many more, without a pause."""

    def __init__(self, left: int) -> None:
        self._left = left

    def is_set(self) -> bool:
        return False

    def wait(self, seconds: float) -> bool:
        self._left -= 1
        return self._left < 0


def test_tasks_are_looked_for_seldom_unless_one_is_to_be_tried_again(
        central: Central, tasks: ZoneTaskStore, database: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def looks(rounds: int) -> int:
        monkeypatch.setattr(central.imports, '_stopping', Rounds(rounds))
        with count_statements(database) as statements:
            central.imports._maintain()
        return statements.total()

    assert looks(12) == 2

    def fail(*arguments: Any) -> None:
        raise RuntimeError('no database')

    tasks.store_imports(RED, [zone_file('example.com.')])
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(ImportWorker, '_import', fail)
        assert central.imports.run_next(import_worker.SMALL)
    assert looks(6) == 6
