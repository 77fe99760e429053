"""The rules for a domain: its creation, changes and deletion, and the records generated from its pool.

The invariant: of all domains that a name ever has, each generation is higher than the one before, and each serial newer
(RFC 1982), except that of a secondary domain, which is its master's.  Serials follow the clock of this host; times are
those of the database.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from datetime import datetime

import dns.name

from designate_pool.central.validation.names_and_rdata import Rdata
from designate_pool.central.validation.requests import NewDomain
from designate_pool.model import Action, Domain, Pool, RecordSet, Status, new_id
from designate_pool.serial import HALF, SPACE, newer, next_serial


def first_serial(last: int | None, lowest: int | None, now: float) -> int:
    """The serial of a new domain.

    :param last: the last serial of the name, None for a new name
    :param lowest: a serial that servers may have already; the result is newer, if that is newer than *last*
    """
    serial = next_serial(last, now)
    if lowest is None or newer(serial, lowest):
        return serial
    beyond = (lowest + 1) % SPACE
    return beyond if last is None or newer(beyond, last) else serial


def create(domain_id: str, wanted: NewDomain, pool: Pool, project_id: str, last_serial: int | None,
           last_generation: int, now: datetime, request_id: str = '') -> Domain:
    """A new domain: PENDING, to be created.  A *request_id*, here and below, has 64 ASCII characters at most."""
    serial = first_serial(last_serial, wanted.lowest_serial, time.time())
    return Domain(
        id=domain_id, name=wanted.name, pool_id=pool.id, pool_name=pool.name, project_id=project_id,
        email=wanted.email, ttl=wanted.ttl, description=wanted.description, refresh=wanted.refresh,
        retry=wanted.retry, expire=wanted.expire, minimum=wanted.minimum, attributes=wanted.attributes,
        serial=serial, first_serial=serial, generation=last_generation + 1, action=Action.CREATE, status=Status.PENDING,
        created_at=now, updated_at=now, changed_at=now, request_id=request_id)


def change(domain: Domain, now: datetime, request_id: str = '') -> Domain:
    """The domain with new contents.  If its creation has not been reported yet, that is still the action."""
    return dataclasses.replace(
        domain, serial=next_serial(domain.serial, time.time()), status=Status.PENDING, updated_at=now,
        changed_at=now, converged_at=None, request_id=request_id, version=domain.version + 1,
        action=Action.CREATE if domain.action is Action.CREATE else Action.UPDATE)


def raise_serial_above(domain: Domain, serial: int, now: datetime, request_id: str = '') -> Domain:
    """The domain with a serial above a newer *serial*, or half of the way to it if RFC 1982 requires two steps."""
    above = (serial + 1) % SPACE
    if not newer(above, domain.serial):
        above = (domain.serial + HALF // 2) % SPACE
    return dataclasses.replace(change(domain, now, request_id), serial=above)


def delete(domain: Domain, now: datetime, request_id: str = '') -> Domain:
    """The domain, PENDING, to be deleted."""
    return dataclasses.replace(
        domain, serial=next_serial(domain.serial, time.time()), generation=domain.generation + 1,
        action=Action.DELETE, status=Status.PENDING, updated_at=now, changed_at=now, converged_at=None, deleted_at=now,
        request_id=request_id, version=domain.version + 1, awaits_transfer=False)


def from_pool(domain: Domain) -> tuple[RecordSet, RecordSet]:
    """The managed recordsets of a new domain, SOA and NS, without records."""
    soa = RecordSet(domain.name, 'SOA', id=new_id(), domain_id=domain.id, managed=True)
    return soa, dataclasses.replace(soa, type='NS', id=new_id())


def ns_rdatas(name_servers: Sequence[str]) -> list[Rdata]:
    """The data of the NS records."""
    return [Rdata(host, dns.name.from_text(host).to_wire() or b'') for host in name_servers]
