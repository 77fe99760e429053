"""NOTIFYs of masters, which anybody may send: what they cost, and how they are answered."""

from __future__ import annotations

from collections.abc import Sequence

import dns.message
import dns.opcode
import dns.rcode
import pytest
import sqlalchemy as sa

from designate_pool.minidns.database_watch import TsigGrants
from designate_pool.minidns.server.query_handler import RATE, NotifyReceiver, QueryHandler
from designate_pool.minidns.servers import HostAddresses, PoolServers, make_server_table
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains
from testing.databases import count_statements
from testing.zones import big_zone, insert_zone
from tests.functional.minidns.conftest import PLAIN, a_pool

MASTER = '192.0.2.53'
NAMES = [f'z{number}.example.' for number in range(5)]


class Notified:
    """What answers, with secondary zones named :data:`NAMES`.

    :ivar ids: of their domains, by name
    :ivar requested: the domains to refresh
    """

    def __init__(self, storage: Storage) -> None:
        self.ids = {name: storage.run(insert_zone, big_zone(0), name=name) for name in NAMES}
        storage.run(lambda tx: tx.execute(domains.update().where(domains.c.name.in_(NAMES))
                                          .values(masters=f'192.0.2.52:53,{MASTER}:53')) and None)
        self.requested: list[str] = []
        servers = PoolServers(make_server_table(a_pool(PLAIN), HostAddresses()))
        self._handler = QueryHandler(storage, servers, TsigGrants(storage), 1 << 20, lambda peers, zone: None,
                                     NotifyReceiver(storage, 'default', self.requested.append, clock=lambda: 100.0))

    def answer(self, *messages: tuple[str, dns.message.Message]) -> list[str | None]:
        """The codes of the answers to *messages*, from these addresses, which come together; None for no answer."""
        answers = self._handler.answer(self._handler.parse(
            [(message.to_wire(), address) for address, message in messages], over_tcp=False))
        return [dns.rcode.to_text(dns.message.from_wire(each).rcode()) if isinstance(each, bytes) else None
                for each in answers]


@pytest.fixture
def notified(sqlite: Storage) -> Notified:
    return Notified(sqlite)


def soa(name: str) -> dns.message.Message:
    return dns.message.make_query(name, 'SOA', flags=0)


def notify(name: str) -> dns.message.Message:
    message = soa(name)
    message.set_opcode(dns.opcode.NOTIFY)
    return message


def notifies(names: Sequence[str], address: str = MASTER) -> list[tuple[str, dns.message.Message]]:
    return [(address, notify(name)) for name in names]


def test_those_that_come_together_are_looked_up_in_one_go(sqlite: Storage, notified: Notified) -> None:
    with count_statements(sqlite) as counter:
        answers = notified.answer(*notifies(NAMES), *notifies(NAMES[:1], '192.0.2.9'), (PLAIN.host, soa('example.com')),
                                  *notifies(['example.com', 'example.net'], PLAIN.host))
    assert answers == [*['NOERROR'] * 5, 'REFUSED', 'NOERROR', 'NOTAUTH', 'NOTAUTH']
    assert notified.requested == [notified.ids[name] for name in NAMES]
    assert counter.total() == 2, 'the heads and the masters'


def test_names_beyond_the_rate_get_no_answer(notified: Notified) -> None:
    others = [f'n{number}.example.net' for number in range(RATE - 2)]
    assert notified.answer(*notifies(others)) == ['NOTAUTH'] * len(others)
    assert notified.answer(*notifies(NAMES)) == ['NOERROR', 'NOERROR', None, None, None]
    assert notified.answer(*notifies(NAMES), (PLAIN.host, soa('example.com'))) == [None] * 5 + ['NOERROR']


@pytest.mark.parametrize('asked', [[], [(PLAIN.host, soa('example.com'))]], ids=['alone', 'beside a query'])
def test_without_the_database_the_others_wait_for_one_attempt(
        sqlite: Storage, notified: Notified, asked: list[tuple[str, dns.message.Message]]) -> None:
    sqlite.run(lambda tx: tx.execute(sa.text('ALTER TABLE domains RENAME TO away')) and None)
    with count_statements(sqlite) as counter:
        answers = notified.answer(*notifies(NAMES), *asked)
    assert set(answers) == {'SERVFAIL'}
    assert counter.total() == 1
