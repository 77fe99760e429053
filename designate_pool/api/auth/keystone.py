"""``auth = keystone``: authentication by OpenStack Identity, with keystonemiddleware around the application.

The filter removes the headers from a request that it sets itself, so they can be trusted.  It passes requests without a
token on, marked as such: the policy decides which operations are open to them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import falcon

from designate_pool.api.auth import basic
from designate_pool.api.auth.identity import Identity
from designate_pool.errors import BadConfiguration, ServiceUnavailable, Unauthorized

LOG = logging.getLogger(__name__)
#: Of the WSGI environment, set by the filter.
_PASSED, _DOWN = 'designate_pool.keystone', 'designate_pool.keystone_down'
Wsgi = Callable[..., Any]


class KeystoneAuth:
    """An :class:`designate_pool.api.auth.middleware.Authenticator` by the headers that :func:`wrap`'s filter sets."""

    def __init__(self) -> None:
        self._challenge = 'Keystone'

    def set_token_url(self, uri: str | None) -> None:
        """Set the URL where tokens are issued, for the challenge."""
        if uri:
            self._challenge = f'Keystone uri="{uri}"'

    def challenge(self, req: falcon.Request) -> str:
        return basic.CHALLENGE if basic.is_for(req.path) else self._challenge

    def identify(self, req: falcon.Request) -> Identity | None:
        if not req.env.get(_PASSED):
            # Without the filter anybody could have written the headers.
            raise Unauthorized(why="the request did not come through Keystone's middleware")
        if req.env.get(_DOWN):
            raise ServiceUnavailable(service='Keystone', why=str(req.env[_DOWN]))
        if req.get_header('X-Identity-Status') != 'Confirmed':
            if req.get_header('X-Auth-Token'):
                raise Unauthorized(why='Keystone does not know the one sent, or it has expired')
            return None
        roles = tuple(role.strip().lower() for role in (req.get_header('X-Roles') or '').split(',') if role.strip())
        project, user = req.get_header('X-Project-Id') or '', req.get_header('X-User-Id') or ''
        return Identity(project, roles, user=user, key=f'project {project}' if project else f'user {user}')


def wrap(app: Wsgi, conf: Any) -> Wsgi:
    """*app* behind keystonemiddleware's filter.

    :param conf: oslo.config's object; ``[keystone_authtoken]`` is read from it
    :raises BadConfiguration: when keystonemiddleware is not installed, or its section is wrong
    """
    try:
        from keystoneauth1 import exceptions as failures
        from keystonemiddleware import auth_token
    except ImportError as error:
        raise _wrong(f"[service:api] auth: keystone needs more packages ({error}); install them with "
                     "pip install 'designate-pool[keystone]'") from None

    unanswered = (failures.ConnectFailure, failures.DiscoveryFailure, failures.RequestTimeout,
                  auth_token.ServiceError)

    class Filter(auth_token.AuthProtocol):
        """The filter; it tells a Keystone that is down from a wrong token."""

        def process_request(self, request: Any) -> Any:
            request.environ[_PASSED] = True
            try:
                if not request.user_token:
                    password = basic.password(request.method, request.path, request.headers.get('Authorization'))
                    request.headers['X-Auth-Token'] = password
            except Unauthorized:  # without a token the application refuses it in its own form
                LOG.debug('a wrong header Authorization')
            try:
                return super().process_request(request)
            except _KeystoneDown as error:
                request.user_token_valid = False
                request.environ[_DOWN] = str(error)
                return None

        def process_response(self, response: Any) -> Any:
            # The filter would add its challenge to ours, and ask Keystone for the address in it.
            return response

        def fetch_token(self, token: str, **options: Any) -> Any:
            try:
                return super().fetch_token(token, **options)
            except auth_token.InvalidToken as error:
                # The filter also calls a token invalid when Keystone did not answer.
                if isinstance(error.__context__, unanswered):
                    raise _KeystoneDown(_reason(error.__context__)) from None
                raise
            except failures.ClientException as error:
                raise _KeystoneDown(_reason(error)) from None

    try:
        return Filter(app, {'oslo_config_config': conf, 'delay_auth_decision': True})
    except Exception as error:  # of the configured plugin about its options
        raise _wrong(f'[keystone_authtoken] {type(error).__name__}: {error}') from None


def uri(conf: Any) -> str | None:
    """Where users get their tokens, as the configuration says; known once :func:`wrap` was called."""
    found: str | None = conf.keystone_authtoken.www_authenticate_uri
    return found


class _KeystoneDown(Exception):
    """The token could not be checked."""


def _reason(error: BaseException) -> str:
    LOG.error('Keystone did not check a token: %s', error)
    return f'the token could not be checked ({type(error).__name__})'


def _wrong(why: str) -> BadConfiguration:
    return BadConfiguration(count=1, listing=f'\n  {why}')
