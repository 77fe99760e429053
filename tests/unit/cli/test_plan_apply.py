"""The commands for zones in files where there is no pool: plans in a folder, YAML as a target."""

from __future__ import annotations

import json
import pathlib

import pytest

from designate_pool.cli.commands.sync_base import VARIABLE, path_of
from tests.fixtures.commands import Folder

CONFIG = '''
manager: {plans: plans, plan_outputs: {text: {class: log}, json: {class: json, output_filename: plan.json}}}
providers:
  files: {class: zonefile, directory: zones, file_extension: .zone, check_origin: false}
  out: {class: yaml, directory: out, root_ns_warnings: false}
zones:
  '*': {sources: [files], targets: [out]}
'''
FILE = 'zones/example.com.zone'
PLANS_OF_THE_POOL = 'Plans of the pool are not shown: The API at http://127.0.0.1:9 does not answer'


@pytest.fixture
def git(tmp_path: pathlib.Path) -> Folder:
    made = Folder(tmp_path)
    made.write('designate-pool-sync.yaml', CONFIG)
    made.write(FILE, 'www 300 A 192.0.2.1\nmail 300 A 192.0.2.2\n')
    return made


def target(git: Folder) -> str:
    path = git.path / 'out' / 'example.com.yaml'
    return path.read_text() if path.exists() else ''


def state(git: Folder, plan: str) -> str:
    return str(git.run('plan', 'show', plan, '-f', 'json').json['state'])


class TestPlansInAFolder:
    def test_planned_applied_and_nothing_left(self, git: Folder) -> None:
        ran = git.run('plan', '--detailed-exitcode', code=2)
        assert 'In all 2 to create, 0 to update, 0 to delete.\n' in ran.out
        document = json.loads((git.path / 'plan.json').read_text())
        assert document['plans'][0]['counts']['creates'] == 2
        assert document['plan_id'].startswith(ran.plan)
        assert state(git, ran.plan) == 'STORED' and target(git) == ''
        out = git.run('apply', ran.plan[:4]).out
        assert out.endswith('2 of 2 changes applied\n2 changes applied.\n') and out.count('\n') == 2
        assert state(git, ran.plan) == 'APPLIED' and '192.0.2.2' in target(git)
        assert git.run('plan', '--detailed-exitcode').err == ''
        assert 'is APPLIED' in git.run('apply', ran.plan, code=1).err
        assert 'it was applied already' in git.run('plan', 'drop', ran.plan, code=1).err

    def test_the_same_plan_is_stored_once(self, git: Folder) -> None:
        first = git.run('plan')
        assert git.run('plan').err == first.err
        git.change(FILE, '192.0.2.2', '192.0.2.3')
        second = git.run('plan').plan
        assert second != first.plan
        git.run('plan', 'drop', second)
        assert git.run('plan').plan not in (first.plan, second)
        assert len(list((git.path / 'plans').glob('*.json'))) == 3

    def test_what_moved_is_refused(self, git: Folder) -> None:
        git.run('apply', '--yes')
        git.change(FILE, '192.0.2.2', '192.0.2.3')
        plan = git.run('plan').plan
        git.change('out/example.com.yaml', '192.0.2.1', '192.0.2.9')
        assert 'the zone has changed since planning' in git.run('apply', plan, code=1).err
        assert state(git, plan) == 'DROPPED' and '192.0.2.2' in target(git)

    def test_listed_beside_those_of_the_pool_if_there_is_one(self, git: Folder) -> None:
        first = git.run('plan').plan
        git.run('plan', 'drop', first)
        second = git.run('plan').plan
        listed = git.run('plan', 'list', '-f', 'json')
        assert [each['id'][:8] for each in listed.json] == [second, first]
        assert listed.err.startswith(PLANS_OF_THE_POOL)
        assert [each['id'][:8] for each in git.run('plan', 'list', '--state', 'stored', '-f', 'json').json] == [second]

    def test_dropped_twice(self, git: Folder) -> None:
        plan = git.run('plan').plan
        for _ in range(2):
            assert git.run('plan', 'drop', plan, '-f', 'json').json['state'] == 'DROPPED'
        assert 'is DROPPED' in git.run('apply', plan, code=1).err

    def test_nothing_is_applied_without_an_id_or_a_yes(self, git: Folder) -> None:
        plan = git.run('plan').plan
        for words in ([], [plan, plan]):
            assert 'Name one plan' in git.run('apply', *words, code=1).err
        assert 'does not change example.org.' in git.run('apply', plan, '--force', 'example.org', code=1).err
        assert target(git) == ''

    def test_waiting_for_what_is_no_pool(self, git: Folder) -> None:
        assert 'There is nothing to wait for' in git.run('apply', git.run('plan').plan, '--wait').err


class TestWhatIsUnsafe:
    def test_every_zone_is_named_with_its_force(self, git: Folder) -> None:
        git.write('zones/example.net.zone', 'www 300 A 192.0.2.1\n')
        git.run('apply', '--yes')
        git.write(FILE, '; nothing\n')
        git.write('zones/example.net.zone', '; nothing\n')
        ran = git.run('plan')
        plan = ran.plan
        assert 'the sources are empty, the target has 2 RRsets' in ran.out
        assert 'if it is meant, add --force example.com\n' in ran.err
        for words in (['apply', plan], ['apply', '--yes'],
                      ['apply', plan, '--config', 'designate-pool-sync.yaml']):
            told = git.run(*words, code=1).err
            assert told.startswith('2 plans are unsafe:\n'
                                   '  example.com. on out: the sources are empty, the target has 2 RRsets.\n'
                                   '  example.net. on out: the sources are empty, the target has 1 RRsets.\n'
                                   'Nothing was applied. If it is meant: ')
            assert told.endswith(f'{" ".join(words)} --force example.com --force example.net\n')
        git.run('apply', plan, '--force', 'example.com', '--force', 'example.net')
        assert '192.0.2.1' not in target(git)


class TestAZoneThatFails:
    def test_is_not_forgotten_when_the_others_are_applied(self, git: Folder) -> None:
        git.write('zones/example.net.zone', 'www 300 A 192.0.2\n')
        plan = git.run('plan', code=1).plan
        ran = git.run('apply', plan, code=1)
        assert 'example.com. on out: 2 of 2 changes applied\n' in ran.out
        assert 'example.net. on out: it was not planned: ' in ran.out and '1 zone failed; 2 changes applied.' in ran.out
        assert state(git, plan) == 'APPLIED' and '192.0.2.2' in target(git)


class TestTheConfiguration:
    def test_which_file_it_is(self, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert path_of(None, {}) is None
        (tmp_path / 'designate-pool-sync.yaml').touch()
        assert path_of(None, {}) == pathlib.Path('designate-pool-sync.yaml')
        assert path_of(None, {VARIABLE: 'a'}) == pathlib.Path('a')
        assert path_of('b', {VARIABLE: 'a'}) == pathlib.Path('b')

    def test_without_one(self, git: Folder) -> None:
        (git.path / 'designate-pool-sync.yaml').unlink()
        for words in (['plan'], ['apply', '--yes'], ['validate'], ['dump', '--output', 'x']):
            assert git.run(*words, code=1).err.startswith('There is no configuration: give one as --config FILE')
        assert 'does not answer' in git.run('plan', 'list', code=1).err
        assert 'No such file' in git.run('plan', '--config', 'nothing.yaml', code=1).err

    def test_every_mistake_is_told(self, git: Folder) -> None:
        git.change('designate-pool-sync.yaml', 'directory: out', 'directori: out')
        git.change('designate-pool-sync.yaml', 'targets: [out]', 'targets: [ouch]')
        told = git.run('validate', code=1).err
        assert 'providers.out.directory: must be given' in told and 'there is no provider ouch' in told
        assert git.run('plan', code=1).err == told

    def test_every_zone_that_cannot_be_read_is_told(self, git: Folder) -> None:
        assert git.run('validate').out == '1 zone can be read, and nothing is wrong.\n'
        git.write('zones/a.example.zone', 'www 300 A x\n')
        git.write('zones/b.example.zone', 'www 300 CNAME a\nwww 300 A 192.0.2.1\n')
        told = git.run('validate', code=1).err
        assert '(2):\n  zones.a.example.: ' in told and '\n  zones.b.example.: ' in told

    def test_a_pool_that_does_not_answer(self, git: Folder) -> None:
        git.change('designate-pool-sync.yaml', 'plans: plans, ', '')
        refused = git.run('plan', code=1).err
        assert refused.splitlines()[-1] == (
            'The API at http://127.0.0.1:9 does not answer: connection refused. Look whether designate-pool-api '
            '(or -all) is running and whether --url or DESIGNATE_POOL_URL is right.')
        assert git.run('plan', '--no-store').err == ''

    def test_the_pool_is_where_the_configuration_says_unless_it_is_given(self, git: Folder) -> None:
        git.change('designate-pool-sync.yaml', 'plans: plans, ', '')
        git.change('designate-pool-sync.yaml', 'providers:',
                   'providers:\n  pool: {class: pool, url: "http://127.0.0.1:7"}')
        assert 'http://127.0.0.1:9 does not answer' in git.run('plan', 'list', code=1).err
        git.url = ''
        assert 'http://127.0.0.1:7 does not answer' in git.run('plan', 'list', code=1).err
        given = git.run('--url', 'http://127.0.0.1:8', 'plan', 'list', code=1)
        assert 'http://127.0.0.1:8 does not answer' in given.err


class TestDumping:
    def test_all_zones_in_both_forms_which_read_the_same(self, git: Folder) -> None:
        git.write('zones/example.net.zone', '@ 60 TXT "a; b" "c"\n*.x 60 CNAME www.example.com.\n')
        assert git.run('dump', '--output', 'a').out.count('RRsets a/') == 2
        git.run('dump', '--output', 'b', '--format', 'yaml')
        assert (git.path / 'a' / 'example.net.zone').read_text() == (
            '*.x.example.net. 60 IN CNAME www.example.com.\nexample.net. 60 IN TXT "a; b" "c"\n')
        git.change('designate-pool-sync.yaml', 'providers:', 'providers:\n  b: {class: yaml, directory: b}')
        assert 'is the same' in git.run('compare', 'a/example.com.zone', 'b', 'example.com').out
        assert sorted(path.name for path in (git.path / 'a').iterdir()) == ['example.com.zone', 'example.net.zone']

    def test_a_zone_with_a_slash_in_its_name_is_read_as_the_same(self, git: Folder) -> None:
        git.change('designate-pool-sync.yaml', "'*'", '64/26.2.0.192.in-addr.arpa.')
        git.write('zones/64-26.2.0.192.in-addr.arpa.zone', '65 300 PTR host65.example.com.\n')
        git.run('dump', '--output', 'a')
        git.run('dump', '--output', 'a', '--format', 'yaml')
        git.change('designate-pool-sync.yaml', '64/26.2.0.192.in-addr.arpa.', "'*'")
        git.change('designate-pool-sync.yaml', 'directory: zones', 'directory: a')
        git.change('designate-pool-sync.yaml', 'directory: out', 'directory: a')
        assert git.run('dump', '--output', 'b').out.startswith('64/26.2.0.192.in-addr.arpa. 1 RRset ')
        git.run('plan', '--detailed-exitcode')

    def test_what_a_form_has_no_words_for_is_told(self, git: Folder) -> None:
        git.write('in/example.com.yaml', 'a:\n  octodns: {included: [one]}\n  type: A\n  value: 192.0.2.1\n')
        git.change('designate-pool-sync.yaml', 'providers:', 'providers:\n  in: {class: yaml, directory: in}')
        words = ('dump', 'example.com', '--source', 'in', '--output', 'x')
        assert '1 RRsets have settings or a type that a zone file has no words for' in git.run(*words).err
        assert '1 RRsets are for some targets only' in git.run(*words, '--format', 'yaml').err
        git.write('in/example.com.yaml', "'': {type: ALIAS, value: b.}\n")
        assert '1 RRsets have settings or a type that a zone file has no words for' in git.run(*words).err

    def test_another_source_need_not_be_there(self, git: Folder) -> None:
        git.write('in/example.net.yaml', 'a: {type: A, value: 192.0.2.1}\n')
        text = CONFIG.replace('providers:', 'providers:\n  in: {class: yaml, directory: in}')
        git.write('designate-pool-sync.yaml', text.replace('directory: zones', 'directory: nowhere')
                  + '  example.net.: {sources: [in], targets: [out]}\n')
        for words in (('example.net',), ('--source', 'in'), ('example.net', '--source', 'in')):
            assert git.run('dump', *words, '--output', 'x').err == ''
        # Those of * are not dumped, and a dump of all zones says so, as does one of a zone that may be among them.
        for unlisted in ((), ('example.com',)):
            assert 'nowhere cannot be read' in git.run('dump', *unlisted, '--output', 'y', code=1).err
        assert not (git.path / 'y').exists()
        git.change('designate-pool-sync.yaml', "'*': {sources: [files]", "'*': {sources: [in]")
        ran = git.run('dump', '--output', 'x')
        assert (ran.out, ran.err) == ('example.net. 1 RRset x/example.net.zone\n', '')

    def test_where_nothing_can_be_written(self, git: Folder) -> None:
        git.write('x', 'a file')
        assert 'x cannot be written: ' in git.run('dump', '--output', 'x', code=1).err
        told = git.run('dump', 'example.org', '--output', 'y', code=1).err
        assert told == 'There is no example.org. in the configuration; with --source it need not be.\n'
        assert 'there is no nothing' in git.run('dump', '--source', 'nothing', '--output', 'y', code=1).err


class TestComparing:
    def test_two_files_without_a_configuration(self, git: Folder) -> None:
        (git.path / 'designate-pool-sync.yaml').unlink()
        git.write('other.zone', 'www 300 A 192.0.2.1\n')
        ran = git.run('compare', FILE, 'other.zone', 'example.com', code=2)
        assert ran.out == (f'example.com. in other.zone differs from {FILE}: 1 change\n  Create mail.example.com. A\n'
                           '    + mail.example.com. 300 A 192.0.2.2\n')
        assert git.run('compare', FILE, FILE, 'example.com').out == f'example.com. is the same in {FILE} and {FILE}.\n'

    def test_what_there_is_not(self, git: Folder) -> None:
        assert 'nothing is neither a zone file nor one of files, out, pool' in git.run(
            'compare', 'nothing', 'out', 'example.com', code=1).err
        assert 'does not answer' in git.run('compare', 'files', 'pool', 'example.com', code=1).err
