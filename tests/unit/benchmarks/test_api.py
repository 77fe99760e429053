"""The clients of the benchmark ``api``, on the HTTP server that it compares with."""

from __future__ import annotations

import pytest

from benchmarks.api_bare import BareApi
from benchmarks.api_clients import Neighbours, drive, prepare


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
