"""``designate-pool plan list``, ``plan show`` and ``plan drop``: stored plans."""

from __future__ import annotations

import argparse
import json
from datetime import datetime, timezone

from designate_pool.cli.args.sync_config import SyncCommand, dashed
from designate_pool.cli.base import Lister, Shown, ShowOne, TextCommand, all_columns, columns, rows
from designate_pool.cli.http.errors import Json
from designate_pool.cli.render import diff
from designate_pool.errors import ApiUnreachable, WrongPlanState
from designate_pool.model import PlanState, StoredPlan
from designate_pool.planner.plan.plan_store import FolderStore
from designate_pool.planner.providers.pool_api import ApiStore, stored_plan

LIST_COLUMNS = ('id', 'state', 'zone', 'target', 'creates', 'updates', 'deletes', 'created_at', 'expires_at')
COLUMNS = ('id', 'state', 'zone', 'target', 'creates', 'updates', 'deletes', 'why', 'asked_by', 'created_at',
           'expires_at', 'applied_at')
#: The states in which a plan in a folder may be dropped.
_DROPPABLE = (PlanState.STORED, PlanState.DROPPED)


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('plan', metavar='PLAN', help='its id, or the first four or more digits of it')


class ListPlans(SyncCommand, Lister):
    """List the stored plans, the newest first: those of operators, and those that pool managers have parked."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--state', type=str.upper, choices=[state.value for state in PlanState])

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        setup = self.setup_if_any(parsed_args)
        folder = setup.plans if setup is not None else None
        plans: list[StoredPlan] = []
        if folder is not None:
            plans += (plan for plan in FolderStore(folder).find() if parsed_args.state in (None, plan.state.value))
        try:
            plans += map(stored_plan, self.api(setup).plans(state=parsed_args.state))
        except ApiUnreachable as error:
            if folder is None:
                raise
            self.app.stderr.write(f'Plans of the pool are not shown: {error}\n')
        plans.sort(key=_created_at, reverse=True)
        return rows(LIST_COLUMNS, map(_shown, plans))


class ShowPlan(SyncCommand, TextCommand):
    """Show a stored plan: all that it would change, and why it waits."""

    add_arguments = staticmethod(_add_plan)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        _, plan = self.find(self.setup_if_any(parsed_args), parsed_args.plan)
        return all_columns({**_shown(plan), 'document': json.loads(plan.document or '{}')})

    def text(self, found: Json) -> str:
        return '\n'.join(diff.of_plan(found)) + '\n'


class DropPlan(SyncCommand, ShowOne):
    """Drop a plan: it is not applied any more.  A parked one is made again if it is still needed."""

    add_arguments = staticmethod(_add_plan)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        setup = self.setup_if_any(parsed_args)
        store, plan = self.find(setup, parsed_args.plan)
        if isinstance(store, ApiStore):
            self.api(setup).drop_plan(plan.id)
        elif plan.state not in _DROPPABLE:
            raise WrongPlanState(plan=plan.id, state=plan.state, why='it was applied already')
        else:
            store.settle(plan.id, PlanState.DROPPED, 'dropped by command')
        return columns(_shown(store.get(plan.id)), COLUMNS)


def _shown(plan: StoredPlan) -> Json:
    columns = {name: getattr(plan, name) for name in COLUMNS}
    columns |= {name: _moment(columns[name]) for name in ('created_at', 'expires_at', 'applied_at')}
    return columns | {'id': dashed(plan.id), 'state': plan.state.value}


def _created_at(plan: StoredPlan) -> datetime:
    return plan.created_at or datetime.min.replace(tzinfo=timezone.utc)


def _moment(at: datetime | None) -> str | None:
    return None if at is None else f'{at:%Y-%m-%dT%H:%M:%SZ}'
