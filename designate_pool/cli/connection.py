"""Where the API is and who asks: from options, the environment and the file of clouds.

Options take precedence over the environment, and that over the file.  A cloud that is named by an option takes
precedence over the environment too.  The file of clouds names APIs, each with its URL, token and project::

    default: production
    clouds:
      production:
        url: https://dns.example.com
        token_file: production.token
      laboratory:
        url: http://192.0.2.1:9001
        token: ...
        project: blue
        format: json
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import stat
from collections.abc import Callable, Mapping
from typing import Any

import yaml

VARIABLE = 'DESIGNATE_POOL_CONFIG'
PLACES = ('~/.config/designate-pool/clouds.yaml', '/etc/designate-pool/clouds.yaml')
KEYS = ('url', 'token', 'token_file', 'project', 'format', 'cacert')
Cloud = Mapping[str, str]
Warn = Callable[[str], object]


class CliError(Exception):
    """The command failed; the message is for the user, *code* is the exit code."""

    code = 1


def find(name: str | None, environ: Mapping[str, str], warn: Warn) -> Cloud:
    """The cloud *name* with its token read; without a name the default of the file, and empty if it has none.

    :raises CliError: when the file is malformed, or has no such cloud
    """
    path = path_of(environ)
    if path is None:
        if name is None:
            return {}
        raise CliError(f'There is no cloud {name}, for there is no file of clouds: write one as {PLACES[0]}, or name '
                       f'it in {VARIABLE}.')
    default, clouds = _read(path)
    name = name or default
    if name is None:
        return {}
    if name not in clouds:
        raise CliError(f'There is no cloud {name} in {path}; there are: {", ".join(sorted(clouds)) or "none"}.')
    return _with_token(clouds[name], path, warn)


def path_of(environ: Mapping[str, str]) -> pathlib.Path | None:
    """The file of the environment, which must exist, else the first of :data:`PLACES` that exists."""
    if named := environ.get(VARIABLE):
        return pathlib.Path(named)
    return next((path for place in PLACES if (path := pathlib.Path(os.path.expanduser(place))).is_file()), None)


def _read(path: pathlib.Path) -> tuple[str | None, dict[str, Cloud]]:
    document = _mapping(_parsed(path), path, 'the file')
    clouds = _mapping(document.pop('clouds', None) or {}, path, 'clouds')
    default = document.pop('default', None)
    if document:
        raise CliError(f'{path}: {_first(document)} is not known here; known are clouds and default.')
    if default is not None and default not in clouds:
        raise CliError(f'{path}: default: there is no cloud {default}; there are: {", ".join(map(str, clouds))}.')
    return default, {str(name): _checked(cloud, path, f'clouds.{name}') for name, cloud in clouds.items()}


def _parsed(path: pathlib.Path) -> Any:
    try:
        return yaml.safe_load(_text(path))
    except yaml.YAMLError as error:
        # The message of YAML may quote a line, which may have the token.
        mark = getattr(error, 'problem_mark', None)
        raise CliError(f'{path}: {"" if mark is None else f"line {mark.line + 1}: "}this is no YAML.') from None


def _checked(given: Any, path: pathlib.Path, place: str) -> Cloud:
    cloud = _mapping(given, path, place)
    if unknown := set(cloud) - set(KEYS):
        raise CliError(f'{path}: {place}.{_first(unknown)} is not known here; known are {", ".join(KEYS)}.')
    for key, value in cloud.items():
        if not isinstance(value, str) or not value:
            raise CliError(f'{path}: {place}.{key}: must be a text.')
    if 'token' in cloud and 'token_file' in cloud:
        raise CliError(f'{path}: {place}: give token or token_file, not both.')
    return cloud


def _with_token(cloud: Cloud, path: pathlib.Path, warn: Warn) -> Cloud:
    if 'token_file' not in cloud:
        if 'token' in cloud:
            _warn_if_readable(path, warn)
        return cloud
    file = path.parent / os.path.expanduser(cloud['token_file'])
    _warn_if_readable(file, warn)
    token = _text(file).strip()
    if not token:
        raise CliError(f'{file}: there is no token in it.')
    return {**cloud, 'token': token}


def _warn_if_readable(path: pathlib.Path, warn: Warn) -> None:
    try:
        mode = path.stat().st_mode
    except OSError:  # reading it fails with a message
        return
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        warn(f"Others can read the token in {path}; 'chmod 600 {path}' keeps it to you.")


def _text(path: pathlib.Path) -> str:
    try:
        return path.read_text(encoding='utf-8')
    except OSError as error:
        raise CliError(f'{path} cannot be read: {error.strerror or error}.') from error
    except UnicodeDecodeError as error:
        raise CliError(f'{path} is not UTF-8 text.') from error


def _mapping(found: Any, path: pathlib.Path, place: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise CliError(f'{path}: {place} must be a mapping.')
    return dict(found)


def _first(names: Any) -> str:
    return min(map(str, names))


DEFAULT_URL = 'http://127.0.0.1:9001'
CLOUD = 'DESIGNATE_POOL_CLOUD'


@dataclasses.dataclass(frozen=True)
class ApiConnection:
    """Where the API is, and who asks.

    :ivar given: the URL of the API; None where none is configured
    :ivar project: the project the command is for; None for the token's
    :ivar all_projects: whether it is for all projects
    :ivar cacert: a file of CA certificates to verify the API's certificate with
    """

    given: str | None = None
    token: str | None = dataclasses.field(default=None, repr=False)
    project: str | None = None
    all_projects: bool = False
    format: str | None = None
    cacert: str | None = None

    @property
    def url(self) -> str:
        """The URL of the API: the given one, else the default."""
        return self.given or DEFAULT_URL


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options by which :func:`resolve` finds the API and who asks."""
    # None is not the default URL: a configuration may name the pool instead.
    parser.add_argument('--url', help=f'where the API is; DESIGNATE_POOL_URL if not given, else {DEFAULT_URL}')
    parser.add_argument('--token', help='the token; DESIGNATE_POOL_TOKEN if not given, which other users of the host '
                                        'cannot see')
    parser.add_argument('--cloud', metavar='NAME',
                        help=f'take all of this from an entry of {PLACES[0]} or {PLACES[1]}, or of the '
                             f'file that {VARIABLE} names; {CLOUD} if not given')
    parser.add_argument('--project', metavar='ID',
                        help="act for this project, if the policy allows it; DESIGNATE_POOL_PROJECT if not given, else "
                             "the token's")
    parser.add_argument('--all-projects', action='store_true',
                        help="show every project's zones, if the policy allows it")


def resolve(options: argparse.Namespace, environ: Mapping[str, str], warn: Warn) -> ApiConnection:
    """The connection that options, environment and the file of clouds ask for.

    :raises CliError: when the named cloud does not exist, or the file of clouds is malformed
    """
    cloud = find(options.cloud or environ.get(CLOUD) or None, environ, warn)
    named = bool(options.cloud)

    def chosen(name: str, option: str | None = None, within: Cloud = cloud) -> str | None:
        inherited = environ.get(f'DESIGNATE_POOL_{name.upper()}'), within.get(name)
        return option or (inherited[named] or inherited[not named]) or None

    url = chosen('url', options.url)
    # A token is sent only to the API that it is configured for.
    within = cloud if (cloud.get('url') or url or '').rstrip('/') == (url or '').rstrip('/') else {}
    return ApiConnection(url, chosen('token', options.token, within), chosen('project', options.project, within),
                         options.all_projects, chosen('format'), within.get('cacert'))
