"""The knot driver and knotd's one configuration transaction: refused changes, other writers, interruptions."""

from __future__ import annotations

import concurrent.futures
import socket
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from designate_pool.backends.knot import driver
from designate_pool.backends.knot.control_protocol import KnotControl
from designate_pool.deadline import Deadline
from designate_pool.model import Endpoint
from designate_pool.testing import NOWHERE, a_domain, opened
from testing.knot import Knotd
from testing.processes import wait_until
from tests.fixtures.rigs import KEY

Start = Callable[..., Knotd]


def assert_no_transaction_is_open(server: Knotd) -> None:
    server.knotc('conf-begin')
    server.knotc('conf-abort')


def test_a_template_or_key_that_is_not_there_is_permanent(knotd: Start) -> None:
    server = knotd()
    with opened(server.server([NOWHERE], template='nosuch')) as backend:
        result = backend.create_domain(a_domain())
        assert (result.error, result.retryable) == ("the server's configuration has no template nosuch", False)
        assert 'add the template' in backend.check()[0].advice
    with opened(server.server([NOWHERE], tsig_key=KEY)) as backend:
        result = backend.create_domain(a_domain())
        assert (result.error, result.retryable) == ("the server's configuration has no key transfer.example.", False)
        assert 'add the key' in backend.check()[0].advice
    assert server.knotc('conf-read', 'zone') == server.knotc('conf-read', 'remote') == ''
    assert_no_transaction_is_open(server)


def test_zones_that_knotd_refuses_at_the_commit_do_not_keep_the_others_out(knotd: Start) -> None:
    server = knotd(templates='  - id: pool\n    zonefile-load: difference-no-serial\n    journal-content: all\n')
    wrong = ['wrong0.example.com.', 'wrong3.example.com.']
    domains = [a_domain(f'{word}{number}.example.com.') for number in range(5) for word in ('right', 'wrong')]
    first, second = server.server([NOWHERE]), server.server([NOWHERE], template='pool')
    with opened(first) as backend:
        assert all(backend.create_domain(a_domain(name)).ok for name in wrong)
    for name in wrong:  # which contradicts the template
        server.change(['conf-set', f'zone[{name}].journal-content', 'none'])
    with opened(second) as backend:
        results = dict(zip((domain.name for domain in domains), backend.create_domains(domains), strict=True))
        assert {name for name, result in results.items() if not result.ok} == set(wrong)
        assert "requires 'journal-content: all'" in str(results[wrong[0]].error)
        assert len(backend.list_zones([]).serials) == len(domains)
        assert server.setting(f'zone[{wrong[0]}].master') == f'designate-pool-{first.id}'
        assert_no_transaction_is_open(server)
        for name in wrong:
            server.change(['conf-unset', f'zone[{name}].journal-content'])
        assert all(result.ok for result in backend.create_domains(domains))


def test_a_name_that_is_none_does_not_keep_the_others_out(knotd: Start) -> None:
    server = knotd()
    with opened(server.server([NOWHERE])) as backend:
        wrong, right = backend.create_domains([a_domain('a..example.com.'), a_domain()])
    assert 'is not a domain name' in str(wrong.error)
    assert right.ok


def test_while_an_operator_has_a_transaction_open_the_driver_waits(knotd: Start) -> None:
    server = knotd()
    server.knotc('conf-begin')
    server.knotc('conf-set', 'zone[theirs.example.com]')
    with opened(server.server([NOWHERE])) as backend, concurrent.futures.ThreadPoolExecutor() as pool:
        ours = pool.submit(backend.create_domain, a_domain())
        wait_until(lambda: "command 'conf-diff'" in server.log, 'the driver has found the transaction')
        assert not ours.done()
        server.knotc('conf-commit')
        assert ours.result().ok
        assert backend.list_zones([]).serials.keys() == {'example.com.'}
        assert server.setting('zone[theirs.example.com].domain') == 'theirs.example.com.'


def test_a_transaction_that_stays_open_is_told_without_its_secrets_and_left_alone(knotd: Start) -> None:
    server = knotd()
    secret = 'c2VjcmV0'
    server.knotc('conf-begin')
    server.knotc('conf-set', 'key[theirs]')
    server.knotc('conf-set', 'key[theirs].algorithm', 'hmac-sha256')
    server.knotc('conf-set', 'key[theirs].secret', secret)
    server.knotc('conf-set', 'server.identity', secret)
    server.knotc('conf-set', 'zone[theirs.example.com]')
    with opened(server.server([NOWHERE], call_timeout=1)) as backend:
        result = backend.create_domain(a_domain())
        assert result.error == ('Another configuration transaction is open on the server, which changes server,'
                                ' key theirs., zone theirs.example.com.; "knotc conf-abort" ends it.')
        assert result.retryable
        assert not result.unreachable
        assert 'conf-diff' in backend.check()[-1].advice
        server.knotc('conf-commit')
        assert server.setting('zone[theirs.example.com].domain') == 'theirs.example.com.'
        assert backend.create_domain(a_domain()).ok


def test_a_transaction_that_a_killed_pool_manager_left_is_ended(knotd: Start) -> None:
    server = knotd()
    ours = server.server([NOWHERE])
    with opened(ours) as backend:
        assert backend.create_domain(a_domain()).ok
        deadline = Deadline(5)
        control = KnotControl(str(server.socket), deadline)
        change = [*driver.mark('remote', f'designate-pool-{ours.id}'),
                  *driver.removal('zone', 'example.com.')]
        assert not any(control.ask_each([[{'command': 'conf-begin'}], *change], deadline))
        control.close()
        assert 'zone.domain' in server.knotc('conf-diff')
        assert backend.create_domain(a_domain('two.example.com.')).ok
        assert backend.list_zones([]).serials.keys() == {'example.com.', 'two.example.com.'}
    assert_no_transaction_is_open(server)


def test_a_transaction_that_was_begun_and_abandoned_is_ended(knotd: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """knotd carries out a conf-begin although the client has gone, or goes before it sends anything else."""
    server = knotd()
    with opened(server.server([NOWHERE], call_timeout=1)) as backend:
        assert backend.create_domain(a_domain()).ok
        deadline = Deadline(5)
        control = KnotControl(str(server.socket), deadline)
        list(control.ask({'command': 'conf-begin'}, deadline))
        control.close()
        first = backend.create_domain(a_domain('two.example.com.'))
        assert first.error == ('Another configuration transaction is open on the server, which changes nothing yet;'
                               ' "knotc conf-abort" ends it.')
        assert first.retryable
        monkeypatch.setattr(driver, 'time', SimpleNamespace(
            monotonic=lambda: time.monotonic() + driver.ABANDONED, sleep=time.sleep))
        assert backend.create_domain(a_domain('two.example.com.')).ok
        assert backend.list_zones([]).serials.keys() == {'example.com.', 'two.example.com.'}
        assert backend.delete_domain(a_domain()).ok
    assert_no_transaction_is_open(server)


def test_two_pool_managers_at_once(knotd: Start) -> None:
    server = knotd()
    with opened(server.server([NOWHERE])) as one, opened(server.server([NOWHERE])) as two:
        def act(backend_and_batch: tuple[int, int]) -> bool:
            number, batch = backend_and_batch
            domains = [a_domain(f'zone{number}.{batch}.{each}.example.com.') for each in range(20)]
            backend = (one, two)[number]
            return all(result.ok for verb in (backend.create_domains, backend.delete_domains, backend.create_domains)
                       for result in verb(domains))

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert all(pool.map(act, [(number, batch) for batch in range(5) for number in range(2)]))
        assert len(one.list_zones([]).serials) == 200
    assert_no_transaction_is_open(server)


@pytest.fixture
def silent_primary() -> Iterator[Endpoint]:
    """Takes every connection and never says a word."""
    with socket.create_server(('127.0.0.1', 0), backlog=200) as listening:
        yield Endpoint('127.0.0.1', listening.getsockname()[1])


def test_a_call_that_ends_before_the_commit_does_leaves_no_transaction(knotd: Start, silent_primary: Endpoint) -> None:
    """knotd waits with a commit until the refreshes that are due have ended; here each takes half a second."""
    server = knotd()
    ours = server.server([silent_primary])
    hasty = server.server([silent_primary], ours.id, call_timeout=0.3)
    with opened(ours) as patient, opened(hasty) as backend:
        domains = [a_domain(f'zone{number}.example.com.') for number in range(20)]
        assert all(result.ok for result in patient.create_domains(domains))
        result = backend.create_domain(a_domain())
        assert str(result.error).startswith('conf-commit has not ended within 0.3 s')
        assert result.retryable and not result.unreachable, 'it is busy, and not away'
        assert patient.ping().ok
        assert patient.create_domain(a_domain()).ok
        assert 'example.com.' in patient.list_zones([]).serials
    assert_no_transaction_is_open(server)
