"""The programs, servers and workload of the laboratory, and the schedule of its faults."""

from __future__ import annotations

import importlib
import itertools
import pathlib
import pkgutil

import dns.rdata
import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.settings import DatabaseSettings
from testing.databases import MAX_CONNECTIONS
from tests import torture
from tests.torture import lab, schedule, workload
from tests.torture.clients import Answer, Http
from tests.torture.history import CREATE, DELETE, RESTORE, History
from tests.torture.schedule import FaultKind

MODULES = [each.name for each in pkgutil.iter_modules([str(pathlib.Path(torture.__file__).parent)])]


def test_the_database_accepts_the_connections_of_all_services() -> None:
    """A cut link or many late messages have all of them open what they may."""
    pool_size = DatabaseSettings().pool_size
    assert MAX_CONNECTIONS >= 2 * pool_size * len(lab.SERVICES) + 50


@pytest.mark.parametrize('name', MODULES)
def test_every_module_finds_what_it_imports(name: str) -> None:
    """Several are imported by ``make torture`` and ``make torture-selftest`` alone."""
    importlib.import_module(f'{torture.__name__}.{name}')


KINDS = [FaultKind('kill', ('one', 'two'), 'process', 1, 10, 3), FaultKind('pause', ('one',), 'process', 6, 15),
         FaultKind('cut', ('one-two', 'two-one'), 'link', 5, 20), FaultKind('clock', ('one', 'two'), 'clock', 10, 30),
         FaultKind('lose', ('x', 'y', 'z'), 'cluster', 1, 5, alone=True),
         FaultKind('fill', ('x', 'y'), 'cluster', 1, 5, alone=True)]


@given(seed=st.integers(0, 1 << 32), seconds=st.floats(30, 600), at_once=st.floats(0.5, 6))
def test_faults_end_in_time_and_one_at_a_time_is_done_to_a_target(seed: int, seconds: float, at_once: float) -> None:
    planned = schedule.make(KINDS, seed, seconds, at_once)
    kinds = {kind.name: kind for kind in KINDS}
    assert planned == schedule.make(KINDS, seed, seconds, at_once)
    assert planned == schedule.from_json(schedule.to_json(planned))
    assert [each.number for each in planned] == list(range(len(planned)))
    for each in planned:
        kind = kinds[each.fault]
        assert each.target in kind.targets
        assert kind.shortest - 0.1 <= each.seconds <= kind.longest + 0.1
        assert each.at + each.seconds <= seconds + 0.2
    for one, other in itertools.combinations(planned, 2):
        first, second = kinds[one.fault], kinds[other.fault]
        if first.group == second.group and (first.alone or one.target == other.target):
            assert one.at + one.seconds <= other.at


def test_a_long_schedule_has_every_kind_and_overlaps() -> None:
    planned = schedule.make(KINDS, 1, 300)
    assert {each.fault for each in planned} == {kind.name for kind in KINDS}
    assert schedule.make(KINDS, 2, 300) != planned
    assert any(one.at < other.at < one.at + one.seconds for one, other in itertools.combinations(planned, 2))


def test_a_favoured_fault_comes_early_and_often() -> None:
    def begin(seed: int, favoured: str = '') -> list[float]:
        return [each.at for each in schedule.make(KINDS, seed, 75, favoured=favoured) if each.fault == 'fill']

    assert all(begin(seed, 'fill')[0] < 20 for seed in range(20))
    assert sum(len(begin(seed, 'fill')) for seed in range(20)) > 2 * sum(len(begin(seed)) for seed in range(20))


@pytest.mark.parametrize('rtype', workload.TYPES)
def test_records_are_as_servers_show_them_and_of_one_operation(rtype: str) -> None:
    seen: dict[str, int] = {}
    for op in (0, 1, 7, 255, 256, 65535, 65536, 300_000):
        for text in workload.records_of(rtype, op, two=True):
            assert dns.rdata.from_text('IN', rtype, text).to_text() == text
            assert seen.setdefault(text, op) == op
    assert len(workload.records_of(rtype, 1)) == 1


def test_a_zone_tells_who_created_it() -> None:
    assert workload.life_of_email(workload.email_of(12)) == 12
    assert workload.life_of_rname('op12.kit.example.') == 12
    assert workload.life_of_rname('hostmaster.example.org.') is None


def test_zones_whose_name_is_used_once_are_deleted_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []

    class Api(Http):
        def __init__(self, url: str, token: str | None, *rest: object) -> None:
            self._token = token

        def delete(self, zone_id: str) -> Answer:
            sent.append((self._token or '', zone_id))
            return Answer(zone_id, 1, 202)

    monkeypatch.setattr(workload, 'Http', Api)
    history = History()
    made = workload.Workload(history, ['http://192.0.2.1'], {'ada': 'token of ada', 'bea': 'token of bea'}, 1)
    for life, name in enumerate(['once0.ada.example.', 'z0.ada.example.', 'once0.bea.example.', 'once1.bea.example.'],
                                1):
        tenant = name.split('.')[-3]
        made._do(life, 'c', tenant, CREATE, name, life, [], lambda life=life: Answer(f'id{life}', 1, 202))
    assert made.lone_names() == ['once0.ada.example.', 'once0.bea.example.', 'once1.bea.example.']
    assert made.delete(['once0.ada.example.', 'once1.bea.example.', 'once7.bea.example.']) == 2
    assert sent == [('token of ada', 'id1'), ('token of bea', 'id4')]
    assert made.lone_names() == ['once0.bea.example.']
    assert [each['zone'] for each in history.events() if each.get('type') == DELETE] == [
        'once0.ada.example.', 'once1.bea.example.']


def test_a_restored_zone_that_is_signed_is_so_too_for_who_looks_at_its_former_life() -> None:
    history = History()
    made = workload.Workload(history, ['http://192.0.2.1'], {'ada': 'token of ada'}, 1, signing=True)
    for op, kind in enumerate((CREATE, DELETE, RESTORE), 1):
        made._do(op, 'c', 'ada', kind, 'z0.ada.example.', 1, [], lambda op=op: Answer('id', op, 202))
    made._zones[3].is_signed = True
    made._shown(1.0, 'ada', made._zones[1], {'status': 'ACTIVE', 'action': 'NONE', 'serial': 4})
    assert history.events()[-1]['signed']


def test_an_event_has_what_events_of_its_kind_have() -> None:
    with pytest.raises(AssertionError, match='healed'):
        History().add('healed', when='now')
