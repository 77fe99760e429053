"""Zones kept in files, from the user's side: the command, the real programs of a pool, and real servers behind it."""

from __future__ import annotations

import os
import pathlib
import shutil
import uuid
from collections.abc import Callable
from typing import Any

from designate_pool.planner import config_file
from testing import warm
from testing.bind import Named
from testing.processes import wait_until
from testing.stack import Stack
from tests.fixtures import documentation
from tests.fixtures.bind_pool import BindPool
from tests.fixtures.commands import Folder, Ran, wait
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
        plan = folder.run('plan', *words).plan
        for _ in range(2):  # a wait that was interrupted can be resumed
            applied = folder.run('apply', plan, *words, wait())
            assert 'example.com. is ACTIVE at serial' in applied.err
        assert pool.served('ftp.example.com', 'CNAME') == ['www.example.com.']
        assert pool.served('www.example.net', 'CNAME') == ['www.example.com.']
        assert folder.run('plan', *words, '--detailed-exitcode').out.startswith('Nothing to do')
        folder.change('example-sync-zones/example.net.zone', 'www         IN CNAME www.example.com.\n', '')
        assert 'Blocked (policy): Delete www.example.net.' in folder.run('plan', *words, '--detailed-exitcode').out

        empty = 'empty.example.com.'
        pool.stack.request('POST', '/v2/zones', 202, json={
            'name': empty, 'type': 'SECONDARY', 'masters': ['192.0.2.1']})
        dump = 'dump', *words, '--source', 'pool', '--output', 'dumped'
        told = folder.run(*dump)
        assert told.out.count('RRsets dumped/') == 2
        assert told.err == (f'{empty} is left out: pool cannot be read: There is no content of '
                            f'{empty} now: its masters were not reached.\n')
        assert 'its masters were not reached' in folder.run(*dump, empty, code=1).err


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

        bring(CONTENTS + HOSTS, wait())
        assert ns2.texts('host100.example.com.', 'A') == ['192.0.2.100']
        # What the operator forces needs no second approval on the server that is fed.
        told = bring(CONTENTS, '--force', 'example.com', wait())
        assert 'is approved, since the zone is forced' in told.err and 'on 2 of 2 servers' in told.err
        assert ns2.texts('host100.example.com.', 'A') == [] and plans('--state', 'parked') == []
        bring(CONTENTS + HOSTS, wait())
        folder.write('zones/example.com.zone', CONTENTS)
        told = warm.run('designate_pool.cmd.programs.sync', '--config', 'designate-pool-sync.yaml', '--once', '--force',
                        'example.com', cwd=folder.path, env={**os.environ, 'DESIGNATE_POOL_URL': stack.url})
        assert told.returncode == 0 and 'is approved, since the zone is forced' in told.stderr, told.stderr
        assert ns2.texts('host100.example.com.', 'A') == [] and plans('--state', 'parked') == []
        bring(CONTENTS + HOSTS, wait())

        folder.change('designate-pool-sync.yaml', 'class: pool', 'class: pool, delete_pcent_threshold: 1.0')
        told = bring(CONTENTS, wait(), code=3)
        (plan,) = plans('--state', 'parked')
        assert f"Approve it with 'designate-pool apply {plan['id'].replace('-', '')}'" in told.err
        told = bring(CONTENTS + 'new A 192.0.2.1\n', '--force', 'example.com', wait(), code=3)
        assert 'is parked' in told.err
        (plan,) = plans('--state', 'parked')  # it has more than what was forced
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

        assert f'Plan {again["id"]} is approved' in folder.run('apply', again['id']).out
        for _ in range(2):
            done = folder.run('apply', again['id'], wait())
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
