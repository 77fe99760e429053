"""external-dns's endpoints to RRsets and back."""

from __future__ import annotations

from typing import Any

import pytest

from designate_pool.errors import InvalidField
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset, rrset
from designate_pool.webhook.app import adjust, apply_changes, endpoint_of, key_of, zone_of

Json = dict[str, Any]


def endpoint(name: str, rtype: str, *targets: str, ttl: int | None = None, **more: Any) -> Json:
    found: Json = {'dnsName': name, 'recordType': rtype, 'targets': list(targets), **more}
    return found if ttl is None else {**found, 'recordTTL': ttl}


def zones(*records: str) -> dict[str, Zone]:
    """``example.com.`` with *records*, each "name TTL type data", and an empty ``sub.example.com.``."""
    found = {name: Zone(name) for name in ('example.com.', 'sub.example.com.')}
    for each in records:
        name, ttl, rtype, data = each.split(' ', 3)
        found['example.com.'].add_record(rrset(name, rtype, int(ttl), data.split(', ')))
    return found


def lines(zone: Zone) -> list[str]:
    return sorted(map(str, zone))


@pytest.mark.parametrize(('rtype', 'data', 'target'), [
    ('A', '192.0.2.1', '192.0.2.1'),
    ('CNAME', 'www.example.com.', 'www.example.com'),
    ('MX', '10 mail.example.com.', '10 mail.example.com'),
    ('MX', '0 .', '0 .'),
    ('SRV', '1 2 443 www.example.com.', '1 2 443 www.example.com.'),
    ('SRV', '0 0 0 .', '0 0 0 .'),
    ('NAPTR', '10 20 "U" "SIP+D2U" "!^.*$!sip:info@example.com!" .',
     '10 20 "U" "SIP+D2U" "!^.*$!sip:info@example.com!" .'),
    ('NS', 'ns1.example.org.', 'ns1.example.org'),
    ('TXT', '"heritage=external-dns,external-dns/owner=one"', '"heritage=external-dns,external-dns/owner=one"'),
])
def test_an_rrset_is_told_and_comes_back_the_same(rtype: str, data: str, target: str) -> None:
    told = endpoint_of(rrset('a.example.com.', rtype, 60, [data]))
    assert told == {'dnsName': 'a.example.com', 'recordType': rtype, 'targets': [target], 'recordTTL': 60}
    there = zones()
    apply_changes(there, 300, {'create': [told]})
    assert lines(there['example.com.']) == [f'a.example.com. 60 {rtype} {data}']


def test_what_is_wanted_is_adjusted_to_what_will_be_told() -> None:
    wanted = [endpoint('WWW.example.com', 'CNAME', 'Web.example.com.', labels={'owner': 'one'}),
              endpoint('t.example.com.', 'TXT', 'two words', ttl=5),
              endpoint('*.example.com', 'A', '192.0.2.2', '192.0.2.1')]
    found, refused = adjust(wanted)
    assert not refused and found == [
        {'dnsName': 'www.example.com', 'recordType': 'CNAME', 'targets': ['web.example.com'],
         'labels': {'owner': 'one'}},
        {'dnsName': 't.example.com', 'recordType': 'TXT', 'targets': ['"two words"'], 'recordTTL': 5},
        {'dnsName': '*.example.com', 'recordType': 'A', 'targets': ['192.0.2.1', '192.0.2.2']}]
    assert adjust(found) == (found, [])


def test_a_long_text_becomes_several_strings() -> None:
    for text in ('x' * 300, f'"{"x" * 300}"'):
        ((found,), _) = adjust([endpoint('t.example.com', 'TXT', text)])
        assert found['targets'] == [f'"{"x" * 255}" "{"x" * 45}"']


def test_what_cannot_be_is_refused_by_itself() -> None:
    good = endpoint('a.example.com', 'A', '192.0.2.1')
    bad = [endpoint('b.example.com', 'A', 'not an address'), 'x', endpoint('c.example.com', 'NSEC', 'x.example.com. A'),
           {'dnsName': 7, 'recordType': 'A', 'targets': []}, endpoint('d.example.com', 'A', '192.0.2.1',
                                                                      setIdentifier='eu')]

    def check(rrset: RRset) -> None:
        if rrset.type == 'NSEC':
            raise InvalidField(field='NSEC', why='cannot be held here')

    found, refused = adjust([*bad[:2], good, *bad[2:]], check)
    assert found == [good]
    assert [each.endpoint for each in refused] == bad
    assert [key_of(each) for each in bad] == [('b.example.com.', 'A'), None, ('c.example.com.', 'NSEC'), None,
                                              ('d.example.com.', 'A')]


def test_what_is_never_told_again_is_not_echoed() -> None:
    found, _ = adjust([endpoint('a.example.com', 'A', '192.0.2.1', labels={'owner': 'one'},
                                providerSpecific=[{'name': 'aws/weight', 'value': '10'}])])
    assert found == [endpoint('a.example.com', 'A', '192.0.2.1', labels={'owner': 'one'})]


def test_changes_of_all_kinds_and_the_same_once_more() -> None:
    there = zones('old.example.com. 60 A 192.0.2.1', 'www.example.com. 60 A 192.0.2.1',
                  'type.example.com. 60 A 192.0.2.1', 'kept.example.com. 60 A 192.0.2.9')
    changes = {'create': [endpoint('new.example.com', 'A', '192.0.2.3'),
                          endpoint('a.sub.example.com', 'A', '192.0.2.4', ttl=30)],
               'updateOld': [endpoint('www.example.com', 'A', '192.0.2.1'),
                             endpoint('type.example.com', 'A', '192.0.2.1')],
               'updateNew': [endpoint('www.example.com', 'A', '192.0.2.2'),
                             endpoint('type.example.com', 'CNAME', 'www.example.com')],
               'delete': [endpoint('old.example.com', 'A', '192.0.2.1')]}
    for _ in range(2):
        apply_changes(there, 300, changes)
        assert lines(there['example.com.']) == [
            'kept.example.com. 60 A 192.0.2.9', 'new.example.com. 300 A 192.0.2.3',
            'type.example.com. 300 CNAME www.example.com.', 'www.example.com. 60 A 192.0.2.2']
        assert lines(there['sub.example.com.']) == ['a.sub.example.com. 30 A 192.0.2.4']


def test_keys_as_older_versions_write_them() -> None:
    there = zones('old.example.com. 60 A 192.0.2.1')
    apply_changes(there, 300, {'Create': [endpoint('new.example.com', 'A', '192.0.2.3')], 'UpdateOld': None,
                               'Delete': [endpoint('old.example.com', 'A', '192.0.2.1')]})
    assert lines(there['example.com.']) == ['new.example.com. 300 A 192.0.2.3']


def test_endpoints_of_one_name_and_type_are_one_rrset() -> None:
    there = zones()
    apply_changes(there, 300, {'create': [endpoint('a.example.com', 'A', '192.0.2.2'),
                                          endpoint('a.example.com', 'A', '192.0.2.1')]})
    assert lines(there['example.com.']) == ['a.example.com. 300 A 192.0.2.1, 192.0.2.2']


def test_the_longest_zone_has_the_name() -> None:
    there = zones()
    assert zone_of(there, 'a.b.sub.example.com.').name == 'sub.example.com.'
    assert zone_of(there, 'sub.example.com.').name == 'sub.example.com.'
    assert zone_of(there, 'xsub.example.com.').name == 'example.com.'
    assert zone_of(there, r'a\.sub.example.com.').name == 'example.com.'
    with pytest.raises(InvalidField, match='example.net'):
        zone_of(there, 'www.example.net.')


@pytest.mark.parametrize(('given', 'why'), [
    ([], 'an object'),
    ({'create': {}}, 'create: it has to be a list'),
])
def test_what_is_no_set_of_changes(given: Any, why: str) -> None:
    with pytest.raises(InvalidField, match=why):
        apply_changes(zones(), 300, given)


@pytest.mark.parametrize(('bad', 'why'), [
    ('x', r'create[0]: an endpoint'),
    ({'dnsName': 'a.example.com', 'recordType': 'A'}, 'create[0].targets'),
    ({'recordType': 'A', 'targets': []}, 'create[0].dnsName'),
    (endpoint('a.example.com', 'A'), 'no data'),
    (endpoint('a.example.com', 'A', 'not an address'), 'not an IPv4 address'),
    (endpoint('a.example.com', 'CNAME', ''), 'not CNAME data'),
    (endpoint('', 'A', '192.0.2.1'), 'final dot'),
    (endpoint('a.example.net', 'A', '192.0.2.1'), 'in none of the zones'),
    (endpoint('a-example.com', 'TXT', 'heritage=external-dns'), 'in none of the zones'),
    (endpoint('a.example.com', 'A', '192.0.2.1', setIdentifier='eu'), 'setIdentifier'),
    (endpoint('example.com', 'CNAME', 'b.example.net'), 'CNAME at its apex'),
    (endpoint('example.com', 'NS', 'ns7.example.net'), 'the pool makes the NS'),
    (endpoint('mx.example.com', 'CNAME', 'b.example.net'), 'has MX already'),
], ids=lambda value: None if isinstance(value, dict) else str(value))
def test_an_endpoint_that_cannot_be_is_left_out_and_the_others_are_made(bad: Any, why: str) -> None:
    there = zones('mx.example.com. 60 MX 10 m.example.com.')
    ((left_out, said),) = apply_changes(there, 300, {'create': [bad, endpoint('good.example.com', 'A', '192.0.2.1')]})
    assert left_out == bad and why in said
    assert lines(there['example.com.']) == ['good.example.com. 300 A 192.0.2.1',
                                            'mx.example.com. 60 MX 10 m.example.com.']


@pytest.mark.parametrize(('old', 'new'), [
    (endpoint('www.example.com', 'A', '192.0.2.1'), endpoint('www.example.com', 'A', 'not an address')),
    (endpoint('www.example.com', 'A', '192.0.2.1'), endpoint('www.example.com', 'CNAME', 'x' * 64)),
    (endpoint('www.example.com', 'A', '192.0.2.1'), endpoint('www.example.com', 'CNAME', 'b.example.net')),
], ids=['its data', 'its new type', 'beside a foreign record'])
@pytest.mark.parametrize('kinds', [('updateOld', 'updateNew'), ('delete', 'create')], ids='-'.join)
def test_what_cannot_be_changed_stays_as_it_is(old: Json, new: Json, kinds: tuple[str, str]) -> None:
    there = zones('www.example.com. 60 A 192.0.2.1', 'www.example.com. 60 MX 10 m.example.com.')
    before = lines(there['example.com.'])
    assert len(apply_changes(there, 300, dict(zip(kinds, ([old], [new]), strict=True)))) == 1
    assert lines(there['example.com.']) == before


def test_a_name_is_served_below_the_given_names_alone() -> None:
    there = zones()
    refused = apply_changes(there, 300, {'create': [endpoint(name, 'A', '192.0.2.1') for name in (
        'apps.example.com', 'a.apps.example.com', 'www.example.com')]}, ['apps.example.com.'])
    assert [each.endpoint['dnsName'] for each in refused] == ['www.example.com']
    assert len(lines(there['example.com.'])) == 2
