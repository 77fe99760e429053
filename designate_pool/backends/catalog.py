"""A server that learns its zones from the pool's catalog zone (RFC 9432), whatever its make.

A domain is in the catalog from the moment that it is in the database, and MiniDNS serves the catalog; so a create has
nothing to do, and a delete only waits until the server, asked over DNS, no longer serves the zone.  There is no control
channel.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from designate_pool import model
from designate_pool.backends import soa_check
from designate_pool.backends.base import Backend, Outcomes
from designate_pool.backends.capabilities import Capabilities
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendUnreachable
from designate_pool.protocol.soa_query import SoaReply


class Catalog(Backend):
    """A consumer of the catalog zone.

    :param patience: seconds in which a server answers a question of a list, or is taken for silent
    """

    capabilities = Capabilities(fetches_on_create=True, reads_catalog=True, batch_size=500)

    def __init__(self, server: model.Server, patience: float = 5.0) -> None:
        super().__init__(server)
        self._patience = patience

    def check(self) -> list[model.Finding]:
        """Ask whether the server answers; whether it reads the catalog, only a domain shows."""
        result = self.ping()
        return [] if result.ok else [model.Finding(f'it does not answer: {result.error}', self._advice(result))]

    def _create_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        return [None] * len(domains)

    def _delete_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        said = soa_check.ask(self.server, {domain.name for domain in domains}, deadline,
                             soa_check.is_absent)
        if not any(said.values()):
            raise BackendUnreachable(why=f'no answer within {deadline.seconds:g} s', reason=model.Reason.TIMEOUT)
        return [_still_there(domain.name, said[domain.name]) for domain in domains]

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[dict[str, int | None], bool]:
        found: dict[str, int | None] = {}
        asked = sorted(names)
        size = self.capabilities.batch_size
        for start in range(0, len(asked), size):
            part = asked[start:start + size]
            for name, said in soa_check.ask(self.server, part, Deadline(min(self._patience, deadline.left()))).items():
                if said is None:
                    raise BackendUnreachable(why=f'no answer when asked for {name}', reason=model.Reason.TIMEOUT)
                if not soa_check.is_absent(said):
                    found[name] = said.serial
        return found, False

    def _ping(self, deadline: Deadline) -> None:
        if soa_check.ask(self.server, ['.'], deadline)['.'] is None:
            raise TimeoutError

    def _advice(self, result: model.CallResult) -> str:
        if not result.retryable:
            return (f'give {self.server.label} the key of its tsig_key, with the same name, algorithm and secret, and '
                    'see that both clocks are right')
        return (f'see whether {self.server.label} runs and answers DNS over UDP to this host, and that its '
                'configuration names the catalog zone')


def _still_there(name: str, said: SoaReply | None) -> BackendError | None:
    """Why the zone *name* cannot be taken for gone; None when it can."""
    if said is None:
        return BackendUnreachable(why=f'no answer when asked for {name}', reason=model.Reason.TIMEOUT)
    if said.serial is not None:
        return BackendError(why=f'it still serves {name} (serial {said.serial}), though it is no longer in the catalog')
    if not soa_check.is_absent(said):
        return BackendError(why=f'whether it still serves {name} is not clear: {said.error}')
    return None
