"""The pool as a provider of octoDNS: octoDNS's own commands, the real programs and a BIND."""

from __future__ import annotations

import pathlib
import re
import uuid

import pytest
from octodns.record import Record
from octodns.zone import Zone

from designate_pool import errors
from designate_pool.octodns_provider import DesignatePoolProvider
from tests.functional.planner.conftest import RECORDS, OctodnsPool


def totals(log: str) -> str:
    """How many changes ``octodns-sync`` says that it made."""
    return str(re.findall(r'(\d+) total changes', log)[-1])


def test_a_zone_is_planned_made_served_and_the_second_round_is_empty(octodns_pool: OctodnsPool) -> None:
    name = 'first.example.com.'
    octodns_pool.write(name)
    octodns_pool.configure(name)
    writes = octodns_pool.writes()
    assert 'Creates=14, Updates=0, Deletes=0' in octodns_pool.sync()
    assert name not in octodns_pool.names()
    assert octodns_pool.writes() == writes
    assert totals(octodns_pool.sync('--doit')) == '14'
    assert octodns_pool.writes() == writes + 1
    zone = octodns_pool.zone(name)
    assert zone['email'] == 'dns@example.com'
    assert octodns_pool.served(f'www.{name}', 'A') == ['192.0.2.1', '192.0.2.2']
    assert octodns_pool.served(name, 'TXT') == ['"v=DKIM1; k=rsa; p=MIGf"', '"v=spf1 -all"']
    assert octodns_pool.served(f'alias.{name}', 'CNAME') == [f'www.{name}']
    assert octodns_pool.served(name, 'NS') == ['ns1.example.org.', 'ns2.example.org.']
    again = octodns_pool.sync('--doit')
    assert totals(again) == '0' and 'No changes were planned' in again
    assert octodns_pool.zone(name)['serial'] == zone['serial']


def test_the_pool_can_be_dumped_and_what_was_dumped_is_what_is_there(octodns_pool: OctodnsPool) -> None:
    name = 'dump.example.com.'
    octodns_pool.filled(name)
    dumped = octodns_pool.run('octodns-dump', '--output-dir', str(octodns_pool.folder / 'again'), name, 'pool')
    assert dumped.returncode == 0, dumped.stderr
    (octodns_pool.folder / 'again' / f'{name}yaml').rename(octodns_pool.yaml / f'{name}yaml')
    assert totals(octodns_pool.sync('--doit')) == '0'


def test_the_zones_of_the_pool_are_listed_for_octodns(octodns_pool: OctodnsPool) -> None:
    for name in ('listed.example.com.', 'Listed.Example.net.'):
        octodns_pool.stack.wait_for(octodns_pool.stack.create_zone(name)['id'])
    octodns_pool.stack.command('zone', 'create', 'empty.example', '--type', 'SECONDARY', '--master', '192.0.2.1')
    provider = DesignatePoolProvider('pool', url=octodns_pool.stack.url)
    names = set(provider.list_zones())
    assert {'listed.example.com.', 'listed.example.net.'} <= names and 'empty.example.' not in names


def test_root_ns_records_are_the_pools_own(octodns_pool: OctodnsPool) -> None:
    name = 'root.example.com.'
    octodns_pool.write(name, '? \'\'\n: type: NS\n  value: ns.example.net.\nwww:\n  type: A\n  value: 192.0.2.1\n')
    octodns_pool.configure(name)
    refused = octodns_pool.run('octodns-sync', '--doit')
    assert refused.returncode != 0 and 'root NS record not supported' in refused.stderr
    octodns_pool.configure(name, more='strict_supports: false')
    assert totals(octodns_pool.sync('--doit')) == '1'
    octodns_pool.zone(name)
    assert octodns_pool.served(name, 'NS') == ['ns1.example.org.', 'ns2.example.org.']
    assert totals(octodns_pool.sync('--doit')) == '0'


def test_a_record_that_octodns_cannot_have_is_left_alone(octodns_pool: OctodnsPool) -> None:
    name = 'odd.example.com.'
    zone = octodns_pool.filled(name)
    octodns_pool.stack.create_recordset(str(zone['id']), f'h.{name}', 'HINFO', '"PC" "Linux"')
    octodns_pool.stack.create_recordset(str(zone['id']), f't.{name}', 'TXT', '"\\"all of it quoted\\""')
    octodns_pool.zone(name)
    log = octodns_pool.sync('--doit')
    assert totals(log) == '0' and f't.{name} TXT: ' in log
    assert octodns_pool.served(f'h.{name}', 'HINFO') == ['"PC" "Linux"']


@pytest.mark.parametrize('given', ['', 'type: A\n  value: 192.0.2.8', 'type: CNAME\n  value: www.example.com.'])
def test_what_users_do_not_change_stays_and_the_rest_is_done(octodns_pool: OctodnsPool, given: str) -> None:
    name = f'f{uuid.uuid4().hex[:10]}.example.com.'
    zone_id = str(octodns_pool.filled(name)['id'])
    created = [octodns_pool.stack.create_recordset(zone_id, f'{label}.{name}', 'A', '192.0.2.9')
               for label in ('managed', 'locked')]
    if 'CNAME' in given:
        octodns_pool.stack.create_recordset(zone_id, f'locked.{name}', 'TXT', '"of the same name"')
    octodns_pool.make(zone_id, f'managed.{name}', managed=True)
    octodns_pool.stack.request('POST', f'/v2/zones/{zone_id}/recordsets/{created[1]["id"]}/tasks/lock', 200,
                               json={'reason': 'an incident'})
    octodns_pool.write(name, RECORDS.replace('value: 192.0.2.9', 'value: 192.0.2.10') + (
        f'managed:\n  {given}\nlocked:\n  {given}\n' if given else ''))
    log = octodns_pool.sync('--doit')
    assert totals(log) == '1' and f'locked.{name} A: it is locked: an incident; it is not changed' in log
    assert (f'managed.{name} A: it is there for a floating IP' in log) is ('type: A' in given)
    octodns_pool.zone(name)
    assert [octodns_pool.served(f'{label}.{name}', 'A') for label in ('managed', 'locked', 'old')] == [
        ['192.0.2.9'], ['192.0.2.9'], ['192.0.2.10']]
    assert len(octodns_pool.served(f'locked.{name}', 'TXT')) == ('CNAME' in given)


def test_a_locked_zone_is_left_alone_and_the_other_zones_are_done(octodns_pool: OctodnsPool) -> None:
    names = [f'{label}{uuid.uuid4().hex[:10]}.example.com.' for label in ('a', 'b')]
    zones = [octodns_pool.filled(name) for name in names]
    octodns_pool.stack.request('POST', f'/v2/zones/{zones[0]["id"]}/tasks/lock', 200, json={'reason': 'an incident'})
    octodns_pool.configure(*names)
    for name in names:
        octodns_pool.write(name, RECORDS.replace('value: 192.0.2.9', 'value: 192.0.2.10'))
    log = octodns_pool.sync('--doit')
    assert totals(log) == '1' and f'old.{names[0]} A: the zone is locked: an incident; it is not changed' in log


def test_what_is_fixed_is_asked_for_only_when_something_differs(octodns_pool: OctodnsPool,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    name = f'q{uuid.uuid4().hex[:10]}.example.com.'
    octodns_pool.filled(name)
    provider, desired = DesignatePoolProvider('pool', url=octodns_pool.stack.url), Zone(name, [])
    provider.populate(desired)
    asked: list[str] = []
    send = provider._api.send
    monkeypatch.setattr(provider._api, 'send', lambda *args, **more: asked.append(args[1]) or send(*args, **more))
    assert provider.plan(desired) is None and len(asked) == 2
    desired.remove_record(next(record for record in desired.records if record.name == 'old'))
    assert provider.plan(desired) is not None and len(asked) == 5


def test_data_that_dns_cannot_have_is_told_by_a_dry_run(octodns_pool: OctodnsPool) -> None:
    name = 'wrong.example.com.'
    octodns_pool.write(name, 'host:\n  type: TLSA\n  value: {certificate_usage: 3, selector: 1, matching_type: 1, '
                       'certificate_association_data: 0123456789abcdef}\n')
    octodns_pool.configure(name)
    refused = octodns_pool.run('octodns-sync')
    assert refused.returncode != 0 and f'host.{name} TLSA: not TLSA data' in refused.stderr
    octodns_pool.configure(name, more='strict_supports: false')
    assert totals(octodns_pool.sync('--doit')) == '0'


@pytest.mark.parametrize(('wrong', 'why'), [
    ('www:\n- {octodns: {lenient: true}, type: CNAME, value: a.example.net.}\n'
     '- {octodns: {lenient: true}, type: A, value: 192.0.2.1}\n',
     'has A already'),
    ("'*':\n  type: NS\n  value: ns1.example.net.\n", 'cannot be at a wildcard'),
], ids=['cname-beside', 'wildcard-ns'])
def test_what_the_pool_would_refuse_is_refused_or_left_out_by_a_dry_run(octodns_pool: OctodnsPool, wrong: str,
                                                                        why: str) -> None:
    name = f'{why.split()[0].lower()}.example.com.'
    octodns_pool.write(name, 'www:\n  type: CNAME\n  value: a.example.net.\n')
    octodns_pool.configure(name)
    octodns_pool.sync('--doit')
    octodns_pool.write(name, wrong + 'x:\n  type: A\n  value: 192.0.2.1\n' + (
        '' if wrong.startswith('www') else 'www:\n  type: CNAME\n  value: a.example.net.\n'))
    refused = octodns_pool.run('octodns-sync')
    assert refused.returncode != 0 and why in refused.stderr
    octodns_pool.configure(name, more='strict_supports: false')
    log = octodns_pool.sync('--doit')
    assert totals(log) == '1' and why in log
    assert octodns_pool.served(f'www.{name}', 'CNAME') == ['a.example.net.']


def test_a_name_without_a_final_dot_is_written_and_is_no_reason_to_delete(octodns_pool: OctodnsPool) -> None:
    name = 'dot.example.com.'
    octodns_pool.configure(name)
    for value, changes in (('a.example.net.', '1'), ('a.example.net', '0'), ('b.example.net', '1')):
        octodns_pool.write(name, f'www: {{octodns: {{lenient: true}}, type: CNAME, value: {value}}}\n')
        assert totals(octodns_pool.sync('--doit', '--force')) == changes
        octodns_pool.zone(name)
        assert octodns_pool.served(f'www.{name}', 'CNAME') == [f'{value.rstrip(".")}.']


def test_a_zone_that_somebody_else_changes_meanwhile_is_not_changed(octodns_pool: OctodnsPool) -> None:
    name = 'race.example.com.'
    zone_id = octodns_pool.stack.create_zone(name)['id']
    octodns_pool.stack.wait_for(zone_id)
    provider = DesignatePoolProvider('pool', url=octodns_pool.stack.url)
    desired = Zone(name, [])
    desired.add_record(Record.new(desired, 'www', {'type': 'A', 'ttl': 60, 'value': '192.0.2.1'}))
    plan = provider.plan(desired)
    assert plan is not None and plan.exists
    octodns_pool.stack.create_recordset(zone_id, f'other.{name}', 'A', '192.0.2.2')
    with pytest.raises(errors.PoolError) as caught:
        provider.apply(plan)
    assert 'serial' in str(caught.value)
    again = provider.plan(desired)
    assert again is not None and again.change_counts == {'Create': 1, 'Delete': 1, 'Update': 0}
    provider.apply(again)
    assert provider.plan(desired) is None
    desired.add_record(Record.new(desired, 'ftp', {'type': 'A', 'ttl': 60, 'value': '192.0.2.1'}))
    plan = provider.plan(desired)
    octodns_pool.stack.delete_zone(zone_id)
    octodns_pool.stack.wait_for(zone_id, 'gone')
    with pytest.raises(errors.PlanMoved, match='the zone is not there any more'):
        provider.apply(plan)
    assert name not in octodns_pool.names()


def test_changes_that_wait_for_approval_are_told(octodns_pool: OctodnsPool, monkeypatch: pytest.MonkeyPatch,
                                                 caplog: pytest.LogCaptureFixture) -> None:
    name = 'guarded.example.com.'
    octodns_pool.stack.wait_for(octodns_pool.stack.create_zone(name)['id'])
    provider = DesignatePoolProvider('pool', url=octodns_pool.stack.url)
    desired = Zone(name, [])
    desired.add_record(Record.new(desired, 'www', {'type': 'A', 'ttl': 60, 'value': '192.0.2.1'}))
    plan = provider.plan(desired)
    # Without authentication nothing waits.
    monkeypatch.setattr(provider._api, 'change', lambda *_: {'links': {'change': 'http://192.0.2.1/v2/changes/7f3a'}})
    provider.apply(plan)
    assert f'the changes of {name} wait for approval: http://192.0.2.1/v2/changes/7f3a' in caplog.text


def test_the_example_runs(octodns_pool: OctodnsPool, tmp_path: pathlib.Path) -> None:
    name = 'shown.example.com.'
    (tmp_path / 'zones').mkdir()
    (tmp_path / 'zones' / f'{name}yaml').write_text('www:\n  type: TXT\n  value: a; b\n')
    example = (pathlib.Path(__file__).resolve().parents[3] / 'etc' / 'example-octodns.yaml').read_text()
    octodns_pool.config.write_text(example.replace('./zones', str(tmp_path / 'zones'))
                                   .replace('http://127.0.0.1:9001', octodns_pool.stack.url))
    assert totals(octodns_pool.sync('--doit')) == '1'
    octodns_pool.zone(name)
    assert octodns_pool.served(f'www.{name}', 'TXT') == ['"a; b"']
    assert totals(octodns_pool.sync('--doit')) == '0'
