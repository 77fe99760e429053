"""Any DNS service or server that octoDNS has a provider for."""

from __future__ import annotations

import dataclasses
import os
from typing import ClassVar

from designate_pool import model
from designate_pool.backends.records.base import RecordBackend
from designate_pool.planner.octodns.adapter import adapt_server
from designate_pool.planner.providers.base import ServerProvider


class Octodns(RecordBackend):
    """What an octoDNS provider reaches.  Its zones have serials of their own, which octoDNS does not tell."""

    capabilities = dataclasses.replace(RecordBackend.capabilities, keeps_serial=False)

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        *RecordBackend.OPTIONS,
        model.Option('class', "The provider's class, for example octodns_powerdns.PowerDnsProvider.", required=True),
        model.Option('settings', "What octoDNS's configuration has under the provider, as a YAML mapping on one line; "
                                 'env/NAME stands for what the environment has.', default='{}', secret=True),
    )

    def check(self) -> list[model.Finding]:
        """Only whether it answers: octoDNS has no word for deleting the zone that would have to be made."""
        result = self.ping()
        if result.ok:
            return []
        return [model.Finding(f'the provider does not answer: {result.error}', self._advice(result))]

    def _new_provider(self) -> ServerProvider:
        return adapt_server(self.server.label, self.options['class'], self.options['settings'] or '', os.environ)
