"""The alerts and the dashboard in ``etc``, by promtool: each alert fires when it should and is silent when not, every
metric that is asked for exists, and every alert has its page."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY

from designate_pool import metrics  # noqa: F401  (registers ours)
from designate_pool.cli.command_table import COMMANDS
from testing.processes import binary

ROOT = pathlib.Path(__file__).resolve().parents[3]
ALERTS = ROOT / 'etc' / 'prometheus' / 'alerts.yaml'
DASHBOARD = ROOT / 'etc' / 'grafana' / 'designate-pool.json'
PAGES = ROOT / 'doc' / 'source'
RULES = {rule['alert']: rule for group in yaml.safe_load(ALERTS.read_text())['groups'] for rule in group['rules']}

ACTIVE = 'designate_pool_server_state{pool="default",server="bind9:192.0.2.1:53",state="active"}'
RESTING = 'designate_pool_server_state{pool="default",server="bind9:192.0.2.1:53",state="maintenance"}'
SERVER = 'pool="default",server="bind9:192.0.2.1:53"'
TICK = 'designate_pool_last_tick_timestamp_seconds{instance="a",loop="%s"}'
RATE = '{instance="a",%s}'
AUDIT = 'designate_pool_audit_%s{pool="default",kind="SERIALS"}'

BEAT = 'designate_pool_heartbeat_timestamp_seconds{service="%s",pool="%s"}'
ALIVE = {BEAT % (service, pool): '0+60x60' for service, pool in (
    ('api', ''), ('central', ''), ('minidns', 'default'), ('pool_manager', 'default'))}

#: By alert: series by which it fires after half an hour, and series by which it does not.
Series = dict[str, str]
SITUATIONS: dict[str, tuple[list[Series], list[Series]]] = {
    'DesignatePoolServiceDown': (
        [{**ALIVE, BEAT % ('minidns', 'silver'): '0+60x10 _x50'},
         {**ALIVE, BEAT % ('minidns', 'silver'): '0+60x10 600x50'},
         *({series: values for series, values in ALIVE.items() if service not in series}
           for service in ('api', 'minidns', 'pool_manager')), {}],
        [ALIVE]),
    'DesignatePoolManagerStuck': (
        [{TICK % 'due': '0+60x3 180x40', TICK % 'probes': '0+60x60'}, {}],
        [{TICK % 'due': '0+60x60', TICK % 'serial_audit': '0x60'}]),
    'DesignatePoolLoopFailing': (
        [{'designate_pool_loop_failures_total{instance="a",loop="due"}': '0+1x60'}],
        [{'designate_pool_loop_failures_total{instance="a",loop="due"}': '7x60'}]),
    'DesignatePoolServerDown': (
        [{'designate_pool_circuit_open{%s,channel="dns"}' % SERVER: '1x60', ACTIVE: '1x60'}],
        [{'designate_pool_circuit_open{%s,channel="dns"}' % SERVER: '0x60', ACTIVE: '1x60'},
         {'designate_pool_circuit_open{%s,channel="dns"}' % SERVER: '1x60', ACTIVE: '0x60', RESTING: '1x60'}]),
    'DesignatePoolServerBehind': (
        [{'designate_pool_serial_lag_seconds{%s}' % SERVER: '0+60x60', ACTIVE: '1x60'}],
        [{'designate_pool_serial_lag_seconds{%s}' % SERVER: '30x60', ACTIVE: '1x60'},
         {'designate_pool_serial_lag_seconds{%s}' % SERVER: '5000x60', ACTIVE: '0x60', RESTING: '1x60'}]),
    'DesignatePoolContentsDiverged': (
        [{'designate_pool_rows_diverged{%s}' % SERVER: '1x60', ACTIVE: '1x60'}],
        [{'designate_pool_rows_diverged{%s}' % SERVER: '0x60', ACTIVE: '1x60'},
         {'designate_pool_rows_diverged{%s}' % SERVER: '2x60', ACTIVE: '0x60', RESTING: '1x60'}]),
    'DesignatePoolAuditLate': (
        [{AUDIT % 'seconds': '140x60', AUDIT % 'interval_seconds': '120x60'},
         {AUDIT % 'started_timestamp_seconds': '0x60', AUDIT % 'interval_seconds': '120x60'},
         {AUDIT % 'started_timestamp_seconds': '0+60x60', AUDIT % 'seconds': '140x60',
          AUDIT % 'interval_seconds': '120x60'}],
        [{AUDIT % 'seconds': '119x60', AUDIT % 'interval_seconds': '120x60',
          AUDIT % 'started_timestamp_seconds': '120+60x60'},
         {AUDIT % 'seconds': '140x60', AUDIT % 'started_timestamp_seconds': '0x60',
          AUDIT % 'interval_seconds': '0x60'},
         {AUDIT % 'seconds': '140x5 110x60', AUDIT % 'interval_seconds': '120x60'}]),
    'DesignatePoolAuditIncomplete': (
        [{AUDIT % 'coverage': '0.9x60'},
         {AUDIT % 'coverage': '0.9x60', 'designate_pool_circuit_open{%s,channel="dns"}' % SERVER: '1x60',
          ACTIVE: '0x60', RESTING: '1x60'}],
        [{AUDIT % 'coverage': '1x60'},
         {AUDIT.replace('SERIALS', 'CONTENTS') % 'coverage': '0x60'},
         {AUDIT % 'coverage': '0.75x60', 'designate_pool_circuit_open{%s,channel="dns"}' % SERVER: '1x60',
          ACTIVE: '1x60'}]),
    'DesignatePoolAuditFindings': (
        [{AUDIT % 'findings': '1x60', AUDIT % 'domains': '10x60'},
         {AUDIT % 'findings': '200x60', AUDIT % 'domains': '1000000x60'}],
        [{AUDIT % 'findings': '0x60', AUDIT % 'domains': '10x60'},
         {AUDIT % 'findings': '20x60', AUDIT % 'domains': '1000000x60'}]),
    'DesignatePoolSignaturesWrong': (
        [{AUDIT.replace('SERIALS', 'SIGNATURES') % 'findings': '1x60'}],
        [{AUDIT.replace('SERIALS', 'SIGNATURES') % 'findings': '0x60', AUDIT % 'findings': '3x60'}]),
    'DesignatePoolSigningRefused': (
        [{'designate_pool_dnssec_refused_total{pool="default"}': '0+1x60'}],
        [{'designate_pool_dnssec_refused_total{pool="default"}': '7x60'}]),
    'DesignatePoolSigningHeld': (
        [{'designate_pool_dnssec_held{pool="default"}': '2x60'}],
        [{'designate_pool_dnssec_held{pool="default"}': '0x60'}]),
    'DesignatePoolSignaturesExpire': (
        [{'designate_pool_signatures_expire_timestamp_seconds{%s}' % SERVER: '170000x60'},
         {'designate_pool_signatures_expire_timestamp_seconds{%s}' % SERVER: '60x60'}],
        [{'designate_pool_signatures_expire_timestamp_seconds{%s}' % SERVER: '200000x60'}]),
    'DesignatePoolDueRowsOld': (
        [{'designate_pool_oldest_due_seconds{%s}' % SERVER: '0+60x60', ACTIVE: '1x60'}],
        [{'designate_pool_oldest_due_seconds{%s}' % SERVER: '2x60', ACTIVE: '1x60'},
         {'designate_pool_oldest_due_seconds{%s}' % SERVER: '0+60x60', ACTIVE: '0x60', RESTING: '1x60'}]),
    'DesignatePoolClocksDiffer': (
        [{'designate_pool_clock_ahead_seconds{instance="a"}': '90x60'},
         {'designate_pool_clock_ahead_seconds{instance="a"}': '-5x60'}],
        [{'designate_pool_clock_ahead_seconds{instance="a"}': '0.5x60'}]),
    'DesignatePoolConvergenceSlow': (
        [{'designate_pool_convergence_seconds_bucket{pool="default",le="60"}': '0+1x60',
          'designate_pool_convergence_seconds_bucket{pool="default",le="300"}': '0+10x60',
          'designate_pool_convergence_seconds_bucket{pool="default",le="+Inf"}': '0+10x60'}],
        [{'designate_pool_convergence_seconds_bucket{pool="default",le="60"}': '0+99x60',
          'designate_pool_convergence_seconds_bucket{pool="default",le="300"}': '0+100x60',
          'designate_pool_convergence_seconds_bucket{pool="default",le="+Inf"}': '0+100x60'}]),
    'DesignatePoolDomainsInError': (
        [{'designate_pool_domains{pool="default",status="ERROR"}': '3x60'}],
        [{'designate_pool_domains{pool="default",status="ERROR"}': '0x60',
          'designate_pool_domains{pool="default",status="PENDING"}': '500x60'}]),
    'DesignatePoolRpcFailing': (
        [{'designate_pool_rpc_calls_total' + RATE % 'service="central",method="m",outcome="failed"': '0+2x60'},
         {'designate_pool_rpc_casts_total' + RATE % 'service="minidns",method="m",outcome="failed"': '0+2x60'}],
        [{'designate_pool_rpc_calls_total' + RATE % 'service="central",method="m",outcome="refused"': '0+9x60'}]),
    'DesignatePoolDatabaseFailing': (
        [{'designate_pool_database_transactions_total' + RATE % 'kind="read",outcome="failed"': '0+2x60'}],
        [{'designate_pool_database_transactions_total' + RATE % 'kind="read",outcome="ok"': '0+900x60'}]),
    'DesignatePoolTransfersFailing': (
        [{'designate_pool_transfers_total{server="s",kind="axfr",outcome="no_zone"}': '0+3x60'}],
        [{'designate_pool_transfers_total{server="s",kind="soa",outcome="sent"}': '0+300x60'},
         {'designate_pool_transfers_total{server="visitor",kind="axfr",outcome="no_zone"}': '0+30x60'}]),
    'DesignatePoolQueriesRefused': (
        [{'designate_pool_refused_queries_total' + RATE % 'reason="BADTIME"': '0+5x60'}],
        [{'designate_pool_refused_queries_total' + RATE % 'reason="unsigned"': '0+1x60'}]),
    'DesignatePoolApiErrors': (
        [{'designate_pool_api_requests_total' + RATE % 'operation="list_zones",status="200"': '0+60x60',
          'designate_pool_api_requests_total' + RATE % 'operation="list_zones",status="503"': '0+6x60'}],
        [{'designate_pool_api_requests_total' + RATE % 'operation="list_zones",status="200"': '0+60x60',
          'designate_pool_api_requests_total' + RATE % 'operation="list_zones",status="404"': '0+60x60',
          'designate_pool_api_requests_total' + RATE % 'operation="list_zones",status="503"': '0+1x60'}]),
    'DesignatePoolPlansParked': (
        [{'designate_pool_plans_parked{pool="default"}': '1x60'}],
        [{'designate_pool_plans_parked{pool="default"}': '0x60'}]),
    'DesignatePoolReleaseHeld': (
        [{'designate_pool_releases{pool="default",state="held"}': '1x60'}],
        [{'designate_pool_releases{pool="default",state="running"}': '3x60'}]),
    'DesignatePoolNotificationsLost': (
        [{'designate_pool_notifications_total' + RATE % 'outcome="dropped"': '0+1x60'}],
        [{'designate_pool_notifications_total' + RATE % 'outcome="sent"': '0+50x60'}]),
}
#: When the situations are looked at.
AT = '35m'


def promtool(*arguments: str | pathlib.Path) -> None:
    done = subprocess.run([binary('promtool'), *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, f'{done.stdout}\n{done.stderr}'


def test_promtool_takes_the_rules_and_the_configuration() -> None:
    promtool('check', 'rules', ALERTS)
    promtool('check', 'config', ALERTS.parent / 'prometheus.yaml')


def test_each_alert_fires_when_it_should_and_only_then(tmp_path: pathlib.Path) -> None:
    assert SITUATIONS.keys() == RULES.keys()
    path = tmp_path / 'situations.yaml'
    path.write_text(yaml.safe_dump({'rule_files': [str(ALERTS)], 'evaluation_interval': '1m', 'tests': [
        situation(alert, series, fires) for alert, (firing, quiet) in SITUATIONS.items()
        for fires, each in ((True, firing), (False, quiet)) for series in each]}))
    promtool('test', 'rules', path)


def situation(alert: str, series: Series, fires: bool) -> dict[str, Any]:
    samples = [{'labels': '{}', 'value': 1}] if fires else []
    return {'interval': '1m', 'input_series': [{'series': name, 'values': values} for name, values in series.items()],
            'promql_expr_test': [{'expr': f'count(count by (alertname) (ALERTS{{alertname="{alert}",'
                                          'alertstate="firing"}))', 'eval_time': AT, 'exp_samples': samples}]}


@pytest.mark.parametrize('alert', RULES)
def test_an_alert_has_a_page_that_says_what_to_do(alert: str) -> None:
    rule = RULES[alert]
    assert rule['labels']['severity'] in ('warning', 'critical')
    assert rule['annotations']['summary']
    page = PAGES / rule['annotations']['runbook_url'].replace('.html', '.rst')
    text = page.read_text()
    assert f'Alert: ``{alert}``' in text
    for heading in ('What it means', 'What to examine', 'What to do'):
        assert f'\n{heading}\n' in text
    assert f'   runbooks/{page.stem}\n' in (PAGES / 'runbooks.rst').read_text()


def test_no_page_is_without_its_alert() -> None:
    assert {f'runbooks/{page.stem}.html' for page in (PAGES / 'runbooks').glob('*.rst')} == {
        rule['annotations']['runbook_url'] for rule in RULES.values()}


def metric_names() -> set[str]:
    """The names of all samples that there can be, those of the libraries' metrics too."""
    suffixes = {'counter': ('_total', '_created'), 'histogram': ('_bucket', '_sum', '_count', '_created'),
                'info': ('_info',)}
    return {family.name + suffix for family in REGISTRY.collect() for suffix in suffixes.get(family.type, ('',))}


def test_the_pages_tell_commands_and_metrics_that_there_are() -> None:
    commands = [each for page in (PAGES / 'runbooks').glob('*.rst')
                for each in re.findall(r'``designate-pool ((?:[a-z]+ ?)+)', ' '.join(page.read_text().split()))]
    assert len(commands) > 20
    assert [each for each in commands if not any(f'{each} '.startswith(f'{name} ') for name in COMMANDS)] == []
    told = {name for page in (PAGES / 'runbooks').glob('*.rst')
            for name in re.findall(r'\b(designate_pool_[a-z_]+)', page.read_text())}
    assert {name for name in told if not any(name in (known, known.removesuffix('_bucket'))
                                             for known in metric_names())} == set()


def test_alerts_and_dashboard_ask_for_metrics_that_there_are() -> None:
    asked = {name for expression in (*(rule['expr'] for rule in RULES.values()), *(each for _, each in expressions()))
             for name in re.findall(r'\b((?:designate_pool|process)_[a-z_]+)', expression)}
    assert len(asked) > 30
    assert asked - metric_names() == set()


def test_the_dashboard_shows_every_metric_of_ours() -> None:
    shown = '\n'.join(expression for _, expression in expressions())
    ours = {name.removesuffix('_total').removesuffix('_bucket') for name in metric_names()
            if name.startswith('designate_pool_') and not name.endswith(('_created', '_sum', '_count'))}
    assert {name for name in ours if name not in shown} == set()


def test_the_dashboard_is_one_that_grafana_loads() -> None:
    board = json.loads(DASHBOARD.read_text())
    assert board['schemaVersion'] >= 36 and board['uid'] and board['title'] and 'id' not in board
    variables = {each['name']: each for each in board['templating']['list']}
    assert variables['datasource']['type'] == 'datasource' and variables['datasource']['query'] == 'prometheus'
    panels = board['panels']
    assert len({panel['id'] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel['type'] in ('row', 'stat', 'timeseries') and panel['title']
        at = panel['gridPos']
        cells = {(x, y) for x in range(at['x'], at['x'] + at['w']) for y in range(at['y'], at['y'] + at['h'])}
        assert at['x'] + at['w'] <= 24 and not cells & taken, panel['title']
        taken |= cells
        if panel['type'] != 'row':
            assert panel['targets'] and panel['description'] and panel['datasource']['uid'] == '${datasource}'
        for target in panel.get('targets', ()):
            assert target['datasource']['uid'] == '${datasource}'
            assert set(re.findall(r'\$(?!__)(\w+)', target['expr'])) <= variables.keys()


def test_prometheus_parses_every_expression_of_the_dashboard(tmp_path: pathlib.Path) -> None:
    rules = [{'record': f'panel:{number}', 'expr': expression} for number, (_, expression) in enumerate(expressions())]
    path = tmp_path / 'dashboard.yaml'
    path.write_text(yaml.safe_dump({'groups': [{'name': 'dashboard', 'rules': rules}]}))
    promtool('check', 'rules', path)


def expressions() -> Iterator[tuple[str, str]]:
    """The title and expression of each of the dashboard's targets, with its variables set."""
    for panel in json.loads(DASHBOARD.read_text())['panels']:
        for target in panel.get('targets', ()):
            yield panel['title'], re.sub(r'\$(?!__)\w+', '.*', target['expr'].replace('$__rate_interval', '5m'))
