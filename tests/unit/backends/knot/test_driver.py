"""What the knot driver decides without a server."""

from __future__ import annotations

import pytest

from designate_pool.backends.knot.driver import Settings, _address, difference
from designate_pool.model import Endpoint
from designate_pool.protocol.names_and_rdata import name_of_server

WANTED: Settings = {'template': ['pool'], 'master': ['minidns']}


def commands(held: Settings | None, wanted: Settings) -> list[list[str]]:
    return [[' '.join(filter(None, [unit['command'], unit.get('item'), unit.get('data')])) for unit in block]
            for block in difference('zone', 'example.com.', held, wanted)]


@pytest.mark.parametrize('held, wanted, due', [
    (None, WANTED, [['conf-set', 'conf-set template pool', 'conf-set master minidns']]),
    (None, {'template': [], 'master': []}, [['conf-set']]),
    ({'domain': ['example.com.'], **WANTED}, WANTED, []),
    ({**WANTED, 'acl': ['theirs']}, WANTED, []),
    ({'master': ['minidns']}, WANTED, [['conf-set template pool']]),
    (WANTED, {**WANTED, 'template': []}, [['conf-unset template']]),
    ({**WANTED, 'master': ['theirs', 'minidns']}, WANTED, [['conf-unset master'], ['conf-set master minidns']]),
    (WANTED, {**WANTED, 'master': ['b', 'a']}, [['conf-unset master'], ['conf-set master b', 'conf-set master a']]),
])
def test_only_what_differs_is_changed(held: Settings | None, wanted: Settings, due: list[list[str]]) -> None:
    assert commands(held, wanted) == due


def test_a_name_has_one_form() -> None:
    forms = {name_of_server(text) for text in ('A\\.b.Example.com', 'a\\046b.example.com.', 'a\\.b.example.com.')}
    assert forms == {'a\\.b.example.com.'}


def test_an_address_is_written_as_knot_shows_it() -> None:
    assert _address(Endpoint('2001:DB8:0::1', 5354)) == '2001:db8::1@5354'
