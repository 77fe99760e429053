"""``designate-pool service list``: which programs there are, and which of them are running."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from designate_pool.cli.base import Lister, Shown, rows
from designate_pool.cli.http.client import Client
from designate_pool.cli.http.errors import Json

#: Names of Designate under which the API lists services once more, for its clients.
_OF_DESIGNATE = ('mdns', 'producer', 'worker')
COLUMNS = ('service_name', 'hostname', 'pool_name', 'status', 'heartbeated_at', 'stats')


class ListServices(Lister):
    """List the programs of designate-pool, and which of them are running."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(COLUMNS, services(self.client))


def services(client: Client) -> Iterator[Json]:
    """The programs under their own names."""
    return (each for each in client.every('/v2/service_statuses', 'service_statuses')
            if each['service_name'] not in _OF_DESIGNATE)
