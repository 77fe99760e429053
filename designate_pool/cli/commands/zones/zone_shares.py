"""``designate-pool zone share ...``: zones that other projects may use."""

from __future__ import annotations

import argparse

from designate_pool.cli.args.common import add_zone
from designate_pool.cli.base import ApiCommand, Lister, Shown, ShowOne, columns, rows

LIST_COLUMNS = ('id', 'target_project_id', 'project_id', 'created_at')
SHARE_COLUMNS = ('id', 'zone_id', 'project_id', 'target_project_id', 'created_at')


class _Share(ApiCommand):
    """A command about one share."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_zone(parser)
        parser.add_argument('share', metavar='SHARE', help='its id, the first four or more digits of it, or the id of '
                                                           'the project that the zone is shared with')


class CreateShare(ShowOne):
    """Share a zone with another project, which may then have recordsets of its own in it."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_zone(parser)
        parser.add_argument('target_project_id', metavar='PROJECT', help='id of the project')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone_id = self.client.zone(parsed_args.zone)['id']
        return columns(self.client.change('POST', f'/v2/zones/{zone_id}/shares', {
            'target_project_id': parsed_args.target_project_id}), SHARE_COLUMNS)


class ListShares(Lister):
    """List the shares of a zone."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_zone(parser)
        parser.add_argument('--target-project-id', metavar='PROJECT', help='only the share with this project')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone_id = self.client.zone(parsed_args.zone)['id']
        return rows(LIST_COLUMNS, self.client.every(f'/v2/zones/{zone_id}/shares', 'shared_zones',
                                                    target_project_id=parsed_args.target_project_id))


class ShowShare(_Share, ShowOne):
    """Show a share of a zone."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.share(self.client.zone(parsed_args.zone), parsed_args.share), SHARE_COLUMNS)


class DeleteShare(_Share):
    """End a share of a zone; the other project must have no recordsets in it any more."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        share = self.client.share(self.client.zone(parsed_args.zone), parsed_args.share)
        self.client.send('DELETE', f'/v2/zones/{share["zone_id"]}/shares/{share["id"]}')
