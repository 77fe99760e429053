"""Many changes to a domain while its server is still fetching an older one."""

from __future__ import annotations

import concurrent.futures
import contextlib
import pathlib
import uuid
from collections.abc import Iterator

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from designate_pool.model import Endpoint
from testing.processes import free_port, wait_until
from testing.stack import Stack
from tests.fixtures.nameservers import SecondaryServer
from tests.fixtures.road import Road

#: Nothing that a timer does comes into it.
PATIENT = {'poll_timeout': '60', 'poll_retry_interval': '60', 'poll_max_retries': '3', 'claim_seconds': '600',
           'periodic_sync_interval': '600'}
CHANGES = 10
#: More than the buffers on the way hold.
BIG = '\n'.join(['$ORIGIN burst.example.com.', '$TTL 300', '@ SOA ns1.example.org. a.example.com. 1 3600 600 86400 300',
                 *(f't{number} TXT {" ".join([chr(34) + "x" * 250 + chr(34)] * 16)}' for number in range(120)), ''])


class Burst:
    """A running system with one server, and a zone that is served.

    :ivar to_minidns: the server's way to its primary
    :ivar to_server: MiniDNS's way to the server
    """

    def __init__(self, folder: pathlib.Path, ends: contextlib.ExitStack) -> None:
        self.server = SecondaryServer(folder / 'server').start()
        ends.callback(self.server.stop)
        minidns_port = free_port()
        self.to_minidns, self.to_server = Road(minidns_port), Road(self.server.port)
        ends.callback(self.to_minidns.stop)
        ends.callback(self.to_server.stop)
        section = self.server.section(str(uuid.uuid4()), [Endpoint('127.0.0.1', self.to_minidns.port)])
        section = section.replace(f'\nport = {self.server.port}\n', f'\nport = {self.to_server.port}\n')
        self._metrics = f'127.0.0.1:{free_port()}'
        self.stack = Stack(folder / 'stack', [f'[service:central]\nmetrics = {self._metrics}\n{section}'],
                           f'sqlite:///{folder}/pool.sqlite', manager=PATIENT, minidns_port=minidns_port)
        ends.enter_context(self.stack)
        self.zone = self.stack.import_zone(BIG)
        self.stack.wait_for(self.zone)

    def change(self, number: int) -> int:
        """Add a record; the zone's serial with it."""
        self.stack.create_recordset(self.zone, f'new{number}.burst.example.com.', 'A', '192.0.2.1')
        return int(self.stack.zone(self.zone)['serial'])

    def wait(self, serial: int) -> bool:
        """Whether the API says that the serial is served, once it does."""
        answer = self.stack.request('GET', f'/v2/zones/{self.zone}/wait?serial={serial}&timeout=50', 200)
        return bool(answer['done'])

    def reports(self) -> int:
        """How often the zone has become ACTIVE, as Central counts."""
        text = requests.get(f'http://{self._metrics}/metrics', timeout=30).text
        return int(sum(sample.value for family in text_string_to_metric_families(text) for sample in family.samples
                       if sample.name == 'designate_pool_domain_transitions_total'
                       and sample.labels['status'] == 'ACTIVE'))

    def counts(self) -> tuple[int, int, int]:
        """NOTIFYs, transfers and reports so far."""
        return len(self.to_server.notifies), self.to_minidns.connections, self.reports()


@pytest.fixture
def burst(tmp_path: pathlib.Path) -> Iterator[Burst]:
    with contextlib.ExitStack() as ends:
        yield Burst(tmp_path, ends)


def test_ten_changes_during_a_transfer_are_one_notify_one_transfer_and_one_report(burst: Burst) -> None:
    for round_ in range(2):
        notifies, transfers, reports = burst.counts()
        burst.to_minidns.slow()
        burst.change(round_ * 100)
        wait_until(lambda: burst.to_minidns.connections > transfers, 'a transfer is on its way')
        with concurrent.futures.ThreadPoolExecutor(CHANGES) as waiters:
            serials = [burst.change(round_ * 100 + number) for number in range(1, 1 + CHANGES)]
            waits = [waiters.submit(burst.wait, serial) for serial in serials]
            assert burst.counts() == (notifies + 1, transfers + 1, reports)
            burst.to_minidns.free()
            assert [each.result(60) for each in waits] == [True] * CHANGES
        burst.stack.wait_for(burst.zone)
        assert burst.server.serial('burst.example.com.') == serials[-1]
        assert burst.counts() == (notifies + 2, transfers + 2, reports + 1)
