"""``designate-pool zone blacklist ...`` and ``designate-pool tld ...``: which names zones may have."""

from __future__ import annotations

import argparse

from designate_pool.cli.base import ApiCommand, Lister, Shown, ShowOne, columns, options_given, rows
from designate_pool.cli.http.errors import CliError

BLACKLIST_COLUMNS = ('id', 'pattern', 'description', 'created_at', 'updated_at')


def _add_blacklist(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('blacklist', metavar='PATTERN', help='pattern, or id or the first four or more digits of it')


class ListBlacklists(Lister):
    """List the patterns of names that zones may not have."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(BLACKLIST_COLUMNS[:3], self.client.every('/v2/blacklists', 'blacklists', sort_key='pattern'))


class ShowBlacklist(ShowOne):
    """Show a pattern of names that zones may not have."""

    add_arguments = staticmethod(_add_blacklist)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.blacklist(parsed_args.blacklist), BLACKLIST_COLUMNS)


class CreateBlacklist(ShowOne):
    """Add a pattern of names that zones may not have.

    It is a regular expression that is looked for in the whole name, in lower case and with its final dot.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('pattern', metavar='PATTERN', help=r"such as '^([a-z0-9_-]+\.)*example\.com\.$'")
        parser.add_argument('--description')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, 'pattern', 'description')
        return columns(self.client.change('POST', '/v2/blacklists', body), BLACKLIST_COLUMNS)


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
        return columns(self.client.change('PATCH', f'/v2/blacklists/{blacklist_id}', body), BLACKLIST_COLUMNS)


class DeleteBlacklist(ApiCommand):
    """Remove a pattern of names that zones may not have."""

    add_arguments = staticmethod(_add_blacklist)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', f'/v2/blacklists/{self.client.blacklist(parsed_args.blacklist)["id"]}')


TLD_COLUMNS = ('id', 'name', 'description', 'created_at', 'updated_at')


def _add_tld(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('tld', metavar='TLD', help='name, or id or the first four or more digits of it')


class ListTlds(Lister):
    """List the top-level domains that zones may lie below."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(TLD_COLUMNS[:3], self.client.every('/v2/tlds', 'tlds', sort_key='name'))


class ShowTld(ShowOne):
    """Show a top-level domain."""

    add_arguments = staticmethod(_add_tld)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.tld(parsed_args.tld), TLD_COLUMNS)


class CreateTld(ShowOne):
    """Add a top-level domain; with the first, every new zone lies below one of them.

    Zones that there are already stay as they are.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('name', metavar='NAME', help='such as com, or co.uk')
        parser.add_argument('--description')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = {'name': parsed_args.name.removesuffix('.'), **options_given(parsed_args, 'description')}
        return columns(self.client.change('POST', '/v2/tlds', body), TLD_COLUMNS)


class SetTld(ShowOne):
    """Change a top-level domain."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_tld(parser)
        parser.add_argument('--name', help='another name')
        description = parser.add_mutually_exclusive_group()
        description.add_argument('--description')
        description.add_argument('--no-description', action='store_true')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, 'name', 'description')
        if parsed_args.no_description:
            body['description'] = None
        if not body:
            raise CliError('Nothing to change; give --name, --description or --no-description.')
        tld_id = self.client.tld(parsed_args.tld)['id']
        return columns(self.client.change('PATCH', f'/v2/tlds/{tld_id}', body), TLD_COLUMNS)


class DeleteTld(ApiCommand):
    """Remove a top-level domain; the zones below it stay."""

    add_arguments = staticmethod(_add_tld)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', f'/v2/tlds/{self.client.tld(parsed_args.tld)["id"]}')
