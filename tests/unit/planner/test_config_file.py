"""The file of a manager: what it sets up, and all that is wrong with it at once."""

from __future__ import annotations

import datetime
import pathlib
import textwrap

import pytest

from designate_pool.errors import BadConfiguration
from designate_pool.planner.config_file import read
from designate_pool.planner.engine import SyncEngine
from designate_pool.planner.octodns.adapter import AdaptedProcessor, AdaptedSource
from designate_pool.planner.outputs import HtmlOutput, JsonOutput, LogOutput, MarkdownOutput
from designate_pool.planner.processors import PROCESSORS
from designate_pool.planner.providers.base import BaseProvider, BaseSource
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import rrset
from tests.unit.planner.conftest import Config


class Listed(BaseSource):
    """A source of somebody else's."""

    def __init__(self, id: str, names: list[str], port: int = 53, key: str | None = None, ratio: float = 0.5,
                 flag: bool = False, settings: dict[str, object] | None = None) -> None:
        super().__init__(id)
        self.options = (names, port, key, ratio, flag, settings)

    def list_zones(self) -> list[str]:
        return self.options[0]

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        zone.add_record(rrset(f'www.{zone.name}', 'A', 300, ['192.0.2.1']))
        return True


class Refusing(BaseProvider):
    """A provider that says its key in its complaint."""

    def __init__(self, id: str, key: str) -> None:
        raise ValueError(f'the key {key} is wrong')


LISTED = f'{__name__}.Listed'


TARGET = '''
providers:
  out: {class: fake}
'''


def source(options: str) -> str:
    return f'''
providers:
  in:
    class: {LISTED}
    names: []
{textwrap.indent(textwrap.dedent(options), '    ')}
zones:
  example.com.: {{sources: [in], targets: []}}
'''


def test_a_file_that_octodns_reads_is_read_and_run(config: Config, tmp_path: pathlib.Path) -> None:
    """P-19, P-21, Q-15, Z-28."""
    zones = tmp_path / 'zones'
    zones.mkdir()
    (zones / 'example.com.yaml').write_text("---\nwww:\n  ttl: 300\n  type: A\n  value: 192.0.2.1\n"
                                            "zzz:\n  type: TXT\n  value: gone\n")
    setup = config.read(f'''
        manager:
          max_workers: 2
          processors: [short]
          post_processors: [no-txt]
          plan_outputs:
            log: {{class: octodns.provider.plan.PlanLogger, level: error}}
            json: {{class: octodns.provider.plan.PlanJson, indent: 2, output_filename: {tmp_path / 'plan.json'}}}
            html: {{class: octodns.provider.plan.PlanHtml}}
            markdown: {{class: octodns.provider.plan.PlanMarkdown}}
        processors:
          short: {{class: octodns.processor.clamp.TtlClampProcessor, min_ttl: 1, max_ttl: 60}}
          no-txt: {{class: octodns.processor.filter.TypeRejectlistFilter, rejectlist: [TXT]}}
          theirs: {{class: octodns.processor.spf.SpfDnsLookupProcessor}}
        providers:
          config:
            class: octodns.provider.yaml.YamlProvider
            directory: {zones}
            default_ttl: 3600
            enforce_order: True
            split_extension: false
          out: {{class: fake}}
          env: {{class: octodns.source.envvar.EnvVarSource, variable: HOME, name: home}}
        zones:
          example.com.:
            sources: [config]
            targets: [out]
            processors: [theirs]
            lenient: true
            update_pcent_threshold: 0.5
            delete_pcent_threshold: 1
            always-dry-run: false
          example.net.: {{alias: example.com.}}
        ''')
    assert (setup.max_workers, setup.first_processors, setup.last_processors) == (2, ('short',), ('no-txt',))
    assert [type(each) for each in setup.outputs] == [LogOutput, JsonOutput, HtmlOutput, MarkdownOutput]
    zone = setup.zones['example.com.']
    assert (zone.sources, zone.targets, zone.processors, zone.lenient) == (('config',), ('out',), ('theirs',), True)
    assert (zone.update_pcent_threshold, zone.delete_pcent_threshold) == (0.5, 1.0)
    assert isinstance(setup.processors['theirs'], AdaptedProcessor)
    assert isinstance(setup.providers['env'], AdaptedSource)
    assert not isinstance(setup.providers['config'], AdaptedSource)
    outcome = SyncEngine(setup).sync(dry_run=False)
    assert outcome.failed == [] and outcome.applied == 2
    assert [str(result.plan.changes[0].record) for result in outcome.results if result.plan] == [
        'www.example.com. 60 A 192.0.2.1', 'www.example.net. 60 A 192.0.2.1']
    assert '"www.example.net."' in (tmp_path / 'plan.json').read_text()
    assert SyncEngine(setup).sync(dry_run=False).changes == 0


def test_defaults_are_those_of_octodns(config: Config) -> None:
    setup = config.read(source(''))
    assert (setup.max_workers, setup.first_processors, setup.last_processors, setup.policy) == (1, (), (), ())
    assert [type(each) for each in setup.outputs] == [LogOutput]
    assert setup.plan_lifetime == datetime.timedelta(days=1)
    zone = setup.zones['example.com.']
    assert (zone.lenient, zone.always_dry_run, zone.update_pcent_threshold, zone.alias) == (False, False, None, None)


def test_a_zone_that_names_no_sources_comes_from_the_pool(config: Config) -> None:
    providers = '''
        providers:
          out: {class: fake}
          pool: {class: pool}
    '''
    setup = config.read(providers + '''
        zones:
          example.com.: {targets: [out]}
    ''')
    assert setup.zones['example.com.'].sources == ('pool',)
    mistakes = config.mistakes(providers + '''
        zones:
          example.com.: {targets: [pool]}
    ''')
    assert len(mistakes) == 1 and mistakes[0].startswith('zones.example.com..sources: must be given')


def test_policies_lifetimes_and_zones_that_are_listed(config: Config) -> None:
    setup = config.read(f'''
        manager: {{policy: upsert-only, plan_lifetime: 3600}}
        providers:
          in: {{class: {LISTED}, names: [a.example., b.test.]}}
          out: {{class: fake, policy: [create-only, upsert-only], strict_supports: false}}
        zones:
          '*test': {{sources: [in], targets: [out], regex: '\\.test\\.$'}}
          '*': {{sources: [in], targets: [out], glob: '*.example.', policy: sync}}
        ''')
    assert setup.policy == ('upsert-only',) and setup.target_policies == {'out': ('create-only', 'upsert-only')}
    assert setup.plan_lifetime == datetime.timedelta(hours=1)
    manager = SyncEngine(setup)
    assert manager.zones() == ['b.test.', 'a.example.']
    assert [len(result.plan.changes) for result in manager.sync().results if result.plan] == [1, 1]


def test_values_are_fetched_and_become_what_the_option_is(config: Config, tmp_path: pathlib.Path) -> None:
    """P-20, A72, A73."""
    (tmp_path / 'key').write_text('00456\n')

    def options(text: str, **environ: str) -> object:
        found = config.read(source(text), **environ).providers['in']
        assert isinstance(found, Listed)
        return found.options

    assert options('key: env/KEY\nport: env/PORT\nratio: env/RATIO\nflag: env/FLAG', KEY='00123', PORT='0053',
                   RATIO='1', FLAG='yes') == ([], 53, '00123', 1.0, True, None)
    assert options('key: env/KEY/a/b/c\nport: env/PORT/54', KEY2='x') == ([], 54, 'a/b/c', 0.5, False, None)
    assert options('key: env/KEY/', KEY2='x') == ([], 53, '', 0.5, False, None)
    assert options('settings: {a: [env/A, {b: env/B/1.0}], c: other/thing, d: 1}', A='1') == (
        [], 53, None, 0.5, False, {'a': ['1', {'b': '1.0'}], 'c': 'other/thing', 'd': 1})
    handlers = f'secret_handlers:\n  file: {{class: file, directory: {tmp_path}}}\n'
    found = config.read(handlers + source('key: file/key')).providers['in']
    assert isinstance(found, Listed) and found.options[2] == '00456'
    assert options('key: file/key') == ([], 53, 'file/key', 0.5, False, None)


def test_octodns_secret_handlers_serve_as_well(config: Config) -> None:
    text = 'secret_handlers:\n  vault: {class: octodns.secret.environ.EnvironSecrets}\n' + source('key: vault/NO_SUCH')
    assert config.mistakes(text) == [
        "providers.in.key: vault cannot fetch it (EnvironSecretsException: Incorrect provider config, missing env var "
        'NO_SUCH, providers.in)']


def test_a_secret_is_in_no_mistake(config: Config) -> None:
    assert config.mistakes(f'''
        providers:
          out: {{class: {__name__}.Refusing, key: env/KEY}}
        zones:
          example.com.: {{sources: [out], targets: [out]}}
        ''', KEY='s3cr3t') == ['providers.out: ValueError: the key (a secret) is wrong']


def test_all_mistakes_are_told_at_once_with_their_places(config: Config) -> None:
    assert config.mistakes(f'''
        x-anchors: {{anything: goes}}
        maneger: {{}}
        manager:
          max_workers: 0
          plan_lifetime: 1000000000000000000000
          processors: [nobody]
          post_processors: short
          enable_checksum: true
          auto_arpa: {{ttl: 3}}
          include_meta: 1
          policy: upsert
          plan_outputs:
            a: {{class: PlanLogger}}
            b: {{class: log, level: loud}}
            c: {{class: octodns.provider.plan.UnsafePlan}}
            d: {{class: html, output_filname: x}}
        providers:
          a: {{directory: x}}
          b: {{class: yml, directory: x}}
          c: {{class: yaml}}
          d: {{class: zonefile, directory: env/NOT_THERE, file_extention: .zone}}
          e: {{class: no.such.Thing}}
          f: {{class: designate_pool.planner.zone.zone.Zone}}
          g: {{class: rfc2136, host: 192.0.2.1, port: many, timeout: true, update_pcent_threshold: half, ports: 1}}
          h: {{class: designate_pool.planner.zone.zone.Nothing}}
          i: {{class: {LISTED}, names: [], port: 5.5, key: 123, flag: 1}}
          j: [class]
          k: {{class: octodns_bind.ZoneFileProvider, nonsense: 1, directory: x}}
          in: {{class: {LISTED}, names: []}}
          out: {{class: fake, policy: sometimes, on_aply: fail}}
        processors:
          short: {{class: ttl-clam}}
          long: {{class: octodns.processor.spf.SpfDnsLookupProcessor, maximum: 3}}
          wrong: {{class: designate_pool.planner.zone.zone.Zone}}
        zones:
          example.com.:
            sources: [inn, in, in]
            targets: [in, 3]
            processors: [shrt]
            leneint: true
            lenient: 'yes'
            policy: []
            update_pcent_threshold: 30
            delete_pcent_threshold: some
            always-dry-run: 1
            glob: x
            alias: 5
          example: {{sources: [in], targets: []}}
          Example.com.: {{sources: [], targets: out}}
          example.net.: {{alias: nowhere.test., sources: [in]}}
          a.example.: {{alias: example.net.}}
          b.example.:
          c.example.: {{sources: [in], targets: []}}
        ''') == [
        'maneger: there is no such key (did you mean manager?)',
        'manager.enable_checksum: plans are not applied by a checksum here; keep the plan in a store, and apply it by '
        'its id',
        'manager.auto_arpa: zones below arpa. are not made from others here; write them, or have octoDNS dump them',
        'providers.a.class: must be given, as a string',
        'providers.b.class: there is no class yml (did you mean yaml?); there are axfr, fake, pool, powerdns, rfc2136, '
        'yaml, zonefile, and dotted paths',
        'providers.c.directory: must be given',
        'providers.d.directory: NOT_THERE: the environment has no such variable',
        'providers.d.file_extention: zonefile has no such option (did you mean file_extension?)',
        "providers.e.class: no.such cannot be imported (ModuleNotFoundError: No module named 'no')",
        'providers.f.class: designate_pool.planner.zone.zone.Zone is neither a source nor a provider',
        'providers.g.port: must be a whole number',
        'providers.g.timeout: must be a number',
        'providers.g.update_pcent_threshold: must be a number',
        'providers.g.ports: rfc2136 has no such option (did you mean port?)',
        'providers.h.class: there is no class Nothing in designate_pool.planner.zone.zone',
        'providers.i.port: must be a whole number',
        'providers.i.key: must be a string: write it in quotes',
        'providers.i.flag: must be true or false',
        'providers.j: must be a mapping',
        'providers.j.class: must be given, as a string',
        'providers.k.nonsense: ZoneFileProvider has no such option',
        "providers.out.policy: 'sometimes' is none of sync, upsert-only, create-only, update-only, delete-only, "
        'create-delete-only, create-and-delete-only, create-update-only, update-delete-only, nor verbs of create, '
        'delete, update with + between them',
        'providers.out.on_aply: fake has no such option',
        'processors.short.class: there is no class ttl-clam (did you mean ttl-clamp?); there are '
        f'{", ".join(sorted(each for each in PROCESSORS if "." not in each))}, and dotted paths',
        'processors.long.maximum: SpfDnsLookupProcessor has no such option',
        'processors.wrong.class: designate_pool.planner.zone.zone.Zone is no processor',
        'manager.plan_outputs.a.class: there is no class PlanLogger; there are html, json, log, markdown, and dotted '
        'paths',
        "manager.plan_outputs.b: level: 'loud' is not one of debug, info, warn, warning, error",
        'manager.plan_outputs.c.class: octodns.provider.plan.UnsafePlan is no output of ours; those are log, json, '
        'markdown, html',
        'manager.plan_outputs.d.output_filname: HtmlOutput has no such option (did you mean output_filename?)',
        'manager.post_processors: must be a list',
        'manager.include_meta: must be true or false',
        'zones.example.com..leneint: there is no such key (did you mean lenient?)',
        'zones.example.com..alias: must be a string',
        'zones.example.com..glob: only a zone that begins with * can have it',
        'zones.example.com..sources[0]: there is no provider inn (did you mean in?)',
        'zones.example.com..sources[2]: in is there twice',
        'zones.example.com..targets[1]: must be a string',
        'zones.example.com..targets[0]: in can only be read from',
        'zones.example.com..processors[0]: there is no processor shrt (did you mean short?)',
        'zones.example.com..policy: must be a word, or a list of words',
        'zones.example.com..lenient: must be true or false',
        'zones.example.com..update_pcent_threshold: must be a fraction from 0 to 1, such as 0.3 for 30 %',
        'zones.example.com..delete_pcent_threshold: must be a fraction from 0 to 1, such as 0.3 for 30 %',
        'zones.example.com..always-dry-run: must be true or false',
        'zones.example: example: the final dot is missing',
        'zones.Example.com.: example.com. is there twice',
        'zones.Example.com..sources: must have at least one',
        'zones.Example.com..targets: must be a list',
        'zones.example.net..sources: an alias has its records from the other zone',
        'zones.b.example..targets: must be given',
        'zones.b.example..sources: must be given; without it a zone comes from the pool, and for that there has '
        'to be one provider of the class pool that is none of its targets',
        'zones.example.net..alias: nowhere.test. is no zone of this file',
        'zones.a.example..alias: example.net. is an alias itself',
        'manager.processors[0]: there is no processor nobody',
        "manager.policy: 'upsert' is none of sync, upsert-only, create-only, update-only, delete-only, "
        'create-delete-only, create-and-delete-only, create-update-only, update-delete-only, nor verbs of create, '
        'delete, update with + between them',
        'manager.max_workers: must be a whole number from 1 to 1000000000',
        'manager.plan_lifetime: must be a whole number from 1 to 1000000000',
    ]


def test_a_threshold_of_a_target_is_a_fraction(config: Config) -> None:
    """With 30 for 30 %, nothing would be too much."""
    assert config.mistakes(f'''
        providers:
          in: {{class: {LISTED}, names: []}}
          out: {{class: fake, delete_pcent_threshold: 30}}
          other: {{class: octodns.provider.yaml.YamlProvider, directory: out, update_pcent_threshold: env/MANY}}
        zones:
          example.com.: {{sources: [in], targets: [out, other]}}
        ''', MANY='nan') == [
        f'providers.{each}_pcent_threshold: must be a fraction from 0 to 1, such as 0.3 for 30 %'
        for each in ('out.delete', 'other.update')]


def test_a_zone_that_stands_for_many_has_one_pattern_at_most(config: Config) -> None:
    assert config.mistakes(f'''
        providers:
          in: {{class: {LISTED}, names: []}}
        zones:
          '*': {{sources: [in], targets: [], glob: x, regex: '('}}
          '*a': {{alias: example.com.}}
        ''') == [
        'zones.*.regex: there is a glob already, and only one of the two can be',
        'zones.*.regex: it is no regular expression (missing ), unterminated subpattern at position 0)',
        'zones.*a.alias: a zone that begins with * cannot be one']


def test_what_octodns_has_and_is_not_used_may_be_there_unset(config: Config) -> None:
    setup = config.read('''
        manager: {enable_checksum: false, auto_arpa: false, include_meta: false, validators: {}, plan_outputs: }
        validators: {}
        ''' + textwrap.indent(source(''), ' ' * 8))
    assert list(setup.zones) == ['example.com.']


def test_meta_records_are_octodns_own(config: Config) -> None:
    setup = config.read(f'''
        manager: {{include_meta: true}}
        providers:
          in: {{class: {LISTED}, names: []}}
          out: {{class: fake}}
        zones:
          example.com.: {{sources: [in], targets: [out]}}
        ''')
    assert setup.last_processors == ('meta',)
    (result,) = SyncEngine(setup).sync().results
    assert result.plan is not None
    assert 'Create octodns-meta.example.com. 60 TXT "provider=out"' in map(str, result.plan.changes)
    assert config.mistakes(f'''
        manager: {{include_meta: true}}
        processors: {{meta: {{class: ttl-clamp}}}}
        providers:
          in: {{class: {LISTED}, names: []}}
        zones:
          example.com.: {{sources: [in], targets: []}}
        ''') == ["manager.include_meta: a processor 'meta' is there already, and this would be another"]


@pytest.mark.parametrize(('text', 'mistakes'), [
    ('a: 1\nb: 2\na: 3\n', ["FILE, line 3: 'a' is there twice"]),
    ('a: [', ['FILE, line 2: did not find expected node content']),
    ('- a', ['FILE: it is not a mapping']),
    ('', ["FILE: it is empty; an empty mapping is written '{}'"]),
    ('{}', ['zones: must have at least one']),
    ('zones: []', ['zones: must be a mapping', 'zones: must have at least one']),
])
def test_a_file_that_is_no_such_yaml(config: Config, text: str, mistakes: list[str]) -> None:
    assert config.mistakes(text) == mistakes


def test_a_file_that_cannot_be_read(config: Config, tmp_path: pathlib.Path) -> None:
    with pytest.raises(BadConfiguration, match='No such file'):
        read(tmp_path / 'nothing.yaml')
    config.path.write_bytes(b'a: \xff')
    with pytest.raises(BadConfiguration, match='UTF-8'):
        read(config.path)


def test_a_part_of_the_file_is_included_from_its_folder_also_through_a_link(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'real').mkdir()
    (tmp_path / 'real/config.yaml').write_text(source('') + '  example.net.: !include zone.yaml\n')
    (tmp_path / 'real/zone.yaml').write_text('{sources: [in], targets: [], lenient: true}')
    (tmp_path / 'config.yaml').symlink_to('real/config.yaml')
    assert [read(tmp_path / path).zones['example.net.'].lenient for path in ('real/config.yaml', 'config.yaml')] == [
        True, True]


def test_secret_handlers_that_are_none(config: Config, tmp_path: pathlib.Path) -> None:
    (tmp_path / 'latin').write_bytes(b'\xe9')
    assert config.mistakes(f'''
        secret_handlers:
          a: {{class: fil}}
          b: {{class: designate_pool.planner.zone.zone.Zone}}
          file: {{class: file, directory: {tmp_path}}}
        ''' + textwrap.indent(source('key: file/nothing\nsettings: [file/latin, a/x]'), ' ' * 8)) == [
        'secret_handlers.a.class: there is no class fil (did you mean file?); there are file, and dotted paths',
        'secret_handlers.b.class: designate_pool.planner.zone.zone.Zone is no secret handler: it has no fetch',
        f'providers.in.key: {tmp_path}/nothing: it cannot be read (No such file or directory)',
        f'providers.in.settings[0]: {tmp_path}/latin: it is not UTF-8 text',
    ]


def test_an_alias_is_a_name(config: Config) -> None:
    text = source('') + '  example.net.: {alias: example.com}\n'
    assert config.mistakes(text)[0] == 'zones.example.net..alias: example.com: the final dot is missing'


def test_what_is_no_number_for_an_octodns_class_is_left_to_it(config: Config) -> None:
    setup = config.read(f'''
        providers:
          in: {{class: octodns.source.envvar.EnvVarSource, variable: HOME, name: home, ttl: env/TTL}}
          x: {{class: {LISTED}, names: []}}
        zones:
          example.com.: {{sources: [x], targets: []}}
        ''', TTL='7')
    assert setup.providers['in'].wrapped.ttl == 7  # type: ignore[attr-defined]
