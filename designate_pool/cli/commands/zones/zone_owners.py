"""``designate-pool zone share ...`` and ``designate-pool zone transfer ...``: zones that other projects use, or get."""

from __future__ import annotations

import argparse

from designate_pool.cli.args.common import add_zone, is_id
from designate_pool.cli.base import ApiCommand, Lister, Shown, ShowOne, columns, options_given, rows
from designate_pool.cli.http.errors import CliError, Json

SHARE_LIST_COLUMNS = ('id', 'target_project_id', 'project_id', 'created_at')
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
        return rows(SHARE_LIST_COLUMNS, self.client.every(f'/v2/zones/{zone_id}/shares', 'shared_zones',
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


REQUESTS, ACCEPTS = '/v2/zones/tasks/transfer_requests', '/v2/zones/tasks/transfer_accepts'
REQUEST_LIST_COLUMNS = ('id', 'zone_id', 'zone_name', 'target_project_id', 'status', 'key')
REQUEST_COLUMNS = ('id', 'zone_id', 'zone_name', 'project_id', 'target_project_id', 'key', 'status', 'description',
                   'created_at', 'updated_at')
ACCEPT_COLUMNS = ('id', 'zone_transfer_request_id', 'zone_id', 'project_id', 'status', 'created_at', 'updated_at')


class _TransferRequest(ApiCommand):
    """A command about one transfer request."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('request', metavar='REQUEST', help='its id, or the first four or more digits of it')

    def request(self, parsed_args: argparse.Namespace) -> Json:
        if is_id(parsed_args.request):
            return self.client.get(f'{REQUESTS}/{parsed_args.request}')
        return self.client.chosen(parsed_args.request, self.client.every(REQUESTS, 'transfer_requests'),
                                  'zone_transfer_request')


class ListTransferRequests(Lister):
    """List the transfer requests of a project, and those to it."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(REQUEST_LIST_COLUMNS, self.client.every(REQUESTS, 'transfer_requests'))


class ShowTransferRequest(_TransferRequest, ShowOne):
    """Show a transfer request."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.request(parsed_args), REQUEST_COLUMNS)


class CreateTransferRequest(ShowOne):
    """Request that another project take over a zone.

    Send the id of the request and its key to somebody of that project.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_zone(parser)
        parser.add_argument('--target-project', dest='target_project_id', metavar='PROJECT',
                            help='id of the only project that can accept; any that has the key if not given')
        parser.add_argument('--description')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone_id = self.client.zone(parsed_args.zone)['id']
        made = self.client.change('POST', f'/v2/zones/{zone_id}/tasks/transfer_requests',
                                  options_given(parsed_args, 'target_project_id', 'description'))
        return columns(made, REQUEST_COLUMNS)


class SetTransferRequest(_TransferRequest, ShowOne):
    """Change the description of a transfer request."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        description = parser.add_mutually_exclusive_group()
        description.add_argument('--description')
        description.add_argument('--no-description', action='store_true')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        if parsed_args.description is None and not parsed_args.no_description:
            raise CliError('Nothing to change; give --description or --no-description.')
        path = f'{REQUESTS}/{self.request(parsed_args)["id"]}'
        return columns(self.client.change('PATCH', path, {'description': parsed_args.description}), REQUEST_COLUMNS)


class DeleteTransferRequest(_TransferRequest):
    """Withdraw a transfer request."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', f'{REQUESTS}/{self.request(parsed_args)["id"]}')


class AcceptTransferRequest(ShowOne):
    """Take over a zone by a transfer request and its key."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--transfer-id', metavar='REQUEST', required=True, help='id of the transfer request')
        parser.add_argument('--key', required=True, help='of the transfer request')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.change('POST', ACCEPTS, {
            'zone_transfer_request_id': parsed_args.transfer_id, 'key': parsed_args.key}), ACCEPT_COLUMNS)


class ListTransferAccepts(Lister):
    """List accepted transfers."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(ACCEPT_COLUMNS, self.client.every(ACCEPTS, 'transfer_accepts'))


class ShowTransferAccept(ShowOne):
    """Show an accepted transfer."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('accept', metavar='ACCEPT', help='its id')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.get(f'{ACCEPTS}/{parsed_args.accept}'), ACCEPT_COLUMNS)
