"""``designate-pool zone ...``"""

from __future__ import annotations

import argparse
import pathlib
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any, TextIO

from designate_pool.cli import explaining, names
from designate_pool.cli.base import ZONE_COLUMNS, ApiCommand, Change, Json, Lister, ShowOne, Told, columns
from designate_pool.cli.client import Failure

#: A zone file of a million records takes its time.
IMPORT_SECONDS = 900.0
Shown = tuple[Sequence[str], Iterable[Any]]


def _add_zone(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('zone', metavar='ZONE', help='name or id; the final dot may be left out')


class CreateZone(Change):
    """Create a zone."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('name', metavar='NAME', help='such as example.com; the final dot may be left out')
        parser.add_argument('--email', required=True, help='of whoever is responsible for the zone')
        parser.add_argument('--ttl', type=int, metavar='SECONDS', help='for records without their own')
        parser.add_argument('--description')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = {'name': names.of_zone(parsed_args.name), 'email': parsed_args.email, 'ttl': parsed_args.ttl,
                'description': parsed_args.description}
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
        parser.add_argument('--email', help='only those of this address')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        name = parsed_args.name
        if name is not None and not name.endswith('*'):
            name = names.of_zone(name)
        found = self.client.every('/v2/zones', 'zones', name=name, status=parsed_args.status, email=parsed_args.email)
        shown = ('id', 'name', 'serial', 'status', 'action')
        return shown, ([zone[column] for column in shown] for zone in found)


class ShowZone(ShowOne):
    """Show a zone."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.zone(parsed_args.zone), ZONE_COLUMNS, parsed_args.formatter)


class SetZone(Change):
    """Change a zone's email, TTL or description."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_zone(parser)
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
        _add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone_id = self.client.zone(parsed_args.zone)['id']
        zone = self.ask('DELETE', f'/v2/zones/{zone_id}')
        if self.settle(parsed_args, zone, deletes=True):
            zone = {**zone, 'action': 'NONE', 'status': 'DELETED'}
        return columns(zone, ZONE_COLUMNS, parsed_args.formatter)


class ImportZone(Change):
    """Create a zone from a zone file (RFC 1035)."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='FILE', help='the zone file; - is standard input')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        content = _read(parsed_args.file, self.app.stdin)
        self.began = time.monotonic()
        answer = self.client.send('POST', '/v2/zones/tasks/imports', IMPORT_SECONDS, data=content,
                                  headers={'Content-Type': 'text/dns'})
        task = answer.json()
        if task['status'] != 'COMPLETE':
            raise Failure(f'{parsed_args.file} was not imported: {task["message"]}')
        zone = self.client.zone(task['zone_id'])
        if self.settle(parsed_args, zone, zone['serial']):
            zone = self.client.zone(zone['id'])
        return columns(zone, ZONE_COLUMNS, parsed_args.formatter)


def _read(file: str, stdin: TextIO) -> bytes:
    try:
        if file == '-':
            return stdin.buffer.read() if hasattr(stdin, 'buffer') else stdin.read().encode()
        return pathlib.Path(file).read_bytes()
    except OSError as error:
        raise Failure(f'{file} cannot be read: {error.strerror or error}.') from error


class ExportZone(ApiCommand):
    """Write a zone as a zone file (RFC 1035)."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_zone(parser)
        parser.add_argument('--file', metavar='FILE', help='where to; standard output if not given')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        task = self.client.change('POST', f'/v2/zones/{self.client.zone(parsed_args.zone)["id"]}/tasks/export')
        answer = self.client.send('GET', f'/v2/zones/tasks/exports/{task["id"]}/export', IMPORT_SECONDS)
        text = answer.content.decode('utf-8')
        if parsed_args.file is None:
            self.app.stdout.write(text)
            return
        try:
            pathlib.Path(parsed_args.file).write_text(text, encoding='utf-8')
        except OSError as error:
            raise Failure(f'{parsed_args.file} cannot be written: {error.strerror or error}.') from error


class ExplainZone(Told):
    """Tell why a zone is not ACTIVE, or not on every server."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        shown = self.client.get(f'/v2/zones/{zone["id"]}/servers')
        explained = explaining.explain(shown, datetime.now(timezone.utc))
        return tuple(explained), tuple(explained.values())

    def text(self, found: Json) -> str:
        return explaining.text(found)
