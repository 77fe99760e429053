"""The option ``metrics`` of each service's section."""

from __future__ import annotations

import pytest

from designate_pool.config import load
from designate_pool.errors import BadConfiguration
from designate_pool.model import Endpoint
from tests.unit.config.conftest import Read

SECTIONS = ('central', 'minidns', 'pool_manager', 'api', 'sink')


def test_metrics_are_served_nowhere_unless_the_file_says_so(read: Read) -> None:
    settings = load.read_settings(read(''))
    assert [getattr(settings, section).metrics for section in SECTIONS] == [()] * 5


@pytest.mark.parametrize('section', SECTIONS)
def test_each_section_has_addresses_of_its_own(read: Read, section: str) -> None:
    settings = load.read_settings(read(f'[service:{section}]\nmetrics = 192.0.2.1, [2001:db8::1]:9000\n'))
    assert getattr(settings, section).metrics == (Endpoint('192.0.2.1', 9464), Endpoint('2001:db8::1', 9000))


@pytest.mark.parametrize('section', SECTIONS)
def test_what_is_no_address_is_refused_by_name(read: Read, section: str) -> None:
    with pytest.raises(BadConfiguration, match=rf'\[service:{section}\] metrics: '):
        load.read_settings(read(f'[service:{section}]\nmetrics = everywhere\n'))
