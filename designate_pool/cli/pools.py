"""``designate-pool pool ...``, and the name servers that a zone has from its pool."""

from __future__ import annotations

import argparse

from designate_pool.cli.base import Json, Lister, Shown, ShowOne
from designate_pool.cli.choosing import add_zone

LIST_COLUMNS = ('id', 'name', 'description')
AUDIT_COLUMNS = ('kind', 'round', 'started_at', 'seconds', 'domains', 'asked', 'unanswered', 'findings', 'coverage')
NAMESERVER_COLUMNS = ('hostname', 'priority')


class ListPools(Lister):
    """List the pools."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        found = self.client.every('/v2/pools', 'pools')
        return LIST_COLUMNS, ([each.get(column) for column in LIST_COLUMNS] for each in found)


class ShowPool(ShowOne):
    """Show a pool."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('pool', metavar='POOL', help='name, or id or the first four or more digits of it')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        found: Json = self.client.get(f'/v2/pools/{self.client.pool(parsed_args.pool)["id"]}')
        if parsed_args.formatter not in ('json', 'yaml'):
            found['ns_records'] = [f'{each["priority"]} {each["hostname"]}' for each in found['ns_records']]
        names = [name for name in found if name != 'links']
        return names, [found[name] for name in names]


class ShowAudits(Lister):
    """Show when all zones of a pool were last looked at on all servers, and what was found.

    A round asks every server for the serial of every zone, or compares its contents. Coverage is the share of zones
    and servers that an answer came for; findings are what was thought to be right and was not: it is mended unasked.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('pool', metavar='POOL', nargs='?', default='default',
                            help="name, or id or the first four or more digits of it; 'default' if none is given")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        found = self.client.get(f'/v2/pools/{self.client.pool(parsed_args.pool)["id"]}/audits')['audits']
        rounds = [(each['kind'], which, each[which]) for each in found for which in ('last', 'now')
                  if each[which] is not None]
        return AUDIT_COLUMNS, ([kind, which, *(one[column] for column in AUDIT_COLUMNS[2:])]
                               for kind, which, one in rounds)


class ListNameservers(Lister):
    """List the name servers of a zone."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        found = self.client.get(f'/v2/zones/{self.client.zone(parsed_args.zone)["id"]}/nameservers')['nameservers']
        return NAMESERVER_COLUMNS, ([each[column] for column in NAMESERVER_COLUMNS] for each in found)
