"""``designate-pool recordset ...``"""

from __future__ import annotations

import argparse

from designate_pool.cli.args import common, names
from designate_pool.cli.args.common import add_recordset, add_zone
from designate_pool.cli.base import RECORDSET_COLUMNS, ChangeCommand, Lister, Shown, ShowOne, columns
from designate_pool.cli.http.client import CliError

LIST_COLUMNS: tuple[str, ...] = ('id', 'name', 'type', 'records', 'ttl', 'status', 'action')
SORTED_BY = ('name', 'type', 'ttl', 'created_at', 'updated_at')


class CreateRecordSet(ChangeCommand):
    """Create a recordset: all records of one name and type."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_zone(parser)
        parser.add_argument('name', metavar='NAME', help='www, @ for the zone itself, or in full')
        parser.add_argument('type', metavar='TYPE', help='such as A, AAAA, MX, TXT')
        parser.add_argument('--record', action='append', required=True, metavar='DATA', dest='records',
                            help='the data of one record, its names with the final dot; text without quotes is one '
                                 'string; may be repeated')
        parser.add_argument('--ttl', type=int, metavar='SECONDS', help="the zone's if not given")
        parser.add_argument('--description')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        body = {'name': names.in_zone(parsed_args.name, zone['name']), 'type': parsed_args.type.upper(),
                'records': parsed_args.records, 'ttl': parsed_args.ttl, 'description': parsed_args.description}
        made = self.ask('POST', f'/v2/zones/{zone["id"]}/recordsets', body)
        if self.settle(parsed_args, zone):
            made = self.client.recordset(zone, made['id'])
        return columns(made, RECORDSET_COLUMNS, parsed_args.formatter)


class ListRecordSets(Lister):
    """List the recordsets of a zone, or of all zones."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_zone(parser, nargs='?', help='name or id; all zones if not given')
        parser.add_argument('--name', help='only this name; * stands for anything')
        parser.add_argument('--type', type=str.upper)
        parser.add_argument('--data', help='only those with this record; * stands for anything')
        parser.add_argument('--ttl', type=int, metavar='SECONDS', help='only those of this TTL')
        parser.add_argument('--description', help='only those described so; * stands for anything')
        parser.add_argument('--status', type=str.upper, choices=('PENDING', 'ACTIVE', 'ERROR'))
        common.add_page(parser, SORTED_BY)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        wanted = {**common.page(parsed_args), 'type': parsed_args.type, 'data': parsed_args.data,
                  'ttl': parsed_args.ttl, 'description': parsed_args.description, 'status': parsed_args.status}
        name = parsed_args.name
        if parsed_args.zone is None:
            if name is not None and not name.endswith('*'):
                name = names.of_zone(name)
            path, shown = '/v2/recordsets', (*LIST_COLUMNS, 'zone_name')
        else:
            zone = self.client.zone(parsed_args.zone)
            if name is not None and not name.endswith('*'):
                name = names.in_zone(name, zone['name'])
            path, shown = f'/v2/zones/{zone["id"]}/recordsets', LIST_COLUMNS
        found = self.client.every(path, 'recordsets', name=name, **wanted)
        return shown, ([each[column] for column in shown] for each in found)


class ShowRecordSet(ShowOne):
    """Show a recordset."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_recordset(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        found = self.client.recordset(zone, parsed_args.recordset, parsed_args.type)
        return columns(found, RECORDSET_COLUMNS, parsed_args.formatter)


class SetRecordSet(ChangeCommand):
    """Change a recordset: the records given replace those it has."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_recordset(parser)
        parser.add_argument('--record', action='append', metavar='DATA', dest='records',
                            help='the data of one record, its names with the final dot; text without quotes is one '
                                 'string; may be repeated')
        lasting = parser.add_mutually_exclusive_group()
        lasting.add_argument('--ttl', type=int, metavar='SECONDS')
        lasting.add_argument('--no-ttl', action='store_true', help="use the zone's")
        describe = parser.add_mutually_exclusive_group()
        describe.add_argument('--description')
        describe.add_argument('--no-description', action='store_true')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = {name: value for name in ('records', 'ttl', 'description')
                if (value := getattr(parsed_args, name)) is not None}
        body.update({name: None for name in ('ttl', 'description') if getattr(parsed_args, f'no_{name}')})
        if not body:
            raise CliError('Nothing to change; give --record, --ttl, --no-ttl, --description or --no-description.')
        zone = self.client.zone(parsed_args.zone)
        found = self.client.recordset(zone, parsed_args.recordset, parsed_args.type)
        changed = self.ask('PUT', f'/v2/zones/{zone["id"]}/recordsets/{found["id"]}', body)
        if self.settle(parsed_args, zone):
            changed = self.client.recordset(zone, changed['id'])
        return columns(changed, RECORDSET_COLUMNS, parsed_args.formatter)


class DeleteRecordSet(ChangeCommand):
    """Delete a recordset."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_recordset(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        found = self.client.recordset(zone, parsed_args.recordset, parsed_args.type)
        deleted = self.ask('DELETE', f'/v2/zones/{zone["id"]}/recordsets/{found["id"]}')
        if self.settle(parsed_args, zone):
            deleted = {**deleted, 'action': 'NONE', 'status': 'DELETED'}
        return columns(deleted, RECORDSET_COLUMNS, parsed_args.formatter)
