"""From what is wanted to what is written; recordsets are told as DNS text."""

from __future__ import annotations

import pytest

from designate_pool.central.rules import recordset_edits
from designate_pool.central.validation import names_and_rdata
from designate_pool.central.validation.requests import KEEP, WantedRecordSet
from designate_pool.errors import DuplicateRecordSet, InvalidField, ManagedRecordSet, RecordSetNotFound
from designate_pool.model import Domain, Record, RecordSet

DOMAIN = Domain(id='0' * 32, name='example.com.', pool_id='1' * 32, pool_name='default', email='a@example.com', ttl=300,
                serial=1)


def wanted(line: str, *records: str, prefix: str = '') -> WantedRecordSet:
    """``name ttl type`` and records; a TTL of ``-`` is the domain's."""
    name, ttl, rtype = line.split()
    return WantedRecordSet(name, rtype, names_and_rdata.rdatas('records', rtype, records) if records else (),
                           ttl=None if ttl == '-' else int(ttl), prefix=prefix)


def present(line: str, *records: str, managed: bool = False) -> RecordSet:
    """As *wanted*; the ids are the texts."""
    name, ttl, rtype = line.split()
    return RecordSet(name, rtype, tuple(Record(each, id=each) for each in records), id=f'{name} {rtype}',
                     ttl=None if ttl == '-' else int(ttl), managed=managed)


WWW = present('www.example.com. - A', '192.0.2.1', '192.0.2.2')


def test_nothing_to_do_is_nothing() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - A', '192.0.2.2', '192.0.2.1')])
    assert not edits


def test_the_domains_own_ttl_said_aloud_is_a_version_since_the_domains_may_change() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. 300 A', '192.0.2.2', '192.0.2.1')])
    assert edits.contents
    assert (edits.new_records, edits.touched_records) == ([], ['192.0.2.1', '192.0.2.2'])


def test_a_new_recordset() -> None:
    edits = recordset_edits.plan(DOMAIN, [], [wanted('www.example.com. 60 A', '192.0.2.1')], new_ids=['x'])
    (made,) = edits.new_sets
    assert (made.id, made.name, made.type, made.ttl) == ('x', 'www.example.com.', 'A', 60)
    assert [(key, rdata.text) for key, rdata in edits.new_records] == [('x', '192.0.2.1')]


def test_one_record_is_replaced() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - A', '192.0.2.1', '192.0.2.3')])
    assert edits.gone_records == ['192.0.2.2']
    assert [rdata.text for _, rdata in edits.new_records] == ['192.0.2.3']
    assert edits.touched_records == []


def test_when_a_record_only_goes_those_that_stay_show_it() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - A', '192.0.2.1')])
    assert (edits.gone_records, edits.touched_records) == (['192.0.2.2'], ['192.0.2.1'])


def test_a_new_ttl_touches_every_record_that_stays() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. 60 A', '192.0.2.1', '192.0.2.3')])
    assert (edits.gone_records, edits.touched_records) == (['192.0.2.2'], ['192.0.2.1'])
    assert edits.changed_sets == {(60, None): [WWW.id]}


def test_a_description_is_not_served() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [WantedRecordSet(WWW.name, 'A', KEEP, ttl=KEEP, description='web')])
    assert edits.changed_sets == {(None, 'web'): [WWW.id]}
    assert not edits.contents


def test_a_recordset_goes() -> None:
    assert recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - A')]).gone_sets == [WWW.id]


def test_what_is_not_there_cannot_go() -> None:
    with pytest.raises(RecordSetNotFound):
        recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - AAAA')])


def test_what_must_be_new_is_not_there_yet() -> None:
    with pytest.raises(DuplicateRecordSet):
        recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - A', '192.0.2.9')], must_be_new=True)


@pytest.mark.parametrize(('line', 'record', 'field'), [
    ('www.example.org. - A', '192.0.2.1', 'name'),
    ('wwwexample.com. - A', '192.0.2.1', 'name'),
    ('com. - A', '192.0.2.1', 'name'),
    ('example.com. - CNAME', 'www.example.org.', 'type'),
    ('www.example.com. - SOA', 'a. b. 1 2 3 4 5', 'type'),
    ('www.example.com. - CNAME', 'www.example.org.', 'type'),
])
def test_what_has_no_place_in_the_domain(line: str, record: str, field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        recordset_edits.plan(DOMAIN, [WWW], [wanted(line, record, prefix='changes[0].')])
    assert caught.value.kwargs['field'] == f'changes[0].{field}'


@pytest.mark.parametrize(('line', 'record'), [
    ('example.com. - SOA', 'a. b. 1 2 3 4 5'), ('example.com. - NS', 'ns1.example.com.')])
def test_what_is_made_from_the_pool_is_not_for_users(line: str, record: str) -> None:
    with pytest.raises(ManagedRecordSet):
        recordset_edits.plan(DOMAIN, [], [wanted(line, record)])


def test_a_delegation_is() -> None:
    assert recordset_edits.plan(DOMAIN, [], [wanted('sub.example.com. - NS', 'ns1.example.org.')]).new_sets


def test_a_cname_may_take_the_place_of_what_goes_with_the_same_change() -> None:
    edits = recordset_edits.plan(DOMAIN, [WWW], [wanted('www.example.com. - CNAME', 'www.example.org.'),
                                                 wanted('www.example.com. - A')])
    assert edits.gone_sets == [WWW.id]
    assert [each.type for each in edits.new_sets] == ['CNAME']


def test_nothing_may_come_beside_a_cname() -> None:
    alias = present('www.example.com. - CNAME', 'www.example.org.')
    with pytest.raises(InvalidField) as caught:
        recordset_edits.plan(DOMAIN, [alias], [wanted('www.example.com. - TXT', '"x"')])
    assert 'has CNAME already' in caught.value.kwargs['why']
    assert not recordset_edits.plan(DOMAIN, [alias], [wanted('www.example.com. - CNAME', 'www.example.org.')])
