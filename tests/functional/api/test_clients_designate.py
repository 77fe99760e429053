"""python-designateclient and the ``openstack`` command as they come do all that they offer and the pool has.

All in one process on SQLite, with the project's own small name server.  What the pool has not is answered in words.
"""

from __future__ import annotations

import json
import pathlib
import uuid
from collections.abc import Iterator
from typing import Any

import openstack
import pytest
from designateclient import exceptions

from testing.processes import wait_until
from testing.stack import Stack
from tests.fixtures.nameservers import SecondaryServer
from tests.fixtures.openstack import OpenStack

ZONE_FILE = """\
$ORIGIN {name}
@   300 IN SOA ns1.example.org. hostmaster.example.com. 1 3600 600 86400 300
www 300 IN A   192.0.2.7
"""


class Place:
    """The system.

    :ivar admin: who may do everything
    :ivar user: one of the project ``alpha``
    :ivar other: one of the project ``beta``
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.server = SecondaryServer(folder / 'ns1')
        # What comes first belongs to the section of the API.
        self.stack = Stack(folder / 'stack', [f'auth = token\ntokens_file = {folder}/tokens\n', self.server.section(
            str(uuid.uuid4()), call_timeout=2)], f'sqlite:///{folder}/pool.sqlite')
        self.admin, self.user, self.other = (self._client(*who) for who in (
            ('admin', 'alpha'), ('member', 'alpha'), ('member', 'beta')))

    def _client(self, role: str, project: str) -> OpenStack:
        told = self.stack.manage('token', 'create', f'{role}-{project}', '--project', project, '--role', role)
        return OpenStack(self.stack.url, told.split()[0])

    def __enter__(self) -> Place:
        try:
            self.server.start()
            self.stack.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.stop()
        self.server.stop()

    def create(self, name: str, *words: str) -> Any:
        return self.user.run('zone', 'create', '--email', 'hostmaster@example.com', name, *words)

    def wait_for(self, name: str) -> Any:
        """The zone once it is ACTIVE."""
        def look() -> Any:
            found = self.user.run('zone', 'show', name)
            return found if found['status'] == 'ACTIVE' else None

        return wait_until(look, f'{name} is ACTIVE')


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with Place(tmp_path_factory.mktemp('clients')) as running:
        yield running


def names(found: Any) -> list[str]:
    return [each['name'] for each in found]


def test_the_life_of_a_zone(place: Place) -> None:
    made = place.create('life.example.com.', '--ttl', '600', '--description', 'the first')
    assert (made['action'], made['type']) == ('CREATE', 'PRIMARY')
    assert made['project_id'] == 'alpha'
    active = place.wait_for('life.example.com.')
    assert place.server.serial('life.example.com.') == active['serial']
    changed = place.user.run('zone', 'set', 'life.example.com.', '--ttl', '60', '--email', 'root@example.com',
                             '--no-description')
    assert (changed['ttl'], changed['email'], changed['description']) == (60, 'root@example.com', None)
    assert changed['serial'] > active['serial']
    assert place.user.run('zone', 'nameservers', 'list', made['id']) == [
        {'hostname': 'ns1.example.org.', 'priority': 1}, {'hostname': 'ns2.example.org.', 'priority': 2}]
    assert place.user.run('zone', 'show', made['id'])['id'] == made['id']
    deleted = place.admin.run('zone', 'delete', 'life.example.com.', '--hard-delete', '--delete-shares')
    assert deleted['action'] == 'DELETE'
    wait_until(lambda: place.user.run('zone', 'list', '--name', 'life.example.com.') == [], 'the zone is gone')
    assert "didn't resolve" in place.user.complaint('zone', 'show', 'life.example.com.')
    again = place.create('life.example.com.')
    assert again['id'] != made['id'] and place.wait_for('life.example.com.')['serial'] > changed['serial']


def test_zones_are_found_by_what_they_are(place: Place) -> None:
    place.create('a.find.example.com.', '--ttl', '61', '--description', 'wanted')
    place.create('b.find.example.com.', '--ttl', '62')
    for zone in ('a.find.example.com.', 'b.find.example.com.'):
        place.wait_for(zone)
    for words, expected in ((('--name', 'a.find.example.com.'), ['a']), (('--name', '*.find.example.com.'), ['a', 'b']),
                            (('--ttl', '62'), ['b']), (('--description', 'wanted'), ['a'])):
        assert names(place.user.run('zone', 'list', *words)) == [f'{each}.find.example.com.' for each in expected]
    for words in (('--type', 'PRIMARY'), ('--status', 'ACTIVE'), ('--email', 'hostmaster@example.com'), ('--long',)):
        assert {'a.find.example.com.', 'b.find.example.com.'} <= set(names(place.user.run('zone', 'list', *words)))
    assert place.user.run('zone', 'list', '--type', 'SECONDARY') == []


def test_the_life_of_a_secondary_zone(place: Place) -> None:
    """Its master does not answer, which does not matter to the client."""
    name = 'secondary.example.com.'
    made = place.user.run('zone', 'create', name, '--type', 'SECONDARY', '--masters', '192.0.2.1', '192.0.2.2:853')
    assert (made['type'], made['action'], made['status']) == ('SECONDARY', 'CREATE', 'PENDING')
    assert made['masters'].split(', ') == ['192.0.2.1', '192.0.2.2:853']
    assert names(place.user.run('zone', 'list', '--type', 'SECONDARY')) == [name]
    changed = place.user.run('zone', 'set', name, '--masters', '192.0.2.9', '--description', 'moved')
    assert (changed['masters'], changed['description']) == ('192.0.2.9', 'moved')
    place.user.run('zone', 'axfr', name)
    place.user.run('zone', 'delete', name)
    wait_until(lambda: place.user.run('zone', 'list', '--type', 'SECONDARY') == [], 'the zone is gone')


def test_the_library_goes_from_page_to_page_in_any_order(place: Place) -> None:
    for number in range(5):
        place.create(f'{number}.page.example.com.')
    client = place.user.client()
    for sort_dir in ('asc', 'desc'):
        wanted = {'name': '*.page.example.com.', 'sort_key': 'name', 'sort_dir': sort_dir}
        found, marker = [], None
        while True:
            page = client.zones.list(criterion=dict(wanted), marker=marker, limit=2)
            found += names(page)
            if not page.next_page:
                break
            marker = page.next_link_criterion['marker']
            assert page.next_link_criterion['limit'] == '2' and marker == page[-1]['id']
        expected = [f'{number}.page.example.com.' for number in range(5)]
        assert found == (expected if sort_dir == 'asc' else expected[::-1])


def test_a_project_for_another_one_and_all_of_them(place: Place) -> None:
    mine = place.create('mine.example.com.')
    sudo = place.admin.run('zone', 'create', 'theirs.example.com.', '--email', 'a@example.com', '--sudo-project-id',
                           'beta')
    assert (mine['project_id'], sudo['project_id']) == ('alpha', 'beta')
    assert 'theirs.example.com.' in names(place.admin.run('zone', 'list', '--sudo-project-id', 'beta'))
    assert 'mine.example.com.' not in names(place.admin.run('zone', 'list', '--sudo-project-id', 'beta'))
    everything = {each['name']: each['project_id'] for each in place.admin.run('zone', 'list', '--all-projects')}
    assert (everything['mine.example.com.'], everything['theirs.example.com.']) == ('alpha', 'beta')
    both = place.admin.run('recordset', 'list', 'all', '--all-projects', '--type', 'SOA')
    assert {'mine.example.com.', 'theirs.example.com.'} <= set(names(both))
    client = place.admin.client(sudo_project_id='beta')
    assert client.zones.get(sudo['id'])['name'] == 'theirs.example.com.'
    assert 'theirs.example.com.' not in names(place.user.run('zone', 'list'))
    assert 'theirs.example.com.' in names(place.other.run('zone', 'list'))
    assert 'There is no ' in place.user.complaint('zone', 'show', sudo['id'])
    for words in (('--all-projects',), ('--sudo-project-id', 'beta')):
        assert 'policy' in place.user.complaint('zone', 'list', *words)
    with pytest.raises(exceptions.Forbidden):
        OpenStack(place.stack.url, 'dpt_of-nobody').client().zones.list()


def test_the_life_of_recordsets(place: Place) -> None:
    zone = place.create('sets.example.com.')
    made = place.user.run('recordset', 'create', 'sets.example.com.', 'www', '--type', 'A', '--record', '192.0.2.1',
                          '--record', '192.0.2.2', '--ttl', '60', '--description', 'two')
    assert (made['name'], made['records'], made['zone_name']) == (
        'www.sets.example.com.', '192.0.2.1\n192.0.2.2', 'sets.example.com.')
    place.user.run('recordset', 'create', zone['id'], 'sets.example.com.', '--type', 'MX', '--record',
                   '10 mail.sets.example.com.')
    assert {(each['name'], each['type']) for each in place.user.run('recordset', 'list', zone['id'])} == {
        ('sets.example.com.', kind) for kind in ('SOA', 'NS', 'MX')} | {('www.sets.example.com.', 'A')}
    for where in ('sets.example.com.', 'all'):
        for words in (('--name', 'www.sets.example.com.'), ('--name', 'www.sets.*', '--type', 'A'),
                      ('--data', '192.0.2.1', '--name', '*.sets.example.com.'), ('--description', 'two'),
                      ('--ttl', '60', '--name', '*sets.example.com.')):
            found = place.user.run('recordset', 'list', where, *words)
            assert names(found) == ['www.sets.example.com.'], (where, words)
    assert place.user.run('recordset', 'show', zone['id'], made['id'])['id'] == made['id']
    changed = place.user.run('recordset', 'set', 'sets.example.com.', 'www.sets.example.com.', '--record', '192.0.2.3',
                             '--no-ttl', '--no-description')
    assert (changed['records'], changed['ttl'], changed['description']) == ('192.0.2.3', None, None)
    place.wait_for('sets.example.com.')
    assert place.server.texts('www.sets.example.com.', 'A') == ['192.0.2.3']
    assert place.user.run('recordset', 'delete', 'sets.example.com.', made['id'])['action'] == 'DELETE'
    place.wait_for('sets.example.com.')
    assert place.server.texts('www.sets.example.com.', 'A') == []
    managed = place.user.run('recordset', 'list', zone['id'], '--type', 'NS')[0]['id']
    assert 'is generated from the pool' in place.user.complaint('recordset', 'delete', zone['id'], managed)
    with pytest.raises(exceptions.Conflict):
        place.user.client().recordsets.create(zone['id'], 'sets.example.com.', 'MX', ['20 mail.example.com.'])
    with pytest.raises(exceptions.BadRequest):
        place.user.client().recordsets.create(zone['id'], 'bad', 'A', ['not an address'])


def test_a_zone_goes_out_and_comes_in(place: Place, tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'zone'
    path.write_text(ZONE_FILE.format(name='tasks.example.com.'))
    made = place.user.run('zone', 'import', 'create', str(path))
    done = wait_until(lambda: [each for each in place.user.run('zone', 'import', 'list', '--status', 'COMPLETE')
                               if each['id'] == made['id']], 'the import is done')[0]
    assert place.user.run('zone', 'import', 'show', made['id'])['zone_id'] == done['zone_id']
    place.wait_for('tasks.example.com.')
    assert place.server.texts('www.tasks.example.com.', 'A') == ['192.0.2.7']

    export = place.user.run('zone', 'export', 'create', 'tasks.example.com.')
    wait_until(lambda: place.user.run('zone', 'export', 'show', export['id'])['status'] == 'COMPLETE', 'it is exported')
    assert [each['id'] for each in place.user.run('zone', 'export', 'list', '--zone-id', done['zone_id'])] == [
        export['id']]
    written = place.user.run('zone', 'export', 'showfile', export['id'])['data']
    assert 'www.tasks.example.com. 300 IN A 192.0.2.7' in ' '.join(written.split(' '))

    for kind, task in (('import', made), ('export', export)):
        place.user.run('zone', kind, 'delete', task['id'])
        assert 'There is no ' in place.user.complaint('zone', kind, 'show', task['id'])
    path.write_text(written.replace('tasks.example.com.', 'copy.example.com.'))
    place.user.run('zone', 'import', 'create', str(path))
    wait_until(lambda: place.user.run('zone', 'list', '--name', 'copy.example.com.'), 'what went out has come in')
    path.write_text(ZONE_FILE.format(name='golden.example.com.'))
    place.user.run('zone', 'import', 'create', str(path), '--attributes', 'tier:gold')
    assert wait_until(lambda: place.user.run('zone', 'list', '--name', 'golden.example.com.'), 'it has come in')
    assert place.user.run('zone', 'show', 'golden.example.com.')['attributes'].strip() == 'tier:gold'


def test_what_the_pool_has_not_is_answered_in_words_and_by_the_code_501(place: Place) -> None:
    assert '; instead, ' in place.user.complaint('ptr', 'record', 'list')
    with pytest.raises(exceptions.Unknown) as caught:
        place.user.client().floatingips.list()
    assert caught.value.code == 501 and caught.value.request_id.startswith('req-')


@pytest.mark.parametrize(('words', 'create', 'change', 'shown'), [
    ('tsigkey', '--name key.example.com. --algorithm hmac-sha256 --secret c2VjcmV0 --scope POOL --resource-id {pool}',
     '--name new.example.com. --secret bmV3', {'name': 'new.example.com.', 'secret': '***'}),
    ('tld', '--name com --description all', '--name org --no-description', {'name': 'org', 'description': None}),
    ('zone blacklist', '--pattern ^black --description ours', '--pattern ^grey --no-description',
     {'pattern': '^grey', 'description': None}),
])
def test_the_life_of_what_administrators_keep(place: Place, words: str, create: str, change: str,
                                              shown: dict[str, Any]) -> None:
    def run(command: str) -> Any:
        return place.admin.run(*words.split(), *command.split())

    (pool,) = place.admin.client().pools.list()
    made = run(f'create {create.format(pool=pool["id"])}')
    assert [each['id'] for each in run('list')] == [made['id']]
    changed = run(f'set {made["id"]} {change}')
    assert changed['id'] == made['id'] and shown.items() <= changed.items()
    assert shown.items() <= run(f'show {made["id"]}').items() and 'c2VjcmV0' not in json.dumps([made, changed])
    run(f'delete {made["id"]}')
    assert run('list') == []
    assert 'policy' in place.user.complaint(*words.split(), 'list')


def test_a_zone_is_transferred_to_another_project(place: Place) -> None:
    zone = place.create('moving.example.com.')
    made = place.user.run('zone', 'transfer', 'request', 'create', 'moving.example.com.', '--target-project-id', 'beta',
                          '--description', 'yours')
    assert (made['status'], made['zone_id'], made['target_project_id']) == ('ACTIVE', zone['id'], 'beta')
    with pytest.raises(exceptions.Conflict) as caught:
        place.user.client().zone_transfers.create_request('moving.example.com.', None)
    assert (caught.value.code, caught.value.type) == (409, 'duplicate_zone_transfer_request')
    changed = place.user.run('zone', 'transfer', 'request', 'set', made['id'], '--description', 'really')
    assert changed['description'] == 'really'
    assert [each['id'] for each in place.user.run('zone', 'transfer', 'request', 'list')] == [made['id']]
    assert place.user.run('zone', 'transfer', 'request', 'show', made['id'])['key'] == made['key']
    other = place.other.client()
    with pytest.raises(exceptions.Forbidden) as refused:
        other.zone_transfers.accept_request(made['id'], 'x' * 16)
    assert (refused.value.code, refused.value.type) == (403, 'invalid_key')
    accepted = other.zone_transfers.accept_request(made['id'], made['key'])
    assert (accepted['status'], accepted['zone_id'], accepted['key']) == ('COMPLETE', zone['id'], made['key'])
    assert other.zone_transfers.get_accept(accepted['id'])['zone_transfer_request_id'] == made['id']
    assert other.zones.get(zone['id'])['project_id'] == 'beta'
    with pytest.raises(exceptions.BadRequest) as again:
        other.zone_transfers.accept_request(made['id'], made['key'])
    assert again.value.type == 'invalid_zone_transfer_request'
    assert 'policy' in place.user.complaint('zone', 'transfer', 'accept', 'list')
    assert place.admin.run('zone', 'transfer', 'accept', 'list') == []
    (listed,) = place.admin.run('zone', 'transfer', 'accept', 'list', '--all-projects')
    assert listed['id'] == accepted['id']
    place.user.run('zone', 'transfer', 'request', 'delete', made['id'])
    assert place.user.run('zone', 'transfer', 'request', 'list') == []


def test_a_zone_is_shared_with_another_project(place: Place) -> None:
    zone = place.create('shared.example.com.')
    made = place.user.run('zone', 'share', 'create', 'shared.example.com.', 'beta')
    assert (made['zone_id'], made['target_project_id']) == (zone['id'], 'beta')
    with pytest.raises(exceptions.Conflict) as caught:
        place.user.client().zone_share.create(zone['id'], 'beta')
    assert (caught.value.code, caught.value.type) == (409, 'duplicate_shared_zone')
    assert [each['id'] for each in place.user.run('zone', 'share', 'list', zone['id'])] == [made['id']]
    assert place.user.run('zone', 'share', 'show', zone['id'], made['id'])['target_project_id'] == 'beta'
    other = place.other.client()
    assert other.zones.get(zone['id'])['shared'] and zone['id'] in {each['id'] for each in other.zones.list()}
    recordset = other.recordsets.create(zone['id'], 'www.shared.example.com.', 'A', ['192.0.2.7'])
    assert recordset['project_id'] == 'beta'
    with pytest.raises(exceptions.Forbidden):
        other.zones.update(zone['id'], {'ttl': 300})
    with pytest.raises(exceptions.BadRequest) as refused:
        place.user.client().zone_share.delete(zone['id'], made['id'])
    assert refused.value.type == 'shared_zone_has_recordsets'
    assert 'shared with other projects' in place.user.complaint('zone', 'delete', 'shared.example.com.')
    place.user.run('zone', 'delete', 'shared.example.com.', '--delete-shares')
    with pytest.raises(exceptions.NotFound):
        other.zones.get(zone['id'])


def test_quotas_are_set_kept_and_reset(place: Place) -> None:
    before = place.admin.run('dns', 'quota', 'list', '--project-id', 'small')
    changed = place.admin.run('dns', 'quota', 'set', '--project-id', 'small', '--zones', '1', '--zone-recordsets', '9')
    assert changed == {**before, 'zones': 1, 'zone_recordsets': 9}
    assert place.admin.run('dns', 'quota', 'list', '--project-id', 'small') == changed
    client = place.admin.client(sudo_project_id='small')
    client.zones.create('one.small.example.com.', email='a@example.com')
    with pytest.raises(exceptions.OverQuota):
        client.zones.create('two.small.example.com.', email='a@example.com')
    place.admin.run('dns', 'quota', 'reset', '--project-id', 'small')
    assert place.admin.run('dns', 'quota', 'list', '--project-id', 'small') == before
    client.zones.create('two.small.example.com.', email='a@example.com')
    assert place.user.run('dns', 'quota', 'list').keys() == before.keys()


def test_services_and_limits_are_shown(place: Place) -> None:
    found = wait_until(lambda: place.admin.run('dns', 'service', 'list', '--status', 'UP'), 'the services live')
    assert {each['service_name'] for each in found} == {'api', 'central', 'mdns', 'producer', 'worker'}
    (central,) = place.admin.run('dns', 'service', 'list', '--service_name', 'central')
    assert place.admin.run('dns', 'service', 'show', central['id'])['hostname'] == central['hostname']
    assert place.admin.run('dns', 'service', 'list', '--status', 'DOWN') == []
    limits = {each['Limit']: each['Value'] for each in place.user.run('dns', 'limit', 'list')}
    assert limits['max_page_limit'] >= 1 and limits['max_zone_name_length'] == 255


def test_the_command_as_a_process_finds_its_endpoint_in_the_environment(place: Place) -> None:
    place.create('process.example.com.')
    done = place.user.process('zone', 'list', '--name', 'process.example.com.', '-f', 'value', '-c', 'name')
    assert (done.returncode, done.stdout) == (0, 'process.example.com.\n'), done.stderr


def test_what_certificate_robots_do_by_the_sdk(place: Place) -> None:
    """The calls of certbot-dns-openstack: find the zone, put a TXT record there and take it away again."""
    zone = place.create('robot.example.com.')
    with openstack.connect(auth_type='admin_token', auth={'endpoint': place.user.endpoint, 'token': place.user.token},
                           load_yaml_config=False, load_envvars=False) as cloud:
        assert cloud.get_zone('robot.example.com.')['id'] == zone['id']
        made = cloud.create_recordset(zone['id'], '_acme-challenge.robot.example.com.', 'TXT', ['"a-token"'])
        place.wait_for('robot.example.com.')
        assert place.server.texts('_acme-challenge.robot.example.com.', 'TXT') == ['"a-token"']
        assert cloud.delete_recordset(zone['id'], made['id'])
        assert 'robot.example.com.' in names(cloud.dns.zones())
        place.wait_for('robot.example.com.')
        assert list(cloud.dns.recordsets(zone['id'], type='TXT')) == []
