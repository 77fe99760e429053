"""octoDNS's providers and processors as ours: their hooks, and what of a plan they are given."""

from __future__ import annotations

import logging
import pathlib
from typing import Any

import pytest
from octodns.processor.base import BaseProcessor as TheirProcessor, ProcessorException as TheirProcessorException
from octodns.provider.base import BaseProvider as TheirProvider
from octodns.provider.plan import Plan as TheirPlan
from octodns.record import Create, Delete, Record, Update
from octodns.zone import Zone as TheirZone

from designate_pool.errors import InvalidField, ProcessorException, SourceError, SupportsException, ZoneError
from designate_pool.planner.octodns.adapter import (AdaptedProvider, OctodnsServer, adapt_processor, adapt_provider,
                                                    adapt_server, class_of)
from designate_pool.planner.plan import safety
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, plan_for
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import Extra, RRset, rrset
from tests.fixtures.plans import planned

NAME = 'example.com.'


class Shelf(TheirProvider):
    """An octoDNS provider that keeps zones in memory, for all instances that share *zones*."""

    SUPPORTS = {'A', 'AAAA', 'CNAME', 'MX', 'NS', 'PTR', 'TXT'}
    SUPPORTS_GEO = False
    SUPPORTS_ROOT_NS = True

    def __init__(self, id: str, zones: dict[str, list[Any]] | None = None, broken: bool = False,
                 timeout: float | None = None, **kwargs: Any) -> None:
        self.log = logging.getLogger('Shelf')
        super().__init__(id, **kwargs)
        self.zones = {} if zones is None else zones
        self.broken = broken
        self.timeout = timeout
        self.plans: list[TheirPlan] = []

    def list_zones(self) -> list[str]:
        return sorted(self.zones)

    def populate(self, zone: TheirZone, target: bool = False, lenient: bool = False) -> bool:
        for record in self.zones.get(zone.name, ()):
            zone.add_record(record.copy(zone=zone), lenient=lenient)
            if self.broken:
                raise KeyError('half of it')
        return zone.name in self.zones

    def _apply(self, plan: TheirPlan) -> None:
        self.plans.append(plan)
        after = plan.existing.copy()
        after.apply(plan.changes)
        self.zones[plan.desired.name] = sorted(after.records)


class Dynamic(Shelf):
    SUPPORTS_POOL_VALUE_STATUS = SUPPORTS_DYNAMIC_SUBNETS = True

    @property
    def SUPPORTS_DYNAMIC(self) -> bool:
        return True


class Hooked(Shelf):
    """One that rounds TTLs up to a minute, knows of a change that nobody sees, and has something to tell."""

    def _process_desired_zone(self, desired: TheirZone) -> TheirZone:
        for record in desired.records:
            if record.ttl < 60:
                self.supports_warn_or_except(f'{record.fqdn} with TTL {record.ttl}', 'it gets 60')
                longer = record.copy()
                longer.ttl = 60
                desired.add_record(longer, replace=True)
        return super()._process_desired_zone(desired)

    def _process_existing_zone(self, existing: TheirZone, desired: TheirZone, lenient: bool = False) -> TheirZone:
        for record in existing.records:
            if record.name.startswith('internal'):
                existing.remove_record(record)
        return super()._process_existing_zone(existing, desired, lenient=lenient)

    def _include_change(self, change: Any) -> bool:
        return change.record.name != 'noise'

    def _extra_changes(self, existing: TheirZone, desired: TheirZone, changes: list[Any]) -> list[Any]:
        quiet = desired.get_type('quiet', 'A')
        return [Update(quiet, quiet)] if quiet is not None else []

    def _plan_meta(self, existing: TheirZone, desired: TheirZone, changes: list[Any]) -> dict[str, Any] | None:
        return {'class of service': 'gold'} if changes else None


def zone(*rrsets: RRset, **settings: Any) -> Zone:
    made = Zone(NAME, **settings)
    for each in rrsets:
        made.add_record(each)
    return made


def a(name: str, *addresses: str, ttl: int = 300, extra: Extra = Extra()) -> RRset:
    return rrset(f'{name}.{NAME}', 'A', ttl, addresses or ['192.0.2.1'], extra)


def adapted(cls: type[Shelf] = Shelf, *there: RRset, **kwargs: Any) -> AdaptedProvider:
    """A provider that has the zone with some RRsets in it, where any are given."""
    provider = adapt_provider('shelf', cls, kwargs)
    assert isinstance(provider, AdaptedProvider)
    provider.root_ns_warnings = False
    if there:
        plan = planned(provider, zone(*there))
        provider.apply(plan)
    return provider


def applied(provider: AdaptedProvider) -> list[str]:
    """The changes of the last plan that octoDNS's provider was given, as words."""
    return [f'{type(each).__name__} {each.record.name} {each.record._type}'
            for each in provider.wrapped.plans[-1].changes]


def bring(provider: AdaptedProvider, desired: Zone) -> Plan:
    plan = planned(provider, desired)
    provider.apply(plan)
    again = provider.plan(desired)
    assert again is None or not again.changes
    return plan


def test_octodns_gets_its_plan_with_its_own_objects() -> None:
    provider = adapted(Shelf, a('old'), a('same'), a('www'))
    plan = bring(provider, zone(a('same'), a('www', ttl=60), a('new')))
    assert [change.kind for change in plan.changes] == ['Delete', 'Update', 'Create']
    theirs = provider.wrapped.plans[-1]
    assert isinstance(theirs, TheirPlan) and theirs.exists
    assert applied(provider) == ['Delete old A', 'Create new A', 'Update www A']
    assert [type(each) for each in theirs.changes] == [Delete, Create, Update]


class Silent(Shelf):
    """As octoDNS allows, it does not say whether the zone exists."""

    def populate(self, zone: TheirZone, target: bool = False, lenient: bool = False) -> Any:
        super().populate(zone, target, lenient)


def test_a_provider_that_does_not_say_whether_the_zone_exists_is_not_safe_from_deletes() -> None:
    zones: dict[str, list[Any]] = {}
    server = OctodnsServer('shelf', Silent, {'zones': zones})
    full = zone(*(a(f'h{number}') for number in range(12)))
    plan = planned(server, full)
    assert not plan.exists and not safety.dangers(plan)
    server.apply(plan)
    plan = planned(server, zone(a('h0')))
    assert plan.exists
    assert [each.kind for each in safety.dangers(plan)] == ['too_many_deletes']
    assert server.populate(Zone(NAME), target=True)
    server.delete_zone(NAME)
    assert not zones[NAME]


def test_octodns_gets_a_delete_and_a_create_for_a_replace() -> None:
    provider = adapted(Shelf, a('www'), rrset(f'www.{NAME}', 'TXT', 60, ['"x"']),
                       rrset(f'b.{NAME}', 'CNAME', 60, ['c.']))
    plan = bring(provider, zone(rrset(f'www.{NAME}', 'CNAME', 60, ['www.example.net.']), a('b')))
    assert [change.kind for change in plan.changes] == ['Replace', 'Replace']
    assert applied(provider) == ['Delete b CNAME', 'Delete www A', 'Delete www TXT', 'Create b A', 'Create www CNAME']


def test_octodns_gets_what_our_processors_made_of_a_change() -> None:
    provider = adapted(Shelf, a('www'))
    plan = planned(provider, zone(a('www'), a('new', '192.0.2.5')))
    plan.changes = [type(each)((), (a('new', '192.0.2.6', ttl=77),)) for each in plan.changes]
    provider.apply(plan)
    record = provider.wrapped.plans[-1].changes[0].new
    assert (record.ttl, record.values) == (77, ['192.0.2.6'])


def test_our_processors_see_our_zones_within_octodns_planning() -> None:
    class Halving(BaseProcessor):
        def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
            assert target is provider and lenient and existing.get(f'hidden.{NAME}', 'A')
            existing.remove_record(a('hidden'))
            return existing

        def process_source_and_target_zones(self, desired: Zone, existing: Zone, target: BaseProvider,
                                            lenient: bool = False) -> tuple[Zone, Zone]:
            desired.add_record(a('added', ttl=9))
            assert f'hidden.{NAME}\tA' not in existing
            return desired, existing

    provider = adapted(Shelf, a('www'), a('hidden'))
    desired = zone(a('www'))
    plan = planned(provider, desired, [Halving('halving')], lenient=True)
    assert [str(change) for change in plan.changes] == [f'Create added.{NAME} 9 A 192.0.2.1']
    assert (len(plan.existing), len(plan.desired), len(desired)) == (1, 2, 1)
    provider.apply(plan)
    assert {record.name for record in provider.wrapped.zones[NAME]} == {'www', 'added'}


def test_the_hooks_of_a_provider_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    provider = adapted(Hooked, a('internal'), a('www'), strict_supports=False)
    with caplog.at_level(logging.WARNING):
        plan = provider.plan(zone(a('www', ttl=30), a('noise'), a('quiet')))
    assert plan is not None and 'it gets 60' in caplog.text
    assert [str(change) for change in plan.changes] == [
        f'Update quiet.{NAME} 300 A 192.0.2.1 -> quiet.{NAME} 300 A 192.0.2.1',
        f'Update www.{NAME} 300 A 192.0.2.1 -> www.{NAME} 60 A 192.0.2.1', f'Create quiet.{NAME} 300 A 192.0.2.1']
    assert plan.meta == {'class of service': 'gold'}
    provider.apply(plan)
    assert applied(provider) == ['Create quiet A', 'Update quiet A', 'Update www A']
    assert provider.wrapped.plans[-1].meta == plan.meta


def test_what_a_strict_provider_does_not_support_is_an_error_of_ours() -> None:
    with pytest.raises(SupportsException, match=f'shelf: www.{NAME} with TTL 30'):
        adapted(Hooked).plan(zone(a('www', ttl=30)))
    with pytest.raises(SupportsException, match='CAA records not supported'):
        adapted().plan(zone(rrset(NAME, 'CAA', 300, ['0 issue ";"'])))


class Rootless(Shelf):
    SUPPORTS_ROOT_NS = False


def test_root_ns_follow_the_provider() -> None:
    ns = rrset(NAME, 'NS', 300, ['ns1.example.net.'])
    assert bring(adapted(), zone(ns, a('www'))).counts.creates == 2
    with pytest.raises(SupportsException, match='root NS record not supported'):
        adapted(Rootless).plan(zone(ns, a('www')))
    assert bring(adapted(Rootless, strict_supports=False), zone(ns, a('www'))).counts.creates == 1
    server = adapt_server('shelf', f'{__name__}.Rootless', '', {})
    plan = planned(server, zone(ns, a('www')))
    assert [change.types for change in plan.changes] == [('A',)]


DYNAMIC = {'pools': {'one': {'fallback': None, 'values': [{'value': '192.0.2.7', 'weight': 1, 'status': 'obey'}]}},
           'rules': [{'pool': 'one'}]}


def test_dynamic_answers_and_settings_reach_the_provider() -> None:
    settings = {'healthcheck': {'protocol': 'TCP', 'port': 53}}
    provider = adapted(Dynamic)
    bring(provider, zone(a('www', extra=Extra(dynamic=DYNAMIC, octodns=settings))))
    record = provider.wrapped.zones[NAME][0]
    assert record.dynamic.pools['one'].data['values'][0]['value'] == '192.0.2.7'
    assert (record.octodns, record.healthcheck_port) == (settings, 53)
    other = {**DYNAMIC, 'pools': {'one': {'values': [{'value': '192.0.2.8'}]}}}
    plan = planned(provider, zone(a('www', extra=Extra(dynamic=other, octodns=settings))))
    assert plan.counts.updates == 1
    with pytest.raises(SupportsException, match='dynamic records not supported'):
        adapted().plan(zone(a('www', extra=Extra(dynamic=DYNAMIC))))
    assert bring(adapted(strict_supports=False), zone(a('www', extra=Extra(dynamic=DYNAMIC)))).counts.creates == 1


@pytest.mark.parametrize('extra', [Extra(ignored=True), Extra(included=('other',)), Extra(excluded=('shelf',))])
def test_what_is_not_for_the_target_is_left_as_it_is(extra: Extra) -> None:
    provider = adapted(Shelf, a('www'), a('other'))
    plan = provider.plan(zone(a('www', ttl=60, extra=extra), a('new', extra=extra), a('other')))
    assert plan is None
    caa = RRset(NAME, 'HINFO', 300, ('"a" "b"',), extra)
    assert provider.plan(zone(a('www'), a('other'), caa)) is None


def test_thresholds_are_the_zones_or_the_providers_and_are_checked_once() -> None:
    there = [a(f'host{number}') for number in range(10)]
    provider = adapted(Shelf, *there, update_pcent_threshold=0.2, delete_pcent_threshold=0.4)
    plan = planned(provider, zone(*there[5:]))
    assert (plan.update_pcent_threshold, plan.delete_pcent_threshold) == (0.2, 0.4)
    assert [danger.kind for danger in safety.dangers(plan)] == ['too_many_deletes']
    provider.apply(plan)
    generous = adapted(Shelf, *there).plan(zone(*there[5:], delete_pcent_threshold=0.5))
    assert generous is not None and generous.delete_pcent_threshold == 0.5
    assert safety.dangers(generous) == []
    all_gone = adapted(Shelf, *there).plan(zone(delete_pcent_threshold=1.0))
    assert all_gone is not None and safety.dangers(all_gone)


def test_a_read_that_breaks_off_is_an_error_and_leaves_the_zone_as_it_was() -> None:
    provider = adapted(Shelf, a('one'), a('two'))
    provider.wrapped.broken = True
    found = zone(a('three'))
    with pytest.raises(SourceError, match="shelf cannot be read: KeyError 'half of it'"):
        provider.populate(found)
    assert found == zone(a('three'))
    with pytest.raises(SourceError):
        provider.plan(zone(a('one')))


def test_sources_may_not_put_a_cname_beside_data_unless_leniently() -> None:
    provider = adapted(Shelf, rrset(f'www.{NAME}', 'CNAME', 60, ['a.example.net.']))
    found = zone(a('www'))
    with pytest.raises(ZoneError, match=': '):
        provider.populate(found)
    assert found == zone(a('www'))
    provider.populate(found, lenient=True)
    assert len(found) == 2


def test_a_source_may_not_repeat_a_record_of_another_unless_it_is_to_replace_it(tmp_path: pathlib.Path) -> None:
    settings = {'directory': str(tmp_path), 'escaped_semicolons': True}
    (tmp_path / 'example.com.yaml').write_text('a:\n  type: A\n  value: 192.0.2.9\n'
                                               'mail:\n  type: A\n  value: 192.0.2.4\n')
    found = zone(a('mail'))
    with pytest.raises(SourceError, match='Duplicate record mail.example.com.'):
        adapt_provider('yaml', 'octodns.provider.yaml.YamlProvider', settings).populate(found)
    assert found == zone(a('mail'))
    adapt_provider('yaml', 'octodns.provider.yaml.YamlProvider',
                   {**settings, 'populate_should_replace': True}).populate(found)
    assert found.get(f'mail.{NAME}', 'A') == a('mail', '192.0.2.4', ttl=3600) and len(found) == 2


class Upper(TheirProcessor):
    """Has every hook: writes into the diary, and adds or removes a record."""

    def __init__(self, name: str, diary: list[str] | None = None, **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.diary: list[str] = [] if diary is None else diary

    def process_source_zone(self, desired: TheirZone, sources: Any, lenient: bool = False) -> TheirZone:
        self.diary.append(f'source {[each.id for each in sources]} {lenient}')
        desired.add_record(Record.new(desired, 'added', {'type': 'A', 'ttl': 60, 'value': '192.0.2.9'}))
        return desired

    def process_target_zone(self, existing: TheirZone, target: Any, lenient: bool = False) -> TheirZone:
        supported = [target.supports(record) for record in existing.records]
        self.diary.append(f'target {target.id} {target.SUPPORTS_ROOT_NS} {all(supported)}')
        return existing

    def process_source_and_target_zones(self, desired: TheirZone, existing: TheirZone, target: Any,
                                        lenient: bool = False) -> tuple[TheirZone, TheirZone]:
        self.diary.append('both')
        copy = existing.copy()
        for record in copy.records:
            if record.name == 'kept':
                copy.remove_record(record)
        return desired, copy

    def process_plan(self, plan: TheirPlan | None, sources: Any, target: Any,
                     lenient: bool = False) -> TheirPlan | None:
        self.diary.append('plan' if plan is not None else 'no plan')
        if plan is not None:
            plan.changes = [each for each in plan.changes if each.record.name != 'unwanted']
        return plan


class Older(TheirProcessor):
    """From before there was leniency, and changes a record in place."""

    def process_source_zone(self, desired: TheirZone, sources: Any) -> TheirZone:  # type: ignore[override]
        for record in desired.records:
            record.ttl = 1234
        return desired


def test_every_hook_of_a_processor_is_called() -> None:
    diary: list[str] = []
    processor = adapt_processor('upper', Upper, {'diary': diary})
    provider = adapted(Shelf, a('www'), a('kept'))
    desired = processor.process_source_zone(zone(a('www'), a('unwanted')), [provider], lenient=True)
    plan = plan_for(provider, desired, [processor])
    assert diary == ["source ['shelf'] True", 'target shelf True True', 'both', 'plan']
    assert plan is not None and [str(each) for each in plan.changes] == [f'Create added.{NAME} 60 A 192.0.2.9']
    provider.apply(plan)
    assert {record.name for record in provider.wrapped.zones[NAME]} == {'www', 'added'}
    assert plan_for(provider, zone(a('www'), a('added', '192.0.2.9', ttl=60)), [processor]) is None
    assert diary[-1] == 'no plan'


def test_a_processor_of_older_days_that_changes_records_in_place_is_understood() -> None:
    processor = adapt_processor('older', Older, {})
    assert processor.process_source_zone(zone(a('www')), (), lenient=True) == zone(a('www', ttl=1234))


class Half(TheirProcessor):
    """Lets creates pass and nothing else."""

    def process_plan(self, plan: TheirPlan | None, sources: Any, target: Any,
                     lenient: bool = False) -> TheirPlan | None:
        if plan is None:
            return None
        kept = [each for each in plan.changes if isinstance(each, Create)]
        return TheirPlan(plan.existing, plan.desired, kept, plan.exists, 0.7, 0.8) if kept else None


def test_a_processor_may_take_one_half_of_a_replace_and_the_other_stays() -> None:
    provider = adapted(Shelf, a('www'), a('old'))
    desired = zone(rrset(f'www.{NAME}', 'CNAME', 60, ['b.example.net.']))
    half = adapt_processor('half', Half, {})
    plan = plan_for(provider, desired, [half])
    assert plan is not None and [each.kind for each in plan.changes] == ['Create']
    assert (plan.update_pcent_threshold, plan.delete_pcent_threshold, plan.exists) == (0.7, 0.8, True)
    assert plan_for(provider, zone(a('www')), [half]) is None


def test_a_processor_never_takes_what_octodns_has_no_words_for() -> None:
    class Ours(BaseProvider):
        def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
            return True

    hinfo = rrset(f'h.{NAME}', 'HINFO', 300, ['"a" "b"'])
    target = Ours('ours')
    plan = plan_for(target, zone(hinfo, a('unwanted'), a('www')), [adapt_processor('upper', Upper, {})])
    assert plan is not None and {each.name for each in plan.changes} == {f'h.{NAME}', f'www.{NAME}'}


class Maker(TheirProcessor):
    """Makes a plan where there is none."""

    def process_plan(self, plan: TheirPlan | None, sources: Any, target: Any,
                     lenient: bool = False) -> TheirPlan | None:
        made = TheirZone(NAME, set())
        record = Record.new(made, 'made', {'type': 'A', 'ttl': 60, 'value': '192.0.2.1'})
        made.add_record(record)
        return TheirPlan(TheirZone(NAME, set()), made, [Create(record)], True)


def test_a_processor_may_make_a_plan_out_of_nothing() -> None:
    provider = adapted(Shelf, a('www'))
    plan = plan_for(provider, zone(a('www')), [adapt_processor('maker', Maker, {})])
    assert plan is not None and [str(each) for each in plan.changes] == [f'Create made.{NAME} 60 A 192.0.2.1']
    provider.apply(plan)
    assert applied(provider) == ['Create made A']


class Refusing(TheirProcessor):
    def process_source_zone(self, desired: TheirZone, sources: Any, lenient: bool = False) -> TheirZone:
        raise TheirProcessorException('not\non a Friday')


def test_an_error_of_a_processor_is_one_of_ours_that_names_it() -> None:
    with pytest.raises(ProcessorException, match='^refusing: not on a Friday.$'):
        adapt_processor('refusing', Refusing, {}).process_source_zone(zone(a('www')), ())


@pytest.mark.parametrize(('cls', 'kwargs', 'why'), [
    ('octodns.provider.yaml.Missing', {}, 'cannot be imported'),
    ('octodns_nowhere.Provider', {}, "No module named 'octodns_nowhere'"),
    ('Provider', {}, 'cannot be imported'),
    ('pathlib.Path', {}, "is no subclass of octoDNS's BaseSource"),
    ('octodns.provider.yaml.YamlProvider', {'directory': '/nowhere', 'colour': 1}, 'colour'),
    ('octodns.provider.yaml.YamlProvider', {}, 'directory'),
])
def test_what_cannot_be_made_is_told_at_once(cls: str, kwargs: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidField, match=why):
        adapt_provider('wrong', cls, kwargs)


def test_a_processor_is_no_provider() -> None:
    with pytest.raises(InvalidField, match="no subclass of octoDNS's BaseProcessor"):
        class_of('octodns.provider.yaml.YamlProvider', 'processor.base.BaseProcessor')


SETTINGS = '{id: x, key: env/SECRET, port: 5300, more: {name: env/NOTHING/de/fault}, other: /env/x}'


def test_settings_of_a_server_are_yaml_and_secrets_stay_text() -> None:
    server = adapt_server('shelf', f'{__name__}.Wide', SETTINGS.replace('id: x, ', ''), {'SECRET': '00123'})
    assert server.wrapped.settings == {'key': '00123', 'port': 5300, 'more': {'name': 'de/fault'}, 'other': '/env/x'}


class Wide(Shelf):
    def __init__(self, id: str, **settings: Any) -> None:
        super().__init__(id, timeout=settings.pop('timeout', None))
        self.settings = settings


@pytest.mark.parametrize(('text', 'why'), [
    ('{key: env/SECRET}', 'no variable SECRET'), ('[1, 2]', 'no mapping'), ('{key: "hidden', 'not YAML .line 1'),
    ('just words', 'no mapping'), ('{colour: red}', 'colour')])
def test_settings_that_are_wrong_are_told_without_their_contents(text: str, why: str) -> None:
    with pytest.raises(InvalidField, match=why) as caught:
        adapt_server('shelf', f'{__name__}.Shelf', text, {})
    assert 'hidden' not in str(caught.value)


def test_a_server_has_a_new_provider_for_every_plan_and_the_same_to_apply_it() -> None:
    shared: dict[str, list[Any]] = {}
    server = OctodnsServer('shelf', Shelf, {'zones': shared})
    server.timeout = 7.0
    plan, other = server.plan(zone(a('www'))), server.plan(zone(a('other')))
    assert plan is not None and other is not None
    server.apply(plan)
    made = plan.mirror  # type: ignore[attr-defined]
    assert len(made.provider.plans) == 1 and made.provider.timeout == 7.0
    assert other.mirror.provider is not made.provider  # type: ignore[attr-defined]
    assert list(shared) == [NAME]
    assert server.zones([]) == ({NAME: None}, True)
    server.delete_zone(NAME)
    assert shared[NAME] == []
