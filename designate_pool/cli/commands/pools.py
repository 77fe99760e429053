"""``designate-pool pool ...``, and the name servers that a zone has from its pool."""

from __future__ import annotations

import argparse

from designate_pool.cli.base import (ZONE, Argument, Lister, OneOf, ResourceCommand, Shown, ShowOne, all_columns,
                                     attributes_option, changes_given, delete_command, list_command, options_given,
                                     rows)
from designate_pool.cli.client import POOL, Json

#: Seconds that a change of all zones of a pool may take.
LONG = 660.0
AUDIT_COLUMNS = ('kind', 'round', 'started_at', 'seconds', 'zones', 'asked', 'unanswered', 'findings', 'coverage')
FINDING_COLUMNS = ('found_at', 'zone_name', 'server_name', 'found', 'done', 'mended', 'request_id')
NAMESERVER_COLUMNS = ('hostname', 'priority')


PoolList = list_command(POOL, 'List the pools.')
PoolDelete = delete_command(POOL, 'Delete a pool that has no zones; stop its programs before.')


class PoolShow(ResourceCommand, ShowOne):
    """Show a pool."""

    resource = POOL

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return _shown(self.client.get(self.path(parsed_args)), parsed_args.formatter)


def _ns_record(text: str) -> Json:
    priority, _, host = text.partition(':')
    if not priority.isdecimal() or not host:
        raise argparse.ArgumentTypeError(f'{text!r} is not a priority and a host, like 10:ns1.example.com.')
    return {'hostname': host, 'priority': int(priority)}


_PROPERTIES = (
    OneOf(Argument('--name-server', action='extend', nargs='+', metavar='HOST', dest='name_servers',
                   help='for the NS records, all of them; the first is also the primary of the SOA'),
          Argument('--ns-record', action='extend', nargs='+', metavar='PRIORITY:HOST', dest='ns_records',
                   type=_ns_record, help='the same with priorities from 1 to 10000; the lowest is the first')),
    Argument('--description'), attributes_option('that the scheduler compares with those of zones'))


class PoolCreate(ShowOne):
    """Create a pool; its servers come from the configuration of its pool managers."""

    arguments = (
        Argument('name', metavar='NAME', help="as its programs' configuration has it in pool_name"),
        *_PROPERTIES,
        Argument('--also-notify', action='extend', nargs='+', metavar='WHERE', dest='also_notifies',
                 help="other receivers of NOTIFYs, each as 'ADDRESS[:PORT] [key NAME]'"))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, self.arguments)
        return _shown(self.client.json('POST', '/v2/pools', body), parsed_args.formatter)


class PoolSet(ResourceCommand, ShowOne):
    """Change a pool; new name servers give every zone of it a new serial."""

    resource = POOL

    arguments = (
        Argument('--name', help='another name; its programs must not run'),
        *_PROPERTIES,
        Argument('--no-attributes', action='store_const', const={}, dest='attributes'),
        OneOf(Argument('--also-notify', action='extend', nargs='+', metavar='WHERE', dest='also_notifies',
                       help="all other receivers of NOTIFYs, each as 'ADDRESS[:PORT] [key NAME]'"),
              Argument('--no-also-notify', action='store_const', const=[], dest='also_notifies')))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = changes_given(parsed_args, self.arguments)
        return _shown(self.client.json('PATCH', self.path(parsed_args), body, LONG), parsed_args.formatter)


class PoolFreeze(ResourceCommand, ShowOne):
    """Freeze a pool: changes of its zones are accepted and wait, and its servers get nothing new.

    Of a pool that is frozen, the reason and the end are changed.
    """

    resource, default = POOL, 'default'
    arguments = (
        Argument('--reason', required=True, metavar='TEXT', help='why, for whoever makes changes that wait'),
        Argument('--until', metavar='TIME', help='when it ends by itself: a time such as 2030-01-31T12:00, in UTC, or '
                                                 'after 2h, 3d or 1d12h; never if not given'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = {'reason': parsed_args.reason, 'until': parsed_args.until}
        return _shown(self.client.json('POST', f'{self.path(parsed_args)}/tasks/freeze', body),
                      parsed_args.formatter)


class PoolUnfreeze(ResourceCommand, ShowOne):
    """Unfreeze a pool: the changes that have waited go out, in their order."""

    resource, default = POOL, 'default'

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return _shown(self.client.json('POST', f'{self.path(parsed_args)}/tasks/unfreeze'), parsed_args.formatter)


def _shown(found: Json, formatter: str) -> Shown:
    if formatter not in ('json', 'yaml'):
        found['ns_records'] = [f'{ns_record["priority"]} {ns_record["hostname"]}' for ns_record in found['ns_records']]
    return all_columns(found)


class PoolAudit(ResourceCommand, Lister):
    """Show when all zones of a pool were last audited on all servers, and what was found.

    A round asks every server for the serial of every zone, or compares its contents. Coverage is the share of zones
    and servers that answered; findings are zones that were recorded as right and were not: they are repaired without
    a command.
    """

    resource, default = POOL, 'default'
    long_columns = ('round', 'seconds', 'asked', 'unanswered')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        audits = self.client.get(f'{self.path(parsed_args)}/audits')['audits']
        return rows(AUDIT_COLUMNS, ({**audit[which], 'kind': audit['kind'], 'round': which}
                                    for audit in audits for which in ('last', 'now') if audit[which] is not None))


class PoolAuditFindings(ResourceCommand, Lister):
    """List what audits found lately, the newest first, and how it was repaired."""

    resource, default = POOL, 'default'
    arguments = (Argument('--limit', type=int, default=20, metavar='N', help='how many at most; 20 if not given'),)
    long_columns = ('done', 'request_id')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(FINDING_COLUMNS, self.client.get(f'{self.path(parsed_args)}/audits/findings',
                                                     limit=parsed_args.limit)['findings'])


class ZoneNameservers(Lister):
    """List the name servers of a zone."""

    arguments = (ZONE,)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        return rows(NAMESERVER_COLUMNS, self.client.get(f'/v2/zones/{zone["id"]}/nameservers')['nameservers'])
