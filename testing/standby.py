"""A PostgreSQL with a streaming standby that is promoted, from Debian's package::

    with StandbyPair() as pair:
        url = pair.create_database()
        pair.nodes[0].kill()
        pair.promote(1)

What a cluster manager does, such as Patroni, a test does itself: it fences the former primary, promotes the standby and
makes the former one a standby of the new one.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from typing import Self

import psycopg2

from testing.databases import PostgreSQL, postgresql_binary
from testing.processes import ON_LOOPBACK, Place, Startable, free_port, wait_until


class StandbyNode(PostgreSQL):
    """One node: the primary, or a standby."""

    def __init__(self, place: Place, number: int) -> None:
        super().__init__(host=place.host, prefix=place.prefix, folder=place.folder)
        self.name = f'node{number}'
        self.port = free_port()

    def begin(self) -> None:
        """Start as the primary of a new database."""
        self._initialise()
        with (self.data / 'pg_hba.conf').open('a') as access:
            access.write('host replication all 0.0.0.0/0 trust\n')
        self.start()

    def follow(self, primary: StandbyNode) -> None:
        """Take a base backup of *primary*, in place of all there is, and start as its standby."""
        shutil.rmtree(self.data)
        self.data.mkdir(mode=0o700)
        if self._as_user:
            shutil.chown(self.data, self.user, self.user)
        self._run(postgresql_binary('pg_basebackup'), '-D', self.data, '-R', '-X', 'stream',
                  '-c', 'fast', '--no-sync', '-d', f'host={primary.host} port={primary.port} user=postgres '
                                                   f'application_name={self.name}')
        self.start()

    def value(self, statement: str) -> str:
        """The only value that a statement returns, as text; empty for none."""
        with contextlib.closing(psycopg2.connect(host=self.host, port=self.port, user='postgres', dbname='postgres',
                                                 connect_timeout=5)) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            row = cursor.fetchone()
            return '' if row is None else str(row[0])

    def wait_for(self, names: str) -> None:
        """Have commits wait for standbys, as ``synchronous_standby_names`` says; empty for none."""
        self.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        self.execute('SELECT pg_reload_conf()')
        wait_until(lambda: self.value('SHOW synchronous_standby_names') == names, 'the setting is read')

    def _command(self) -> list[str]:
        return [*super()._command(), '-c', 'shared_buffers=32MB', '-c', 'wal_keep_size=64MB',
                '-c', f'cluster_name={self.name}']


class StandbyPair(Startable):
    """A primary and its standby.

    :param places: where each runs
    :param synchronous: whether a commit waits until the standby has it
    :ivar primary: the node that takes writes
    """

    def __init__(self, places: Sequence[Place] = ON_LOOPBACK[:2], synchronous: bool = True) -> None:
        self.nodes = [StandbyNode(place, number) for number, place in enumerate(places)]
        self.synchronous = synchronous
        self.primary = self.nodes[0]

    def start(self) -> Self:
        self.primary.begin()
        self.join(1)
        return self

    def stop(self) -> None:
        for each in self.nodes:
            each.__exit__()

    def join(self, number: int) -> None:
        """Make a node a standby of the primary; returns when it has all that the primary has."""
        standby = self.nodes[number]
        standby.follow(self.primary)
        wait_until(lambda: self.primary.value('SELECT count(*) FROM pg_stat_replication WHERE state = $$streaming$$ AND'
                                              f' application_name = $${standby.name}$$') == '1', 'it streams', 60)
        self.primary.wait_for(standby.name if self.synchronous else '')

    def wait_until_replayed(self) -> None:
        """Until a standby that runs shows all that the primary has committed; it has it on its disk before."""
        position = self.primary.value('SELECT pg_current_wal_lsn()')
        for each in self.nodes:
            if each is not self.primary and each.running:
                wait_until(lambda: each.value(f"SELECT pg_last_wal_replay_lsn() >= '{position}'") == 'True',
                           f'{each.name} shows it')

    def promote(self, number: int) -> None:
        """Make the standby the primary, which has no standby then; the former one must have been killed."""
        assert not self.primary.running, 'the former primary has to be fenced first'
        self.primary = self.nodes[number]
        self.primary.execute('SELECT pg_promote(true, 30)')
        self.primary.wait_for('')

    def create_database(self) -> str:
        """The URL of a new, empty database; it names both nodes, of which clients look for the primary."""
        return self.url(self.primary.create_database().rpartition('/')[2])

    def url(self, database: str) -> str:
        """A URL of libpq's kind for several hosts, as SQLAlchemy has it."""
        hosts = '&'.join(f'host={each.host}:{each.port}' for each in self.nodes)
        return f'postgresql+psycopg2://postgres@/{database}?{hosts}&target_session_attrs=read-write&connect_timeout=2'
