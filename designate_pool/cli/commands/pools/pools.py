"""``designate-pool pool ...``, and the name servers that a zone has from its pool."""

from __future__ import annotations

import argparse

from designate_pool.cli.args import common
from designate_pool.cli.args.common import add_pool, add_zone
from designate_pool.cli.base import ApiCommand, Lister, Shown, ShowOne, all_columns, options_given, rows
from designate_pool.cli.http.errors import CliError, Json

PROPERTIES = ('name_servers', 'ns_records', 'also_notifies', 'description', 'attributes')
#: Seconds that a change of all zones of a pool may take.
LONG = 660.0
LIST_COLUMNS = ('id', 'name', 'description')
AUDIT_COLUMNS = ('kind', 'round', 'started_at', 'seconds', 'domains', 'asked', 'unanswered', 'findings', 'coverage')
FINDING_COLUMNS = ('found_at', 'zone_name', 'server_name', 'found', 'done', 'mended', 'request_id')
NAMESERVER_COLUMNS = ('hostname', 'priority')


class ListPools(Lister):
    """List the pools."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(LIST_COLUMNS, self.client.every('/v2/pools', 'pools'))


class ShowPool(ShowOne):
    """Show a pool."""

    add_arguments = staticmethod(add_pool)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        pool = self.client.get(f'/v2/pools/{self.client.pool(parsed_args.pool)["id"]}')
        return _shown(pool, parsed_args.formatter)


def _add_properties(parser: argparse.ArgumentParser) -> None:
    servers = parser.add_mutually_exclusive_group()
    servers.add_argument('--name-server', action='extend', nargs='+', metavar='HOST', dest='name_servers',
                         help='for the NS records, all of them; the first is also the primary of the SOA')
    servers.add_argument('--ns-record', action='extend', nargs='+', metavar='PRIORITY:HOST', dest='ns_records',
                         type=_ns_record, help='the same with priorities from 1 to 10000; the lowest is the first')
    parser.add_argument('--description')
    common.add_attributes(parser, 'that the scheduler compares with those of zones')


def _ns_record(text: str) -> Json:
    priority, _, host = text.partition(':')
    if not priority.isdecimal() or not host:
        raise argparse.ArgumentTypeError(f'{text!r} is not a priority and a host, like 10:ns1.example.com.')
    return {'hostname': host, 'priority': int(priority)}


class CreatePool(ShowOne):
    """Create a pool; its servers come from the configuration of its pool managers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('name', metavar='NAME', help="as its programs' configuration has it in pool_name")
        _add_properties(parser)
        parser.add_argument('--also-notify', action='extend', nargs='+', metavar='WHERE', dest='also_notifies',
                            help="other receivers of NOTIFYs, each as 'ADDRESS[:PORT] [key NAME]'")

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, 'name', *PROPERTIES)
        return _shown(self.client.change('POST', '/v2/pools', body), parsed_args.formatter)


class SetPool(ShowOne):
    """Change a pool; new name servers give every zone of it a new serial."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_pool(parser)
        parser.add_argument('--name', help='another name; its programs must not run')
        _add_properties(parser)
        parser.add_argument('--no-attributes', action='store_const', const={}, dest='attributes')
        also = parser.add_mutually_exclusive_group()
        also.add_argument('--also-notify', action='extend', nargs='+', metavar='WHERE', dest='also_notifies',
                          help="all other receivers of NOTIFYs, each as 'ADDRESS[:PORT] [key NAME]'")
        also.add_argument('--no-also-notify', action='store_const', const=[], dest='also_notifies')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, 'name', *PROPERTIES)
        if not body:
            raise CliError('Nothing to change; give --name, --name-server, --ns-record, --attribute, --no-attributes, '
                           '--also-notify, --no-also-notify or --description.')
        path = f'/v2/pools/{self.client.pool(parsed_args.pool)["id"]}'
        return _shown(self.client.change('PATCH', path, body, LONG), parsed_args.formatter)


class DeletePool(ApiCommand):
    """Delete a pool that has no zones; stop its programs before."""

    add_arguments = staticmethod(add_pool)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', f'/v2/pools/{self.client.pool(parsed_args.pool)["id"]}')


def _shown(found: Json, formatter: str) -> Shown:
    if formatter not in ('json', 'yaml'):
        found['ns_records'] = [f'{ns_record["priority"]} {ns_record["hostname"]}' for ns_record in found['ns_records']]
    return all_columns(found)


def _add_audited_pool(parser: argparse.ArgumentParser) -> None:
    add_pool(parser, nargs='?', default='default',
             help="name, or id or the first four or more digits of it; 'default' if none is given")


class ShowAudits(Lister):
    """Show when all zones of a pool were last audited on all servers, and what was found.

    A round asks every server for the serial of every zone, or compares its contents. Coverage is the share of zones
    and servers that answered; findings are zones that were recorded as right and were not: they are repaired without
    a command.
    """

    add_arguments = staticmethod(_add_audited_pool)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        audits = self.client.get(f'/v2/pools/{self.client.pool(parsed_args.pool)["id"]}/audits')['audits']
        return rows(AUDIT_COLUMNS, ({**audit[which], 'kind': audit['kind'], 'round': which}
                                    for audit in audits for which in ('last', 'now') if audit[which] is not None))


class ListFindings(Lister):
    """List what audits found lately, the newest first, and how it was repaired."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_audited_pool(parser)
        parser.add_argument('--limit', type=int, default=20, metavar='N', help='how many at most; 20 if not given')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        pool = self.client.pool(parsed_args.pool)['id']
        findings = self.client.get(f'/v2/pools/{pool}/audits/findings', limit=parsed_args.limit)['findings']
        return rows(FINDING_COLUMNS, findings)


class ListNameservers(Lister):
    """List the name servers of a zone."""

    add_arguments = staticmethod(add_zone)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        return rows(NAMESERVER_COLUMNS, self.client.get(f'/v2/zones/{zone["id"]}/nameservers')['nameservers'])
