"""Former versions of zones over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from designate_pool.model import Context
from tests.fixtures.api import Place, opened


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from opened(tmp_path_factory.mktemp('versions'))


def changed(place: Place, zone: str, name: str, *records: str, rtype: str = 'A', ttl: int | None = None) -> int:
    body = {'changes': [{'name': name, 'type': rtype, 'records': list(records), 'ttl': ttl}]}
    serial: int = place.ask('POST', f'{zone}/changes', status=202, json=body).json['serial']
    return serial


def test_a_zone_as_it_was(place: Place) -> None:
    things = place.things('alpha')
    zone, name = f'/v2/zones/{things["zone_id"]}', things['zone_name']
    www = f'www.{name}'
    first = changed(place, zone, www, '192.0.2.2', '192.0.2.1')
    between = place.ask('GET', f'{zone}/versions').json['versions'][0]['created_at'] + '+00:00'
    second = changed(place, zone, f't.{name}', '"\N{LATIN SMALL LETTER E WITH ACUTE}; x"', rtype='TXT', ttl=60)
    place.ask('PATCH', zone, status=202, json={'ttl': 300})
    last = changed(place, zone, www, '192.0.2.3')
    for at in (str(first), quote(between)):
        shown = place.ask('GET', f'{zone}/versions/{at}', status=200).json
        assert (shown['name'], shown['ttl'], shown['serial']) == (name, 3600, first)
        assert shown['soa'].split()[2] == str(first)
    sets = place.ask('GET', f'{zone}/versions/{first}/recordsets', status=200).json['recordsets']
    assert sorted(sets, key=lambda each: (each['name'], each['type'])) == sets
    assert sets[-1] == {'name': www, 'type': 'A', 'ttl': None, 'records': ['192.0.2.1', '192.0.2.2']}
    assert [each['type'] for each in sets] == ['NS', 'A']
    for query, count in (({'type': 'a'}, 1), ({'name': www}, 1), ({'name': www, 'type': 'TXT'}, 0),
                         ({'name': name}, 1)):
        assert len(place.ask('GET', f'{zone}/versions/{second}/recordsets', params=query).json['recordsets']) == count
    export = place.ask('GET', f'{zone}/versions/{first}/export', status=200)
    assert export.headers['Content-Type'].startswith('text/dns')
    assert f'{www} 3600 IN A 192.0.2.2\n' in export.text and '192.0.2.3' not in export.text
    now = place.ask('GET', f'/v2/zones/tasks/exports/{things["zone_id"]}/export').text
    assert place.ask('GET', f'{zone}/versions/{last}/export').text == now

    difference = place.ask('GET', f'{zone}/versions/{first}/diff/{second}', status=200).json
    assert (difference['from_serial'], difference['to_serial']) == (first, second)
    assert [each['type'] for each in difference['changes']] == ['SOA', 'TXT']
    assert difference['changes'][1] == {'name': f't.{name}', 'type': 'TXT', 'ttl': 60, 'former_ttl': None,
                                        'records': [r'"\195\169; x"'], 'former_records': []}
    ttls = place.ask('GET', f'{zone}/versions/{second}/diff/0s').json['changes']
    assert [(each['type'], each['former_ttl'], each['ttl']) for each in ttls] == [
        ('SOA', 3600, 300), ('NS', 3600, 300), ('A', 3600, 300)]


def test_the_history_of_a_recordset(place: Place) -> None:
    things = place.things('alpha')
    zone, www = f'/v2/zones/{things["zone_id"]}', f'www.{things["zone_name"]}'
    changed(place, zone, www, '192.0.2.2', ttl=60)
    changed(place, zone, www, '2001:db8::1', rtype='AAAA')
    changed(place, zone, f'other.{things["zone_name"]}', '192.0.2.9')
    versions = place.ask('GET', f'{zone}/versions', params={'name': www}, status=200).json['versions']
    assert [(each['removed_records'], each['added_records']) for each in versions] == [
        ([], [f'{www} AAAA 2001:db8::1']), ([f'{www} A 192.0.2.1'], [f'{www} 60 A 192.0.2.2']),
        ([], [f'{www} A 192.0.2.1'])]
    first = place.ask('GET', f'{zone}/versions', params={'name': www.upper(), 'type': 'A', 'limit': '1'}).json
    assert first['versions'] == versions[1:2]
    following = place.ask('GET', first['links']['next'].removeprefix('http://falconframework.org')).json
    assert following['versions'] == versions[2:] and 'next' not in following['links']
    assert 'added_records' not in place.ask('GET', f'{zone}/versions').json['versions'][0]


def test_a_version_of_a_zone_that_may_not_be_exported_is_not_exported(place: Place) -> None:
    things = place.things('alpha')
    zone, www = f'/v2/zones/{things["zone_id"]}', f'www.{things["zone_name"]}'
    former = f'{zone}/versions/{changed(place, zone, www, "192.0.2.2")}'
    place.central.set_quotas(Context(project_id='alpha'), 'alpha', {'api_export_size': 0})
    try:
        for _ in range(2):  # the second time deleted
            for path in (f'{former}/export', f'{former}/recordsets'):
                assert place.ask('GET', path, status=413).json['type'] == 'over_quota'
                place.ask('GET', path, project='beta', status=404)
            place.ask('GET', f'{former}/recordsets', params={'name': www}, status=200)
            place.ask('DELETE', zone)
    finally:
        place.central.reset_quotas(Context(project_id='alpha'), 'alpha')


def test_a_difference_of_too_many_recordsets_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    things = place.things('alpha')
    zone, name = f'/v2/zones/{things["zone_id"]}', things['zone_name']
    first = place.ask('GET', zone).json['serial']
    for number in range(3):
        changed(place, zone, f'a{number}.{name}', '192.0.2.2')
    monkeypatch.setattr('designate_pool.api.resources.zones._MOST_CHANGED', 4)
    assert len(place.ask('GET', f'{zone}/versions/{first}/diff/0s', status=200).json['changes']) == 4
    place.ask('PATCH', zone, json={'ttl': 77}, status=202)  # of the two recordsets that were there, too
    refusal = place.ask('GET', f'{zone}/versions/{first}/diff/0s', status=413).json
    assert refusal['type'] == 'difference_too_large' and 'compare their exports' in refusal['message']
    monkeypatch.setattr('designate_pool.api.resources.zones._MOST_CHANGED', 2)
    place.ask('GET', f'{zone}/versions/{first}/diff/0s', status=413)


@pytest.mark.parametrize('at, status, why', [
    ('yesterday', 400, 'at: not a serial, nor a time such as'), ('2001-01-01', 404, 'it was created at '),
    ('7', 404, 'they are kept since serial ')])
def test_a_version_that_there_is_not(place: Place, at: str, status: int, why: str) -> None:
    zone = f'/v2/zones/{place.things("alpha")["zone_id"]}'
    for path in ('', '/recordsets', '/export', '/diff/0s'):
        assert why in place.ask('GET', f'{zone}/versions/{at}{path}', status=status).json['message']


def test_a_zone_that_a_restored_database_holds_is_explained(place: Place) -> None:
    things = place.things('alpha')
    place.central.dnssec.enable(Context(project_id='alpha'), things['zone_id'])
    place.central.renew_pool(Context(all_projects=True), things['pool_id'])
    explained = place.ask('GET', f'/v2/zones/{things["zone_id"]}/explain', status=200).json
    assert 'signing is held' in explained['summary'] and 'dnssec resume' in explained['summary']
