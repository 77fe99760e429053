"""octoDNS's YAML: read as octoDNS reads it, written so that octoDNS reads the same."""

from __future__ import annotations

import json
import os
import pathlib
import time
from collections.abc import Callable, Iterable

import octodns.provider.yaml
import octodns.zone
import pytest
from hypothesis import given, strategies as st
from natsort import natsort_keygen

from designate_pool.errors import BackendError, InvalidField, SourceError, SupportsException, ZoneError
from designate_pool.planner.octodns.adapter import adapt_provider
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.providers.base import NOT_DNS
from designate_pool.planner.sources import yaml_files
from designate_pool.planner.sources.yaml_rdata import ascii_name, unicode_name
from designate_pool.planner.targets.yaml_target import YamlProvider
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import Extra, RRset, rrset
from tests.fixtures.plans import planned
from tests.unit.planner.values import Target, zone

ZONE = 'example.com.'
EVERYTHING = r'''---
? ''
: - type: CAA
    values:
    - {flags: 128, tag: issue, value: ca.example.net}
    - {tag: iodef, value: 'mailto:a@example.com'}
  - octodns:
      ignored: true
    ttl: 60
    type: NS
    values: [ns1.example.net., NS2.example.net.]
  - type: MX
    values:
    - {exchange: mail.example.net., preference: 10}
    - {priority: '20', value: mail2.example.net.}
  - type: SPF
    value: v=spf1 -all
  - type: TXT
    values:
    - v=spf1 -all
    - v=DKIM1\; k=rsa\; p="quoted" back\slash
    - LONG
    - '"joined " "together"'
'*':
  type: CNAME
  value: www.example.com.
1:
  type: A
  value: 192.0.2.1
_443._tcp:
  type: TLSA
  values:
  - {certificate_association_data: ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789,
     certificate_usage: 3, matching_type: 1, selector: 1}
  - {certificate_association_data: abcdef, certificate_usage: 0, matching_type: 0, selector: 0}
_sip._tcp:
  - type: SRV
    values: [{port: 5060, priority: 10, target: sip.example.com., weight: 20}]
  - type: URI
    value: {priority: 10, target: 'https://example.com/a?b=c', weight: 1}
bücher:
  type: AAAA
  values: ['2001:DB8:0:0::1', '::ffff:192.0.2.1']
ds:
  type: DS
  values:
  - {algorithm: 13, digest: ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789, digest_type: 2,
     key_tag: 12345}
  - {algorithm: 2, flags: 12346, protocol: 13,
     public_key: abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789}
host2:
  geo:
    AF: [192.0.2.2]
  type: A
  values: [192.0.2.9, 192.0.2.10]
host12:
  dynamic:
    pools: {one: {values: [{value: 192.0.2.1}]}}
    rules: [{pool: one}]
  octodns: {excluded: [a], healthcheck: {path: /up}, included: [b, c]}
  type: A
  value: 192.0.2.1
key:
  type: OPENPGPKEY
  value: mQINBFit2ioBEADhWpZZ
loc:
  type: LOC
  values:
  - {altitude: 20, lat_degrees: 31, lat_direction: S, lat_minutes: 58, lat_seconds: 52.1, long_degrees: 115,
     long_direction: E, long_minutes: 49, long_seconds: 11.7, precision_horz: 10, precision_vert: 2, size: 10}
  - {altitude: -2.5, lat_degrees: 1, lat_direction: N, lat_minutes: 2, lat_seconds: 3, long_degrees: 4,
     long_direction: W, long_minutes: 5, long_seconds: 6.007, precision_horz: 10000, precision_vert: 10, size: 1}
mail:
  type: PTR
  values: [a.example.com., B.example.com.]
naptr:
  type: NAPTR
  values:
  - {flags: u, order: 10, preference: 20, regexp: '!^.*$!sip:info@example.com!', replacement: ., service: E2U+sip}
  - {flags: S, order: 10, preference: 21, regexp: '!^(.*)$!sip:\\1@example.com!', replacement: a.example.com.,
     service: ''}
ssh:
  type: SSHFP
  value: {algorithm: 4, fingerprint: 123456789ABCDEF67890123456789ABCDEF678901234567890123456789ABCDE,
          fingerprint_type: 2}
sub:
  type: DNAME
  value: sub.example.org.
svc:
- type: HTTPS
  values:
  - svcpriority: 1
    svcparams: {alpn: [h2, h3], ipv4hint: [192.0.2.1], ipv6hint: ['2001:db8::1'], mandatory: [alpn, port],
                no-default-alpn: , port: 8443}
    targetname: .
  - {svcpriority: 0, targetname: other.example.com.}
- type: SVCB
  value: {svcpriority: 2, svcparams: {key65000: text}, targetname: svc.example.net.}
'''.replace('LONG', 'xx1234567890' * 25)


def folder(path: pathlib.Path, text: str, name: str = 'example.com.yaml') -> str:
    (path / name).parent.mkdir(parents=True, exist_ok=True)
    (path / name).write_text(text, encoding='utf-8')
    return str(path)


def read(directory: str, lenient: bool = False, zone: Zone | None = None, **options: object) -> Zone:
    found = zone or Zone(ZONE)
    YamlProvider('config', directory, **options).populate(found, lenient=lenient)  # type: ignore[arg-type]
    return found


def by_octodns(directory: str, name: str = ZONE, lenient: bool = False, **options: object) -> dict[str, str]:
    """What octoDNS reads, packed."""
    options.setdefault('escaped_semicolons', True)
    zone = octodns.zone.Zone(name, [])
    octodns.provider.yaml.YamlProvider('config', directory, **options).populate(zone, lenient=lenient)
    each = [record.to_rrset() for record in zone.records]
    found = [rrset(one.name, one._type, one.ttl, one.rdatas) for one in each]
    return {one.key: one.packed for one in found}


def refused(path: pathlib.Path, text: str, kind: type[Exception] = SourceError, **options: object) -> str:
    with pytest.raises(kind) as caught:
        read(folder(path, text), **options)  # type: ignore[arg-type]
    return str(caught.value)


def zone_of(*rrsets: RRset) -> Zone:
    zone = Zone(ZONE)
    for each in (rrset(ZONE, 'NS', 3600, ['ns1.example.net.']), *rrsets):
        zone.add_record(each)
    return zone


def apply(target: YamlProvider, desired: Zone) -> Plan | None:
    plan = target.plan(desired)
    if plan is not None:
        assert target.apply(plan).ok
    return plan


def test_everything_that_octodns_knows_is_read_as_octodns_reads_it(tmp_path: pathlib.Path) -> None:
    directory = folder(tmp_path, EVERYTHING)
    found = read(directory, enforce_order=False)
    assert dict(found.packed) == by_octodns(directory, enforce_order=False)
    assert len(found) == 22 and {each.type for each in found} == YamlProvider.SUPPORTS - NOT_DNS


def test_what_is_beside_the_data_of_a_record(tmp_path: pathlib.Path) -> None:
    found = read(folder(tmp_path, EVERYTHING), enforce_order=False)
    assert dict(found.extras) == {
        'example.com.\tNS': Extra(ignored=True),
        'host2.example.com.\tA': Extra(dynamic={'geo': {'AF': ['192.0.2.2']}}),
        'host12.example.com.\tA': Extra(
            included=('b', 'c'), excluded=('a',), octodns={'healthcheck': {'path': '/up'}},
            dynamic={'pools': {'one': {'values': [{'value': '192.0.2.1'}]}}, 'rules': [{'pool': 'one'}]})}


def test_everything_is_written_and_read_again(tmp_path: pathlib.Path) -> None:
    source = read(folder(tmp_path / 'in', EVERYTHING), enforce_order=False)
    target = YamlProvider('b', str(tmp_path / 'out'), escaped_semicolons=True)
    plan = apply(target, source)
    assert plan is not None and len(plan.changes) == len(source) - 1, 'the NS records, which are ignored'
    again = read(str(tmp_path / 'out'))
    source.remove_record(source.root_ns)  # type: ignore[arg-type]
    assert again == source and again.extras == source.extras
    assert dict(again.packed) == by_octodns(str(tmp_path / 'out'))
    assert target.plan(source) is None


@pytest.mark.parametrize(('text', 'words'), [
    ('www:\n  type: A\n  value: 192.0.2\n',
     "example.com.yaml, line 2 cannot be read: 'www' A: not an IPv4 address: 192.0.2"),
    ('www:\n  value: 192.0.2.1\n', "line 2 cannot be read: 'www': 'type' is missing"),
    ('a: {type: A, value: 192.0.2.1}\nb:\n  type: A\n', "line 3 cannot be read: 'b' A: a value is missing"),
    ('a: {type: A, values: [192.0.2.1, null]}\n', "line 1 cannot be read: 'a' A: a value is missing"),
    ('a: {type: CNAME, value: www}\n', 'the final dot is missing'),
    ('a: {type: CNAME, values: [b.example.com.]}\n', "'a' CNAME: 'value' is missing"),
    ('a: {type: MX, value: {preference: 10}}\n', "'a' MX: 'exchange' is missing"),
    ('a: {type: MX, value: {exchange: b., preference: ten}}\n', "'preference' is wrong: 'ten' is not a whole number"),
    ('a: {type: TXT, value: a;b}\n', "has a semicolon that is not escaped as '\\;'"),
    ('a: {type: TXT, value: 12}\n', "'a' TXT: 12 is not a text; put it in quotes"),
    ('a: {type: TXT, value: ü}\n', 'has letters that are not ASCII'),
    ('a: {ttl: -1, type: A, value: 192.0.2.1}\n', 'its TTL -1 is not a whole number'),
    ('a: {ttl: 1m, type: A, value: 192.0.2.1}\n', "its TTL '1m' is not a whole number"),
    ('a: {type: ALIAS, value: b.example.net.}\n', "line 1 cannot be read: 'a' ALIAS: an ALIAS can be at the apex only"),
    ("'': {type: ALIAS, value: b.example.net}\n", 'the final dot is missing'),
    ('a: {type: URLFWD, value: b.example.net.}\n', "'b.example.net.' is not a mapping of fields"),
    ("'': {type: CNAME, value: b.example.net.}\n", "line 1 cannot be read: '' CNAME: a CNAME cannot be at the apex"),
    ('sip: {type: SRV, value: {port: 1, priority: 1, target: b., weight: 1}}\n',
     "line 1 cannot be read: 'sip' SRV: the name of an SRV record begins with '_service._protocol'"),
    ('a: {type: NOTYPE, value: b.example.net.}\n', "'a' NOTYPE: octoDNS has no such type"),
    ('www.example.com.: {type: A, value: 192.0.2.1}\n', 'names are relative to the zone'),
    ("'@': {type: A, value: 192.0.2.1}\n", 'names are relative to the zone'),
    ('a: 192.0.2.1\n', "'a' has no mapping with a type and values"),
    *((f'a: {{dynamic: {dynamic}, type: A, value: 192.0.2.1}}\n', f"line 1 cannot be read: 'a' A: {why}")
      for dynamic, why in (
          ('{pools: {b: {values: [5]}}}', "the 'pools' of 'dynamic' are mappings"),
          ('{rules: [5]}', "the 'rules' of 'dynamic' are a list"),
          ('{rules: [{pool: [b]}]}', "a 'fallback' or 'pool' of 'dynamic' is the name"),
          ('{pools: {b: {fallback: [c]}}}', "a 'fallback' or 'pool' of 'dynamic' is the name"))),
    ("a: {octodns: {ignored: 'yes'}, type: A, value: 192.0.2.1}\n", "'ignored' is true or false, not 'yes'"),
    ('a: {octodns: {included: x}, type: A, value: 192.0.2.1}\n', "'included' is a list"),
    ('a: {type: A, value: 192.0.2.1}\na: {type: A, value: 192.0.2.2}\n', "line 2 cannot be read: 'a' is there twice"),
    ('b: {type: A, value: 192.0.2.1}\na: {type: A, value: 192.0.2.2}\n', "line 2 cannot be read: 'a' is out of order"),
    ('a:\n  value: 192.0.2.1\n  type: A\n', "line 3 cannot be read: 'type' is out of order"),
    ('a: {type: A, value: 192.0.2.1}\nb: [\n', 'line 3 cannot be read: did not find expected node content'),
    ('010: {type: A, value: 192.0.2.1}\n', "'010' is not a text to YAML; put it in quotes"),
    ('no: {type: A, value: 192.0.2.1}\n', "'no' is not a text to YAML; put it in quotes"),
    ('a: {ttl: !!bool maybe, type: A}\n', "line 1 cannot be read: 'maybe' cannot be read"),
    ("a: {ttl: !!int '', type: A}\n", "line 1 cannot be read: '' cannot be read"),
    ('a: {ttl: !!timestamp now, type: A}\n', "line 1 cannot be read: 'now' cannot be read"),
    (f'a: {{ttl: 1{":1" * 180}.5, type: A}}\n', ".5' cannot be read"),
    (f'? 0x{"1" * 5000}\n: {{type: A, value: 192.0.2.1}}\n', 'a number of more than 1000 characters'),
    (f'? "{"1" * 5000}"\n: {{type: A, value: 192.0.2.1}}\n', 'not a domain name'),
    ('a: &a {type: A, value: *a}\n', '*a is nothing that comes before it'),
    ('a: !python/name:os.system {}\n', 'is not known'),
    ('', "it is empty; an empty mapping is written '{}'"),
    (' \n', 'it is empty'),
    ('---\n', 'it is not a mapping'),
    ('[]\n', 'it is not a mapping'),
    ('--- {}\n--- {}\n', 'line 2 cannot be read: a second document begins'),
])
def test_what_is_wrong_is_named_with_its_line(tmp_path: pathlib.Path, text: str, words: str) -> None:
    assert words in refused(tmp_path, text)


@pytest.mark.parametrize('text', ['--- {}\n', '# only a comment\n', '---\n# only a comment\n', '# one\n---\n'])
def test_a_file_of_comments_only_is_an_empty_zone_as_for_octodns(tmp_path: pathlib.Path, text: str) -> None:
    directory, zone = folder(tmp_path, text), Zone(ZONE)
    assert YamlProvider('config', directory).populate(zone) and len(zone) == 0 == len(by_octodns(directory))


def test_a_zone_that_is_not_there_is_an_error_and_no_empty_zone(tmp_path: pathlib.Path) -> None:
    with pytest.raises(SourceError, match='it has no YAML of example.com.'):
        read(str(tmp_path))
    assert not YamlProvider('config', str(tmp_path), ignore_missing_zones=True).populate(Zone(ZONE))
    assert not YamlProvider('config', str(tmp_path)).populate(Zone(ZONE), target=True)


def test_nothing_is_added_when_the_end_of_a_file_is_wrong(tmp_path: pathlib.Path) -> None:
    zone = zone_of()
    with pytest.raises(ZoneError, match=': '):
        read(folder(tmp_path, 'a: {type: A, value: 192.0.2.1}\nb:\n- {type: A, value: 192.0.2.1}\n'
                              '- {type: CNAME, value: c.}\n'), zone=zone)
    assert zone == zone_of()


def test_types_that_dns_has_not_are_left_out_leniently_for_targets_that_cannot_hold_them(
        tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    text = 'a: {type: ALIAS, value: b.}\nb: {type: A, value: 192.0.2.1}\n'
    desired = read(folder(tmp_path, text), lenient=True)
    plan = Target(Zone(ZONE)).plan(desired, lenient=True)
    assert plan is not None and [change.name for change in plan.changes] == ['b.example.com.']
    assert 'a.example.com. ALIAS is left out, since it is not a DNS type' in caplog.text


@pytest.mark.parametrize('key', ['null', '~', 'no', '010', '1.10'])
def test_a_name_that_is_no_text_to_yaml_is_left_out_alone_leniently(tmp_path: pathlib.Path, key: str,
                                                                    caplog: pytest.LogCaptureFixture) -> None:
    text = f'a: {{type: A, value: 192.0.2.1}}\n{key}: {{type: A, value: 192.0.2.2}}\nz: {{type: A, value: 192.0.2.3}}\n'
    assert 'is not a text to YAML' in str(refused(tmp_path, text, enforce_order=False))
    records = read(folder(tmp_path, text), lenient=True, enforce_order=False)
    existing = zone(f'{key} 300 A 192.0.2.9')
    plan = Target(existing).plan(records, lenient=True)
    assert plan is not None and [(change.kind, change.name) for change in plan.changes] == [
        ('Create', 'a.example.com.'), ('Create', 'z.example.com.')], 'what is there of it stays'
    assert f"example.com.yaml, line 2 cannot be read: '{key}' is not a text to YAML" in caplog.text
    refused(tmp_path, 'a: {null: x, type: A, value: 192.0.2.1}\n', lenient=True)


def test_types_that_dns_has_not_reach_yaml(tmp_path: pathlib.Path) -> None:
    desired = read(folder(tmp_path, 'a: {type: ALIAS, value: b.}\nb:\n  type: URLFWD\n  value: {code: 301, masking: 2, '
                                    'path: /, query: 0, target: "https://example.net/"}\n'), lenient=True)
    apply(YamlProvider('copy', str(tmp_path / 'copy')), desired)
    assert read(str(tmp_path / 'copy'), lenient=True) == desired
    again = adapt_provider('copy', 'octodns.provider.yaml.YamlProvider', {'directory': str(tmp_path / 'copy')})
    assert again.plan(desired, lenient=True) is None
    changed = read(folder(tmp_path, 'a: {type: ALIAS, value: b.}\n'), lenient=True)
    plan = again.plan(changed, lenient=True)
    assert plan is not None and [change.name for change in plan.changes] == ['b.example.com.'], 'an ALIAS stays'


def test_types_that_dns_has_not_are_for_the_target_to_refuse(tmp_path: pathlib.Path) -> None:
    """As with octoDNS: an error, unless the target has strict_supports: false."""
    text = "'': {type: ALIAS, value: B.example.net.}\nb: {type: A, value: 192.0.2.1}\n" \
           'c: {type: URLFWD, value: {code: 301, masking: 2, path: /, query: 0, target: "https://example.net/"}}\n'
    desired = read(folder(tmp_path, text))
    assert desired.packed[f'{ZONE}\tALIAS'] == '3600\tb.example.net.'
    assert json.loads(desired['c.example.com.\tURLFWD'].rdatas[0])['target'] == 'https://example.net/'
    with pytest.raises(SupportsException, match='it cannot hold example.com. ALIAS'):
        Target(Zone(ZONE)).plan(desired)
    plan = Target(Zone(ZONE), strict_supports=False).plan(desired)
    assert plan is not None and [change.name for change in plan.changes] == ['b.example.com.']
    refused(tmp_path, text.replace('A, value: 192.0.2.1', 'A, ttl: 4294967296, value: 192.0.2.1'), enforce_order=False)


@pytest.mark.parametrize(('text', 'key'), [
    ("'': {octodns: {lenient: true}, type: CNAME, value: b.example.net.}\n", f'{ZONE}\tCNAME'),
    ('sip: {octodns: {lenient: true}, type: SRV, value: {port: 1, priority: 1, target: b., weight: 1}}\n',
     f'sip.{ZONE}\tSRV'),
])
def test_what_is_allowed_leniently_is_written_so_that_it_can_be_read(tmp_path: pathlib.Path, text: str,
                                                                     key: str) -> None:
    directory = folder(tmp_path / 'in', text)
    found = read(directory)
    assert list(found.packed) == [key] and dict(found.packed) == by_octodns(directory)
    apply(YamlProvider('out', str(tmp_path / 'out'), root_ns_warnings=False), found)
    assert read(str(tmp_path / 'out')) == found
    refused(tmp_path, text.replace('lenient: true', 'lenient: false'))


@pytest.mark.parametrize(('data', 'rdata'), [
    ('{type: CNAME, value: lb.example.net}', 'lb.example.net.'),
    ('{type: ALIAS, value: lb.example.net}', 'lb.example.net.'),
    ('{type: MX, values: [{exchange: MX.example.net, preference: 10}]}', '10 mx.example.net.'),
    ('{type: HTTPS, value: {svcpriority: 1, targetname: lb.example.net}}', '1 lb.example.net.'),
], ids=['CNAME', 'ALIAS', 'MX', 'HTTPS'])
def test_a_name_without_a_final_dot_is_absolute_leniently(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture,
                                                          data: str, rdata: str) -> None:
    text = f'a: {data}\n'
    rtype = data.split()[1].rstrip(',')
    own = text.replace('{type', '{octodns: {lenient: true}, type')
    for found in (read(folder(tmp_path, text), lenient=True), read(folder(tmp_path, own))):
        assert found[f'a.{ZONE}\t{rtype}'].rdatas == (rdata,)
    assert 'final dot' in caplog.text and 'line 1' in caplog.text
    refused(tmp_path, text.replace('type: ALIAS', 'octodns: {}, type: CNAME'))
    with pytest.raises(SourceError, match='final dot'):
        read(folder(tmp_path, "a: {type: CNAME, value: '@'}\n"), lenient=True)


def test_a_record_may_be_lenient_by_itself(tmp_path: pathlib.Path) -> None:
    text = 'a: {octodns: {lenient: true}, type: TXT, value: aü;b}\n'
    found = read(folder(tmp_path, text))
    assert dict(found.packed) == {'a.example.com.\tTXT': '3600\t"a\\195\\188;b"'} and not found.extras
    beside = 'a:\n- {octodns: {lenient: true}, type: CNAME, value: b.}\n- {type: A, value: 192.0.2.1}\n'
    assert len(read(folder(tmp_path, beside))) == 2
    refused(tmp_path, beside.replace('lenient: true', 'lenient: false'), ZoneError)


def test_order_is_natural_or_simple_or_none(tmp_path: pathlib.Path) -> None:
    directory = folder(tmp_path, 'a2: {type: A, value: 192.0.2.1}\na12: {type: A, value: 192.0.2.1}\n')
    assert len(read(directory)) == len(read(directory, enforce_order=False)) == 2
    with pytest.raises(SourceError, match="line 2 .*'a12' is out of order"):
        read(directory, order_mode='simple')
    with pytest.raises(InvalidField, match='order_mode'):
        read(directory, order_mode='other')


@given(st.lists(st.text('aAzB01 29._-*ü', max_size=8), max_size=6))
def test_natural_order_is_that_of_octodns(names: list[str]) -> None:
    assert sorted(names, key=yaml_files.natural) == sorted(names, key=natsort_keygen())


def test_the_default_ttl(tmp_path: pathlib.Path) -> None:
    directory = folder(tmp_path, "a: {type: A, value: 192.0.2.1}\nb: {ttl: '60', type: A, value: 192.0.2.1}\n")
    assert {each.name: each.ttl for each in read(directory, default_ttl=900)} == {
        'a.example.com.': 900, 'b.example.com.': 60}


def test_records_of_a_second_source_are_an_error_or_take_the_place_of_the_first(tmp_path: pathlib.Path) -> None:
    directory = folder(tmp_path, 'a: {type: A, value: 192.0.2.1}\n')
    there = rrset('a.example.com.', 'A', 60, ['192.0.2.9'])
    with pytest.raises(ZoneError, match='is there already'):
        read(directory, zone=zone_of(there))
    found = read(directory, zone=zone_of(there), populate_should_replace=True)
    assert found.get('a.example.com.', 'A') == rrset('a.example.com.', 'A', 3600, ['192.0.2.1'])


def test_files_that_include_others_and_mappings_that_are_merged(tmp_path: pathlib.Path) -> None:
    folder(tmp_path, '{type: A, value: 192.0.2.1}\n', 'parts/one.yml')
    folder(tmp_path, 'shared: {type: TXT, value: x}\na: {type: TXT, value: never}\n', 'parts/two.yml')
    directory = folder(tmp_path, 'a: !include parts/one.yml\nb: &b {type: A, value: 192.0.2.2}\nc: {<<: *b, ttl: 60}\n'
                                 'd: *b\n<<: !include parts/two.yml\n')
    found = read(directory, enforce_order=False)
    assert dict(found.packed) == {
        'a.example.com.\tA': '3600\t192.0.2.1', 'b.example.com.\tA': '3600\t192.0.2.2',
        'c.example.com.\tA': '60\t192.0.2.2', 'd.example.com.\tA': '3600\t192.0.2.2',
        'shared.example.com.\tTXT': '3600\t"x"'}
    folder(tmp_path, 'x: !include two.yml\n', 'parts/two.yml')
    with pytest.raises(SourceError, match='two.yml, line 1 cannot be read: .*two.yml includes itself'):
        read(directory, enforce_order=False)
    assert 'No such file' in refused(tmp_path, 'a: !include parts/none.yml\n')


SECRET = 'hunter2'


@pytest.mark.parametrize('path', ['/etc/passwd', '../secret.yaml', 'parts/../../secret.yaml', '~/x.yaml',
                                  '{folder}/../x.yaml', 'link.yaml', 'linked/secret.yaml', 'parts/.git', '.', ''])
def test_what_is_outside_the_folder_is_not_read(tmp_path: pathlib.Path, path: str) -> None:
    inside = tmp_path / 'zones'
    folder(tmp_path, f'{SECRET}: {{}}\n', 'secret.yaml')
    folder(inside, f'{SECRET}\n', 'parts/.git')
    (inside / 'link.yaml').symlink_to('../secret.yaml')
    (inside / 'linked').symlink_to('..')
    words = refused(inside, f"a: !include '{path.replace('{folder}', str(inside))}'\n")
    assert SECRET not in words and 'root:' not in words
    if path != '~/x.yaml':  # which is a file of a folder of that name
        assert 'line 1 cannot be read: only files of' in words


def test_a_circle_of_links_is_told(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'loop.yaml').symlink_to('loop.yaml')
    assert 'loop.yaml cannot be read: Too many levels' in refused(tmp_path, 'a: !include loop.yaml\n')


def test_a_file_that_is_a_link_out_of_the_folder_is_not_read(tmp_path: pathlib.Path) -> None:
    inside = tmp_path / 'zones'
    folder(tmp_path, f'{SECRET}: {{}}\n', 'secret.yaml')
    folder(inside, '{}', 'real.yaml')
    (inside / 'example.com.yaml').symlink_to('real.yaml')
    assert not len(read(str(inside)))
    (inside / 'example.com.yaml').unlink()
    (inside / 'example.com.yaml').symlink_to('../secret.yaml')
    with pytest.raises(SourceError, match='a link out of') as caught:
        read(str(inside))
    assert SECRET not in str(caught.value)


def test_a_shared_file_may_be_where_the_configuration_says(tmp_path: pathlib.Path) -> None:
    folder(tmp_path, 'a: {type: A, value: 192.0.2.1}\n', 'shared.yaml')
    found = read(folder(tmp_path / 'zones', '{}'), shared_filename='../shared.yaml')
    assert found.get('a.example.com.', 'A') is not None


@pytest.mark.parametrize('text', [
    f'{SECRET}', f'{SECRET}: [', f'"{SECRET}', f'*{SECRET}', f'!{SECRET} x', f'[{SECRET}]: 1',
    f'b{SECRET}: 1\n{SECRET}: 2', f'{SECRET}: 1\n{SECRET}: 2', f'2001-99-99: {SECRET}', f'{SECRET}: !!int x',
    f'? {{{SECRET}: 1}}', f'--- {SECRET}\n--- x'])
def test_what_is_wrong_with_an_included_file_is_told_without_what_is_in_it(tmp_path: pathlib.Path, text: str) -> None:
    folder(tmp_path, f'{text}\n', 'part.yaml')
    assert SECRET not in refused(tmp_path, 'a: !include part.yaml\n')


def doubling(times: int, value: str = 'x') -> str:
    """Lists of two that are two of the one before."""
    return f'l0: &l0 [{value}, {value}]\n' + ''.join(
        f'l{number}: &l{number} [*l{number - 1}, *l{number - 1}]\n' for number in range(1, times))


@pytest.mark.parametrize(('text', 'why'), [
    (doubling(40), 'aliases repeat more than'),
    ('a: ' + '[' * 64 + ']' * 64 + '\n', 'nested deeper than 64'),
    ('a: ' + '[' * 2000 + ']' * 2000 + '\n', 'nest'),  # newer releases of libyaml have a limit of their own
    ('a: !include other.yaml\n', 'more than'),
])
def test_what_is_made_to_exhaust_the_reader_is_refused(tmp_path: pathlib.Path, text: str, why: str,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_files, 'MAX_FILES', 20)
    for number in range(9):
        folder(tmp_path, f'a: !include f{number + 1}.yaml\nb: !include f{number + 1}.yaml\n', f'f{number}.yaml')
    folder(tmp_path, '{}\n', 'f9.yaml')
    folder(tmp_path, '!include f0.yaml\n', 'other.yaml')
    began = time.monotonic()
    assert why in refused(tmp_path, text, enforce_order=False)
    assert time.monotonic() - began < 10


def test_what_an_included_file_holds_counts_where_aliases_repeat_it(tmp_path: pathlib.Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_files, 'MAX_REPEATED', 100)
    folder(tmp_path, f'[{", ".join(["a"] * 60)}]\n', 'long.yaml')
    assert 'aliases repeat more than 100 values' in refused(tmp_path, 'a: &a !include long.yaml\nb: *a\nc: *a\n')


def test_a_number_in_base_60_costs_no_more_than_its_length(tmp_path: pathlib.Path) -> None:
    began = time.process_time()
    assert 'a number of more than 1000 characters' in refused(tmp_path, f'a: {{ttl: 1{":1" * 50_000}, type: A}}\n')
    assert time.process_time() - began < 1.0


def test_a_file_that_is_too_large_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_files, 'MAX_OCTETS', 100)
    assert 'more than 100 octets' in refused(tmp_path, f'a: {{type: TXT, value: {"x" * 100}}}\n')


def test_zones_are_listed_by_file_and_by_folder(tmp_path: pathlib.Path) -> None:
    for name in ('example.com.yaml', 'bücher.example.yaml', 'other.yaml', 'readme.txt', 'split.example./a.yaml',
                 'split2.example.dir/a.yaml'):
        folder(tmp_path, '{}\n', name)
    listed = {options: YamlProvider('config', str(tmp_path), split_extension=options[0],  # type: ignore[arg-type]
                                    disable_zonefile=options[1]).list_zones()  # type: ignore[arg-type]
              for options in ((None, False), ('.', False), ('.', True), ('.dir', True))}
    files = ['example.com.', 'xn--bcher-kva.example.']
    assert listed == {(None, False): files, ('.', False): [files[0], 'split.example.', files[1]],
                      ('.', True): ['split.example.'], ('.dir', True): ['split2.example.']}
    assert listed[None, False] == sorted(ascii_name(each) for each in octodns.provider.yaml.YamlProvider(
        'config', str(tmp_path), escaped_semicolons=True).list_zones())
    with pytest.raises(SourceError, match='No such file'):
        YamlProvider('config', str(tmp_path / 'none')).list_zones()


@pytest.mark.parametrize('beside', [True, False])
def test_a_folder_that_may_not_be_read_is_not_taken_for_empty(tmp_path: pathlib.Path, beside: bool,
                                                              forbid: Callable[[pathlib.Path], None]) -> None:
    folder = tmp_path / 'example.com.'
    folder.mkdir()
    (folder / 'www.yaml').write_text('www: {type: A, value: 192.0.2.1}\n')
    if beside:
        (tmp_path / 'example.com.yaml').write_text('ftp: {type: A, value: 192.0.2.2}\n')
    forbid(folder)
    with pytest.raises(SourceError, match=r'example.com. cannot be read: Permission denied'):
        YamlProvider('config', str(tmp_path), split_extension='.').populate(Zone(ZONE), target=True)


def test_a_zone_in_many_files_of_a_folder_with_one_for_all_zones(tmp_path: pathlib.Path) -> None:
    folder(tmp_path, 'www: {type: A, value: 192.0.2.1}\n', 'example.com./www.yaml')
    folder(tmp_path, "'': {type: NS, values: [ns1.example.net.]}\n", 'example.com./$example.com.yaml')
    folder(tmp_path, 'mail: {type: A, value: 192.0.2.2}\n', 'shared.yml')
    directory = folder(tmp_path, 'zone: {type: A, value: 192.0.2.3}\n')
    options = {'split_extension': '.', 'shared_filename': 'shared.yml'}
    found = read(directory, **options)
    assert dict(found.packed) == by_octodns(directory, **options) and len(found) == 4
    assert len(read(directory, **options, disable_zonefile=True)) == 3
    with pytest.raises(InvalidField, match='disable_zonefile'):
        read(directory, disable_zonefile=True)


def test_a_zone_under_two_names_is_an_error(tmp_path: pathlib.Path) -> None:
    zone = Zone('xn--bcher-kva.example.')
    source = YamlProvider('config', folder(tmp_path, 'a: {type: A, value: 192.0.2.1}\n', 'bücher.example.yaml'))
    assert source.populate(zone) and len(zone) == 1
    folder(tmp_path, '{}\n', 'xn--bcher-kva.example.yaml')
    with pytest.raises(SourceError, match='it has both'):
        source.populate(zone.empty())


@pytest.mark.parametrize(('unicode', 'name'), [('bücher.example', 'xn--bcher-kva.example'), ('a', 'a'),
                                               ('_x.straße', '_x.xn--strae-oqa'), ('xn--0', 'xn--0')])
def test_international_names(unicode: str, name: str) -> None:
    assert unicode_name(name) == unicode and ascii_name(unicode) == name


A1, A2 = rrset('a.example.com.', 'A', 60, ['192.0.2.1']), rrset('a.example.com.', 'A', 60, ['192.0.2.2'])
ALIAS = rrset('a.example.com.', 'CNAME', 60, ['b.example.com.'])
B = rrset('b.example.com.', 'TXT', 3600, ['"b"'])


def test_only_what_a_plan_changes_is_changed(tmp_path: pathlib.Path) -> None:
    directory = folder(tmp_path, "'':\n- {type: NS, value: ns1.example.net.}\n"
                                 'a: {ttl: 60, type: A, value: 192.0.2.1}\nkept: {octodns: {ignored: true}, type: A, '
                                 "value: 192.0.2.7}\nother: {octodns: {excluded: [out]}, type: A, value: 192.0.2.8}\n")
    target = YamlProvider('out', directory)
    plan = apply(target, zone_of(A2, B))
    assert plan is not None and [each.kind for each in plan.changes] == ['Update', 'Create']
    text = (tmp_path / 'example.com.yaml').read_text()
    for kept in ('ignored: true\n', '- out\n', 'value: 192.0.2.2\n'):
        assert kept in text
    assert target.plan(zone_of(A2, B)) is None
    assert target.apply(plan).ok and (tmp_path / 'example.com.yaml').read_text() == text


def test_a_cname_in_the_place_of_other_data_and_back(tmp_path: pathlib.Path) -> None:
    target = YamlProvider('out', str(tmp_path))
    for desired in (zone_of(A1), zone_of(ALIAS), zone_of(ALIAS, B), zone_of(A1, B), zone_of()):
        apply(target, desired)
        assert read(str(tmp_path)) == desired
        assert dict(desired.packed) == by_octodns(str(tmp_path))


def names(path: pathlib.Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


def test_names_have_files_of_their_own_and_stay_in_those_that_they_are_in(tmp_path: pathlib.Path) -> None:
    zone_folder = tmp_path / 'example.com.'
    folder(tmp_path, "'': {type: NS, value: ns1.example.net.}\nb: {type: TXT, value: old}\n",
           'example.com./mine.yaml')
    target = YamlProvider('out', str(tmp_path), split_extension='.', disable_zonefile=True)
    star = rrset('*.example.com.', 'A', 60, ['192.0.2.1'])
    apply(target, zone_of(A1, B, star))
    assert names(zone_folder) == ['$example.com.yaml', 'a.yaml', 'mine.yaml']
    options = {'split_extension': '.', 'disable_zonefile': True}
    assert dict(read(str(tmp_path), **options).packed) == by_octodns(str(tmp_path), **options) == dict(
        zone_of(A1, B, star).packed)
    apply(target, zone_of(B))
    assert names(zone_folder) == ['mine.yaml'] and target.plan(zone_of(B)) is None


def test_a_plan_that_was_interrupted_half_way_is_applied_again(
        tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = YamlProvider('out', str(tmp_path), split_extension='.')
    apply(target, zone_of(A1, B))
    desired = zone_of(A2, rrset('c.example.com.', 'A', 60, ['192.0.2.3']))
    plan = planned(target, desired)
    replace, done = pathlib.Path.replace, []

    def full(path: pathlib.Path, other: pathlib.Path) -> pathlib.Path:
        if done:
            raise OSError(28, os.strerror(28), str(other))
        done.append(other)
        return replace(path, other)

    monkeypatch.setattr(pathlib.Path, 'replace', full)
    with pytest.raises(BackendError, match='cannot be written: No space left on device'):
        target.apply(plan)
    monkeypatch.undo()
    assert names(tmp_path / 'example.com.') == ['$example.com.yaml', 'a.yaml']
    assert target.apply(plan).ok
    assert read(str(tmp_path), split_extension='.') == desired and target.plan(desired) is None
    assert names(tmp_path / 'example.com.') == ['$example.com.yaml', 'a.yaml', 'c.yaml']


def test_a_new_zone_without_records_is_there_afterwards(tmp_path: pathlib.Path) -> None:
    for options in ({}, {'split_extension': '.', 'disable_zonefile': True}):
        target = YamlProvider('out', str(tmp_path / str(len(options))), **options)  # type: ignore[arg-type]
        assert apply(target, Zone(ZONE)) is not None and apply(target, Zone(ZONE)) is None


def test_what_the_shared_file_has_is_not_written_to_the_zones(tmp_path: pathlib.Path) -> None:
    folder(tmp_path, 'a: {ttl: 60, type: A, value: 192.0.2.1}\n', 'shared.yml')
    target = YamlProvider('out', str(tmp_path), shared_filename='shared.yml')
    assert apply(target, zone_of(B)) is not None and target.plan(zone_of(B)) is None
    assert 'a:' not in (tmp_path / 'example.com.yaml').read_text()


@pytest.mark.parametrize(('given_data', 'rtype', 'kept'), [
    ('"a" "b"', 'TXT', '"ab"'), (r'"\195\188"', 'TXT', r'"\195\188"'), ('1 1 "s" "" "" .', 'NAPTR', '1 1 "S" "" "" .'),
    ('1 1 "" "" "!^(.*)$!sip:x y!" .', 'NAPTR', '1 1 "" "" "!^(.*)$!sip:x y!" .'),
    ('6 2 ' + 'ab' * 32, 'SSHFP', '6 2 ' + 'ab' * 32), ('255 1 1 ' + 'ab' * 32, 'TLSA', '255 1 1 ' + 'ab' * 32),
    ('1 1 "https://Example.com/A;b"', 'URI', '1 1 "https://Example.com/A;b"'),
    ('52 22 23.000 N 4 53 32.000 E -2.00m', 'LOC', '52 22 23.000 N 4 53 32.000 E -2.00m'),
    ('1 Svc.example. alpn="h2" dohpath="/q{?dns}"', 'SVCB', '1 svc.example. alpn="h2" dohpath="/q{?dns}"')])
def test_what_yaml_cannot_say_exactly_is_made_to_fit_once(
        tmp_path: pathlib.Path, given_data: str, rtype: str, kept: str) -> None:
    desired = zone_of(rrset('_a._tcp.example.com.', rtype, 60, [given_data]))
    target = YamlProvider('out', str(tmp_path))
    apply(target, desired)
    assert target.plan(desired) is None
    assert read(str(tmp_path)).get('_a._tcp.example.com.', rtype) == rrset(
        '_a._tcp.example.com.', rtype, 60, [kept])
    assert by_octodns(str(tmp_path)).keys() == desired.packed.keys()


def test_encrypted_client_hello_comes_back(tmp_path: pathlib.Path) -> None:
    """octoDNS 1.22 itself ends with a TypeError where ``ech`` is right, so this is between us alone."""
    desired = zone_of(rrset('a.example.com.', 'HTTPS', 60, ['1 . alpn="h2" ech="AAT+DQAA"']))
    target = YamlProvider('out', str(tmp_path))
    assert apply(target, desired) and target.plan(desired) is None
    assert read(str(tmp_path)) == desired


@pytest.mark.parametrize('found', [rrset('a.example.com.', 'TXT', 60, [r'"\255"']),
                                   rrset('a.example.com.', 'TXT', 60, [r'"\"a\" \"b\""']),
                                   rrset('a.example.com.', 'KX', 60, ['1 b.example.com.'])])
def test_what_yaml_cannot_hold_is_an_error_or_left_out(tmp_path: pathlib.Path, found: RRset) -> None:
    with pytest.raises(SupportsException, match='a.example.com.'):
        YamlProvider('out', str(tmp_path)).plan(zone_of(found))
    target = YamlProvider('out', str(tmp_path), strict_supports=False)
    assert apply(target, zone_of(found)) is not None and target.plan(zone_of(found)) is None


TEXTS = st.text(st.characters(codec='ascii'), max_size=600).map(
    lambda text: '"' + '" "'.join(''.join(f'\\{ord(each):03}' for each in text[start:start + 255])
                                  for start in range(0, len(text) or 1, 255)) + '"')


@given(st.sets(TEXTS, min_size=1, max_size=3), st.booleans())
def test_texts_come_back_as_they_were_or_are_refused(tmp_path_factory: pytest.TempPathFactory, texts: Iterable[str],
                                                     escaped: bool) -> None:
    directory = str(tmp_path_factory.mktemp('yaml'))
    desired = zone_of(rrset('a.example.com.', 'TXT', 60, texts))
    target = YamlProvider('out', directory, escaped_semicolons=escaped)
    try:
        apply(target, desired)
    except SupportsException:
        return
    assert read(directory, escaped_semicolons=escaped) == desired
    assert dict(desired.packed) == by_octodns(directory, escaped_semicolons=escaped)
