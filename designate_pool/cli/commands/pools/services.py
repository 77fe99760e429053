"""``designate-pool service list``: which programs there are, and which of them are running."""

from __future__ import annotations

import argparse

from designate_pool.cli.base import Lister, Shown, rows

COLUMNS = ('service_name', 'hostname', 'pool_name', 'status', 'heartbeated_at', 'stats')


class ListServices(Lister):
    """List the programs of designate-pool, and which of them are running."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(COLUMNS, self.client.every('/v2/service_statuses', 'service_statuses'))
