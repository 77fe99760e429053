"""``designate-pool zone ...``: zones themselves."""

from __future__ import annotations

import argparse

from designate_pool.cli import choosing, names
from designate_pool.cli.base import ZONE_COLUMNS, Change, Lister, Shown, ShowOne, columns
from designate_pool.cli.choosing import add_zone
from designate_pool.cli.client import Failure

LIST_COLUMNS = ('id', 'name', 'serial', 'status', 'action')
SORTED_BY = ('name', 'email', 'status', 'ttl', 'serial', 'created_at', 'updated_at')


class CreateZone(Change):
    """Create a zone."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('name', metavar='NAME', help='such as example.com; the final dot may be left out')
        parser.add_argument('--email', required=True, help='of whoever is responsible for the zone')
        parser.add_argument('--ttl', type=int, metavar='SECONDS', help='for records without their own')
        parser.add_argument('--description')
        parser.add_argument('--pool', metavar='POOL', help="the pool that it goes to, by name or id; not given: the "
                                                           "default one")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = {'name': names.of_zone(parsed_args.name), 'email': parsed_args.email, 'ttl': parsed_args.ttl,
                'description': parsed_args.description}
        if parsed_args.pool is not None:
            body['attributes'] = {'pool_id': self.client.pool(parsed_args.pool)['id']}
        zone = self.ask('POST', '/v2/zones', body)
        if self.settle(parsed_args, zone, zone['serial']):
            zone = self.client.zone(zone['id'])
        return columns(zone, ZONE_COLUMNS, parsed_args.formatter)


class ListZones(Lister):
    """List zones."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--name', help='only this name; * stands for anything')
        parser.add_argument('--status', type=str.upper, choices=('PENDING', 'ACTIVE', 'ERROR', 'DELETED'))
        parser.add_argument('--email', help='only those of this address; * stands for anything')
        parser.add_argument('--ttl', type=int, metavar='SECONDS', help='only those of this TTL')
        parser.add_argument('--description', help='only those described so; * stands for anything')
        parser.add_argument('--pool', metavar='POOL', help='only those of this pool; its name or id')
        choosing.add_page(parser, SORTED_BY)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        name = parsed_args.name
        if name is not None and not name.endswith('*'):
            name = names.of_zone(name)
        pool = parsed_args.pool and self.client.pool(parsed_args.pool)['id']
        found = self.client.every('/v2/zones', 'zones', **choosing.page(parsed_args), name=name,
                                  status=parsed_args.status, email=parsed_args.email, ttl=parsed_args.ttl,
                                  description=parsed_args.description, pool_id=pool)
        shown = LIST_COLUMNS if not self.app.options.all_projects else (*LIST_COLUMNS, 'project_id')
        return shown, ([zone[column] for column in shown] for zone in found)


class ShowZone(ShowOne):
    """Show a zone."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.zone(parsed_args.zone), ZONE_COLUMNS, parsed_args.formatter)


class SetZone(Change):
    """Change a zone's email, TTL or description."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_zone(parser)
        parser.add_argument('--email')
        parser.add_argument('--ttl', type=int, metavar='SECONDS')
        describe = parser.add_mutually_exclusive_group()
        describe.add_argument('--description')
        describe.add_argument('--no-description', action='store_true')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = {name: value for name in ('email', 'ttl', 'description')
                if (value := getattr(parsed_args, name)) is not None}
        if parsed_args.no_description:
            body['description'] = None
        if not body:
            raise Failure('Nothing to change; give --email, --ttl, --description or --no-description.')
        zone_id = self.client.zone(parsed_args.zone)['id']
        zone = self.ask('PATCH', f'/v2/zones/{zone_id}', body)
        if self.settle(parsed_args, zone, zone['serial']):
            zone = self.client.zone(zone['id'])
        return columns(zone, ZONE_COLUMNS, parsed_args.formatter)


class DeleteZone(Change):
    """Delete a zone, from the database and from every server."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone_id = self.client.zone(parsed_args.zone)['id']
        zone = self.ask('DELETE', f'/v2/zones/{zone_id}')
        if self.settle(parsed_args, zone, deletes=True):
            zone = {**zone, 'action': 'NONE', 'status': 'DELETED'}
        return columns(zone, ZONE_COLUMNS, parsed_args.formatter)
