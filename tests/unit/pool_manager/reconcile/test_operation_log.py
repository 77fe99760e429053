"""Which rows the log of the pool manager tells of."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import pytest

from designate_pool.backends.fake import Fake
from designate_pool.model import Action, Domain, Outcome, Server, ServerStatus
from designate_pool.pool_manager.dispatch.server_worker import CircuitBreaker, ServerWorker
from designate_pool.pool_manager.reconcile import reconciler
from designate_pool.pool_manager.reconcile.domain_state import DomainState
from designate_pool.runtime import Inline

SERVER = Server('a' * 32, 'fake', '192.0.2.1')
DOMAIN = Domain('1' * 32, 'example.com.', '2' * 32, 'default', 'hostmaster@example.com', 3600, 7, request_id='req-1')
UPDATE = ServerStatus(SERVER.id, DOMAIN.id, Action.UPDATE, 7, serial_number=6, version=1)


@pytest.fixture
def worker() -> ServerWorker:
    control, dns = CircuitBreaker(1, 1.0, lambda: 0.0), CircuitBreaker(1, 1.0, lambda: 0.0)
    return ServerWorker(SERVER, Fake(SERVER), control, dns, 10, Inline(), None, None)  # type: ignore[arg-type]


def told(worker: ServerWorker, caplog: pytest.LogCaptureFixture, row: ServerStatus, **values: Any) -> list[str]:
    """The lines when *row* becomes what *values* say."""
    state = DomainState(DOMAIN, {(row.server_id, row.action): row})
    state.change(dataclasses.replace(row, **values))
    caplog.clear()
    with caplog.at_level(logging.INFO):
        reconciler.log_ended(state.changed.values(), {DOMAIN.id: state}, {SERVER.id: worker})
    return [f'{record.levelname} {record.getMessage()}' for record in caplog.records]


def test_a_success_is_told_once(worker: ServerWorker, caplog: pytest.LogCaptureFixture) -> None:
    assert told(worker, caplog, UPDATE, status=Outcome.SUCCESS, serial_number=7) == [
        'INFO UPDATE of example.com. at serial 7 on fake:192.0.2.1:53: SUCCESS [req-1]']
    assert caplog.records[0].extra == {  # type: ignore[attr-defined]
        'domain': 'example.com.', 'server': 'fake:192.0.2.1:53', 'action': 'UPDATE', 'serial': 7, 'status': 'SUCCESS',
        'request_id': 'req-1'}
    done = dataclasses.replace(UPDATE, status=Outcome.SUCCESS)
    assert told(worker, caplog, done, serial_number=8) == []


def test_a_failure_is_told_once_however_often_it_is_tried(worker: ServerWorker,
                                                          caplog: pytest.LogCaptureFixture) -> None:
    failed: dict[str, Any] = {'status': Outcome.ERROR, 'attempts': 4, 'last_error': 'refused'}
    assert told(worker, caplog, UPDATE, attempts=2, last_error='refused') == []
    assert told(worker, caplog, UPDATE, **failed) == [
        'WARNING UPDATE of example.com. at serial 7 on fake:192.0.2.1:53: ERROR, tried 4 times: refused [req-1]']
    assert told(worker, caplog, dataclasses.replace(UPDATE, **failed), attempts=5) == []


def test_a_failure_is_not_told_again_when_it_goes_to_be_tried_again(worker: ServerWorker,
                                                                    caplog: pytest.LogCaptureFixture
                                                                    ) -> None:
    failed = dataclasses.replace(UPDATE, status=Outcome.ERROR, attempts=4, last_error='refused')
    state = DomainState(DOMAIN, {(failed.server_id, failed.action): failed})
    with caplog.at_level(logging.INFO):
        reconciler.log_ended([dataclasses.replace(failed, version=2)], {DOMAIN.id: state}, {SERVER.id: worker})
    assert caplog.records == []


@pytest.mark.parametrize(('action', 'channel'), [(Action.UPDATE, 'dns'), (Action.CREATE, 'control'),
                                                 (Action.DELETE, 'control')])
def test_of_a_server_that_does_not_answer_no_domain_is_told(worker: ServerWorker, caplog: pytest.LogCaptureFixture,
                                                            action: Action, channel: str) -> None:
    row = dataclasses.replace(UPDATE, action=action)
    getattr(worker, 'control' if channel == 'dns' else 'dns').failed()
    assert len(told(worker, caplog, row, status=Outcome.ERROR)) == 1
    getattr(worker, channel).failed()
    assert told(worker, caplog, row, status=Outcome.ERROR) == []
    assert len(told(worker, caplog, row, status=Outcome.SUCCESS)) == 1


def test_other_contents_are_told_when_they_are_found_and_when_they_are_ours_again(
        worker: ServerWorker, caplog: pytest.LogCaptureFixture) -> None:
    right = dataclasses.replace(UPDATE, status=Outcome.SUCCESS, serial_number=7)
    found = {'status': Outcome.ERROR, 'diverged': True, 'last_error': 'serves serial 7 with other contents'}
    assert told(worker, caplog, right, **found) == [
        'WARNING example.com. on fake:192.0.2.1:53: DIVERGED: serves serial 7 with other contents [req-1]']
    diverged = dataclasses.replace(right, **found)
    assert told(worker, caplog, diverged, attempts=1, last_error='still') == []
    assert told(worker, caplog, diverged, diverged=False, status=Outcome.SUCCESS, last_error=None) == [
        'INFO UPDATE of example.com. at serial 7 on fake:192.0.2.1:53: SUCCESS [req-1]']
