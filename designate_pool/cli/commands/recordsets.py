"""``designate-pool recordset ...``, and ``designate-pool ptr record ...``: the PTR records of floating IPs."""

from __future__ import annotations

import argparse
import functools

from designate_pool.cli.base import (DESCRIPTION, NONE, REASON, RECORDSET_COLUMNS, ZONE, ApiCommand, Argument,
                                     ChangeCommand, Lister, OneOf, RecordSetCommand, Shown, ShowOne, changes_given,
                                     columns, options_given, page, page_options, positive, rows, task_command, ttl)
from designate_pool.cli.client import ApiRefusal, Client, in_zone, is_absolute, is_id, of_zone, version_path
from designate_pool.cli.connection import CliError

_PATH = '/v2/reverse/floatingips'
PTR_LIST_COLUMNS = ('id', 'address', 'ptrdname', 'ttl', 'description', 'status')
PTR_COLUMNS = ('id', 'address', 'ptrdname', 'ttl', 'description', 'status', 'action')


_FLOATING_IP = Argument('floating_ip', metavar='REGION:ID', help='region and id of the floating IP')


class PtrRecordList(Lister):
    """List the floating IPs of a project with their PTR records."""

    long_columns = ('description',)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(PTR_LIST_COLUMNS, self.client.get(_PATH)['floatingips'])


class PtrRecordShow(ShowOne):
    """Show a floating IP with its PTR record."""

    arguments = (_FLOATING_IP,)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.get(f'{_PATH}/{parsed_args.floating_ip}'), PTR_COLUMNS)


class PtrRecordSet(ShowOne):
    """Set the PTR record of a floating IP; without --ttl it has that of its zone."""

    arguments = (
        _FLOATING_IP,
        Argument('ptrdname', metavar='NAME', help='the name that the address has, with the final dot'),
        Argument('--ttl', type=ttl, metavar='TTL', help='in seconds, or as 1h'),
        Argument('--description'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, self.arguments[1:])
        return columns(self.client.json('PATCH', f'{_PATH}/{parsed_args.floating_ip}', body), PTR_COLUMNS)


class PtrRecordUnset(ApiCommand):
    """Delete the PTR record of a floating IP."""

    arguments = (_FLOATING_IP,)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('PATCH', f'{_PATH}/{parsed_args.floating_ip}', json={'ptrdname': None})


LIST_COLUMNS: tuple[str, ...] = ('id', 'name', 'type', 'records', 'ttl', 'status', 'action')
SORTED_BY = ('name', 'type', 'ttl', 'created_at', 'updated_at')


def _records(required: bool) -> Argument:
    return Argument('--record', action='append', required=required, metavar='DATA', dest='records',
                    help='the data of one record, its names with the final dot; text without quotes is one string; may '
                         'be repeated')


class RecordsetCreate(ChangeCommand):
    """Create a recordset: all records of one name and type."""

    arguments = (
        ZONE,
        Argument('name', metavar='NAME', help='www, @ for the zone itself, or in full'),
        Argument('type', metavar='TYPE', help='such as A, AAAA, MX, TXT'),
        _records(True),
        Argument('--ttl', type=ttl, metavar='TTL', help="in seconds, or as 1h; the zone's if not given"),
        Argument('--description'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        body = {'name': in_zone(parsed_args.name, zone['name']), 'type': parsed_args.type.upper(),
                'records': parsed_args.records, 'ttl': parsed_args.ttl, 'description': parsed_args.description}
        made = self.send_change('POST', f'/v2/zones/{zone["id"]}/recordsets', body)
        if self.wait_if_told(parsed_args, zone):
            made = self.client.recordset(zone, made['id'])
        return columns(made, RECORDSET_COLUMNS)


class RecordsetList(Lister):
    """List the recordsets of a zone, or of all zones."""

    arguments = (
        Argument('zone', metavar='ZONE', nargs='?', help='name or id; all zones if not given'),
        Argument('--name', help='only this name; * stands for anything'),
        Argument('--type', type=str.upper),
        Argument('--data', help='only those with this record; * stands for anything'),
        Argument('--ttl', type=ttl, metavar='TTL', help='only those of this TTL'),
        Argument('--description', help='only those described so; * stands for anything'),
        Argument('--status', type=str.upper, choices=('PENDING', 'ACTIVE', 'ERROR')),
        Argument('--at', metavar='SERIAL|TIME', help='those that the zone had at a serial, or a time: 2030-01-31T12:00 '
                                                     '(UTC) or 2h (ago); --name and --type choose some'),
        *page_options(SORTED_BY))
    long_columns = ('zone_name',)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        if parsed_args.at is not None:
            return self._at(parsed_args)
        filters = {**page(parsed_args), **{name: getattr(parsed_args, name) for name in (
            'type', 'data', 'ttl', 'description', 'status')}}
        name = parsed_args.name
        if parsed_args.zone is None:
            zone_name = '.'
            path, shown = '/v2/recordsets', (*LIST_COLUMNS, 'zone_name')
        else:
            zone = self.client.zone(parsed_args.zone)
            zone_name = zone['name']
            path, shown = f'/v2/zones/{zone["id"]}/recordsets', LIST_COLUMNS
        if name is not None and not name.endswith('*'):
            name = in_zone(name, zone_name)
        return rows(shown, self.client.every(path, 'recordsets', name=name, **filters))

    def _at(self, parsed_args: argparse.Namespace) -> Shown:
        if parsed_args.zone is None or any(getattr(parsed_args, name) for name in (
                'data', 'ttl', 'description', 'status', 'sort', 'limit', 'marker')):
            raise CliError('--at needs a zone, and can only be combined with --name and --type.')
        name, zone_id = _in_any_zone(self.client, parsed_args)
        sets = self.client.get(f'{version_path(zone_id, parsed_args.at)}/recordsets', name=name, type=parsed_args.type)
        return rows(('name', 'type', 'records', 'ttl'), sets['recordsets'])


class RecordsetHistory(Lister):
    """List who changed the records of a name, newest first, and which.

    What the zone was created with is not listed.  A TTL is only shown where a record has its own.
    """

    arguments = (
        ZONE,
        Argument('name', metavar='NAME', help='www, @ for the zone itself, or in full'),
        Argument('type', metavar='TYPE', nargs='?', type=str.upper, help='such as A, AAAA, MX, TXT; all if not given'),
        Argument('--limit', type=positive, metavar='N', default=50, help='how many versions at most, 50 by default'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        name, zone_id = _in_any_zone(self.client, parsed_args)
        versions = self.client.versions(zone_id, parsed_args.limit, name=name, type=parsed_args.type)
        return rows(('serial', 'when', 'kind', 'user', 'removed_records', 'added_records'), versions)


def _in_any_zone(client: Client, parsed_args: argparse.Namespace) -> tuple[str | None, str]:
    """The name that is asked for, in full, and the id of its zone, which may be deleted."""
    zone_id = client.any_zone_id(parsed_args.zone)
    if parsed_args.name is None or is_absolute(parsed_args.name):
        return parsed_args.name, zone_id
    if not is_id(parsed_args.zone):
        return in_zone(parsed_args.name, of_zone(parsed_args.zone)), zone_id
    try:
        return in_zone(parsed_args.name, client.zone(zone_id)['name']), zone_id
    except ApiRefusal as error:  # deleted, or of another project by now
        raise CliError(f'Give the name in full, such as {parsed_args.name}.example.com.: {error}') from error


class RecordsetShow(RecordSetCommand, ShowOne):
    """Show a recordset."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.find(parsed_args)[1], RECORDSET_COLUMNS)


class RecordsetSet(RecordSetCommand, ChangeCommand):
    """Change a recordset: the records given replace those it has."""

    arguments = (
        _records(False),
        OneOf(Argument('--ttl', type=ttl, metavar='TTL'),
              Argument('--no-ttl', action='store_const', const=NONE, dest='ttl', help="use the zone's")),
        DESCRIPTION)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = changes_given(parsed_args, self.arguments)
        zone, path, headers = self.find_to_change(parsed_args)
        changed = self.send_change('PUT', path, body, headers)
        if self.wait_if_told(parsed_args, zone):
            changed = self.client.recordset(zone, changed['id'])
        return columns(changed, RECORDSET_COLUMNS)


class RecordsetDelete(RecordSetCommand, ChangeCommand):
    """Delete a recordset."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone, path, headers = self.find_to_change(parsed_args)
        deleted = self.send_change('DELETE', path, headers=headers)
        if self.wait_if_told(parsed_args, zone) and not self.exit_code:
            deleted = {**deleted, 'action': 'NONE', 'status': 'DELETED'}
        return columns(deleted, RECORDSET_COLUMNS)


_task = functools.partial(task_command, RecordSetCommand, show=lambda each: columns(each, RECORDSET_COLUMNS))
RecordsetLock = _task('tasks/lock', 'Lock a recordset: nobody can change or delete it, nor delete its zone, until it '
                                    'is unlocked.', REASON)
RecordsetUnlock = _task('tasks/unlock', 'Unlock a recordset.')
