"""PowerDNS Authoritative fed by records through its HTTP API: it never transfers from the pool.

``pdns.conf`` needs only the API.  The zones there are primary (or native) ones with the pool's serials;
:mod:`designate_pool.planner.targets.pdns` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from designate_pool import model
from designate_pool.backends import pdns
from designate_pool.backends.records.base import RecordBackend
from designate_pool.deadline import Deadline
from designate_pool.planner.targets.pdns import PdnsProvider


class PdnsNative(RecordBackend):
    """A PowerDNS Authoritative Server with a database of its own."""

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        *pdns.API_OPTIONS,
        model.Option('kind', 'The kind of the zones that are created: Native, or Primary if they have secondaries of'
                     ' their own.', default='Native'),
        *RecordBackend.OPTIONS)
    ADVICE = pdns.API_ADVICE

    provider: PdnsProvider

    def _new_provider(self) -> PdnsProvider:
        return PdnsProvider(self.server.label, self.options['api_key'], pdns.api_url(self.server),
                            server_id=self.options['server_id'], ca_file=self.options['ca_file'],
                            kind=self.options['kind'])

    def _check_settings(self, deadline: Deadline) -> Iterator[model.Finding]:
        return pdns.if_readable(self._misfits())

    def _misfits(self) -> Iterator[model.Finding]:
        yield from pdns.misfits_of_primary(self.provider.settings(), self.options['kind'])
