"""``[database]``."""

from __future__ import annotations

import dataclasses
import re

from oslo_config import cfg

from designate_pool.config.section import Section

GROUP = cfg.OptGroup('database', help='The database of all services.')
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('connection', default='sqlite:///$state_path/designate-pool.sqlite', secret=True,
               help='The database as a SQLAlchemy URL: sqlite:///FILE, mysql+pymysql://USER:PASSWORD@HOST/NAME or '
                    'postgresql+psycopg2://USER:PASSWORD@HOST/NAME. Write file:PATH or env:NAME to keep the password '
                    'out of this file. Write $$ for a $.'),
    cfg.IntOpt('pool_size', default=20, min=1, max=1000,
               help='Connections for changes that are kept open, and as many for reads. When all are in use, further '
                    'work waits for one. SQLite has these for both.'),
    cfg.IntOpt('max_overflow', default=0, min=0, max=1000,
               help='Additional connections that are opened when all of pool_size are in use, and closed after use; '
                    'as many for changes as for reads. Opening one takes far longer than a statement.'),
    cfg.StrOpt('secrets_key_file',
               help='File of keys, one on each line, that encrypt the secrets of TSIG keys in the database. The first '
                    'key encrypts; every key decrypts. A key is 32 octets in URL-safe Base64, as "openssl rand 32 | '
                    'basenc --base64url" prints it. Every program on this database needs the same keys. Not set: '
                    'secrets are stored unencrypted. "designate-pool-manage secrets rotate" encrypts those that are '
                    'stored already.'),
]


@dataclasses.dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """
    :ivar connection: a SQLAlchemy URL; never printed or logged, since it may contain a password
    """

    connection: str = dataclasses.field(repr=False)
    pool_size: int
    max_overflow: int
    secrets_keys: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    secrets_key_file: str | None = None


def read(section: Section) -> DatabaseSettings:
    connection = section.secret('connection')
    if connection is not None and '://' not in connection:
        section.wrong('connection', 'it is not a URL like sqlite:///FILE or mysql+pymysql://USER:PASSWORD@HOST/NAME')
    return DatabaseSettings(connection=connection, pool_size=section['pool_size'],
                            max_overflow=section['max_overflow'], secrets_keys=_keys(section),
                            secrets_key_file=section['secrets_key_file'])


def _keys(section: Section) -> tuple[str, ...]:
    """The keys in the file; empty if something is wrong, which is then noted."""
    path = section['secrets_key_file']
    if path is None:
        return ()
    try:
        with open(path, encoding='ascii') as file:
            keys = tuple(line.strip() for line in file if line.strip())
    except (OSError, UnicodeError) as error:
        section.wrong('secrets_key_file',
                      f'{path} cannot be read: {getattr(error, "strerror", "") or "it is not ASCII text"}')
        return ()
    if not keys:
        section.wrong('secrets_key_file', f'{path} contains no key')
    for number, key in enumerate(keys, 1):
        if not re.fullmatch('[A-Za-z0-9_-]{43}=', key):
            section.wrong('secrets_key_file', f'key {number} in {path} is not 32 octets in URL-safe Base64')
            return ()
    return keys
