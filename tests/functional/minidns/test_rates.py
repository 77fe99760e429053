"""A server that limits how many answers it gives."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable

from designate_pool.model import Answer, PollRequest
from designate_pool.storage.sql.database import Storage
from testing.minidns import MiniDnsProcess
from testing.nsd import Nsd
from testing.processes import wait_until

SERVER = 'e' * 32
#: Answers of one kind a second, which is to say of REFUSED; what is above gets no answer, or one time in two TC.
LIMITED = 'server:\n    rrl-ratelimit: 200\n    rrl-slip: 2'


def counted(server: Nsd) -> dict[str, int]:
    """What NSD says it has had."""
    return {name: int(number) for name, number in re.findall(r'^num\.(\w+)=(\d+)$', server.control('stats_noreset'),
                                                             re.MULTILINE)}


def test_many_more_than_the_limit_are_all_answered(sqlite: Storage, url: str, tmp_path: pathlib.Path,
                                                   nsd: Callable[..., Nsd]) -> None:
    server = nsd('limited', statements=LIMITED)
    minidns = MiniDnsProcess(tmp_path, url, [{'id': SERVER, 'driver': 'nsd', 'host': server.host,
                                              'port': server.port}], 'eventlet').start()
    names = [f'gone{number}.example.com.' for number in range(1000)]
    minidns.cast('notify_and_poll', pool_name='default', timeout=60, retry_interval=1, max_retries=0,
                 requests=[PollRequest(name, name, 7, SERVER, notify=False) for name in names])
    wait_until(lambda: len(minidns.results()) >= len(names), 'all are told', 60)
    assert {result.answer for result in minidns.results()} == {Answer.NO_ZONE}
    assert {result.domain_id for result in minidns.results()} == set(names) and len(minidns.results()) == len(names)
    count = counted(server)
    assert count['truncated'] + count['dropped'] > 0, 'the limit was met'
    assert minidns.stop() == 0 and 'Traceback' not in minidns.log
