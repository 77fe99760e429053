"""``designate-pool plan list``, ``plan show`` and ``plan drop``: stored plans; and changes as text.

``zone changes``: plans that are changes of zones, which wait for approval.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from urllib.parse import quote

from designate_pool.cli.base import Argument, Arguments, Lister, Shown, ShowOne, TextCommand, all_columns, columns, rows
from designate_pool.cli.client import Json
from designate_pool.cli.commands.sync_base import SyncCommand, dashed
from designate_pool.errors import ApiUnreachable, WrongPlanState
from designate_pool.model import PlanState, StoredPlan
from designate_pool.planner.plan.plan import change_of
from designate_pool.planner.plan.plan_store import FolderStore
from designate_pool.planner.providers.pool_api import ApiStore
from designate_pool.planner.zone.changes import Change
from designate_pool.protocol.rrset import RRset

LIST_COLUMNS = ('id', 'state', 'zone', 'target', 'creates', 'updates', 'deletes', 'created_at', 'expires_at')
COLUMNS = ('id', 'state', 'zone', 'target', 'creates', 'updates', 'deletes', 'why', 'asked_by', 'created_at',
           'expires_at', 'applied_at')
#: The states in which a plan in a folder may be dropped.
_DROPPABLE = (PlanState.STORED, PlanState.DROPPED)
#: What can be done with a plan, by its state.
_NEXT = {
    'STORED': "'designate-pool apply {short}' applies exactly this, 'designate-pool plan drop {short}' drops it.",
    'FAILED': "'designate-pool apply {short}' applies the rest, if nothing else has changed.",
    'PARKED': "'designate-pool apply {short}' approves exactly this; after 'designate-pool plan drop {short}' a new "
              'plan is made.',
    'APPROVED': 'It is applied at the next try.',
}


_PLAN = Argument('plan', metavar='PLAN', help='its id, or the first four or more digits of it')


class PlanList(SyncCommand, Lister):
    """List the stored plans, the newest first: those of operators, and those that pool managers have parked."""

    arguments = (Argument('--state', type=str.upper, choices=[state.value for state in PlanState]),)
    long_columns = ('expires_at',)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        setup = self.setup_if_any(parsed_args)
        folder = setup.plans if setup is not None else None
        plans: list[StoredPlan] = []
        if folder is not None:
            plans += FolderStore(folder).find(parsed_args.state and PlanState(parsed_args.state))
        try:
            plans += self.api_store(setup).find(parsed_args.state and PlanState(parsed_args.state))
        except ApiUnreachable as error:
            if folder is None:
                raise
            self.app.stderr.write(f'Plans of the pool are not shown: {error}\n')
        plans.sort(key=lambda plan: plan.created_at or datetime.min.replace(tzinfo=timezone.utc), reverse=True)
        return rows(LIST_COLUMNS, map(_shown, plans))


class PlanShow(SyncCommand, TextCommand):
    """Show a stored plan: all that it would change, and why it waits."""

    arguments = (_PLAN,)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        _, plan = self.find(self.setup_if_any(parsed_args), parsed_args.plan)
        return all_columns({**_shown(plan), 'document': json.loads(plan.document or '{}')})

    def text(self, found: Json) -> str:
        return '\n'.join(of_plan(found)) + '\n'


class ZoneChanges(Lister):
    """List the changes of zones that wait for approval, the newest first."""

    arguments = (
        Argument('zone', metavar='ZONE', nargs='?', help='name or id; all zones if not given'),
        Argument('--state', type=str.upper, choices=('PARKED', 'APPLIED', 'DROPPED'), default='PARKED',
                 help='PARKED, those that wait, if not given; APPLIED for approved and DROPPED for refused ones'))
    long_columns = ('state', 'expires_at')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone_id = None if parsed_args.zone is None else self.client.any_zone_id(parsed_args.zone)
        changes = self.client.every('/v2/changes', 'changes', zone_id=zone_id, state=parsed_args.state)
        return rows(('id', 'zone_name', 'asked_by', 'creates', 'updates', 'deletes', 'why', 'state', 'created_at',
                     'expires_at'), changes)


class _Change(TextCommand):
    """Shows a change that waits for approval, or has."""

    arguments: Arguments = (
        Argument('change', metavar='CHANGE', help='its id, or the first four or more digits of it'),)

    def path(self, parsed_args: argparse.Namespace) -> str:
        return f'/v2/changes/{quote(parsed_args.change, safe="")}'

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return all_columns(self.client.get(self.path(parsed_args)))

    def text(self, found: Json) -> str:
        lines = [f'Change {found["id"]} of {found["zone_name"]} is {found["state"]}, asked by {found["asked_by"]}: '
                 f'{found["why"]}.']
        if found['state'] == 'PARKED':
            lines.append(f'  can be approved until {found["expires_at"][:19]}')
        for change in found['changes']:
            lines += ['', f'{change["name"]} {change["type"]}']
            lines += [f'  {sign} {json.dumps(state, sort_keys=True)}'
                      for sign, state in (('-', change['before']), ('+', change['after'])) if state is not None]
        return '\n'.join(lines) + '\n'


class ZoneChangesShow(_Change):
    """Show a change that waits for approval: what it changes, and who asked for it."""


class ZoneChangesApprove(_Change):
    """Approve a change that somebody else asked for: it is made, in the name of who asked."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        self.client.json('POST', f'{self.path(parsed_args)}/approve')
        return super().take_action(parsed_args)


class ZoneChangesRefuse(_Change):
    """Refuse a change that waits for approval, or withdraw one of your own."""

    arguments = (Argument('--reason', metavar='TEXT', help='why, for who asked for it'),)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        self.client.json('POST', f'{self.path(parsed_args)}/refuse', {'reason': parsed_args.reason})
        return super().take_action(parsed_args)


class PlanDrop(SyncCommand, ShowOne):
    """Drop a plan: it is not applied any more.  A parked one is made again if it is still needed."""

    arguments = (_PLAN,)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        setup = self.setup_if_any(parsed_args)
        store, plan = self.find(setup, parsed_args.plan)
        if isinstance(store, ApiStore):
            store.drop(plan.id)
        elif plan.state not in _DROPPABLE:
            raise WrongPlanState(plan=plan.id, state=plan.state, why='it was applied already')
        else:
            store.settle(plan.id, PlanState.DROPPED, 'dropped by command')
        return columns(_shown(store.get(plan.id)), COLUMNS)


def _shown(plan: StoredPlan) -> Json:
    columns = {name: getattr(plan, name) for name in COLUMNS}
    columns |= {name: _moment(columns[name]) for name in ('created_at', 'expires_at', 'applied_at')}
    return columns | {'id': dashed(plan.id), 'state': plan.state.value}


def _moment(at: datetime | None) -> str | None:
    return None if at is None else f'{at:%Y-%m-%dT%H:%M:%SZ}'


def of_changes(changes: Iterable[Change]) -> Iterator[str]:
    """Lines for each change: what is done, then the RRsets that it removes and those that it adds."""
    for change in changes:
        yield f'  {change.kind} {change.name} {" ".join(change.types)}'
        yield from (f'    - {_rrset(rrset)}' for rrset in change.existing)
        yield from (f'    + {_rrset(rrset)}' for rrset in change.new)


def of_plan(shown: Json) -> Iterator[str]:
    """Lines for a plan, as ``plan show`` shows it with the document."""
    yield f'Plan {shown["id"]} is {shown["state"]}: {shown["zone"]} on {shown["target"]}.'
    for name, title in (('created_at', 'made'), ('expires_at', 'can be applied until'), ('applied_at', 'applied')):
        if shown[name] is not None:
            yield f'  {title} {shown[name]}'
    if shown['asked_by']:
        yield f'  asked by {shown["asked_by"]}'
    yield from (f'  {line}' for line in (shown['why'] or '').splitlines())
    for part in parts(shown['document']):
        yield ''
        yield from _of_part(part)
    # The rest of a pool manager's plan is planned anew.
    if shown['state'] in _NEXT and (shown['state'] != 'FAILED' or 'parts' in shown['document']):
        yield ''
        yield _NEXT[shown['state']].format(short=shown['id'].replace('-', '')[:8])


def parts(document: Json) -> Sequence[Json]:
    """The plans of single zones in a stored plan: several in an operator's, one in a pool manager's."""
    parts: Sequence[Json] = document.get('parts', [document] if 'changes' in document else [])
    return parts


def _of_part(part: Json) -> Iterator[str]:
    counts = part['counts']
    yield (f'{part["zone"]} on {part["target"]}: {counts["creates"]} to create, {counts["updates"]} to update, '
           f'{counts["deletes"]} to delete; {part["existing_records"]} RRsets were there')
    if not part['exists']:
        yield '  Create zone'
    yield from of_changes(change_of(change) for change in part['changes'])
    for blocked in part['blocked']:
        yield f'  Blocked ({blocked["by"]}): {change_of(blocked["change"])}: {blocked["why"]}'
    if part['meta']:
        yield f'  Meta: {json.dumps(part["meta"], sort_keys=True)}'


def _rrset(rrset: RRset) -> str:
    extra = '' if rrset.extra.served == (None, None) else f' {json.dumps(rrset.extra.served, default=str)}'
    return f'{rrset.name} {rrset.ttl} {rrset.type} {"; ".join(rrset.rdatas)}{extra}'
