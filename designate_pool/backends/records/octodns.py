"""A DNS service or server for which octoDNS has a provider."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import ClassVar

from designate_pool import model
from designate_pool.backends.records.base import RecordBackend
from designate_pool.planner.octodns.adapter import adapt_server
from designate_pool.planner.providers.base import ServerProvider


class Octodns(RecordBackend):
    """A server behind an octoDNS provider.  Its zones have serials of their own, which octoDNS does not show."""

    capabilities = dataclasses.replace(RecordBackend.capabilities, keeps_serial=False)

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        *RecordBackend.OPTIONS,
        model.Option('class', "The provider's class, for example octodns_powerdns.PowerDnsProvider.", required=True),
        model.Option('settings', "The provider's settings in octoDNS's configuration, as a YAML mapping on one line; "
                                 'env/NAME stands for a variable of the environment.', default='{}', secret=True),
    )

    def _check_calls(self) -> list[tuple[str, Callable[[], model.CallResult]]]:
        # octoDNS cannot delete a zone, so none is created.
        return [('the provider does not answer', self.ping)]

    def _new_provider(self) -> ServerProvider:
        return adapt_server(self.server.label, self.options['class'], self.options['settings'] or '', os.environ)
