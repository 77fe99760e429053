"""``designate-pool recordset ...``"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from designate_pool.cli import names
from designate_pool.cli.base import RECORDSET_COLUMNS, Change, Lister, ShowOne, cell, columns
from designate_pool.cli.client import Failure

Shown = tuple[Sequence[str], Iterable[Any]]


def _add_zone(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('zone', metavar='ZONE', help='name or id of the zone')


def _add_recordset(parser: argparse.ArgumentParser) -> None:
    _add_zone(parser)
    parser.add_argument('recordset', metavar='RECORDSET', help='id, or name: www, @ for the zone itself, or in full')
    parser.add_argument('type', metavar='TYPE', nargs='?', help='needed where the name has recordsets of several types')


class CreateRecordSet(Change):
    """Create a recordset: all records of one name and type."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_zone(parser)
        parser.add_argument('name', metavar='NAME', help='www, @ for the zone itself, or in full')
        parser.add_argument('type', metavar='TYPE', help='such as A, AAAA, MX, TXT')
        parser.add_argument('--record', action='append', required=True, metavar='DATA', dest='records',
                            help='the data of one record, as in a zone file; may be repeated')
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
    """List the recordsets of a zone."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_zone(parser)
        parser.add_argument('--name', help='only this name; * stands for anything')
        parser.add_argument('--type', type=str.upper)
        parser.add_argument('--data', help='only those with this record; * stands for anything')
        parser.add_argument('--status', type=str.upper, choices=('PENDING', 'ACTIVE', 'ERROR'))
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        name = parsed_args.name
        if name is not None and not name.endswith('*'):
            name = names.in_zone(name, zone['name'])
        found = self.client.every(f'/v2/zones/{zone["id"]}/recordsets', 'recordsets', name=name,
                                  type=parsed_args.type, data=parsed_args.data, status=parsed_args.status)
        shown = ('id', 'name', 'type', 'records', 'ttl', 'status', 'action')
        return shown, ([cell(each[column], parsed_args.formatter) for column in shown] for each in found)


class ShowRecordSet(ShowOne):
    """Show a recordset."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_recordset(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        found = self.client.recordset(zone, parsed_args.recordset, parsed_args.type)
        return columns(found, RECORDSET_COLUMNS, parsed_args.formatter)


class SetRecordSet(Change):
    """Change a recordset: the records given replace those it has."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_recordset(parser)
        parser.add_argument('--record', action='append', metavar='DATA', dest='records',
                            help='the data of one record, as in a zone file; may be repeated')
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
            raise Failure('Nothing to change; give --record, --ttl, --no-ttl, --description or --no-description.')
        zone = self.client.zone(parsed_args.zone)
        found = self.client.recordset(zone, parsed_args.recordset, parsed_args.type)
        changed = self.ask('PUT', f'/v2/zones/{zone["id"]}/recordsets/{found["id"]}', body)
        if self.settle(parsed_args, zone):
            changed = self.client.recordset(zone, changed['id'])
        return columns(changed, RECORDSET_COLUMNS, parsed_args.formatter)


class DeleteRecordSet(Change):
    """Delete a recordset."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_recordset(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        found = self.client.recordset(zone, parsed_args.recordset, parsed_args.type)
        deleted = self.ask('DELETE', f'/v2/zones/{zone["id"]}/recordsets/{found["id"]}')
        if self.settle(parsed_args, zone):
            deleted = {**deleted, 'action': 'NONE', 'status': 'DELETED'}
        return columns(deleted, RECORDSET_COLUMNS, parsed_args.formatter)
