"""The zones of the small name server and their files."""

from __future__ import annotations

import pathlib

import dns.name
import dns.zone
import pytest

from designate_pool.model import Endpoint
from designate_pool.nameserver.zones import HeldZone, ZoneContents, ZoneTable

NAME = dns.name.from_text('example.com.')
CONTENTS = ZoneContents(dns.zone.from_text(
    '@ 60 SOA ns1 hostmaster 1 60 60 3600 60\n@ 60 NS ns1\nns1 60 A 192.0.2.1', NAME, relativize=False))


@pytest.fixture
def zones(tmp_path: pathlib.Path) -> ZoneTable:
    return ZoneTable(tmp_path, ())


def added(zones: ZoneTable) -> HeldZone:
    zone = zones.add(NAME, (Endpoint('192.0.2.53', 53),), None)
    assert zone is not None
    return zone


def test_a_file_that_could_not_be_written_is_not_left(zones: ZoneTable, tmp_path: pathlib.Path) -> None:
    zone = added(zones)
    settings, = tmp_path.iterdir()
    settings.with_suffix('.zone').mkdir()
    with pytest.raises(OSError):
        zones.replace(zone, CONTENTS)
    assert {each.suffix for each in tmp_path.iterdir()} == {'.json', '.zone'}


def test_what_was_being_written_when_the_server_was_killed_is_removed(zones: ZoneTable, tmp_path: pathlib.Path) -> None:
    added(zones)
    settings, = tmp_path.iterdir()
    settings.with_suffix('.zone.new').write_text('@ 60 SOA ns1')
    assert len(zones.load()) == 1
    assert list(tmp_path.iterdir()) == [settings]


def test_a_zone_whose_files_cannot_be_deleted_is_there_until_they_can(zones: ZoneTable, tmp_path: pathlib.Path) -> None:
    assert zones.replace(added(zones), CONTENTS)
    contents, = tmp_path.glob('*.zone')
    contents.unlink()
    contents.mkdir()
    with pytest.raises(OSError):
        zones.delete(NAME)
    contents.rmdir()
    assert zones.delete(NAME) and list(tmp_path.iterdir()) == [] and not zones.delete(NAME)


def test_a_zone_that_could_not_be_written_is_not_there_and_can_be_added_again(
        zones: ZoneTable, tmp_path: pathlib.Path) -> None:
    added(zones)
    settings, = tmp_path.iterdir()
    zones.delete(NAME)
    settings.mkdir()
    with pytest.raises(OSError):
        added(zones)
    assert zones.all() == []
    settings.rmdir()
    added(zones)
    assert len(zones.load()) == 1
