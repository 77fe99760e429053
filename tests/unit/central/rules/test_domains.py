"""How a domain begins and what a change makes of it."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from designate_pool.central.rules import domains as rules
from designate_pool.central.validation.requests import NewDomain
from designate_pool.model import Action, Domain, Pool, RecordSet, Status, Task
from designate_pool.serial import SPACE, newer
from designate_pool.storage import queries

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
CLOCK = int(NOW.timestamp())
POOL = Pool('default', id='1' * 32, name_servers=('ns1.example.net.', 'ns2.example.net.'))
serials = st.integers(0, SPACE - 1)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, 'time', SimpleNamespace(time=lambda: CLOCK))


def new(last_serial: int | None = None, last_generation: int = 0) -> Domain:
    return rules.create('0' * 32, NewDomain('example.com.', 'host.master@example.com'), POOL, '', last_serial,
                        last_generation, NOW)


def test_a_new_domain_is_to_be_created() -> None:
    domain = new()
    assert (domain.action, domain.status, domain.serial, domain.generation) == (
        Action.CREATE, Status.PENDING, CLOCK, 1)


def test_a_name_that_comes_back_goes_on_where_it_ended() -> None:
    domain = new(last_serial=CLOCK + 7, last_generation=4)
    assert (domain.serial, domain.generation) == (CLOCK + 8, 5)


def test_a_zone_files_serial_is_passed() -> None:
    assert rules.first_serial(None, 2026010203, CLOCK) == 2026010204
    assert rules.first_serial(None, 5, CLOCK) == CLOCK
    assert rules.first_serial(CLOCK + 100, CLOCK + 50, CLOCK) == CLOCK + 101


@given(serials, serials, serials)
def test_a_first_serial_is_newer_than_the_last_of_its_name(last: int, lowest: int, now: int) -> None:
    assert newer(rules.first_serial(last, lowest, now), last)


@given(serials, serials)
def test_a_first_serial_of_a_new_name_is_newer_than_the_files(lowest: int, now: int) -> None:
    assert newer(rules.first_serial(None, lowest, now), lowest)


def test_a_change_is_an_update_once_the_creation_was_reported() -> None:
    assert rules.change(new(), NOW).action is Action.CREATE
    served = dataclasses.replace(new(), action=Action.NONE, status=Status.ACTIVE, reported_serial=CLOCK)
    changed = rules.change(served, NOW)
    assert (changed.action, changed.status, changed.serial) == (Action.UPDATE, Status.PENDING, CLOCK + 1)


def test_the_end_of_a_domain_has_a_serial_and_a_generation_of_its_own() -> None:
    ended = rules.delete(new(), NOW)
    assert (ended.action, ended.status, ended.serial, ended.generation) == (
        Action.DELETE, Status.PENDING, CLOCK + 1, 2)
    assert ended.deleted_at == NOW


def test_the_soa_is_made_from_the_domain() -> None:
    soa, _ = rules.from_pool(new())
    (record,) = queries.whole_recordset(soa, new(), 'ns1.example.net.').records
    assert record.data == rf'ns1.example.net. host\.master.example.com. {CLOCK} 3600 600 86400 3600'
    assert (record.task, record.status, record.serial_number) == (Task.ADD, Status.PENDING, CLOCK)


def test_other_recordsets_are_left_alone() -> None:
    other = RecordSet('www.example.com.', 'A')
    assert queries.whole_recordset(other, new(), 'ns1.example.net.') == other
