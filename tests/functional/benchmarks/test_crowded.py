from __future__ import annotations

import pathlib

from benchmarks import crowded
from testing.knot import Knotd


def test_a_knot_begins_with_the_crowd(tmp_path: pathlib.Path) -> None:
    server = Knotd(tmp_path / 'knot')
    crowded.take_in(server, ['a.example.com.', 'b.example.com.'])
    try:
        server.start()
        assert (server.serial('a.example.com.'), server.serial('c.example.com.')) == (7, None)
        before = crowded.queries(server.knotc('stats', 'mod-stats.server-operation'))
        assert server.serial('b.example.com.') == 7
        assert crowded.queries(server.knotc('stats', 'mod-stats.server-operation')) == before + 1
    finally:
        server.remove()
