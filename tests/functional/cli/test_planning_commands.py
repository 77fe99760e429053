"""Zones kept in files, from the user's side: the command, the real programs of a pool, and real servers behind it."""

from __future__ import annotations

import pathlib
import shutil
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import dns.query
import dns.rcode
import dns.tsig
import dns.update
import pytest

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


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BindPool]:
    with BindPool(tmp_path_factory.mktemp('planning')) as pool:
        yield pool


class Repository(Folder):
    """A folder with zone files; its zones are in no other test."""

    def __init__(self, path: pathlib.Path, url: str) -> None:
        super().__init__(path, url)
        self.zone = f'z{uuid.uuid4().hex[:10]}.example.com'
        self.file = f'zones/{self.zone}.zone'

    def plan(self, *words: str, code: int = 2) -> str:
        """The id of a plan."""
        return self.run('plan', '--detailed-exitcode', *words, code=code).plan

    def state(self, plan_id: str) -> str:
        return str(self.run('plan', 'show', plan_id, '-f', 'json').json['state'])


@pytest.fixture
def git(pool: BindPool, tmp_path: pathlib.Path) -> Repository:
    made = Repository(tmp_path, pool.stack.url)
    made.write('designate-pool-sync.yaml', CONFIG)
    made.write(made.file, CONTENTS)
    return made


def test_a_folder_is_planned_reviewed_applied_and_served_and_then_there_is_nothing_to_do(
        pool: BindPool, git: Repository) -> None:
    ran = git.run('plan', '--detailed-exitcode', code=2)
    assert f'{git.zone}. on pool: 5 to create, 0 to update, 0 to delete; 0 existing RRsets\n' in ran.out
    assert f'    + www.{git.zone}. 300 A 192.0.2.10; 192.0.2.11\n' in ran.out
    assert pool.served(f'www.{git.zone}', 'A') is None
    assert git.state(ran.plan) == 'STORED'
    shown = git.run('plan', 'show', ran.plan).out
    assert f'    + www.{git.zone}. 300 A 192.0.2.10; 192.0.2.11\n' in shown and f'apply {ran.plan}' in shown

    applied = git.run('apply', ran.plan, '--wait', '30')
    assert applied.out.endswith(f'{git.zone}. on pool: 5 of 5 changes applied\n5 changes applied.\n')
    assert f'{git.zone}. is ACTIVE at serial' in applied.err
    assert pool.served(f'www.{git.zone}', 'A') == ['192.0.2.10', '192.0.2.11']
    assert pool.served(f'ftp.{git.zone}', 'CNAME') == [f'www.{git.zone}.']

    again = git.run('plan', '--detailed-exitcode')
    assert (again.out, again.err) == ('Nothing to do; zones compared with a target: 1.\n', '')
    refused = git.run('apply', ran.plan, code=1)
    assert 'is APPLIED since' in refused.err and "'designate-pool plan' makes a new one" in refused.err
    (listed,) = (each for each in git.run('plan', 'list', '-f', 'json').json if each['id'].startswith(ran.plan))
    assert (listed['state'], listed['zone'], listed['creates']) == ('APPLIED', f'{git.zone}.', 5)


def test_for_a_review(git: Repository) -> None:
    git.write('zones/broken.example.zone', 'www A x\n')
    ran = git.run('plan', '-o', 'json', code=1)
    assert [each['zone'] for each in ran.json['plans']] == [f'{git.zone}.']
    assert [each['zone'] for each in ran.json['failed']] == ['broken.example.']
    assert 'line 1' in ran.json['failed'][0]['error']
    assert git.run('plan', 'show', ran.json['plan_id'], '-f', 'json').json['id'] == ran.json['plan_id']
    (git.path / 'zones/broken.example.zone').unlink()
    git.run('plan', '-o', 'markdown', '--output', 'plan.md')
    assert f'## {git.zone}. on pool\n' in (git.path / 'plan.md').read_text()


def test_the_example_works(pool: BindPool, tmp_path: pathlib.Path) -> None:
    for name in ('example-sync.yaml', 'example-sync-zones'):
        copy = shutil.copytree if (ROOT / 'etc' / name).is_dir() else shutil.copy
        copy(ROOT / 'etc' / name, tmp_path / name)  # type: ignore[operator]
    folder = Folder(tmp_path, pool.stack.url)
    ran = folder.run('plan', '--config', 'example-sync.yaml')
    folder.run('apply', ran.plan, '--config', 'example-sync.yaml', '--wait', '30')
    assert pool.served('ftp.example.com', 'CNAME') == ['www.example.com.']
    assert pool.served('www.example.net', 'CNAME') == ['www.example.com.']
    folder.change('example-sync-zones/example.net.zone', 'www         IN CNAME www.example.com.\n', '')
    ran = folder.run('plan', '--config', 'example-sync.yaml', '--detailed-exitcode')
    assert 'Blocked (policy): Delete www.example.net.' in ran.out
    for name in ('example.com', 'example.net'):
        folder.run('zone', 'delete', name, '--wait', '30')


class Mixed:
    """A pool of a BIND that transfers, *ns1*, and one that is fed by records, *ns2*; and a folder of its zone."""

    def __init__(self, stack: Stack, ns1: Named, ns2: Named, folder: Folder) -> None:
        self.stack = stack
        self.ns1 = ns1
        self.ns2 = ns2
        self.folder = folder

    def bring(self, text: str, *words: str, code: int = 0) -> Ran:
        """Have the zone be *text* in the pool, however unsafe."""
        self.folder.write('zones/example.com.zone', text)
        return self.folder.run('apply', '--yes', *words, code=code)

    def plans(self, *words: str) -> list[Any]:
        return list(self.folder.run('plan', 'list', *words, '-f', 'json').json)

    def by_hand(self, name: str, address: str) -> None:
        """Change an address on the server that is fed, behind the pool's back, and have the server take nothing more.

        The pool would mend it within seconds, as the serial that the server raises is none of its own.
        """
        update = dns.update.UpdateMessage('example.com.')
        update.use_tsig(dns.tsig.Key(KEY.name, KEY.secret, KEY.algorithm))
        update.replace(name, 3600, 'A', address)
        assert dns.query.tcp(update, self.ns2.host, 5, self.ns2.port).rcode() == dns.rcode.NOERROR
        self.ns2.command('freeze example.com')


@pytest.fixture
def mixed(named: Callable[..., Named], tmp_path: pathlib.Path) -> Iterator[Mixed]:
    ns1, ns2 = named('ns1'), named_with(named, tmp_path, {'example.com.': NEW.format(serial=1)}, name='ns2')
    section = (f'[backend:rfc2136:{uuid.uuid4()}]\nhost = {ns2.host}\nport = {ns2.port}\ncall_timeout = 2\n'
               f'tsig_key = {KEY.name}:{KEY.algorithm}:{KEY.secret}\n')
    with Stack(tmp_path / 'stack', [ns1.section(str(uuid.uuid4()), call_timeout=2), section],
               f'sqlite:///{tmp_path}/database.sqlite') as stack:
        folder = Folder(tmp_path / 'git', stack.url)
        folder.write('designate-pool-sync.yaml', CONFIG)
        yield Mixed(stack, ns1, ns2, folder)


def test_a_parked_plan_is_found_looked_at_and_approved(mixed: Mixed) -> None:
    mixed.bring(CONTENTS + HOSTS, '--wait', '30')
    assert mixed.ns2.texts('host100.example.com.', 'A') == ['192.0.2.100']
    told = mixed.bring(CONTENTS, '--force', 'example.com', '--wait', '30', code=3)
    (plan,) = mixed.plans('--state', 'parked')
    assert f"Approve it with 'designate-pool apply {plan['id'].replace('-', '')}'" in told.err
    short = plan['id'][:8]
    explained = mixed.folder.run('zone', 'explain', 'example.com').out
    assert f"decide on the plan: 'designate-pool plan show {short}' shows it" in explained
    shown = mixed.folder.run('plan', 'show', short).out
    assert '    - host100.example.com. 3600 A 192.0.2.100\n' in shown and 'RRsets would be deleted' in shown
    assert "--force is for plans of your own" in mixed.folder.run('apply', short, '--force', 'example.com', code=1).err

    # Dropped, it is looked at anew, and is another plan that waits.
    mixed.folder.run('plan', 'drop', short)
    (again,) = wait_until(lambda: mixed.plans('--state', 'parked'), 'the plan is parked anew')
    assert again['id'] != plan['id']
    assert mixed.ns2.texts('host100.example.com.', 'A') == ['192.0.2.100']

    done = mixed.folder.run('apply', again['id'], '--wait', '30')
    assert f'Plan {again["id"]} is approved' in done.out
    assert 'example.com. is ACTIVE at serial' in done.err and 'on 2 of 2 servers' in done.err
    assert mixed.ns2.texts('host100.example.com.', 'A') == []
    refused = mixed.folder.run('apply', again['id'], code=1)
    assert 'only a parked plan can be approved' in refused.err

    # Without a configuration, too: what is parked needs none.
    (mixed.folder.path / 'designate-pool-sync.yaml').unlink()
    assert {each['state'] for each in mixed.plans()} == {'APPLIED', 'DROPPED'}


def test_a_report_of_what_every_server_answers(mixed: Mixed) -> None:
    long = ' '.join([f'"{"x" * 200}"'] * 9)  # more than one UDP message takes
    mixed.bring(CONTENTS + HOSTS + f'sub NS ns.sub\nns.sub A 192.0.2.53\nlong TXT {long}\n', '--wait', '30')
    ran = mixed.folder.run('report', 'example.com')
    assert 'Not asked for: 1 below delegations' in ran.out
    assert ran.out.count(' 0 answers differ') == 2

    mixed.by_hand('www.example.com.', '192.0.2.66')
    told = mixed.folder.run('report', 'example.com', '-f', 'json', code=2).json
    by_name = {server['name'].partition(':')[0]: server for server in told['servers']}
    assert by_name['bind9']['differences'] == []
    differing = {(each['name'], each['type']): each for each in by_name['rfc2136']['differences']}
    assert differing['www.example.com.', 'A'] == {
        'name': 'www.example.com.', 'type': 'A', 'expected': '300 192.0.2.10, 192.0.2.11',
        'answered': '3600 192.0.2.66'}
    # The update by hand has raised the serial there.
    assert differing.keys() == {('www.example.com.', 'A'), ('example.com.', 'SOA')}
    assert by_name['rfc2136']['asked'] == told['asked'] == told['rrsets'] - 1

    cut = mixed.folder.run('report', 'example.com', '--limit', '3', '--no-serial')
    assert 'more; --limit asks for more than 3.' in cut.out

    mixed.ns1.stop()
    silent = mixed.folder.run('report', 'example.com', '--timeout', '0.3', code=1)
    assert 'no serial, 0 questions asked' in silent.out
    assert '    + 3600 192.0.2.66\n' in silent.out
    assert 'There is no zone example.org.' in mixed.folder.run('report', 'example.org', code=1).err


def test_every_configuration_of_the_page_can_be_read(tmp_path: pathlib.Path) -> None:
    texts = [block.text for block in documentation.blocks(PAGE) if block.kind == 'yaml']
    assert texts
    path = tmp_path / 'config.yaml'
    for text in texts:
        path.write_text(text)
        found = config_file.read(path, {'UPDATE_SECRET': 'c2VjcmV0'})
        assert found.zones and found.providers
