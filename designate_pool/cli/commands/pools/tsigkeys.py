"""``designate-pool tsigkey ...``: keys that zones can be transferred with from MiniDNS."""

from __future__ import annotations

import argparse
import base64
import pathlib
import secrets
from typing import Any

from designate_pool.cli.base import ApiCommand, Lister, Shown, ShowOne, columns, rows
from designate_pool.cli.http.errors import CliError, Json
from designate_pool.model import TSIG_ALGORITHMS

DEFAULT_ALGORITHM = 'hmac-sha256'
LIST_COLUMNS = ('id', 'name', 'algorithm', 'scope', 'resource_id')
COLUMNS = ('id', 'name', 'algorithm', 'secret', 'scope', 'resource_id', 'created_at', 'updated_at')
#: Bytes of a generated secret: the length of a SHA-256 digest.
SECRET_BYTES = 32


def _add_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('tsigkey', metavar='KEY', help='name, or id or the first four or more digits of it')


def _add_scope(parser: argparse.ArgumentParser, required: bool) -> None:
    scope = parser.add_mutually_exclusive_group(required=required)
    scope.add_argument('--pool', metavar='POOL', help='every zone of this pool can be transferred with the key')
    scope.add_argument('--zone', metavar='ZONE', help='this zone can be transferred with the key')


def _add_secret(parser: argparse.ArgumentParser, otherwise: str) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument('--secret', metavar='BASE64', help='visible to other users of the host for a moment; '
                                                          f'{otherwise}')
    group.add_argument('--secret-file', metavar='FILE', help='file with the secret; - is standard input')


class ListKeys(Lister):
    """List the TSIG keys that zones can be transferred with."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(LIST_COLUMNS, self.client.every('/v2/tsigkeys', 'tsigkeys'))


class ShowKey(ShowOne):
    """Show a TSIG key; its secret is not shown."""

    add_arguments = staticmethod(_add_key)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.tsigkey(parsed_args.tsigkey), COLUMNS)


class _ChangeKey(ShowOne):
    """Creates or changes a key."""

    def secret(self, parsed_args: argparse.Namespace) -> str | None:
        """The secret given as an option, in a file or on standard input."""
        if parsed_args.secret_file is None:
            secret: str | None = parsed_args.secret
            return secret
        try:
            text = self.app.stdin.read() if parsed_args.secret_file == '-' \
                else pathlib.Path(parsed_args.secret_file).read_text(encoding='utf-8')
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, 'strerror', None) or 'it is no text'
            raise CliError(f'{parsed_args.secret_file} cannot be read: {why}.') from error
        return text.strip()

    def scope(self, parsed_args: argparse.Namespace) -> Json:
        """What can be transferred with the key, as the API takes it."""
        if parsed_args.pool is not None:
            return {'scope': 'POOL', 'resource_id': self.client.pool(parsed_args.pool)['id']}
        if parsed_args.zone is not None:
            return {'scope': 'ZONE', 'resource_id': self.client.zone(parsed_args.zone)['id']}
        return {}


class CreateKey(_ChangeKey):
    """Create a TSIG key, for a pool or for one zone.

    A secret that is not given is generated, and shown only this once.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('name', metavar='NAME', help='of the key, as the server that transfers has it')
        _add_scope(parser, required=True)
        parser.add_argument('--algorithm', choices=TSIG_ALGORITHMS, default=DEFAULT_ALGORITHM,
                            help=f'{DEFAULT_ALGORITHM} if not given')
        _add_secret(parser, 'one is generated and shown if none is given')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        typed = self.secret(parsed_args)
        secret = base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode() if typed is None else typed
        key = self.client.change('POST', '/v2/tsigkeys', {
            'name': parsed_args.name, 'algorithm': parsed_args.algorithm, 'secret': secret, **self.scope(parsed_args)})
        return columns(key if typed is not None else {**key, 'secret': secret}, COLUMNS)


class SetKey(_ChangeKey):
    """Change a TSIG key."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_key(parser)
        parser.add_argument('--name', help='another name')
        _add_scope(parser, required=False)
        parser.add_argument('--algorithm', choices=TSIG_ALGORITHMS)
        _add_secret(parser, 'the secret is not changed if none is given')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        values: dict[str, Any] = {'name': parsed_args.name, 'algorithm': parsed_args.algorithm,
                                  'secret': self.secret(parsed_args), **self.scope(parsed_args)}
        body = {name: value for name, value in values.items() if value is not None}
        if not body:
            raise CliError('Nothing to change; give --name, --pool, --zone, --algorithm, --secret or --secret-file.')
        key = self.client.change('PATCH', f'/v2/tsigkeys/{self.client.tsigkey(parsed_args.tsigkey)["id"]}', body)
        return columns(key, COLUMNS)


class DeleteKey(ApiCommand):
    """Delete a TSIG key."""

    add_arguments = staticmethod(_add_key)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', f'/v2/tsigkeys/{self.client.tsigkey(parsed_args.tsigkey)["id"]}')
