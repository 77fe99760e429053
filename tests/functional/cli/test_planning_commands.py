"""Zones kept in files, from the user's side: the command, the real programs of a pool, and real servers behind it."""

from __future__ import annotations

import pathlib
import shutil
import uuid
from collections.abc import Callable
from typing import Any

from designate_pool.planner import config_file
from testing.bind import Named
from testing.processes import wait_until
from testing.stack import Stack
from tests.fixtures import documentation
from tests.fixtures.bind_pool import BindPool
from tests.fixtures.commands import Folder, Ran
from tests.fixtures.documentation import PAGES, ROOT
from tests.fixtures.updates import KEY, NEW, named_with

CONFIG = '''
providers:
  files: {class: zonefile, directory: zones, file_extension: .zone, check_origin: false}
  pool: {class: pool, url: env/DESIGNATE_POOL_URL}
zones:
  '*': {sources: [files], targets: [pool]}
'''
CONTENTS = '''
$TTL 3600
@        MX    10 mail
@        TXT   "v=spf1 mx -all"
www  300 A     192.0.2.10
www  300 A     192.0.2.11
mail     A     192.0.2.25
ftp      CNAME www
'''
PAGE = PAGES / 'zones-in-git.rst'
HOSTS = ''.join(f'host{number} 3600 IN A 192.0.2.{number}\n' for number in range(100, 112))


def test_the_example_works(tmp_path: pathlib.Path) -> None:
    for name in ('example-sync.yaml', 'example-sync-zones'):
        copy = shutil.copytree if (ROOT / 'etc' / name).is_dir() else shutil.copy
        copy(ROOT / 'etc' / name, tmp_path / name)  # type: ignore[operator]
    with BindPool(tmp_path / 'pool') as pool:
        folder = Folder(tmp_path, pool.stack.url)
        words = '--config', 'example-sync.yaml'
        applied = folder.run('apply', folder.run('plan', *words).plan, *words, '--wait', '30')
        assert 'example.com. is ACTIVE at serial' in applied.err
        assert pool.served('ftp.example.com', 'CNAME') == ['www.example.com.']
        assert pool.served('www.example.net', 'CNAME') == ['www.example.com.']
        assert folder.run('plan', *words, '--detailed-exitcode').out.startswith('Nothing to do')
        folder.change('example-sync-zones/example.net.zone', 'www         IN CNAME www.example.com.\n', '')
        assert 'Blocked (policy): Delete www.example.net.' in folder.run('plan', *words, '--detailed-exitcode').out


def test_a_parked_plan_is_found_looked_at_and_approved(named: Callable[..., Named], tmp_path: pathlib.Path) -> None:
    """In a pool of a BIND that transfers and one that is fed by records."""
    ns1, ns2 = named('ns1'), named_with(named, tmp_path, {'example.com.': NEW.format(serial=1)}, name='ns2')
    section = (f'[backend:rfc2136:{uuid.uuid4()}]\nhost = {ns2.host}\nport = {ns2.port}\ncall_timeout = 2\n'
               f'tsig_key = {KEY.name}:{KEY.algorithm}:{KEY.secret}\n')
    with Stack(tmp_path / 'stack', [ns1.section(str(uuid.uuid4()), call_timeout=2), section],
               f'sqlite:///{tmp_path}/database.sqlite') as stack:
        folder = Folder(tmp_path / 'git', stack.url)
        folder.write('designate-pool-sync.yaml', CONFIG)

        def bring(text: str, *words: str, code: int = 0) -> Ran:
            """Have the zone be *text* in the pool, however unsafe."""
            folder.write('zones/example.com.zone', text)
            return folder.run('apply', '--yes', *words, code=code)

        def plans(*words: str) -> list[Any]:
            return list(folder.run('plan', 'list', *words, '-f', 'json').json)

        bring(CONTENTS + HOSTS, '--wait', '30')
        assert ns2.texts('host100.example.com.', 'A') == ['192.0.2.100']
        told = bring(CONTENTS, '--force', 'example.com', '--wait', '30', code=3)
        (plan,) = plans('--state', 'parked')
        assert f"Approve it with 'designate-pool apply {plan['id'].replace('-', '')}'" in told.err
        short = plan['id'][:8]
        explained = folder.run('zone', 'explain', 'example.com').out
        assert f"decide on the plan: 'designate-pool plan show {short}' shows it" in explained
        shown = folder.run('plan', 'show', short).out
        assert '    - host100.example.com. 3600 A 192.0.2.100\n' in shown and 'RRsets would be deleted' in shown
        assert "--force is for plans of your own" in folder.run('apply', short, '--force', 'example.com', code=1).err

        # Dropped, it is looked at anew, and is another plan that waits.
        folder.run('plan', 'drop', short)
        (again,) = wait_until(lambda: plans('--state', 'parked'), 'the plan is parked anew')
        assert again['id'] != plan['id']
        assert ns2.texts('host100.example.com.', 'A') == ['192.0.2.100']

        done = folder.run('apply', again['id'], '--wait', '30')
        assert f'Plan {again["id"]} is approved' in done.out
        assert 'example.com. is ACTIVE at serial' in done.err and 'on 2 of 2 servers' in done.err
        assert ns2.texts('host100.example.com.', 'A') == []
        refused = folder.run('apply', again['id'], code=1)
        assert 'only a parked plan can be approved' in refused.err

        # Without a configuration, too: what is parked needs none.
        (folder.path / 'designate-pool-sync.yaml').unlink()
        assert {each['state'] for each in plans()} == {'APPLIED', 'DROPPED'}


def test_every_configuration_of_the_page_can_be_read(tmp_path: pathlib.Path) -> None:
    texts = [block.text for block in documentation.blocks(PAGE) if block.kind == 'yaml']
    assert texts
    path = tmp_path / 'config.yaml'
    for text in texts:
        path.write_text(text)
        found = config_file.read(path, {'UPDATE_SECRET': 'c2VjcmV0'})
        assert found.zones and found.providers
