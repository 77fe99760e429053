"""``[database]``: where the truth is kept."""

from __future__ import annotations

import dataclasses

from oslo_config import cfg

from designate_pool.config.section import Section

GROUP = cfg.OptGroup('database', help='The database of Central, MiniDNS and the pool manager.')
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('connection', default='sqlite:///$state_path/designate-pool.sqlite', secret=True,
               help='The database as a SQLAlchemy URL: sqlite:///FILE, mysql+pymysql://USER:PASSWORD@HOST/NAME or '
                    'postgresql+psycopg2://USER:PASSWORD@HOST/NAME. May be file:PATH or env:NAME to keep the '
                    'password out of this file. A $ in it is written $$.'),
    cfg.IntOpt('pool_size', default=20, min=1, max=1000,
               help='Connections kept open. What needs one more waits. MiniDNS has up to four more to look up serials. '
                    'SQLite has no use for it.'),
    cfg.IntOpt('max_overflow', default=0, min=0, max=1000,
               help='Connections opened beyond pool_size when all are in use, and closed after use; opening one takes '
                    'far longer than a statement. SQLite has no use for it.'),
]


@dataclasses.dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """
    :ivar connection: a SQLAlchemy URL; it may hold a password and stays out of every text
    """

    connection: str = dataclasses.field(repr=False)
    pool_size: int
    max_overflow: int


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_group(GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    return [(GROUP, OPTIONS)]


def read(section: Section) -> DatabaseSettings:
    connection = section.secret('connection')
    if connection is not None and '://' not in connection:
        section.wrong('connection', 'it is not a URL, as sqlite:///FILE or mysql+pymysql://USER:PASSWORD@HOST/NAME')
    return DatabaseSettings(connection=connection, pool_size=section['pool_size'],
                            max_overflow=section['max_overflow'])
