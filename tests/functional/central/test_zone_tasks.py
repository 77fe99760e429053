"""Imports and exports of zones, on each database: what is carried out, once, by whom, and what is left behind."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool.api.services.zone_task_store import PIECE, PIECES_PER_TRANSACTION, ZoneTaskStore, write_zone
from designate_pool.central import import_worker
from designate_pool.central.import_worker import LEASE, MOST_TRIES, ImportWorker
from designate_pool.central.purger import Purger
from designate_pool.central.service import Central
from designate_pool.concurrency import one_ahead
from designate_pool.errors import LostRace, NotFound, OverLimit, PoolError, ServiceUnavailable
from designate_pool.model import Context, Outcome, PageRequest, ZoneTask, ZoneTaskKind, ZoneTaskStatus, new_id
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Threads
from designate_pool.settings import CentralSettings
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import zone_tasks
from testing.inline import Inline
from testing.processes import patience
from testing.settings import central_settings
from tests.fixtures.central import WHO, Caller, Clock, contents, create, export_zone
from tests.fixtures.notifications import Recorder

HEAD = b'$ORIGIN example.com.\n$TTL 300\n@ SOA ns1 hostmaster 1 7200 900 1209600 600\n'
SMALL = HEAD + b'www A 192.0.2.1\n    A 192.0.2.2\nftp 60 CNAME WWW\n* TXT "one two" three\n'
RED, BLUE = Context(request_id='req-1', project_id='red'), Context(project_id='blue')
IMPORT, EXPORT = ZoneTaskKind.IMPORT, ZoneTaskKind.EXPORT


@pytest.fixture
def tasks(database: Storage) -> ZoneTaskStore:
    return ZoneTaskStore(database)


@pytest.fixture
def other(central: Central, database: Storage, clock: Clock) -> ImportWorker:
    """A second Central's."""
    return ImportWorker(database, central.creator)


def creator(central: Central, create_one: Callable[..., Any]) -> Any:
    """Central's, but for the way in which it creates a single domain."""
    return SimpleNamespace(allowance=central.creator.allowance, events=central.creator.events, create_one=create_one)


def count(database: Storage, *tables: sa.Table) -> list[int]:
    return database.read(lambda tx: [tx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                                     for table in tables])


def nothing_made(database: Storage) -> bool:
    return count(database, schema.domains, schema.recordsets, schema.records, schema.zone_task_pieces) == [0] * 4


def hosts(number: int) -> Iterator[bytes]:
    """A zone file with so many records beside its SOA, cut anywhere."""
    text = HEAD + b''.join(b'h%d A 192.0.2.%d\n' % (each, each % 250) for each in range(number))
    return (text[start:start + 1000] for start in range(0, len(text), 1000))


def test_no_more_imports_of_a_project_than_may_be_under_way(central: Central, database: Storage) -> None:
    few = ZoneTaskStore(database, pending_imports=2)
    for _ in range(2):
        first = few.store_import(RED, [HEAD])
    with pytest.raises(OverLimit, match='2 imports of the project are under way'):
        few.store_import(RED, [HEAD])
    for who in (BLUE, WHO, WHO, WHO):
        few.store_import(who, [HEAD])
    few.remove(IMPORT, RED, first.id)
    while central.imports.run_next():
        pass
    few.store_import(RED, [HEAD])


@pytest.mark.all_databases
def test_imports_that_begin_at_the_same_time_are_no_more_than_may(
        central: Central, database: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    few, together = ZoneTaskStore(database, pending_imports=1), threading.Barrier(2)
    counted = zone_tasks.count

    def count_with_the_other(*arguments: Any) -> int:
        found = counted(*arguments)
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(patience(0.3))  # until the other has counted as well, if it can
        return found

    def begin() -> bool:
        try:
            return bool(few.store_import(RED, [HEAD]))
        except OverLimit:
            return False

    monkeypatch.setattr(zone_tasks, 'count', count_with_the_other)
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        assert sorted(each.result() for each in [threads.submit(begin) for _ in range(2)]) == [False, True]


class TestAnImport:
    @pytest.mark.parametrize('streamed', [False, True])
    def test_several_ttls_in_a_recordset_are_told(self, central: Central, database: Storage, tasks: ZoneTaskStore,
                                                  streamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(import_worker, '_STREAMED', 0 if streamed else 1 << 30)
        monkeypatch.setattr(database, 'has_one_writer', not streamed)
        task = tasks.store_import(RED, [HEAD, b'www 60 A 192.0.2.77\nwww 7200 A 192.0.2.78\n'])
        assert central.imports.run_next()
        assert tasks.get(IMPORT, RED, task.id).message == (
            'example.com. imported; of several TTLs in a recordset the lowest is used: www.example.com. A')

    def test_it_makes_the_zone_of_whoever_asked(self, central: Central, database: Storage,
                                                tasks: ZoneTaskStore) -> None:
        task = tasks.store_import(RED, [SMALL[:50], SMALL[50:]])
        assert tasks.get(IMPORT, RED, task.id).status is ZoneTaskStatus.PENDING
        assert central.imports.run_next() and not central.imports.run_next()
        ended = tasks.get(IMPORT, RED, task.id)
        assert (ended.status, ended.message, ended.size) == (ZoneTaskStatus.COMPLETE, 'example.com. imported',
                                                             len(SMALL))
        domain = central.get_domain(RED, ended.domain_id or '')
        assert (domain.project_id, domain.email, domain.ttl) == ('red', 'hostmaster@example.com', 300)
        assert [each for each in contents(central, domain) if ' NS ' not in each] == [
            '*.example.com. TXT "one two" "three"', 'ftp.example.com. CNAME WWW.example.com.',
            'www.example.com. A 192.0.2.1', 'www.example.com. A 192.0.2.2']
        assert count(database, schema.zone_task_pieces) == [0]

    def test_it_goes_to_the_pool_that_was_named(self, central: Central, database: Storage, tasks: ZoneTaskStore,
                                                other: ImportWorker) -> None:
        silver = central.create_pool(WHO, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
        task = tasks.store_import(RED, [SMALL], silver.id)
        now = other._now()
        (taken,) = database.run(zone_tasks.claim, 'gone', now, now + timedelta(seconds=LEASE))
        assert taken.id == task.id and not other.run_next()
        database.run(zone_tasks.extend_claim, task.id, 'gone', now - timedelta(seconds=1))
        assert other.run_next() and not other.run_next()
        ended = tasks.get(IMPORT, RED, task.id)
        assert central.get_domain(RED, ended.domain_id or '').pool_name == 'silver'

    def test_the_pool_that_was_named_is_gone(self, central: Central, tasks: ZoneTaskStore) -> None:
        silver = central.create_pool(WHO, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
        task = tasks.store_import(RED, [SMALL], silver.id)
        central.delete_pool(WHO, silver.id)
        assert central.imports.run_next() and not central.imports.run_next()
        ended = tasks.get(IMPORT, RED, task.id)
        assert ended.status is ZoneTaskStatus.ERROR and silver.id in (ended.message or '')

    def test_a_line_without_an_end_is_refused(self, central: Central, tasks: ZoneTaskStore) -> None:
        for text in (b'; ' + b'x' * 2_000_000, HEAD + b'a TXT (\n' + (b'"' + b'x' * 250 + b'"\n') * 5000):
            task = tasks.store_import(RED, [text])
            central.imports.run_next()
            assert '300000 characters' in (tasks.get(IMPORT, RED, task.id).message or '')

    @pytest.mark.parametrize(('last', 'why'), [
        (b'', None), (b'h7 CNAME x\n', 'line 11, type: h7.example.com. has CNAME already'),
        (b'bad A 192.0.2.300\nh7 CNAME x\nout.example.org. A 192.0.2.1\n', 'line 404: '),
        (b'h8 A 192.0.2.8\nmore A 192.0.2.1\n', 'zone_records allows 400')])
    def test_one_that_is_too_large_for_memory(self, database: Storage, tasks: ZoneTaskStore, last: bytes,
                                              why: str | None, central: Central, clock: Clock,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr('designate_pool.central.zonefile_parser.PART', 70)
        monkeypatch.setattr('designate_pool.central.zonefile_parser.MOST_HELD', 30_000)
        limited = Central(database, PoolManagerClient(Caller()), Inline(),
                          settings=central_settings(quota_zone_records=400))
        workers = Threads().workers(1, 'ahead')
        limited.imports._ahead = functools.partial(one_ahead, workers)
        task = tasks.store_import(RED, [*hosts(400), last])
        limited.imports.run_next()
        workers.stop()
        ended = tasks.get(IMPORT, RED, task.id)
        if why is None:
            found = [each for each in contents(limited, limited.get_domain(RED, ended.domain_id or ''))
                     if ' NS ' not in each]
            assert sorted(found) == sorted(f'h{each}.example.com. A 192.0.2.{each % 250}' for each in range(400))
        else:
            assert why in (ended.message or '')
            assert nothing_made(database)

    @pytest.mark.parametrize(('last', 'whole', 'why'), [
        (b'', '', None), (b'h000 A 192.0.2.1\n', 'its names are not in order', None),
        (b'bad A 192.0.2.300\nh7 CNAME x\n', 'line 1504: ',
         'line 1504: not an IPv4 address: 192.0.2.300: \'bad A 192.0.2.300\'.\nline 11, type: h00007.'),
        (b'z CNAME x\nz A 192.0.2.1\n', 'line 1504, type: z.example.com. has A already', 'line 1504, type: '),
        (b'z1 A 192.0.2.1\nz2 A 192.0.2.1\nz3 A 192.0.2.1\n', 'zone_records allows 1502', 'The quota zone_records '),
        (b'z A 192.0.2.1\nz A 192.0.2.2\nz A 192.0.2.3\nz A 192.0.2.300\n', 'recordset_records allows 2',
         'The quota recordset_records ')])
    def test_one_in_order_is_written_while_it_is_read(
            self, database: Storage, tasks: ZoneTaskStore, last: bytes, whole: str, why: str | None, central: Central,
            clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
        limited = Central(database, PoolManagerClient(Caller()), Inline(),
                          settings=central_settings(quota_zone_records=1502, quota_recordset_records=2))
        workers = Threads().workers(1, 'ahead')
        limited.imports._ahead = functools.partial(one_ahead, workers)
        many = b''.join(b'h%05d TXT "%s"\n' % (each, b'x' * 200) for each in range(1500))
        task = tasks.store_import(RED, [HEAD + many + last.replace(b'h7', b'h00007')])
        with caplog.at_level('INFO', import_worker.__name__):
            limited.imports.run_next()
        workers.stop()
        told = [each.getMessage() for each in caplog.records if 'read as a whole first' in each.getMessage()]
        if database.has_one_writer or not whole:
            assert not told
        else:
            assert len(told) == 1 and whole in told[0]
        ended = tasks.get(IMPORT, RED, task.id)
        if why is None:
            assert ended.status is ZoneTaskStatus.COMPLETE, ended.message
            assert count(database, schema.recordsets) == [2 + 1500 + bool(last)]
        else:
            assert (ended.message or '').startswith(why)
            assert nothing_made(database)

    def test_a_small_one_does_not_wait_behind_a_large_one(self, central: Central, tasks: ZoneTaskStore,
                                                          database: Storage) -> None:
        large = tasks.store_import(RED, [SMALL + b';' * import_worker.SMALL])
        small = tasks.store_import(RED, [SMALL])
        assert central.imports.run_next(import_worker.SMALL) and not central.imports.run_next(import_worker.SMALL)
        assert tasks.get(IMPORT, RED, small.id).status is ZoneTaskStatus.COMPLETE
        assert tasks.get(IMPORT, RED, large.id).status is ZoneTaskStatus.PENDING


class TestSeveralCentrals:
    @pytest.mark.all_databases
    def test_one_claims_it(self, central: Central, database: Storage, other: ImportWorker,
                           tasks: ZoneTaskStore) -> None:
        task = tasks.store_import(RED, [SMALL])
        seen: list[bool] = []
        meddled = ImportWorker(database, self.after(lambda: seen.append(other.run_next()), central))
        meddled.run_next()
        assert (seen, tasks.get(IMPORT, RED, task.id).status) == ([False], ZoneTaskStatus.COMPLETE)

    @pytest.mark.all_databases
    def test_what_a_dead_one_held_another_finishes(self, central: Central, database: Storage, tasks: ZoneTaskStore,
                                                   clock: Clock) -> None:
        task = tasks.store_import(RED, [SMALL])
        now = central._now()
        assert len(database.run(zone_tasks.claim, new_id(), now, now + timedelta(seconds=LEASE))) == 1
        assert not central.imports.run_next()
        clock.now += LEASE + 1
        assert central.imports.run_next()
        assert tasks.get(IMPORT, RED, task.id).status is ZoneTaskStatus.COMPLETE

    def test_one_that_wakes_up_late_does_nothing_twice(self, central: Central, database: Storage, other: ImportWorker,
                                                       tasks: ZoneTaskStore, clock: Clock) -> None:
        def others_turn() -> None:
            clock.now += LEASE + 1
            assert other.run_next()
            (made,) = central.find_domains(RED)
            gone = central.delete_domain(RED, made.id)
            central.update_status(RED, gone, Outcome.SUCCESS, gone.serial)  # the name is free again

        task = tasks.store_import(RED, [SMALL])
        ImportWorker(database, self.after(others_turn, central)).run_next()
        assert central.find_domains(RED) == []
        assert tasks.get(IMPORT, RED, task.id).status is ZoneTaskStatus.COMPLETE

    @pytest.mark.all_databases
    def test_one_that_stops_hands_it_over_at_once(self, central: Central, database: Storage, other: ImportWorker,
                                                  tasks: ZoneTaskStore, clock: Clock) -> None:
        task = tasks.store_import(RED, hosts(300))
        stopping = ImportWorker(database, self.after(lambda: stopping.stop(), central))
        stopping.run_next()
        assert count(database, schema.domains) == [0]
        clock.now += 1
        assert other.run_next()
        assert tasks.get(IMPORT, RED, task.id).status is ZoneTaskStatus.COMPLETE

    @pytest.mark.all_databases
    def test_claims_at_once_are_of_different_ones(self, central: Central, database: Storage,
                                                  tasks: ZoneTaskStore) -> None:
        waiting = {tasks.store_import(RED, [SMALL]).id for _ in range(8)}
        now, until = central._now(), central._now() + timedelta(seconds=LEASE)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            claims = [pool.submit(database.run, zone_tasks.claim, new_id(), now, until, count=2) for _ in range(4)]
            claimed = [task.id for claim in claims for task in claim.result(60)]
        assert len(claimed) == 8 and set(claimed) == waiting

    @pytest.mark.all_databases
    def test_a_name_twice_at_once_is_made_once(self, central: Central, other: ImportWorker,
                                               tasks: ZoneTaskStore) -> None:
        both = [tasks.store_import(RED, hosts(300)) for _ in range(2)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(each.run_next) for each in (central.imports, other)]:
                done.result(60)
        while other.run_next():  # where both saw the same one, the other is left
            pass
        ended = sorted((tasks.get(IMPORT, RED, each.id) for each in both), key=lambda task: task.status)
        assert [each.status for each in ended] == [ZoneTaskStatus.COMPLETE, ZoneTaskStatus.ERROR]
        assert ended[1].message == 'The zone example.com. exists already.'
        assert len(central.find_domains(RED)) == 1

    def test_one_that_is_deleted_meanwhile_comes_to_nothing(self, central: Central, database: Storage,
                                                            tasks: ZoneTaskStore, clock: Clock) -> None:
        task = tasks.store_import(RED, [SMALL])
        ImportWorker(database, self.after(lambda: tasks.remove(IMPORT, RED, task.id), central)).run_next()
        assert nothing_made(database) and count(database, schema.zone_tasks) == [0]

    @pytest.mark.parametrize('error', [ServiceUnavailable(service='the database', why='it restarts'),
                                       LostRace(what='name example.com.')])
    def test_trouble_of_ours_is_no_fault_of_the_zone_file(
            self, central: Central, database: Storage, tasks: ZoneTaskStore, clock: Clock, error: PoolError) -> None:
        def fail(*arguments: Any, **more: Any) -> Any:
            raise error

        task = tasks.store_import(RED, [SMALL])
        failing = ImportWorker(database, creator(central, fail))
        failing.run_next()
        assert tasks.get(IMPORT, RED, task.id).status is ZoneTaskStatus.PENDING
        assert not failing.run_next()  # only after a pause
        for _ in range(MOST_TRIES):
            clock.now += 1000
            failing.run_next()
        ended = tasks.get(IMPORT, RED, task.id)
        assert (ended.status, ended.message) == (ZoneTaskStatus.ERROR, str(error))

    @staticmethod
    def after(meddle: Any, central: Central) -> Any:
        """Makes what Central makes, but *meddle* comes first."""
        def create_one(*arguments: Any, **more: Any) -> Any:
            meddle()
            return central.creator.create_one(*arguments, **more)

        return creator(central, create_one)


class TestWhatIsLeftBehind:
    def test_nothing_of_an_upload_that_broke_off(self, database: Storage, tasks: ZoneTaskStore) -> None:
        def broken() -> Iterator[bytes]:
            yield from [b'x' * 1000] * (PIECES_PER_TRANSACTION + 1)
            raise ConnectionResetError

        with pytest.raises(ConnectionResetError):
            tasks.store_import(RED, broken())
        assert count(database, schema.zone_tasks, schema.zone_task_pieces) == [0, 0]

    def test_of_an_api_that_was_killed_in_the_midst(self, central: Central, database: Storage, tasks: ZoneTaskStore,
                                                    clock: Clock) -> None:
        now = central._now()
        half = ZoneTask(new_id(), IMPORT, project_id='red')
        database.run(zone_tasks.put_imports, [half], [[HEAD] * 3], now)
        clock.now += 600
        assert not central.imports.run_next() and tasks.find(IMPORT, RED, PageRequest()) == []
        with pytest.raises(NotFound, match='import'):
            tasks.get(IMPORT, RED, half.id)
        Purger(database, CentralSettings(deleted_retention=1000)).purge()
        assert count(database, schema.zone_tasks) == [1]
        clock.now += 3600
        Purger(database, CentralSettings(deleted_retention=1000)).purge()
        assert count(database, schema.zone_tasks, schema.zone_task_pieces) == [0, 0]

    def test_ended_tasks_expire_and_waiting_ones_do_not(self, central: Central, database: Storage, tasks: ZoneTaskStore,
                                                        clock: Clock) -> None:
        tasks.store_import(RED, [SMALL])
        central.imports.run_next()
        waiting = tasks.store_import(RED, [b'; nothing'])
        clock.now += 5000
        keeper = Purger(database, CentralSettings(deleted_retention=1000, task_retention=10000))
        keeper.purge()
        assert count(database, schema.zone_tasks) == [2]
        clock.now += 6000
        keeper.purge()
        assert [each.id for each in tasks.find(IMPORT, RED, PageRequest())] == [waiting.id]
        assert count(database, schema.domains) == [1]


class TestAnExport:
    def test_it_is_of_one_moment(self, central: Central, database: Storage, tasks: ZoneTaskStore,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
        tasks.store_import(RED, hosts(2500))
        central.imports.run_next()
        (domain,) = central.find_domains(RED)
        changed: list[float] = []

        def change(seconds: float) -> None:
            if not changed:
                changed.append(seconds)  # first, since a change that takes long gives turns too
                central.create_recordset(RED, domain.id, {'name': 'zzz.example.com.', 'type': 'A',
                                                          'records': ['192.0.2.1']})

        before = export_zone(central, RED, domain.id)
        monkeypatch.setattr('designate_pool.api.services.zone_task_store.time.sleep', change)
        file, size = tasks.spooled(write_zone, domain.id)
        with file:
            assert file.read().decode() == before and len(before) == size
        assert changed


def test_pieces_are_bounded() -> None:
    assert PIECE * PIECES_PER_TRANSACTION <= 8 << 20  # as a literal it may be twice as long, and MariaDB takes 16 MiB


class TestNotifications:
    @pytest.fixture
    def kept(self) -> Recorder:
        return Recorder()

    @pytest.fixture
    def notifying(self, database: Storage, kept: Recorder) -> ZoneTaskStore:
        return ZoneTaskStore(database, notifications=kept)

    @pytest.fixture
    def notifying_central(self, database: Storage, central: Central, clock: Clock, kept: Recorder) -> Central:
        """As *central*, on the same tables."""
        return Central(database, PoolManagerClient(Caller()), Inline(), notifications=kept,
                       settings=central_settings())

    def of(self, kept: Recorder, task: ZoneTask) -> list[tuple[str, str, int, str | None]]:
        return [(event, payload['status'], payload['version'], payload['request_id']) for event, payload in kept.told
                if payload['id'].replace('-', '') == task.id]

    @pytest.mark.parametrize('content, ended', [(SMALL, 'COMPLETE'), (SMALL + b'a A nonsense\n', 'ERROR')])
    def test_an_import_is_asked_for_ends_and_is_deleted(
            self, notifying: ZoneTaskStore, notifying_central: Central, kept: Recorder, content: bytes,
            ended: str) -> None:
        task = notifying.store_import(RED, [content])
        notifying_central.imports.run_next()
        shown = notifying.get(IMPORT, RED, task.id)
        update = next(payload for event, payload in kept.told if event == 'dns.zone_import.update')
        assert (update['message'], (update['zone_id'] or '').replace('-', ''), update['project_id']) == (
            shown.message, shown.domain_id or '', 'red')
        notifying.remove(IMPORT, dataclasses.replace(RED, request_id='req-2'), task.id)
        assert self.of(kept, task) == [
            ('dns.zone_import.create', 'PENDING', 1, 'req-1'),
            ('dns.zone_import.update', ended, shown.version, 'req-1'),
            ('dns.zone_import.delete', ended, shown.version, 'req-2')]

    @pytest.mark.all_databases
    def test_an_export_is_complete_at_once(self, notifying: ZoneTaskStore, central: Central, kept: Recorder) -> None:
        domain = create(central, who=RED)
        answered = notifying.store_export(RED, domain)
        assert answered.status is ZoneTaskStatus.PENDING
        assert notifying.get(EXPORT, RED, answered.id).status is ZoneTaskStatus.COMPLETE
        notifying.remove(EXPORT, RED, answered.id)
        with pytest.raises(NotFound, match='export'):
            notifying.remove(EXPORT, RED, answered.id)
        assert self.of(kept, answered) == [
            ('dns.zone_export.create', 'PENDING', 1, 'req-1'), ('dns.zone_export.update', 'COMPLETE', 1, 'req-1'),
            ('dns.zone_export.delete', 'COMPLETE', 1, 'req-1')]
