"""Whose names are whose: domains above and below one another, what parents hold of them, and who comes first."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central import recordset_changes
from designate_pool.central.domain_creator import NewZone
from designate_pool.central.recordset_changes import RecordSetRequest
from designate_pool.central.service import Central
from designate_pool.central.validation import requests
from designate_pool.central.validation.requests import WantedRecordSet
from designate_pool.model import Context, Domain, RecordChange, new_id, utcnow
from designate_pool.storage.sql.database import Storage
from testing.processes import patience, wait_until
from tests.fixtures.central import WHO, create, import_zone, lock_waits

RED, BLUE = Context(project_id='red'), Context(project_id='blue')
CHIEF = Context(project_id='chief', all_projects=True, may_nest=True)
RED_WHO_SEES = Context(project_id='red', all_projects=True)
ZONE_FILE = '$ORIGIN {}\n@ 60 IN SOA ns1.example.net. host.example.com. 1 2 3 4 5\n'
TAKEN = 'The zone {} cannot be created: this name, or one above or below it, is in use.'


def refused(work: Callable[..., Any], *arguments: Any) -> str:
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
    assert refused(create, central, wanted) == (
        'The zone example.com. exists already.' if there == wanted else TAKEN.format(wanted))  # WHO sees all
    for work in (lambda: create(central, wanted, who=BLUE),
                 lambda: import_zone(central, BLUE, ZONE_FILE.format(wanted))):
        assert refused(work) == TAKEN.format(wanted)
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
    assert refused(create, central, 'c.example.com.') == TAKEN.format('c.example.com.')
    for domain in central.find_domains(RED):
        central.delete_domain(RED, domain.id)
    assert create(central, 'c.example.com.', who=BLUE).project_id == 'blue'


def test_one_who_may_nests_across_projects(central: Central) -> None:
    create(central, 'example.com.', who=RED)
    assert create(central, 'sub.example.com.', who=CHIEF).project_id == 'chief'
    import_zone(central, CHIEF, ZONE_FILE.format('com.'))
    # It is still nobody else's name, not its neighbours' either.
    assert refused(create, central, 'x.sub.example.com.') == TAKEN.format('x.sub.example.com.')
    assert 'in use' in refused(lambda: create(central, 'y.example.com.', who=RED))


def test_a_name_of_one_label_is_for_those_who_may_nest(central: Central) -> None:
    for work in (lambda: create(central, 'com.', who=RED), lambda: import_zone(central, RED, ZONE_FILE.format('com.'))):
        assert 'the policy nest_zones' in refused(work)
    domain = create(central, 'com.', who=CHIEF)
    assert 'the policy nest_zones' in refused(central.give_domain, RED_WHO_SEES, domain.id, 'red')
    assert central.give_domain(CHIEF, domain.id, 'red').project_id == 'red'


def test_records_at_or_below_a_childs_name_are_refused(central: Central) -> None:
    parent = create(central, 'example.com.', ('old.example.com.', 'A', ['192.0.2.1']), who=RED)
    create(central, 'sub.example.com.', who=RED)
    create(central, 'theirs.example.com.', who=dataclasses.replace(CHIEF, project_id='blue'))
    for name, why in (('sub.example.com.', 'it lies in the zone sub.example.com. and belongs there'),
                      ('a.b.sub.example.com.', 'it lies in the zone sub.example.com. and belongs there'),
                      ('www.theirs.example.com.', 'it lies in another zone, below this one')):
        given = {'name': name, 'type': 'A', 'records': ['192.0.2.2']}
        assert refused(central.create_recordset, RED, parent.id, given) == f'name: {why}.'
        assert refused(central.apply_changes, RED, parent.id, [
            RecordChange('new.example.com.', 'A', ('192.0.2.1',)), RecordChange(name, 'A', ('192.0.2.2',))]
        ) == f'changes[1].name: {why}.'
    for name in ('xsub.example.com.', 'example.com.'):
        central.create_recordset(RED, parent.id, {'name': name, 'type': 'A', 'records': ['192.0.2.2']})
    # The delegation is the parent's to have.
    central.create_recordset(RED, parent.id, {'name': 'sub.example.com.', 'type': 'NS', 'records': ['ns.example.net.']})
    assert 'lies in' in refused(central.create_recordset, RED, parent.id, {
        'name': 'x.sub.example.com.', 'type': 'NS', 'records': ['ns.example.net.']})


def test_glue_is_in_the_zone_above_too(central: Central) -> None:
    """A referral has to have it (RFC 9471 section 3), whatever servers serve the zone above alone."""
    ns1, ns2 = 'ns1.sub.example.com.', 'ns2.sub.example.com.'
    parent = create(central, 'example.com.', ('sub.example.com.', 'NS', ['NS1.sub.example.com.']),
                    (ns1, 'A', ['192.0.2.53']), (ns2, 'A', ['192.0.2.54']), who=RED)
    assert refused(lambda: create(central, 'sub.example.com.', who=RED)).endswith(f'first: {ns2} A.')
    central.apply_changes(RED, parent.id, [RecordChange(ns2, 'A')])
    create(central, 'sub.example.com.', who=RED)
    central.create_recordset(RED, parent.id, {'name': ns1, 'type': 'AAAA', 'records': ['2001:db8::53']})
    for name, rtype, data in ((ns2, 'A', '192.0.2.54'), (ns1, 'TXT', '"x"')):
        assert 'it lies in the zone sub.example.com.' in refused(
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

    assert 'it lies in the zone sub.example.com.' in refused(apply, delegation, RecordChange(old, 'A', ('192.0.2.53',)))
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
        assert 'it lies in the zone sub.example.com.' in refused(lambda: import_zone(central, RED, text))


def test_a_child_over_records_of_its_parent_is_refused_and_they_are_named_to_their_owner(central: Central) -> None:
    parent = create(central, 'example.com.', ('sub.example.com.', 'NS', ['ns.example.net.']),
                    ('sub.example.com.', 'TXT', ['"x"']), ('a.sub.example.com.', 'A', ['192.0.2.1']),
                    ('asub.example.com.', 'A', ['192.0.2.1']), who=RED)
    begin = 'The zone sub.example.com. cannot be created: delete these records of a zone above it first:'
    for work in (lambda: create(central, 'sub.example.com.', who=RED),
                 lambda: import_zone(central, RED, ZONE_FILE.format('sub.example.com.'))):
        assert refused(work) == f'{begin} a.sub.example.com. A, sub.example.com. TXT.'
    hidden = Context(project_id='blue', may_nest=True)
    assert refused(lambda: create(central, 'sub.example.com.', who=hidden)) == f'{begin} records of a zone above it.'
    central.apply_changes(RED, parent.id, [RecordChange('sub.example.com.', 'TXT'),
                                           RecordChange('a.sub.example.com.', 'A')])
    create(central, 'sub.example.com.', who=RED)


@pytest.mark.parametrize('way', ['www.sub.example.com.', r'b\\.sub.example.com.'])
def test_names_with_escaped_dots_hide_no_record_that_is_in_a_childs_way(central: Central, way: str) -> None:
    # With a dot inside the first label they end as what lies below the child does, and lie beside it.
    beside = [(rf'a{number}\.sub.example.com.', 'A', ['192.0.2.1']) for number in range(10)]
    parent = create(central, 'example.com.', *beside, (way, 'A', ['192.0.2.1']), who=RED)
    assert refused(lambda: create(central, 'sub.example.com.', who=RED)).endswith(f'above it first: {way} A.')
    central.apply_changes(RED, parent.id, [RecordChange(way, 'A')])
    create(central, 'sub.example.com.', who=RED)


@pytest.mark.parametrize('name', [
    'ns1.example.net.', 'x.ns1.example.net.', 'example.net.', 'net.', 'in-addr.arpa.', 'ip6.arpa.', 'co.uk.', 'nhs.uk.',
    'org.nz.', 'ne.jp.', 'com.br.'])
def test_names_of_all_and_names_around_the_name_servers_are_for_who_may_nest(central: Central, name: str) -> None:
    for work in (lambda: create(central, name, who=RED), lambda: import_zone(central, RED, ZONE_FILE.format(name)),
                 lambda: create(central, name)):
        assert 'the policy nest_zones says who may create it, with --all-projects' in refused(work)
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
    assert 'it lies in the zone sub.example.com.' in refused(
        lambda: create(central, 'example.com.', ('www.sub.example.com.', 'A', ['192.0.2.1']), who=RED))
    assert 'it lies in the zone sub.example.com.' in refused(
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
            return refused(central.create_recordset, RED, parent.id, {
                'name': 'www.sub.example.com.', 'type': 'A', 'records': ['192.0.2.1']})
        finally:
            written.set()

    with ThreadPoolExecutor(2) as threads:
        record = threads.submit(write)
        wanted = requests.new_domain({'name': 'sub.example.com.', 'email': 'hostmaster@example.com'})
        central.creator.create_one(RED, wanted, [()], also=hold)
        assert 'it lies in the zone sub.example.com.' in record.result(120)
