"""A zone's life on every combination of broker, database and concurrency that the main tests do not use.

Three real BINDs each: over RabbitMQ and PostgreSQL, and all in one process on SQLite, with native threads.
"""

from __future__ import annotations

import pytest

from tests.functional.pools.conftest import ALL, ThreeBinds

COMBINATIONS = {
    'RabbitMQ, PostgreSQL, threading': ('rabbitmq', 'postgresql', 'threading'),
    'SQLite, threading': (None, None, 'threading'),
}


@pytest.mark.parametrize('binds', COMBINATIONS.values(), ids=list(COMBINATIONS), indirect=True)
def test_create_change_and_delete(binds: ThreeBinds) -> None:
    zone, recordset = binds.create('plain.example.com.')
    changed = binds.stack.set_recordset(zone, recordset, '192.0.2.2', '192.0.2.3')
    assert changed['status'] == 'PENDING'
    active = binds.stack.wait_for(zone)
    assert [named.addresses('plain.example.com.') for named in binds.named] == [['192.0.2.2', '192.0.2.3']] * 3
    assert [binds.row(zone, number)['serial'] for number in ALL] == [active['serial']] * 3
    binds.stack.delete_zone(zone)
    binds.stack.wait_for(zone, 'gone')
    assert binds.who_has('plain.example.com.') == []
    again, _ = binds.create('plain.example.com.', '192.0.2.9')
    assert again != zone and binds.stack.zone(again)['serial'] > active['serial']
    # Nothing to add, nothing to delete twice: the second round gave each server one command more.
    assert (binds.calls('addzone', 'plain.example.com.'), binds.calls('delzone', 'plain.example.com.')) == (
        [2, 2, 2], [1, 1, 1])
