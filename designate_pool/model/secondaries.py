"""Secondary zones: what is due for them, and what came from their masters."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

#: A record that came from a master: (owner, type, TTL in seconds, rdata as text with absolute names)
MasterRecord = tuple[str, str, int, str]


@dataclasses.dataclass(frozen=True, slots=True)
class RefreshTask:
    """A secondary domain that is due to be refreshed, claimed.

    :ivar masters: ``address:port`` each
    :ivar serial: what is stored; None before the first transfer
    """

    domain_id: str
    name: str
    masters: tuple[str, ...]
    claim: str
    serial: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneTransferIn:
    """A zone, or a difference, as a master sent it.

    :ivar soa: its rdata as text
    :ivar ttl: of the SOA
    :ivar from_serial: the serial that it is the difference from; None for a whole zone
    :ivar added: without the SOA
    """

    serial: int
    soa: str
    ttl: int
    added: Sequence[MasterRecord]
    gone: Sequence[MasterRecord] = ()
    from_serial: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RefreshState:
    """How a secondary domain is kept up to date.

    :ivar next_at: of the next refresh
    :ivar checked_at: when a master last said which serial it has; None before
    :ivar master: that one, as ``address:port``
    :ivar failures: refreshes that have failed since
    :ivar last_error: why the last refresh failed; None if it did not
    """

    domain_id: str
    next_at: datetime
    checked_at: datetime | None = None
    master: str | None = None
    failures: int = 0
    last_error: str | None = None
