"""Comparison of a server's contents of a zone with ours, by a transfer or the server's digest (ZONEMD, RFC 8976).

The invariants: contents count as different only if a server that serves our serial was transferred from completely or
gives a digest of that serial, or if it serves a serial ahead of ours.  A retransfer succeeds only if the contents were
compared afterwards and are the same: that the server accepted the command proves nothing, nor does its serial.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import itertools
import logging
import time
from collections.abc import Collection, Sequence

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype

from designate_pool.backends import driver_class
from designate_pool.backends.base import Backend, tcp_peer
from designate_pool.backoff import Backoff
from designate_pool.deadline import Turns
from designate_pool.errors import BackendRefused, PoolError
from designate_pool.model import LAST_STAGE, CallResult, Domain, Reason, Server
from designate_pool.pool_manager.dispatch.server_worker import SyncResult
from designate_pool.protocol import soa_rdata, wire, zonemd
from designate_pool.protocol.axfr_inbound import Pace, TransferRefused, take
from designate_pool.protocol.names_and_rdata import type_number
from designate_pool.protocol.tcp_client import TcpPeer
from designate_pool.serial import newer
from designate_pool.settings import Tries
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import versions

LOG = logging.getLogger(__name__)

#: Seconds from the command to transfer to the first comparison; doubled up to the interval between tries.
FIRST_CHECK = 0.05
#: Differing RRsets that are named, at most.
SAMPLE = 3
#: A transfer is broken off after this many times our number of records and octets, and some more of each.
TIMES, MORE, MORE_OCTETS = 2, 1000, 1 << 20


class Match(enum.Enum):
    """A server's contents, compared with ours."""

    SAME = 'the same'
    OTHER = 'other contents of the same serial'
    AHEAD = 'at a serial ahead of ours'
    ELSEWHERE = 'at another serial'
    UNKNOWN = 'not comparable'
    SILENT = 'no answer'


#: The contents were compared.
COMPARED = frozenset({Match.SAME, Match.OTHER, Match.AHEAD})


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneComparison:
    """The result of a comparison.

    :ivar serial: that the server serves, if known
    :ivar signs: whether the server signs the zone, under serials of its own; what that adds to it is not compared
    :ivar is_current: whether a server that signs has our records, as far as they can be compared
    """

    match: Match
    serial: int | None = None
    why: str = ''
    signs: bool = False
    is_current: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Ours:
    """A zone as the database has it at one serial, with the digest of its comparable form."""

    name: str
    serial: int
    contents: zonemd.DigestedZone
    digest: bytes


def ours(storage: Storage, domain_id: str, stage: int = LAST_STAGE) -> Ours | None:
    """The zone of a domain, as servers of a stage may have it, if it is served; ValueError for a bad SOA."""
    contents: zonemd.DigestedZone | None = None
    with contextlib.closing(storage.stream(versions.permitted_pages, domain_id, iter, stage)) as pages:
        for head, page in pages:
            if contents is None:
                contents = zonemd.DigestedZone(wire.encode(head.name))
                _add(contents, head.name, wire.SOA, head.ttl, soa_rdata.encode(head))
            for owner, rtype, ttl, rdata in page:
                _add(contents, owner, type_number(rtype), head.ttl if ttl is None else ttl, rdata)
            time.sleep(0)  # let other green threads run
    return None if contents is None else Ours(head.name, head.serial, contents, _digest(_comparable(contents)))


def compare_domain(storage: Storage, server: Server, domain: Domain, pace: Pace) -> ZoneComparison | None:
    """Compare what *server* serves of a domain with what the database has; None if that has it no more."""
    try:
        mine = ours(storage, domain.id, domain.stage)
    except ValueError as error:
        return ZoneComparison(Match.UNKNOWN, None, f'our own contents cannot be made: {error}')
    return None if mine is None else compare(server, mine, pace)


def compare(server: Server, mine: Ours, pace: Pace) -> ZoneComparison:
    """Compare what *server* serves with *mine*."""
    try:
        peer = tcp_peer(server)
        try:
            taken = take(peer, mine.name, server.call_timeout, pace, TIMES * mine.contents.added + MORE,
                         TIMES * mine.contents.octets + MORE_OCTETS)
        except TransferRefused as refusal:
            return _by_its_own_digest(peer, mine, server.call_timeout, refusal)
    except BackendRefused as error:
        return ZoneComparison(Match.UNKNOWN, None, str(error))
    except (PoolError, OSError, ValueError) as error:
        return ZoneComparison(Match.SILENT, None, str(error) or type(error).__name__)
    capabilities = driver_class(server.driver).capabilities
    is_signed = bool(taken.contents.types & zonemd.SIGNING - mine.contents.types)
    signs = is_signed and not capabilities.signs_under_serial
    omitted = {type_number(rtype) for rtype in capabilities.not_transferred}
    omitted |= (zonemd.SIGNING | zonemd.BESIDE_SIGNING) - mine.contents.types if is_signed else set()
    if newer(taken.serial, mine.serial):
        records = omitted | {wire.SOA}
        is_current = signs and (not taken.whole or _digest(_comparable(taken.contents, records)) == _digest(
            _comparable(mine.contents, records)))
        why = f'serves serial {taken.serial}, which is ahead of ours, {mine.serial}'
        why = f'{why}; its serials are its own: it signs' if signs else why
        return ZoneComparison(Match.AHEAD, taken.serial, why, signs, is_current)
    if taken.serial != mine.serial:
        return ZoneComparison(Match.ELSEWHERE, taken.serial, f'serves serial {taken.serial}, not {mine.serial}')
    if is_signed and not taken.whole:
        return ZoneComparison(Match.UNKNOWN, taken.serial, 'its zones are too large to be compared: it signs', signs)
    theirs, digest = _comparable(taken.contents, omitted), mine.digest
    if not mine.contents.types.isdisjoint(omitted):
        digest = _digest(_comparable(mine.contents, omitted))
    if taken.whole and _digest(theirs) == digest:
        return ZoneComparison(Match.SAME, taken.serial, '', signs)
    return ZoneComparison(Match.OTHER, taken.serial,
                          _difference(mine.serial, _comparable(mine.contents, omitted), theirs, taken.whole), signs)


def _comparable(contents: zonemd.DigestedZone, omitted: Collection[int] = ()) -> zonemd.DigestedZone:
    return contents.comparable(omitted, Turns().between)


def _by_its_own_digest(peer: TcpPeer, mine: Ours, seconds: float, refusal: BackendRefused) -> ZoneComparison:
    """Compare with the ZONEMD record of a server that refuses transfers."""
    query = dns.message.make_query(mine.name, dns.rdatatype.RdataType.make(zonemd.ZONEMD), flags=0)
    answer = peer.ask(query, seconds)
    rrset = answer.get_rrset(answer.answer, query.question[0].name, dns.rdataclass.IN, query.question[0].rdtype)
    digests = [digest for rdata in rrset or () if (digest := zonemd.digest_in(rdata.to_wire() or b'', mine.serial))]
    if answer.rcode() != dns.rcode.NOERROR or not answer.flags & dns.flags.AA or not digests:
        return ZoneComparison(Match.UNKNOWN, None, f'{refusal}, and has no ZONEMD record of this serial')
    if _digest(mine.contents) in digests:
        return ZoneComparison(Match.SAME, mine.serial)
    return ZoneComparison(Match.OTHER, mine.serial,
                          f'serves serial {mine.serial} with other contents than ours, by its own ZONEMD record')


def _difference(serial: int, ours: zonemd.DigestedZone, theirs: zonemd.DigestedZone, whole: bool) -> str:
    count = len(theirs)
    sample = itertools.islice(ours.differences(theirs), SAMPLE)
    named = ', '.join(f'{dns.name.from_wire(owner, 0)[0]} {dns.rdatatype.to_text(dns.rdatatype.RdataType.make(rtype))}'
                      for owner, rtype in sample)
    return (f'serves serial {serial} with other contents than ours: {len(ours)} records ours, '
            f'{"" if whole else "more than "}{count} theirs; e.g. {named}')


def _add(contents: zonemd.DigestedZone, owner: str, rtype: int, ttl: int, rdata: bytes) -> None:
    contents.add(wire.encode(owner), rtype, ttl, zonemd.canonical(rtype, rdata, 0, len(rdata), {}))


def _digest(contents: zonemd.DigestedZone) -> bytes:
    return zonemd.digest_of(Turns().between(contents.pieces()))


def retransfer(storage: Storage, tries: Tries, backend: Backend, domains: Sequence[Domain]) -> list[SyncResult]:
    """Have the server transfer those of *domains* again, a batch of the driver at most, whose contents are not ours.

    :returns: for each the result, and the serial that the server was last seen to serve
    """
    started = time.monotonic()
    comparisons = {domain.id: _compare(storage, backend, domain) for domain in domains}
    # Who is behind may be transferring a change, with which a transfer of the whole zone would begin anew.
    _wait_for_match(storage, dataclasses.replace(tries, max_retries=1), backend, [
        domain for domain in domains if comparisons[domain.id].match is Match.ELSEWHERE], comparisons)
    # One that signs and has our records would only sign them again, under one more serial of its own.
    differing = [domain for domain in domains if not _is_settled(comparisons[domain.id])]
    results = dict(zip((domain.id for domain in differing), backend.refetch_domains(differing),
                       strict=True)) if differing else {}
    others = [domain for domain in differing if comparisons[domain.id].match in COMPARED]
    _wait_for_match(storage, tries, backend, [domain for domain in differing if results[domain.id].ok], comparisons)
    for domain in others:
        if comparisons[domain.id].match is Match.SAME:
            LOG.warning('%s had other contents of %s than the pool: it has transferred it anew', backend.server.label,
                        domain.name)
    seconds = time.monotonic() - started
    return [_result_of(comparisons[domain.id], results.get(domain.id), seconds) for domain in domains]


def _wait_for_match(storage: Storage, tries: Tries, backend: Backend, domains: Sequence[Domain],
                    found: dict[str, ZoneComparison]) -> None:
    """Compare until all contents are ours or the time of a round is over."""
    pending, longest = list(domains), max(FIRST_CHECK, tries.retry_interval)
    end = time.monotonic() + max(1, tries.max_retries) * longest
    pauses = Backoff(FIRST_CHECK, cap=longest).delays()
    while pending:
        time.sleep(next(pauses))
        found.update({domain.id: _compare(storage, backend, domain) for domain in pending})
        pending = [domain for domain in pending if not (
            _is_settled(found[domain.id]) or found[domain.id].match is Match.UNKNOWN)]
        if time.monotonic() > end:
            return


def _compare(storage: Storage, backend: Backend, domain: Domain) -> ZoneComparison:
    return compare_domain(storage, backend.server, domain, Pace(0)) or ZoneComparison(
        Match.UNKNOWN, None, f'{domain.name} is not there any more')


def _result_of(found: ZoneComparison, result: CallResult | None, seconds: float) -> SyncResult:
    if found.match is Match.SAME:
        return CallResult(seconds), found.serial
    reason = Reason.SIGNS if found.signs and found.match is Match.AHEAD else \
        Reason.DIVERGED if found.match in COMPARED else Reason.UNCHECKED
    if result is not None and not result.ok:
        why = f'{found.why}; it cannot be made to transfer the zone anew: {result.error}'
        reason = Reason.NO_RETRANSFER if result.reason is Reason.NO_RETRANSFER else reason
        return CallResult(seconds, why, result.retryable, result.unreachable, reason), found.serial
    why = found.why if result is None else f'{found.why}, after it was told to transfer the zone anew'
    # The tries of a round are used up: the next one is later.
    return CallResult(seconds, why, retryable=reason is Reason.UNCHECKED, reason=reason), found.serial


def _is_settled(found: ZoneComparison) -> bool:
    return found.match is Match.SAME or found.is_current
