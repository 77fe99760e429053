"""``designate-pool pool ...``, and the name servers that a zone has from its pool."""

from __future__ import annotations

import argparse

from designate_pool.cli.args.common import add_zone
from designate_pool.cli.base import ApiCommand, Json, Lister, Shown, ShowOne
from designate_pool.cli.http.client import CliError

FACTS = ('name_servers', 'also_notifies', 'description')
#: Seconds that a change of all zones of a pool may take.
LONG = 660.0
LIST_COLUMNS = ('id', 'name', 'description')
AUDIT_COLUMNS = ('kind', 'round', 'started_at', 'seconds', 'domains', 'asked', 'unanswered', 'findings', 'coverage')
FINDING_COLUMNS = ('found_at', 'zone_name', 'server_name', 'found', 'done', 'mended', 'request_id')
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
        _add_pool(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        found = self.client.get(f'/v2/pools/{self.client.pool(parsed_args.pool)["id"]}')
        return _shown(found, parsed_args.formatter)


def _add_pool(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('pool', metavar='POOL', help='name, or id or the first four or more digits of it')


def _add_facts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--name-server', action='extend', nargs='+', metavar='HOST', dest='name_servers',
                        help='for the NS records, all of them; the first is also the primary of the SOA')
    parser.add_argument('--description')


class CreatePool(ShowOne):
    """Create a pool; its servers come from the configuration of its pool managers."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('name', metavar='NAME', help="as its programs' configuration has it in pool_name")
        _add_facts(parser)
        parser.add_argument('--also-notify', action='extend', nargs='+', metavar='WHERE', dest='also_notifies',
                            help="other receivers of NOTIFYs, each as 'ADDRESS[:PORT] [key NAME]'")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = {name: value for name in ('name', *FACTS) if (value := getattr(parsed_args, name)) is not None}
        return _shown(self.client.change('POST', '/v2/pools', body), parsed_args.formatter)


class SetPool(ShowOne):
    """Change a pool; new name servers give every zone of it a new serial."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_pool(parser)
        _add_facts(parser)
        also = parser.add_mutually_exclusive_group()
        also.add_argument('--also-notify', action='extend', nargs='+', metavar='WHERE', dest='also_notifies',
                          help="all other receivers of NOTIFYs, each as 'ADDRESS[:PORT] [key NAME]'")
        also.add_argument('--no-also-notify', action='store_const', const=[], dest='also_notifies')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = {name: value for name in FACTS if (value := getattr(parsed_args, name)) is not None}
        if not body:
            raise CliError('Nothing to change; give --name-server, --also-notify, --no-also-notify or --description.')
        path = f'/v2/pools/{self.client.pool(parsed_args.pool)["id"]}'
        return _shown(self.client.change('PATCH', path, body, LONG), parsed_args.formatter)


class DeletePool(ApiCommand):
    """Delete a pool that has no zones; stop its programs before."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_pool(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', f'/v2/pools/{self.client.pool(parsed_args.pool)["id"]}')


def _shown(found: Json, formatter: str) -> Shown:
    if formatter not in ('json', 'yaml'):
        found['ns_records'] = [f'{each["priority"]} {each["hostname"]}' for each in found['ns_records']]
    names = [name for name in found if name != 'links']
    return names, [found[name] for name in names]


class ShowAudits(Lister):
    """Show when all zones of a pool were last audited on all servers, and what was found.

    A round asks every server for the serial of every zone, or compares its contents. Coverage is the share of zones
    and servers that answered; findings are zones that were recorded as right and were not: they are repaired without
    a command.
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


class ListFindings(Lister):
    """List what audits found lately, the newest first, and how it was repaired."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('pool', metavar='POOL', nargs='?', default='default',
                            help="name, or id or the first four or more digits of it; 'default' if none is given")
        parser.add_argument('--limit', type=int, default=20, metavar='N', help='how many at most; 20 if not given')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        pool = self.client.pool(parsed_args.pool)['id']
        found = self.client.get(f'/v2/pools/{pool}/audits/findings', limit=parsed_args.limit)['findings']
        return FINDING_COLUMNS, ([each[column] for column in FINDING_COLUMNS] for each in found)


class ListNameservers(Lister):
    """List the name servers of a zone."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        found = self.client.get(f'/v2/zones/{self.client.zone(parsed_args.zone)["id"]}/nameservers')['nameservers']
        return NAMESERVER_COLUMNS, ([each[column] for column in NAMESERVER_COLUMNS] for each in found)
