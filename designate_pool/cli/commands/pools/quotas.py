"""``designate-pool quota ...`` and ``limits``: how much a project may have, and what the API takes."""

from __future__ import annotations

import argparse
import urllib.parse

from designate_pool.cli.base import ApiCommand, Shown, ShowOne, all_columns, options_given
from designate_pool.cli.http.errors import CliError

#: What can be limited; -1 is without limit.
RESOURCES = {
    'zones': 'of the project',
    'zone_recordsets': 'recordsets of one zone',
    'zone_records': 'records of one zone',
    'recordset_records': 'records of one recordset',
    'api_export_size': 'recordsets of a zone that is exported',
}
#: The API requires it to show another project.
_ALL_PROJECTS = {'X-Auth-All-Projects': 'true'}


def _path(project: str) -> str:
    return f'/v2/quotas/{urllib.parse.quote(project, safe="")}'


class ShowQuotas(ShowOne):
    """Show the quotas of a project; -1 is without limit."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('project_id', metavar='PROJECT', nargs='?', help='your own if not given')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        if parsed_args.project_id is None:
            return all_columns(self.client.get('/v2/quotas'))
        return all_columns(self.client.send('GET', _path(parsed_args.project_id), headers=_ALL_PROJECTS).json())


class SetQuotas(ShowOne):
    """Change the quotas of a project; -1 is without limit."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('project_id', metavar='PROJECT', help='its id')
        for name, what in RESOURCES.items():
            parser.add_argument(f'--{name.replace("_", "-")}', type=int, metavar='N', help=what)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, *RESOURCES)
        if not body:
            options = ', '.join(f'--{name.replace("_", "-")}' for name in RESOURCES)
            raise CliError(f'Nothing to change; give one of {options}.')
        answer = self.client.send('PATCH', _path(parsed_args.project_id), json=body, headers=_ALL_PROJECTS)
        return all_columns(answer.json())


class UnsetQuotas(ApiCommand):
    """Reset the quotas of a project to those of the configuration."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('project_id', metavar='PROJECT', help='its id')

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', _path(parsed_args.project_id), headers=_ALL_PROJECTS)


class ShowLimits(ShowOne):
    """Show the limits of the API."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return all_columns(self.client.get('/v2/limits'))
