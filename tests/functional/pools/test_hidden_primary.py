"""A server that is verified at other addresses than its own: a hidden primary, and the public servers behind it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from testing.processes import wait_until
from testing.stack import Stack
from tests.fixtures.nameservers import Primary, SecondaryServer, zone_text

HIDDEN, OPEN = str(uuid.uuid4()), str(uuid.uuid4())


class Public(Primary):
    """A public server, which has of the hidden primary what the test lets it fetch."""

    def fetch(self, name: str, hidden: SecondaryServer) -> None:
        serial = hidden.serial(name)
        assert serial is not None
        self.publish(name, zone_text(serial))


@pytest.fixture(scope='module')
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondaryServer]:
    found = SecondaryServer(tmp_path_factory.mktemp('hidden')).start()
    yield found
    found.stop()


@pytest.fixture(scope='module')
def public() -> Iterator[list[Public]]:
    found = [Public(), Public()]
    for each in found:
        each.start()
    yield found
    for each in found:
        each.stop()


@pytest.fixture(scope='module')
def stack(tmp_path_factory: pytest.TempPathFactory, hidden: SecondaryServer, public: list[Public]) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp('pool')
    with SecondaryServer(folder / 'open') as visible, Stack(folder, [
            hidden.section(HIDDEN, verify=', '.join(str(each.endpoint) for each in public), call_timeout=2),
            visible.section(OPEN, call_timeout=2)], f'sqlite:///{folder}/pool.sqlite') as running:
        yield running


def row(stack: Stack, zone: str) -> Any:
    return stack.servers(zone)[HIDDEN]


def blamed(stack: Stack, zone: str, public: Public) -> None:
    """Wait until the pool says that the server does not serve the zone, and at which address."""
    def is_named() -> bool:
        found = row(stack, zone)
        return not found['current'] and str(public.endpoint) in (found['last_error'] or '')

    wait_until(is_named, f'{public.endpoint} is named', 60)


def test_a_change_is_active_when_every_address_serves_it(stack: Stack, hidden: SecondaryServer,
                                                         public: list[Public]) -> None:
    name = 'hidden.example.com.'
    zone = stack.create_zone(name)['id']
    for number in range(2):
        wanted = stack.zone(zone)['serial']
        wait_until(lambda: hidden.serial(name) == wanted, 'the hidden primary has it')
        blamed(stack, zone, public[0])
        assert stack.zone(zone)['status'] != 'ACTIVE'
        public[0].fetch(name, hidden)
        blamed(stack, zone, public[1])
        public[1].fetch(name, hidden)
        stack.wait_for(zone)
        assert row(stack, zone)['serial'] == wanted
        if not number:
            stack.create_recordset(zone, f'www.{name}', 'A', '192.0.2.1')
    state = stack.servers_state()
    assert (state[HIDDEN]['verify'], state[OPEN]['verify']) == ([str(each.endpoint) for each in public], [])


def test_an_address_that_loses_a_zone_is_found(stack: Stack, hidden: SecondaryServer, public: list[Public]) -> None:
    name = 'lost.example.com.'
    zone = stack.create_zone(name)['id']
    wait_until(lambda: hidden.serial(name), 'the hidden primary has it')
    for each in public:
        each.fetch(name, hidden)
    stack.wait_for(zone)
    for each in public:
        each.delete_zone(name)
        blamed(stack, zone, each)
        each.fetch(name, hidden)
        wait_until(lambda: row(stack, zone)['current'], 'it is served again', 60)
    stack.wait_for(zone)
    stack.must_be_sound()
