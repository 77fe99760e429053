"""Commands that use the configuration of a sync: which file that is, and where plans are stored."""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import uuid
from collections.abc import Collection, Mapping

from designate_pool.cli.base import ApiCommand, Argument, Arguments
from designate_pool.cli.client import Client, of_zone, session_for
from designate_pool.cli.connection import ApiConnection, CliError
from designate_pool.model import StoredPlan
from designate_pool.planner import config_file
from designate_pool.planner.engine import Setup
from designate_pool.planner.plan.plan_store import FolderStore, PlanStore
from designate_pool.planner.providers.pool_api import ApiStore, PoolApi
from designate_pool.planner.targets.pool import PoolProvider

DEFAULT_FILE = 'designate-pool-sync.yaml'
VARIABLE = 'DESIGNATE_POOL_SYNC_CONFIG'
#: Digits of a plan's id that are shown where it is to be typed.
SHORT = 8
#: Options that limit a run to some sources and targets.
SOURCE_AND_TARGET = (Argument('--source', action='append', default=[], metavar='ID',
                              help='only zones that have this source; may be given more than once'),
                     Argument('--target', action='append', default=[], metavar='ID',
                              help='only this target; may be given more than once'))


class SyncCommand(ApiCommand):
    """A command that may have a configuration file."""

    arguments: Arguments = (
        Argument('--config', metavar='FILE',
                 help=f'the configuration; {VARIABLE} if not given, else {DEFAULT_FILE} in this folder'),)

    def setup(self, parsed_args: argparse.Namespace) -> Setup:
        """The configuration of sources and targets; CliError without one, BadConfiguration with all its mistakes."""
        setup = self.setup_if_any(parsed_args)
        if setup is None:
            raise CliError(f'There is no configuration: give one as --config FILE or in {VARIABLE}, or go to the '
                           f'folder that has a {DEFAULT_FILE}.')
        return setup

    def setup_if_any(self, parsed_args: argparse.Namespace) -> Setup | None:
        """As :meth:`setup`; None when there is no configuration."""
        path = path_of(parsed_args.config, os.environ)
        return None if path is None else config_file.read(path)

    def connection(self, setup: Setup | None) -> ApiConnection:
        """The API of the options, environment and clouds, else that of the configuration's pool, with its token.

        The pool counts only where all pools of the configuration have one API.
        """
        api_settings: ApiConnection = self.app.settings  # type: ignore[attr-defined]
        if api_settings.given is not None:
            return api_settings
        pools = [provider for provider in (setup.providers if setup else {}).values()
                 if isinstance(provider, PoolProvider)]
        if len({pool.url for pool in pools}) != 1:
            return api_settings
        return dataclasses.replace(api_settings, given=pools[0].url, token=api_settings.token or pools[0].token)

    def store(self, setup: Setup) -> PlanStore:
        """Where new plans are stored."""
        return FolderStore(setup.plans) if setup.plans is not None else self.api_store(setup)

    def api_store(self, setup: Setup | None) -> ApiStore:
        """The pool's own store of plans, where :meth:`connection` finds the API."""
        connection = self.connection(setup)
        return ApiStore(PoolApi(connection.url, session=session_for(connection.url, connection)))

    def find(self, setup: Setup | None, given: str) -> tuple[PlanStore, StoredPlan]:
        """A plan, by at least four digits of its id, and its store: the configuration's folder, else the pool's."""
        plan_id = given.replace('-', '').lower()
        if setup is not None and setup.plans is not None:
            folder = FolderStore(setup.plans)
            if any(plan.id.startswith(plan_id) for plan in folder.find()):
                return folder, folder.get(plan_id)
        store = self.api_store(setup)
        return store, store.get(plan_id)


def path_of(given: str | None, environ: Mapping[str, str]) -> pathlib.Path | None:
    """Which file is the configuration; None when there is none."""
    named = given or environ.get(VARIABLE)
    if named:
        return pathlib.Path(named)
    default = pathlib.Path(DEFAULT_FILE)
    return default if default.is_file() else None


def zone_names(given: Collection[str]) -> list[str]:
    """Names of zones with their final dots."""
    return [of_zone(name) for name in given]


def short(plan_id: str) -> str:
    """The first digits of a plan's id, as people are shown it."""
    return plan_id[:SHORT]


def dashed(plan_id: str) -> str:
    """A plan's id as the API shows it."""
    return str(uuid.UUID(plan_id))


def client(target: PoolProvider, own: Client) -> Client:
    """The command's client for the API of *target*."""
    if own.url == target.url.rstrip('/'):
        return own
    return Client(target.url, settings=ApiConnection(token=target.token))


def plural(count: int, what: str) -> str:
    """A count with its noun, which gets an ``s`` unless it is one."""
    return f'{count} {what}' if count == 1 else f'{count} {what}s'
