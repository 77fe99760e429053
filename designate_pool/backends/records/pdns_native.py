"""PowerDNS Authoritative fed by records through its HTTP API, with zones of its own: it never transfers from the pool.

``pdns.conf`` needs the API alone.  The zones there are primary ones, with the serials that they have here; what is done
to them is in :mod:`designate_pool.planner.targets.pdns`.
"""

from __future__ import annotations

from typing import ClassVar

from designate_pool import model
from designate_pool.backends.pdns import driver, settings_check
from designate_pool.backends.records.base import RecordBackend
from designate_pool.planner.targets.pdns import PdnsProvider


class PdnsNative(RecordBackend):
    """A PowerDNS Authoritative Server with a database of its own."""

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        *driver.API_OPTIONS,
        model.Option('kind', 'What zones are made: Native, or Primary for those that have secondaries of their own.',
                     default='Native'),
        *RecordBackend.OPTIONS)

    provider: PdnsProvider

    def check(self) -> list[model.Finding]:
        findings = super().check()
        if any(finding.serious for finding in findings):
            return findings
        result = self._call('read the settings', lambda deadline: findings.extend(
            settings_check.misfits_of_primary(self.provider.settings(), self.options['kind'])))
        if not result.ok:
            findings.append(model.Finding(f'its settings cannot be read: {result.error}', self._advice(result), False))
        return findings

    def _new_provider(self) -> PdnsProvider:
        return PdnsProvider(self.server.label, self.options['api_key'], driver.api_url(self.server),
                            server_id=self.options['server_id'], ca_file=self.options['ca_file'],
                            kind=self.options['kind'])

    def _advice(self, result: model.CallResult) -> str:
        return driver.advice_on_api(result) or super()._advice(result)
