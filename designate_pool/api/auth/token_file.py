"""``auth = token``: tokens from a file, which has only their SHA-256.

A line of the file is one token, its fields with blanks between them::

    # name     project  roles          SHA-256 of the token            expires (UTC), or nothing
    deploy     shop     member         sha256:9f86d081884c7d65...      2027-01-31T00:00:00Z
    look       ops      reader,operator  sha256:60303ae22b998861...

A token is 256 random bits, so one round of SHA-256 is enough: it cannot be guessed.  The lookup is by the digest of
what was sent, which nobody can choose, so its duration reveals nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from datetime import datetime, timezone

import falcon

from designate_pool.api.auth.identity import BASIC_CHALLENGE, Authenticator, Identity, basic_password, is_status_page
from designate_pool.api.auth.reloaded_file import ReloadedFile, file_stamp
from designate_pool.errors import BadConfiguration, Unauthorized
from designate_pool.model import utcnow

#: What every token begins with, so that scanners for leaked secrets can find it.
PREFIX = 'dpt_'
HEADER = 'X-Auth-Token'
_LONGEST = 1 << 24
_NAME = re.compile('[A-Za-z0-9_.@-]{1,64}')
_PROJECT = re.compile('[A-Za-z0-9_.-]{1,36}')
_ROLE = re.compile('[a-z0-9_:-]{1,64}')
_DIGEST = re.compile('sha256:([0-9a-f]{64})')


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """A line of the file.

    :ivar digest: SHA-256 of the token, as 64 hexadecimal digits
    :ivar expires: None for never
    """

    name: str
    project: str
    roles: tuple[str, ...]
    digest: str = dataclasses.field(repr=False)
    expires: datetime | None = None

    def line(self) -> str:
        """The token as a line of the token file."""
        fields = [self.name, self.project, ','.join(self.roles), f'sha256:{self.digest}']
        if self.expires is not None:
            fields.append(self.expires.strftime('%Y-%m-%dT%H:%M:%SZ'))
        return ' '.join(fields)

    def expired(self, now: datetime) -> bool:
        """Whether the token's lifetime is over at a moment."""
        return self.expires is not None and self.expires <= now


def new_secret() -> str:
    """A new token, as its user sends it."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """The hash under which the token file keeps a secret."""
    return hashlib.sha256(secret.encode('utf-8', 'surrogateescape')).hexdigest()


def make_token(name: str, project: str, roles: tuple[str, ...], digest: str, expires: datetime | None = None) -> Token:
    """A checked token.

    :raises ValueError: with a sentence that says what is wrong
    """
    if not _NAME.fullmatch(name):
        raise ValueError('the name must be 1 to 64 letters, digits, dots, dashes, underscores or @')
    if not _PROJECT.fullmatch(project):
        raise ValueError('the project must be 1 to 36 letters, digits, dots, dashes or underscores')
    if not roles or not all(_ROLE.fullmatch(role) for role in roles):
        raise ValueError('the roles must be words in lower case, with commas between them')
    return Token(name, project, roles, digest, expires)


def parse_time(text: str) -> datetime:
    """A time in UTC, or the beginning of a day.

    :raises ValueError: with a sentence that says what is wrong
    """
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise ValueError('the time of expiry must be a time in the form of ISO 8601, as 2027-01-31 or '
                         '2027-01-31T12:00:00Z') from None


def parse(text: str, path: str) -> list[Token]:
    """The tokens of a file's *text*.

    :raises BadConfiguration: with the number of every wrong line, without the line: it may hold a secret
    """
    tokens: list[Token] = []
    mistakes = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith('#'):
            continue
        try:
            token = _parse_line(fields)
            for other in tokens:
                if token.name == other.name:
                    raise ValueError(f'there is a token {token.name} already')
                if token.digest == other.digest:
                    raise ValueError(f'it is the same token as {other.name}')
            tokens.append(token)
        except ValueError as error:
            mistakes.append(f'\n  {path}: line {number}: {error}')
    if mistakes:
        raise BadConfiguration(count=len(mistakes), listing=''.join(mistakes))
    return tokens


def read(path: str) -> list[Token]:
    """The tokens of a file.

    :raises BadConfiguration: when it cannot be read or has wrong lines
    """
    try:
        with open(path, encoding='utf-8') as file:
            text = file.read(_LONGEST + 1)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else 'it is not UTF-8 text'
        raise BadConfiguration(count=1, listing=f'\n  [service:api] tokens_file: cannot read {path}: {reason}'
                               ) from None
    if len(text) > _LONGEST:
        raise BadConfiguration(count=1, listing=f'\n  [service:api] tokens_file: {path} is too long')
    return parse(text, path)


class TokenAuth(Authenticator):
    """Authentication by a file of tokens.

    :raises BadConfiguration: when it cannot be read or has wrong lines
    """

    def __init__(self, path: str, clock: Callable[[], datetime] = utcnow) -> None:
        self._clock = clock
        self._tokens = ReloadedFile('token file', lambda: {token.digest: token for token in read(path)},
                                    lambda: file_stamp(path))

    def challenge(self, req: falcon.Request) -> str:
        return BASIC_CHALLENGE if is_status_page(req.path) else 'Token realm="designate-pool"'

    def identify(self, req: falcon.Request) -> Identity | None:
        secret = req.get_header(HEADER) or basic_password(req.method, req.path, req.auth)
        if not secret:
            return None
        secret_digest = digest(secret.strip())
        token = self._tokens.get().get(secret_digest)
        if token is None or not hmac.compare_digest(token.digest, secret_digest):
            raise Unauthorized(why='the one sent is not known')
        if token.expired(self._clock()):
            raise Unauthorized(why='the one sent has expired')
        return Identity(token.project, token.roles, user=token.name, key=f'project {token.project}')

    def reload(self) -> None:
        """Read the file again now."""
        self._tokens.reload()


def _parse_line(fields: list[str]) -> Token:
    if len(fields) not in (4, 5):
        raise ValueError(f'it has {len(fields)} fields; there must be a name, project, roles and sha256:DIGEST, and '
                         'maybe a time of expiry')
    match = _DIGEST.fullmatch(fields[3])
    if match is None:
        raise ValueError('the fourth field must be sha256: and 64 hexadecimal digits in lower case')
    return make_token(fields[0], fields[1], tuple(fields[2].split(',')), match[1],
                      parse_time(fields[4]) if len(fields) == 5 else None)
