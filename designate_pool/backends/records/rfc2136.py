"""A primary server of any make that accepts DNS UPDATE (RFC 2136).

Its zones are created and removed by hand; the pool writes their contents.  Transfers and updates are signed with the
server's TSIG key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from designate_pool import model
from designate_pool.backends.records.base import RecordBackend
from designate_pool.model import Reason
from designate_pool.planner.targets.rfc2136 import Rfc2136Provider


class Rfc2136(RecordBackend):
    """A primary server with DNS UPDATE."""

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        *RecordBackend.OPTIONS,
        model.Option('update_port', "Port for updates; the server's port when not set.", 'port'),
    )

    ADVICE = {
        Reason.BAD_TIME: 'set the clocks of {server} and of this host',
        **dict.fromkeys((Reason.BAD_KEY, Reason.NOT_SIGNED),
                        'give {server} the key of its section, by the same name, algorithm and secret'),
    }

    def _check_calls(self) -> list[tuple[str, Callable[[], model.CallResult]]]:
        # Whether the server accepts updates can only be seen from a zone of the pool.
        return [('the server does not accept a query', self.ping)]

    def _new_provider(self) -> Rfc2136Provider:
        server = self.server
        key = server.tsig_key
        signed = {} if key is None else {'key_name': key.name, 'key_secret': key.secret, 'key_algorithm': key.algorithm}
        return Rfc2136Provider(server.id, server.host, server.port, timeout=server.call_timeout,
                               update_port=self.options['update_port'], **signed)
