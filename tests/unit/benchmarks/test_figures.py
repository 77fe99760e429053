"""What the benchmarks do, count, measure and show."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import types
from collections.abc import Iterator, Mapping

import dns.message
import dns.rcode
import dns.rdata
import dns.rdatatype
import dns.zone
import psutil
import pytest

from benchmarks import memory, pairs
from benchmarks.api_bare import BareApi
from benchmarks.api_clients import Neighbours, drive, prepare
from benchmarks.idle import kind_of
from benchmarks.import_zones import LARGE, write_large
from benchmarks.measure import percentile
from benchmarks.pairs import Found, repeated, tally, told_again
from benchmarks.report import Report
from benchmarks.serials import await_serials
from benchmarks.soak import SLACK, Sampler, Series, paused, tell
from benchmarks.steps import Step
from benchmarks.tiny_zones import SERIAL
from designate_pool.central import zonefile_parser
from designate_pool.model import Endpoint
from testing.processes import free_port, wait_until
from tests.fixtures.answering import Answers, Scripted, soa_answer


@pytest.mark.parametrize(('statement', 'kind'), [
    ("SELECT a.id FROM a \n WHERE a.name = 'it''s' AND a.n > 1", 'SELECT a.id FROM a WHERE a.name = ? AND a.n > ?'),
    ("SELECT id_1 FROM a WHERE id IN ('x', 'y', 'z')", 'SELECT id_1 FROM a WHERE id IN (?, ...)'),
    ("UPDATE a SET text='\\'1', n=0.5", 'UPDATE a SET text=?, n=?'),
])
def test_kind(statement: str, kind: str) -> None:
    assert kind_of(statement) == kind


@pytest.mark.parametrize('records', [2, 3, 1000])
def test_the_large_file_has_so_many_records(tmp_path: pathlib.Path, records: int) -> None:
    file = tmp_path / 'large.zone'
    write_large(file, LARGE, records)
    zone = dns.zone.from_file(str(file), relativize=False)
    assert len(list(zone.iterate_rdatas())) == records
    soa = zone.get_soa()
    assert soa.serial == SERIAL
    domain, contents = zonefile_parser.parse(file.read_text())
    # But for SOA and NS, which are made from the pool.
    assert domain.name == LARGE and sum(len(each.rdatas) for each in contents) == records - 2


STATUS = 'Name:\tnamed\nVmPeak:\t  900000 kB\nVmHWM:\t  {} kB\nVmRSS:\t   10000 kB\n'
ROLLUP = '5581e6c00000-7ffd1 ---p 00000000 00:00 0 [rollup]\nRss:\t   12000 kB\nPss:\t    {} kB\nPss_Dirty:\t 1 kB\n'


def process(most: int, now: int) -> tuple[str, str]:
    return STATUS.format(most), ROLLUP.format(now)


@pytest.mark.parametrize(('found', 'expected'), [
    ([process(20000, 9000)], (9.216, 20.48)),
    ([process(20000, 9000), process(3000, 1000)], (10.24, 20.48)),
    ([process(4000, 4000), process(3000, 3000)], (7.168, 7.168)),
    ([('Name:\tgone\nState:\tZ (zombie)\n', '')], (0, 0)),
    ([], (0, 0)),
])
def test_a_program_has_what_its_processes_have(found: list[tuple[str, str]], expected: tuple[float, float]) -> None:
    measured = memory.of_family(found)
    assert (measured.now, measured.most) == pytest.approx(expected)


def test_the_most_is_remembered_when_it_is_freed() -> None:
    script = 'import sys; x = bytearray(50_000_000); del x; print(flush=True); sys.stdin.read()'
    with subprocess.Popen([sys.executable, '-c', script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        measured = memory.measure(child.pid)
        child.communicate()
    assert 1 < measured.now < 50 < measured.most < 150


LOG = '''
22-Nov-2026 03:56:12.760 received control channel command 'addzone "a.example.com." IN _default { type secondary; };'
22-Nov-2026 03:56:12.764 added zone a.example.com. in view _default via addzone
22-Nov-2026 03:56:12.868 zone a.example.com/IN: transferred serial 7
22-Nov-2026 03:56:12.868 transfer of 'a.example.com/IN' from 127.0.0.1#5354: Transfer completed: 1 messages (serial 7)
22-Nov-2026 03:56:13.116 client @0x7f4c03c33098 127.0.0.1#47161: received notify for zone 'a.example.com'
22-Nov-2026 03:56:13.128 client @0x7f4c03c33098 127.0.0.1#47161: received notify for zone 'a.example.com'
22-Nov-2026 03:56:13.136 zone a.example.com/IN: transferred serial 8
22-Nov-2026 03:56:13.256 received control channel command 'showzone "a.example.com." IN _default'
22-Nov-2026 03:56:13.256 received control channel command 'delzone -clean "a.example.com." IN _default'
22-Nov-2026 03:56:13.257 received control channel command 'delzone -clean "b.example.com." IN _default'
22-Nov-2026 03:56:13.258 received control channel command 'delzone -clean "a.example.com." IN _default'
'''


def found(seconds: float, **again: int) -> Found:
    step = Step('', seconds, seconds / 2, {'central': seconds / 4}, 0)
    return Found(dict.fromkeys(pairs.STEPS, step), [seconds, 2 * seconds, 6 * seconds], dict.fromkeys(pairs.DEEDS, 10),
                 {deed: again.get(deed, 0) for deed in pairs.DEEDS})


def test_what_a_server_did_is_counted_from_its_log() -> None:
    counts = tally(LOG)
    assert {deed: (each.total(), repeated(each)) for deed, each in counts.items()} == {
        'addzone': (1, 0), 'delzone': (3, 1), 'NOTIFY': (2, 1), 'transfer of a serial': (2, 0)}
    assert counts['delzone'] == {'a.example.com.': 2, 'b.example.com.': 1}


def test_a_driver_that_tells_a_server_twice_is_a_fault() -> None:
    assert told_again([found(1), found(2, NOTIFY=5)]) == {}
    assert told_again([found(1, delzone=1), found(2, delzone=2, NOTIFY=1)]) == {'delzone': 3}


def test_the_json_has_every_figure_with_its_ratio(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Report('example', {'domains': 3})
    report.add('create', 6.0, 's', 2.0, 'the limit')
    report.add('idle', 0.0, 's')
    report.details['more'] = [1]
    report.finish(tmp_path / 'report.json')
    written = json.loads((tmp_path / 'report.json').read_text())
    assert written['figures'] == [
        {'name': 'create', 'ours': 6.0, 'other': 2.0, 'other_name': 'the limit', 'ratio': 3.0, 'unit': 's'},
        {'name': 'idle', 'ours': 0.0, 'other': None, 'other_name': None, 'ratio': None, 'unit': 's'}]
    assert (written['benchmark'], written['parameters']) == ('example', {'domains': 3})
    assert written['details'] == {'more': [1]}
    assert written['machine'].keys() == {'cores', 'python', 'version', 'load_before'}
    printed = capsys.readouterr().out.splitlines()
    assert [line.split() for line in printed if 'the limit' in line] == [
        ['create', '6', 's', '2', '3', 'the', 'limit']]


def test_another_of_nothing_has_no_ratio() -> None:
    report = Report('example', {})
    report.add('statements', 3.0, '', 0.0, 'none at all')
    assert report.figures[0].ratio is None


@pytest.mark.parametrize(('count', 'share', 'expected'), [
    (1, 0.99, 1), (100, 0.99, 99), (200, 0.99, 198), (3, 0, 1), (4, 1, 4),
])
def test_a_percentile_is_one_of_the_samples(count: int, share: float, expected: int) -> None:
    assert percentile(list(range(count, 0, -1)), share) == expected


@contextlib.contextmanager
def answering(serials: Mapping[str, list[int | None]]) -> Iterator[Endpoint]:
    """A name server that gives the serials of a zone one after the other, REFUSED for None, and stays at the last."""
    left = {name: list(values) for name, values in serials.items()}

    def answer(query: dns.message.Message, over_tcp: bool) -> Answers:
        values = left[query.question[0].name.to_text()]
        value = values.pop(0) if len(values) > 1 else values[0]
        return [soa_answer(query, 0, rcode=dns.rcode.REFUSED) if value is None else soa_answer(query, value)]

    with contextlib.closing(Scripted(answer)) as server:
        yield Endpoint(server.host, server.port)


def test_it_waits_until_every_server_has_every_serial() -> None:
    first = {'a.example.com.': [1, 1, 2], 'b.example.com.': [None, 7]}
    second = {'a.example.com.': [2], 'b.example.com.': [7]}
    with answering(first) as one, answering(second) as other:
        await_serials([one, other], {'a.example.com.': 2, 'b.example.com.': 7}, 10.0)


def test_it_waits_until_a_zone_is_refused() -> None:
    with answering({'a.example.com.': [5, 5, None]}) as server:
        await_serials([server], {'a.example.com.': None}, 10.0)


def test_another_serial_is_never_enough() -> None:
    with answering({'a.example.com.': [3]}) as server, pytest.raises(AssertionError, match='1 answers'):
        await_serials([server], {'a.example.com.': 2}, 0.05)


def test_a_process_stands_still_with_all_that_it_started_and_goes_on() -> None:
    with subprocess.Popen(['sh', '-c', 'sleep 60 & wait'], start_new_session=True) as shell:
        process = psutil.Process(shell.pid)
        wait_until(process.children, 'it has started another')
        family = [process, *process.children()]
        with paused(shell.pid):
            wait_until(lambda: {each.status() for each in family} == {psutil.STATUS_STOPPED}, 'both stand still')
        wait_until(lambda: psutil.STATUS_STOPPED not in {each.status() for each in family}, 'both go on')
        for each in family:
            each.kill()


def test_it_goes_on_while_the_broker_and_the_database_are_away() -> None:
    url = f'sqlite:////nowhere/{os.getpid()}/pool.db'
    broker = types.SimpleNamespace(url=f'rabbit://guest:guest@127.0.0.1:{free_port()}/')
    with Sampler({'this': os.getpid()}, broker, url, pause=0.01) as sampler:  # type: ignore[arg-type]
        wait_until(lambda: sampler.missed >= 4, 'both were tried twice')
        wait_until(lambda: len(sampler.samples[Series('MiB', 'this')]) >= 3, 'the process is measured')


@pytest.mark.parametrize(('values', 'grows'), [
    ([100.0] * 60, False),
    ([20.0] * 10 + [100.0] * 50, False),                      # warming up
    ([100.0 + number for number in range(60)], True),
    ([100.0 + number / 10 for number in range(60)], False),   # within the slack
    ([100.0] * 30 + [300.0] + [100.0] * 29, False),           # one fault
    ([1000.0 + number for number in range(60)], False),       # less than a tenth
], ids=['level', 'warming up', 'a leak', 'a little', 'a peak', 'large and level'])
def test_what_goes_on_growing_is_told(values: list[float], grows: bool) -> None:
    series, result = Series('MiB', 'api'), Report('soak', {})
    assert tell(result, {series: [(float(at), value) for at, value in enumerate(values)]}, 1) == [series] * grows
    assert result.figures[0].unit in SLACK


def test_every_request_is_answered_and_timed() -> None:
    with BareApi(3000) as bare:
        found = drive(bare.port, [prepare('GET', '/'), prepare('POST', '/', {'name': 'example.com.'})], 50, 4)
        with Neighbours(bare.port, 5, 2, prepare('GET', '/')):
            beside = drive(bare.port, [prepare('GET', '/')], 10, 2)
    assert (len(found.times), found.statuses, beside.statuses) == (50, {200: 50}, {200: 10})
    assert list(found.times) == sorted(found.times) and found.rate > 0


def test_a_server_that_hangs_up_ends_the_run() -> None:
    with BareApi(10) as bare:
        port = bare.port
    with pytest.raises(OSError):
        drive(port, [prepare('GET', '/')], 2, 1)
