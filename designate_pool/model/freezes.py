"""Frozen pools: which version of a zone servers may have.

The invariant: the servers of a frozen pool get no version that was written since.  The first change of a zone under the
freeze notes in the domain which version was the newest before (:func:`hold`), and :func:`permitted` alone says which
one servers may have: MiniDNS, the catalog zone and the pool manager ask it.
"""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from typing import Any, TypeVar

#: A domain, or the head of a zone.
T = TypeVar('T', bound=Any)
#: What servers may have of a domain that they were not to have before the freeze.
NOTHING = 'null'
#: Of a domain, what its version was; no later change of the domain changes that.
_KEPT = ('generation', 'serial', 'awaits_transfer', 'email', 'ttl', 'refresh', 'retry', 'expire', 'minimum',
         'soa_names', 'content_serial', 'is_signed')


@dataclasses.dataclass(frozen=True, slots=True)
class Freeze:
    """The freeze of a pool.

    :ivar until: when it ends by itself; None for never
    :ivar user: who began it
    """

    id: str
    reason: str
    since: datetime
    until: datetime | None = None
    user: str = ''

    @property
    def text(self) -> str:
        """As it is stored: JSON."""
        return json.dumps(dataclasses.asdict(self), default=datetime.isoformat)

    def is_over(self, now: datetime) -> bool:
        """Whether it is to have ended by itself."""
        return self.until is not None and self.until <= now

    @classmethod
    def parse(cls, text: str | None) -> Freeze | None:
        """The freeze of :attr:`text`; None for none."""
        if text is None:
            return None
        values = json.loads(text)
        times = {name: values[name] and datetime.fromisoformat(values[name]) for name in ('since', 'until')}
        return cls(**{**values, **times})


def hold(domain: Any) -> dict[str, Any]:
    """The fields that a change gives a domain of a frozen pool, so that servers keep the version before."""
    freeze = Freeze.parse(domain.freeze)
    if freeze is None or domain.held_by == freeze.id:
        return {}
    return {'held_by': freeze.id, 'version_before': NOTHING if domain.is_going else json.dumps(
        {name: getattr(domain, name) for name in _KEPT})}


def permitted(newest: T, version_before: str | None) -> T | None:
    """A domain, or the head of a zone, at the version that servers may have; None if they get none.

    :param version_before: what the freeze under which its changes wait has noted of it; None without such a freeze
    """
    if version_before is None:
        return newest
    version = json.loads(version_before)
    # Neither a deletion is done, nor what followed it.
    if version is None or version['awaits_transfer'] or getattr(newest, 'generation', None) not in (
            None, version['generation']):
        return None
    return dataclasses.replace(newest, **{name: value for name, value in version.items() if hasattr(newest, name)})
