"""``designate-pool zone blacklist ...``: patterns of names that zones may not have."""

from __future__ import annotations

import argparse

from designate_pool.cli.base import ApiCommand, Lister, Shown, ShowOne, columns, options_given, rows
from designate_pool.cli.http.errors import CliError

COLUMNS = ('id', 'pattern', 'description', 'created_at', 'updated_at')


def _add_blacklist(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('blacklist', metavar='PATTERN', help='pattern, or id or the first four or more digits of it')


class ListBlacklists(Lister):
    """List the patterns of names that zones may not have."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(COLUMNS[:3], self.client.every('/v2/blacklists', 'blacklists', sort_key='pattern'))


class ShowBlacklist(ShowOne):
    """Show a pattern of names that zones may not have."""

    add_arguments = staticmethod(_add_blacklist)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.blacklist(parsed_args.blacklist), COLUMNS)


class CreateBlacklist(ShowOne):
    """Add a pattern of names that zones may not have.

    It is a regular expression that is looked for in the whole name, in lower case and with its final dot.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('pattern', metavar='PATTERN', help=r"such as '^([a-z0-9_-]+\.)*example\.com\.$'")
        parser.add_argument('--description')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, 'pattern', 'description')
        return columns(self.client.change('POST', '/v2/blacklists', body), COLUMNS)


class SetBlacklist(ShowOne):
    """Change a pattern of names that zones may not have."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_blacklist(parser)
        parser.add_argument('--pattern', help='another pattern')
        description = parser.add_mutually_exclusive_group()
        description.add_argument('--description')
        description.add_argument('--no-description', action='store_true')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, 'pattern', 'description')
        if parsed_args.no_description:
            body['description'] = None
        if not body:
            raise CliError('Nothing to change; give --pattern, --description or --no-description.')
        blacklist_id = self.client.blacklist(parsed_args.blacklist)['id']
        return columns(self.client.change('PATCH', f'/v2/blacklists/{blacklist_id}', body), COLUMNS)


class DeleteBlacklist(ApiCommand):
    """Remove a pattern of names that zones may not have."""

    add_arguments = staticmethod(_add_blacklist)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', f'/v2/blacklists/{self.client.blacklist(parsed_args.blacklist)["id"]}')
