"""Zones whose deletions come together: one transaction, and for each what it would be by itself."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central import domain_changes
from designate_pool.central.service import Central
from designate_pool.model import Action, Context, Domain, Status
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains
from testing.databases import count_statements
from tests.fixtures.central import WHO, Caller, create, noted, together

pytestmark = pytest.mark.all_databases

RED, BLUE = Context(project_id='red'), Context(project_id='blue')


def deleted(central: Central, requests: Sequence[tuple[Any, ...]]) -> list[Future[Domain]]:
    """Deletions that come together, and have ended."""
    return together(central._deletions, *(functools.partial(
        central.delete_domain, dataclasses.replace(who, request_id=f'req-{number}'), *rest)
        for number, (who, *rest) in enumerate(requests)))


def test_they_are_one_transaction(central: Central, caller: Caller, database: Storage,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    there = [create(central, f'd{number}.example.') for number in range(9)]
    single = noted(monkeypatch, domain_changes, 'delete_domain', lambda tx, request, *rest: request.domain_id)
    with count_statements(database) as one:
        central.delete_domain(WHO, there[8].id)
    with count_statements(database) as counted:
        made = [each.result() for each in deleted(central, [(WHO, domain.id) for domain in there[:8]])]
    assert single == [there[8].id]
    # What is saved of each domain is a statement of its own, and how long locks are waited for is set and reset.
    assert sum(count for statement, count in counted.items() if not statement.startswith('UPDATE domains')) \
        <= one.total() + 2
    for number, domain in enumerate(made):
        assert (domain.id, domain.action, domain.status) == (there[number].id, Action.DELETE, Status.PENDING)
        assert domain.request_id == f'req-{number}' and ('delete_domain', domain) in caller.cast_domains
        assert database.read(domains.get, domain.id) == domain


def test_each_ends_as_by_itself(central: Central, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, going, foreign, shared, agreed, twice = (
        create(central, f'{name}.example.', who=RED) for name in ('plain', 'going', 'foreign', 'a', 'b', 'twice'))
    central.delete_domain(RED, going.id)
    for domain in (shared, agreed):
        central.share_domain(RED, domain.id, {'target_project_id': 'blue'})
    single = noted(monkeypatch, domain_changes, 'delete_domain', lambda tx, request, *rest: request.domain_id)
    made = deleted(central, [(RED, plain.id), (RED, going.id), (BLUE, foreign.id), (RED, shared.id),
                             (RED, agreed.id, True), (RED, twice.id), (RED, twice.id), (RED, 'f' * 32)])
    assert [type(each.exception()) for each in made] == [
        type(None), type(None), errors.DomainNotFound, errors.Refused, type(None), type(None), type(None),
        errors.DomainNotFound]
    assert sorted(single) == sorted([shared.id, agreed.id, twice.id, 'f' * 32])
    assert {each.name: each.action for each in central.find_domains(RED)} == {
        **{f'{name}.example.': Action.DELETE for name in ('plain', 'going', 'b', 'twice')},
        'foreign.example.': Action.CREATE, 'a.example.': Action.CREATE}


def test_a_commit_whose_answer_is_lost(central: Central, lost_answers: None) -> None:
    there = [create(central, f'd{number}.example.') for number in range(3)]
    made = [each.result() for each in deleted(central, [(WHO, domain.id) for domain in there])]
    assert [(domain.action, domain.generation) for domain in made] == [(Action.DELETE, 2)] * 3
