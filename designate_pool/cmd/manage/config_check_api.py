"""The findings of ``designate-pool-manage config check`` about access to the API."""

from __future__ import annotations

from collections.abc import Iterator

from oslo_config import cfg

from designate_pool.api.auth import policy, token_file
from designate_pool.backends import file_permissions
from designate_pool.config.api import NOAUTH, TOKEN, ApiSettings, remote
from designate_pool.errors import BadConfiguration
from designate_pool.model import Finding, utcnow


def findings(settings: ApiSettings, conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Findings in the order of the options."""
    addresses = ', '.join(map(str, remote(settings.listen)))
    if addresses and settings.auth == NOAUTH:
        yield Finding(f'[service:api] auth: the API does not authenticate users: everybody who reaches {addresses} may '
                      'change every zone', 'set auth to token or keystone, or let a proxy authenticate users',
                      serious=False)
    elif addresses:
        yield Finding(f'[service:api] listen: tokens are sent to {addresses} unencrypted',
                      'let the API listen on loopback, behind a proxy that speaks TLS', serious=False)
    if settings.auth == TOKEN and settings.tokens_file:
        yield from _about_tokens(settings.tokens_file)
    try:
        policy.OsloPolicy(conf)
        policy.check_policy_file(conf)
    except BadConfiguration as error:
        yield Finding(_listed(error), 'correct it; the API does not start with it')


def _about_tokens(path: str) -> Iterator[Finding]:
    try:
        tokens = token_file.read(path)
    except BadConfiguration as error:
        yield Finding(_listed(error), "make it with 'designate-pool-manage token create', or correct it; the API does "
                                      'not start with it')
        return
    too_open = file_permissions.check('[service:api] tokens_file', path)
    if too_open is not None:
        yield too_open
    over = [token.name for token in tokens if token.expired(utcnow())]
    if over:
        yield Finding(f'[service:api] tokens_file: these tokens have expired: {", ".join(over)}',
                      "take them out with 'designate-pool-manage token revoke'", serious=False)
    if len(over) == len(tokens):
        yield Finding('[service:api] tokens_file: no token in it can be used', "make one with 'designate-pool-manage "
                      "token create'", serious=False)


def _listed(error: BadConfiguration) -> str:
    return '; '.join(line.strip() for line in str(error.kwargs['listing']).splitlines() if line.strip())
