"""Every type that octoDNS has, from ours to octoDNS's and back."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from octodns.processor.base import BaseProcessor
from octodns.record import Record
from octodns.zone import Zone as TheirZone

from designate_pool.errors import InvalidField
from designate_pool.planner.octodns.records import ZoneMirror, record_of, rrset_of
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import NO_EXTRA, Extra, RRset, rrset

LONG = 'x' * 255
DATA = [
    ('A', '192.0.2.1'),
    ('AAAA', '2001:db8::1'),
    ('AAAA', '::ffff:192.0.2.1'),
    ('CAA', '0 issue "ca.example.net; validationmethods=dns-01"'),
    ('CNAME', 'a._sub.example.net.'),
    ('DNAME', 'b.example.net.'),
    ('DS', f'1 8 4 {"ab" * 48}'),
    ('HTTPS', '1 svc.example.net. alpn="h2,h3" port="8443" dohpath="/q{?dns}"'),
    ('LOC', '51 30 12.748 N 0 7 39.612 W 0.00m'),
    ('LOC', '51 30 0.001 S 0 7 39.612 E -100.50m 30m 1.5m 90000000m'),
    ('MX', '10 mx.example.net.'),
    ('MX', '0 .'),
    ('NAPTR', r'1 2 "S" "a b" "!^.*$!\\1 x\"!" .'),
    ('NS', 'ns.example.net.'),
    ('OPENPGPKEY', 'aGVsbG8gd29ybGQ='),
    ('PTR', 'p.example.net.'),
    ('SPF', '"v=spf1 -all"'),
    ('SRV', '1 2 3 s.example.net.'),
    ('SSHFP', f'1 2 {"ab" * 32}'),
    ('SVCB', r'1 . mandatory="alpn" alpn="f\\\\oo\\,bar,h2" no-default-alpn ipv4hint="192.0.2.1,192.0.2.2"'),
    ('SVCB', r'1 . key65000="a b\"c;d()"'),
    ('SVCB', '0 x.example.net.'),
    ('TLSA', f'3 0 0 {"ab" * 200}'),
    ('TXT', '"v=DKIM1; k=rsa; p=MIGf"'),
    ('TXT', r'"\195\164 \"quoted\" back\\slash"'),
    ('TXT', '""'),
    ('TXT', '" blanks "'),
    ('TXT', f'"{LONG}" "and more"'),
    ('TXT', f'"{LONG[:-1]}\\195" "\\164"'),
    ('URI', '10 1 "https://example.com/a b"'),
]
#: octoDNS 1.22 fails when it validates the parameter, so it can have it only where nothing is validated.
ECH = ('HTTPS', '1 . ech="AAn+DQAFYWJjZGU="')
DYNAMIC = {'pools': {'one': {'fallback': 'two', 'values': [{'value': '192.0.2.7', 'weight': 1, 'status': 'obey'}]},
                     'two': {'fallback': None, 'values': [{'value': '192.0.2.8', 'weight': 3, 'status': 'up'},
                                                          {'value': '192.0.2.9', 'weight': 1, 'status': 'obey'}]}},
           'rules': [{'geos': ['EU', 'NA-US-CA'], 'pool': 'one'}, {'pool': 'two'}]}


def their_zone(name: str = 'example.com.') -> Any:
    return TheirZone(name, set())


@pytest.mark.parametrize(('rtype', 'text'), [*DATA, ECH])
def test_data_comes_back_as_it_was(rtype: str, text: str) -> None:
    ours = rrset('www.example.com.', rtype, 300, [text])
    record = record_of(ours, their_zone())
    assert (record.fqdn, record._type, record.ttl) == ('www.example.com.', rtype, 300)
    assert rrset_of(record, lenient=False) == ours


@pytest.mark.parametrize(('rtype', 'text'), DATA)
def test_data_comes_back_from_what_octodns_makes_of_its_own_yaml(rtype: str, text: str) -> None:
    ours = rrset('www.example.com.', rtype, 300, [text])
    data = record_of(ours, their_zone()).data
    if text == '""':
        data['value'] = ''
    again = Record.new(their_zone(), 'www', {'type': rtype, **data}, lenient=True)
    assert rrset_of(again, lenient=False) == ours


def test_there_is_a_case_for_every_type_that_octodns_has() -> None:
    own = {'ALIAS', 'URLFWD'}
    assert {rtype for rtype, _ in DATA} == {rtype for rtype in Record.registered_types() if '/' not in rtype} - own


def test_many_values_come_back_all() -> None:
    ours = rrset('example.com.', 'MX', 60, ['20 b.example.net.', '10 a.example.net.', '10 c.example.net.'])
    assert rrset_of(record_of(ours, their_zone()), lenient=False) == ours


@pytest.mark.parametrize('name', ['*.example.com.', '_sip._tcp.example.com.', 'xn--bcher-kva.example.com.',
                                  'example.com.', '*.a.example.com.', 'example.com.example.com.', 'a/b.example.com.'])
def test_names_come_back_as_they_were(name: str) -> None:
    ours = rrset(name, 'A', 300, ['192.0.2.1'])
    assert rrset_of(record_of(ours, their_zone())) == ours


def test_octodns_makes_names_lower_case_and_ascii() -> None:
    record = Record.new(their_zone(), 'BÜCHER', {'type': 'CNAME', 'ttl': 60, 'value': 'Straße.Example.NET.'})
    assert rrset_of(record) == rrset('xn--bcher-kva.example.com.', 'CNAME', 60, ['xn--strae-oqa.example.net.'])


@pytest.mark.parametrize(('rtype', 'data', 'text'), [
    ('ALIAS', {'value': 'www.example.net.'}, 'www.example.net.'),
    ('URLFWD', {'value': {'path': '/a b', 'target': 'https://example.net/', 'code': 301, 'masking': 2, 'query': 0}},
     '{"code": 301, "masking": 2, "path": "/a b", "query": 0, "target": "https://example.net/"}')])
def test_types_that_only_octodns_knows_come_back_as_they_were(rtype: str, data: dict[str, Any], text: str) -> None:
    record = Record.new(their_zone(), '', {'type': rtype, 'ttl': 60, **data})
    ours = rrset_of(record, lenient=False)
    assert ours == RRset('example.com.', rtype, 60, (text,))
    again = record_of(ours, their_zone())
    assert again.data == record.data and type(again) is type(record)


def test_a_type_of_a_provider_comes_back_as_it_was() -> None:
    from octodns_powerdns.record import PowerDnsLuaRecord
    script = "ifportup(443, {'192.0.2.1', '192.0.2.2'})"
    record = Record.new(their_zone(), 'lua', {'type': PowerDnsLuaRecord._type, 'ttl': 60,
                                              'value': {'type': 'A', 'script': script}})
    ours = rrset_of(record, lenient=False)
    assert ours.type == 'PowerDnsProvider/LUA' and script in ours.rdatas[0]
    assert record_of(ours, their_zone()).data == record.data


@pytest.mark.parametrize(('settings', 'extra'), [
    ({}, NO_EXTRA),
    ({'octodns': {'ignored': True}}, Extra(ignored=True)),
    ({'octodns': {'included': ['one', 'two']}}, Extra(included=('one', 'two'))),
    ({'octodns': {'excluded': ['one']}}, Extra(excluded=('one',))),
    ({'octodns': {'healthcheck': {'protocol': 'HTTPS', 'port': 8443, 'path': '/up'}, 'cloudflare': {'proxied': True}}},
     Extra(octodns={'healthcheck': {'protocol': 'HTTPS', 'port': 8443, 'path': '/up'},
                    'cloudflare': {'proxied': True}})),
    ({'dynamic': DYNAMIC}, Extra(dynamic=DYNAMIC)),
    ({'geo': {'EU': ['192.0.2.7'], 'NA-US': ['192.0.2.8', '192.0.2.9']}},
     Extra(dynamic={'geo': {'EU': ['192.0.2.7'], 'NA-US': ['192.0.2.8', '192.0.2.9']}})),
])
def test_settings_come_back_as_they_were(settings: dict[str, Any], extra: Extra) -> None:
    record = Record.new(their_zone(), 'www', {'type': 'A', 'ttl': 60, 'value': '192.0.2.1', **settings})
    ours = rrset_of(record, lenient=False)
    assert ours.extra == extra
    again = record_of(ours, their_zone())
    assert again.data == record.data
    assert not record.changes(again, _Everything())
    assert rrset_of(again) == ours


class _Everything:
    SUPPORTS_GEO = SUPPORTS_DYNAMIC = True


@pytest.mark.parametrize(('rtype', 'text', 'why'), [
    ('HINFO', '"a" "b"', 'does not know this type'),
    ('SOA', 'ns.example.com. h.example.com. 1 2 3 4 5', 'does not know this type'),
    ('TXT', r'"\"all of it\""', 'quotes'),
    ('TXT', r'"one \" \" two"', 'quotes'),
    ('TXT', r'"\255"', 'UTF-8'),
    ('URI', '10 1 "https://example.com/Path"', 'lower case'),
])
def test_what_octodns_would_change_is_refused(rtype: str, text: str, why: str) -> None:
    with pytest.raises(InvalidField, match=why):
        record_of(rrset('www.example.com.', rtype, 300, [text]), their_zone())


def test_data_that_is_none_is_kept_where_records_are_taken_leniently() -> None:
    record = Record.new(their_zone(), 'www', {'type': 'CNAME', 'ttl': 60, 'value': 'a..dot.'}, lenient=True)
    assert rrset_of(record).rdatas == ('a..dot.',)
    with pytest.raises(InvalidField, match='label is empty'):
        rrset_of(record, lenient=False)


@pytest.mark.parametrize('lenient', [True, False])
def test_a_name_without_a_final_dot_is_absolute(lenient: bool, caplog: pytest.LogCaptureFixture) -> None:
    record = Record.new(their_zone(), 'www', {'type': 'CNAME', 'ttl': 60, 'value': 'lb.example.net'}, lenient=True)
    assert rrset_of(record, lenient).rdatas == ('lb.example.net.',)
    assert 'CNAME lb.example.net has a name without the final dot' in caplog.text


def test_what_a_processor_is_to_fill_in_is_kept() -> None:
    record = Record.new(their_zone(), 'www', {'type': 'CNAME', 'ttl': 60, 'value': 'www.{zone_name}'})
    ours = rrset_of(record, lenient=False)
    assert ours.rdatas == ('www.{zone_name}',)
    assert record_of(ours, their_zone()).value == 'www.{zone_name}'


def test_a_record_without_data_is_an_error_that_names_it() -> None:
    record = Record.new(their_zone(), 'www', {'type': 'A', 'ttl': 60, 'values': []}, lenient=True)
    with pytest.raises(InvalidField, match='www.example.com. A: it has no data'):
        rrset_of(record)


def zone(*rrsets: RRset, sub_zones: tuple[str, ...] = ()) -> Zone:
    made = Zone('example.com.', sub_zones)
    for each in rrsets:
        made.add_record(each)
    return made


TXT = rrset('t.example.com.', 'TXT', 60, ['"one" "two"'])
HINFO = rrset('h.example.com.', 'HINFO', 60, ['"a" "b"'])
WWW = rrset('www.example.com.', 'A', 60, ['192.0.2.1'])


def test_a_zone_that_octodns_did_not_touch_is_the_same_object() -> None:
    mirror = ZoneMirror.of(zone(TXT, HINFO, WWW))
    assert {each._type for each in mirror.octodns_zone.records} == {'TXT', 'A'}
    before = mirror.zone
    assert mirror.from_octodns(mirror.octodns_zone) is before
    assert mirror.from_octodns(BaseProcessor('noop').process_source_zone(mirror.octodns_zone, [])) is before


def test_what_octodns_leaves_alone_is_exactly_as_it_was() -> None:
    mirror = ZoneMirror.of(zone(TXT, HINFO, WWW))
    copy = mirror.octodns_zone.copy()
    www = copy.get_type('www', 'A')
    assert www is not None
    copy.remove_record(www)
    copy.add_record(Record.new(copy, 'new', {'type': 'A', 'ttl': 60, 'value': '192.0.2.2'}))
    changed = mirror.from_octodns(copy)
    assert sorted(changed) == sorted([TXT, HINFO, rrset('new.example.com.', 'A', 60, ['192.0.2.2'])])


def test_octodns_gets_what_has_changed_on_our_side_and_nothing_else() -> None:
    ours = zone(TXT, WWW)
    mirror = ZoneMirror.of(ours)
    untouched = mirror.octodns_zone.get_type('t', 'TXT')
    after = ours.copy()
    after.remove_record(WWW)
    after.add_record(rrset('www.example.com.', 'AAAA', 60, ['2001:db8::1']))
    theirs = mirror.to_octodns(after)
    assert {(each.name, each._type) for each in theirs.records} == {('t', 'TXT'), ('www', 'AAAA')}
    assert theirs.get_type('t', 'TXT') is untouched
    assert mirror.to_octodns(after.copy()) is theirs
    assert mirror.from_octodns(theirs) == after


def test_sub_zones_and_thresholds_go_along() -> None:
    theirs = ZoneMirror.of(Zone('example.com.', ['sub.example.com.'], 0.4, 0.5)).octodns_zone
    assert (theirs.sub_zones, theirs.update_pcent_threshold, theirs.delete_pcent_threshold) == ({'sub'}, 0.4, 0.5)


def test_without_octodns_an_error_says_what_to_install() -> None:
    code = ('import sys; sys.modules["octodns"] = None\n'
            'from designate_pool.planner.octodns.adapter import adapt_provider\n'
            'from designate_pool.errors import InvalidField\n'
            'try:\n    adapt_provider("x", "octodns.provider.yaml.YamlProvider", {})\n'
            'except InvalidField as error:\n    print(error)\n')
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert 'pip install designate-pool[octodns]' in done.stdout


def test_octodns_is_not_imported_before_it_is_wanted() -> None:
    code = ('import sys, designate_pool.planner.octodns.adapter, designate_pool.backends as b\n'
            'b.options()\n'
            'print(sorted(each for each in sys.modules if each.partition(".")[0] == "octodns"))')
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == '[]'
