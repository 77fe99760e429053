"""MiniDNS in this process, on a SQLite file, with a pool manager that only listens."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import dns.message
import dns.query
import dns.rdatatype
import dns.rrset
import dns.xfr
import dns.zone
import pytest

from designate_pool.cmd.compose.services import tls_context
from designate_pool.errors import ServiceUnavailable
from designate_pool.minidns.service import MiniDns
from designate_pool.model import Context, Endpoint, PollResult, Pool, Server, TsigKey
from designate_pool.runtime import Threads
from designate_pool.settings import MiniDnsSettings
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import metadata
from testing import asking
from testing.asking import keyring
from testing.minidns import alone
from testing.zones import insert_zone

SECRET = base64.b64encode(b'a secret of thirty-two octets...').decode()
KEY = TsigKey('pool-key.', 'hmac-sha256', SECRET)
WRONG = TsigKey('pool-key.', 'hmac-sha256', base64.b64encode(b'another secret').decode())
PLAIN = Server(id='a' * 32, driver='fake', host='127.0.0.1', port=1)
PLAIN6 = Server(id='c' * 32, driver='fake', host='::1', port=1)
KEYED = Server(id='b' * 32, driver='fake', host='192.0.2.2', port=1, tsig_key=KEY)


def a_pool(*servers: Server, catalog_zone: str | None = None) -> Pool:
    return Pool('default', servers=servers, catalog_zone=catalog_zone)


class Listening:
    """What stands in for the pool manager: it remembers what it was told, or cannot be reached."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[PollResult]]] = []
        self.told: list[tuple[Any, ...]] = []
        self.pages: list[tuple[Any, ...]] = []
        self.repeated: list[str] = []
        self.down = False
        self.tried = 0

    def update_statuses(self, context: Context, pool_name: str, results: list[PollResult]) -> None:
        self._reach()
        self.batches.append((pool_name, list(results)))

    def update_status(self, *arguments: Any) -> None:
        self._reach()
        self.told.append(arguments)

    def audited(self, *arguments: Any) -> None:
        self._reach()
        self.pages.append(arguments)

    def repeat_polls(self, context: Context, pool_name: str) -> None:
        self._reach()
        self.repeated.append(pool_name)

    def _reach(self) -> None:
        self.tried += 1
        if self.down:
            raise ServiceUnavailable(service='pool_manager.default', why='no broker')

    @property
    def results(self) -> list[PollResult]:
        return [result for _, results in list(self.batches) for result in results]


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    return f'sqlite:///{tmp_path}/pool.sqlite'


@pytest.fixture
def sqlite(url: str) -> Iterator[Storage]:
    """A SQLite file with the tables and the zone example.com."""
    sqlite = Storage(url, patience=0.2)
    metadata.create_all(sqlite.engine)
    sqlite.run(insert_zone)
    yield sqlite
    sqlite.close()


class LocalMiniDns:
    """Starts MiniDNS in this process; all end with the test."""

    def __init__(self, storage: Storage, ends: contextlib.ExitStack) -> None:
        self.storage = storage
        self.pool_manager = Listening()
        self._ends = ends

    def start(self, *servers: Server, hosts: tuple[str, ...] = ('127.0.0.1',), packed_zones_bytes: int = 1 << 28,
              settings: MiniDnsSettings = MiniDnsSettings(), **options: Any) -> MiniDns:
        pool = a_pool(*servers or (PLAIN, PLAIN6, KEYED))
        settings = dataclasses.replace(settings, listen=tuple(Endpoint(host, 0) for host in hosts),
                                       packed_zones_bytes=packed_zones_bytes)
        if settings.listen_tls:
            options['tls_context'] = tls_context(settings)
        service = MiniDns(self.storage, pool, settings, self.pool_manager,  # type: ignore[arg-type]
                          Threads(), **{**alone(Threads()), **options})
        service.start()
        self._ends.callback(service.stop)
        return service


@pytest.fixture
def minidns(sqlite: Storage) -> Iterator[LocalMiniDns]:
    with contextlib.ExitStack() as ends:
        yield LocalMiniDns(sqlite, ends)


def transfer(endpoint: Endpoint, name: str = 'example.com.', key: TsigKey | None = None) -> dns.zone.Zone:
    """The zone by AXFR."""
    return asking.transfer(endpoint, name, key)


class Remembered:
    """A zone that MiniDNS serves at :attr:`endpoint`.

    :ivar was: the zone at each of its serials, as a server that transferred it whole has it
    """

    endpoint: Endpoint

    def __init__(self, name: str) -> None:
        self.name = name
        self.was: dict[int, dns.zone.Zone] = {}

    def remember(self) -> int:
        """Its serial now."""
        zone = transfer(self.endpoint, self.name)
        serial = int(zone.get_soa().serial)
        self.was[serial] = zone
        return serial

    def ask(self, client_serial: int, key: TsigKey | None = None,
            over: Callable[..., dns.message.Message] = dns.query.tcp, **options: Any) -> dns.message.Message:
        """The answer to an IXFR query, which has to come in one message."""
        query = dns.message.make_query(self.name, 'IXFR', flags=0, **options)
        query.authority.append(dns.rrset.from_text(self.name, 0, 'IN', 'SOA', f'. . {client_serial} 0 0 0 0'))
        if key is not None:
            query.use_tsig(keyring(key))
        return over(query, self.endpoint.host, port=self.endpoint.port, timeout=10, one_rr_per_rrset=True)

    def serials(self, client_serial: int, **options: Any) -> list[int]:
        """The serials of the SOA records in the answer: twice the present one for the whole zone."""
        return serials_in(self.ask(client_serial, **options))

    def bring(self, client_serial: int, key: TsigKey | None = None,
              by: dns.query.UDPMode = dns.query.UDPMode.NEVER) -> dns.zone.Zone:
        """What a server with the zone at *client_serial* makes of the answer."""
        zone = dns.zone.Zone(self.name, relativize=False)
        with zone.writer() as writer:
            for owner, rdataset in self.was[client_serial].iterate_rdatasets():
                writer.add(owner, rdataset)
        query, _ = dns.xfr.make_query(zone, keyring=None if key is None else keyring(key))
        assert query.question[0].rdtype == dns.rdatatype.IXFR
        dns.query.inbound_xfr(self.endpoint.host, zone, query, port=self.endpoint.port, timeout=10, lifetime=20,
                              udp_mode=by)
        return zone


def serials_in(message: dns.message.Message) -> list[int]:
    return [rrset[0].serial for rrset in message.answer if rrset.rdtype == dns.rdatatype.SOA]


def ask(endpoint: Endpoint, name: str = 'example.com.', rtype: str = 'SOA', key: TsigKey | None = None,
        over: Callable[..., dns.message.Message] = dns.query.udp) -> dns.message.Message:
    query = dns.message.make_query(name, rtype)
    if key is not None:
        query.use_tsig(keyring(key))
    return over(query, endpoint.host, port=endpoint.port, timeout=5)


def serial_of(message: dns.message.Message) -> int:
    return int(message.answer[0][0].serial)


def zone_of(text: str, name: str = 'example.com.') -> dns.zone.Zone:
    return dns.zone.from_text(text, origin=name, relativize=False, check_origin=False)
