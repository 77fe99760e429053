"""``auth = keystone``: authentication by OpenStack Identity, with keystonemiddleware around the application.

The filter removes the headers from a request that it sets itself, so they can be trusted.  A token is checked when an
operation asks who the requester is: those that are open to anyone need no Keystone.  Requests without a token are
passed on, marked as such: the policy decides which operations are open to them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import falcon

from designate_pool.api.auth.identity import BASIC_CHALLENGE, Authenticator, Identity, basic_password, is_status_page
from designate_pool.errors import BadConfiguration, PoolError, Refused, ServiceUnavailable, Unauthorized

LOG = logging.getLogger(__name__)
#: Of the WSGI environment, set by the filter: a function that checks the token, and sets the headers.
_CHECK = 'designate_pool.keystone'
_SECTION = 'keystone_authtoken'
Wsgi = Callable[..., Any]
#: Called with a request and the id of a project; raises :class:`Refused`.
CheckProject = Callable[[falcon.Request, str], None]
#: Seconds that Keystone may take.
_PATIENCE = 10.0


class KeystoneAuth(Authenticator):
    """Authentication by the headers that :func:`wrap`'s filter sets."""

    def __init__(self) -> None:
        self._challenge = 'Keystone'

    def set_token_url(self, uri: str | None) -> None:
        """Set the URL where tokens are issued, for the challenge."""
        if uri:
            self._challenge = f'Keystone uri="{uri}"'

    def challenge(self, req: falcon.Request) -> str:
        return BASIC_CHALLENGE if is_status_page(req.path) else self._challenge

    def identify(self, req: falcon.Request) -> Identity | None:
        """The identity that Keystone vouches for, of a request with a token.

        :raises ServiceUnavailable: when Keystone does not answer
        :raises Refused: when its answer says neither yes nor no
        """
        check = req.env.get(_CHECK)
        if check is None:
            # Without the filter anybody could have written the headers.
            raise Unauthorized(why="the request did not come through Keystone's middleware")
        check()
        if req.get_header('X-Identity-Status') != 'Confirmed':
            if req.get_header('X-Auth-Token'):
                raise Unauthorized(why='Keystone does not know the one sent, or it has expired')
            return None
        roles = tuple(role.strip().lower() for role in (req.get_header('X-Roles') or '').split(',') if role.strip())
        project, user = req.get_header('X-Project-Id') or '', req.get_header('X-User-Id') or ''
        return Identity(project, roles, user=user, key=f'project {project}' if project else f'user {user}')


def wrap(app: Wsgi, conf: Any, secret: Callable[[str], str]) -> Wsgi:
    """*app* behind keystonemiddleware's filter.

    :param conf: oslo.config's object; ``[keystone_authtoken]`` is read from it
    :param secret: the secret that the text of an option stands for, such as ``file:PATH``
    :raises BadConfiguration: when keystonemiddleware is not installed, or its section is wrong
    """
    try:
        from keystoneauth1 import exceptions, loading
        from keystonemiddleware import auth_token
    except ImportError as error:
        raise _wrong(f"[service:api] auth: keystone needs more packages ({error}); install them with "
                     "pip install 'designate-pool[keystone]'") from None

    class Filter(auth_token.AuthProtocol):
        """The filter; it tells a wrong token from a Keystone that cannot say."""

        def process_request(self, request: Any) -> Any:
            request.remove_auth_headers()
            check = super().process_request
            try:
                if not request.user_token:
                    password = basic_password(request.method, request.path, request.headers.get('Authorization'))
                    request.headers['X-Auth-Token'] = password
            except Unauthorized:  # without a token the application refuses it in its own form
                LOG.debug('a wrong header Authorization')
            request.environ[_CHECK] = lambda: check(request)

        def process_response(self, response: Any) -> Any:
            # The filter would add its challenge to ours, and ask Keystone for the address in it.
            return response

        def fetch_token(self, token: str, **options: Any) -> Any:
            try:
                return super().fetch_token(token, **options)
            except auth_token.InvalidToken as error:
                # The filter also calls a token invalid when Keystone gave no answer, or a wrong one.
                if error.__context__ is None or isinstance(error.__context__, exceptions.NotFound):
                    raise
                raise _unchecked(error.__context__) from None
            except Exception as error:  # what the libraries raise when an answer is not what they expect
                raise _unchecked(error) from error

    try:
        _read_secrets(conf, loading, secret)
        return Filter(app, {'oslo_config_config': conf, 'delay_auth_decision': True})
    except Exception as error:  # of the configured plugin about its options
        raise _wrong(f'[{_SECTION}] {type(error).__name__}: {error}') from None


def _read_secrets(conf: Any, loading: Any, secret: Callable[[str], str]) -> None:
    """Put the secrets in the place of the texts that stand for them."""
    loading.register_auth_conf_options(conf, _SECTION)
    section = conf[_SECTION].auth_section or _SECTION
    loading.register_auth_conf_options(conf, section)
    if not conf[section].auth_type:
        return
    options = loading.get_auth_plugin_conf_options(loading.get_plugin_loader(conf[section].auth_type))
    conf.register_opts(options, group=section)
    for option in options:
        if option.secret and (text := conf[section][option.dest]):
            # oslo.config would take a $ in it for a reference to another option.
            conf.set_override(option.dest, secret(text).replace('$', '$$'), group=section)


def _unchecked(error: BaseException) -> PoolError:
    """Why the token could not be checked, for the requester; the log is told the same."""
    from keystoneauth1 import exceptions

    refusal: PoolError
    causes = list(_causes(error))
    if any(isinstance(cause, (exceptions.ConnectFailure, exceptions.RequestTimeout)) for cause in causes):
        refusal = ServiceUnavailable(service='Keystone', why=f'the token could not be checked ({type(error).__name__})')
    elif any(isinstance(cause, exceptions.Unauthorized) for cause in causes):
        refusal = _identity_failed(f'it refuses what this API logs in with, [{_SECTION}]')
    else:
        status = next((cause.http_status for cause in causes if isinstance(cause, exceptions.HttpError)), None)
        refusal = _identity_failed(f'its answer was {status}' if status else
                                   f'its answer was not one of the Identity API, version 3 ({type(error).__name__})')
    LOG.error('%s (%s)', refusal, error)
    return refusal


def _identity_failed(why: str) -> Refused:
    return Refused('identity_failed', f'Keystone answers, but could not check the token: {why}.', 503)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _wrong(why: str) -> BadConfiguration:
    return BadConfiguration(count=1, listing=f'\n  {why}')


def any_project(req: falcon.Request, project_id: str) -> None:
    """Every project is taken for one that exists."""


class KeystoneProjects:
    """Asks Keystone, as the requester.  Who may not see the project, and a Keystone without an answer, count as a yes.

    :param conf: oslo.config's object, with the options of ``[keystone_authtoken]`` read
    """

    def __init__(self, conf: Any) -> None:
        from keystoneauth1 import session

        section = conf[_SECTION]
        named = conf[section.auth_section or _SECTION]
        self._session = session.Session(verify=False if section.insecure else section.cafile or True, timeout=_PATIENCE)
        base = (getattr(named, 'auth_url', None) or section.www_authenticate_uri or '').rstrip('/')
        self._base = base if base.endswith('/v3') else f'{base}/v3'

    def check(self, req: falcon.Request, project_id: str) -> None:
        """Refuse a project that Keystone does not know.

        :raises Refused: when Keystone says that there is no such project
        """
        from keystoneauth1 import exceptions

        try:
            reply = self._session.get(f'{self._base}/projects/{quote(project_id, "")}', authenticated=False,
                                      headers={'X-Auth-Token': req.get_header('X-Auth-Token') or ''},
                                      raise_exc=False)
        except exceptions.ClientException as error:
            LOG.warning('Keystone was not asked for the project %s: %s', project_id, error)
            return
        if reply.status_code == 404:
            raise Refused('invalid_project', f'{project_id} is no project that Keystone knows.')
