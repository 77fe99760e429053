"""The audit of signatures: what the servers serve of every signed zone once in ``signature_audit_interval``.

A zone is known to be signed by its contents, or since the pool signs it.  Where a server's section has ``signs_zones``,
every zone of the pool may be, and those are that a server answers for with keys or signatures.  Each server is asked
for the SOA and the keys of each zone (DNSSEC OK, RFC 4035 section 3.2.1), over one connection for many zones.  What is
found is told and not repaired: see :mod:`designate_pool.protocol.zone_signatures`.

Which DS records the servers of the parent have is noted for zones that the pool signs, whose keys wait for that; the
parent is notified of what it is to have.  Of zones that the pool signs, some are verified whole in each round, as
servers may have them: all have their turn, and those that were not valid are verified each time.  That servers have
exactly these records is left to the audit of contents.

Findings of one zone and server stay until the server was asked again, and are told once.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import logging
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import dns.exception
import dns.rdatatype

from designate_pool import metrics
from designate_pool.deadline import Deadline, Turns
from designate_pool.errors import BackendError, PoolError
from designate_pool.model import Audit, AuditFinding, AuditKind, Counts, Endpoint, Server, ZoneRecord, new_id
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic import audit_schedule
from designate_pool.pool_manager.verify import parent_servers
from designate_pool.protocol import tsig, zone_signatures
from designate_pool.protocol.tcp_client import TcpPeer
from designate_pool.protocol.zone_signatures import ServedSignatures
from designate_pool.signing import verifier
from designate_pool.storage.operations import sweeps
from designate_pool.storage.reporting import audit_findings, gauges
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import versions

LOG = logging.getLogger(__name__)
T = TypeVar('T')

KIND = AuditKind.SIGNATURES
#: Seconds to wait while the audit is off, and for which a page is claimed.
IDLE, CLAIM_SECONDS = 5.0, 300.0
#: Seconds of a page for questions to parent zones; the others are asked in the next round.
PARENT_SECONDS = 120.0
#: Zones that a server is asked for over one connection, and servers that are asked at the same time.
AT_ONCE, WORKERS = 100, 16
#: Zones of a page that are verified whole in one round, and seconds for that; likewise of those that were not valid.
MOST_VERIFIED, VERIFY_SECONDS = 10, 60.0
#: A zone with more records is not verified.
MOST_RECORDS = 50_000
#: What is found of these begins so.
NOT_VALID = 'the zone is not valid: '


class SignatureAudit:
    """The audit of signatures of *manager*'s pool, as far as this pool manager takes part."""

    def __init__(self, manager: Manager, runtime: Any) -> None:
        self._manager = manager
        self._threads = runtime.workers(WORKERS, name='signatures')
        # By server label: when the first signature expires, by the start of the round in which that was seen.
        self._expiries: dict[str, dict[datetime, int]] = {}

    def close(self) -> None:
        """End the workers; after the loop of :meth:`run` has ended."""
        self._threads.stop()

    def run(self) -> float:
        """Audit one page of domains; seconds until the next."""
        manager, interval = self._manager, self._manager.settings.signature_audit_interval
        if not interval:
            return IDLE
        claimed, wait = audit_schedule.claim_page(manager, KIND, CLAIM_SECONDS)
        if claimed is None:
            return wait
        last_id, domains = manager.storage.read(sweeps.signed_page, claimed.pool_id, claimed.after_id,
                                                audit_schedule.PAGE)
        workers = [worker for worker in audit_schedule.active_workers(manager) if not worker.dns.is_open]
        may_be_signed = any(worker.backend.options.get('signs_zones') for worker in workers)
        counts = self._audit_page(claimed, last_id, workers, [
            domain for domain in domains if domain[2] or may_be_signed])
        now = manager.storage.now()
        pages = audit_schedule.pages(manager.storage.read(gauges.active, manager.pool.name)) if last_id else 0
        next_at = (now + timedelta(seconds=interval / (pages + 1)) if last_id
                   else max(now, claimed.started_at + timedelta(seconds=interval)))
        manager.storage.run(sweeps.advance, claimed, last_id, counts, 0, next_at, now)
        self._show_expiries(claimed.started_at, interval)
        return min(audit_schedule.LONGEST, (next_at - now).total_seconds())

    def _audit_page(self, audit: Audit, last_id: str, workers: Sequence[ServerWorker],
                    domains: Sequence[tuple[str, str, bool]]) -> Counts:
        """Ask about *domains*, (id, name, whether it is known to be signed), and record what is wrong."""
        names = [name for _, name, _ in domains]
        asked = [(worker, endpoint) for worker in workers
                 for endpoint in worker.server.verify or (worker.server.endpoint,)] if names else []
        answers = [(worker, endpoint, future) for worker, endpoint in asked
                   for future in (self._threads.submit(ask, worker.server, endpoint, names),)]
        concurrent.futures.wait([future for _, _, future in answers])
        now = self._manager.storage.now()
        findings, checked, signed = list[AuditFinding](), set[tuple[str, str]](), set[str]()
        names_by_id = {domain_id: name for domain_id, name, is_known in domains if is_known}
        labels = {worker.server.id: worker.server.label for worker in workers}
        verified = self._threads.submit(self._verify_some, audit, names_by_id, now)
        ds_records = self._ds_of(list(names_by_id.values()))
        if ds_records:
            self._manager.storage.run(zone_signing.report_ds, {
                domain_id: {str(server): ds for server, ds in ds_records[name].items()}
                for domain_id, name, _ in domains if ds_records.get(name)}, now)
        self._notify_parents(names_by_id)
        for domain_id, name, is_known in Turns().between(domains):
            served = {f'{worker.server.label} at {endpoint}' if worker.server.verify else worker.server.label:
                      (worker, one) for worker, endpoint, future in answers
                      if (one := future.result().get(name)) is not None}
            wrong = zone_signatures.judge({label: one for label, (_, one) in served.items()}, int(now.timestamp()),
                                          self._manager.settings.signature_margin, is_known,
                                          {ds for records in ds_records.get(name, {}).values() for ds in records or ()},
                                          name)
            if is_known or any(one.is_signed for _, one in served.values()):
                signed.add(domain_id)
            for label, (worker, one) in served.items():
                checked.add((domain_id, worker.server.id))
                if one.expires_at is not None:
                    rounds = self._expiries.setdefault(worker.server.label, {})
                    rounds[audit.started_at] = min(one.expires_at, rounds.get(audit.started_at, one.expires_at))
                findings += [AuditFinding(new_id(), now, audit.pool_id, KIND, domain_id, name, worker.server.id, label,
                                          what, audit_findings.UNTOUCHED) for what in wrong[label]]
        findings += [AuditFinding(new_id(), now, audit.pool_id, KIND, domain_id, names_by_id[domain_id], server_id,
                                  label, what, audit_findings.UNTOUCHED)
                     for domain_id, what in verified.result().items() for server_id, label in labels.items()
                     if (domain_id, server_id) in checked]
        new = self._manager.storage.run(audit_findings.replace_signatures, audit.pool_id, audit.after_id, last_id,
                                        checked, {domain_id for domain_id, _, _ in domains}, findings)
        for finding in new[:audit_schedule.MAX_RECORDED]:
            audit_schedule.log_finding(finding)
        if len(new) > audit_schedule.MAX_RECORDED:
            LOG.warning('the audit of signatures found %d more', len(new) - audit_schedule.MAX_RECORDED)
        pairs, answered = len(signed) * len(workers), sum(domain_id in signed for domain_id, _ in checked)
        return Counts(len(signed), pairs, pairs, pairs - answered,
                      len({(finding.domain_id, finding.server_id) for finding in findings}))

    def _ds_of(self, names: Sequence[str]) -> dict[str, Mapping[Endpoint, Sequence[str] | None]]:
        """The DS records of zones at each server of their parents, as far as they are asked, and answer in time."""
        resolvers, servers = self._manager.settings.parent_resolvers, self._manager.settings.parent_servers
        if not resolvers and not servers:
            return {}
        return self._ask_parents(names, lambda name: parent_servers.probe_ds(name, resolvers, servers))

    def _verify_some(self, audit: Audit, ids: Collection[str], now: datetime) -> dict[str, str]:
        """Verify some zones of the page; by id, what is wrong with those that are not valid, or were not when they were
        last verified."""
        storage, settings = self._manager.storage, self._manager.settings
        # Those that are signed here alone: others may sign in ways that the verifier does not know.
        signed = sorted(storage.read(zone_signing.states_of, ids)) if ids else []
        wrong = storage.read(audit_findings.told_of_signatures, audit.pool_id, signed, NOT_VALID) if signed else {}
        number = int(audit.started_at.timestamp() // settings.signature_audit_interval)
        deadline = Deadline(VERIFY_SECONDS)
        for domain_id in dict.fromkeys([*_in_turn(sorted(wrong), number), *_in_turn(signed, number)]):
            zone_defects = None if deadline.is_over else defects(storage, domain_id, int(now.timestamp()), deadline)
            metrics.ZONES_VERIFIED.labels(self._manager.pool.name, 'unknown' if zone_defects is None else
                                          'wrong' if zone_defects else 'valid').inc()
            if zone_defects is not None:
                wrong.pop(domain_id, None)
            if zone_defects:
                wrong[domain_id] = NOT_VALID + ' '.join(sorted(zone_defects)[:3])
        return wrong

    def _notify_parents(self, names: Mapping[str, str]) -> None:
        """Tell the parents of zones, once in a round, that they are to change the DS (RFC 9859)."""
        resolvers = self._manager.settings.parent_resolvers
        if not resolvers or not names:
            return
        offering = [names[domain_id] for domain_id in sorted(self._manager.storage.read(zone_signing.offering,
                                                                                        list(names)))]
        notified = self._ask_parents(offering, lambda name: parent_servers.notify_parent(name, resolvers))
        for name, targets in notified.items():
            for target in targets:
                LOG.info('%s was told that the DS of %s is to be changed', target, name)

    def _ask_parents(self, names: Sequence[str], ask_parent: Callable[[str], T]) -> dict[str, T]:
        """What the parents of zones say, without those that are not asked in time or fail."""
        end = time.monotonic() + PARENT_SECONDS

        def answer(name: str) -> T | None:
            try:
                return None if time.monotonic() > end else ask_parent(name)
            except BackendError as error:
                LOG.debug('%s', error)
                return None

        answers = {name: self._threads.submit(answer, name) for name in names}
        return {name: reply for name, future in answers.items() if (reply := future.result()) is not None}

    def _show_expiries(self, started_at: datetime, interval: float) -> None:
        """Set the gauges by this round and the last one; other pool managers have the other pages of both."""
        oldest = started_at - timedelta(seconds=2 * interval)
        for label, rounds in list(self._expiries.items()):
            self._expiries[label] = rounds = {begun: at for begun, at in rounds.items() if begun > oldest}
            gauge = metrics.SIGNATURES_EXPIRE_AT.labels(self._manager.pool.name, label)
            gauge.set(min(rounds.values(), default=float('inf')))


def _in_turn(ids: Sequence[str], number: int) -> Sequence[str]:
    """Those of *ids* whose turn it is in the round of this number; each has its turn in some round."""
    start = number * MOST_VERIFIED % len(ids) if ids else 0
    return [*ids[start:], *ids[:start]][:MOST_VERIFIED]


def defects(storage: Storage, domain_id: str, now: int, deadline: Deadline) -> list[str] | None:
    """What is wrong with a zone as servers may have it, one sentence each; *now* is in seconds since the epoch.

    None if it is not verified in time, is not signed, or has too many records.
    """
    def between(items: Iterable[Any]) -> Iterator[Any]:
        for item in Turns().between(items):
            deadline.left()
            yield item

    try:
        with contextlib.closing(storage.stream(versions.permitted_pages, domain_id)) as pages:
            records = list(itertools.islice(between(versions.whole_zone(pages)), MOST_RECORDS + 1))
        if len(records) > MOST_RECORDS or not any(rtype == 'DNSKEY' for _, rtype, _, _ in records):
            return None
        return verifier.verify_zone(records, now, 0, between) or _defects_by_program(records, deadline)
    except TimeoutError:
        return None
    except (dns.exception.DNSException, IndexError, ValueError):
        return ['It has malformed records.']


def _defects_by_program(records: Sequence[ZoneRecord], deadline: Deadline) -> list[str]:
    """What BIND's program, or that of ldns, says of a zone that is not valid, where one of them is installed and ends
    in time.

    :param records: the SOA first
    :raises TimeoutError: when there is no time for it
    """
    programs = ['dnssec-verify', '-q', '-z', '-o', records[0][0], '/dev/stdin'], ['ldns-verify-zone']
    program = next((program for program in programs if shutil.which(program[0])), None)
    if program is None:
        return []
    numbers = {rtype: int(dns.rdatatype.from_text(rtype)) for _, rtype, _, _ in records}
    # As RFC 3597 section 5 has data of any type, since programs know few of the newer ones.
    text = ''.join(f'{name} {ttl} IN TYPE{numbers[rtype]} \\# {len(wire)} {wire.hex()}\n'
                   for name, rtype, ttl, wire in Turns().between(records))
    seconds = deadline.left() / 2  # one that hangs leaves time for other zones
    try:
        done = subprocess.run(program, input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, timeout=seconds)
    except Exception as error:  # eventlet's TimeoutExpired is not that of subprocess
        LOG.warning('the zone %s is not verified by %s: %s', records[0][0], program[0], error)
        return []
    if not done.returncode:
        return []
    said = done.stdout.decode(errors='replace').strip()
    # What it cannot read may be valid: BIND loads no NS records at a wildcard, and /dev/stdin needs /proc.
    if done.returncode < 0 or done.returncode == 1 and (': fatal: ' in said or program[0] == 'ldns-verify-zone'):
        LOG.warning('the zone %s is not verified by %s, which ended with %d: %s', records[0][0], program[0],
                    done.returncode, said[:500])
        return []
    return [f'{program[0]} says: {line}' for line in said.splitlines()[:3]] or [
        f'{program[0]} ends with {done.returncode}.']


def ask(server: Server, endpoint: Endpoint, names: Sequence[str]) -> dict[str, ServedSignatures]:
    """What *server* serves at *endpoint* of the signatures of zones; without those that it does not answer for."""
    served: dict[str, ServedSignatures] = {}
    remaining = iter(names)
    while batch := list(itertools.islice(remaining, AT_ONCE)):
        asked = {name: zone_signatures.questions(name) for name in batch}
        answers = dict[int, Any]()
        try:
            key = None if server.tsig_key is None or server.verify else tsig.key_from(server.tsig_key)
            for question, answer in TcpPeer(endpoint.host, endpoint.port, key).ask_each(
                    [question for of_zone in asked.values() for question in of_zone],
                    max(server.call_timeout, CLAIM_SECONDS / 10)):
                answers[id(question)] = answer
        except (PoolError, OSError, ValueError) as error:
            LOG.debug('%s at %s: %s', server.label, endpoint, error)
            remaining = iter(())
        for name, of_zone in Turns().between(asked.items()):
            if all(id(question) in answers for question in of_zone):
                one = zone_signatures.read_answers([answers[id(question)] for question in of_zone])
                if one is not None:
                    served[name] = one
    return served
