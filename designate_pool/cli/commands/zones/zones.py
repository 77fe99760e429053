"""``designate-pool zone ...``: zones themselves."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from designate_pool.cli.args import common
from designate_pool.cli.args.common import add_zone
from designate_pool.cli.base import (ZONE_COLUMNS, ApiCommand, ChangeCommand, Lister, Shown, ShowOne, columns,
                                     options_given, rows)
from designate_pool.cli.http.client import LARGEST_PAGE
from designate_pool.cli.http.errors import CliError, Json

LIST_COLUMNS = ('id', 'name', 'serial', 'status', 'action')
SECONDARY_COLUMNS = ('type', 'masters', 'transferred_at')
SORTED_BY = ('name', 'email', 'status', 'ttl', 'serial', 'created_at', 'updated_at')


class CreateZone(ChangeCommand):
    """Create a zone.

    The contents of a secondary zone come from its masters, from which MiniDNS transfers them.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('name', metavar='NAME', help='such as example.com; the final dot may be left out')
        parser.add_argument('--email', help='of whoever is responsible for the zone; required of a primary zone')
        parser.add_argument('--type', type=str.upper, choices=('PRIMARY', 'SECONDARY'), default='PRIMARY')
        _add_masters(parser)
        parser.add_argument('--ttl', type=int, metavar='SECONDS', help='for records without their own')
        parser.add_argument('--description')
        parser.add_argument('--pool', metavar='POOL', help="the pool that it goes to, by name or id; not given: the "
                                                           "one that the attributes choose, or the default one")
        common.add_attributes(parser, 'by which the pool is chosen')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = {'name': common.of_zone(parsed_args.name), 'email': parsed_args.email, 'ttl': parsed_args.ttl,
                'description': parsed_args.description}
        if parsed_args.type == 'SECONDARY':
            body |= {'type': parsed_args.type, 'masters': parsed_args.master or []}
        elif parsed_args.master:
            raise CliError('Only a secondary zone has masters; give --type SECONDARY too.')
        elif parsed_args.email is None:
            raise CliError('A primary zone needs --email.')
        pool = {} if parsed_args.pool is None else {'pool_id': self.client.pool(parsed_args.pool)['id']}
        if pool or parsed_args.attributes:
            body['attributes'] = {**(parsed_args.attributes or {}), **pool}
        zone = self.send_change('POST', '/v2/zones', body)
        if self.wait_if_told(parsed_args, zone, zone['serial']):
            zone = self.client.zone(zone['id'])
        return _shown(zone)


class ListZones(Lister):
    """List zones."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--name', help='only this name; * stands for anything')
        parser.add_argument('--type', type=str.upper, choices=('PRIMARY', 'SECONDARY'))
        parser.add_argument('--status', type=str.upper, choices=('PENDING', 'ACTIVE', 'ERROR', 'DELETED'))
        parser.add_argument('--email', help='only those of this address; * stands for anything')
        parser.add_argument('--ttl', type=int, metavar='SECONDS', help='only those of this TTL')
        parser.add_argument('--description', help='only those described so; * stands for anything')
        parser.add_argument('--pool', metavar='POOL', help='only those of this pool; its name or id')
        common.add_page(parser, SORTED_BY)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        name = parsed_args.name
        if name is not None and not name.endswith('*'):
            name = common.of_zone(name)
        pool = parsed_args.pool and self.client.pool(parsed_args.pool)['id']
        filters = {'name': name, 'type': parsed_args.type, 'status': parsed_args.status, 'email': parsed_args.email,
                   'ttl': parsed_args.ttl, 'description': parsed_args.description, 'pool_id': pool}
        zones: Iterable[Json] = self.client.every('/v2/zones', 'zones', **common.page(parsed_args), **filters)
        shown = LIST_COLUMNS if not self.app.options.all_projects else (*LIST_COLUMNS, 'project_id')
        if parsed_args.formatter == 'table' and not (
                self.app.options.all_projects or self.app.options.project or parsed_args.limit or parsed_args.marker):
            zones = list(zones)
            self._hint(len(zones), filters)
        return rows(shown, zones)

    def _hint(self, listed: int, wanted: Json) -> None:
        """Mention zones of other projects to whoever may see them: a list without them looks like a loss."""
        if listed < LARGEST_PAGE and self.client.may_see_everything() and listed < sum(
                1 for _ in self.client.every('/v2/zones', 'zones', most=listed + 1, **wanted)):
            self.app.stderr.write('There are zones of other projects as well; --all-projects lists them too.\n')


class GiveZones(Lister):
    """Give zones to a project.

    It is for administrators. After a change from noauth to tokens, --unowned gives away the zones of no project.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument('--zone', metavar='ZONE', action='append', help='its name or id; may be given again')
        which.add_argument('--unowned', action='store_true', help='all zones that belong to no project')
        parser.add_argument('--to', metavar='PROJECT', required=True, help='the id of the project')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        self.client.for_all_projects()
        if parsed_args.unowned:
            zones = [zone for zone in self.client.every('/v2/zones', 'zones', sort_key='name')
                     if not zone['project_id'] and zone['action'] != 'DELETE']
        else:
            zones = [self.client.zone(zone_name) for zone_name in parsed_args.zone]
        moved = (self.client.change('POST', f'/v2/zones/{zone["id"]}/project', {'project_id': parsed_args.to})
                 for zone in zones)
        return rows((*LIST_COLUMNS, 'project_id'), moved)


class ShowZone(ShowOne):
    """Show a zone."""

    add_arguments = staticmethod(add_zone)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return _shown(self.client.zone(parsed_args.zone))


class SetZone(ChangeCommand):
    """Change a zone's email, TTL or description, or the masters of a secondary zone."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_zone(parser)
        parser.add_argument('--email')
        parser.add_argument('--ttl', type=int, metavar='SECONDS')
        _add_masters(parser)
        description = parser.add_mutually_exclusive_group()
        description.add_argument('--description')
        description.add_argument('--no-description', action='store_true')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, 'email', 'ttl', 'description')
        if parsed_args.no_description:
            body['description'] = None
        if parsed_args.master:
            body['masters'] = parsed_args.master
        if not body:
            raise CliError('Nothing to change; give --email, --ttl, --description, --no-description or --master.')
        zone_id = self.client.zone(parsed_args.zone)['id']
        zone = self.send_change('PATCH', f'/v2/zones/{zone_id}', body)
        if self.wait_if_told(parsed_args, zone, zone['serial']):
            zone = self.client.zone(zone['id'])
        return _shown(zone)


class RefreshZone(ChangeCommand):
    """Refresh a secondary zone from its masters now.

    It is transferred if a master has a newer serial. Otherwise that is done when the SOA of the zone
    says so, and when a master notifies MiniDNS.
    """

    add_arguments = staticmethod(add_zone)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone_id = self.client.zone(parsed_args.zone)['id']
        zone = self.send_change('POST', f'/v2/zones/{zone_id}/tasks/xfr')
        if self.wait_if_told(parsed_args, zone, zone['serial']):
            zone = self.client.zone(zone['id'])
        return _shown(zone)


class MoveZone(ChangeCommand):
    """Move a zone to another pool.

    It is for administrators; with --wait it ends when that pool serves the zone. The servers of the
    former pool keep the zone until then, and for a time afterwards.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_zone(parser)
        parser.add_argument('--pool', metavar='POOL', help='its name or id; not given: the one that the attributes of '
                                                           'the zone choose')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = {} if parsed_args.pool is None else {'pool_id': self.client.pool(parsed_args.pool)['id']}
        zone_id = self.client.zone(parsed_args.zone)['id']
        zone = self.send_change('POST', f'/v2/zones/{zone_id}/tasks/pool_move', body)
        if self.wait_if_told(parsed_args, zone, zone['serial']):
            zone = self.client.zone(zone['id'])
        return _shown(zone)


class AbandonZone(ApiCommand):
    """Delete a zone here and leave it on its servers.

    It is for administrators. The servers keep the zone and are not told of it any more.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_zone(parser)
        _add_delete_shares(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        zone_id = self.client.zone(parsed_args.zone)['id']
        self.client.send('POST', f'/v2/zones/{zone_id}/tasks/abandon', headers=_delete_shares(parsed_args))


class DeleteZone(ChangeCommand):
    """Delete a zone, from the database and from every server."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_zone(parser)
        _add_delete_shares(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone_id = self.client.zone(parsed_args.zone)['id']
        zone = self.send_change('DELETE', f'/v2/zones/{zone_id}',
                                headers=_delete_shares(parsed_args))
        if self.wait_if_told(parsed_args, zone, deletes=True):
            zone = {**zone, 'action': 'NONE', 'status': 'DELETED'}
        return _shown(zone)


def _add_delete_shares(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--delete-shares', action='store_true',
                        help='also if it is shared with other projects, whose recordsets in it end with it')


def _delete_shares(parsed_args: argparse.Namespace) -> dict[str, str] | None:
    """The header for the option."""
    return {'X-Designate-Delete-Shares': 'true'} if parsed_args.delete_shares else None


def _add_masters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--master', '--masters', metavar='ADDRESS', action='extend', nargs='+',
                        help='of a secondary zone: a server to transfer it from, such as 192.0.2.1 or '
                             '[2001:db8::1]:5300; may be given again')


def _shown(zone: Json) -> Shown:
    """A zone, with the masters of a secondary one."""
    return columns(zone, (*ZONE_COLUMNS, *SECONDARY_COLUMNS) if zone.get('type') == 'SECONDARY' else ZONE_COLUMNS)
