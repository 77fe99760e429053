"""The middleware that guards the API, and the files that it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from designate_pool.api.auth import keystone, policy
from designate_pool.api.auth.identity import Authenticator
from designate_pool.api.auth.keystone import KeystoneProjects
from designate_pool.api.auth.middleware import AuthMiddleware, NoAuth
from designate_pool.api.auth.token_file import TokenAuth
from designate_pool.api.http.cross_site import CrossSiteGuard
from designate_pool.api.http.limits import RateLimits
from designate_pool.config import values
from designate_pool.settings import KEYSTONE, NOAUTH, TOKEN, ApiSettings

Wsgi = Callable[..., Any]


class ApiGuard:
    """The middleware that guards an API, and the files it reads.

    :raises BadConfiguration: when one of the files is missing or wrong
    """

    def __init__(self, settings: ApiSettings, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._verifies_projects = settings.quotas_verify_project_id
        self._projects: KeystoneProjects | None = None
        self._hosts = settings.hosts if settings.auth == NOAUTH else None
        self._policy = policy.OsloPolicy(conf)
        policy.check_policy_file(conf)
        self._tokens = TokenAuth(settings.tokens_file or '') if settings.auth == TOKEN else None
        self._keystone = keystone.KeystoneAuth() if settings.auth == KEYSTONE else None
        authenticator: Authenticator = self._tokens or self._keystone or NoAuth()
        self.gate = AuthMiddleware(authenticator, self._policy, RateLimits(settings.rate_limit, settings.rate_burst))

    def around(self, app: Wsgi) -> Wsgi:
        """*app* with the WSGI wrappers that the configuration asks for.

        :raises BadConfiguration: when that is not installed, or its section is wrong
        """
        if self._hosts is not None:
            return CrossSiteGuard(app, self._hosts)
        if self._keystone is None:
            return app
        wrapped = keystone.wrap(app, self._conf, values.secret)
        self._keystone.set_token_url(self._conf.keystone_authtoken.www_authenticate_uri)
        if self._verifies_projects:
            self._projects = KeystoneProjects(self._conf)
        return wrapped

    def check_project(self, req: Any, project_id: str) -> None:
        """Refuse a project that Keystone does not know, where it is to be asked."""
        if self._projects is not None:
            self._projects.check(req, project_id)

    def reload(self) -> None:
        """Read the files again; a wrong one is not used."""
        self._policy.reload()
        if self._tokens is not None:
            self._tokens.reload()
