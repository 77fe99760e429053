"""Rules for a zone's contents, and small changes of them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from designate_pool.errors import ProcessorException, ZoneError
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.processors import PROCESSORS
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import Extra
from tests.unit.planner.values import Target, plan, record, synced, text_of, told, zone

SOA = '@ {} SOA ns.example.net. hostmaster.example.com. 1 3600 600 86400 300'


@pytest.mark.parametrize(('options', 'ttl', 'expected'), [
    ({}, 299, 300), ({}, 300, 300), ({}, 86400, 86400), ({}, 86401, 86400),
    ({'min_ttl': 60, 'max_ttl': 60}, 0, 60), ({'min_ttl': '60', 'max_ttl': '120'}, 3600, 120)])
def test_a_ttl_is_moved_into_its_limits(options: dict[str, Any], ttl: int, expected: int) -> None:
    made = zone(f'www {ttl} A 192.0.2.1\n{SOA.format(0)}')
    found = PROCESSORS['ttl-clamp']('clamp', **options).process_source_zone(made.copy(), ())
    assert text_of(found) == text_of(zone(f'www {expected} A 192.0.2.1\n{SOA.format(0)}'))
    assert text_of(made) == text_of(zone(f'www {ttl} A 192.0.2.1\n{SOA.format(0)}'))


def test_a_moved_ttl_keeps_what_else_the_record_has() -> None:
    extra = Extra(excluded=('a',), dynamic={'rules': []})
    found = PROCESSORS['ttl-clamp']('clamp').process_source_zone(zone('', record('www 1 A 192.0.2.1', extra)), ())
    assert found.get('www.example.com.', 'A') == record('www 300 A 192.0.2.1', extra)


@pytest.mark.parametrize(('own', 'given', 'passes'), [(False, False, False), (True, False, True), (False, True, True)])
def test_lenience_is_the_processor_s_or_the_call_s(own: bool, given: bool, passes: bool) -> None:
    """Q-10: a zone that breaks a rule already is changed only leniently."""
    broken = zone('www 1 A 192.0.2.1\nwww 300 CNAME a.example.net.', lenient=True)
    clamp = PROCESSORS['ttl-clamp']('clamp', lenient=own)
    if passes:
        found = clamp.process_source_zone(broken, (), lenient=given)
        assert 'www.example.com. 300 A 192.0.2.1' in text_of(found)
    else:
        with pytest.raises(ZoneError, match=': '):
            clamp.process_source_zone(broken, (), lenient=given)


@pytest.mark.parametrize(('options', 'ttl', 'why'), [
    ({}, 0, 'is under 1'), ({}, 1, None), ({}, 604800, None), ({}, 604801, 'is over 604800'),
    ({'min_ttl': 60, 'max_ttl': 3600}, 59, 'is under 60'), ({'min_ttl': 60, 'max_ttl': 3600}, 3600, None),
    ({'allowed_ttls': [300, '60']}, 60, None), ({'allowed_ttls': [300, 60]}, 61, 'is none of 60, 300'),
    ({'allowed_ttls': [5], 'min_ttl': 60}, 5, None), ({'allowed_ttls': []}, 5, None)])
def test_a_ttl_that_is_not_allowed_is_an_error(options: dict[str, Any], ttl: int, why: str | None) -> None:
    restriction = PROCESSORS['ttl-restriction']('ttl', **options)
    made = zone(f'www {ttl} A 192.0.2.1\n{SOA.format(0)}')
    if why is None:
        assert restriction.process_source_zone(made, ()) is made
    else:
        with pytest.raises(ProcessorException, match=f'^ttl: the TTL {ttl} of www.example.com. A {why}'):
            restriction.process_source_zone(made, ())
    lenient = zone('', record(f'www {ttl} A 192.0.2.1', Extra(octodns={'lenient': True})))
    assert restriction.process_source_zone(lenient, ()) is lenient


@pytest.mark.parametrize(('word', 'options', 'why'), [
    ('ttl-clamp', {'min_ttl': 301, 'max_ttl': 300}, 'min_ttl 301 is over max_ttl 300'),
    ('ttl-clamp', {'min_ttl': 'long'}, "min_ttl must be a whole number, not 'long'"),
    ('ttl-clamp', {'max_ttl': True}, 'max_ttl must be a whole number, not True'),
    ('ttl-restriction', {'min_ttl': -1}, 'min_ttl must be a whole number, not -1'),
    ('ttl-restriction', {'allowed_ttls': 300}, 'allowed_ttls must be a list, not 300'),
    ('ttl-restriction', {'allowed_ttls': ['x']}, "allowed_ttls must be a whole number, not 'x'"),
    ('empty-zone-guard', {'min_records': 0.5}, 'min_records must be a whole number, not 0.5'),
])
def test_an_option_that_cannot_be_is_an_error_that_names_the_processor(word: str, options: dict[str, Any],
                                                                       why: str) -> None:
    with pytest.raises(ProcessorException, match=f'^mine: {why}'):
        PROCESSORS[word]('mine', **options)


NS, NS2 = '@ 300 NS ns.example.net.', '@ 300 NS ns2.example.net.'


def test_a_change_of_the_zone_s_own_ns_is_an_error() -> None:
    forbidding = PROCESSORS['exclude-root-ns-changes']('ns')
    with pytest.raises(ProcessorException, match='^ns: Update example.com. 300 NS .*: the NS records of example.com.'):
        forbidding.process_plan(plan(zone(NS), zone(NS2)), (), Target())
    other = plan(zone('sub 300 NS ns.example.net.'), zone('sub 60 NS ns.example.net.'))
    assert forbidding.process_plan(other, (), Target()) is other
    assert forbidding.process_plan(None, (), Target()) is None


def test_a_change_of_the_zone_s_own_ns_is_left_out_with_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    leaving = PROCESSORS['exclude-root-ns-changes']('ns', error=False)
    target = Target(zone(NS))
    wanted = zone(f'{NS2}\nwww 300 A 192.0.2.1')
    with caplog.at_level(logging.WARNING):
        found = synced(target, wanted, [leaving])
    assert 'ns2.example.net' in caplog.text
    assert found is not None and told(found.changes) == ['Create www 300 A 192.0.2.1']
    target.apply(found)
    assert synced(target, wanted, [leaving]) is None


def test_of_a_plan_with_nothing_left_only_a_new_zone_remains() -> None:
    """Q-13, Q-14."""
    leaving = PROCESSORS['exclude-root-ns-changes']('ns', error=False)
    given = Plan(zone(), zone(NS), plan(zone(), zone(NS)).changes, False, 0.1, 0.2)
    found = leaving.process_plan(given, (), Target())
    assert found is not None and found.changes == [] and not found.exists
    assert (found.update_pcent_threshold, found.delete_pcent_threshold) == (0.1, 0.2)
    assert len(given.changes) == 1


@pytest.mark.parametrize(('text', 'least', 'passes'), [
    ('', 1, False), (f'{NS}\n{SOA.format(300)}', 1, False), ('www 300 A 192.0.2.1', 1, True),
    (f'{NS}\nwww 300 A 192.0.2.1', 2, False), ('a 300 A 192.0.2.1\nb 300 A 192.0.2.1', 2, True), ('', 0, True)])
def test_a_source_zone_that_holds_nothing_is_an_error(text: str, least: int, passes: bool) -> None:
    guard = PROCESSORS['empty-zone-guard']('guard', min_records=least)
    made = zone(text)
    if passes:
        assert guard.process_source_zone(made, ()) is made
    else:
        with pytest.raises(ProcessorException, match=r'^guard: the sources hold [01] RRsets for example.com.'):
            guard.process_source_zone(made, ())


def acme(existing: str, desired: str) -> tuple[list[str], list[str], Target]:
    """The changes of the first and of the second round."""
    target = Target(zone(existing))
    processors = [PROCESSORS['acme']('acme')]
    rounds = []
    for _ in range(2):
        found = synced(target, zone(desired), processors)
        rounds.append([] if found is None else told(found.changes))
        if found is not None:
            target.apply(found)
    return rounds[0], rounds[1], target


@pytest.mark.parametrize(('existing', 'desired', 'expected'), [
    ('_acme-challenge 60 TXT "theirs"', '', []),
    ('_acme-challenge.www 60 TXT "theirs"', '', []),
    ('_acme-challenge 60 CNAME a.example.net.', '', ['Delete _acme-challenge 60 CNAME a.example.net.']),
    ('www 60 TXT "ours"', '', ['Delete www 60 TXT "ours"']),
    ('', '_acme-challenge 60 TXT "ours"', ['Create _acme-challenge 60 TXT "*octoDNS*", "ours"']),
    ('_acme-challenge 60 TXT "*octoDNS*"\n_acme-challenge 60 TXT "ours"', '',
     ['Delete _acme-challenge 60 TXT "*octoDNS*", "ours"']),
    ('_acme-challenge 60 TXT "theirs"', '_acme-challenge 60 TXT "ours"',
     ['Update _acme-challenge 60 TXT "theirs" -> _acme-challenge 60 TXT "*octoDNS*", "ours"']),
    ('_acme-challenge 60 TXT "*octoDNS*"\n_acme-challenge 60 TXT "ours"', '_acme-challenge 60 TXT "ours"', []),
])
def test_challenges_of_others_are_left_alone(existing: str, desired: str, expected: list[str]) -> None:
    first, second, _ = acme(existing, desired)
    assert (first, second) == (expected, [])


def test_a_challenge_that_the_sources_gave_up_is_not_ours_for_ever() -> None:
    """In a service the same processor sees many rounds: what others put there later is theirs."""
    processors = [PROCESSORS['acme']('acme')]
    target = Target(zone())
    found = synced(target, zone('_acme-challenge 60 TXT "ours"'), processors)
    assert found is not None
    target.apply(found)
    target.has = zone('_acme-challenge 60 TXT "theirs"')
    assert synced(target, zone(), processors) is None


def test_no_zone_has_a_name_that_lacks_its_dot() -> None:
    made = zone('www 300 CNAME a.example.net.')
    found = PROCESSORS['trailing-dots']('dots').process_source_zone(made, ())
    assert found is made and isinstance(found, Zone) and text_of(found) == ['www.example.com. 300 CNAME a.example.net.']


def test_every_processor_is_made_with_an_id_and_a_user_of_octodns_finds_its_classes() -> None:
    octodns = 'octodns.processor.'
    options: dict[str, dict[str, Any]] = {
        'ownership': {'owner_id': 'me'}, octodns + 'acme.AcmeManagingProcessor': {},
        octodns + 'acme.AcmeMangingProcessor': {},
        octodns + 'clamp.TtlClampProcessor': {'min_ttl': 1, 'max_ttl': 2},
        octodns + 'filter.ExcludeRootNsChanges': {'error': False}, octodns + 'filter.IgnoreRootNsFilter': {},
        octodns + 'filter.ZoneNameFilter': {'error': False, 'include_target': False},
        octodns + 'ownership.OwnershipProcessor': {'txt_name': '_mine', 'txt_value': '*x*', 'txt_ttl': 5,
                                                   'should_replace': True, 'allow_takeover': True},
        octodns + 'restrict.TtlRestrictionFilter': {'min_ttl': 1, 'max_ttl': 2, 'allowed_ttls': [1]},
        octodns + 'trailing_dots.EnsureTrailingDots': {}}
    assert options.keys() <= PROCESSORS.keys()
    for word, kind in PROCESSORS.items():
        lists = {name: [] for name in ('allowlist', 'rejectlist') if word.lower().replace('-', '').endswith(
            (name.removesuffix('list'), f'{name}filter'))}
        made = kind('it', **options.get(word, lists), lenient=True)
        assert (made.id, made.lenient) == ('it', True)
