"""What reports make of a domain, what a change writes, which pool is chosen, and deletions of an hour."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from designate_pool.central.rules import recordset_edits
from designate_pool.central.rules.quotas import add_deletes
from designate_pool.central.rules.scheduler import DEFAULT_FILTERS, FILTERS, Scheduler
from designate_pool.central.rules.status import apply_report
from designate_pool.central.validation import names_and_rdata
from designate_pool.central.validation.requests import KEEP, WantedRecordSet
from designate_pool.config import sections
from designate_pool.errors import (DuplicateRecordSet, InvalidField, ManagedRecordSet, NotFound, OverQuota,
                                   RecordSetNotFound, Refused)
from designate_pool.model import (Action, Domain, Outcome, Pool, PoolServer, Record, RecordSet, Report, ServerState,
                                  Status, new_id, utcnow)
from designate_pool.serial import HALF, SPACE, at_least, distance
from designate_pool.settings import CentralSettings
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import pools

OWN = 1000
PENDING = Domain(id='0' * 32, name='example.com.', pool_id='1' * 32, pool_name='default', email='a@example.com', ttl=60,
                 serial=OWN, action=Action.CREATE, status=Status.PENDING, generation=1)


def report(status: Outcome, serial: int, action: Action = Action.CREATE, generation: int = 1) -> Report:
    return Report(PENDING.id, action, generation, status, serial)


def after(domain: Domain, *reports: Report) -> Domain:
    for each in reports:
        decision = apply_report(domain, each)
        if decision is not None:
            domain = decision.domain
    return domain


def success(serial: int) -> Report:
    return report(Outcome.SUCCESS, serial)


def error(serial: int) -> Report:
    return report(Outcome.ERROR, serial)


def test_success_at_the_domains_serial_makes_it_active() -> None:
    found = after(PENDING, success(OWN))
    assert (found.status, found.action, found.reported_serial) == (Status.ACTIVE, Action.NONE, OWN)


def test_success_of_an_older_serial_leaves_the_newer_change_pending_as_an_update() -> None:
    found = after(PENDING, success(OWN - 1))
    assert (found.status, found.action, found.reported_serial) == (Status.PENDING, Action.UPDATE, OWN - 1)


def test_success_of_a_serial_that_central_never_gave_says_nothing() -> None:
    assert apply_report(PENDING, success(OWN + 500)) is None


def test_success_exactly_half_the_circle_away_says_nothing() -> None:
    assert apply_report(PENDING, success((OWN + HALF) % SPACE)) is None


def test_reports_of_a_serial_before_the_domains_first_say_nothing() -> None:
    anew = dataclasses.replace(PENDING, first_serial=OWN - 2)
    assert apply_report(anew, success(OWN - 3)) is None
    assert apply_report(anew, error(OWN - 3)) is None
    assert after(anew, success(OWN - 2)).reported_serial == OWN - 2


def test_success_mends_an_error() -> None:
    assert after(PENDING, error(OWN), success(OWN)).status is Status.ACTIVE


def test_an_error_at_the_domains_serial() -> None:
    decision = apply_report(PENDING, error(OWN))
    assert decision is not None
    assert (decision.domain.status, decision.domain.reported_serial) == (Status.ERROR, None)
    assert decision.failed_serial == OWN
    assert apply_report(decision.domain, error(OWN)) is None


def test_a_late_error_after_success_is_ignored() -> None:
    assert apply_report(after(PENDING, success(OWN)), error(OWN)) is None
    assert apply_report(after(PENDING, success(OWN)), error(OWN - 7)) is None


def test_an_error_of_an_overtaken_serial_concerns_its_records_alone() -> None:
    decision = apply_report(PENDING, error(OWN - 1))
    assert decision is not None
    assert decision.domain == PENDING
    assert decision.failed_serial == OWN - 1


@pytest.mark.parametrize('status', list(Outcome))
def test_a_report_of_another_generation_is_void(status: Outcome) -> None:
    assert apply_report(PENDING, report(status, OWN, generation=2)) is None


@pytest.mark.parametrize(('going', 'action'), [(True, Action.CREATE), (True, Action.UPDATE), (False, Action.DELETE)])
def test_a_report_about_the_reverse_of_what_is_due_is_void(going: bool, action: Action) -> None:
    domain = dataclasses.replace(PENDING, action=Action.DELETE) if going else PENDING
    assert apply_report(domain, report(Outcome.SUCCESS, OWN, action)) is None


def test_a_deletion_that_succeeds_is_the_end() -> None:
    going = dataclasses.replace(PENDING, action=Action.DELETE)
    failed = after(going, report(Outcome.ERROR, OWN, Action.DELETE))
    assert (failed.action, failed.status) == (Action.DELETE, Status.ERROR)
    gone = after(failed, report(Outcome.SUCCESS, OWN, Action.DELETE))
    assert (gone.action, gone.status) == (Action.NONE, Status.DELETED)
    assert apply_report(gone, report(Outcome.ERROR, OWN, Action.DELETE)) is None


# Serials on both sides of the domain's own, near and far, wherever on the circle that is.
_steps = st.one_of(st.integers(-5, 5), st.integers(-HALF, HALF))
_reports = st.lists(st.tuples(st.sampled_from(Outcome), _steps, st.sampled_from(Action), st.integers(1, 2)), max_size=5)
_domains = st.tuples(st.integers(0, SPACE - 1), st.sampled_from([Action.CREATE, Action.UPDATE, Action.DELETE]),
                     st.sampled_from([Status.PENDING, Status.ERROR]), st.none() | st.integers(-HALF + 1, -1))


def _made(domain: tuple, reports: list[tuple]) -> tuple[Domain, list[Report]]:
    own, action, status, reported = domain
    start = dataclasses.replace(PENDING, serial=own, action=action, status=status,
                                reported_serial=None if reported is None else (own + reported) % SPACE)
    return start, [report(outcome, (own + step) % SPACE, action, generation)
                   for outcome, step, action, generation in reports]


@given(_domains, _reports)
def test_any_order_and_repetition_ends_the_same(domain: tuple, reports: list[tuple]) -> None:
    start, made = _made(domain, reports)
    ends = {after(start, *order, *order[:2], *order) for order in itertools.islice(itertools.permutations(made), 40)}
    ends.add(after(start, *made))
    assert len(ends) == 1


@given(_domains, _reports)
def test_the_reported_serial_never_goes_back_nor_past_the_domains_own(domain: tuple, reports: list[tuple]) -> None:
    now, made = _made(domain, reports)
    for each in made:
        then, now = now, after(now, each)
        if then.reported_serial is not None:
            assert now.reported_serial is not None
            assert at_least(now.reported_serial, then.reported_serial)
        if now.reported_serial is not None:
            assert distance(now.serial, now.reported_serial) <= 0


@given(_domains, _reports)
def test_active_means_that_the_domains_own_serial_was_reported(domain: tuple, reports: list[tuple]) -> None:
    start, made = _made(domain, reports)
    end = after(start, *made)
    assert (end.status is Status.ACTIVE) == (end.reported_serial == end.serial and end.status is not Status.DELETED)
    if end.status is Status.DELETED:
        assert any(each.action is Action.DELETE and each.status is Outcome.SUCCESS for each in made)


def test_a_serial_that_only_renews_signatures_changes_no_status() -> None:
    resigned = dataclasses.replace(PENDING, serial=OWN + 2, content_serial=OWN, first_serial=OWN - 9)
    assert after(resigned, success(OWN - 1)).status is Status.PENDING
    active = after(resigned, success(OWN))
    assert (active.status, active.action, active.reported_serial) == (Status.ACTIVE, Action.NONE, OWN)
    assert after(active, error(OWN + 2)) == active
    assert after(active, success(OWN + 2)) == dataclasses.replace(active, reported_serial=OWN + 2)
    assert after(resigned, error(OWN + 1)).status is Status.ERROR, 'it has the contents too'
    assert after(resigned, error(OWN - 1)).status is Status.PENDING


DOMAIN = Domain(id='0' * 32, name='example.com.', pool_id='1' * 32, pool_name='default', email='a@example.com', ttl=300,
                serial=1)


def wanted(line: str, *records: str, prefix: str = '') -> WantedRecordSet:
    """``name ttl type`` and records; a TTL of ``-`` is the domain's."""
    name, ttl, rtype = line.split()
    return WantedRecordSet(name, rtype, names_and_rdata.rdatas('records', rtype, records) if records else (),
                           ttl=None if ttl == '-' else int(ttl), prefix=prefix)


def present(line: str, *records: str, managed: bool = False) -> RecordSet:
    """As *wanted*; the ids are the texts."""
    name, ttl, rtype = line.split()
    return RecordSet(name, rtype, tuple(Record(each, id=each) for each in records), id=f'{name} {rtype}',
                     ttl=None if ttl == '-' else int(ttl), managed=managed)


WWW = present('www.example.com. - A', '192.0.2.1', '192.0.2.2')


def test_nothing_to_do_is_nothing() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - A', '192.0.2.2', '192.0.2.1')])
    assert not edits


def test_the_domains_own_ttl_said_aloud_is_a_version_since_the_domains_may_change() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. 300 A', '192.0.2.2', '192.0.2.1')])
    assert edits.contents
    assert (edits.new_records, edits.touched_records) == ([], ['192.0.2.1', '192.0.2.2'])


def test_a_new_recordset() -> None:
    edits = recordset_edits.plan(DOMAIN, [], [wanted('www.example.com. 60 A', '192.0.2.1')], new_ids=['x'])
    (made,) = edits.new_sets
    assert (made.id, made.name, made.type, made.ttl) == ('x', 'www.example.com.', 'A', 60)
    assert [(key, rdata.text) for key, rdata in edits.new_records] == [('x', '192.0.2.1')]


def test_one_record_is_replaced() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - A', '192.0.2.1', '192.0.2.3')])
    assert edits.gone_records == ['192.0.2.2']
    assert [rdata.text for _, rdata in edits.new_records] == ['192.0.2.3']
    assert edits.touched_records == []


def test_when_a_record_only_goes_those_that_stay_show_it() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - A', '192.0.2.1')])
    assert (edits.gone_records, edits.touched_records) == (['192.0.2.2'], ['192.0.2.1'])


def test_a_new_ttl_touches_every_record_that_stays() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. 60 A', '192.0.2.1', '192.0.2.3')])
    assert (edits.gone_records, edits.touched_records) == (['192.0.2.2'], ['192.0.2.1'])
    assert edits.changed_sets == {(60, None): [WWW.id]}


def test_a_description_is_not_served() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [WantedRecordSet(WWW.name, 'A', KEEP, ttl=KEEP, description='web')])
    assert edits.changed_sets == {(None, 'web'): [WWW.id]}
    assert not edits.contents


def test_a_recordset_goes() -> None:
    assert recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - A')]).gone_sets == [WWW.id]


def test_what_is_not_there_cannot_go() -> None:
    with pytest.raises(RecordSetNotFound):
        recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - AAAA')])


def test_what_must_be_new_is_not_there_yet() -> None:
    with pytest.raises(DuplicateRecordSet):
        recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - A', '192.0.2.9')], must_be_new=True)


@pytest.mark.parametrize(('line', 'record', 'field'), [
    ('www.example.org. - A', '192.0.2.1', 'name'),
    ('wwwexample.com. - A', '192.0.2.1', 'name'),
    ('com. - A', '192.0.2.1', 'name'),
    ('example.com. - CNAME', 'www.example.org.', 'type'),
    ('www.example.com. - SOA', 'a. b. 1 2 3 4 5', 'type'),
    ('www.example.com. - CNAME', 'www.example.org.', 'type'),
])
def test_what_has_no_place_in_the_domain(line: str, record: str, field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        recordset_edits.plan(DOMAIN, [WWW], [wanted(line, record, prefix='changes[0].')])
    assert caught.value.kwargs['field'] == f'changes[0].{field}'


@pytest.mark.parametrize(('line', 'record'), [
    ('example.com. - SOA', 'a. b. 1 2 3 4 5'), ('example.com. - NS', 'ns1.example.com.')])
def test_what_is_made_from_the_pool_is_not_for_users(line: str, record: str) -> None:
    with pytest.raises(ManagedRecordSet):
        recordset_edits.plan(DOMAIN, [], [wanted(line, record)])


def test_a_delegation_is() -> None:
    assert recordset_edits.plan(DOMAIN, [], [wanted('sub.example.com. - NS', 'ns1.example.org.')]).new_sets


def test_a_cname_may_take_the_place_of_what_goes_with_the_same_change() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - CNAME', 'www.example.org.'),
                                                 wanted('www.example.com. - A')])
    assert edits.gone_sets == [WWW.id]
    assert [each.type for each in edits.new_sets] == ['CNAME']


def test_nothing_may_come_beside_a_cname() -> None:
    alias = present('www.example.com. - CNAME', 'www.example.org.')
    with pytest.raises(InvalidField) as caught:
        recordset_edits.plan(DOMAIN, [alias], [wanted('www.example.com. - TXT', '"x"')])
    assert 'has CNAME already' in caught.value.kwargs['why']
    assert not recordset_edits.plan(DOMAIN, [alias], [wanted('www.example.com. - CNAME', 'www.example.org.')])


GOLD, SILVER, BARE = (new_id() for _ in range(3))
NAMES = {GOLD: 'gold', SILVER: 'silver', BARE: 'bare'}


@pytest.fixture(scope='module')
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    """The pools ``gold``, ``silver`` and ``default``, which have servers, and ``bare``, which has none."""
    url = f'sqlite:///{tmp_path_factory.mktemp("scheduler") / "db"}'
    migrate.upgrade(url)
    found = Storage(url)
    for pool_id, name in NAMES.items():
        found.run(pools.insert, Pool(name, pool_id, name_servers=(f'ns1.{name}.example.',), attributes=json.dumps(
            {'tier': name, 'anycast': 'yes'})), utcnow())
        if pool_id != BARE:
            found.run(pool_servers.register, name, [PoolServer(
                new_id(), '', f'fake:{name}', 'fake', ServerState.ACTIVE)], False, True, utcnow())
    yield found
    found.close()


def chosen(storage: Storage, *filters: str, chance: float = 0.0, default: str = 'default', **attributes: str) -> str:
    found = storage.run(Scheduler(default, filters=filters).choose, attributes, chance)
    return '' if found is None else found.name


@pytest.mark.parametrize('filters, attributes, expected', [
    (['default_pool'], {'tier': 'gold', 'pool_id': SILVER}, 'default'),
    (['attribute', 'random'], {'tier': 'gold', 'anycast': 'TRUE'}, 'default'),
    (['attribute', 'in_doubt_default_pool'], {}, 'default'),
    (['pool_id_attribute', 'attribute'], {'pool_id': SILVER}, 'silver'),
    (['pool_id_attribute', 'attribute'], {'pool_id': SILVER, 'tier': 'silver'}, 'silver'),
    (['pool_id_attribute'], {'pool_id': BARE}, 'bare'),
    (['pool_id_attribute', 'attribute', 'fallback'], {'pool_id': SILVER, 'tier': 'gold'}, 'default'),
    (['pool_id_attribute', 'default_pool'], {}, 'default'),
    (DEFAULT_FILTERS, {}, 'default'),
    (DEFAULT_FILTERS, {'tier': 'silver'}, 'default'),
], ids=lambda value: '+'.join(value) or 'none')
def test_which_pool_is_chosen(storage: Storage, filters: list[str], attributes: dict[str, str],
                              expected: str) -> None:
    """The pool ``default`` has no attributes, so it matches all."""
    assert chosen(storage, *filters, **attributes) == expected


def test_pools_without_servers_take_part_only_when_named(storage: Storage) -> None:
    assert {chosen(storage, 'random', chance=each / 10) for each in range(10)} == {'default', 'gold', 'silver'}


def test_several_or_no_pools_are_an_error(storage: Storage) -> None:
    with pytest.raises(Refused, match='default, gold, silver'):
        chosen(storage, 'pool_id_attribute')
    with pytest.raises(NotFound):
        chosen(storage, 'pool_id_attribute', pool_id=new_id())
    assert chosen(storage, 'attribute', default='none', tier='gold') == ''


def test_the_default_pool_by_its_id(storage: Storage) -> None:
    found = storage.run(Scheduler('default', GOLD, ('attribute', 'in_doubt_default_pool')).choose, {'tier': 'gold'}, 0)
    assert found is not None and found.name == 'gold'
    found = storage.run(Scheduler('default', GOLD, ('default_pool',)).choose, {}, 0)
    assert found is not None and found.name == 'gold'


def test_the_configuration_knows_the_same_filters() -> None:
    assert set(sections.FILTERS) == set(FILTERS)
    assert CentralSettings().scheduler_filters == DEFAULT_FILTERS


BEGIN = datetime(2030, 1, 1, tzinfo=timezone.utc)


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 20)), max_size=60), st.integers(1, 50))
def test_no_hour_has_more_than_the_limit(steps: list[tuple[int, int]], limit: int) -> None:
    now, recent, made = BEGIN, '', list[tuple[datetime, int]]()
    for seconds, count in steps:
        now += timedelta(seconds=seconds)
        lately = sum(each for at, each in made if at > now - timedelta(minutes=65))
        try:
            recent = add_deletes('deletes_per_hour', limit, recent, count, now)
        except OverQuota:
            assert lately + count > limit
        else:
            made.append((now, count))
            assert sum(each for at, each in made if at > now - timedelta(hours=1)) <= limit
            assert len(recent) <= 255


def test_what_is_kept_fits_its_column() -> None:
    recent = ''
    for number in range(40):
        recent = add_deletes('deletes_per_hour', 1 << 31, recent, 99_999_999, BEGIN + timedelta(minutes=5 * number))
    assert len(recent.split()) == 13 and len(recent) <= 255
    with pytest.raises(OverQuota, match='deletes_per_hour allows 5; this would make it 6'):
        add_deletes('deletes_per_hour', 5, '', 6, BEGIN)
