"""What administrators decide: names that zones may have, TSIG keys, and quotas."""

from __future__ import annotations

import argparse
import base64
import pathlib
import secrets
import urllib.parse
from typing import Any

from designate_pool.cli.base import (DESCRIPTION, ApiCommand, Argument, OneOf, ResourceCommand, Shown, ShowOne,
                                     all_columns, changes_given, columns, create_command, delete_command, list_command,
                                     set_command, show_command)
from designate_pool.cli.client import Json, Resource
from designate_pool.cli.connection import CliError
from designate_pool.model import TSIG_ALGORITHMS

BLACKLIST = Resource('blacklist', '/v2/blacklists', ('id', 'pattern', 'description', 'created_at', 'updated_at'),
                     ('id', 'pattern', 'description'), name='pattern', metavar='PATTERN',
                     help='pattern, or id or the first four or more digits of it')


ZoneBlacklistList = list_command(BLACKLIST, 'List the patterns of names that zones may not have.', sort_key='pattern')
ZoneBlacklistShow = show_command(BLACKLIST, 'Show a pattern of names that zones may not have.')
ZoneBlacklistDelete = delete_command(BLACKLIST, 'Remove a pattern of names that zones may not have.')


ZoneBlacklistCreate = create_command(BLACKLIST, """Add a pattern of names that zones may not have.

    It is a regular expression that is looked for in the whole name, in lower case and with its final dot.
    """, Argument('pattern', metavar='PATTERN', help=r"such as '^([a-z0-9_-]+\.)*example\.com\.$'"),
                                     Argument('--description'))
ZoneBlacklistSet = set_command(BLACKLIST, 'Change a pattern of names that zones may not have.',
                               Argument('--pattern', help='another pattern'), DESCRIPTION)


TLD = Resource('tld', '/v2/tlds', ('id', 'name', 'description', 'created_at', 'updated_at'),
               ('id', 'name', 'description'), noun='top-level domain', metavar='TLD')


TldList = list_command(TLD, 'List the top-level domains that zones may lie below.', sort_key='name')
TldShow = show_command(TLD, 'Show a top-level domain.')
TldDelete = delete_command(TLD, 'Remove a top-level domain; the zones below it stay.')


TldCreate = create_command(TLD, """Add a top-level domain; with the first, every new zone lies below one of them.

    Zones that there are already stay as they are.
    """, Argument('name', metavar='NAME', type=lambda name: name.removesuffix('.'), help='such as com, or co.uk'),
                           Argument('--description'))
TldSet = set_command(TLD, 'Change a top-level domain.', Argument('--name', help='another name'), DESCRIPTION)


KEY = Resource('tsigkey', '/v2/tsigkeys',
               ('id', 'name', 'algorithm', 'secret', 'scope', 'resource_id', 'created_at', 'updated_at'),
               ('id', 'name', 'algorithm', 'scope', 'resource_id'), noun='TSIG key', metavar='KEY')
DEFAULT_ALGORITHM = 'hmac-sha256'
#: Bytes of a generated secret: the length of a SHA-256 digest.
SECRET_BYTES = 32


def _scope(required: bool) -> OneOf:
    return OneOf(
        Argument('--pool', metavar='POOL', help='every zone of this pool can be transferred with the key'),
        Argument('--zone', metavar='ZONE', help='this zone can be transferred with the key'), required=required)


def _secret(otherwise: str) -> OneOf:
    return OneOf(
        Argument('--secret', metavar='BASE64', help=f'visible to other users of the host for a moment; {otherwise}'),
        Argument('--secret-file', metavar='FILE', help='file with the secret; - is standard input'))


TsigkeyList = list_command(KEY, 'List the TSIG keys that zones can be transferred with.')
TsigkeyShow = show_command(KEY, 'Show a TSIG key; its secret is not shown.')
TsigkeyDelete = delete_command(KEY, 'Delete a TSIG key.')


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
            return {'scope': 'POOL', 'resource_id': self.pool_id(parsed_args)['pool_id']}
        return {} if parsed_args.zone is None else {'scope': 'ZONE',
                                                    'resource_id': self.client.zone(parsed_args.zone)['id']}


class TsigkeyCreate(_ChangeKey):
    """Create a TSIG key, for a pool or for one zone.

    A secret that is not given is generated, and shown only this once.
    """

    arguments = (
        Argument('name', metavar='NAME', help='of the key, as the server that transfers has it'),
        _scope(True),
        Argument('--algorithm', choices=TSIG_ALGORITHMS, default=DEFAULT_ALGORITHM,
                 help=f'{DEFAULT_ALGORITHM} if not given'),
        _secret('one is generated and shown if none is given'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        typed = self.secret(parsed_args)
        secret = base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode() if typed is None else typed
        key = self.client.json('POST', KEY.path, {
            'name': parsed_args.name, 'algorithm': parsed_args.algorithm, 'secret': secret, **self.scope(parsed_args)})
        return columns(key if typed is not None else {**key, 'secret': secret}, KEY.columns)


class TsigkeySet(ResourceCommand, _ChangeKey):
    """Change a TSIG key."""

    resource = KEY

    arguments = (
        Argument('--name', help='another name'),
        _scope(False),
        Argument('--algorithm', choices=TSIG_ALGORITHMS),
        _secret('the secret is not changed if none is given'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        values: dict[str, Any] = {'name': parsed_args.name, 'algorithm': parsed_args.algorithm,
                                  'secret': self.secret(parsed_args), **self.scope(parsed_args)}
        body = {name: value for name, value in values.items() if value is not None}
        if not body:
            raise CliError('Nothing to change; give --name, --pool, --zone, --algorithm, --secret or --secret-file.')
        return columns(self.client.json('PATCH', self.path(parsed_args), body), KEY.columns)


#: What can be limited; -1 is without limit.
QUOTAS = tuple(Argument(option, type=int, metavar='N', help=limited) for option, limited in (
    ('--zones', 'of the project'), ('--zone-recordsets', 'recordsets of one zone'),
    ('--zone-records', 'records of one zone'), ('--recordset-records', 'records of one recordset'),
    ('--api-export-size', 'recordsets of a zone that is exported'),
    ('--deletes-per-hour', 'recordsets that are deleted in an hour, with those of deleted zones'),
    ('--zone-deletes-per-hour', 'recordsets that are deleted in an hour in one zone')))
_PROJECT = Argument('project_id', metavar='PROJECT', help='its id')
#: The API requires it to show another project.
_ALL_PROJECTS = {'X-Auth-All-Projects': 'true'}


def _path(project: str) -> str:
    return f'/v2/quotas/{urllib.parse.quote(project, safe="")}'


class QuotaShow(ShowOne):
    """Show the quotas of a project; -1 is without limit."""

    arguments = (Argument('project_id', metavar='PROJECT', nargs='?', help='your own if not given'),)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        if parsed_args.project_id is None:
            return all_columns(self.client.get('/v2/quotas'))
        return all_columns(self.client.json('GET', _path(parsed_args.project_id), headers=_ALL_PROJECTS))


class QuotaSet(ShowOne):
    """Change the quotas of a project; -1 is without limit."""

    arguments = (_PROJECT, *QUOTAS)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = changes_given(parsed_args, QUOTAS)
        return all_columns(self.client.json('PATCH', _path(parsed_args.project_id), body, headers=_ALL_PROJECTS))


class QuotaUnset(ApiCommand):
    """Reset the quotas of a project to those of the configuration."""

    arguments = (_PROJECT,)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', _path(parsed_args.project_id), headers=_ALL_PROJECTS)


class LimitsCommand(ShowOne):
    """Show the limits of the API."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return all_columns(self.client.get('/v2/limits'))
