"""Transfers of domains to other projects, on SQLite, MariaDB and PostgreSQL."""

from __future__ import annotations

import dataclasses

import pytest
import sqlalchemy as sa

from designate_pool.central.service import Central
from designate_pool.model import Context, Domain, PageRequest, Status, TransferStatus, ZoneTransferRequest
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage
from tests.fixtures.central import WHO, WWW, Clock, at_once, contents, create, refused, succeed

RED, BLUE, GREEN = (Context(project_id=each) for each in ('red', 'blue', 'green'))
CHIEF = Context(project_id='chief', all_projects=True, may_nest=True)
ACTIVE, COMPLETE = TransferStatus.ACTIVE, TransferStatus.COMPLETE


def ask(central: Central, domain: Domain, target: str | None = None, who: Context = RED) -> ZoneTransferRequest:
    return central.create_transfer_request(who, domain.id, {'target_project_id': target, 'description': 'take it'})


def test_a_zone_moves_with_its_recordsets_to_who_accepts(central: Central) -> None:
    domain = succeed(central, create(central, 'example.com.', WWW, who=RED))
    before = contents(central, domain)
    request = ask(central, domain)
    assert (request.status, request.zone_name, request.project_id) == (ACTIVE, 'example.com.', 'red')
    assert len(request.key) >= 16 and request.key.isalnum() and request.key not in repr(request)
    accepted = central.create_transfer_accept(BLUE, request.id, request.key)
    assert (accepted.status, accepted.project_id, accepted.domain_id) == (COMPLETE, 'blue', domain.id)
    moved = central.get_domain(BLUE, domain.id)
    assert (moved.project_id, moved.serial, moved.status) == ('blue', domain.serial, Status.ACTIVE)
    assert contents(central, moved) == before
    assert refused(central.get_domain, RED, domain.id) == 'zone_not_found'
    assert refused(central.find_recordsets, RED, domain.id) == 'zone_not_found'
    assert central.find_all_recordsets(RED) == []
    assert central.get_transfer_request(RED, request.id).status is COMPLETE
    assert central.get_transfer_accept(BLUE, accepted.id) == dataclasses.replace(accepted)
    assert refused(central.get_transfer_accept, RED, accepted.id) == 'zone_transfer_accept_not_found'


def test_a_zone_above_a_name_server_may_be_given_to_who_may_not_create_it(central: Central) -> None:
    domain = create(central, 'example.net.', who=CHIEF)  # the pool has ns1.example.net.
    request = ask(central, domain, 'blue', CHIEF)
    assert central.create_transfer_accept(BLUE, request.id, request.key).status is COMPLETE


@pytest.mark.parametrize('key', ['', 'x', 'X' * 16, 'é'])
def test_without_the_key_nothing_moves(central: Central, key: str) -> None:
    domain = create(central, who=RED)
    request = ask(central, domain, 'blue')
    assert refused(central.create_transfer_accept, BLUE, request.id, key) == 'invalid_key'
    assert central.get_domain(RED, domain.id).project_id == 'red'
    assert central.get_transfer_request(RED, request.id).status is ACTIVE
    assert central.find_transfer_accepts(WHO) == []


def test_only_the_target_accepts_and_sees_a_request_with_one(central: Central) -> None:
    domain = create(central, who=RED)
    request = ask(central, domain, 'blue')
    for work in (lambda who: central.create_transfer_accept(who, request.id, 'guessed'),
                 lambda who: central.get_transfer_request(who, request.id)):
        assert refused(work, GREEN) == 'zone_transfer_request_not_found'
    assert central.get_transfer_request(BLUE, request.id).id == request.id
    for who in (GREEN, RED):  # who has the key knows that there is a request
        assert refused(central.create_transfer_accept, who, request.id, request.key) == 'forbidden'
    assert central.create_transfer_accept(BLUE, request.id, request.key).status is COMPLETE


def test_the_owner_may_accept_what_names_nobody(central: Central) -> None:
    domain = create(central, who=RED)
    request = ask(central, domain)
    assert central.create_transfer_accept(RED, request.id, request.key).status is COMPLETE
    assert central.get_domain(RED, domain.id).version == domain.version


def test_a_zone_has_one_active_request(central: Central) -> None:
    domain = create(central, who=RED)
    first = ask(central, domain)
    assert refused(ask, central, domain) == 'duplicate_zone_transfer_request'
    central.delete_transfer_request(RED, first.id)
    assert refused(central.create_transfer_accept, BLUE, first.id, first.key) == 'zone_transfer_request_not_found'
    second = ask(central, domain)
    central.create_transfer_accept(BLUE, second.id, second.key)
    assert refused(ask, central, domain) == 'zone_not_found'
    back = ask(central, domain, 'red', who=BLUE)
    central.create_transfer_accept(RED, back.id, back.key)
    assert central.get_domain(RED, domain.id).project_id == 'red'


def test_only_the_owner_changes_and_withdraws_a_request(central: Central, clock: Clock) -> None:
    request = ask(central, create(central, who=RED), 'blue')
    for who in (BLUE, GREEN):
        assert refused(central.update_transfer_request, who, request.id, {'description': 'x'}) == \
            'zone_transfer_request_not_found'
        assert refused(central.delete_transfer_request, who, request.id) == 'zone_transfer_request_not_found'
    clock.now += 1
    changed = central.update_transfer_request(RED, request.id, {'description': 'again'})
    assert (changed.description, changed.version) == ('again', 2) and changed.updated_at != request.updated_at
    assert central.get_transfer_request(RED, request.id) == changed
    for values in ({}, {'key': 'x'}, {'description': 'x' * 161}, {'target_project_id': 'green'}):
        assert refused(central.update_transfer_request, RED, request.id, values) == 'invalid_object'


def test_a_full_project_takes_no_zone(central: Central) -> None:
    domain = create(central, who=RED)
    request = ask(central, domain)
    central.set_quotas(WHO, 'blue', {'zones': 1})
    create(central, 'blue.example.', who=BLUE)
    assert refused(central.create_transfer_accept, BLUE, request.id, request.key) == 'over_quota'
    assert central.get_domain(RED, domain.id).project_id == 'red'
    assert central.get_transfer_request(RED, request.id).status is ACTIVE
    central.set_quotas(WHO, 'blue', {'zones': 2})
    assert central.create_transfer_accept(BLUE, request.id, request.key).status is COMPLETE


def test_without_a_project_nothing_is_accepted(central: Central) -> None:
    request = ask(central, create(central, who=RED))
    assert refused(central.create_transfer_accept, WHO, request.id, request.key) == 'bad_request'


def test_zones_above_and_below_may_be_the_givers_and_the_takers(central: Central) -> None:
    for name in ('example.com.', 'sub.example.com.', 'a.sub.example.com.'):
        create(central, name, who=RED)
    (sub,) = central.find_domains(RED, PageRequest({'name': 'sub.example.com.'}))
    request = ask(central, sub)
    assert central.create_transfer_accept(BLUE, request.id, request.key).status is COMPLETE
    domain_id = central.find_domains(RED, PageRequest({'name': 'example.com.'}))[0].id
    assert refused(central.create_recordset, RED, domain_id, {
        'name': 'www.sub.example.com.', 'type': 'A', 'records': ['192.0.2.1']}) == 'invalid_object'
    assert refused(create, central, 'b.sub.example.com.', who=RED) == 'illegal_child'


@pytest.mark.parametrize('third, told', [('example.com.', 'illegal_child'), ('a.sub.example.com.', 'illegal_parent')])
def test_a_zone_beside_one_of_a_third_project_does_not_move(central: Central, third: str, told: str) -> None:
    create(central, third, who=GREEN)
    sub = create(central, 'sub.example.com.', who=dataclasses.replace(CHIEF, project_id='red'))
    request = ask(central, sub)
    assert refused(central.create_transfer_accept, BLUE, request.id, request.key) == told
    chief = dataclasses.replace(CHIEF, project_id='blue')
    assert central.create_transfer_accept(chief, request.id, request.key).status is COMPLETE


def test_a_deleted_zone_is_not_transferred(central: Central) -> None:
    domain = create(central, who=RED)
    request = ask(central, domain)
    central.delete_domain(RED, domain.id)
    assert central.find_transfer_requests(RED) == []
    assert refused(central.create_transfer_accept, BLUE, request.id, request.key) == 'zone_transfer_request_not_found'
    assert refused(ask, central, domain) == 'domain_being_deleted'


def test_a_zone_that_was_given_away_is_not_transferred(central: Central) -> None:
    domain = create(central, who=RED)
    request = ask(central, domain)
    central.give_domain(CHIEF, domain.id, 'green')
    assert refused(central.create_transfer_accept, BLUE, request.id, request.key) == 'zone_transfer_request_not_found'
    assert central.get_domain(GREEN, domain.id).project_id == 'green'


def test_a_request_of_a_former_owner_moves_nothing(central: Central, database: Storage) -> None:
    domain = create(central, who=RED)
    request = ask(central, domain)
    database.run(lambda tx: tx.execute(sa.update(schema.domains).values(project_id='green')))
    assert refused(central.create_transfer_accept, BLUE, request.id, request.key) == 'invalid_zone_transfer_request'


@pytest.mark.all_databases
def test_of_two_who_accept_at_once_one_has_the_zone(central: Central) -> None:
    domain = create(central, who=RED)
    request = ask(central, domain)
    ends = at_once(*(lambda who=who: central.create_transfer_accept(who, request.id, request.key)  # type: ignore[misc]
                     for who in (BLUE, GREEN)))
    assert sorted(ends) == ['', 'invalid_zone_transfer_request']
    (accepted,) = central.find_transfer_accepts(WHO)
    assert central.get_domain(WHO, domain.id).project_id == accepted.project_id == (
        'blue' if ends[0] == '' else 'green')


@pytest.mark.all_databases
@pytest.mark.parametrize('what', ['delete the zone', 'withdraw', 'give'])
def test_acceptance_beside_what_ends_a_request(central: Central, what: str) -> None:
    domain = create(central, who=RED)
    request = ask(central, domain)
    other = {'delete the zone': lambda: central.delete_domain(RED, domain.id),
             'withdraw': lambda: central.delete_transfer_request(RED, request.id),
             'give': lambda: central.give_domain(CHIEF, domain.id, 'green')}[what]
    accepted, ended = at_once(lambda: central.create_transfer_accept(BLUE, request.id, request.key), other)
    found = central.get_domain(WHO, domain.id)
    assert bool(central.find_transfer_accepts(WHO)) == (accepted == '')
    if accepted == '':
        assert found.project_id == ('green' if what == 'give' else 'blue')
        assert ended == ('zone_not_found' if what == 'delete the zone' else '')
    else:
        assert accepted in ('zone_transfer_request_not_found', 'domain_being_deleted', 'invalid_zone_transfer_request')
        assert ended == '' and found.project_id == ('green' if what == 'give' else 'red')
