"""``designate-pool pool ...``, and the name servers that a zone has from its pool."""

from __future__ import annotations

import argparse

from designate_pool.cli.base import (Lister, ResourceCommand, Shown, ShowOne, add_attributes, add_zone, all_columns,
                                     changes_given, delete_command, list_command, options_given, rows)
from designate_pool.cli.client import POOL, Json

PROPERTIES = ('name_servers', 'ns_records', 'also_notifies', 'description', 'attributes')
#: Seconds that a change of all zones of a pool may take.
LONG = 660.0
AUDIT_COLUMNS = ('kind', 'round', 'started_at', 'seconds', 'domains', 'asked', 'unanswered', 'findings', 'coverage')
FINDING_COLUMNS = ('found_at', 'zone_name', 'server_name', 'found', 'done', 'mended', 'request_id')
NAMESERVER_COLUMNS = ('hostname', 'priority')


ListPools = list_command(POOL, 'List the pools.')
DeletePool = delete_command(POOL, 'Delete a pool that has no zones; stop its programs before.')


class ShowPool(ResourceCommand, ShowOne):
    """Show a pool."""

    resource = POOL

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return _shown(self.client.get(self.path(parsed_args)), parsed_args.formatter)


def _add_properties(parser: argparse.ArgumentParser) -> None:
    servers = parser.add_mutually_exclusive_group()
    servers.add_argument('--name-server', action='extend', nargs='+', metavar='HOST', dest='name_servers',
                         help='for the NS records, all of them; the first is also the primary of the SOA')
    servers.add_argument('--ns-record', action='extend', nargs='+', metavar='PRIORITY:HOST', dest='ns_records',
                         type=_ns_record, help='the same with priorities from 1 to 10000; the lowest is the first')
    parser.add_argument('--description')
    add_attributes(parser, 'that the scheduler compares with those of zones')


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


class SetPool(ResourceCommand, ShowOne):
    """Change a pool; new name servers give every zone of it a new serial."""

    resource = POOL

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument('--name', help='another name; its programs must not run')
        _add_properties(parser)
        parser.add_argument('--no-attributes', action='store_const', const={}, dest='attributes')
        also = parser.add_mutually_exclusive_group()
        also.add_argument('--also-notify', action='extend', nargs='+', metavar='WHERE', dest='also_notifies',
                          help="all other receivers of NOTIFYs, each as 'ADDRESS[:PORT] [key NAME]'")
        also.add_argument('--no-also-notify', action='store_const', const=[], dest='also_notifies')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = changes_given(parsed_args, ('name', *PROPERTIES),
                             '--name, --name-server, --ns-record, --attribute, --no-attributes, --also-notify, '
                             '--no-also-notify or --description')
        return _shown(self.client.change('PATCH', self.path(parsed_args), body, LONG), parsed_args.formatter)


def _shown(found: Json, formatter: str) -> Shown:
    if formatter not in ('json', 'yaml'):
        found['ns_records'] = [f'{ns_record["priority"]} {ns_record["hostname"]}' for ns_record in found['ns_records']]
    return all_columns(found)


class _AuditedPool(ResourceCommand):
    """A command about the audits of a pool."""

    resource = POOL

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('thing', metavar='POOL', nargs='?', default='default',
                            help=f"{POOL.help}; 'default' if none is given")


class ShowAudits(_AuditedPool, Lister):
    """Show when all zones of a pool were last audited on all servers, and what was found.

    A round asks every server for the serial of every zone, or compares its contents. Coverage is the share of zones
    and servers that answered; findings are zones that were recorded as right and were not: they are repaired without
    a command.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        audits = self.client.get(f'{self.path(parsed_args)}/audits')['audits']
        return rows(AUDIT_COLUMNS, ({**audit[which], 'kind': audit['kind'], 'round': which}
                                    for audit in audits for which in ('last', 'now') if audit[which] is not None))


class ListFindings(_AuditedPool, Lister):
    """List what audits found lately, the newest first, and how it was repaired."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument('--limit', type=int, default=20, metavar='N', help='how many at most; 20 if not given')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        path = f'{self.path(parsed_args)}/audits/findings'
        findings = self.client.get(path, limit=parsed_args.limit)['findings']
        return rows(FINDING_COLUMNS, findings)


class ListNameservers(Lister):
    """List the name servers of a zone."""

    add_arguments = staticmethod(add_zone)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        return rows(NAMESERVER_COLUMNS, self.client.get(f'/v2/zones/{zone["id"]}/nameservers')['nameservers'])
