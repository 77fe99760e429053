"""A primary server that takes DNS UPDATE (RFC 2136), of whatever make.

Its zones are made and removed by hand; what is in them comes from the pool.  The server's TSIG key signs transfers and
updates.
"""

from __future__ import annotations

from typing import ClassVar

from designate_pool import model
from designate_pool.backends.records.base import RecordBackend
from designate_pool.planner.targets.rfc2136 import Rfc2136Provider


class Rfc2136(RecordBackend):
    """The server."""

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        *RecordBackend.OPTIONS,
        model.Option('update_port', "Where updates go; the server's port when not set.", 'port'),
    )

    def check(self) -> list[model.Finding]:
        """Whether it answers and accepts the key.  Whether it takes updates, only a zone of the pool's shows."""
        result = self.ping()
        found = [] if result.ok else [model.Finding(f'it does not answer as it should: {result.error}',
                                                    self._advice(result))]
        return [*self.check_files(), *found]

    def _new_provider(self) -> Rfc2136Provider:
        server = self.server
        key = server.tsig_key
        signed = {} if key is None else {'key_name': key.name, 'key_secret': key.secret, 'key_algorithm': key.algorithm}
        return Rfc2136Provider(server.id, server.host, server.port, timeout=server.call_timeout,
                               update_port=self.options['update_port'], **signed)

    def _advice(self, result: model.CallResult) -> str:
        if result.reason is model.Reason.BAD_TIME:
            return f'set the clocks of {self.server.label} and of this host'
        if not result.unreachable and not result.retryable:
            return f'have {self.server.label} know the key of its section, by the same name, algorithm and secret'
        return super()._advice(result)
