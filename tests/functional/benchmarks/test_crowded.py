from __future__ import annotations

import json
import pathlib

from benchmarks import crowded, crowded_knot
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


def test_a_zone_is_added_to_a_crowded_knot_in_either_way(tmp_path: pathlib.Path) -> None:
    written = tmp_path / 'figures.json'
    assert crowded_knot.main(['--sizes', '0,20', '--zones', '2', '--json', str(written)]) == 0
    figures = json.loads(written.read_text())['figures']
    assert [each['name'] for each in figures] == [
        f'one zone beside {size}, by {way}' for size in (0, 20) for way in ('configuration', 'a catalog')]
    assert all(each['ours'] > 0 for each in figures)
