"""Where the API is and who asks: from options, the environment and the file of clouds.

Options take precedence over the environment, and that over the file.  A cloud that is named by an option takes
precedence over the environment too.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping

from designate_pool.cli.http import clouds

DEFAULT_URL = 'http://127.0.0.1:9001'
CLOUD = 'DESIGNATE_POOL_CLOUD'


@dataclasses.dataclass(frozen=True)
class ApiConnection:
    """
    :ivar given: the URL of the API; None where none is configured
    :ivar project: the project the command is for; None for the token's
    :ivar all_projects: whether it is for all projects
    :ivar format: the format of output unless ``--format`` is given
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
        return self.given or DEFAULT_URL


def add_options(parser: argparse.ArgumentParser) -> None:
    # None is not the default URL: a configuration may name the pool instead.
    parser.add_argument('--url', help=f'where the API is; DESIGNATE_POOL_URL if not given, else {DEFAULT_URL}')
    parser.add_argument('--token', help='the token; DESIGNATE_POOL_TOKEN if not given, which other users of the host '
                                        'cannot see')
    parser.add_argument('--cloud', metavar='NAME',
                        help=f'take all of this from an entry of {clouds.PLACES[0]} or {clouds.PLACES[1]}, or of the '
                             f'file that {clouds.VARIABLE} names; {CLOUD} if not given')
    parser.add_argument('--project', metavar='ID',
                        help="act for this project, if the policy allows it; DESIGNATE_POOL_PROJECT if not given, else "
                             "the token's")
    parser.add_argument('--all-projects', action='store_true',
                        help="show every project's zones, if the policy allows it")


def resolve(options: argparse.Namespace, environ: Mapping[str, str], warn: clouds.Warn) -> ApiConnection:
    """
    :param options: as of :func:`add_options`
    :raises CliError: when the named cloud does not exist, or the file of clouds is malformed
    """
    cloud = clouds.find(options.cloud or environ.get(CLOUD) or None, environ, warn)
    named = bool(options.cloud)

    def chosen(name: str, option: str | None = None, within: clouds.Cloud = cloud) -> str | None:
        inherited = environ.get(f'DESIGNATE_POOL_{name.upper()}'), within.get(name)
        return option or (inherited[named] or inherited[not named]) or None

    url = chosen('url', options.url)
    # A token is sent only to the API that it is configured for.
    within = cloud if (cloud.get('url') or url or '').rstrip('/') == (url or '').rstrip('/') else {}
    return ApiConnection(url, chosen('token', options.token, within), chosen('project', options.project, within),
                         options.all_projects, chosen('format'), within.get('cacert'))
