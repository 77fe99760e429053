"""What the status pages say, and that nothing can be smuggled into them."""

from __future__ import annotations

import dataclasses
import re
import types
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser

import falcon.testing
import pytest

from designate_pool.api.app import create_app
from designate_pool.api.auth.identity import Identity
from designate_pool.api.auth.middleware import AuthMiddleware
from designate_pool.api.http.limits import RateLimits
from designate_pool.api.status import html, pages
from designate_pool.api.views import explain, zone_servers
from designate_pool.errors import ServiceUnavailable
from designate_pool.model import (Action, Actor, Audit, AuditKind, ChangeKind, Counts, Domain, Outcome, ServerReport,
                                  ServerState, ServerStatus, ServiceStatus, Status, Version)
from designate_pool.storage.reporting.dashboard import RecentChange, RecentFailure
from tests.fixtures.observed_central import POOL, SERVER_IDS, SERVERS, PoolManager

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
HOSTILE = '<script>alert("1")</script>&"\''
ZONE = Domain('a' * 32, 'example.com.', 'b' * 32, 'default', 'a@example.com', 60, 2026050100, Action.UPDATE,
              created_at=NOON, changed_at=NOON, project_id=HOSTILE, request_id=HOSTILE)


class Balance(HTMLParser):
    """Notes elements that do not end where they should."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        if tag not in ('meta', 'link', 'input'):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(page):
    found = Balance()
    found.feed(page)
    found.close()
    assert found.open == []
    return found.names


def state(reports=(), changes=(), failures=(), programs=(), audits=()):
    return pages.PoolState('default', reports, changes, failures, programs, audits)


def report(number=0, state=ServerState.ACTIVE, silent_since=None, **values):
    server = dataclasses.replace(SERVERS[number], state=state, note=HOSTILE, silent_since=silent_since)
    return ServerReport(server, domains=7, **values)


def change(name='example.com.', seconds=None, status=Status.ACTIVE):
    return RecentChange('a' * 32, name, 2026050100, Action.NONE, status, NOON - timedelta(hours=1),
                        None if seconds is None else NOON - timedelta(hours=1) + timedelta(seconds=seconds))


@pytest.mark.parametrize(('reports', 'told'), [
    ([], 'No server of the pool is active.'),
    ([report(state=ServerState.MAINTENANCE)], 'No server of the pool is active.'),
    ([report(0), report(1)], '2 servers are active, and every one has all of 7 zones.'),
    ([report(0), report(1, waiting=3)], '2 servers are active; fake:192.0.2.2:53 still has work to do.'),
    ([report(0), report(1, silent_since=NOON)], '2 servers are active; fake:192.0.2.2:53 answers nobody.'),
    ([report(0, waiting=1, failing=1)], '1 server is active; 1 operation fails on fake:192.0.2.1:53.'),
])
def test_the_pool_in_a_sentence(reports, told):
    assert pages.pool_summary(reports) == told


def test_a_zone_that_no_server_was_given_is_told_to_be_in_error():
    found = dataclasses.replace(state([report(0), report(1)]), in_error=[('a' * 32, 'example.com.')])
    page = pages.pool_page(found, '', NOON)
    assert '2 servers are active; a zone is in ERROR.' in page and 'No operation on a server fails.' in page
    assert '/status/zones/aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa">example.com.</a>' in page


def test_nothing_is_smuggled_into_the_pools_page():
    page = pages.pool_page(state(
        [report(failing=1, waiting=1, oldest=NOON)], [change(HOSTILE)],
        [RecentFailure('a' * 32, HOSTILE, SERVER_IDS[0], Action.UPDATE, None, 1, 4, HOSTILE, NOON)],
        [ServiceStatus('c' * 32, HOSTILE, HOSTILE, 'UP', NOON)]), '', NOON)
    assert page.count('alert') >= 5 and '<script>' not in page
    assert parsed(page).count('script') == 1


def test_a_server_that_answers_nobody_is_marked_on_the_pools_page():
    assert '<span class="state bad">silent since 12:00:00</span>' in pages.pool_page(
        state([report(silent_since=NOON)]), '', NOON)


def test_nothing_is_smuggled_into_a_domains_page():
    row = ServerStatus(SERVER_IDS[0], ZONE.id, Action.UPDATE, 1, status=Outcome.ERROR, last_error=HOSTILE,
                       created_at=NOON, updated_at=NOON)
    shown = zone_servers.zone_servers(ZONE, SERVERS, [row], POOL, '')
    page = pages.zone_page(dataclasses.replace(ZONE, name=HOSTILE), {**shown, **explain.explain(shown, NOON)}, 3,
                           [Version(ZONE.id, 2, 2, 1, ChangeKind.API, Actor(HOSTILE, HOSTILE), created_at=NOON)], '',
                           NOON)
    assert page.count('alert') >= 7 and '<script>' not in page
    assert parsed(page).count('script') == 1


@pytest.mark.parametrize(('count', 'told'), [(0, '0'), (3, '3'), (pages.COUNTED, '10000 or more')])
def test_recordsets_are_counted_so_far(count, told):
    shown = zone_servers.zone_servers(ZONE, SERVERS, [], POOL, '')
    page = pages.zone_page(ZONE, {**shown, **explain.explain(shown, NOON)}, count, [], '', NOON)
    assert f'<dt>Recordsets</dt><dd>{told}</dd>' in page


def test_an_empty_pool():
    page = pages.pool_page(state(), '/dns', NOON)
    assert 'Nothing was changed yet.' in page and 'Nothing fails.' in page and 'The pool has no servers.' in page
    assert 'href="/dns/status/style.css"' in page
    parsed(page)


def cells(page, section):
    """The texts of each row of a section's table."""
    body = page.partition(f'id="{section}-caption"')[2].partition('<tbody>')[2].partition('</tbody>')[0]
    return [[re.sub('<[^>]*>', '', cell).replace('\N{NO-BREAK SPACE}', ' ')
             for cell in re.findall('<t[hd][^>]*>(.*?)</t[hd]>', row)] for row in body.split('</tr>')[:-1]]


def test_the_newest_versions():
    shown = zone_servers.zone_servers(ZONE, SERVERS, [], POOL, '')
    versions = [Version(ZONE.id, 3, 12, 11, ChangeKind.IMPORT, Actor('ada', 'blue'), created_at=NOON, gone=1, added=2),
                Version(ZONE.id, 1, 11, 11, ChangeKind.CREATE, Actor())]
    page = pages.zone_page(ZONE, {**shown, **explain.explain(shown, NOON)}, 3, versions, '', NOON)
    assert [row[1:] for row in cells(page, 'versions')] == [
        ['12', 'IMPORT', 'ada of blue', '2', '1'], ['11', 'CREATE', '–', '0', '0']]
    parsed(page)


def test_the_last_rounds_and_the_one_under_way():
    ago = NOON - timedelta(seconds=30)
    serials = Audit('b' * 32, AuditKind.SERIALS, ago, after_id='a' * 32, now=Counts(3, 6, 6, 1, 2),
                    last=Counts(100000, 400000, 400000, 1, 0), last_started_at=NOON - timedelta(hours=1),
                    last_seconds=110.5)
    contents = Audit('b' * 32, AuditKind.CONTENTS, NOON + timedelta(minutes=1), last=Counts(),
                     last_started_at=NOON - timedelta(days=1), last_seconds=0.0)
    page = pages.pool_page(state(audits=[serials, contents]), '', NOON)
    assert cells(page, 'audits') == [
        ['Serials', 'last', '2026-05-01 11:00:00', '1.8 min', '100000', '400000', '1', '0', '99.9 %'],
        ['Serials', 'now', '2026-05-01 11:59:30', 'since 30.0 s', '3', '6', '1', '2', '83.3 %'],
        ['Contents', 'last', '2026-04-30 12:00:00', '0 ms', '0', '0', '0', '0', '100 %']]
    assert page.count('<span class="bad">2</span>') == 1
    parsed(page)


def test_before_the_first_round():
    waiting = Audit('b' * 32, AuditKind.SERIALS, NOON - timedelta(seconds=1))
    assert 'No round has begun yet.' in pages.pool_page(state(audits=[waiting]), '', NOON)


class TestThePlot:
    def test_in_words(self):
        points = [pages.Point(0.02, 'done'), pages.Point(0.2, 'done'), pages.Point(90, 'pending')]
        assert pages.plot_summary(points).replace('\N{NO-BREAK SPACE}', ' ') == (
            '3 changes, the oldest on the left. 2 converged: half of them within 110 ms, all within 200 ms. 1 has not '
            'converged yet.')

    @pytest.mark.parametrize('seconds', [0.0, 0.001, 1.0, 1e3, 1e9])
    def test_every_time_has_a_place(self, seconds):
        shown = pages.plot([pages.Point(seconds, kind) for kind in ('done', 'pending', 'error')])
        for found in re.findall(r'c?y[12]?="([0-9.-]+)"', shown):
            assert 0 <= float(found) <= pages.HEIGHT
        assert parsed(shown).count('circle') == 2

    def test_the_longer_the_higher(self):
        heights = [float(found) for found in re.findall(r'cy="([0-9.]+)"', pages.plot(
            [pages.Point(seconds, 'done') for seconds in (0.05, 0.5, 5.0)]))]
        assert heights == sorted(heights, reverse=True) and len(set(heights)) == 3


@pytest.mark.parametrize(('seconds', 'told'), [(-1, '0 ms'), (0.0123, '12 ms'), (0.9999, '1.0 s'), (12.34, '12.3 s'),
                                               (90, '1.5 min'), (7200, '2.0 h'), (129600, '1.5 d')])
def test_lengths_of_time(seconds, told):
    assert html.span(seconds) == told.replace(' ', '\N{NO-BREAK SPACE}')


def test_what_is_no_html_is_escaped():
    assert html.el('p', HOSTILE, None, ['a', html.el('b', 1)], class_=HOSTILE, hidden=True, title=None) == (
        '<p class="&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&quot;&#x27;" hidden>'
        '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&quot;&#x27;a<b>1</b></p>')


@pytest.mark.parametrize('path', ['/status', '/status/zones/example.com'])
def test_who_is_no_browser_gets_errors_as_json(api, central, path):
    central.fault = ServiceUnavailable(service='central', why='it is being started')
    shown = api.simulate_get(path, headers={'Accept': 'application/json'})
    assert (shown.status_code, shown.json['type']) == (503, 'service_unavailable')


def test_a_zone_by_name_and_by_id(api, zone):
    for way in ('example.com', 'EXAMPLE.com.', zone['id']):
        page = api.simulate_get(f'/status/zones/{way}')
        assert (page.status_code, page.headers['Content-Type']) == (200, 'text/html; charset=utf-8')
        assert "default-src 'none'" in page.headers['Content-Security-Policy']
        parsed(page.text)
    for way in ('*', '*.com', 'example.net', 'e' * 32):
        assert api.simulate_get(f'/status/zones/{way}').status_code == 404


@pytest.mark.parametrize(('identity', 'status'), [
    (Identity('blue', ('member',), user='blue', key='blue'), 403), (None, 401)])
def test_a_refusal_is_a_page_in_a_browser(central, identity, status):
    who = types.SimpleNamespace(identify=lambda req: identity, challenge=lambda req: 'Token')
    gate = AuthMiddleware(who, types.SimpleNamespace(allow=lambda rule, identity: False), RateLimits(0, 1))
    guarded = falcon.testing.TestClient(create_app(central, POOL, pool_managers=PoolManager(), storage=central.storage,
                                                   gate=gate))
    shown = guarded.simulate_get('/status', headers={'Accept': 'text/html,*/*'})
    assert (shown.status_code, shown.headers['Content-Type']) == (status, 'text/html; charset=utf-8')
    assert 'This cannot be shown' in shown.text
    parsed(shown.text)
    assert guarded.simulate_get('/status', headers={'Accept': 'application/json'}).json['code'] == status
