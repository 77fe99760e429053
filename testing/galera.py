"""A MariaDB Galera cluster, from Debian's packages::

    with GaleraCluster() as cluster:
        url = cluster.create_database()
        cluster.nodes[0].kill()

Clients connect to one of the nodes (:attr:`GaleraCluster.nodes`), or to a proxy that a test moves from node to node.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Self

import pymysql

from testing.databases import MariaDB
from testing.processes import ON_LOOPBACK, Place, Process, Startable, free_port, wait_until

_PROVIDER = '/usr/lib/galera/libgalera_smm.so'
_RECOVERED = re.compile(r'WSREP: Recovered position:\s*(\S+)')


class GaleraNode(MariaDB):
    """One node.

    :param options: more words for the command, such as ``--auto-increment-increment=3``
    """

    def __init__(self, place: Place, number: int, options: Sequence[str] = ()) -> None:
        super().__init__(host=place.host, prefix=place.prefix, folder=place.folder)
        self.number = number
        self.port = free_port()
        self._group_port, self._incremental_port, self._transfer_port = free_port(), free_port(), free_port()
        self._options = list(options)
        self._position: str | None = None
        self._is_first = False
        self.peers: Sequence[GaleraNode] = ()

    @property
    def group_endpoint(self) -> str:
        return f'{self.host}:{self._group_port}'

    def begin(self) -> None:
        """Start as the first node of a new cluster; what the others have is sent to them when they join."""
        self._initialise()
        self._is_first = True
        try:
            super().start()
        finally:
            self._is_first = False

    def start(self) -> None:
        """Start and join the others; returns when it has all that they have."""
        state = self.data / 'grastate.dat'
        if state.exists() and 'seqno:   -1' in state.read_text():  # it was killed
            self._position = self._recover()
        try:
            super().start()
        finally:
            self._position = None

    def status(self, name: str) -> str:
        """A value of ``SHOW STATUS``; empty without it."""
        with contextlib.closing(pymysql.connect(host=self.host, port=self.port, user='root', read_timeout=5,
                                                connect_timeout=5)) as connection, connection.cursor() as cursor:
            cursor.execute('SHOW GLOBAL STATUS LIKE %s', (name,))
            row = cursor.fetchone()
            return '' if row is None else str(row[1])

    def is_synced(self, size: int | None = None) -> bool:
        """Whether it takes part in a cluster that has a majority, of *size* nodes if that is given."""
        try:
            return (self.status('wsrep_local_state_comment') == 'Synced' and self.status('wsrep_ready') == 'ON'
                    and (size is None or self.status('wsrep_cluster_size') == str(size)))
        except pymysql.Error:
            return False

    def _answers(self) -> bool:
        return self.is_synced()

    def _command(self) -> list[str]:
        members = '' if self._is_first else ','.join(each.group_endpoint for each in self.peers)
        provider = {'gmcast.listen_addr': f'tcp://{self.group_endpoint}', 'gcache.size': '16M',
                    'ist.recv_addr': f'{self.host}:{self._incremental_port}'}
        return [*super()._command(), '--innodb-buffer-pool-size=32M', '--key-buffer-size=1M',
                '--aria-pagecache-buffer-size=1M', '--max-connections=300', '--binlog-format=ROW',
                '--default-storage-engine=InnoDB', '--innodb-autoinc-lock-mode=2', '--wsrep-on=ON',
                f'--wsrep-provider={_PROVIDER}', f'--wsrep-cluster-address=gcomm://{members}',
                '--wsrep-cluster-name=pool', f'--wsrep-node-name=node{self.number}',
                f'--wsrep-node-address={self.host}', '--wsrep-sst-method=rsync', '--wsrep-slave-threads=2',
                f'--wsrep-sst-receive-address={self.host}:{self._transfer_port}',
                f'--wsrep-provider-options={";".join(f"{key}={value}" for key, value in provider.items())}',
                *self._options, *([f'--wsrep-start-position={self._position}'] if self._position else [])]

    def _recover(self) -> str:
        """Up to where a node that was killed has its transactions, so that it is only sent what came later."""
        log = self.folder / 'recovery.log'
        log.unlink(missing_ok=True)
        process = Process([*self._prefix, *self._as_user, *self._command(), '--wsrep-recover'], log, cwd=self.folder)
        process.start().wait(60)
        found = _RECOVERED.findall(log.read_text(errors='replace'))
        assert found, f'there is no position:\n{process.tail()}'
        return str(found[-1])


class GaleraCluster(Startable):
    """Several nodes that each take every transaction.

    :param places: where each node runs
    :param options: more words for the command of each
    """

    def __init__(self, places: Sequence[Place] = ON_LOOPBACK, options: Sequence[str] = ()) -> None:
        self.nodes = [GaleraNode(place, number, options) for number, place in enumerate(places)]
        for each in self.nodes:
            each.peers = self.nodes

    def start(self) -> Self:
        self.nodes[0].begin()
        for each in self.nodes[1:]:
            each.start()
        self.wait_until_whole()
        return self

    def stop(self) -> None:
        for each in self.nodes:
            each.__exit__()

    def wait_until_whole(self) -> None:
        """Until every node sees every other one."""
        wait_until(lambda: all(each.is_synced(len(self.nodes)) for each in self.nodes), 'the cluster is whole', 120)

    def create_database(self) -> str:
        """The URL, at the first node, of a new, empty database; each node has it."""
        return self.nodes[0].create_database()

    def urls(self, url: str) -> list[str]:
        """The database of *url*, which is at the first node, at each of them."""
        return [each.url(url.rpartition('/')[2]) for each in self.nodes]
