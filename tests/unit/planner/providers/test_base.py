"""The lifecycle of a plan: which hook is asked when, and what the base does by itself."""

from __future__ import annotations

import http.server
import inspect
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import octodns.processor.base
import octodns.provider.base
import pytest
import requests

from designate_pool.cli.client import Client
from designate_pool.cli.connection import CliError
from designate_pool.errors import SupportsException
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.processors.filters import TypeAllow, TypeReject
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource, ServerProvider, plan_for
from designate_pool.planner.providers.pool_api import PoolApi, new_session
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import Extra, RRset
from tests.fixtures.plans import planned
from tests.unit.planner.conftest import Diarist, Memory
from tests.unit.planner.values import Source, Target, record, text_of, told, zone

A, ALIAS = 'www 300 A 192.0.2.1', 'www 300 CNAME a.example.net.'
NS = '@ 300 NS ns.example.net.'


class Doubting(Memory):
    """Makes no difference of one name."""

    def _include_change(self, change: Change) -> bool:
        return super()._include_change(change) and change.name != 'false.example.com.'


def test_lenience_reaches_the_hooks_that_take_it() -> None:
    steps: list[str] = []
    Memory('target', steps).plan(zone(A), [Diarist('a', steps)], lenient=True)
    assert [each for each in steps if 'lenient' in each] == [
        'target: existing leniently', 'a: target zone leniently', 'a: both zones leniently']


def test_extra_changes_are_put_in_their_place() -> None:
    """Z-22, P-12."""
    target = Memory('target').has(A)
    target.extra = [changes.delete(record('z 300 A 192.0.2.1'))]
    plan = planned(target, zone('new 300 A 192.0.2.1'))
    assert told(plan.changes) == [
        'Delete www 300 A 192.0.2.1', 'Delete z 300 A 192.0.2.1', 'Create new 300 A 192.0.2.1']


def test_nothing_to_do_is_no_plan_and_meta_alone_is_one() -> None:
    """Z-26, A61."""
    target = Memory('target').has(A)
    assert target.plan(zone(A)) is None
    target.meta = {'comment': 'x'}
    plan = planned(target, zone(A))
    assert plan.changes == [] and plan.counts == (0, 0, 0)


def test_a_false_positive_alone_is_no_plan() -> None:
    """Z-21, P-11."""
    assert Doubting('target').has('').plan(zone('false 300 A 192.0.2.1')) is None


def test_a_zone_that_is_not_there_is_planned_even_when_it_is_to_be_empty() -> None:
    """Z-07."""
    plan = planned(Target(None), zone())
    assert not plan.exists and plan.changes == []


def test_a_second_target_sees_the_desired_zone_as_it_was() -> None:
    """Z-08: what the first one cannot hold is left out for it alone."""

    class Few(Target):
        SUPPORTS = frozenset({'A'})

    desired = zone(A + '\nx 300 TXT "x"')
    before = text_of(desired)
    first = Few(zone(), strict_supports=False).plan(desired)
    second = Target(zone()).plan(desired)
    assert first is not None and second is not None
    assert (len(first.changes), len(second.changes)) == (1, 2)
    assert text_of(desired) == before


@pytest.mark.parametrize(('options', 'cannot', 'what', 'fallback'), [
    ({'SUPPORTS': frozenset({'A', 'NS'})}, 'www 300 TXT "x"', 'cannot hold www.example.com. TXT', []),
    ({'SUPPORTS_MULTIVALUE_PTR': False}, 'www 300 PTR a.example.net.\nwww 300 PTR b.example.net.',
     'one PTR record at www.example.com. only', ['www.example.com. 300 PTR a.example.net.']),
    ({'SUPPORTS_ROOT_NS': False}, NS, 'cannot hold the NS records of example.com. itself', []),
    ({'SUPPORTS_DYNAMIC': False}, A, 'with dynamic answers', ['www.example.com. 300 A 192.0.2.1']),
])
def test_what_cannot_be_held_is_an_error_or_left_out(options: dict[str, object], cannot: str, what: str,
                                                     fallback: list[str], caplog: pytest.LogCaptureFixture) -> None:
    """Z-09 to Z-13, P-04, P-09, P-14."""
    kind = type('Limited', (Target,), options)
    extra = Extra(dynamic={'rules': []}) if 'SUPPORTS_DYNAMIC' in options else Extra()
    desired = zone('', *[each._replace(extra=extra) for each in zone(cannot)])
    with pytest.raises(SupportsException, match=what):
        kind(zone()).plan(desired)
    with caplog.at_level(logging.WARNING):
        plan = kind(zone(), strict_supports=False, root_ns_warnings=True).plan(desired)
    assert what.split()[0] in caplog.text
    assert text_of(each for change in (plan.changes if plan else ()) for each in change.new) == fallback
    assert not plan or not plan.desired.extras


@pytest.mark.parametrize(('wrong', 'why'), [
    ('@ 300 CNAME a.example.net.', 'a CNAME cannot be at the apex'),
    ('www 300 CNAME a.example.net.', 'has MX already'),
    ('*.a 300 NS a.example.net.', 'cannot be at a wildcard'),
    ('_65536._tcp 300 TLSA 3 1 1 ' + 64 * 'a', '65536 is no port'),
    ('\n'.join(f'x 300 TXT {" ".join([f"{number:0255}"] * 60)}' for number in range(5)), 'they do not fit'),
], ids=['cname-at-apex', 'cname-beside', 'wildcard-ns', 'tlsa-port', 'large'])
def test_what_no_server_takes_of_a_lenient_zone_is_refused_or_left_out_while_planning(
        wrong: str, why: str, caplog: pytest.LogCaptureFixture) -> None:
    mail, bad = 'www 300 MX 10 a.example.net.', record(wrong)
    desired = zone(mail, bad, lenient=True)
    with pytest.raises(SupportsException, match=f'it cannot hold {re.escape(f"{bad.name} {bad.type}")}: .*{why}'):
        planned(Target(zone()), desired, lenient=True)
    target = Target(zone(), strict_supports=False)
    assert told(planned(target, desired, lenient=True).changes) == [f'Create {mail}']
    assert f'{bad.name} {bad.type}' in caplog.text and 'it is left out' in caplog.text
    again = Target(zone('', bad, lenient=True), strict_supports=False).plan(desired, lenient=True)
    assert again is None or not any(change.existing for change in again.changes), 'what is there is not deleted for it'


def test_a_dname_above_what_stays_is_left_out_too(caplog: pytest.LogCaptureFixture) -> None:
    desired = zone('d 300 DNAME example.net.\nx.d 300 A 192.0.2.1\nw 300 A 192.0.2.2', lenient=True)
    plan = Target(zone('x.d 300 A 192.0.2.1'), strict_supports=False).plan(desired, lenient=True)
    assert plan is not None and told(plan.changes) == ['Create w 300 A 192.0.2.2']
    assert 'd.example.com. DNAME is left out, since x.d.example.com. stays' in caplog.text


def test_a_record_for_other_targets_need_not_be_held_here() -> None:
    class Few(Target):
        SUPPORTS = frozenset({'A'})

    desired = zone(A, record('x 300 TXT "x"', Extra(excluded=('target',))))
    plan = planned(Few(zone()), desired)
    assert told(plan.changes) == ['Create www 300 A 192.0.2.1']


def test_a_target_may_hold_a_type_at_some_names_alone() -> None:
    class OneMail(Target):
        def supports(self, rrset: RRset) -> bool:
            return super().supports(rrset) and (rrset.type != 'MX' or rrset.name == 'mx.example.com.')

    desired = zone('mx 300 MX 10 a.example.net.\nmail 300 MX 10 a.example.net.')
    plan = OneMail(zone(), strict_supports=False).plan(desired)
    assert plan is not None and told(plan.changes) == ['Create mx 300 MX 10 a.example.net.']
    with pytest.raises(SupportsException, match='it cannot hold mail.example.com. MX'):
        OneMail(zone()).plan(desired)


@pytest.mark.parametrize(('supports', 'desired', 'expected'), [
    (True, '@ 300 NS ns2.example.net.', ['Update']),
    (True, A, ['Create']),
    (False, A, ['Create']),
])
def test_root_ns_records_are_left_alone_where_none_are_given_or_held(supports: bool, desired: str,
                                                                     expected: list[str]) -> None:
    """Z-12, Z-15."""
    kind = type('Limited', (Target,), {'SUPPORTS_ROOT_NS': supports})
    plan = planned(kind(zone(NS)), zone(desired))
    assert [each.kind for each in plan.changes] == expected


@pytest.mark.parametrize('warnings', [True, False])
def test_warnings_about_root_ns_can_be_switched_off(warnings: bool, caplog: pytest.LogCaptureFixture) -> None:
    """P-05, A75: but not the error where it is strict."""
    kind = type('Limited', (Target,), {'SUPPORTS_ROOT_NS': False})
    assert BaseProvider('plain').root_ns_warnings
    with caplog.at_level(logging.WARNING):
        kind(zone(), strict_supports=False, root_ns_warnings=warnings).plan(zone(NS))
        Target(zone(), root_ns_warnings=warnings).plan(zone(A))
    assert len(caplog.records) == (2 if warnings else 0)
    with pytest.raises(SupportsException):
        kind(zone(), root_ns_warnings=warnings).plan(zone(NS))


SOA = '@ 300 SOA ns.example.net. hostmaster.example.com. {} 3600 600 86400 300'


@pytest.mark.parametrize(('supports', 'existing', 'desired', 'expected'), [
    (False, SOA.format(1), SOA.format(2), []),
    (True, SOA.format(1), SOA.format(2), ['Update']),
    (True, SOA.format(1), '', []),
    (True, '', SOA.format(2), ['Create']),
])
def test_the_soa_is_planned_only_where_it_is_held_and_never_deleted(supports: bool, existing: str, desired: str,
                                                                    expected: list[str]) -> None:
    kind = type('Limited', (Target,), {'SUPPORTS_SOA': supports})
    plan = kind(zone(existing)).plan(zone(desired))
    assert [each.kind for each in (plan.changes if plan else ())] == expected


def test_what_signing_makes_is_never_planned() -> None:
    generated = '@ 300 NSEC3PARAM 1 0 0 -\n@ 300 DNSKEY 257 3 13 ' + 'A' * 86 + '=='
    assert Target(zone(generated)).plan(zone()) is None
    assert Target(zone()).plan(zone(generated)) is None


@pytest.mark.parametrize(('of_zone', 'of_target', 'expected'), [
    (None, 0.3, 0.3), (0.9, 0.3, 0.9), (0.1, 0.3, 0.1), (0.0, 0.3, 0.0)])
def test_the_zone_s_thresholds_go_before_the_target_s(of_zone: float | None, of_target: float,
                                                      expected: float) -> None:
    """Z-02, P-02, A62: read from the desired zone."""
    desired = Zone('example.com.', (), of_zone, of_zone)
    desired.add_record(record(A))
    target = Target(zone(), update_pcent_threshold=of_target, delete_pcent_threshold=of_target,
                    min_existing_records=7)
    plan = planned(target, desired)
    assert (plan.update_pcent_threshold, plan.delete_pcent_threshold) == (expected, expected)
    assert plan.min_existing_records == 7 and plan.target_id == 'target'


def test_a_target_without_a_say_of_its_own_has_made_all() -> None:
    class Silent(Target):
        def _apply(self, plan: Plan) -> None:  # type: ignore[override]
            super()._apply(plan)

    target = Silent(zone())
    plan = planned(target, zone(A))
    assert target.apply(plan) == ApplyResult(1)


def test_plans_are_made_and_not_applied_where_apply_is_disabled() -> None:
    """P-03."""
    steps: list[str] = []
    target = Memory('target', steps, apply_disabled=True).has('')
    plan = planned(target, zone(A))
    assert len(plan.changes) == 1
    assert target.apply(plan).applied == 0
    assert not any('apply' in step for step in steps) and target.plan(zone(A)) is not None


def test_what_cannot_apply_says_so() -> None:
    """P-06."""
    class Source(BaseProvider):
        def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
            return True

    plan = Source('source').plan(zone(A))
    assert plan is not None
    with pytest.raises(NotImplementedError, match='Source has no _apply'):
        Source('source').apply(plan)


def test_sources_add_to_one_zone_and_cannot_list_zones_unasked() -> None:
    """Z-03."""
    found = zone()
    assert all([Source(zone(A)).populate(found), Source(zone(NS)).populate(found)])
    assert len(found) == 2
    with pytest.raises(SupportsException, match='source: it cannot list its zones'):
        Source(zone()).list_zones()


def test_a_processor_has_an_id_by_either_word_and_changes_nothing() -> None:
    """Q-01, Q-08."""
    assert BaseProcessor('a').id == BaseProcessor(name='a').id == BaseProcessor(id='a').id == 'a'
    with pytest.raises(TypeError, match='needs an id'):
        BaseProcessor()
    made, target = zone(A), Target(zone())
    same = BaseProcessor('a')
    assert same.process_source_zone(made, ()) is made and same.process_target_zone(made, target) is made
    assert same.process_source_and_target_zones(made, made, target) == (made, made)
    plan = target.plan(made)
    assert same.process_plan(plan, (), target) is plan and same.process_plan(None, (), target) is None


def test_a_server_is_made_ready_before_a_new_zone_is_applied_and_only_then() -> None:
    class Server(Target, ServerProvider):
        def create_zone(self, desired: Zone) -> None:
            made.append(desired.name)
            self.has = zone()

    made: list[str] = []
    server = Server(None)
    plan = planned(server, zone(A))
    assert server.apply(plan) == ApplyResult(1) and made == ['example.com.']
    plan = planned(server, zone())
    assert server.apply(plan) == ApplyResult(1) and made == ['example.com.']


def test_settings_for_providers_of_octodns_are_no_part_of_what_other_targets_hold() -> None:
    extra = Extra(excluded=('other',), octodns={'healthcheck': {'path': '/health'}})
    desired = zone('', record(A, extra))
    target = Target(zone())
    plan = planned(target, desired)
    assert [each.new[0].extra for each in plan.changes] == [Extra(excluded=('other',))]
    assert target.apply(plan).ok and target.plan(desired) is None
    assert target.plan(zone(A.replace('192.0.2.1', '192.0.2.2'))) is not None


def test_the_settings_of_a_provider_and_their_defaults() -> None:
    """P-01."""
    made = BaseProvider('plain')
    assert isinstance(made, BaseSource)
    settings = {'apply_disabled': False, 'update_pcent_threshold': 0.3, 'delete_pcent_threshold': 0.3,
                'strict_supports': True, 'root_ns_warnings': True}
    assert made.id == 'plain' and {name: getattr(made, name) for name in settings} == settings
    assert list(inspect.signature(BaseProvider).parameters)[:6] == ['id', *settings]
    other = BaseProvider('other', True, 0.1, 0.2, False, False)
    assert [getattr(other, name) for name in settings] == [True, 0.1, 0.2, False, False]


@pytest.mark.parametrize(('theirs', 'ours', 'hooks'), [
    (octodns.provider.base.BaseProvider, BaseProvider, (
        'plan', 'apply', '_apply', '_process_desired_zone', '_process_existing_zone', '_include_change',
        '_extra_changes', '_plan_meta', 'supports_warn_or_except', 'populate')),
    (octodns.processor.base.BaseProcessor, BaseProcessor, (
        'process_source_zone', 'process_target_zone', 'process_source_and_target_zones', 'process_plan'))])
def test_hooks_are_called_as_those_of_octodns_are(theirs: type, ours: type, hooks: Sequence[str]) -> None:
    for hook in hooks:
        assert list(inspect.signature(getattr(ours, hook)).parameters) == list(
            inspect.signature(getattr(theirs, hook)).parameters)


POOLS = {'one': {'values': [{'value': '192.0.2.1', 'status': 'up'}, {'value': '192.0.2.2'}], 'fallback': 'two'},
         'two': {'values': [{'value': '192.0.2.3', 'status': 'obey'}]}, 'three': {'values': [{'value': '192.0.2.4'}]}}
RULES = [{'pool': 'three', 'subnets': ['198.51.100.0/24']},
         {'pool': 'one', 'geos': ['EU'], 'subnets': ['192.0.2.0/24']},
         {'pool': 'two'}]
ALL = ('SUPPORTS_GEO', 'SUPPORTS_DYNAMIC', 'SUPPORTS_POOL_VALUE_STATUS', 'SUPPORTS_DYNAMIC_SUBNETS')


@pytest.mark.parametrize(('without', 'expected', 'why'), [
    ('', {'pools': POOLS, 'rules': RULES, 'geo': {'EU': ['192.0.2.9']}}, ''),
    ('SUPPORTS_GEO', {'pools': POOLS, 'rules': RULES}, 'geo answers'),
    ('SUPPORTS_DYNAMIC', {'geo': {'EU': ['192.0.2.9']}}, 'dynamic answers'),
    ('SUPPORTS_POOL_VALUE_STATUS', {
        'pools': {**POOLS, 'one': {'values': [{'value': '192.0.2.1'}, {'value': '192.0.2.2'}], 'fallback': 'two'}},
        'rules': RULES, 'geo': {'EU': ['192.0.2.9']}}, 'a status of values in pools one'),
    ('SUPPORTS_DYNAMIC_SUBNETS', {
        'pools': {name: POOLS[name] for name in ('one', 'two')},
        'rules': [{'pool': 'one', 'geos': ['EU']}, {'pool': 'two'}], 'geo': {'EU': ['192.0.2.9']}},
     'subnets in rules 1, 2'),
])
def test_what_a_class_cannot_hold_of_dynamic_answers_is_an_error_or_made_simpler(
        without: str, expected: dict[str, object], why: str) -> None:
    """P-22: what octoDNS does with each of the features."""
    kind = type('Other', (Target,), {name: name != without for name in ALL})
    extra = Extra(dynamic={'pools': POOLS, 'rules': RULES, 'geo': {'EU': ['192.0.2.9']}})
    desired = zone()
    desired.add_record(record(A)._replace(extra=extra))
    plan = kind(strict_supports=False).plan(desired)
    assert plan is not None
    (change,) = plan.changes
    assert change.record.extra.dynamic == expected and change.record.rdatas == ('192.0.2.1',)
    (there,) = desired
    assert there.extra == extra, 'what was given is as it was'
    if why:
        with pytest.raises(SupportsException, match=why):
            kind().plan(desired)


@pytest.mark.parametrize(('processors', 'supports', 'managed'), [
    ([], None, None), ([], {'A', 'MX'}, {'A', 'MX'}), ([TypeAllow('only', ['a', 'txt'])], None, {'A', 'TXT'}),
    ([TypeAllow('only', ['a', 'txt'])], {'A', 'MX'}, {'A'}), ([TypeReject('not', ['MX'])], {'A', 'MX'}, {'A'})])
def test_a_plan_knows_the_types_that_are_managed(processors: list[BaseProcessor], supports: set[str] | None,
                                                 managed: set[str] | None) -> None:
    """E-09."""
    kind = type('Other', (Target,), {'SUPPORTS': None if supports is None else frozenset(supports)})
    plan = plan_for(kind(zone()), zone(A), processors)
    assert plan is not None and plan.managed_types == managed
    assert plan.document()['managed_types'] == (None if managed is None else sorted(managed))


def test_what_was_applied_is_added_up_as_a_number() -> None:
    """Z-35, P-16: who adds up what targets applied gets the number of changes."""
    total = 0
    for text in (A, f'{A}\nmore 60 A 192.0.2.2'):
        target = Target(zone())
        plan = planned(target, zone(text))
        total += target.apply(plan)
    assert total == 3 and sum([ApplyResult(2), ApplyResult(3, 1)]) == 5 and int(ApplyResult(4, 1, 1)) == 4


@pytest.mark.parametrize('lenient', [False, True])
def test_a_hook_may_change_what_is_there_and_break_a_rule_only_leniently(lenient: bool) -> None:
    """P-10."""
    class Adding(Target):
        def _process_existing_zone(self, existing: Zone, desired: Zone, lenient: bool = False) -> Zone:
            existing = super()._process_existing_zone(existing, desired, lenient)
            existing.remove_record(record('hidden 300 A 192.0.2.1'))
            existing.add_record(record(ALIAS), lenient=lenient)
            return existing

    target, desired = Adding(zone(f'{A}\nhidden 300 A 192.0.2.1')), zone(A)
    if not lenient:
        with pytest.raises(Exception, match='CNAME must be the only record'):
            target.plan(desired)
        return
    plan = planned(target, desired, lenient=True)
    assert told(plan.changes) == ['Delete www 300 CNAME a.example.net.']


GOING, LIVING = {'id': '1', 'name': 'a.example.', 'action': 'DELETE'}, {'id': '2', 'name': 'a.example.',
                                                                        'action': 'CREATE'}
OTHER = {'id': '3', 'name': 'b.a.example.', 'action': 'NONE'}


class Session(requests.Session):
    """Answers every request with a list of these zones."""

    def __init__(self, *zones: dict[str, str]) -> None:
        super().__init__()
        self._zones = list(zones)

    def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]
        answer = requests.Response()
        answer.status_code = 200
        answer.json = lambda **kwargs: {'zones': self._zones, 'links': {}}  # type: ignore[method-assign]
        return answer


@pytest.mark.parametrize(('zones', 'found'), [
    ((), None), ((OTHER,), None), ((LIVING,), LIVING), ((GOING,), GOING),
    ((GOING, LIVING), LIVING), ((LIVING, GOING), LIVING), ((OTHER, GOING, LIVING), LIVING)],
    ids=['none', 'another', 'one', 'going', 'again', 'again-first', 'again-and-another'])
def test_a_name_is_the_zone_that_lives(zones: tuple[dict[str, str], ...], found: dict[str, str] | None) -> None:
    assert PoolApi('http://127.0.0.1', token='', session=Session(*zones)).zone('a.example.') == found


def test_for_the_command_too(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client('http://127.0.0.1')
    monkeypatch.setattr(client, '_session', Session(OTHER, GOING, LIVING))
    assert client.zone('a.example') == LIVING
    monkeypatch.setattr(client, '_session', Session(OTHER))
    with pytest.raises(CliError, match=r'There is no zone a\.example\.'):
        client.zone('a.example')


class Busy(http.server.BaseHTTPRequestHandler):
    """Refuses the first two requests."""

    bodies: list[bytes] = []

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers['Content-Length'])))
        self.send_response(429 if len(self.bodies) < 3 else 202)
        self.send_header('Retry-After', '0')
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Busy.bodies = []
    with http.server.HTTPServer(('127.0.0.1', 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f'http://127.0.0.1:{server.server_port}'
        server.shutdown()
        thread.join()


def test_too_many_requests_are_made_again(url: str) -> None:
    assert new_session(url).post(f'{url}/v2/zones', json={'name': 'example.com.'}, timeout=30).status_code == 202
    assert Busy.bodies == [b'{"name": "example.com."}'] * 3
