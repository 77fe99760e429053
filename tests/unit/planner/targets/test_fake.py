"""The server that is not there: what it holds, and what it does when it is told to do it wrong."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, InvalidField, SourceError
from designate_pool.planner.targets.fake import FakeProvider, zone_of
from designate_pool.planner.zone.zone import Zone
from testing.processes import wait_until
from tests.fixtures.plans import planned

NAME = 'example.com.'
SOA = '@ 300 SOA ns1.example.net. hostmaster.example.com. {} 3600 600 86400 300\n'
BEFORE = SOA.format(1) + '@ 300 NS ns1.example.net.\nwww 60 A 192.0.2.1\nold 60 A 192.0.2.2\n'
AFTER = SOA.format(2) + '@ 300 NS ns1.example.net.\nwww 60 A 192.0.2.11\nnew 60 CNAME www\n'


@pytest.fixture
def fake() -> FakeProvider:
    return FakeProvider('fake', {NAME: BEFORE})


def test_a_zone_is_read_changed_and_listed(fake: FakeProvider) -> None:
    desired = zone_of(NAME, AFTER)
    plan = planned(fake, desired)
    assert plan.exists
    assert fake.apply(plan).applied == len(plan.changes) == 4
    assert fake.zone(NAME) == desired
    assert fake.plan(desired) is None
    assert fake.zones(()) == ({NAME: 2}, True)
    assert fake.list_zones() == [NAME]


def test_one_that_makes_no_zones() -> None:
    fake = FakeProvider('fake', makes_zones=False)
    plan = planned(fake, zone_of(NAME, AFTER))
    with pytest.raises(BackendRefused, match='does not have the zone example.com., and creates none'):
        fake.apply(plan)


def test_it_says_yes_and_does_nothing(fake: FakeProvider) -> None:
    plan = planned(fake, zone_of(NAME, AFTER))
    fake.behave('apply', 'lie')
    assert fake.apply(plan).ok
    assert fake.zone(NAME) == zone_of(NAME, BEFORE)
    fake.behave('populate', 'lie', times=1)
    empty = Zone(NAME)
    assert fake.populate(empty) and not len(empty)
    assert fake.populate(empty) and len(empty) == 4
    fake.behave('delete', 'lie')
    fake.delete_zone(NAME)
    assert fake.zone(NAME) is not None


@pytest.mark.parametrize(('behaviour', 'kind'), [
    ('fail', BackendError), ('refuse', BackendRefused), ('unreachable', BackendUnreachable)])
def test_every_operation_fails_as_it_is_told(fake: FakeProvider, behaviour: str, kind: type[BackendError]) -> None:
    plan = planned(fake, zone_of(NAME, AFTER))
    for operation, call in (('populate', lambda: fake.populate(Zone(NAME))), ('apply', lambda: fake.apply(plan)),
                            ('create', lambda: fake.create_zone(Zone('example.org.'))), ('ping', fake.ping),
                            ('delete', lambda: fake.delete_zone(NAME)), ('list', lambda: fake.zones(()))):
        fake.behave(operation, behaviour, times=1)
        with pytest.raises(kind, match='as configured'):
            call()
        assert fake.zone(NAME) == zone_of(NAME, BEFORE)
    assert fake.populate(Zone(NAME))


def test_it_hangs_until_the_time_is_up_or_it_is_closed() -> None:
    fake = FakeProvider('fake', on_ping='hang', timeout=0.05)
    with pytest.raises(BackendUnreachable, match='no answer within 0.05 s'):
        fake.ping()
    fake.timeout = 60
    with ThreadPoolExecutor(1) as threads:
        hanging = threads.submit(fake.ping)
        wait_until(lambda: fake.close() or hanging.done(), 'the call that hangs ends')
        with pytest.raises(BackendUnreachable):
            hanging.result()


@pytest.mark.parametrize(('settings', 'why'), [
    ({'on_ping': 'explode'}, "on_ping: 'explode' is unknown; known are succeed, fail"),
])
def test_words_that_are_not_known(settings: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidField, match=why):
        FakeProvider('fake', **settings)  # type: ignore[arg-type]
    with pytest.raises(InvalidField, match="operation: 'cook' is unknown"):
        FakeProvider('fake').behave('cook', 'fail')


def test_a_text_that_is_no_zone() -> None:
    with pytest.raises(SourceError, match='example.com. of a fake server.*line 1'):
        FakeProvider('fake', {NAME: 'www A not.an.address\n'})
