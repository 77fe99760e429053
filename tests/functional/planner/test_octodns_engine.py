"""octoDNS's classes in a configuration of ours: the one that the documentation shows, run against a real PowerDNS."""

from __future__ import annotations

import pathlib
import re
import textwrap
from collections.abc import Callable

import pytest

from designate_pool.planner.config_file import read
from designate_pool.planner.engine import SyncEngine
from testing.pdns import PowerDns

PAGE = pathlib.Path(__file__).resolve().parents[3] / 'doc' / 'source' / 'octodns.rst'
NAME = 'example.com.'
ZONE = '''
api.internal:
  type: A
  value: 192.0.2.66
mail:
  type: A
  value: 192.0.2.3
www:
  type: A
  values: [192.0.2.1, 192.0.2.2]
'''


class Shown:
    """The configuration of the page, with a server's address and a folder of zones in it."""

    def __init__(self, server: PowerDns, folder: pathlib.Path) -> None:
        self.server = server
        self.folder = folder
        (folder / 'zones').mkdir()
        block = re.search(r'^\.\. code-block:: yaml\n\n((?:[ ]+.*\n|\n)+)', PAGE.read_text(), re.MULTILINE)
        assert block is not None
        text = textwrap.dedent(block[1]).replace('host: 192.0.2.1', f'host: {server.host}\n    port: {server.api_port}')
        self.path = folder / 'sync.yaml'
        self.path.write_text(text.replace('./zones', str(folder / 'zones')))

    def write(self, text: str) -> None:
        (self.folder / 'zones' / f'{NAME}yaml').write_text(text)

    def manager(self) -> SyncEngine:
        return SyncEngine(read(self.path, {'PDNS_API_KEY': self.server.api_key}))

    def addresses(self, name: str) -> list[str]:
        return self.server.texts(f'{name}.{NAME}', 'A')


@pytest.fixture
def shown(powerdns: Callable[..., PowerDns], tmp_path: pathlib.Path) -> Shown:
    made = Shown(powerdns(), tmp_path)
    made.write(ZONE)
    return made


def test_the_configuration_of_the_page_runs_and_the_second_round_is_empty(shown: Shown) -> None:
    manager = shown.manager()
    assert (manager.sync().changes, shown.addresses('www')) == (2, [])
    assert manager.sync(dry_run=False).applied == 2
    assert shown.addresses('www') == ['192.0.2.1', '192.0.2.2']
    assert shown.addresses('api.internal') == []
    for again in (manager, shown.manager()):
        assert again.sync(dry_run=False).changes == 0
