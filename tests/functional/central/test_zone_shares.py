"""Domains that are shared with other projects, or transferred to them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool import errors
from designate_pool.central.service import Central
from designate_pool.model import (Context, Domain, Outcome, PageRequest, RecordChange, RecordSet, Status,
                                  TransferStatus, ZoneShare, ZoneTransferRequest, new_id)
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage
from tests.fixtures.central import WHO, WWW, Clock, at_once, contents, create, export_zone, refused, succeed

RED, BLUE, GREEN = (Context(project_id=each) for each in ('red', 'blue', 'green'))
CHIEF = Context(project_id='chief', all_projects=True, may_nest=True)
CHANGE = {'ttl': 300}


def share(central: Central, domain: Domain, target: str = 'blue', who: Context = RED) -> ZoneShare:
    return central.share_domain(who, domain.id, {'target_project_id': target})


def add(central: Central, domain: Domain, label: str, who: Context = BLUE) -> RecordSet:
    return central.create_recordset(who, domain.id, {
        'name': f'{label}.{domain.name}', 'type': 'A', 'records': ['192.0.2.9']})


def names(found: list[Any]) -> list[str]:
    return sorted(each.name for each in found)


@pytest.fixture
def domain(central: Central) -> Domain:
    """A domain of red's that is shared with blue."""
    made = create(central, 'example.com.', WWW, who=RED)
    share(central, made)
    return made


def test_who_a_zone_is_shared_with_sees_it(central: Central) -> None:
    made, other = create(central, 'example.com.', WWW, who=RED), create(central, 'example.info.', who=RED)
    own = create(central, 'example.org.', who=BLUE)
    assert refused(central.get_domain, BLUE, made.id) == 'zone_not_found'
    shared = share(central, made)
    assert (shared.project_id, shared.target_project_id, shared.domain_id) == ('red', 'blue', made.id)
    for who in (RED, BLUE):
        found = central.get_domain(who, made.id)
        assert found == dataclasses.replace(made, shared=True)
        assert names(central.find_recordsets(who, made.id)) == ['example.com.', 'example.com.', 'www.example.com.']
    assert names(central.find_domains(BLUE)) == ['example.com.', 'example.org.']
    assert names(central.find_domains(BLUE, PageRequest(limit=1, sort_key='name', marker=made.id))) == ['example.org.']
    assert names(central.find_domains(RED)) == ['example.com.', 'example.info.']
    assert [central.get_domain(RED, other.id).shared, central.get_domain(BLUE, own.id).shared] == [False, False]
    for who in (GREEN, Context()):
        assert refused(central.get_domain, who, made.id) == 'zone_not_found'
        assert refused(central.find_recordsets, who, made.id) == 'zone_not_found'
        assert refused(add, central, made, 'green', who) == 'zone_not_found'
        assert central.find_domains(who) == []


def test_recordsets_belong_to_who_created_them(central: Central, domain: Domain) -> None:
    www, = central.find_recordsets(RED, domain.id, PageRequest({'name': 'www.example.com.'}))
    mine = add(central, domain, 'mine')
    assert (www.project_id, mine.project_id, add(central, domain, 'theirs', RED).project_id) == (None, 'blue', None)
    assert add(central, domain, 'chiefs', CHIEF).project_id is None
    assert central.get_recordset(BLUE, domain.id, www.id) == www
    assert central.get_recordset(RED, domain.id, mine.id) == mine
    for work in (lambda: central.update_recordset(BLUE, domain.id, www.id, CHANGE),
                 lambda: central.delete_recordset(BLUE, domain.id, www.id)):
        assert refused(work) == 'forbidden'
    assert refused(central.delete_recordset, BLUE, domain.id, new_id()) == 'recordset_not_found'
    assert central.update_recordset(BLUE, domain.id, mine.id, CHANGE).ttl == 300
    assert central.update_recordset(RED, domain.id, mine.id, {'records': ['192.0.2.8']}).project_id == 'blue'
    share(central, domain, 'green')
    assert refused(central.update_recordset, GREEN, domain.id, mine.id, CHANGE) == 'forbidden'
    assert central.delete_recordset(BLUE, domain.id, mine.id).project_id == 'blue'
    assert central.delete_recordset(RED, domain.id, add(central, domain, 'mine').id).name == 'mine.example.com.'
    assert refused(add, central, domain, 'www') == 'duplicate_recordset'


@pytest.mark.parametrize(('name', 'rtype', 'data', 'is_refused'), [
    ('www', 'NS', 'ns.example.net.', True), ('www', 'DS', '1 8 2 ' + 64 * 'a', True),
    ('www', 'DNAME', 'example.net.', True), ('deep', 'NS', 'ns.example.net.', True),
    ('deep', 'DNAME', 'example.net.', True), ('@', 'DNAME', 'example.net.', True), ('www', 'AAAA', '2001:db8::9', True),
    ('@', 'TXT', '"x"', True), ('*', 'TXT', '"x"', True), ('_acme-challenge.www', 'TXT', '"x"', True),
    ('_25._tcp.www', 'TLSA', '3 1 1 ' + 64 * 'a', True), ('_dmarc', 'TXT', '"x"', True),
    ('key._domainkey', 'TXT', '"x"', True), ('x.*.www', 'TXT', '"x"', True),
    ('key._domainkey.mine', 'TXT', '"x"', False),
    ('ns.child', 'A', '192.0.2.9', True), ('x.y.moved', 'A', '192.0.2.9', True), ('x.wild', 'A', '192.0.2.9', True),
    ('y.x.wild', 'NS', 'ns.example.net.', True), ('greens', 'TXT', '"x"', True),
    ('free', 'NS', 'ns.example.net.', False), ('mine', 'DNAME', 'example.net.', False), ('mine', 'TXT', '"x"', False),
    ('below.www', 'A', '192.0.2.9', False), ('deep', 'A', '192.0.2.9', False), ('*.deep', 'A', '192.0.2.9', False),
    ('_acme-challenge.mine', 'TXT', '"x"', False), ('ep', 'NS', 'ns.example.net.', False),
    # The wildcard came later than mine.late, and does not cover what is there (RFC 4592).
    ('mine.late', 'TXT', '"x"', False), ('x.mine.late', 'A', '192.0.2.9', False),
    ('_acme-challenge.mine.late', 'TXT', '"x"', False), ('new.late', 'A', '192.0.2.9', True),
    ('x.new.late', 'A', '192.0.2.9', True)])
def test_a_guest_does_not_change_what_names_of_others_answer(central: Central, name: str, rtype: str, data: str,
                                                             is_refused: bool) -> None:
    domain = create(central, 'example.com.', WWW, ('a.deep.example.com.', 'A', ['192.0.2.1']),
                    ('child.example.com.', 'NS', ['ns.example.net.']), ('*.wild.example.com.', 'A', ['192.0.2.1']),
                    ('moved.example.com.', 'DNAME', ['example.net.']), who=RED)
    share(central, domain)
    share(central, domain, 'green')
    add(central, domain, 'mine')
    add(central, domain, 'greens', GREEN)
    add(central, domain, 'mine.late')
    add(central, domain, '*.late', RED)
    name = domain.name if name == '@' else f'{name}.{domain.name}'
    new = {'name': name, 'type': rtype, 'records': [data]}
    changes = [RecordChange('new.example.com.', 'A', ('192.0.2.9',)), RecordChange(name, rtype, (data,))]
    if is_refused:
        for work in (lambda: central.create_recordset(BLUE, domain.id, new),
                     lambda: central.apply_changes(BLUE, domain.id, changes)):
            with pytest.raises(errors.PoolError) as caught:
                work()
            # What no zone may have is refused to everybody.
            assert caught.value.type == 'forbidden' or rtype == 'DNAME' or name.endswith('moved.example.com.')
    else:
        central.apply_changes(BLUE, domain.id, changes)
        assert central.find_recordsets(BLUE, domain.id, PageRequest({'name': name, 'type': rtype}))[0].project_id


def test_many_changes_are_made_of_ones_own_recordsets_alone(central: Central, domain: Domain) -> None:
    mine = add(central, domain, 'mine')
    changed = central.apply_changes(BLUE, domain.id, [
        RecordChange('mine.example.com.', 'A', ('192.0.2.7',)), RecordChange('new.example.com.', 'TXT', ('"x"',))])
    assert changed.serial != domain.serial
    found = {each.name: each for each in central.find_recordsets(RED, domain.id)}
    assert found['new.example.com.'].project_id == 'blue' and found[mine.name].records[0].data == '192.0.2.7'
    for each in (RecordChange('www.example.com.', 'A', ('192.0.2.7',)), RecordChange('www.example.com.', 'A')):
        changes = [RecordChange('mine.example.com.', 'A'), each]
        assert refused(central.apply_changes, BLUE, domain.id, changes) == 'forbidden'
    assert central.get_recordset(BLUE, domain.id, mine.id)
    central.apply_changes(RED, domain.id, [RecordChange('mine.example.com.', 'A')])
    assert refused(central.get_recordset, BLUE, domain.id, mine.id) == 'recordset_not_found'


def test_in_the_list_of_all_recordsets_are_ones_own(central: Central, domain: Domain) -> None:
    mine = add(central, domain, 'mine')
    share(central, domain, 'green')
    add(central, domain, 'greens', GREEN)
    create(central, 'example.org.', who=BLUE)
    assert [(each.domain.name, each.name) for each in central.find_all_recordsets(BLUE)] == [
        ('example.org.', 'example.org.'), ('example.org.', 'example.org.'), ('example.com.', mine.name)]
    pending = central.find_all_recordsets(BLUE, PageRequest({'status': 'PENDING', 'type': 'A'}))
    assert [each.name for each in pending] == [mine.name]
    assert len(central.find_all_recordsets(RED)) == 5
    www, = central.find_recordsets(RED, domain.id, PageRequest({'name': 'www.example.com.'}))
    assert [each.id for each in central.find_all_recordsets(BLUE, PageRequest({'id': www.id}))] == [www.id]
    assert central.find_all_recordsets(Context(project_id='none'), PageRequest({'id': www.id})) == []
    assert refused(central.find_all_recordsets, BLUE, PageRequest(marker=www.id)) == 'invalid_marker'


def test_what_only_the_owner_may(central: Central, domain: Domain) -> None:
    share_id = central.find_shares(BLUE, domain.id)[0].id
    for work in (lambda who: central.update_domain(who, domain.id, {'ttl': 300}),
                 lambda who: central.delete_domain(who, domain.id),
                 lambda who: central.delete_domain(who, domain.id, delete_shares=True),
                 lambda who: central.give_domain(who, domain.id, 'blue'),
                 lambda who: export_zone(central, who, domain.id),
                 lambda who: central.check_export(who, domain.id),
                 lambda who: central.server_statuses(who, domain.id),
                 lambda who: central.create_transfer_request(who, domain.id, {}),
                 lambda who: share(central, domain, 'green', who),
                 lambda who: central.get_share(who, domain.id, share_id),
                 lambda who: central.unshare_domain(who, domain.id, share_id)):
        assert refused(work, BLUE) == 'forbidden'
        assert refused(work, GREEN) in ('zone_not_found', 'shared_zone_not_found')
    assert refused(create, central, 'sub.example.com.', who=BLUE) == 'illegal_child'
    assert central.get_domain(RED, domain.id).version == domain.version


def test_quotas_are_the_owners(central: Central, domain: Domain) -> None:
    central.set_quotas(WHO, 'blue', {'zone_recordsets': 0, 'zone_records': 0, 'recordset_records': 0})
    add(central, domain, 'mine')
    central.set_quotas(WHO, 'red', {'zone_recordsets': 2})
    assert refused(add, central, domain, 'more') == 'over_quota'
    central.set_quotas(WHO, 'red', {'zone_recordsets': 9, 'zone_records': 3})
    assert refused(add, central, domain, 'more') == 'over_quota'


def test_shares_are_listed_to_the_owner_and_each_to_its_target(central: Central, domain: Domain, clock: Clock) -> None:
    clock.now += 1
    green = share(central, domain, 'green', CHIEF)
    assert green.project_id == 'chief'

    def look(who: Context, **query: Any) -> list[str]:
        return [each.target_project_id for each in central.find_shares(who, domain.id, PageRequest(**query))]

    assert look(RED) == look(WHO) == ['blue', 'green']
    assert (look(BLUE), look(GREEN)) == (['blue'], ['green'])
    assert refused(look, Context(project_id='none')) == 'zone_not_found'
    assert look(RED, sort_dir='desc', limit=1) == ['green']
    assert look(RED, criterion={'target_project_id': 'blue'}) == ['blue']
    assert look(BLUE, criterion={'target_project_id': 'green'}) == []
    assert refused(look, BLUE, marker=green.id) == 'invalid_marker'
    assert central.get_share(RED, domain.id, green.id) == green
    assert refused(central.get_share, BLUE, domain.id, green.id) == 'shared_zone_not_found'
    other = create(central, 'example.info.', who=RED)
    assert refused(central.get_share, RED, other.id, green.id) == 'shared_zone_not_found'


def test_a_zone_is_shared_once_with_a_project_and_not_with_its_owner(central: Central, domain: Domain) -> None:
    assert refused(share, central, domain) == 'duplicate_shared_zone'
    assert refused(share, central, domain, 'blue', CHIEF) == 'duplicate_shared_zone'
    assert refused(share, central, domain, 'red') == refused(share, central, domain, 'red', CHIEF) == 'bad_request'
    central.delete_domain(RED, create(central, 'example.info.', who=RED).id)
    (going,) = central.find_domains(RED, PageRequest({'name': 'example.info.'}))
    assert refused(share, central, going) == 'domain_being_deleted'


def test_a_share_ends_when_nothing_of_the_project_is_left(central: Central, domain: Domain) -> None:
    mine, (shared,) = add(central, domain, 'mine'), central.find_shares(RED, domain.id)
    assert refused(central.unshare_domain, RED, domain.id, shared.id) == 'shared_zone_has_recordsets'
    central.delete_recordset(BLUE, domain.id, mine.id)
    sub = create(central, 'sub.example.com.', who=dataclasses.replace(CHIEF, project_id='blue'))
    assert refused(central.unshare_domain, RED, domain.id, shared.id) == 'shared_zone_has_sub_zone'
    central.update_status(WHO, central.delete_domain(BLUE, sub.id), Outcome.SUCCESS, sub.serial)
    green = share(central, domain, 'green')
    central.unshare_domain(RED, domain.id, shared.id)
    assert refused(central.unshare_domain, RED, domain.id, shared.id) == 'shared_zone_not_found'
    assert refused(central.get_domain, BLUE, domain.id) == 'zone_not_found'
    assert central.find_domains(BLUE) == [] and central.get_domain(GREEN, domain.id).shared
    central.unshare_domain(RED, domain.id, green.id)
    assert not central.get_domain(RED, domain.id).shared


def test_a_transferred_zone_keeps_its_other_shares_and_takes_all_recordsets(central: Central, domain: Domain) -> None:
    mine = add(central, domain, 'mine')
    share(central, domain, 'green')
    greens = add(central, domain, 'greens', GREEN)
    request = central.create_transfer_request(RED, domain.id, {})
    central.create_transfer_accept(BLUE, request.id, request.key)
    assert [each.target_project_id for each in central.find_shares(BLUE, domain.id)] == ['green']
    assert refused(central.get_domain, RED, domain.id) == 'zone_not_found'
    assert [central.get_recordset(BLUE, domain.id, each.id).project_id for each in (mine, greens)] == [None, None]
    assert refused(central.delete_recordset, GREEN, domain.id, greens.id) == 'forbidden'
    assert add(central, domain, 'more', GREEN).project_id == 'green'
    moved = central.give_domain(CHIEF, domain.id, 'green')
    assert (moved.shared, moved.version) == (False, central.get_domain(GREEN, domain.id).version)
    assert central.find_shares(GREEN, domain.id) == []
    assert refused(central.get_domain, BLUE, domain.id) == 'zone_not_found'


def projects_of_recordsets(database: Storage, domain: Domain) -> set[str]:
    return {row[0] for row in database.read(lambda tx: tx.execute(sa.select(schema.recordsets.c.project_id).where(
        schema.recordsets.c.domain_id == domain.id, schema.recordsets.c.deleted == '0',
        schema.recordsets.c.project_id.is_not(None))).all())}


@pytest.mark.all_databases
@pytest.mark.parametrize('what', ['end the share', 'delete the zone', 'transfer', 'transfer to blue'])
def test_a_recordset_is_created_beside_what_ends_a_share(central: Central, domain: Domain, database: Storage,
                                                         what: str) -> None:
    succeed(central, domain)
    (shared,) = central.find_shares(RED, domain.id)
    request = central.create_transfer_request(RED, domain.id, {})
    taker = BLUE if what == 'transfer to blue' else GREEN
    other = {'end the share': lambda: central.unshare_domain(RED, domain.id, shared.id),
             'delete the zone': lambda: central.delete_domain(RED, domain.id, delete_shares=True)}.get(
        what, lambda: central.create_transfer_accept(taker, request.id, request.key))
    created, ended = at_once(lambda: add(central, domain, 'mine'), other)
    found = central.get_domain(WHO, domain.id)
    shares = {each.target_project_id for each in central.find_shares(WHO, domain.id)}
    there = projects_of_recordsets(database, domain)
    if what == 'end the share':
        assert (created, ended) in (('', 'shared_zone_has_recordsets'), ('zone_not_found', ''))
        assert there == shares == ({'blue'} if created == '' else set())
    elif what == 'delete the zone':
        assert (created, ended) in (('', ''), ('zone_not_found', '')) and found.is_going and shares == set()
    else:
        assert (created, ended) == ('', '') and found.project_id == taker.project_id
        assert there <= shares == (set() if taker is BLUE else {'blue'})
    assert found.shared == bool(shares)


@pytest.mark.all_databases
def test_of_two_shares_with_a_project_at_once_one_is_there(central: Central) -> None:
    made = create(central, who=RED)
    ends = at_once(*[lambda: share(central, made)] * 3)
    assert sorted(ends) == ['', *['duplicate_shared_zone'] * 2]
    assert len(central.find_shares(RED, made.id)) == 1


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
