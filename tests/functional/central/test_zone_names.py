"""Which names zones may have: top-level domains and blacklists, on SQLite, MariaDB and PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central.rules import zone_names
from designate_pool.central.service import Central
from designate_pool.model import Blacklist, Context, PageRequest, Tld, new_id
from designate_pool.storage.sql.database import Storage
from testing.databases import count_statements
from testing.processes import patience
from tests.fixtures.central import WHO, create, import_zone

RED = Context(project_id='red')
CHIEF = Context(project_id='chief', all_projects=True, may_nest=True)
BANKER = Context(project_id='bank', may_use_blacklisted=True)


def refused(work: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[str, str]:
    """The type and the words of the refusal."""
    with pytest.raises(errors.PoolError) as caught:
        work(*arguments, **named)
    return caught.value.type, str(caught.value)


def add(central: Central, *names: str) -> list[Tld]:
    return [central.tlds.create(WHO, {'name': each}) for each in names]


@pytest.mark.parametrize('name, allowed', [
    ('example.com.', True), ('a.b.example.com.', True), ('EXAMPLE.Com.', True), ('example.co.uk.', True),
    ('example.uk.', False), ('example.org.', False), ('acom.', False), ('example.xcom.', False),
    (r'example\.com.', False), (r'a.example\.com.', False)])
def test_with_top_level_domains_a_zone_lies_below_one_of_them(central: Central, name: str, allowed: bool) -> None:
    add(central, 'com', 'co.uk')
    if allowed:
        assert create(central, name, who=CHIEF).name == name.lower()
        return
    for who in (RED, CHIEF):
        kind, words = refused(create, central, name, who=who)
        assert kind == 'invalid_zone_name' and words.startswith('name: ')
    assert central.find_domains(WHO) == []


@pytest.mark.parametrize('name', ['com.', 'co.uk.', 'CO.uk.'])
def test_no_zone_is_a_top_level_domain(central: Central, name: str) -> None:
    add(central, 'com', 'co.uk', 'uk')
    assert refused(create, central, name, who=CHIEF) == (
        'invalid_zone_name', 'name: it is a top-level domain, of which zones may lie below only.')


def test_without_a_list_every_name_of_two_labels_may_be_a_zone(central: Central) -> None:
    assert create(central, 'anything.goes.', who=RED)
    assert refused(create, central, 'single.', who=RED)[0] == 'invalid_zone_name'
    assert create(central, 'single.', who=CHIEF)


def test_an_import_is_refused_as_a_create(central: Central) -> None:
    add(central, 'com')
    text = '$ORIGIN {}\n@ 60 IN SOA ns1.example.net. host.example.com. 1 2 3 4 5\n'
    assert refused(import_zone, central, RED, text.format('example.net.'))[0] == 'invalid_zone_name'
    assert import_zone(central, RED, text.format('example.com.')).name == 'example.com.'


def test_the_list_is_obeyed_from_its_change_on_and_zones_stay(central: Central) -> None:
    zone = create(central, 'example.org.')
    (tld,) = add(central, 'com')
    assert central.get_domain(WHO, zone.id).name == 'example.org.'
    assert central.update_domain(WHO, zone.id, {'ttl': 60}).ttl == 60
    assert refused(create, central, 'www.example.org.')[0] == 'invalid_zone_name'
    changed = central.tlds.update(WHO, tld.id, {'name': 'ORG', 'description': 'the other'})
    assert (changed.name, changed.description, changed.version) == ('org', 'the other', 2)
    assert create(central, 'www.example.org.')
    assert refused(create, central, 'example.com.')[0] == 'invalid_zone_name'
    central.tlds.delete(WHO, tld.id)
    assert create(central, 'example.com.')


def test_a_name_that_is_taken_and_not_allowed_is_not_allowed(central: Central) -> None:
    create(central, 'example.org.')
    add(central, 'com')
    assert refused(create, central, 'example.org.')[0] == 'invalid_zone_name'


@pytest.mark.parametrize('name', ['', ' ', 'com.', '.com', 'a..b', '-com', 'com-', '^&$', '@p%', 'c om', 't' * 64,
                                  'é', 'com\n', '.'.join(['label'] * 50), None, 5])
def test_what_is_no_top_level_domain(central: Central, name: Any) -> None:
    assert refused(central.tlds.create, WHO, {'name': name})[0] == 'invalid_object'
    assert central.tlds.find(WHO) == []


def test_a_name_is_in_the_list_once(central: Central) -> None:
    com, org = add(central, 'com', 'org')
    told = ('duplicate_tld', 'The top-level domain com is in the list already.')
    assert refused(central.tlds.create, WHO, {'name': 'COM'}) == told
    assert refused(central.tlds.update, WHO, org.id, {'name': 'com'}) == told
    assert central.tlds.update(WHO, com.id, {'name': 'Com'}) == com
    assert [each.name for each in central.tlds.find(WHO, PageRequest(sort_key='name'))] == ['com', 'org']


def test_what_is_not_there_is_not_found(central: Central) -> None:
    for work in (central.tlds.get, central.tlds.delete, lambda *known: central.tlds.update(*known, {'name': 'com'})):
        for tld_id in (new_id(), 'x'):
            assert refused(work, WHO, tld_id)[0] == 'tld_not_found'


@pytest.mark.all_databases
def test_of_two_at_once_one_adds_a_name(central: Central) -> None:
    def work(number: int) -> str:
        try:
            return central.tlds.create(WHO, {'name': 'com', 'description': str(number)}).name
        except errors.PoolError as error:
            return error.type

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(work, range(4))) == ['com', *['duplicate_tld'] * 3]
    assert len(central.tlds.find(WHO)) == 1


def blacklist(central: Central, *patterns: str) -> list[Blacklist]:
    return [central.blacklists.create(WHO, {'pattern': each}) for each in patterns]


@pytest.mark.parametrize('pattern, name, allowed', [
    (r'^([a-z0-9_-]+\.)*example\.com\.$', 'example.com.', False),
    (r'^([a-z0-9_-]+\.)*example\.com\.$', 'A.b.Example.com.', False),
    (r'^([a-z0-9_-]+\.)*example\.com\.$', 'anexample.com.', True),
    (r'bank', 'my-bank-account.example.', False), (r'^bank', 'my-bank-account.example.', True),
    (r'(?i)BANK', 'bank.example.', False), (r'^Bank\.', 'bank.example.', False),
    (r'^(?!good)', 'bad.example.', False), (r'^(?!good)', 'good.example.', True),
    (r'(?P<a>.)(\1){3}', 'aaaa.example.', False), (r'(?P<a>.)(\1){3}', 'aaa.example.', True)])
def test_a_name_in_a_blacklist_is_for_those_who_may(central: Central, pattern: str, name: str, allowed: bool) -> None:
    blacklist(central, 'never-found', pattern)
    if not allowed:
        for who in (RED, CHIEF):
            assert refused(create, central, name, who=who)[0] == 'invalid_zone_name'
    assert create(central, name, who=RED if allowed else BANKER)


def test_a_tenant_is_not_told_the_pattern(central: Central) -> None:
    blacklist(central, 'secret-plans')
    told = refused(create, central, 'secret-plans-2.example.com.', who=RED)[1]
    assert told == 'name: it is in the blacklists; the policy use_blacklisted_zone says who may have it.'


def test_top_level_domains_hold_for_those_who_may_use_blacklisted_names(central: Central) -> None:
    add(central, 'com')
    blacklist(central, 'bank')
    assert refused(create, central, 'bank.example.org.', who=BANKER)[0] == 'invalid_zone_name'
    assert create(central, 'bank.example.com.', who=BANKER)


@pytest.mark.parametrize('pattern', [r'(a*)*\1b', r'((.+)+)\1!$', r'((a|aa)+)+\2!'])
def test_a_pattern_that_takes_for_ever_refuses_and_holds_nobody(
        central: Central, pattern: str, caplog: pytest.LogCaptureFixture) -> None:
    blacklist(central, pattern)
    name = '.'.join(['a' * 60] * 4) + '.'
    began = time.monotonic()
    assert refused(create, central, name, who=RED)[0] == 'invalid_zone_name'
    assert time.monotonic() - began < patience(5)
    assert any('takes too many steps' in each.getMessage() for each in caplog.records)
    assert create(central, 'other.example.', who=RED)


@pytest.mark.parametrize('pattern', ['', '(', '#(*&^%$%$#@$', 'a' * 256, r'((\w{50}){50}){50}', r'(?(1)a|b)', r'\Z',
                                     'a\0b', None, 5])
def test_what_is_no_pattern(central: Central, pattern: Any) -> None:
    assert refused(central.blacklists.create, WHO, {'pattern': pattern})[0] == 'invalid_object'
    assert central.blacklists.find(WHO) == []


def test_the_life_of_a_blacklist(central: Central) -> None:
    first, second = blacklist(central, 'Bank', 'bank')
    told = ('duplicate_blacklist', 'The pattern bank is in the blacklists already.')
    assert refused(central.blacklists.create, WHO, {'pattern': 'bank'}) == told
    assert refused(central.blacklists.update, WHO, first.id, {'pattern': 'bank'}) == told
    changed = central.blacklists.update(WHO, second.id, {'pattern': 'thank', 'description': 'you'})
    assert (changed.pattern, changed.description, changed.version) == ('thank', 'you', 2)
    assert central.blacklists.get(WHO, second.id) == changed
    assert [each.pattern for each in central.blacklists.find(WHO, PageRequest({'pattern': '*an*'}, sort_key='id'))] == [
        each.pattern for each in sorted([first, changed], key=lambda each: each.id)]
    assert refused(create, central, 'bank.example.', who=RED)[0] == 'invalid_zone_name'
    central.blacklists.delete(WHO, first.id)
    assert create(central, 'bank.example.', who=RED)
    assert refused(create, central, 'thanks.example.', who=RED)[0] == 'invalid_zone_name'
    central.blacklists.delete(WHO, second.id)
    assert create(central, 'thanks.example.', who=RED)
    assert refused(central.blacklists.get, WHO, second.id)[0] == 'blacklist_not_found'


@pytest.mark.all_databases
def test_a_name_is_looked_up_in_one_statement(central: Central, database: Storage) -> None:
    add(central, 'com', 'net')
    blacklist(central, 'a', 'b')
    with count_statements(database) as counter:
        database.read(zone_names.check, RED, 'x.com.')
    assert counter.total() == 1
