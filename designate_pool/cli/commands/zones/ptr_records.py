"""``designate-pool ptr record ...``: the PTR records of floating IPs."""

from __future__ import annotations

import argparse

from designate_pool.cli.base import ApiCommand, Lister, Shown, ShowOne, columns, options_given, rows

_PATH = '/v2/reverse/floatingips'
LIST_COLUMNS = ('id', 'address', 'ptrdname', 'ttl', 'description', 'status')
COLUMNS = ('id', 'address', 'ptrdname', 'ttl', 'description', 'status', 'action')


def _add_floating_ip(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('floating_ip', metavar='REGION:ID', help='region and id of the floating IP')


class ListPtrRecords(Lister):
    """List the floating IPs of a project with their PTR records."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(LIST_COLUMNS, self.client.get(_PATH)['floatingips'])


class ShowPtrRecord(ShowOne):
    """Show a floating IP with its PTR record."""

    add_arguments = staticmethod(_add_floating_ip)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.get(f'{_PATH}/{parsed_args.floating_ip}'), COLUMNS)


class SetPtrRecord(ShowOne):
    """Set the PTR record of a floating IP; without --ttl it has that of its zone."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_floating_ip(parser)
        parser.add_argument('ptrdname', metavar='NAME', help='the name that the address has, with the final dot')
        parser.add_argument('--ttl', type=int, help='seconds')
        parser.add_argument('--description')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, 'ptrdname', 'ttl', 'description')
        return columns(self.client.change('PATCH', f'{_PATH}/{parsed_args.floating_ip}', body), COLUMNS)


class UnsetPtrRecord(ApiCommand):
    """Delete the PTR record of a floating IP."""

    add_arguments = staticmethod(_add_floating_ip)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('PATCH', f'{_PATH}/{parsed_args.floating_ip}', json={'ptrdname': None})
