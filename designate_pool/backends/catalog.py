"""A server of any make that learns its zones from the pool's catalog zone (RFC 9432).

A zone is in the catalog, which MiniDNS serves, as soon as it is in the database.  So a create does nothing, and a
delete only checks over DNS that the server no longer serves the zone.  There is no control channel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from designate_pool import model
from designate_pool.backends.base import (BIND_LIMITS, MAX_RECORDS_PER_TYPE, Backend, Capabilities, Outcomes, is_absent,
                                          query_soa)
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendUnreachable
from designate_pool.model import Reason
from designate_pool.protocol.soa_query import SoaReply


class Catalog(Backend):
    """A consumer of the catalog zone, which must answer a query of :meth:`list_zones` within *patience* seconds."""

    capabilities = Capabilities(fetches_on_create=True, reads_catalog=True, batch_size=500, limits=BIND_LIMITS)
    OPTIONS = (MAX_RECORDS_PER_TYPE,)

    ADVICE = {
        **dict.fromkeys((Reason.BAD_KEY, Reason.BAD_TIME),
                        'give {server} the key of its tsig_key, with the same name, algorithm and secret, and set both'
                        ' clocks by NTP'),
        Reason.UNREACHABLE: 'check that {server} runs and answers DNS over UDP to this host, and that its configuration'
                            ' names the catalog zone',
    }

    def __init__(self, server: model.Server, patience: float = 5.0) -> None:
        super().__init__(server)
        self._patience = patience

    def _check_calls(self) -> list[tuple[str, Callable[[], model.CallResult]]]:
        # Whether the server reads the catalog can only be seen from a zone in it.
        return [('it does not answer', self.ping)]

    def _create_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        return [None] * len(domains)

    def _delete_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        said = query_soa(self.server, {domain.name for domain in domains}, deadline, is_absent)
        if not any(said.values()):
            raise BackendUnreachable(why=f'no answer within {deadline.seconds:g} s', reason=Reason.TIMEOUT)
        return [_still_there(domain.name, said[domain.name]) for domain in domains]

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[dict[str, int | None], bool]:
        serials: dict[str, int | None] = {}
        asked, size = sorted(names), self.capabilities.batch_size
        for start in range(0, len(asked), size):
            for name, said in query_soa(self.server, asked[start:start + size],
                                        Deadline(min(self._patience, deadline.left()))).items():
                if said is None:
                    raise BackendUnreachable(why=f'no answer to a query for {name}', reason=Reason.TIMEOUT)
                if not is_absent(said):
                    serials[name] = said.serial
        return serials, False

    def _ping(self, deadline: Deadline) -> None:
        if query_soa(self.server, ['.'], deadline)['.'] is None:
            raise TimeoutError


def _still_there(name: str, said: SoaReply | None) -> BackendError | None:
    """The error for a zone *name* that may still be served; None when it is not."""
    if said is None:
        return BackendUnreachable(why=f'no answer to a query for {name}', reason=Reason.TIMEOUT)
    if said.serial is not None:
        return BackendError(why=f'the server still serves {name} (serial {said.serial}); it has left the catalog')
    if not is_absent(said):
        return BackendError(why=f'whether the server still serves {name} is not known: {said.error}')
    return None
