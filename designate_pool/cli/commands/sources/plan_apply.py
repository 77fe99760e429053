"""``designate-pool plan`` and ``designate-pool apply``: zones that are kept in files, brought to the pool."""

from __future__ import annotations

import argparse
import dataclasses
import html
import json
import pathlib
import shlex
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TextIO

from designate_pool.cli.args.sync_config import SyncCommand, add_choice, client, plural, short, whole, zone_names
from designate_pool.cli.base import seconds
from designate_pool.cli.http.client import Client, CliError
from designate_pool.cli.wait import apply_wait
from designate_pool.errors import UnsafePlan
from designate_pool.model import StoredPlan, utcnow
from designate_pool.planner.engine import SyncEngine
from designate_pool.planner.outputs import HtmlOutput, LogOutput, MarkdownOutput, document
from designate_pool.planner.plan.stored_plan import is_due
from designate_pool.planner.run_report import RunReport, TargetResult, lines_of
from designate_pool.planner.setup import Output, Setup
from designate_pool.planner.targets.pool import PoolProvider

#: What ``plan --detailed-exitcode`` ends with when there is something to do.
CHANGES = 2


class _Printed:
    """What a configuration has logged; of a command, that is its output."""

    def __init__(self, output: LogOutput) -> None:
        self.id = output.id
        self._output = output

    def run(self, parts: Sequence[TargetResult], file: TextIO) -> None:
        file.write(self._output.text(parts))


class MakePlan(SyncCommand):
    """Show what has to change so that zones match their sources, and store that plan for 'apply'.

    The exit code is 0 when all could be planned, 1 when something could not; with --detailed-exitcode 2 when all could
    be planned and there is something to do.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('zones', nargs='*', metavar='ZONE', help='only these zones; the final dot may be left out')
        add_choice(parser)
        parser.add_argument('-o', dest='form', choices=list(FORMS),
                            help="in this form, instead of the configuration's plan_outputs")
        parser.add_argument('--output', dest='file', metavar='FILE', help='where to; standard output if not given')
        parser.add_argument('--detailed-exitcode', action='store_true',
                            help='0 nothing to do, 1 something could not be planned, 2 there is something to do')
        parser.add_argument('--no-store', action='store_true', help='do not store the plan')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        setup = self.setup(parsed_args)
        form = parsed_args.form or ('log' if parsed_args.file is not None else None)
        store = None if parsed_args.no_store else self.store(setup)
        manager = SyncEngine(printed(setup) if form is None else dataclasses.replace(setup, outputs=()),
                             self.app.stdout)
        outcome = manager.sync(zone_names(parsed_args.zones), parsed_args.source, parsed_args.target, store=store)
        notes = list(_notes(outcome, parsed_args.config, setup.plan_lifetime))
        if form is not None:
            _write(FORMS[form](outcome, notes), parsed_args.file, self.app.stdout)
        self.app.stdout.flush()
        self.app.stderr.writelines(f'{note}\n' for note in notes)
        if outcome.failed:
            return 1
        return CHANGES if parsed_args.detailed_exitcode and any(map(is_due, outcome.parts)) else 0


class ApplyPlan(SyncCommand):
    """Apply exactly the changes of a plan, or with --yes plan and apply in one go.

    A plan that 'designate-pool plan' kept is applied only while the sources and the targets are as they were; one that
    a pool manager has parked is approved.  The exit code is 0 when all was done, and when it was waited for, is served;
    3 when the pool said ERROR, 4 when the time was over, 1 when it was refused or not all was done.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('names', nargs='*', metavar='PLAN',
                            help='the id of a plan, or the first four or more digits of it; with --yes: zones')
        parser.add_argument('--yes', action='store_true', help='plan and apply in one go, without an id')
        parser.add_argument('--force', action='append', default=[], metavar='ZONE',
                            help='change this zone though its plan is unsafe; may be given more than once')
        add_choice(parser)
        parser.add_argument('--wait', nargs='?', type=seconds, const=60.0, metavar='SECONDS',
                            help='wait until the pool serves what was changed, with progress on standard error; 60 '
                                 'seconds if no number is given (then put it last)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.yes:
            return self._apply_at_once(parsed_args)
        if len(parsed_args.names) != 1:
            raise CliError("Name one plan ('designate-pool plan' makes one, 'designate-pool plan list' shows them), or "
                           'give --yes to plan and apply in one go.')
        if parsed_args.source or parsed_args.target:
            raise CliError('A plan is applied as a whole; --source and --target are for --yes, or for the next plan.')
        setup = self.setup_if_any(parsed_args)
        store, found = self.find(setup, parsed_args.names[0])
        if found.server_id is not None:
            return self._approve(parsed_args, setup, found)
        setup = setup or self.setup(parsed_args)
        try:
            outcome = SyncEngine(_unprinted(setup), self.app.stdout).apply(found.id, store,
                                                                           zone_names(parsed_args.force))
        except UnsafePlan as error:
            raise CliError(_unsafe(error, f'apply {short(found.id)}', parsed_args)) from error
        return self._end(parsed_args, setup, outcome)

    def _apply_at_once(self, parsed_args: argparse.Namespace) -> int:
        setup = self.setup(parsed_args)
        try:
            outcome = SyncEngine(printed(setup), self.app.stdout).sync(
                zone_names(parsed_args.names), parsed_args.source, parsed_args.target, dry_run=False,
                force=zone_names(parsed_args.force))
        except UnsafePlan as error:
            raise CliError(_unsafe(error, shlex.join(['apply', '--yes', *parsed_args.names]), parsed_args)) from error
        return self._end(parsed_args, setup, outcome)

    def _approve(self, parsed_args: argparse.Namespace, setup: Setup | None, plan: StoredPlan) -> int:
        if parsed_args.force:
            raise CliError('A parked plan is approved as it is; --force is for plans of your own.')
        self.api(setup).approve_plan(plan.id)
        self.app.stdout.write(f'Plan {whole(plan.id)} is approved; the pool manager applies it to {plan.zone} on '
                              f'{plan.target} next.\n')
        self.app.stdout.flush()
        if parsed_args.wait is None:
            return 0
        place = self.place(setup)
        return apply_wait.parked(Client(place.url, settings=place), plan, parsed_args.wait, self.app.stderr)

    def _end(self, parsed_args: argparse.Namespace, setup: Setup, outcome: RunReport) -> int:
        """Say what was done, and wait for it if that was asked for; the exit code."""
        self.app.stdout.writelines(f'{line}\n' for line in _done(outcome))
        self.app.stdout.flush()
        code = 0
        if parsed_args.wait is not None:
            code = apply_wait.zones(list(self._changed(setup, outcome)), parsed_args.wait, self.app.stderr)
        return 1 if outcome.failed else code

    def _changed(self, setup: Setup, outcome: RunReport) -> Iterable[tuple[Client, str]]:
        """The zones of pools that were changed, now or by an earlier try to apply the same plan."""
        for part in outcome.parts:
            target = setup.providers[part.target_id] if part.target_id in setup.providers else None
            if isinstance(target, PoolProvider) and (part.earlier or part.result is not None and part.result.ok):
                yield client(target, self.client), part.zone


def printed(setup: Setup) -> Setup:
    """*setup* as commands show things: what would go to the log goes to standard output."""
    outputs: list[Output] = [_Printed(each) if isinstance(each, LogOutput) else each for each in setup.outputs]
    return dataclasses.replace(setup, outputs=outputs)


def _unprinted(setup: Setup) -> Setup:
    """*setup* without what would show a plan that was shown when it was made."""
    return dataclasses.replace(setup, outputs=tuple(each for each in setup.outputs if not isinstance(each, LogOutput)))


def _notes(outcome: RunReport, config: str | None, lifetime: timedelta) -> Iterable[str]:
    """What can be done with a plan that was made."""
    if outcome.plan_id is not None:
        until = utcnow() + lifetime
        yield (f'Plan {whole(outcome.plan_id)} is kept until {until:%Y-%m-%d %H:%M} UTC; to apply exactly this: '
               f'{_command(f"apply {short(outcome.plan_id)}", config)}')
        for zone in dict.fromkeys(part.zone for part in outcome.unsafe):
            yield f'{zone} is unsafe to change; if it is meant, add --force {zone.removesuffix(".") or "."}'
    if outcome.failed:
        yield f'{_skipped(len(outcome.failed))} could not be planned.'


def _skipped(count: int) -> str:
    return '1 zone was skipped: it' if count == 1 else f'{count} zones were skipped: they'


def _command(words: str, config: str | None) -> str:
    return f'designate-pool {words}' if config is None else f'designate-pool {words} --config {shlex.quote(config)}'


def _unsafe(error: UnsafePlan, words: str, parsed_args: argparse.Namespace) -> str:
    zone = str(error.kwargs['zone'])
    forced = ''.join(f' --force {each}' for each in (*parsed_args.force, zone.removesuffix('.') or '.'))
    return f'{error} Nothing was applied. If it is meant: {_command(words, parsed_args.config)}{forced}'


def _done(outcome: RunReport) -> Iterable[str]:
    """What became of each zone, a line each."""
    for part in outcome.parts:
        if part.result is not None or part.earlier:
            made = part.result.applied if part.result is not None else 0
            before = f' ({part.earlier} were made before)' if part.earlier else ''
            yield f'{part.zone} on {part.target_id}: {made} of {plural(part.changes, "change")} applied{before}'
        for error in _errors(part):
            yield f'{part.zone} on {part.target_id}: {error}'
    if outcome.failed:
        yield f'{plural(len(outcome.failed), "zone")} failed; {outcome.applied} changes applied.'
    else:
        yield f'{plural(outcome.applied, "change")} applied.' if outcome.applied else 'Nothing was left to do.'


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


def _as_json(outcome: RunReport, notes: Sequence[str]) -> str:
    plan_id = None if outcome.plan_id is None else whole(outcome.plan_id)
    return json.dumps({'plan_id': plan_id, **document(outcome.parts)}, indent=2, sort_keys=True) + '\n'


def _as_log(outcome: RunReport, notes: Sequence[str]) -> str:
    return LogOutput('plan').text(outcome.parts)


def _as_markdown(outcome: RunReport, notes: Sequence[str]) -> str:
    return MarkdownOutput('plan').text(outcome.parts) + ''.join(f'\n    {note}\n' for note in notes)


def _as_html(outcome: RunReport, notes: Sequence[str]) -> str:
    found = ''.join(f'<p><code>{html.escape(note)}</code></p>\n' for note in notes)
    return HtmlOutput('plan').text(outcome.parts) + found


#: By the user's word.
FORMS: dict[str, Callable[[RunReport, Sequence[str]], str]] = {
    'log': _as_log, 'json': _as_json, 'markdown': _as_markdown, 'html': _as_html,
}
