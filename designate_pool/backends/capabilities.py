"""What the pool manager has to know of a kind of server to treat it right."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Capabilities:
    """How a driver's server behaves, and what its driver can do.  Each default is what holds for most.

    :ivar fetches_on_create: the server goes to fetch a zone as soon as it was created, so that no NOTIFY is sent for it
    :ivar serves_on_create: a create that succeeds means that the zone's contents are served; without it a create only
        announces the zone, and a poll must see it served
    :ivar fed_by_records: the server cannot transfer, and gets a zone's records from the pool manager; its driver is a
        :class:`designate_pool.backends.records.base.RecordBackend`
    :ivar keeps_serial: a zone has the same serial there as here, so that an SOA query tells whether it is up to date
    :ivar reads_catalog: the server learns its zones from the pool's catalog zone (RFC 9432), which the pool must have
    :ivar tries_key: the driver's ``check`` finds out when the server does not accept the ``tsig_key``; without it the
        configuration check sends the server a signed SOA query for a zone that it does not have
    :ivar batch_size: how many domains one call takes, 1 or more; above 1 the driver has ``_create_many`` and
        ``_delete_many``
    :ivar gathers_below: after a call for fewer domains than these, but for more than one, the server's queue waits for
        more to come together; for servers to which each call costs time for every zone that they hold
        (``benchmarks/servers_filling``)
    :ivar most_in_flight: how many calls the server takes at once, also where its section's ``max_in_flight`` is higher
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
