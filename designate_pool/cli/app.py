"""The application: which words lead to which command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from cliff import app, command, commandmanager

from designate_pool import __version__
from designate_pool.cli import dumping, planning, plans, recordsets, reporting, servers, status, zones
from designate_pool.cli.client import DEFAULT_URL, Client, Failure

#: Packages beside ours may add commands under this group of entry points.
NAMESPACE = 'designate_pool.cli'
COMMANDS: dict[str, type[command.Command]] = {
    'apply': planning.ApplyPlan,
    'compare': dumping.CompareZones,
    'dump': dumping.DumpZones,
    'plan': planning.MakePlan,
    'plan drop': plans.DropPlan,
    'plan list': plans.ListPlans,
    'plan show': plans.ShowPlan,
    'recordset create': recordsets.CreateRecordSet,
    'recordset delete': recordsets.DeleteRecordSet,
    'recordset list': recordsets.ListRecordSets,
    'recordset set': recordsets.SetRecordSet,
    'recordset show': recordsets.ShowRecordSet,
    'report': reporting.ReportZone,
    'server drain': servers.DrainServer,
    'server list': servers.ListServers,
    'server maintenance': servers.RestServer,
    'server reload': servers.ReloadServers,
    'server resume': servers.ResumeServer,
    'server resync': servers.ResyncServer,
    'server show': servers.ShowServer,
    'status': status.ShowStatus,
    'validate': dumping.Validate,
    'zone create': zones.CreateZone,
    'zone delete': zones.DeleteZone,
    'zone explain': zones.ExplainZone,
    'zone export': zones.ExportZone,
    'zone import': zones.ImportZone,
    'zone list': zones.ListZones,
    'zone set': zones.SetZone,
    'zone show': zones.ShowZone,
}


class Shell(app.App):
    """``designate-pool``."""

    NAME = 'designate-pool'
    client: Client

    def __init__(self, **streams: Any) -> None:
        manager = commandmanager.CommandManager(NAMESPACE)
        for name, found in COMMANDS.items():
            manager.add_command(name, found)
        super().__init__('Zones, recordsets and servers of a pool of DNS servers.', __version__, manager,
                         deferred_help=True, **streams)

    def build_option_parser(self, description: str | None, version: str | None,
                            argparse_kwargs: dict[str, Any] | None = None) -> argparse.ArgumentParser:
        parser = super().build_option_parser(description, version, {'prog': self.NAME, **(argparse_kwargs or {})})
        # None is not the default address: who has a configuration that names a pool need not name it twice.
        parser.add_argument('--url', default=os.environ.get('DESIGNATE_POOL_URL') or None,
                            help=f'where the API is; DESIGNATE_POOL_URL if not given, else {DEFAULT_URL}')
        return parser

    def initialize_app(self, argv: list[str]) -> None:
        if not argv and not self.options.deferred_help:  # cliff would go on to ask for commands, one after the other
            raise Failure("No command was given; 'designate-pool --help' shows them.")
        self.client = Client(self.options.url or DEFAULT_URL)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    return Shell().run(given or ['--help'])


if __name__ == '__main__':
    sys.exit(main())
