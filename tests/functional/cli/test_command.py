"""The command against the programs as they run: tokens, waiting, what is kept beside zones, the pool on one screen."""

from __future__ import annotations

import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator

import pytest
import requests
import sqlalchemy as sa

from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains
from testing.processes import wait_until
from testing.stack import Stack
from tests.fixtures.commands import Folder, Ran

IDS = [str(uuid.uuid4()) for _ in range(2)]
SERVERS = [f'[backend:fake:{each}]\nhost = 127.0.0.1\nport = {9 + number}\ncall_timeout = 2\n'
           for number, each in enumerate(IDS)]
#: What follows the options of [service:api] that every stack has.
API = 'auth = token\ntokens_file = {folder}/tokens\n'


class Place:
    """The programs, and folders of people with tokens.

    :ivar tokens: by name
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.stack = Stack(folder / 'stack', [API.format(folder=folder), *SERVERS], f'sqlite:///{folder}/pool.sqlite')
        (folder / 'tokens').touch(mode=0o600)
        self.tokens = {name: self._token(name, project, role) for name, project, role in (
            ('ada', 'blue', 'member'), ('olga', 'operators', 'admin'))}
        self.folder = folder
        (folder / 'clouds.yaml').write_text(json.dumps({'default': 'ada', 'clouds': {
            name: {'url': self.stack.url, 'token': token} for name, token in self.tokens.items()}}))
        (folder / 'clouds.yaml').chmod(0o600)

    def _token(self, name: str, project: str, role: str) -> str:
        told = self.stack.manage('token', 'create', name, '--project', project, '--role', role)
        found = re.search(r'\bdpt_\S+', told)
        assert found, told
        return found[0]

    def run(self, *words: str, code: int = 0, stdin: str = '') -> Ran:
        """A command of the default cloud, which is of project blue."""
        os.environ['DESIGNATE_POOL_CONFIG'] = str(self.folder / 'clouds.yaml')
        try:
            return Folder(self.folder, url='').run(*words, code=code, stdin=stdin)
        finally:
            del os.environ['DESIGNATE_POOL_CONFIG']


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp('command'))
    with place.stack:
        yield place


@pytest.fixture(scope='module')
def zone(place: Place) -> str:
    return place.run('zone', 'create', 'example.com', '--email', 'a@example.com', '-f', 'json').json['id']


def test_the_token_says_who_asks(place: Place, zone: str) -> None:
    assert [each['name'] for each in place.run('zone', 'list', '-f', 'json').json] == ['example.com.']
    assert place.run('--cloud', 'olga', 'zone', 'list', '-f', 'json').json == []
    everything = place.run('--cloud', 'olga', '--all-projects', 'zone', 'list', '-f', 'json').json
    assert [each['project_id'] for each in everything] == ['blue']
    acting = place.run('--cloud', 'olga', '--project', 'blue', 'zone', 'list', '-f', 'json').json
    assert [each['name'] for each in acting] == ['example.com.']


def test_who_may_see_other_projects_zones_is_told_that_there_are_some(place: Place, zone: str) -> None:
    hint = 'There are zones of other projects as well; --all-projects lists them too.\n'
    assert place.run('--cloud', 'olga', 'zone', 'list', '-f', 'table').err == hint
    assert place.run('--cloud', 'olga', '--all-projects', 'zone', 'list', '-f', 'table').err == ''
    assert place.run('--cloud', 'olga', 'zone', 'list', '--name', 'nothing.example', '-f', 'table').err == ''
    assert place.run('zone', 'list', '-f', 'table').err == ''
    elsewhere = 'There is no zone example.com. in this project, but there is one in another: --all-projects finds it.\n'
    assert place.run('--cloud', 'olga', 'zone', 'show', 'example.com', code=1).err == elsewhere
    assert '--all-projects' not in place.run('--cloud', 'olga', 'zone', 'show', 'nothing.example', code=1).err
    # The screen counts and lists those of all projects, as the list does then.
    shown = place.run('--cloud', 'olga', 'status', '-f', 'json').json
    everything = place.run('--cloud', 'olga', '--all-projects', 'zone', 'list', '-f', 'json').json
    assert shown['zones']['count'] == len(everything)
    assert {each['name'] for each in shown['recent']} == {each['name'] for each in everything}


def test_zones_are_given_to_projects(place: Place) -> None:
    made = [place.run('zone', 'create', name, '--email', 'a@example.com', '-f', 'json').json['id']
            for name in ('up.example.org', 'below.up.example.org', 'other.example.org')]
    storage = Storage(f'sqlite:///{place.folder}/pool.sqlite')
    storage.run(lambda tx: tx.execute(sa.update(domains).where(domains.c.name.like('%example.org.'))
                                      .values(project_id='')).close())
    storage.close()
    assert 'You may not' in place.run('zone', 'give', '--unowned', '--to', 'blue', code=1).err
    given = place.run('--cloud', 'olga', 'zone', 'give', '--zone', 'other.example.org', '--to', 'red', '-f',
                      'json').json
    assert [(each['name'], each['project_id']) for each in given] == [('other.example.org.', 'red')]
    given = place.run('--cloud', 'olga', 'zone', 'give', '--unowned', '--to', 'blue', '-f', 'json').json
    assert [(each['name'], each['project_id']) for each in given] == [
        ('below.up.example.org.', 'blue'), ('up.example.org.', 'blue')]
    assert place.run('--cloud', 'olga', 'zone', 'give', '--unowned', '--to', 'blue', '-f', 'json').json == []
    place.run('zone', 'lock', 'up.example.org', '--reason', 'audit')
    ran = place.run('--cloud', 'olga', 'zone', 'give', '--zone', made[0], '--zone', made[2], '--to', 'green',
                    '-f', 'json', code=1)
    assert [each['name'] for each in ran.json] == ['other.example.org.']
    assert 'up.example.org. is not given: The zone up.example.org. is locked: audit' in ran.err
    place.run('zone', 'unlock', 'up.example.org')
    for name in ('up.example.org', 'below.up.example.org'):
        place.run('zone', 'delete', name)
    place.run('--cloud', 'olga', '--all-projects', 'zone', 'delete', made[2])


@pytest.mark.parametrize('words, told', [
    (('--token', 'dpt_wrong', 'zone', 'list'), 'DESIGNATE_POOL_TOKEN'),
    (('server', 'list'), '--project'),
    (('--project', 'red', 'zone', 'list'), 'Ask for a role'),
    (('--cloud', 'nobody', 'zone', 'list'), 'there are: ada, olga.'),
])
def test_a_refusal_is_one_line_that_says_what_to_do(place: Place, zone: str, words: tuple[str, ...], told: str) -> None:
    ran = place.run(*words, code=1)
    assert ran.out == '' and ran.err.count('\n') == 1
    assert told in ran.err
    assert not any(token in ran.err for token in place.tokens.values())


def test_a_quota_is_set_met_and_unset(place: Place, zone: str) -> None:
    assert place.run('--cloud', 'olga', 'quota', 'set', 'blue', '--zones', '1', '-f', 'json').json['zones'] == 1
    assert place.run('quota', 'show', '-f', 'value', '-c', 'zones').out == '1\n'
    ran = place.run('zone', 'create', 'example.info', '--email', 'a@example.org', code=1)
    assert "'designate-pool quota show'" in ran.err and ran.err.count('\n') == 1
    place.run('--cloud', 'olga', 'quota', 'unset', 'blue')
    assert place.run('quota', 'show', '-f', 'json').json['zones'] != 1
    assert place.run('limits', '-f', 'json').json['max_page_limit'] >= 1000


def test_keys_are_kept_and_their_secrets_shown_once(place: Place, zone: str) -> None:
    made = place.run('--cloud', 'olga', 'tsigkey', 'create', 'key.example.', '--pool', 'default', '-f', 'json').json
    assert len(made['secret']) == 44
    shown = place.run('--cloud', 'olga', 'tsigkey', 'show', 'key.example', '-f', 'json').json
    assert (shown['id'], shown['secret'], shown['scope']) == (made['id'], '***', 'POOL')
    (place.folder / 'secret').write_text('c2VjcmV0LW9mLWtleXMtbG9uZy1lbm91Z2g=\n')
    changed = place.run('--cloud', 'olga', 'tsigkey', 'set', made['id'][:8], '--secret-file',
                        str(place.folder / 'secret'), '--algorithm', 'hmac-sha512', '-f', 'json').json
    assert (changed['algorithm'], changed['secret']) == ('hmac-sha512', '***')
    assert [each['name'] for each in place.run('--cloud', 'olga', 'tsigkey', 'list', '-f', 'json').json] == [
        'key.example.']
    place.run('--cloud', 'olga', 'tsigkey', 'delete', 'key.example.')
    assert "'designate-pool tsigkey list'" in place.run('--cloud', 'olga', 'tsigkey', 'show', 'key.example.',
                                                        code=1).err


@pytest.mark.parametrize('noun, words, changes', [
    ('tld', ('com',), ('--name', 'net')), ('zone blacklist', (r'\.bank\.$',), ('--pattern', '^bank')),
    ('zone transfer request', ('example.com',), ())])
def test_an_entry_is_shown_changed_and_deleted_by_a_short_id(place: Place, zone: str, noun: str, words: tuple[str, ...],
                                                             changes: tuple[str, ...]) -> None:
    """The documentation creates and lists them."""
    def run(verb: str, *more: str, code: int = 0) -> Ran:
        return place.run('--cloud', 'olga', '--project', 'blue', *noun.split(), verb, *more, code=code)

    made = run('create', *words, '--description', 'ours', '-f', 'json').json
    assert run('show', made['id'][:8], '-f', 'json').json == made
    changed = run('set', made['id'][:8], *changes, '--no-description', '-f', 'json').json
    assert changed['description'] is None and set(changes[1:]) <= set(changed.values())
    assert 'Nothing to change' in run('set', made['id'][:8], code=1).err
    run('delete', made['id'][:8])
    assert f"'designate-pool {noun} list'" in run('show', made['id'][:8], code=1).err


def test_a_share_is_shown_by_the_project_too(place: Place, zone: str) -> None:
    made = place.run('zone', 'share', 'create', 'example.com', 'green', '-f', 'json').json
    for text in (made['id'][:8], 'green'):
        assert place.run('zone', 'share', 'show', 'example.com', text, '-f', 'json').json == made
    assert place.run('zone', 'share', 'list', 'example.com', '-f', 'value', '-c', 'id').out == f'{made["id"]}\n'
    place.run('zone', 'share', 'delete', 'example.com', 'green')


def test_a_zone_that_another_project_shares_hinders_no_work_on_all_zones(place: Place, zone: str) -> None:
    place.run('--cloud', 'olga', 'zone', 'create', 'theirs.example', '--email', 'a@example.com')
    place.run('--cloud', 'olga', 'zone', 'share', 'create', 'theirs.example', 'blue')
    assert 'theirs.example.\n' in place.run('zone', 'list', '-f', 'value', '-c', 'name').out
    (place.folder / 'designate-pool-sync.yaml').write_text(json.dumps({
        'providers': {'pool': {'class': 'pool', 'url': place.stack.url, 'token': place.tokens['ada']},
                      'files': {'class': 'yaml', 'directory': str(place.folder)}},
        'zones': {'*': {'sources': ['pool'], 'targets': ['files']}}}))
    dump = 'dump', '--source', 'pool', '--output', str(place.folder / 'zones')
    assert 'theirs.example' not in place.run(*dump).out
    assert (place.folder / 'zones' / 'example.com.zone').exists()
    for words in ((*dump, 'theirs.example'), ('zone', 'export', 'theirs.example')):
        told = place.run(*words, code=1).err
        assert 'You may not do this with theirs.example.: it belongs to another project' in told


def test_what_waits_for_approval_is_said_of_every_command(place: Place) -> None:
    place.run('zone', 'create', 'guarded.example', '--email', 'a@example.com')
    place.run('zone', 'set', 'guarded.example', '--require-approval')
    assert place.run('zone', 'show', 'guarded.example', '-f', 'json').json['requires_approval'] is True
    for words in (['zone', 'transfer', 'request', 'create'], ['zone', 'delete']):
        assert 'It waits for approval by somebody else' in place.run(*words, 'guarded.example').err


def test_pools_services_and_name_servers(place: Place, zone: str) -> None:
    [pool] = place.run('--cloud', 'olga', 'pool', 'list', '-f', 'json').json
    assert place.run('--cloud', 'olga', 'pool', 'show', pool['id'][:6], '-f', 'json').json['name'] == 'default'
    services = {each['service_name'] for each in place.run('--cloud', 'olga', 'service', 'list', '-f', 'json').json}
    assert {'api', 'central', 'minidns', 'pool_manager'} <= services
    servers = place.run('zone', 'nameservers', 'example.com', '-f', 'value').out
    assert servers == 'ns1.example.org. 1\nns2.example.org. 2\n'


def test_recordsets_of_a_zone_and_of_all(place: Place, zone: str) -> None:
    place.run('recordset', 'create', 'example.com', 'www', 'A', '--record', '192.0.2.1')
    found = place.run('recordset', 'list', '--type', 'A', '-f', 'json').json
    assert [(each['name'], each['zone_name']) for each in found] == [('www.example.com.', 'example.com.')]
    servers = place.run('recordset', 'servers', 'example.com', 'www', 'A', '-f', 'json').json
    assert [each['served'] for each in servers] == [False, False]
    by_name = place.run('recordset', 'list', zone, '--sort', 'name:desc', '--limit', '1', '-f', 'value', '-c', 'name')
    assert by_name.out == 'www.example.com.\n'


def test_a_zone_is_reverted_when_that_is_agreed_to(place: Place) -> None:
    created = place.run('zone', 'create', 'undo.example', '--email', 'a@example.com', '-f', 'json').json
    place.run('recordset', 'create', 'undo.example', 'www', 'A', '--record', '192.0.2.1', '--record', '192.0.2.2')
    full = place.run('zone', 'show', 'undo.example', '-f', 'json').json['serial']
    place.run('recordset', 'set', 'undo.example', 'www', 'A', '--record', '192.0.2.2', '--ttl', '60')
    last = place.run('zone', 'show', 'undo.example', '-f', 'json').json['serial']
    back = 'zone', 'revert', 'undo.example', '--to', str(full), '-f', 'json'
    for answer in ('', 'n\n'):
        asked = place.run(*back, code=1, stdin=answer)
        assert asked.err.splitlines() == [
            f'undo.example. from serial {last} to the contents of {full}:', '  - www.undo.example. 60 A 192.0.2.2',
            '  + www.undo.example. A 192.0.2.1', '  + www.undo.example. A 192.0.2.2',
            'Make these changes? [y/N] Nothing was changed; answer y, or give --yes.']
    serial = place.run(*back, stdin='y\n').json['serial']
    assert serial > last
    nothing = f'undo.example. from serial {serial} to the contents of %d: nothing to change.\n'
    assert place.run(*back, '--yes').err == nothing % full
    only = 'zone', 'revert', 'undo.example', '--to', str(created['serial']), '--yes', '-f', 'json'
    assert place.run(*only, '--name', 'www', '--type', 'aaaa').err == nothing % created['serial']
    assert place.run(*only, '--name', 'WWW').err.splitlines()[1:] == [
        '  - www.undo.example. A 192.0.2.1', '  - www.undo.example. A 192.0.2.2']
    assert place.run('zone', 'history', 'undo.example', '-f', 'value', '-c', 'kind').out.split()[:2] == ['UNDO', 'UNDO']
    assert 'at 2001-02-03 00:00:00 UTC' in place.run(
        'zone', 'revert', 'undo.example', '--to', '2001-02-03', code=1).err
    place.run('zone', 'delete', 'undo.example')
    kinds = [place.run('recordset', 'history', zone, name, '-f', 'value', '-c', 'kind').out for zone, name in (
        ('undo.example', 'www'), (created['id'], 'www.undo.example.'))]
    assert kinds[0] == kinds[1] != ''
    assert 'Give the name in full, such as www.example.com.: There is no zone' in place.run(
        'recordset', 'history', created['id'], 'www', code=1).err


def test_a_wait_ends_as_the_pool_does(place: Place, zone: str) -> None:
    failed = place.run('zone', 'wait', 'example.com', '--timeout', '60', '-f', 'json', code=3)
    assert (failed.json['failed'], failed.json['current']) == (True, 0)
    assert "'designate-pool zone explain example.com.' tells more." in failed.err
    began = time.monotonic()
    failed = place.run('zone', 'wait', 'example.com', '--through-errors', '--timeout', '2', '-f', 'json', code=3)
    assert failed.json['status'] == 'ERROR'
    assert time.monotonic() - began >= 2
    assert place.run('zone', 'wait', 'example.com', '--servers', '9', code=1).err.count('\n') == 1


def test_the_pool_on_one_screen(place: Place, zone: str) -> None:
    told = place.run('--cloud', 'olga', '--all-projects', 'status').out
    for part in ('SERVERS  2, 2 active', 'SERVICES  ', 'RECENT CHANGES', 'example.com.'):
        assert part in told, told
    machine = place.run('--cloud', 'olga', 'status', '-f', 'json').json
    assert (machine['status'], len(machine['servers']), machine['refused']) == ('ok', 2, {})
    assert set(place.run('status', '-f', 'json').json['refused']) == {'servers', 'services', 'findings', 'frozen'}


def test_a_frozen_pool_is_named_on_the_screen_and_on_its_page(place: Place, zone: str) -> None:
    def page() -> str:
        return requests.get(f'{place.stack.url}/status', auth=('', place.tokens['olga']), timeout=60).text

    as_olga = ('--cloud', 'olga', '--all-projects')
    place.run(*as_olga, 'pool', 'freeze', 'default', '--reason', 'an incident', '--until', '2100-01-31T12:00')
    try:
        lines = place.run(*as_olga, 'status').out.splitlines()
        assert 'Pool default: frozen until 2100-01-31 12:00:00: an incident' in lines[1]
        assert place.run(*as_olga, 'status', '-f', 'json').json['frozen'] == [{
            'name': 'default', 'reason': 'an incident', 'until': '2100-01-31T12:00:00.000000'}]
        assert 'The pool is frozen until 2100-01-31 12:00:00 UTC: an incident.' in page()
        place.run('zone', 'set', 'example.com', '--description', 'changed in the incident')
        place.run(*as_olga, 'zone', 'unfreeze', 'example.com', '--reason', 'it is needed')
        assert place.run('zone', 'history', 'example.com', '--limit', '1', '-f', 'json').json[0][
            'reason'] == 'it is needed'
    finally:
        place.run(*as_olga, 'pool', 'unfreeze', 'default')
    assert 'frozen' not in place.run(*as_olga, 'status').out and 'The pool is frozen' not in page()


@pytest.mark.parametrize('key', ['q', None], ids=['q', 'Ctrl-C'])
def test_the_screen_is_watched_until(place: Place, zone: str, key: str | None) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, 'DESIGNATE_POOL_CONFIG': str(place.folder / 'clouds.yaml'), 'TERM': 'xterm',
               'COLUMNS': '80', 'LINES': '24'}
    watching = subprocess.Popen([sys.executable, '-m', 'designate_pool.cli', '--cloud', 'olga', 'status', '--watch',
                                 '0.2'], stdin=theirs, stdout=theirs, stderr=theirs, env=environ,
                                # Whoever started the tests in the background may have Ctrl-C ignored.
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), start_new_session=True)
    os.close(theirs)
    os.set_blocking(ours, False)
    seen = b''

    def drawn() -> bool:
        nonlocal seen
        try:
            seen += os.read(ours, 1 << 16)
        except OSError:  # nothing was written since, or the command has ended
            pass
        return seen.count(b'SERVERS  2, 2 active') >= 2

    try:
        wait_until(drawn, 'the screen is drawn again', 60)
        if key is None:
            watching.send_signal(signal.SIGINT)
        else:
            os.write(ours, key.encode())
        wait_until(lambda: drawn() and watching.poll() is not None, 'the watch ends', 30)
    finally:
        if watching.poll() is None:
            watching.kill()
        watching.wait()
        os.close(ours)
    assert watching.returncode == 0, seen[-2000:]


def test_what_is_watched_goes_into_a_pipe_one_after_the_other(place: Place, zone: str) -> None:
    environ = {**os.environ, 'DESIGNATE_POOL_CONFIG': str(place.folder / 'clouds.yaml')}
    command = [sys.executable, '-m', 'designate_pool.cli', '--cloud', 'olga', 'status', '-f', 'json', '--watch', '0.1']
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as watching:
        try:
            assert watching.stdout is not None
            starts = (line for line in watching.stdout if line == '{\n')
            assert [next(starts), next(starts)] == ['{\n', '{\n']
        finally:
            watching.kill()


def test_a_zone_file_is_imported_into_a_pool(place: Place) -> None:
    file = place.folder / 'example.org.zone'
    file.write_text('$ORIGIN pooled.example.\n$TTL 60\n@ SOA ns1.example.org. a.example.org. 1 3600 600 86400 300\n')
    assert 'silver' in place.run('--cloud', 'olga', 'zone', 'import', str(file), '--pool', 'silver', code=1).err
    zone = place.run('--cloud', 'olga', 'zone', 'import', str(file), '--pool', 'default', '-f', 'json').json
    assert zone['name'] == 'pooled.example.'
    place.run('--cloud', 'olga', 'zone', 'delete', 'pooled.example')


def test_an_import_tells_which_name_servers_it_did_not_keep(place: Place) -> None:
    file = place.folder / 'servers.zone'
    file.write_text('$ORIGIN example.biz.\n@ 60 SOA ns1.example.org. a.example.org. 1 3600 600 86400 300\n'
                    '@ 60 NS ns.old.example.\n')
    assert ("example.biz. imported; its name servers are the pool's, ns1.example.org., ns2.example.org., instead of "
            'those in the file, ns.old.example.') in place.run('zone', 'import', str(file)).err
    assert place.run('zone', 'import', 'show', 'abcd', code=1).err.startswith('There is no import abcd. ')
