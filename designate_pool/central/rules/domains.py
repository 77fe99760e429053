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
from typing import Any

import dns.name

from designate_pool.central.validation.names_and_rdata import Rdata
from designate_pool.central.validation.requests import NewDomain
from designate_pool.model import NOTHING, Action, Domain, Freeze, Pool, RecordSet, Release, Status, hold, new_id
from designate_pool.serial import HALF, SPACE, newer, next_serial

#: What is released in stages is given up: servers may have the newest version at once.
_UNRELEASED: dict[str, Any] = {'release_state': None, 'version_before': None}


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
    freeze = Freeze.parse(pool.freeze)
    is_staged = freeze is None and pool.release_stages is not None and not wanted.masters
    return Domain(
        id=domain_id, name=wanted.name, given_name=wanted.given_name, pool_id=pool.id, pool_name=pool.name,
        project_id=project_id,
        email=wanted.email, ttl=wanted.ttl, description=wanted.description, refresh=wanted.refresh,
        retry=wanted.retry, expire=wanted.expire, minimum=wanted.minimum, attributes=wanted.attributes,
        serial=serial, first_serial=serial, generation=last_generation + 1, action=Action.CREATE, status=Status.PENDING,
        created_at=now, updated_at=now, changed_at=now, request_id=request_id,
        freeze=pool.freeze, held_by=None if freeze is None else freeze.id,
        version_before=None if freeze is None and not is_staged else NOTHING, pool_release=pool.release_stages,
        release_state=Release().text if is_staged else None)


def change(domain: Domain, now: datetime, request_id: str = '') -> Domain:
    """The domain with new contents, in ERROR while its release is held.  If its creation has not been reported yet,
    that is still the action."""
    is_held = (release := domain.release) is not None and release.held != ''
    return dataclasses.replace(
        domain, serial=next_serial(domain.serial, time.time()), updated_at=now,
        status=Status.ERROR if is_held else Status.PENDING, changed_at=now, converged_at=None, request_id=request_id,
        version=domain.version + 1, action=Action.CREATE if domain.action is Action.CREATE else Action.UPDATE,
        content_serial=None, **hold(domain))


def resign(domain: Domain, now: datetime) -> Domain:
    """The domain with a serial for the same contents under other signatures or keys, which changes no status.  All
    servers get it at once; during a staged release, after that.

    :raises ValueError: while a change waits for the end of a freeze, which servers would get with it
    """
    if domain.waits_for is not None:
        raise ValueError(f'a change of {domain.name} waits for the end of the freeze of its pool')
    return dataclasses.replace(
        domain, serial=next_serial(domain.serial, time.time()), content_serial=domain.least_serial, updated_at=now,
        version=domain.version + 1, **(hold(domain) if domain.release_state is not None else {}))


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
        request_id=request_id, version=domain.version + 1, awaits_transfer=False, content_serial=None,
        **_hold_deletion(domain))


def _hold_deletion(domain: Domain) -> dict[str, Any]:
    if domain.release_state is None or domain.freeze is not None:
        return hold(domain)
    # What few servers have is deleted at once; otherwise the deletion is released in place of what was.
    return _UNRELEASED if domain.version_before == NOTHING else {'release_state': Release().text}


def turn_back(domain: Domain, now: datetime, request_id: str = '') -> Domain:
    """The domain whose release has failed, with a new serial under which the servers of the stages have the contents
    before; the domain as it is where there were none, or they were signed: nobody signs them under another serial."""
    release = domain.release
    assert release is not None
    if domain.is_going or (before := domain.permitted) is None or before.is_signed:
        return dataclasses.replace(domain, updated_at=now, version=domain.version + 1)
    turned = change(domain, now, request_id)
    return dataclasses.replace(turned, release_state=dataclasses.replace(release, turned_back=turned.serial).text)


def continue_release(domain: Domain, now: datetime, request_id: str = '') -> Domain:
    """The domain whose release has failed, and begins again with all that has changed; with a new serial but where it
    is being deleted."""
    renewed = dataclasses.replace(domain, changed_at=now) if domain.is_going else change(domain, now, request_id)
    anew = _UNRELEASED if domain.pool_release is None else {'release_state': Release().text}
    return dataclasses.replace(renewed, status=Status.PENDING, updated_at=now, version=domain.version + 1, **anew)


def abort_release(domain: Domain, now: datetime, request_id: str = '') -> Domain:
    """The domain, for all servers at once, with a new serial and the SOA before its release."""
    before = domain.permitted
    assert before is not None
    return dataclasses.replace(
        change(domain, now, request_id), **_UNRELEASED, status=Status.PENDING, email=before.email, ttl=before.ttl,
        refresh=before.refresh, retry=before.retry, expire=before.expire, minimum=before.minimum)


def restore(domain: Domain, last_serial: int, last_generation: int, now: datetime, request_id: str = '') -> Domain:
    """A deleted domain, to be created again: with the contents that are kept; of a secondary one, with those that its
    masters have."""
    serial = 1 if domain.is_secondary else first_serial(last_serial, domain.serial, time.time())
    return dataclasses.replace(
        domain, serial=serial, first_serial=None if domain.is_secondary else serial, generation=last_generation + 1,
        action=Action.CREATE, status=Status.PENDING, reported_serial=None, updated_at=now, changed_at=now,
        converged_at=None, deleted_at=None, request_id=request_id, version=domain.version + 1, abandoned=False,
        awaits_transfer=domain.is_secondary, transferred_at=None, content_serial=None,
        **(hold(domain) if domain.release_state is None else _UNRELEASED))


def leftover(domain: Domain, leftover_id: str, now: datetime) -> Domain:
    """The row of what is still to be deleted of a domain that goes on without that: as an older one of the name."""
    return dataclasses.replace(
        domain, id=leftover_id, moved_id=domain.id, generation=domain.generation - 1, action=Action.DELETE,
        status=Status.PENDING, reported_serial=None, created_at=now, updated_at=now, deleted_at=now, changed_at=now,
        converged_at=None, version=1, journal_from=None, journal_to=None, journal_records=0,
        history_records=0, shared=False, awaits_transfer=False, is_signed=False, content_serial=None,
        version_before=domain.version_before and NOTHING, release_state=None)


def from_pool(domain: Domain) -> tuple[RecordSet, RecordSet]:
    """The managed recordsets of a new domain, SOA and NS, without records."""
    soa = RecordSet(domain.name, 'SOA', id=new_id(), domain_id=domain.id, managed=True,
                    given_name=domain.given_name)
    return soa, dataclasses.replace(soa, type='NS', id=new_id())


def ns_rdatas(name_servers: Sequence[str]) -> list[Rdata]:
    """The data of the NS records."""
    return [Rdata(host, dns.name.from_text(host).to_wire() or b'') for host in name_servers]
