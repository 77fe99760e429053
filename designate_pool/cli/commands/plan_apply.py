"""``designate-pool plan`` and ``designate-pool apply``: zones from files, brought to the pool."""

from __future__ import annotations

import argparse
import dataclasses
import html
import json
import pathlib
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TextIO

from designate_pool.backoff import Backoff
from designate_pool.cli.base import Argument, wait_option
from designate_pool.cli.client import ApiRefusal, Client, Json
from designate_pool.cli.commands.plans import parts
from designate_pool.cli.commands.sync_base import (SOURCE_AND_TARGET, SyncCommand, client, dashed, plural, short,
                                                   zone_names)
from designate_pool.cli.connection import CliError
from designate_pool.cli.zone_wait import (DELETED_MEANWHILE, DONE, FAILED, TIMED_OUT, PendingChange, WaitOutcome,
                                          follow, poll)
from designate_pool.errors import UnsafePlan
from designate_pool.model import PlanState, Reason, StoredPlan
from designate_pool.planner.engine import Setup, SyncEngine
from designate_pool.planner.outputs import BaseOutput, HtmlOutput, JsonOutput, LogOutput, MarkdownOutput
from designate_pool.planner.plan.stored_plan import needs_apply
from designate_pool.planner.run_report import RunReport, TargetResult, lines_of
from designate_pool.planner.targets.pool import PoolProvider

PAUSE = Backoff(0.1, factor=1.0)
#: Seconds within which the servers that are fed by records have planned a change, and applied what was approved.
PLANNING_SECONDS = 10.0
#: Of a parked plan: a pool manager has still to apply it.
_UNDER_WAY = ('PARKED', 'APPROVED')


def zones(changed: Sequence[tuple[Client, str]], began: float, seconds: float, stream: TextIO) -> int:
    """Wait *seconds* in all until each zone is served at its serial of now; the worst exit code.

    :param began: when the wait did, by :func:`time.monotonic`
    """
    if not changed:
        stream.write('There is nothing to wait for: no zone of a pool was changed.\n')
    codes = []
    for api, name in changed:
        zone = api.zone(name)
        codes.append(follow(api, PendingChange(zone['id'], zone['name'], began, zone['serial']), seconds, stream))
    return next((code for code in (DELETED_MEANWHILE, FAILED, TIMED_OUT) if code in codes), DONE)


def waiting(api: Client, name: str) -> set[tuple[str, str]]:
    """The zone's name with the ids of servers on which a plan waits for approval; none if there is no zone."""
    try:
        return {(name, server['id']) for server in _servers(api, name) if server['plan_id'] is not None}
    except ApiRefusal:
        return set()


def approve_forced(api: Client, name: str, before: Collection[tuple[str, str]], end: float, stream: TextIO) -> None:
    """Approve what servers that are fed by records park of a change that was forced, and wait until it is applied.

    :param before: from :func:`waiting`; what waited before the change may be more than what was forced
    :param end: when to wait no longer, by :func:`time.monotonic`
    """
    approved: set[str] = set()

    def look() -> bool | None:
        servers = [server for server in _servers(api, name) if (name, server['id']) not in before]
        for server in servers:
            if server['plan_id'] is not None and server['plan_id'] not in approved:
                api.json('POST', f'/v2/plans/{server["plan_id"]}/approve')
                approved.add(server['plan_id'])
                stream.write(f'Plan {server["plan_id"]} of {name} on {server["name"]} is approved, since the zone is '
                             'forced.\n')
        # PARKED stays the reason of the last error until the approved plan is applied.
        return all(server['current'] or server['last_error'] is not None and server['reason'] != Reason.PARKED
                   for server in servers) or None

    try:
        poll(look, end, PAUSE)
    except ApiRefusal as error:
        stream.write(f'Plans of {name} may wait for approval: {error}\n')


def _servers(api: Client, name: str) -> list[Json]:
    return list(api.get(f'/v2/zones/{api.zone(name)["id"]}/servers')['servers'])


def parked(client: Client, plan: StoredPlan, seconds: float, stream: TextIO) -> int:
    """Wait until a plan that was approved is applied, and its zone is served; the exit code."""
    began = time.monotonic()
    assert plan.domain_id is not None and plan.server_id is not None
    outcome, failure = poll(lambda: _plan_outcome(client, plan), began + seconds, PAUSE)
    if outcome is None:
        why = f'plan {short(plan.id)} is not applied yet' if failure is None else str(failure).rstrip('.')
        stream.write(f'{plan.zone} is not done on {plan.target} after {seconds:g} s: {why}.\n')
        return TIMED_OUT
    stream.write(outcome.line + '\n')
    if outcome.code != DONE:
        return outcome.code
    return follow(client, PendingChange(dashed(plan.domain_id), plan.zone, began), seconds, stream)


def _plan_outcome(client: Client, plan: StoredPlan) -> WaitOutcome | None:
    """What became of the plan; None until that is known, and until the zone's state takes it into account."""
    shown_plan = client.get(f'/v2/plans/{dashed(plan.id)}')
    if shown_plan['state'] in _UNDER_WAY:
        return None
    if shown_plan['state'] != 'APPLIED':
        return WaitOutcome(FAILED, f'Plan {short(plan.id)} is {shown_plan["state"]}: {shown_plan["why"]}.')
    shown = client.get(f'/v2/zones/{shown_plan["zone_id"]}/servers')
    on_server = [server for server in shown['servers'] if server['id'] == shown_plan['server_id']]
    if not all(server['current'] for server in on_server):
        return None
    return WaitOutcome(DONE, f'Plan {short(plan.id)} is applied on {plan.target}.')


#: The exit code of ``plan --detailed-exitcode`` when there is something to do.
CHANGES = 2


def _as_html(report: RunReport, notes: Sequence[str]) -> str:
    paragraphs = ''.join(f'<p><code>{html.escape(note)}</code></p>\n' for note in notes)
    return HtmlOutput('plan').text(report.results) + paragraphs


#: The renderers of a report by the name of the format.
FORMS: dict[str, Callable[[RunReport, Sequence[str]], str]] = {
    'log': lambda report, notes: LogOutput('plan').text(report.results),
    'json': lambda report, notes: JsonOutput('plan', indent=2).text(report.results, report.plan_id),
    'markdown': lambda report, notes: MarkdownOutput('plan').text(report.results) + ''.join(
        f'\n    {note}\n' for note in notes),
    'html': _as_html,
}


class _PrintedLog(BaseOutput):
    """Prints what a configuration's output would log."""

    def __init__(self, output: LogOutput) -> None:
        super().__init__(output.id)
        self._output = output

    def text(self, results: Sequence[TargetResult], plan_id: str | None = None) -> str:
        return self._output.text(results)


class PlanCommand(SyncCommand):
    """Show what has to change so that zones match their sources, and store that plan for 'apply'.

    The exit code is 0 when all could be planned, 1 when something could not; with --detailed-exitcode 2 when all could
    be planned and there is something to do.
    """

    arguments = (
        Argument('zones', nargs='*', metavar='ZONE', help='only these zones; the final dot may be left out'),
        *SOURCE_AND_TARGET,
        Argument('-o', dest='form', choices=list(FORMS), help="in this form, instead of the configuration's "
                                                              'plan_outputs'),
        Argument('--output', dest='file', metavar='FILE', help='where to; standard output if not given'),
        Argument('--detailed-exitcode', action='store_true', help='0 nothing to do, 1 something could not be '
                                                                  'planned, 2 there is something to do'),
        Argument('--no-store', action='store_true', help='do not store the plan'))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        setup = self.setup(parsed_args)
        form = parsed_args.form or ('log' if parsed_args.file is not None else None)
        store = None if parsed_args.no_store else self.store(setup)
        engine = SyncEngine(_with_printed_logs(setup) if form is None else dataclasses.replace(setup, outputs=()),
                            self.app.stdout)
        report = engine.sync(zone_names(parsed_args.zones), parsed_args.source, parsed_args.target, store=store)
        notes = list(_next_steps(report, parsed_args.config))
        if form is not None:
            _write(FORMS[form](report, notes), parsed_args.file, self.app.stdout)
        self.app.stdout.flush()
        self.app.stderr.writelines(f'{note}\n' for note in notes)
        if report.failed:
            return 1
        return CHANGES if parsed_args.detailed_exitcode and any(map(needs_apply, report.results)) else 0


class ApplyCommand(SyncCommand):
    """Apply exactly the changes of a plan, or with --yes plan and apply in one go.

    A plan that 'designate-pool plan' stored is applied only while its sources and targets are unchanged; one that a
    pool manager has parked is approved.  The exit code is 0 when all was done, and when it was waited for, is served;
    3 when a zone is in ERROR, 4 when the time was over, 1 when it was refused or not all was done.
    """

    arguments = (
        Argument('names', nargs='*', metavar='PLAN', help='the id of a plan, or the first four or more digits of it; '
                                                          'with --yes: zones'),
        Argument('--yes', action='store_true', help='plan and apply in one go, without an id'),
        Argument('--force', action='append', default=[], metavar='ZONE',
                 help='change this zone though its plan is unsafe; may be given more than once'),
        *SOURCE_AND_TARGET,
        wait_option('the pool serves what was changed'))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.yes:
            return self._apply_at_once(parsed_args)
        if len(parsed_args.names) != 1:
            raise CliError("Name one plan ('designate-pool plan' makes one, 'designate-pool plan list' shows them), or "
                           'give --yes to plan and apply in one go.')
        if parsed_args.source or parsed_args.target:
            raise CliError('A plan is applied as a whole; --source and --target are for --yes, or for the next plan.')
        setup = self.setup_if_any(parsed_args)
        store, plan = self.find(setup, parsed_args.names[0])
        if plan.server_id is not None:
            return self._approve(parsed_args, setup, plan)
        setup = setup or self.setup(parsed_args)
        if plan.state is PlanState.APPLIED and parsed_args.wait is not None:
            self.app.stdout.write(f'Plan {dashed(plan.id)} was applied before.\n')
            self.app.stdout.flush()
            changed = [(part['target'], part['zone']) for part in parts(json.loads(plan.document))]
            return zones(list(self._of_pools(setup, changed)), time.monotonic(), parsed_args.wait, self.app.stderr)
        before = self._waiting(parsed_args, setup)
        try:
            # The plan was logged when it was made.
            others = tuple(output for output in setup.outputs if not isinstance(output, LogOutput))
            report = SyncEngine(dataclasses.replace(setup, outputs=others), self.app.stdout).apply(
                plan.id, store, zone_names(parsed_args.force))
        except UnsafePlan as error:
            raise CliError(_unsafe(error, f'apply {short(plan.id)}', parsed_args)) from error
        return self._finish(parsed_args, setup, report, before)

    def _apply_at_once(self, parsed_args: argparse.Namespace) -> int:
        setup = self.setup(parsed_args)
        before = self._waiting(parsed_args, setup)
        try:
            report = SyncEngine(_with_printed_logs(setup), self.app.stdout).sync(
                zone_names(parsed_args.names), parsed_args.source, parsed_args.target, dry_run=False,
                force=zone_names(parsed_args.force))
        except UnsafePlan as error:
            raise CliError(_unsafe(error, shlex.join(['apply', '--yes', *parsed_args.names]), parsed_args)) from error
        return self._finish(parsed_args, setup, report, before)

    def _waiting(self, parsed_args: argparse.Namespace, setup: Setup) -> set[tuple[str, str]]:
        """What waits for approval of the zones that are to be forced."""
        zones_of_pools = [(target, name) for name in zone_names(parsed_args.force) for target in setup.providers]
        return set[tuple[str, str]]().union(*(waiting(*zone) for zone in self._of_pools(setup, zones_of_pools)))

    def _approve(self, parsed_args: argparse.Namespace, setup: Setup | None, plan: StoredPlan) -> int:
        if parsed_args.force:
            raise CliError('A parked plan is approved as it is; --force is for plans of your own.')
        if parsed_args.wait is None or plan.state not in (PlanState.APPROVED, PlanState.APPLIED):
            self.api_store(setup).approve(plan.id)
            self.app.stdout.write(f'Plan {dashed(plan.id)} is approved; the pool manager applies it to {plan.zone} on '
                                  f'{plan.target} next.\n')
            self.app.stdout.flush()
        if parsed_args.wait is None:
            return 0
        connection = self.connection(setup)
        return parked(Client(connection.url, settings=connection), plan, parsed_args.wait, self.app.stderr)

    def _finish(self, parsed_args: argparse.Namespace, setup: Setup, report: RunReport,
                before: Collection[tuple[str, str]]) -> int:
        """Print what was done, and wait for it if told to; the exit code."""
        self.app.stdout.writelines(f'{line}\n' for line in _result_lines(report))
        self.app.stdout.flush()
        # Now, or by an earlier try to apply the same plan.
        changed = list(self._of_pools(setup, ((part.target_id, part.zone) for part in report.results
                                              if part.applied_before or part.result is not None and part.result.ok)))
        began = time.monotonic()
        end = began + max(PLANNING_SECONDS, parsed_args.wait or 0.0)
        for api, name in changed:
            if name in zone_names(parsed_args.force):
                approve_forced(api, name, before, end, self.app.stderr)
        code = 0
        if parsed_args.wait is not None:
            code = zones(changed, began, parsed_args.wait, self.app.stderr)
        return 1 if report.failed else code

    def _of_pools(self, setup: Setup, changed: Iterable[tuple[str, str]]) -> Iterable[tuple[Client, str]]:
        """Those of the changed zones, with targets, that are in pools."""
        for target_id, zone in changed:
            target = setup.providers.get(target_id)
            if isinstance(target, PoolProvider):
                yield client(target, self.client), zone


def _with_printed_logs(setup: Setup) -> Setup:
    """*setup* with its log outputs written to standard output instead."""
    return dataclasses.replace(setup, outputs=[_PrintedLog(output) if isinstance(output, LogOutput) else output
                                               for output in setup.outputs])


def _next_steps(report: RunReport, config: str | None) -> Iterable[str]:
    """Lines on what can be done with the plan."""
    if report.plan_id is not None and report.expires_at is not None:
        yield (f'Plan {dashed(report.plan_id)} is stored until {report.expires_at:%Y-%m-%d %H:%M} UTC; to apply '
               f'exactly this: {_command(f"apply {short(report.plan_id)}", config)}')
        for zone in dict.fromkeys(part.zone for part in report.unsafe):
            yield f'{zone} is unsafe to change; if it is meant, add --force {zone.removesuffix(".") or "."}'
    if report.failed:
        count = len(report.failed)
        skipped = '1 zone was skipped: it' if count == 1 else f'{count} zones were skipped: they'
        yield f'{skipped} could not be planned.'


def _command(words: str, config: str | None) -> str:
    return f'designate-pool {words}' if config is None else f'designate-pool {words} --config {shlex.quote(config)}'


def _unsafe(error: UnsafePlan, words: str, parsed_args: argparse.Namespace) -> str:
    zones = error.kwargs.get('zones') or (error.kwargs['zone'],)
    names = (*parsed_args.force, *(zone.removesuffix('.') or '.' for zone in zones))
    end = '\n' if len(zones) > 1 else ' '
    command = _command(words, parsed_args.config) + ''.join(f' --force {name}' for name in names)
    return f'{error}{end}Nothing was applied. If it is meant: {command}'


def _result_lines(report: RunReport) -> Iterable[str]:
    """The result of each zone, a line each."""
    for part in report.results:
        if part.result is not None or part.applied_before:
            made = part.result.applied if part.result is not None else 0
            before = f' ({part.applied_before} were made before)' if part.applied_before else ''
            yield f'{part.zone} on {part.target_id}: {made} of {plural(part.changes, "change")} applied{before}'
        yield from (f'{part.zone} on {part.target_id}: {error}' for error in _errors(part))
    if report.failed:
        yield f'{plural(len(report.failed), "zone")} failed; {report.applied} changes applied.'
    else:
        yield f'{plural(report.applied, "change")} applied.' if report.applied else 'Nothing was left to do.'


def _errors(part: TargetResult) -> Iterable[str]:
    if part.error is not None:
        return lines_of(part.error)
    return part.result.errors if part.result is not None else ()


def _write(text: str, file: str | None, stdout: TextIO) -> None:
    if file is None:
        stdout.write(text)
        return
    try:
        pathlib.Path(file).write_text(text, encoding='utf-8')
    except OSError as error:
        raise CliError(f'{file} cannot be written: {error.strerror or error}.') from error
