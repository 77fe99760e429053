"""The hostile corpus as octoDNS's YAML: a file is read, or refused with its line, or the record."""

from __future__ import annotations

import pathlib
import re

import pytest

from designate_pool.errors import SourceError, ZoneError
from designate_pool.planner.targets.yaml_target import YamlProvider
from designate_pool.planner.zone.zone import Zone
from tests.fixtures.hostile_files import yaml_file
from tests.fixtures.hostile_records import RECORDS

ZONE = 'example.com.'


@pytest.mark.parametrize('lenient', [False, True])
@pytest.mark.parametrize('case', RECORDS)
def test_a_case_is_read_or_refused_with_its_place(case: str, lenient: bool, tmp_path: pathlib.Path) -> None:
    file = tmp_path / 'example.com.yaml'
    file.write_text(yaml_file(case, ZONE), encoding='utf-8')
    zone = Zone(ZONE)
    try:
        assert YamlProvider('config', str(tmp_path)).populate(zone, lenient=lenient)
    except (SourceError, ZoneError) as error:
        assert re.search(r'example\.com\.yaml, line \d+|example\.com\.', str(error)), error
        assert len(zone) == 0
