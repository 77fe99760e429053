"""Which names zones may have: top-level domains, blacklists, and zones of others above and below."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central import recordset_changes
from designate_pool.central.domain_creator import NewZone
from designate_pool.central.recordset_changes import RecordSetRequest
from designate_pool.central.rules import zone_names
from designate_pool.central.service import Central
from designate_pool.central.validation import requests
from designate_pool.central.validation.requests import WantedRecordSet
from designate_pool.model import Blacklist, Context, Domain, PageRequest, RecordChange, Tld, new_id, utcnow
from designate_pool.storage.sql.database import Storage
from testing.databases import count_statements
from testing.processes import patience, wait_until
from tests.fixtures.central import WHO, create, import_zone, lock_waits

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


RED, BLUE = Context(project_id='red'), Context(project_id='blue')
RED_WHO_SEES = Context(project_id='red', all_projects=True)
ZONE_FILE = '$ORIGIN {}\n@ 60 IN SOA ns1.example.net. host.example.com. 1 2 3 4 5\n'
TAKEN = 'The name {} is not free: it, or one above or below it, is in use.'


def words_of(work: Callable[..., Any], *arguments: Any) -> str:
    """The words of the refusal."""
    with pytest.raises(errors.PoolError) as caught:
        work(*arguments)
    return str(caught.value)


@pytest.mark.parametrize('there, wanted', [
    ('example.com.', 'example.com.'), ('example.com.', 'sub.example.com.'), ('example.com.', 'a.b.c.example.com.'),
    ('sub.example.com.', 'example.com.'), ('a.b.c.example.com.', 'example.com.'),
    ('a.b.c.example.com.', 'c.example.com.')])
def test_the_same_parents_and_children_of_others_are_refused_in_the_same_words(
        central: Central, there: str, wanted: str) -> None:
    create(central, there, who=RED)
    assert words_of(create, central, wanted) == (
        'The zone example.com. exists already.' if there == wanted else TAKEN.format(wanted))  # WHO sees all
    for work in (lambda: create(central, wanted, who=BLUE),
                 lambda: import_zone(central, BLUE, ZONE_FILE.format(wanted))):
        assert words_of(work) == TAKEN.format(wanted)
    assert [each.name for each in central.find_domains(WHO)] == [there]


@pytest.mark.parametrize('there, wanted', [
    ('example.com.', 'anexample.com.'), ('ab.example.com.', 'b.example.com.'), ('b.example.com.', 'ab.example.com.'),
    ('example.com.', 'example.com.example.org.'), (r'a\.b.example.org.', 'b.example.org.'),
    ('b.example.org.', r'a\.b.example.org.'), (r'x_y%.example.', r'y%.example.')])
def test_what_only_looks_alike_is_free(central: Central, there: str, wanted: str) -> None:
    create(central, there, who=RED)
    assert create(central, wanted, who=BLUE).name == wanted


def test_a_project_nests_its_own_freely_and_a_deleted_domain_is_in_nobodys_way(central: Central) -> None:
    for name in ('b.example.com.', 'example.com.', 'a.b.example.com.'):
        create(central, name, who=RED)
    assert words_of(create, central, 'c.example.com.') == TAKEN.format('c.example.com.')
    for domain in central.find_domains(RED):
        central.delete_domain(RED, domain.id)
    assert create(central, 'c.example.com.', who=BLUE).project_id == 'blue'


def test_one_who_may_nests_across_projects(central: Central) -> None:
    create(central, 'example.com.', who=RED)
    assert create(central, 'sub.example.com.', who=CHIEF).project_id == 'chief'
    import_zone(central, CHIEF, ZONE_FILE.format('com.'))
    # It is still nobody else's name, not its neighbours' either.
    assert words_of(create, central, 'x.sub.example.com.') == TAKEN.format('x.sub.example.com.')
    assert 'in use' in words_of(lambda: create(central, 'y.example.com.', who=RED))


def test_a_name_of_one_label_is_for_those_who_may_nest(central: Central) -> None:
    for work in (lambda: create(central, 'com.', who=RED), lambda: import_zone(central, RED, ZONE_FILE.format('com.'))):
        assert 'the policy nest_zones' in words_of(work)
    domain = create(central, 'com.', who=CHIEF)
    assert 'the policy nest_zones' in words_of(central.give_domain, RED_WHO_SEES, domain.id, 'red')
    assert central.give_domain(CHIEF, domain.id, 'red').project_id == 'red'


def test_records_at_or_below_a_childs_name_are_refused(central: Central) -> None:
    parent = create(central, 'example.com.', ('old.example.com.', 'A', ['192.0.2.1']), who=RED)
    create(central, 'sub.example.com.', who=RED)
    create(central, 'theirs.example.com.', who=dataclasses.replace(CHIEF, project_id='blue'))
    for name, why in (('sub.example.com.', 'it lies in the zone sub.example.com. and belongs there'),
                      ('a.b.sub.example.com.', 'it lies in the zone sub.example.com. and belongs there'),
                      ('www.theirs.example.com.', 'it lies in another zone, below this one')):
        given = {'name': name, 'type': 'A', 'records': ['192.0.2.2']}
        assert words_of(central.create_recordset, RED, parent.id, given) == f'name: {why}.'
        assert words_of(central.apply_changes, RED, parent.id, [
            RecordChange('new.example.com.', 'A', ('192.0.2.1',)), RecordChange(name, 'A', ('192.0.2.2',))]
        ) == f'changes[1].name: {why}.'
    for name in ('xsub.example.com.', 'example.com.'):
        central.create_recordset(RED, parent.id, {'name': name, 'type': 'A', 'records': ['192.0.2.2']})
    # The delegation is the parent's to have.
    central.create_recordset(RED, parent.id, {'name': 'sub.example.com.', 'type': 'NS', 'records': ['ns.example.net.']})
    assert 'lies in' in words_of(central.create_recordset, RED, parent.id, {
        'name': 'x.sub.example.com.', 'type': 'NS', 'records': ['ns.example.net.']})


def test_glue_is_in_the_zone_above_too(central: Central) -> None:
    """A referral has to have it (RFC 9471 section 3), whatever servers serve the zone above alone."""
    ns1, ns2 = 'ns1.sub.example.com.', 'ns2.sub.example.com.'
    parent = create(central, 'example.com.', ('sub.example.com.', 'NS', ['NS1.sub.example.com.']),
                    (ns1, 'A', ['192.0.2.53']), (ns2, 'A', ['192.0.2.54']), who=RED)
    assert words_of(lambda: create(central, 'sub.example.com.', who=RED)).endswith(f'first: {ns2} A.')
    central.apply_changes(RED, parent.id, [RecordChange(ns2, 'A')])
    create(central, 'sub.example.com.', who=RED)
    central.create_recordset(RED, parent.id, {'name': ns1, 'type': 'AAAA', 'records': ['2001:db8::53']})
    for name, rtype, data in ((ns2, 'A', '192.0.2.54'), (ns1, 'TXT', '"x"')):
        assert 'it lies in the zone sub.example.com.' in words_of(
            central.create_recordset, RED, parent.id, {'name': name, 'type': rtype, 'records': [data]})
    create(central, 'sub.other.example.com.', who=RED)
    central.apply_changes(RED, parent.id, [
        RecordChange('ns.sub.other.example.com.', 'A', ('192.0.2.55',)),
        RecordChange('sub.other.example.com.', 'NS', ('ns.sub.other.example.com.',))])


@pytest.mark.parametrize('ns_comes_first', [True, False])
def test_glue_may_come_with_the_change_of_its_delegation(central: Central, ns_comes_first: bool) -> None:
    old, new = 'ns1.sub.example.com.', 'ns2.sub.example.com.'
    parent = create(central, 'example.com.', ('sub.example.com.', 'NS', [old]), who=RED)
    create(central, 'sub.example.com.', who=RED)
    delegation = RecordChange('sub.example.com.', 'NS', (new,))

    def apply(*changes: RecordChange) -> None:
        central.apply_changes(RED, parent.id, changes if ns_comes_first else changes[::-1])

    old_glue = RecordChange(old, 'A', ('192.0.2.53',))
    assert 'it lies in the zone sub.example.com.' in words_of(apply, delegation, old_glue)
    apply(delegation, RecordChange(new, 'A', ('192.0.2.54',)))


@pytest.mark.parametrize('is_glue', [True, False])
def test_a_zone_file_of_the_zone_above_has_glue(central: Central, is_glue: bool) -> None:
    """The name server may come long before the delegation that points to it."""
    create(central, 'sub.example.com.', who=RED)
    target = 'a.sub' if is_glue else 'b.sub'
    text = (f'{ZONE_FILE.format("example.com.")}\na.sub.example.com. A 192.0.2.53\n'
            + f'sub.example.com. NS {target}.example.com.\n')
    if is_glue:
        import_zone(central, RED, text)
    else:
        assert 'it lies in the zone sub.example.com.' in words_of(lambda: import_zone(central, RED, text))


def test_a_child_over_records_of_its_parent_is_refused_and_they_are_named_to_their_owner(central: Central) -> None:
    parent = create(central, 'example.com.', ('sub.example.com.', 'NS', ['ns.example.net.']),
                    ('sub.example.com.', 'TXT', ['"x"']), ('a.sub.example.com.', 'A', ['192.0.2.1']),
                    ('asub.example.com.', 'A', ['192.0.2.1']), who=RED)
    begin = 'The zone sub.example.com. cannot be created or restored: delete these records of a zone above it first:'
    for work in (lambda: create(central, 'sub.example.com.', who=RED),
                 lambda: import_zone(central, RED, ZONE_FILE.format('sub.example.com.'))):
        assert words_of(work) == f'{begin} a.sub.example.com. A, sub.example.com. TXT.'
    hidden = Context(project_id='blue', may_nest=True)
    assert words_of(lambda: create(central, 'sub.example.com.', who=hidden)) == f'{begin} records of a zone above it.'
    central.apply_changes(RED, parent.id, [RecordChange('sub.example.com.', 'TXT'),
                                           RecordChange('a.sub.example.com.', 'A')])
    create(central, 'sub.example.com.', who=RED)


@pytest.mark.parametrize('way', ['www.sub.example.com.', r'b\\.sub.example.com.'])
def test_names_with_escaped_dots_hide_no_record_that_is_in_a_childs_way(central: Central, way: str) -> None:
    # With a dot inside the first label they end as what lies below the child does, and lie beside it.
    beside = [(rf'a{number}\.sub.example.com.', 'A', ['192.0.2.1']) for number in range(10)]
    parent = create(central, 'example.com.', *beside, (way, 'A', ['192.0.2.1']), who=RED)
    assert words_of(lambda: create(central, 'sub.example.com.', who=RED)).endswith(f'above it first: {way} A.')
    central.apply_changes(RED, parent.id, [RecordChange(way, 'A')])
    create(central, 'sub.example.com.', who=RED)


@pytest.mark.parametrize('name', [
    'ns1.example.net.', 'x.ns1.example.net.', 'example.net.', 'net.', 'in-addr.arpa.', 'ip6.arpa.', 'co.uk.', 'nhs.uk.',
    'org.nz.', 'ne.jp.', 'com.br.'])
def test_names_of_all_and_names_around_the_name_servers_are_for_who_may_nest(central: Central, name: str) -> None:
    for work in (lambda: create(central, name, who=RED), lambda: import_zone(central, RED, ZONE_FILE.format(name)),
                 lambda: create(central, name)):
        assert 'the policy nest_zones says who may create it, with --all-projects' in words_of(work)
    zones = [NewZone(new_id(), requests.new_domain({'name': each, 'email': 'a@example.com'}), ())
             for each in (name, 'free.example.')]
    assert [each.name for each in central.creator.create_many(RED, zones, also=lambda tx, made: None)] == [
        'free.example.']
    assert create(central, name, who=CHIEF).name == name


@pytest.mark.parametrize('name', ['example.org.', 'ns3.example.net.', 'ns.example.', 'example.co.uk.', 'co.example.',
                                  '10.in-addr.arpa.', 'a_b.net.', 'net.de.', 'or.de.', 'co.de.'])
def test_other_names_are_free(central: Central, name: str) -> None:
    central.update_pool(WHO, {'id': central.find_pools(WHO)[0].id, 'name_servers': ['ns1.example.net.', 'x.axb.net.']})
    assert create(central, name, who=RED).name == name


def test_a_parent_with_records_that_lie_in_a_child_is_refused(central: Central) -> None:
    create(central, 'sub.example.com.', who=RED)
    assert 'it lies in the zone sub.example.com.' in words_of(
        lambda: create(central, 'example.com.', ('www.sub.example.com.', 'A', ['192.0.2.1']), who=RED))
    assert 'it lies in the zone sub.example.com.' in words_of(
        import_zone, central, RED, ZONE_FILE.format('example.com.') + 'www.sub 60 IN A 192.0.2.1\n')
    create(central, 'example.com.', ('sub.example.com.', 'DS', ['1 8 2 ' + 64 * 'A']), who=RED)


class Meeting:
    """Where two that work at once wait for each other, so that both have looked before either goes on.

    Where the database lets one in at a time, or one comes again, nobody is waited for.

    :ivar top: a name that no test had before: MariaDB has whoever makes a name again wait for the name's traces
    """

    def __init__(self, database: Storage) -> None:
        self._barrier = threading.Barrier(2)
        self._patience = 0.2 if database.engine.dialect.name == 'sqlite' else 5
        self.top = f'{new_id()}.test.'

    def wait(self) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            self._barrier.wait(self._patience)
        self._barrier.abort()

    def __iter__(self) -> Iterator[Sequence[WantedRecordSet]]:
        """The parts of a domain without recordsets."""
        yield ()
        self.wait()


def made(central: Central, name: str, who: Context, meeting: Meeting) -> str:
    wanted = requests.new_domain({'name': name, 'email': 'hostmaster@example.com'})
    try:
        return central.creator.create_one(who, wanted, meeting).name
    except errors.NameTaken:
        return 'NameTaken'
    except errors.PoolError as error:
        return type(error).__name__


@pytest.mark.all_databases
@pytest.mark.parametrize('one, other', [
    ('example.', 'sub.example.'), ('', 'a.b.example.'), ('sub.example.', 'example.')])
def test_of_two_creators_at_once_one_wins(central: Central, database: Storage, one: str, other: str) -> None:
    meeting = Meeting(database)
    one, other = f'{one}{meeting.top}', f'{other}{meeting.top}'
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(made, central, one, RED, meeting)
        second = threads.submit(made, central, other, BLUE, meeting)
        outcomes = [first.result(120), second.result(120)]
    assert outcomes in ([one, 'NameTaken'], ['NameTaken', other])
    assert [each.name for each in central.find_domains(WHO)] == [one if outcomes[0] == one else other]


@pytest.mark.all_databases
def test_two_creators_of_the_same_project_both_win(central: Central, database: Storage) -> None:
    meeting = Meeting(database)
    with ThreadPoolExecutor(2) as threads:
        names = [f'example.{meeting.top}', f'sub.example.{meeting.top}']
        found = [threads.submit(made, central, name, RED, meeting) for name in names]
        assert [each.result(120) for each in found] == names


@pytest.mark.all_databases
def test_a_child_and_a_record_in_its_place_at_once(central: Central, database: Storage) -> None:
    meeting = Meeting(database)
    parent = create(central, f'example.{meeting.top}', who=RED)

    def write_record() -> str:
        def work(tx: Any) -> None:
            recordset_changes.change_recordset(tx, RecordSetRequest(RED, parent.id, new_id(), requests.recordset(
                {'name': f'www.sub.{parent.name}', 'type': 'A', 'records': ['192.0.2.1']})), utcnow(),
                central._allowance, central._journal)
            meeting.wait()

        try:
            database.run(work)
            return 'record'
        except errors.InvalidField:
            return 'refused'

    with ThreadPoolExecutor(2) as threads:
        record = threads.submit(write_record)
        child = threads.submit(made, central, f'sub.{parent.name}', RED, meeting)
        outcomes = record.result(120), child.result(120)
    assert outcomes in (('record', 'Refused'), ('refused', f'sub.{parent.name}'))


@pytest.mark.all_databases
def test_a_record_that_comes_while_its_child_is_being_committed_is_refused(
        central: Central, database: Storage) -> None:
    parent = create(central, 'example.com.', who=RED)
    kept, written = threading.Event(), threading.Event()

    def hold(tx: Any, domain: Domain) -> None:
        kept.set()
        # Nobody comes while the parent is locked; who ignored the lock would.
        if tx.dialect.name == 'sqlite':
            written.wait(patience(0.5))
        else:
            wait_until(lambda: written.is_set() or lock_waits(database), 'the record waits for its parent')

    def write() -> str:
        assert kept.wait(60)
        try:
            return words_of(central.create_recordset, RED, parent.id, {
                'name': 'www.sub.example.com.', 'type': 'A', 'records': ['192.0.2.1']})
        finally:
            written.set()

    with ThreadPoolExecutor(2) as threads:
        record = threads.submit(write)
        wanted = requests.new_domain({'name': 'sub.example.com.', 'email': 'hostmaster@example.com'})
        central.creator.create_one(RED, wanted, [()], also=hold)
        assert 'it lies in the zone sub.example.com.' in record.result(120)
