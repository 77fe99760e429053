"""``designate-pool recordset ...``, and ``designate-pool ptr record ...``: the PTR records of floating IPs."""

from __future__ import annotations

import argparse

from designate_pool.cli.base import (NONE, RECORDSET_COLUMNS, ApiCommand, ChangeCommand, Lister, Shown, ShowOne,
                                     add_description, add_page, add_recordset, add_zone, changes_given, columns,
                                     options_given, page, rows)
from designate_pool.cli.client import in_zone, of_zone

_PATH = '/v2/reverse/floatingips'
PTR_LIST_COLUMNS = ('id', 'address', 'ptrdname', 'ttl', 'description', 'status')
PTR_COLUMNS = ('id', 'address', 'ptrdname', 'ttl', 'description', 'status', 'action')


def _add_floating_ip(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('floating_ip', metavar='REGION:ID', help='region and id of the floating IP')


class ListPtrRecords(Lister):
    """List the floating IPs of a project with their PTR records."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(PTR_LIST_COLUMNS, self.client.get(_PATH)['floatingips'])


class ShowPtrRecord(ShowOne):
    """Show a floating IP with its PTR record."""

    add_arguments = staticmethod(_add_floating_ip)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.get(f'{_PATH}/{parsed_args.floating_ip}'), PTR_COLUMNS)


class SetPtrRecord(ShowOne):
    """Set the PTR record of a floating IP; without --ttl it has that of its zone."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_floating_ip(parser)
        parser.add_argument('ptrdname', metavar='NAME', help='the name that the address has, with the final dot')
        parser.add_argument('--ttl', type=int, help='seconds')
        parser.add_argument('--description')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, 'ptrdname', 'ttl', 'description')
        return columns(self.client.change('PATCH', f'{_PATH}/{parsed_args.floating_ip}', body), PTR_COLUMNS)


class UnsetPtrRecord(ApiCommand):
    """Delete the PTR record of a floating IP."""

    add_arguments = staticmethod(_add_floating_ip)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('PATCH', f'{_PATH}/{parsed_args.floating_ip}', json={'ptrdname': None})


LIST_COLUMNS: tuple[str, ...] = ('id', 'name', 'type', 'records', 'ttl', 'status', 'action')
SORTED_BY = ('name', 'type', 'ttl', 'created_at', 'updated_at')


class CreateRecordSet(ChangeCommand):
    """Create a recordset: all records of one name and type."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_zone(parser)
        parser.add_argument('name', metavar='NAME', help='www, @ for the zone itself, or in full')
        parser.add_argument('type', metavar='TYPE', help='such as A, AAAA, MX, TXT')
        _add_records(parser, required=True)
        parser.add_argument('--ttl', type=int, metavar='SECONDS', help="the zone's if not given")
        parser.add_argument('--description')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        body = {'name': in_zone(parsed_args.name, zone['name']), 'type': parsed_args.type.upper(),
                'records': parsed_args.records, 'ttl': parsed_args.ttl, 'description': parsed_args.description}
        made = self.send_change('POST', f'/v2/zones/{zone["id"]}/recordsets', body)
        if self.wait_if_told(parsed_args, zone):
            made = self.client.recordset(zone, made['id'])
        return columns(made, RECORDSET_COLUMNS)


class ListRecordSets(Lister):
    """List the recordsets of a zone, or of all zones."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_zone(parser, nargs='?', help='name or id; all zones if not given')
        parser.add_argument('--name', help='only this name; * stands for anything')
        parser.add_argument('--type', type=str.upper)
        parser.add_argument('--data', help='only those with this record; * stands for anything')
        parser.add_argument('--ttl', type=int, metavar='SECONDS', help='only those of this TTL')
        parser.add_argument('--description', help='only those described so; * stands for anything')
        parser.add_argument('--status', type=str.upper, choices=('PENDING', 'ACTIVE', 'ERROR'))
        add_page(parser, SORTED_BY)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        filters = {**page(parsed_args),
                   **options_given(parsed_args, 'type', 'data', 'ttl', 'description', 'status')}
        name = parsed_args.name
        if parsed_args.zone is None:
            if name is not None and not name.endswith('*'):
                name = of_zone(name)
            path, shown = '/v2/recordsets', (*LIST_COLUMNS, 'zone_name')
        else:
            zone = self.client.zone(parsed_args.zone)
            if name is not None and not name.endswith('*'):
                name = in_zone(name, zone['name'])
            path, shown = f'/v2/zones/{zone["id"]}/recordsets', LIST_COLUMNS
        recordsets = self.client.every(path, 'recordsets', name=name, **filters)
        return rows(shown, recordsets)


class ShowRecordSet(ShowOne):
    """Show a recordset."""

    add_arguments = staticmethod(add_recordset)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        recordset = self.client.recordset(zone, parsed_args.recordset, parsed_args.type)
        return columns(recordset, RECORDSET_COLUMNS)


class SetRecordSet(ChangeCommand):
    """Change a recordset: the records given replace those it has."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_recordset(parser)
        _add_records(parser)
        ttl = parser.add_mutually_exclusive_group()
        ttl.add_argument('--ttl', type=int, metavar='SECONDS')
        ttl.add_argument('--no-ttl', action='store_const', const=NONE, dest='ttl', help="use the zone's")
        add_description(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = changes_given(parsed_args, ('records', 'ttl', 'description'),
                             '--record, --ttl, --no-ttl, --description or --no-description')
        zone = self.client.zone(parsed_args.zone)
        recordset = self.client.recordset(zone, parsed_args.recordset, parsed_args.type)
        changed = self.send_change('PUT', f'/v2/zones/{zone["id"]}/recordsets/{recordset["id"]}', body)
        if self.wait_if_told(parsed_args, zone):
            changed = self.client.recordset(zone, changed['id'])
        return columns(changed, RECORDSET_COLUMNS)


class DeleteRecordSet(ChangeCommand):
    """Delete a recordset."""

    add_arguments = staticmethod(add_recordset)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        recordset = self.client.recordset(zone, parsed_args.recordset, parsed_args.type)
        deleted = self.send_change('DELETE', f'/v2/zones/{zone["id"]}/recordsets/{recordset["id"]}')
        if self.wait_if_told(parsed_args, zone):
            deleted = {**deleted, 'action': 'NONE', 'status': 'DELETED'}
        return columns(deleted, RECORDSET_COLUMNS)


def _add_records(parser: argparse.ArgumentParser, required: bool = False) -> None:
    parser.add_argument('--record', action='append', required=required, metavar='DATA', dest='records',
                        help='the data of one record, its names with the final dot; text without quotes is one '
                             'string; may be repeated')
