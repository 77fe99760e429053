"""Refreshes secondary zones: asks their masters for the serial, and transfers from one that has a newer one.

Which zone is due is in the database (RFC 1034 section 4.3.5), and each is claimed from Central, so several MiniDNS
processes share the work and no zone is transferred twice at the same time.  Central stores what was transferred.

One project's zones, and those of one master, take half of the places at most, and projects take turns.
"""

from __future__ import annotations

import collections
import logging
import ssl
import threading
from collections.abc import Callable, Mapping

import dns.exception
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.tsig

from designate_pool import logs
from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.deadline import Deadline
from designate_pool.errors import (BackendError, BackendRefused, BackendUnreachable, OverQuota, Refused,
                                   ServiceUnavailable, TransferRejected)
from designate_pool.logs import OutageLog
from designate_pool.model import (ChangeKind, Context, Endpoint, Master, MasterRecord, Reason, RefreshTask,
                                  ZoneTransferIn)
from designate_pool.protocol import tls
from designate_pool.protocol.axfr_inbound import AxfrInbound, IxfrInbound, Patience, axfr_query, ixfr_query, receive
from designate_pool.protocol.names_and_rdata import MAX_TTL, without_case
from designate_pool.protocol.soa_exchange import serial_in, soa_question
from designate_pool.protocol.tcp_client import TcpPeer
from designate_pool.rpc.central import CentralClient
from designate_pool.serial import newer
from designate_pool.settings import MiniDnsSettings
from designate_pool.storage.serving.watched import Watched

_SOA = dns.rdatatype.SOA
#: Types of queries and of messages, which are no data (RFC 6895 section 3.1).
_NO_DATA = frozenset({0, dns.rdatatype.OPT, *range(128, 256)})


#: Octets of the message in which a transfer is sent to Central; RabbitMQ refuses more than 128 MiB unless it is set.
MOST_MESSAGE = 100 << 20
#: Octets of a record in it beside its name and data.
_RECORD = 60


class InboundContents:
    """The records of one transfer of the zone *name*.

    :param most_records: see :class:`designate_pool.model.RefreshTask`
    """

    def __init__(self, name: str, settings: MiniDnsSettings, most_records: int = -1) -> None:
        self._name = dns.name.from_text(name).canonicalize()
        self._settings = settings
        self._most_records = most_records
        self._message = self._name_servers = 0
        self._soa: tuple[int, str] | None = None
        # TTLs by name, type and rdata.
        self._added: dict[tuple[str, str, str], int] = {}
        self._gone: dict[tuple[str, str, str], int] = {}
        self._count = 0
        self._owners: dict[bytes, str] = {}

    def add(self, owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int,
            names: dict[int, bytes]) -> None:
        """Add a record."""
        name, word, ttl, text = self._record(owner, rtype, ttl, message, start, end)
        if rtype != _SOA:
            known_ttl = self._added.setdefault((name, word, text), ttl)
            self._added[name, word, text] = min(ttl, known_ttl)
            # The name servers of the apex are not counted.
            self._name_servers += word == 'NS' and name == self._name.to_text()
            if 0 <= self._most_records < (count := len(self._added) - self._name_servers):
                raise OverQuota(quota='zone_records', limit=self._most_records, found=count)
        elif self._soa is None and name == self._name.to_text():
            self._soa = ttl, text
        else:
            raise BackendError(why=f'the transfer has an SOA at {name}')

    def remove(self, owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int,
               names: dict[int, bytes]) -> None:
        """Remove a record."""
        name, word, ttl, text = self._record(owner, rtype, ttl, message, start, end)
        # What an earlier step has added was not there before.
        if self._added.pop((name, word, text), None) is None:
            self._gone[name, word, text] = ttl

    def result(self, serial: int, from_serial: int | None) -> ZoneTransferIn:
        """The whole transfer, which has ended; *from_serial* of a difference, None for a whole zone."""
        assert self._soa is not None
        ttl, soa = self._soa
        return ZoneTransferIn(serial, soa, ttl, _records(self._added), _records(self._gone), from_serial)

    def _record(self, owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int) -> MasterRecord:
        self._count += 1
        if self._count > self._settings.transfer_in_records + 1:
            raise BackendError(why=f'the transfer has more than {self._settings.transfer_in_records} records')
        name = self._owners.get(owner)
        word = ''
        try:
            if name is None:
                parsed = dns.name.from_wire(owner, 0)[0]
                if not parsed.is_subdomain(self._name):
                    raise BackendError(why=f'the transfer has a record of {parsed}, which does not lie in {self._name}')
                name = self._owners[owner] = parsed.to_text()
            if rtype in _NO_DATA:
                raise BackendError(why=f'the transfer has a record of type {rtype}, which is no data, at {name}')
            kind = dns.rdatatype.RdataType.make(rtype)
            word = dns.rdatatype.to_text(kind)
            text = dns.rdata.from_wire(dns.rdataclass.IN, kind, message, start, end - start).to_text()
        except (dns.exception.DNSException, ValueError) as error:
            raise BackendError(why=f'the transfer has a record that is not valid: {name} {word} ({error})') from None
        # JSON in JSON in JSON has seven octets before each of these.
        self._message += len(name) + len(text) + 7 * (text.count('\\') + text.count('"')) + _RECORD
        if self._message > MOST_MESSAGE:
            raise BackendError(why=f'the transfer takes more than {MOST_MESSAGE} octets as text, in which it is sent '
                                   'to Central in one message')
        # A TTL with the highest bit set is zero (RFC 2181 section 8).
        return name, word, ttl if ttl <= MAX_TTL else 0, without_case(word, text)


def _records(ttls: Mapping[tuple[str, str, str], int]) -> list[MasterRecord]:
    return [(name, word, ttl, text) for (name, word, text), ttl in ttls.items()]


LOG = logging.getLogger(__name__)
#: Seconds for which a master may take to answer a query, and for a refresh with its transfer.
PATIENCE, REFRESH_SECONDS = 10.0, 120.0
#: Seconds that a claim is longer than a refresh may take, for Central to store what was transferred.
_MARGIN = 60.0
#: Projects in one turn, after which the next one begins.
_MOST_SERVED = 500
WHO = Context(user='refresh', all_projects=True, kind=ChangeKind.REFRESH)


class SecondaryRefresher:
    """Refreshes the secondary zones of a pool that are due, a few at a time.

    :param key_for: the TSIG key for the transfers of a zone, by its domain's id; None for no signature
    :param refusal: why an address cannot be a master of this MiniDNS, in words; None if it can
    :param retry_interval: seconds until Central is asked again that cannot be reached
    """

    def __init__(self, central: CentralClient, pool_name: str, key_for: Callable[[str], dns.tsig.Key | None],
                 refusal: Callable[[Endpoint], str | None], settings: MiniDnsSettings = MiniDnsSettings(),
                 retry_interval: float = 1.0) -> None:
        self._central = central
        self._pool_name = pool_name
        self._key_for = key_for
        self._refusal = refusal
        self._settings = settings
        self._retry_interval = retry_interval
        self._requested: dict[str, None] = {}
        self._being_told: set[str] = set()
        self._claiming = threading.Lock()
        # Project and address of the master of each zone that is being refreshed, by claim.
        self._busy: dict[str, tuple[str, str]] = {}
        # Projects that have had their turn.
        self._served: set[str] = set()
        self._is_limited = False
        self._may_be_due = False
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._outage = OutageLog(LOG, 'secondary zones cannot be refreshed: %s', 'secondary zones are refreshed again')
        self._tasks: list[LoopTask] = []

    def start(self, runtime: Runtime) -> None:
        """Start as many loops as zones may be transferred at a time."""
        self._tasks = [runtime.spawn(self._loop, name=f'minidns-secondaries-{number}')
                       for number in range(1, self._settings.transfers_in + 1)]

    def stop(self) -> None:
        """Stop; a refresh in progress is left to others, once its claim has expired."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()

    def request(self, domain_id: str) -> None:
        """Have a zone refreshed soon: a master says that it has changed."""
        with self._changed:
            self._requested[domain_id] = None
            self._changed.notify()

    def follow(self, watched: Watched) -> None:
        """Have zones refreshed that are due."""
        if watched.has_due_refresh:
            with self._changed:
                self._may_be_due = True
                self._changed.notify_all()

    def refresh_next(self) -> bool:
        """Refresh one zone that is due; whether there was one."""
        task = self._claim()
        if task is None:
            return False
        try:
            self._refresh(task)
        except Exception as error:  # whatever ails one zone must not end the loop
            logs.failure(LOG, error, '%s could not be refreshed', task.name)
            self._central.fail_refresh(WHO, task.domain_id, task.claim,
                                       f'MiniDNS failed ({type(error).__name__}); its log says more')
        finally:
            with self._claiming:
                del self._busy[task.claim]
                self._may_be_due = self._may_be_due or self._is_limited
        return True

    def _claim(self) -> RefreshTask | None:
        failure = self._pass_requests_on()
        tasks: list[RefreshTask] = []
        with self._claiming:
            if self._may_be_due and not self._stopping.is_set():
                self._may_be_due = False  # unless one is found; if Central cannot be asked, until the next look
                tasks = self._claim_in_turn()
                if tasks:
                    self._may_be_due = True
        if tasks:
            if failure is not None:
                with self._changed:
                    self._changed.notify()  # another loop, as this one is busy now
            return tasks[0]
        if failure is not None:
            raise failure
        return None

    def _claim_in_turn(self) -> list[RefreshTask]:
        """Claim a zone of a project that has not had its turn, or else of another that may have a place."""
        most = max(1, self._settings.transfers_in // 2)
        projects = collections.Counter(project for project, _ in self._busy.values())
        masters = collections.Counter(master for _, master in self._busy.values())
        full = {project for project, count in projects.items() if count >= most}
        crowded = sorted(master for master, count in masters.items() if count >= most)
        self._is_limited = bool(full or crowded)
        seconds = REFRESH_SECONDS + _MARGIN
        tasks: list[RefreshTask] = []
        if 0 < len(self._served) < _MOST_SERVED:
            tasks = self._central.claim_refreshes(WHO, self._pool_name, seconds, 1, sorted(full | self._served),
                                                  crowded)
        if not tasks:
            self._served.clear()
            tasks = self._central.claim_refreshes(WHO, self._pool_name, seconds, 1, sorted(full), crowded)
        for task in tasks:
            self._busy[task.claim] = task.project_id, Master.parse(task.masters[0]).endpoint.host
            self._served.add(task.project_id)
        return tasks

    def _pass_requests_on(self) -> ServiceUnavailable | None:
        """Tell Central which zones have changed; why it could not be told, which may be true of that zone alone."""
        failure = None
        while failure is None and (domain_id := self._take_request()) is not None:
            try:
                self._central.refresh_domain(WHO, domain_id)
                self._may_be_due = True
            except ServiceUnavailable as error:
                failure = error
            finally:
                with self._changed:
                    self._being_told.discard(domain_id)
                    if failure is not None:
                        self._requested[domain_id] = None
        return failure

    def _take_request(self) -> str | None:
        """Take a request; its zone's master may notify again while Central is told, which is left to this loop."""
        with self._changed:
            domain_id = self._next_request()
            if domain_id is not None:
                del self._requested[domain_id]
                self._being_told.add(domain_id)
            return domain_id

    def _next_request(self) -> str | None:
        return next((domain_id for domain_id in self._requested if domain_id not in self._being_told), None)

    def _refresh(self, task: RefreshTask) -> None:
        """Transfer from the first master that has a newer serial; all are asked, as one may be behind another."""
        deadline = Deadline(REFRESH_SECONDS)
        confirmed, errors = None, []
        for master in task.masters:
            self._busy[task.claim] = task.project_id, Master.parse(master).endpoint.host
            try:
                if self._is_transferred(task, master, deadline):
                    return
                confirmed = confirmed or master
            except (BackendError, TransferRejected, OverQuota) as error:
                errors.append(f'{master}: {str(error).rstrip(".")}')
            except Refused as error:  # it waits for the end of a freeze, and does not expire
                confirmed = confirmed or master
                errors.append(f'{master}: {str(error).rstrip(".")}')
            except TimeoutError:
                errors.append(f'{master}: the time for a refresh, {REFRESH_SECONDS:g} s, is over')
        if confirmed is not None:
            self._central.confirm_refresh(WHO, task.domain_id, task.claim, confirmed)
        else:
            self._central.fail_refresh(WHO, task.domain_id, task.claim, '; '.join(errors))
        if errors:
            LOG.info('%s: %s', task.name, '; '.join(errors))

    def _is_transferred(self, task: RefreshTask, master: str, deadline: Deadline) -> bool:
        """Whether the zone was transferred from *master*; not if that has the serial which is stored.

        :raises BackendError: when it cannot be asked, is behind, or sends no zone
        """
        where = Master.parse(master)
        endpoint = where.endpoint
        why = self._refusal(endpoint)
        if why is not None:
            raise BackendRefused(why=why)
        peer = TcpPeer(endpoint.host, endpoint.port, self._key_for(task.domain_id),
                       self._tls_of(where) if where.has_tls else None, where.tls_name)
        serial = serial_in(_first_answer(peer, task.name, min(PATIENCE, deadline.left())), task.name)
        if serial is None:
            raise BackendError(why=f'it has no zone {task.name}')
        if task.serial is not None:
            if serial == task.serial:
                return False
            if not newer(serial, task.serial):
                raise BackendError(why=f'its serial {serial} is older than {task.serial}, which is stored '
                                       '(RFC 1982): raise it there, or delete this zone and create it again')
        self._transfer(task, master, peer, deadline)
        return True

    def _tls_of(self, master: Master) -> ssl.SSLContext:
        try:
            return tls.client_context(self._settings.masters_ca, is_strict=master.tls_name is not None)
        except OSError as error:
            raise BackendError(why=f'MiniDNS cannot read [service:minidns] masters_ca: {error}') from None

    def _transfer(self, task: RefreshTask, master: str, peer: TcpPeer, deadline: Deadline) -> None:
        """Store the difference, or the whole zone if the difference cannot be had or does not fit."""
        if task.serial is not None:
            try:
                contents = self._difference(task.name, task.serial, peer, deadline)
                self._central.store_transfer(WHO, task.domain_id, task.claim, master, contents)
                return
            except (BackendError, TransferRejected) as error:  # some masters answer no IXFR, or end the connection
                LOG.info('%s is transferred whole from %s: %s', task.name, master, error)
        self._central.store_transfer(WHO, task.domain_id, task.claim, master,
                                     self._whole(task, peer, deadline))

    def _difference(self, name: str, have: int, peer: TcpPeer, deadline: Deadline) -> ZoneTransferIn:
        """The difference from the serial *have*, or the whole zone where the master sends that."""
        contents = InboundContents(name, self._settings)
        incoming = IxfrInbound(ixfr_query(name, have), have, contents.add, contents.remove)
        _receive(peer, incoming, deadline)
        if incoming.is_difference is None:
            raise BackendError(why=f'it answers with serial {incoming.serial} alone')
        return contents.result(incoming.serial, have if incoming.is_difference else None)

    def _whole(self, task: RefreshTask, peer: TcpPeer, deadline: Deadline) -> ZoneTransferIn:
        # A zone that has been larger than the quota may be transferred again; Central counts what it has.
        contents = InboundContents(task.name, self._settings, task.most_records if task.serial is None else -1)
        incoming = AxfrInbound(axfr_query(task.name), contents.add)
        _receive(peer, incoming, deadline)
        return contents.result(incoming.serial, None)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                while self.refresh_next():
                    pass
                self._outage.ended()
            except Exception as error:  # the loop outlives whatever ails the database, Central or the broker
                self._outage.failed(error)
                self._stopping.wait(self._retry_interval)
            with self._changed:
                self._changed.wait_for(lambda: self._next_request() or self._may_be_due or self._stopping.is_set())


def _first_answer(peer: TcpPeer, name: str, seconds: float) -> dns.message.Message:
    """The answer to the question for the SOA.

    :raises BackendError: the same one for a port that is closed, silent, or of another service than DNS: users choose
        masters, and are not to find out what listens where MiniDNS reaches
    """
    try:
        return peer.ask(soa_question(name), seconds)
    except BackendError as error:
        if error.reason not in (None, Reason.TIMEOUT):
            raise
        LOG.info('%s: %s:%d: %s', name, peer.host, peer.port, error)
        raise BackendUnreachable(why='no DNS server answers there; the log of MiniDNS says more') from None


def _receive(peer: TcpPeer, incoming: AxfrInbound, deadline: Deadline) -> None:
    refusal = receive(peer, incoming, Patience(PATIENCE, deadline))
    if refusal is not None:
        word = dns.rcode.to_text(refusal)
        raise BackendRefused(why=f'it refuses the transfer ({word}): its configuration has to allow it to the key, or '
                                 'from the address of MiniDNS', reason=Reason(word))
