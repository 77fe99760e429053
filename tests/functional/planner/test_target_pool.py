"""The pool itself as a target and a source: the real programs and a BIND, written to over HTTP."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.model import PlanState, StoredPlan, new_id, utcnow
from designate_pool.planner import master
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.pool_api import ApiStore, PoolApi
from designate_pool.planner.targets.pool import PoolProvider
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import rrset
from testing.processes import free_port, wait_until
from tests.fixtures.bind_pool import BindPool
from tests.fixtures.plans import planned

CONTENTS = r"""
@       300 IN NS    ns1.example.org.
@       300 IN NS    ns2.example.org.
@       300 IN MX    10 mail
@       300 IN TXT   "v=spf1 mx -all" "a \"quoted\" \\ part; with all"
www      60 IN A     192.0.2.1
www      60 IN A     192.0.2.2
mail    300 IN AAAA  2001:db8::25
old     300 IN A     192.0.2.9
*.any   300 IN CNAME www
_x._tcp 300 IN SRV   1 2 443 www
a\.b    300 IN A     192.0.2.3
odd     300 IN TYPE65400 \# 4 c0000201
"""


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BindPool]:
    with BindPool(tmp_path_factory.mktemp('target-pool')) as pool:
        yield pool


@pytest.fixture
def provider(pool: BindPool) -> Iterator[PoolProvider]:
    provider = PoolProvider('pool', url=pool.url)
    yield provider
    provider.close()


@pytest.fixture
def name() -> str:
    """Of a zone that no other test has."""
    return f'z{uuid.uuid4().hex[:10]}.example.com.'


def zone(name: str, text: str = CONTENTS) -> Zone:
    found = Zone(name)
    found.add_pairs(master.read(text, name, require_soa=False))
    return found


def put(provider: PoolProvider, desired: Zone) -> ApplyResult:
    return provider.apply(planned(provider, desired))


def kinds(plan: Plan) -> list[str]:
    return [change.kind for change in plan.changes]


def read(provider: PoolProvider, name: str) -> Zone:
    found = Zone(name)
    assert provider.populate(found)
    return found


def zone_id(pool: BindPool, name: str) -> str:
    found = PoolApi(pool.stack.url).zone(name)
    assert found is not None
    return str(found['id'])


def history(pool: BindPool, name: str) -> list[str]:
    """By what the zone was changed, newest first."""
    versions = pool.stack.request('GET', f'/v2/zones/{zone_id(pool, name)}/versions', 200)['versions']
    return [version['kind'] for version in versions]


class TestRounds:
    def test_a_new_zone_comes_whole_in_one_request_and_is_served(self, pool: BindPool, provider: PoolProvider,
                                                                 name: str) -> None:
        before = pool.writes()
        plan = planned(provider, zone(name))
        assert (plan.exists, kinds(plan)) == (False, ['Create'] * 9)
        assert provider.apply(plan) == ApplyResult(applied=9)
        assert pool.writes(before) == 1
        shown = pool.stack.wait_for(zone_id(pool, name))
        assert shown['email'] == f'hostmaster@{name.rstrip(".")}'
        assert pool.served(f'www.{name}', 'A') == ['192.0.2.1', '192.0.2.2']
        assert pool.served(name, 'TXT') == [r'"v=spf1 mx -all" "a \"quoted\" \\ part; with all"']
        assert pool.served(name, 'NS') == ['ns1.example.org.', 'ns2.example.org.']
        assert provider.plan(zone(name)) is None
        assert history(pool, name) == ['PLAN']

    def test_all_changes_come_at_one_serial_and_the_second_round_is_empty(self, pool: BindPool, provider: PoolProvider,
                                                                          name: str) -> None:
        put(provider, zone(name))
        first = pool.stack.wait_for(zone_id(pool, name))
        desired = zone(name, CONTENTS.replace('old     300 IN A     192.0.2.9', 'new 300 IN A 192.0.2.10')
                       .replace('*.any   300 IN CNAME www', '*.any 300 IN A 192.0.2.4')
                       .replace('mail    300 IN AAAA  2001:db8::25', 'mail 300 IN CNAME www')
                       .replace('www      60 IN A     192.0.2.2', 'www 60 IN A 192.0.2.5'))
        before = pool.writes()
        plan = planned(provider, desired)
        assert kinds(plan) == ['Delete', 'Replace', 'Replace', 'Update', 'Create']
        assert provider.apply(plan).ok
        assert pool.writes(before) == 1
        second = pool.stack.wait_for(first['id'])
        assert second['serial'] > first['serial']
        assert pool.served(f'www.{name}', 'A') == ['192.0.2.1', '192.0.2.5']
        assert pool.served(f'mail.{name}', 'AAAA') == [f'www.{name}']
        assert pool.served(f'old.{name}', 'A') == []
        assert provider.plan(desired) is None
        assert pool.stack.zone(first['id'])['serial'] == second['serial']
        assert history(pool, name) == ['PLAN', 'PLAN']

    @pytest.mark.slow
    def test_more_than_other_requests_may_hold(self, pool: BindPool, provider: PoolProvider, name: str) -> None:
        text = '\n'.join(f'host-{number} 300 IN TXT "{number:0>80}"' for number in range(9000))
        before = pool.writes()
        assert put(provider, zone(name, text)) == ApplyResult(applied=9000)
        assert provider.plan(zone(name, text)) is None
        fewer = zone(name, text.replace(' 300 ', ' 60 '))
        assert put(provider, fewer) == ApplyResult(applied=9000)
        assert provider.plan(fewer) is None
        assert pool.writes(before) == 2

    def test_an_empty_zone(self, pool: BindPool, provider: PoolProvider, name: str) -> None:
        plan = planned(provider, Zone(name))
        assert (plan.exists, plan.changes) == (False, [])
        assert provider.apply(plan).ok
        assert provider.plan(Zone(name)) is None
        assert zone_id(pool, name)


class TestLocks:
    """What is locked is left out of plans, with a warning, and the rest is done."""

    @pytest.mark.parametrize(('locked', 'line', 'done'), [
        ('www A', ('192.0.2.1', '192.0.2.5'), False), ('mail AAAA', ('IN AAAA  2001:db8::25', 'IN CNAME www'), False),
        ('*.any CNAME', ('IN CNAME www', 'IN A 192.0.2.4'), False),
        ('old A', ('old     300 IN A     192.0.2.9', ''), False),
        ('www A', ('2001:db8::25', '2001:db8::26'), True)],
        ids=['update', 'becomes-cname', 'cname-becomes-address', 'delete', 'another'])
    def test_of_a_recordset(self, pool: BindPool, provider: PoolProvider, name: str, caplog: pytest.LogCaptureFixture,
                            locked: str, line: tuple[str, str], done: bool) -> None:
        put(provider, zone(name))
        label, rtype = locked.split()
        path = f'/v2/zones/{zone_id(pool, name)}/recordsets'
        recordset = next(each for each in pool.stack.request('GET', path)['recordsets']
                         if (each['name'], each['type']) == (f'{label}.{name}', rtype))
        pool.stack.request('POST', f'{path}/{recordset["id"]}/tasks/lock', 200, json={'reason': 'an incident'})
        before = read(provider, name).packed
        desired = zone(name, CONTENTS.replace(*line) + 'new 300 IN A 192.0.2.10')
        assert put(provider, desired).ok
        warned = f'the change of {label}.{name} {rtype} is left out: it is locked: an incident' in caplog.text
        assert warned is not done
        after = dict(read(provider, name).packed)
        del after[f'new.{name}\tA']
        assert (after != before) is done

    def test_of_the_zone(self, pool: BindPool, provider: PoolProvider, name: str,
                         caplog: pytest.LogCaptureFixture) -> None:
        put(provider, zone(name))
        path = f'/v2/zones/{zone_id(pool, name)}/tasks'
        plan = planned(provider, zone(name, CONTENTS.replace('192.0.2.1', '192.0.2.5')))
        pool.stack.request('POST', f'{path}/lock', 200, json={'reason': 'an incident'})
        assert 'is locked: an incident' in str(provider.apply(plan).errors)
        assert provider.plan(zone(name, 'new 300 IN A 192.0.2.10')) is None
        assert f'the change of new.{name} A is left out: the zone is locked: an incident' in caplog.text
        pool.stack.request('POST', f'{path}/unlock', 200)
        assert put(provider, zone(name, CONTENTS + 'new 300 IN A 192.0.2.10')).ok

    def test_what_a_cname_would_replace_stays_beside_what_is_locked(self, pool: BindPool, provider: PoolProvider,
                                                                    name: str) -> None:
        put(provider, zone(name, CONTENTS + 'old 300 IN TXT "of the same name"'))
        path = f'/v2/zones/{zone_id(pool, name)}'
        recordset, = pool.stack.request('GET', f'{path}/recordsets?name=old.{name}&type=TXT', 200)['recordsets']
        pool.stack.request('POST', f'{path}/recordsets/{recordset["id"]}/tasks/lock', 200, json={'reason': 'moving'})
        cname = CONTENTS.replace('old     300 IN A     192.0.2.9', 'old 300 IN CNAME www')
        assert provider.plan(zone(name, cname)) is None


class TestOfOthers:
    """What is there for a resource of another service, or of a guest, is left out of plans, and the rest is done."""

    @pytest.mark.parametrize(('whose', 'why'), [({'managed': True}, 'it is there for'),
                                                ({'project_id': 'blue'}, 'another project created it')])
    @pytest.mark.parametrize(('line', 'is_told'), [
        (('old     300 IN A     192.0.2.9', ''), False), (('192.0.2.9', '192.0.2.8'), True),
        (('old     300 IN A     192.0.2.9', 'old 300 IN CNAME www'), True), (('', ''), False)],
        ids=['not-given', 'other-data', 'cname', 'the-same'])
    def test_it_stays(self, pool: BindPool, provider: PoolProvider, name: str, caplog: pytest.LogCaptureFixture,
                      whose: dict[str, Any], why: str, line: tuple[str, str], is_told: bool) -> None:
        put(provider, zone(name))
        pool.make(zone_id(pool, name), f'old.{name}', **whose)
        desired = zone(name, CONTENTS.replace(*line) + 'new 300 IN A 192.0.2.10')
        assert kinds(planned(provider, desired)) == ['Create']
        assert put(provider, desired).ok
        assert (f'the change of old.{name} A is left out: {why}' in caplog.text) is is_told
        after = read(provider, name)
        assert after.at(f'old.{name}') == [rrset(f'old.{name}', 'A', 300, ['192.0.2.9'])]
        assert after.get(f'new.{name}', 'A') is not None
        assert provider.plan(desired) is None

    def test_no_dname_comes_above_it(self, pool: BindPool, provider: PoolProvider, name: str,
                                     caplog: pytest.LogCaptureFixture) -> None:
        below = 'x.old   300 IN A     192.0.2.9'
        put(provider, zone(name, CONTENTS.replace('old     300 IN A     192.0.2.9', below)))
        pool.make(zone_id(pool, name), f'x.old.{name}', managed=True)
        desired = zone(name, CONTENTS.replace('old     300 IN A     192.0.2.9', 'old 300 IN DNAME www')
                       + 'new 300 IN A 192.0.2.10')
        assert [str(change.record.name) for change in planned(provider, desired).changes] == [f'new.{name}']
        assert put(provider, desired).ok and f'the change of x.old.{name} A is left out' in caplog.text


class TestWhatIsMadeFromThePool:
    def test_an_octodns_users_apex_ns_are_left_out_without_a_word(self, provider: PoolProvider, name: str,
                                                                  caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.WARNING)
        other = CONTENTS.replace('ns1.example.org.', 'ns9.example.net.')
        assert put(provider, zone(name, other)).ok
        assert provider.plan(zone(name, other)) is None
        without = CONTENTS.replace('@       300 IN NS', 'deep 300 IN NS')
        assert kinds(planned(provider, zone(name, without))) == ['Create']
        assert caplog.records == []

    def test_what_central_refuses_is_told_and_nothing_is_done(self, provider: PoolProvider, name: str) -> None:
        put(provider, zone(name))
        plan = planned(provider, zone(name, 'new 60 IN A 192.0.2.1'))
        plan.changes.append(changes.create(rrset(name, 'CNAME', 60, ['www.example.org.'])))
        result = provider.apply(plan)
        assert (result.applied, result.failed) == (0, len(plan.changes))
        assert 'a CNAME cannot be at the apex' in result.errors[0]
        assert provider.plan(zone(name)) is None


class TestSomebodyElse:
    def test_changes_the_zone_meanwhile(self, pool: BindPool, provider: PoolProvider, name: str) -> None:
        put(provider, zone(name))
        desired = zone(name, CONTENTS.replace('192.0.2.9', '192.0.2.10') + 'new 60 IN A 192.0.2.11')
        plan = planned(provider, desired)
        pool.stack.create_recordset(zone_id(pool, name), f'theirs.{name}', 'A', '192.0.2.99')
        for _ in range(2):
            with pytest.raises(errors.PlanMoved, match=f'The plan of {name} on pool is not applied: .* changed mean'):
                provider.apply(plan)
        left = read(provider, name)
        assert left.get(f'new.{name}', 'A') is None and left.get(f'theirs.{name}', 'A') is not None
        assert kinds(planned(provider, desired)) == ['Delete', 'Update', 'Create']
        assert put(provider, desired).ok
        assert provider.plan(desired) is None

    def test_makes_the_zone_meanwhile(self, pool: BindPool, provider: PoolProvider, name: str) -> None:
        plan = planned(provider, zone(name))
        pool.stack.create_zone(name)
        with pytest.raises(errors.PlanMoved, match='exists already'):
            provider.apply(plan)
        assert put(provider, zone(name)).ok
        assert provider.plan(zone(name)) is None

    def test_deletes_the_zone_meanwhile(self, pool: BindPool, provider: PoolProvider, name: str) -> None:
        put(provider, zone(name))
        key = zone_id(pool, name)
        pool.stack.wait_for(key)
        plan = planned(provider, zone(name, CONTENTS.replace('192.0.2.9', '192.0.2.10')))
        pool.named.stop()
        try:
            pool.stack.delete_zone(key)
            with pytest.raises(errors.PlanMoved):
                provider.apply(plan)
            with pytest.raises(errors.SourceError, match='is being deleted'):
                provider.plan(zone(name))
            assert name not in provider.list_zones()
        finally:
            pool.named.start()
        pool.stack.wait_for(key, 'gone')
        with pytest.raises(errors.PlanMoved):
            provider.apply(plan)
        assert put(provider, zone(name)).ok
        assert provider.plan(zone(name)) is None


class TestTroubleOnTheWay:
    @pytest.mark.parametrize('there', [False, True])
    def test_the_answer_is_lost_and_it_is_applied_again(self, pool: BindPool, provider: PoolProvider, name: str,
                                                        there: bool) -> None:
        if there:
            put(provider, zone(name))
        impatient = PoolProvider('pool', url=pool.url, timeout=3)
        desired = zone(name, CONTENTS.replace('old ', 'new ').replace('192.0.2.1', '192.0.2.7'))
        plan = planned(impatient, desired)
        pool.proxy.hold()
        try:
            with pytest.raises(errors.ApiUnreachable, match='no response within 3 s; the request may still be'):
                impatient.apply(plan)
        finally:
            pool.proxy.release()
        wait_until(lambda: provider.plan(desired) is None, 'the changes are made')
        key = zone_id(pool, name)
        serial = pool.stack.zone(key)['serial']
        for _ in range(2):
            assert impatient.apply(plan) == ApplyResult(applied=len(plan.changes))
        assert pool.stack.zone(key)['serial'] == serial

    def test_the_api_is_down(self, name: str) -> None:
        provider = PoolProvider('pool', url=f'http://127.0.0.1:{free_port()}')
        for ask in (lambda: provider.plan(zone(name)), lambda: provider.populate(Zone(name)), provider.list_zones):
            with pytest.raises(errors.SourceError, match='pool cannot be read: The API at .* connection refused'):
                ask()
        plan = Plan(Zone(name), zone(name), [], exists=False, target_id='pool')
        with pytest.raises(errors.ApiUnreachable):
            provider.apply(plan)

    def test_a_plan_of_a_zone_that_it_did_not_read(self, provider: PoolProvider, name: str) -> None:
        put(provider, zone(name))
        plan = planned(provider, zone(name, CONTENTS.replace('192.0.2.9', '192.0.2.10')))
        with pytest.raises(errors.PlanMoved):
            PoolProvider('pool', url=provider._api.url).apply(plan)


class TestSource:
    def test_it_gives_what_the_servers_serve(self, provider: PoolProvider, name: str) -> None:
        put(provider, zone(name))
        found = read(provider, name)
        assert found == zone(name, CONTENTS.replace('300 IN NS', '3600 IN NS'))
        assert found.get(name, 'SOA') is None

    def test_what_is_not_there(self, provider: PoolProvider, name: str) -> None:
        found = Zone(name)
        assert provider.populate(found) is False and len(found) == 0

    def test_it_lists_its_zones(self, provider: PoolProvider, name: str) -> None:
        names = [f'{number}.{name}' for number in range(3)]
        for each in names:
            put(provider, Zone(each))
        found = provider.list_zones()
        assert [each for each in found if each.endswith(f'.{name}')] == names
        assert len(found) == len(set(found))


class TestStore:
    @pytest.fixture
    def store(self, pool: BindPool) -> ApiStore:
        return ApiStore(PoolApi(pool.url))

    def plan(self, **facts: Any) -> StoredPlan:
        return StoredPlan(**{
            'id': new_id(), 'pool_name': '', 'zone': '2 zones', 'target': 'ns1, ns2', 'state': PlanState.STORED,
            'desired_digest': 'd' * 64, 'existing_digest': 'e' * 64, 'creates': 1, 'updates': 2, 'deletes': 3,
            'why': 'one\ntwo', 'document': '{"parts": ["münchen"]}', 'expires_at': utcnow() + timedelta(hours=1),
            **facts})

    def test_kept_found_and_settled(self, store: ApiStore) -> None:
        plan = self.plan()
        kept = store.put(plan)
        for field in ('id', 'zone', 'target', 'state', 'desired_digest', 'creates', 'deletes', 'why', 'expires_at'):
            assert getattr(kept, field) == getattr(plan, field), field
        assert (kept.pool_name, kept.document) == ('default', '{"parts": ["m\\u00fcnchen"]}')
        assert store.get(plan.id) == store.get(plan.id[:12]) == kept == store.put(plan)
        (listed,) = (each for each in store.find() if each.id == plan.id)
        assert (listed.document, listed.zone, listed.created_at) == ('', '2 zones', kept.created_at)
        store.settle(plan.id, PlanState.FAILED, 'ns2: refused')
        assert (store.get(plan.id).state, store.get(plan.id).why) == (PlanState.FAILED, 'ns2: refused')
        for _ in range(2):
            store.settle(plan.id, PlanState.APPLIED, None)
        assert store.get(plan.id).state is PlanState.APPLIED
        with pytest.raises(errors.ApiRefused, match='cannot become DROPPED') as caught:
            store.settle(plan.id, PlanState.DROPPED, None)
        assert (caught.value.code, caught.value.type) == (409, 'wrong_plan_state')

    def test_a_plan_that_is_not_there(self, store: ApiStore) -> None:
        for ask in (lambda: store.get(new_id()), lambda: store.settle(new_id(), PlanState.APPLIED, None)):
            with pytest.raises(errors.PlanNotFound):
                ask()
