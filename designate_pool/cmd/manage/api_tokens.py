"""``designate-pool-manage token``: writes the file of the API's tokens; and the check of the access to the API.

A temporary file is written and renamed, so that readers always see a complete file.  Concurrent writers wait for each
other.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime

from oslo_config import cfg

from designate_pool.api.auth import token_file
from designate_pool.api.auth.token_file import Token
from designate_pool.backends.base import check_permissions
from designate_pool.config.sections import remote
from designate_pool.errors import BadConfiguration, Conflict, InvalidField, NotFound
from designate_pool.model import Finding, utcnow
from designate_pool.settings import NOAUTH, TOKEN, ApiSettings

_HEADING = '# name project roles sha256:DIGEST [expires]; written by designate-pool-manage token\n'


def create(path: str, name: str, project: str, roles: list[str], expires: str | None) -> str:
    """Add a token; the token itself, which is stored nowhere.

    :raises InvalidField: when one of the values is wrong
    :raises Conflict: when there is one of this name
    :raises BadConfiguration: when the file has wrong lines
    """
    secret = token_file.new_secret()
    try:
        until = None if expires is None else token_file.parse_time(expires)
        token = token_file.make_token(name, project, tuple(roles), token_file.digest(secret), until)
    except ValueError as error:
        raise InvalidField(field='token', why=str(error)) from None
    if token.expired(utcnow()):
        raise InvalidField(field='token', why='the time of expiry is in the past')
    with _locked(path):
        text = _text(path)
        if any(token.name == name for token in token_file.parse(text, path)):
            raise Conflict(why=f'there is a token {name} already; revoke it first')
        _replace(path, (text if not text or text.endswith('\n') else f'{text}\n') + f'{token.line()}\n')
    return secret


def revoke(path: str, name: str) -> None:
    """Remove a token.

    :raises NotFound: when there is none of this name
    """
    with _locked(path):
        text = _text(path)
        if all(token.name != name for token in token_file.parse(text, path)):
            raise NotFound(what=f'token {name} in {path}')
        _replace(path, ''.join(line for line in text.splitlines(keepends=True) if line.split()[:1] != [name]))


def listing(path: str, as_json: bool) -> str:
    """The tokens of the file as a table or as JSON, without their digests."""
    now = utcnow()
    tokens = token_file.read(path)
    if as_json:
        return json.dumps([{'name': token.name, 'project': token.project, 'roles': list(token.roles),
                            'expires': token.expires and token.expires.isoformat(), 'expired': token.expired(now)}
                           for token in tokens], indent=2)
    rows = [('name', 'project', 'roles', 'expires'), *(
        (token.name, token.project, ','.join(token.roles), _expiry(token, now)) for token in tokens)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return '\n'.join('  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                     for row in rows)


def warn_if_readable(path: str) -> None:
    """Warn on standard error when others can read or change the file."""
    finding = check_permissions('[service:api] tokens_file', path)
    if finding is not None:
        print(f'warning: {finding.what}\n  -> {finding.advice}', file=sys.stderr)


def _expiry(token: Token, now: datetime) -> str:
    if token.expires is None:
        return 'never'
    return f'{token.expires:%Y-%m-%dT%H:%M:%SZ}' + (' (over)' if token.expired(now) else '')


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _text(path: str) -> str:
    try:
        with open(path, encoding='utf-8') as file:
            return file.read()
    except FileNotFoundError:
        return _HEADING


def _replace(path: str, text: str) -> None:
    """Replace the file; one that was there keeps its owner and mode, a new one is for its owner alone."""
    path = os.path.realpath(path)
    number, made = tempfile.mkstemp(dir=os.path.dirname(path), prefix='.tokens-')
    try:
        with open(number, 'w', encoding='utf-8') as file:
            file.write(text)
            file.flush()
            if os.path.exists(path):
                old = os.stat(path)
                os.fchmod(number, old.st_mode & 0o777)
                if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(number, old.st_uid, old.st_gid)
            elif os.geteuid() == 0:
                print(f'{path} is new and belongs to root: let it belong to the user that the API runs as.',
                      file=sys.stderr)
            os.fsync(number)
        os.replace(made, path)
    except BaseException:  # Ctrl-C too: no temporary file may stay
        os.unlink(made)
        raise


def check_access(settings: ApiSettings, conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """The findings of ``config check`` about access to the API, in the order of the options."""
    from designate_pool.api.auth import policy  # it imports the whole API, which no other command needs

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
    too_open = check_permissions('[service:api] tokens_file', path)
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
