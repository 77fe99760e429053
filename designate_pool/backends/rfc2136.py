"""A primary server that takes DNS UPDATE (RFC 2136), of whatever make.

Its zones are made and removed by hand; what is in them comes from the pool.  The server's TSIG key signs transfers and
updates.
"""

from __future__ import annotations

from typing import ClassVar

from designate_pool import model
from designate_pool.backends.records import RecordBackend
from designate_pool.planner.targets.rfc2136 import Rfc2136Provider


class Rfc2136(RecordBackend):
    """The server."""

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        *RecordBackend.OPTIONS,
        model.Option('update_port', "Where updates go; the server's port when not set.", 'port'),
    )

    def check(self) -> list[model.Finding]:
        """Whether it answers and accepts the key.  Nothing can be tried out: it makes no zones."""
        result = self.ping()
        return self.check_files() if result.ok else [
            *self.check_files(), model.Finding(f'the server does not answer: {result.error}', self._advice(result))]

    def _new_provider(self) -> Rfc2136Provider:
        server = self.server
        key = server.tsig_key
        return Rfc2136Provider(
            server.label, server.host, server.port, None if key is None else key.name,
            None if key is None else key.secret, None if key is None else key.algorithm,
            server.call_timeout, self.options['update_port'])

    def _advice(self, result: model.CallResult) -> str:
        if not result.unreachable and not result.retryable:
            return (f'give {self.server.label} the key of its section, and let it update and transfer the zones of the '
                    'pool')
        return super()._advice(result)
