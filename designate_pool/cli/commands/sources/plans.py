"""``designate-pool plan list``, ``plan show`` and ``plan drop``: plans that are kept."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

from designate_pool.cli import base
from designate_pool.cli.args.sync_config import SyncCommand, whole
from designate_pool.cli.base import Json, Lister, ShowOne, TextCommand
from designate_pool.cli.render import diff
from designate_pool.errors import ApiUnreachable, WrongPlanState
from designate_pool.model import PlanState, StoredPlan
from designate_pool.planner.plan.plan_store import FolderStore
from designate_pool.planner.providers.pool_api import ApiStore, stored_plan

Shown = tuple[Sequence[str], Iterable[Any]]
LIST_COLUMNS = ('id', 'state', 'zone', 'target', 'creates', 'updates', 'deletes', 'created_at', 'expires_at')
COLUMNS = ('id', 'state', 'zone', 'target', 'creates', 'updates', 'deletes', 'why', 'asked_by', 'created_at',
           'expires_at', 'applied_at')
#: What a plan in a folder may be dropped in.
_DROPPABLE = (PlanState.STORED, PlanState.DROPPED)


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('plan', metavar='PLAN', help='its id, or the first four or more digits of it')


class ListPlans(SyncCommand, Lister):
    """List the stored plans, the newest first: those of operators, and those that pool managers have parked."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--state', type=str.upper, choices=[state.value for state in PlanState])
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        setup = self.setup_if_any(parsed_args)
        folder = setup.plans if setup is not None else None
        found: list[StoredPlan] = []
        if folder is not None:
            found += (each for each in FolderStore(folder).find() if parsed_args.state in (None, each.state.value))
        try:
            found += map(stored_plan, self.api(setup).plans(state=parsed_args.state))
        except ApiUnreachable as error:
            if folder is None:
                raise
            self.app.stderr.write(f'Plans of the pool are not shown: {error}\n')
        found.sort(key=_made_at, reverse=True)
        return LIST_COLUMNS, [[_shown(each)[name] for name in LIST_COLUMNS] for each in found]


class ShowPlan(SyncCommand, TextCommand):
    """Show a stored plan: all that it would change, and why it waits."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_plan(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        _, found = self.find(self.setup_if_any(parsed_args), parsed_args.plan)
        shown = {**_shown(found), 'document': json.loads(found.document or '{}')}
        return tuple(shown), tuple(shown.values())

    def text(self, found: Json) -> str:
        return '\n'.join(diff.of_plan(found)) + '\n'


class DropPlan(SyncCommand, ShowOne):
    """Drop a plan: it is not applied any more.  A parked one is made again if it is still needed."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_plan(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        setup = self.setup_if_any(parsed_args)
        store, found = self.find(setup, parsed_args.plan)
        if isinstance(store, ApiStore):
            self.api(setup).drop_plan(found.id)
        elif found.state not in _DROPPABLE:
            raise WrongPlanState(plan=found.id, state=found.state, why='it was applied already')
        else:
            store.settle(found.id, PlanState.DROPPED, 'dropped by command')
        return base.columns(_shown(store.get(found.id)), COLUMNS, parsed_args.formatter)


def _shown(plan: StoredPlan) -> Json:
    found = {name: getattr(plan, name) for name in COLUMNS}
    found |= {name: _moment(found[name]) for name in ('created_at', 'expires_at', 'applied_at')}
    return found | {'id': whole(plan.id), 'state': plan.state.value}


def _made_at(plan: StoredPlan) -> datetime:
    return plan.created_at or datetime.min.replace(tzinfo=timezone.utc)


def _moment(at: datetime | None) -> str | None:
    return None if at is None else f'{at:%Y-%m-%dT%H:%M:%SZ}'
