"""``designate-pool quota ...`` and ``limits``: how much a project may have, and what the API takes."""

from __future__ import annotations

import argparse
import urllib.parse

from designate_pool.cli.base import ApiCommand, Json, Shown, ShowOne
from designate_pool.cli.http.client import CliError

#: What can be limited; -1 is without limit.
RESOURCES = {
    'zones': 'of the project',
    'zone_recordsets': 'recordsets of one zone',
    'zone_records': 'records of one zone',
    'recordset_records': 'records of one recordset',
    'api_export_size': 'recordsets of a zone that is exported',
}


#: What the API wants to see before it tells of another project.
_OF_OTHERS = {'X-Auth-All-Projects': 'true'}


def _path(project: str) -> str:
    return f'/v2/quotas/{urllib.parse.quote(project, safe="")}'


def _all(found: Json) -> Shown:
    names = sorted(name for name in found if name != 'links')
    return names, [found[name] for name in names]


class ShowQuotas(ShowOne):
    """Show the quotas of a project; -1 is without limit."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('project_id', metavar='PROJECT', nargs='?', help='your own if not given')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        if parsed_args.project_id is None:
            return _all(self.client.get('/v2/quotas'))
        return _all(self.client.send('GET', _path(parsed_args.project_id), headers=_OF_OTHERS).json())


class SetQuotas(ShowOne):
    """Change the quotas of a project; -1 is without limit."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('project_id', metavar='PROJECT', help='its id')
        for name, what in RESOURCES.items():
            parser.add_argument(f'--{name.replace("_", "-")}', type=int, metavar='N', help=what)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = {name: value for name in RESOURCES if (value := getattr(parsed_args, name)) is not None}
        if not body:
            options = ', '.join(f'--{name.replace("_", "-")}' for name in RESOURCES)
            raise CliError(f'Nothing to change; give one of {options}.')
        return _all(self.client.send('PATCH', _path(parsed_args.project_id), json=body, headers=_OF_OTHERS).json())


class UnsetQuotas(ApiCommand):
    """Reset the quotas of a project to those of the configuration."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('project_id', metavar='PROJECT', help='its id')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', _path(parsed_args.project_id), headers=_OF_OTHERS)


class ShowLimits(ShowOne):
    """Show the limits of the API."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return _all(self.client.get('/v2/limits'))
