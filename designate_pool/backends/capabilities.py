"""What the pool manager must know about a kind of server."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Capabilities:
    """How a driver's server behaves, and what the driver can do.  The defaults are true for most servers.

    :ivar fetches_on_create: the server transfers a zone as soon as it is created, so that no NOTIFY is sent for it
    :ivar serves_on_create: after a successful create the zone's contents are served; otherwise a create only announces
        the zone, and a poll must find that it is served
    :ivar fed_by_records: the server cannot transfer, and the pool manager writes a zone's records to it; its driver is
        a :class:`designate_pool.backends.records.base.RecordBackend`
    :ivar keeps_serial: the server has the pool's serial of a zone, so that an SOA query shows whether it is up to date
    :ivar reads_catalog: the server learns its zones from the pool's catalog zone (RFC 9432), which the pool must have
    :ivar tries_key: the driver's ``check`` finds out whether the server accepts the ``tsig_key``; otherwise
        ``config check`` sends the server a signed SOA query for a zone that it does not have
    :ivar batch_size: how many domains one call may have, 1 or more; above 1 the driver has ``_create_many`` and
        ``_delete_many``
    :ivar gathers_below: after a call for fewer domains than this (but more than one), the server's queue waits for
        more domains; for servers on which each call costs time for every zone that they hold
    :ivar most_in_flight: how many calls the server accepts at once, even if ``max_in_flight`` of its section is higher
    """

    fetches_on_create: bool = False
    serves_on_create: bool = False
    fed_by_records: bool = False
    keeps_serial: bool = True
    reads_catalog: bool = False
    tries_key: bool = False
    batch_size: int = 1
    gathers_below: int = 0
    most_in_flight: int = 1000
