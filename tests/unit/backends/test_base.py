"""What the base class makes of whatever a driver does; the fake driver, drivers of other packages, and options."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest

from designate_pool import backends
from designate_pool.backends.base import Backend, Capabilities, Outcomes
from designate_pool.deadline import Deadline
from designate_pool.errors import (BackendError, BackendRefused, BackendUnreachable, BadConfiguration, DomainNotFound,
                                   InvalidField)
from designate_pool.logs import RateLimitedLog
from designate_pool.model import CallResult, Domain, Option, Pool, Reason, Server, new_id
from designate_pool.testing import a_domain


class Raises(Backend):
    """A driver that raises what it is told to."""

    OPTIONS = (Option('colour', 'A colour.', default='blue'), Option('size', 'A size.', 'int', 3))

    def __init__(self, *errors: BaseException | None) -> None:
        super().__init__(Server(new_id(), 'raises', '192.0.2.1', call_timeout=7, options={'size': 4}))
        self.errors = list(errors)
        self.deadlines: list[Deadline] = []

    def _create(self, domain: Domain, deadline: Deadline) -> None:
        self.deadlines.append(deadline)
        error = self.errors.pop(0)
        if error is not None:
            raise error


class Cancelled(BaseException):
    """Not an Exception, nor known."""


@pytest.mark.parametrize('error, said, retryable, unreachable, reason', [
    (BackendRefused(why='wrong key'), 'wrong key', False, False, Reason.OTHER),
    (BackendRefused(why='wrong key', reason=Reason.BAD_KEY), 'wrong key', False, False, Reason.BAD_KEY),
    (BackendUnreachable(why='no route'), 'no route', True, True, Reason.UNREACHABLE),
    (BackendUnreachable(why='no answer', reason=Reason.TIMEOUT), 'no answer', True, True, Reason.TIMEOUT),
    (BackendError(why='result 25'), 'result 25', True, False, Reason.OTHER),
    (TimeoutError(), 'no answer within 7 s', True, True, Reason.TIMEOUT),
    (ConnectionRefusedError(111, 'Connection refused'), 'connection failed: Connection refused', True, True,
     Reason.UNREACHABLE),
    (PermissionError(13, 'Permission denied'), 'connection failed: Permission denied', True, True, Reason.NO_ACCESS),
    (OSError('gone'), 'connection failed: gone', True, True, Reason.UNREACHABLE),
    (DomainNotFound(domain='x'), 'There is no zone x.', True, False, Reason.OTHER),
    (ZeroDivisionError('by zero'), 'the driver failed: ZeroDivisionError: by zero', True, False, Reason.OTHER),
    (Cancelled('now'), 'the driver failed: Cancelled: now', True, False, Reason.OTHER),
])
def test_whatever_a_driver_raises_is_a_result(error: BaseException, said: str, retryable: bool, unreachable: bool,
                                              reason: Reason) -> None:
    result = Raises(error).create_domain(a_domain())
    assert (result.error, result.retryable, result.unreachable) == (said, retryable, unreachable)
    assert result.reason is reason


@pytest.mark.parametrize('error', [SystemExit(), KeyboardInterrupt(), GeneratorExit()])
def test_the_end_of_the_program_goes_through(error: BaseException) -> None:
    with pytest.raises(type(error)):
        Raises(error).create_domain(a_domain())


def test_eventlets_own_timeout_is_a_result() -> None:
    script = '''
from designate_pool import runtime
runtime.patch()
import time, eventlet
from designate_pool import model
from designate_pool.backends.base import Backend
class Slow(Backend):
    def _ping(self, deadline):
        with eventlet.Timeout(0.05):
            time.sleep(10)
print(Slow(model.Server('0' * 32, 'slow', '192.0.2.1')).ping().error)
'''
    ended = subprocess.run([sys.executable, '-W', 'ignore', '-c', script], capture_output=True, text=True, timeout=30)
    assert ended.stdout == 'no answer within 10 s\n', ended.stderr


def test_success_is_timed_and_gets_a_deadline_by_the_servers_timeout() -> None:
    driver = Raises(None)
    result = driver.create_domain(a_domain())
    assert result == CallResult(seconds=result.seconds)
    assert result.ok
    assert [deadline.seconds for deadline in driver.deadlines] == [7]


def test_a_failing_server_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = [1000.0]
    caplog.set_level(logging.INFO)
    driver = Raises(*[BackendError(why=f'zone {number}') for number in range(500)], TimeoutError(), None, None,
                    BackendError(why='later'))
    driver._failures = RateLimitedLog(lambda: clock[0])
    for _ in range(501):
        driver.create_domain(a_domain())
    label = 'raises:192.0.2.1:53'
    assert caplog.messages == [f'{label}: create example.com.: zone 0',
                               f'{label}: create example.com.: no answer within 7 s']
    for _ in range(2):
        driver.create_domain(a_domain())
    assert caplog.messages[2:] == [f'{label}: works again']
    clock[0] += 61
    driver.create_domain(a_domain())
    assert caplog.messages[3:] == [f'{label}: create example.com.: later (and 499 times more since the last '
                                   'such line)']


class Refuses(Backend):
    """A driver whose server does nothing for the domains of a batch."""

    capabilities = Capabilities(batch_size=10)

    def _create_many(self, domains: Sequence[Domain], deadline: Deadline) -> Outcomes:
        return [BackendError(why='no')] * len(domains)


def test_a_batch_in_which_a_zone_fails_does_not_show_that_the_server_works_again(
        caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    driver = Refuses(Server(new_id(), 'refuses', '192.0.2.1'))
    for _ in range(3):
        assert [result.error for result in driver.create_domains([a_domain(), a_domain('example.net.')])] == ['no'] * 2
    assert caplog.messages == ['refuses:192.0.2.1:53: create example.com.: no']


class Yields(Refuses):
    """A driver that yields the outcomes of a batch."""

    def _create_many(self, domains: Sequence[Domain], deadline: Deadline) -> Iterator[None]:  # type: ignore[override]
        yield None
        raise ConnectionRefusedError(111, 'Connection refused')

    def _delete_many(self, domains: Sequence[Domain], deadline: Deadline) -> Iterator[None]:  # type: ignore[override]
        yield from [None] * len(domains)


def test_a_driver_may_yield_the_outcomes_of_a_batch_and_fail_between_two() -> None:
    driver, two = Yields(Server(new_id(), 'yields', '192.0.2.1')), [a_domain(), a_domain('example.net.')]
    assert [result.unreachable for result in driver.create_domains(two)] == [True] * 2
    assert [result.ok for result in driver.delete_domains(two)] == [True] * 2


def test_only_the_unforeseen_is_logged_with_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    Raises(BackendRefused(why='no')).create_domain(a_domain())
    Raises(ZeroDivisionError()).create_domain(a_domain())
    assert [bool(record.exc_info) for record in caplog.records] == [False, True]


def test_an_unknown_driver_is_named_with_those_there_are() -> None:
    with pytest.raises(InvalidField, match="driver: 'bind' is unknown; known are bind9, catalog, fake, knot, "):
        backends.build(Server(new_id(), 'bind', '192.0.2.1'))


def test_all_drivers_of_a_pool_are_built_or_all_mistakes_are_named() -> None:
    good, reader = Server('1' * 32, 'fake', '192.0.2.1'), Server('2' * 32, 'catalog', '192.0.2.2')
    wrong = Server('3' * 32, 'fake', '192.0.2.3', options={'on_create': 'dance'})
    with pytest.raises(BadConfiguration) as caught:
        backends.build_all(Pool('default', servers=(good, reader, wrong)))
    assert 'mistakes (2)' in str(caught.value)
    assert 'driver: it requires the option catalog_zone' in str(caught.value) and 'on_create:' in str(caught.value)
    pool = Pool('default', servers=(good, reader), catalog_zone='catalog.example.')
    built = backends.build_all(pool)
    again = backends.build_all(Pool('default', servers=(good, Server('2' * 32, 'fake', '192.0.2.2'))), built)
    assert again[good.id] is built[good.id] and again[reader.id] is not built[reader.id]


def test_every_driver_says_its_options() -> None:
    options = backends.options()
    assert options.keys() == backends.DRIVERS.keys()
    for driver, found in options.items():
        names = [option.name for option in found]
        assert len(names) == len(set(names))
        assert all(option.help.endswith('.') for option in found), driver


@pytest.mark.parametrize(('driver', 'option'), [
    (driver, option.name) for driver, found in backends.options().items() for option in found if option.required])
def test_whoever_builds_a_driver_has_to_give_what_is_required(driver: str, option: str) -> None:
    given = {each.name: '1' for each in backends.options()[driver] if each.required}
    for missing in (None, ''):
        with pytest.raises(InvalidField, match=f'{option}: it must be given'):
            backends.build(Server(new_id(), driver, '192.0.2.1', options={**given, option: missing}))
