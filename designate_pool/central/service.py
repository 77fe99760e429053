"""Central, which owns domains and records: a library that the API calls in its process.

Each method validates its arguments, does its work in one transaction, and then casts the domain to its pool manager.
Other services call it over RPC, as :class:`designate_pool.rpc.central.CentralClient`, which describes those methods.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from designate_pool.call_combiner import RequestCombiner
from designate_pool.central import (deleted_domains, domain_changes, events, managed_records, recordset_changes,
                                    secondary_zones, transactions, zone_moves)
from designate_pool.central.cast_queue import CastQueue
from designate_pool.central.domain_changes import Deletion, DomainAndLeftover
from designate_pool.central.domain_creator import DomainCreator
from designate_pool.central.entries import Entries
from designate_pool.central.import_worker import ImportWorker
from designate_pool.central.purger import BATCH, Backlog, FrozenPools, Purger
from designate_pool.central.recordset_changes import RecordSetRequest, RecordSetResult
from designate_pool.central.rules import (plans, pools, recordset_edits, reverts, servers, tsigkeys, zone_names,
                                          zone_shares, zone_transfers)
from designate_pool.central.rules.quotas import Allowance, ProjectQuotas, check_project, parse_limits, parse_project_id
from designate_pool.central.rules.scheduler import Scheduler
from designate_pool.central.signing.signed_zones import SignedZones
from designate_pool.central.validation import fields, names_and_rdata, requests
from designate_pool.concurrency import Runtime
from designate_pool.errors import BadInput, DomainNotFound, InvalidField, WaitsForApproval
from designate_pool.model import (ChangeKind, Context, Domain, FloatingIp, ManagedRecord, Outcome, PageRequest,
                                  PlanState, Pool, PoolServer, RecordChange, RecordSet, RefreshTask, Report, Revert,
                                  ServerReport, ServerStatus, ServiceStatus, StoredPlan, Version, ZoneShare,
                                  ZoneTransferAccept, ZoneTransferIn, ZoneTransferRequest, new_id)
from designate_pool.protocol import rules
from designate_pool.protocol.rules import ServerLimit, Violation
from designate_pool.rpc.change_announcer import ChangeAnnouncer
from designate_pool.rpc.notifications import SILENT, Sink
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.settings import CentralSettings
from designate_pool.storage import queries
from designate_pool.storage.operations import heartbeats
from designate_pool.storage.reporting import purge
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import (domains as domain_store, plans as plan_store, pools as pool_store,
                                          quotas as quota_store, recordsets as recordset_store,
                                          zone_transfers as transfer_store)

LOG = logging.getLogger(__name__)
#: A request with more records is parsed beside the others (``runtime.compute``); these take some milliseconds.
_LARGE = 200


@plans.stores_what_waits('update_domain', 'give_domain', 'delete_domain', 'restore_domain', 'abandon_domain',
                         'move_domain', 'apply_changes', 'create_recordset', 'update_recordset', 'delete_recordset',
                         'create_transfer_request', 'set_floating_ip', 'unset_floating_ip', '_set_resource_in',
                         'abort_release')
class Central:
    """Owns domains and records; see :mod:`designate_pool.central.service`.

    :param runtime: see :mod:`designate_pool.runtime`
    :param settings: its default pool is also that of plans that name none
    :param notifications: where events of domains are sent
    :param announcer: has MiniDNS and pool managers look into the database after changes; None where they do so alone
    :ivar backlog: completes what takes many transactions
    :ivar imports: runs imports, in loops once started; *dnssec* signs zones
    :ivar tlds: the top-level domains; without any, zones may have any name
    """

    def __init__(self, storage: Storage, pool_managers: PoolManagerClient, runtime: Runtime, *,
                 settings: CentralSettings = CentralSettings(), notifications: Sink = SILENT,
                 announcer: ChangeAnnouncer | None = None) -> None:
        self._storage = storage
        self._now = storage.now
        self._run = functools.partial(transactions.run, storage)
        self._runtime = runtime
        self._settings = settings
        self._scheduler = Scheduler(settings.default_pool_name, settings.default_pool_id, settings.scheduler_filters)
        self._allowance = Allowance(ProjectQuotas(**settings.quotas), storage.now, settings.count_deleted_zones)
        self._counts: servers.Counts = {}
        self._casts = CastQueue(pool_managers, runtime)
        self._announcer = announcer
        self._events = events.EventSender(notifications, self._announce)
        self.creator = DomainCreator(storage, self._scheduler, self._allowance, self._events, self._casts,
                                     settings.reserved_zone_names)
        self.imports = ImportWorker(storage, self.creator)
        self.tlds = Entries(zone_names.TLDS, storage, self._events)
        self.blacklists = Entries(zone_names.BLACKLISTS, storage, self._events)
        self.tsigkeys = Entries(tsigkeys.TSIGKEYS, storage, self._events)
        self.dnssec = SignedZones(storage, settings, self._casts, self._events, self._allowance, runtime.compute,
                                  self.abort_release)
        self._journal = self.dnssec.journal
        self._changes: RequestCombiner[RecordSetRequest, RecordSetResult] = RequestCombiner(
            lambda request: self._run(recordset_changes.change_recordset, request, self._now(), self._allowance,
                                      self._journal),
            lambda requests: storage.try_once(recordset_changes.change_recordsets, requests, self._now(),
                                              self._allowance, self._journal))
        self._deletions: RequestCombiner[Deletion, DomainAndLeftover] = RequestCombiner(
            lambda request: self._run(domain_changes.delete_domain, request, self._now(), self._allowance),
            lambda requests: storage.try_once(domain_changes.delete_domains, requests, self._now(), self._allowance))
        self.backlog = Backlog(storage, self._casts, self._events, self._journal)
        self.frozen_pools = FrozenPools(storage, self._casts, self._events, self._journal)
        self._purger = Purger(storage, settings, (self.backlog.resume, self.dnssec.empty_token),
                              soon=(self.frozen_pools.end_over, self.dnssec.run_due))
        self.changes = plans.WaitingChanges(storage, self, settings.approval_lifetime)
        self._background_work = True

    def start(self, background_work: bool = True) -> None:
        """Start the loops; without *background_work* other Centrals run imports and purges, and finish what is left."""
        self._background_work = background_work
        if background_work:
            self._runtime.spawn(self._purger.loop, name='central-housekeeping')
            self.imports.start(self._runtime)

    def stop(self) -> None:
        """Send the waiting casts, within seconds, and stop."""
        self._purger.stop()
        self.imports.stop()
        self._casts.stop()
        if self._announcer is not None:
            self._announcer.stop()

    # Domains

    def create_domain(self, context: Context, domain: Mapping[str, Any],
                      recordsets: Sequence[Mapping[str, Any]] = ()) -> Domain:
        """Create a domain, optionally with recordsets, in one transaction and with one serial."""
        new = requests.new_domain(domain, self._settings.master_networks, self._settings.master_ports)
        if new.masters and recordsets:
            raise InvalidField(field='recordsets', why='a secondary zone has those of its masters')
        parsed = self._parsed(requests.recordsets, recordsets, context)
        return self._announce_refresh(self.creator.create(context, new, parsed))

    def get_domain(self, context: Context, domain_id: str) -> Domain:
        return self._storage.read(queries.domain, context, fields.domain_id(domain_id))

    def find_domains(self, context: Context, page: PageRequest = PageRequest()) -> list[Domain]:
        """Domains that the context sees, with those shared with its project and those being deleted."""
        return self._storage.read(domain_store.find, page, context.scope)

    def update_domain(self, context: Context, domain_id: str, values: Mapping[str, Any]) -> Domain:
        """Change ``email``, ``ttl``, ``description``, ``attributes`` or ``masters``."""
        edit = requests.domain_values(values, self._settings.master_networks, self._settings.master_ports)
        domain, changed = self._run(domain_changes.update_domain, context, domain_id, edit, self._now(), self._journal)
        self._events.zone(events.UPDATE, context.actor, domain, changed)
        return self._cast(context, self._announce_refresh(domain), changed)

    def refresh_domain(self, context: Context, domain_id: str) -> Domain:
        return self._announce_refresh(
            self._run(secondary_zones.request, context, fields.domain_id(domain_id), self._now()))

    def claim_refreshes(self, context: Context, pool_name: str, seconds: float, most: int,
                        but_projects: Sequence[str] = (), but_masters: Sequence[str] = ()) -> list[RefreshTask]:
        return self._run(secondary_zones.claim, self._allowance, fields.text('pool_name', pool_name), new_id(),
                         self._now(), seconds, most, but_projects, but_masters)

    def store_transfer(self, context: Context, domain_id: str, claim: str, master: str,
                       transfer: ZoneTransferIn) -> None:
        try:
            name = self.get_domain(context, domain_id).name
        except DomainNotFound:
            return  # deleted meanwhile
        parsed = self._runtime.compute(secondary_zones.parse, transfer, name)
        stored = self._run(secondary_zones.store, context, domain_id, claim, master, parsed, self._now(),
                           self._allowance, self._journal, self._settings.secondary_interval)
        if stored is not None:
            LOG.info('%s was transferred from %s at serial %d', stored.name, master, stored.serial)
            self._events.zone(events.UPDATE, context.actor, stored)
            self._cast(context, stored)

    def confirm_refresh(self, context: Context, domain_id: str, claim: str, master: str) -> None:
        served = self._run(secondary_zones.confirm, domain_id, claim, master, self._now(),
                           self._settings.secondary_interval)
        if served is not None:
            LOG.info('%s is served again: %s has been reached', served.name, master)
            self._events.zone(events.UPDATE, context.actor, served)
            self._cast(context, served)

    def fail_refresh(self, context: Context, domain_id: str, claim: str, error: str) -> None:
        transition = self._run(secondary_zones.fail, domain_id, claim, fields.text('error', error), self._now(),
                               self._settings.secondary_interval)
        if transition is not None:
            LOG.warning('%s is not served: %s', transition.domain.name, error)
            self._events.transitions(context.actor, [transition])

    def set_lock(self, context: Context, domain_id: str, reason: str | None, is_admin: bool = False) -> Domain:
        """Lock a domain for requests, with a reason; None unlocks it.

        :param is_admin: whether administrators alone may unlock it, of whom the requester is one
        """
        domain = self._run(domain_changes.set_lock, context, domain_id, fields.optional_text('reason', reason, 255),
                           is_admin, self._now())
        self._events.zone(events.UPDATE, context.actor, domain, False)
        return domain

    def set_recordset_lock(self, context: Context, domain_id: str, recordset_id: str, reason: str | None,
                           is_admin: bool = False) -> RecordSet:
        """As :meth:`set_lock`, for one recordset."""
        domain, recordset = self._run(recordset_changes.set_lock, context, domain_id, recordset_id,
                                      fields.optional_text('reason', reason, 255), is_admin, self._now())
        self._events.zone(events.UPDATE, context.actor, domain, False, recordset)
        return dataclasses.replace(recordset, domain=domain)

    def give_domain(self, context: Context, domain_id: str, project_id: str) -> Domain:
        """Give a domain, with its exports, to another project, and withdraw its transfer request."""
        domain = self._run(domain_changes.give_domain, context, domain_id,
                           parse_project_id(project_id), self._now(), self._allowance)
        self._events.zone(events.UPDATE, context.actor, domain, False)
        return domain

    def delete_domain(self, context: Context, domain_id: str, delete_shares: bool = False) -> Domain:
        """Have a domain deleted, a shared one only with *delete_shares*; repeating it is no error."""
        domain, leftover = self._deletions.call(Deletion(
            context, domain_id, new_id(), fields.boolean('delete_shares', delete_shares)), bool(context.approved_by))
        self.backlog.delete_leftover(leftover)
        if not events.changed_by_another_request(context, domain):
            self._events.zone(events.DELETE, context.actor, domain)
        return self._cast(context, domain)

    def find_deleted_domains(self, context: Context, page: PageRequest = PageRequest()) -> list[Domain]:
        """Deleted domains of the context's project that can be restored."""
        return self._storage.read(domain_store.find_deleted, page, context.scope)

    def get_deleted_domain(self, context: Context, domain_id: str) -> Domain:
        """A deleted domain; Refused when there is none that can be restored."""
        return self._storage.read(queries.deleted_domain, context, fields.domain_id(domain_id))

    def find_versions(self, context: Context, domain_id: str, limit: int, before: int | None = None) -> list[Version]:
        """Versions of a domain, also of a deleted one, newest first: those of the time when the requester owned it.

        :param before: the number of the last version of the page before
        """
        return self._storage.read(queries.versions, context, fields.domain_id(domain_id), limit, before)

    def version_at(self, field: str, at: str) -> tuple[int | datetime, datetime]:
        """What :func:`.fields.version_at` makes of *at*, and since when versions are kept: for :mod:`.queries`."""
        now = self._now()
        return fields.version_at(field, at, now), now - timedelta(days=self._settings.history_days)

    def kept_until(self, domain: Domain) -> datetime:
        """Until when a deleted domain can be restored."""
        assert domain.deleted_at is not None
        return domain.deleted_at + timedelta(seconds=self._settings.deleted_retention)

    def restore_domain(self, context: Context, domain_id: str) -> Domain:
        """Bring a deleted domain back, with its id, contents and shares, under a newer serial."""
        return self._replace_domain(context, deleted_domains.restore, domain_id)

    def abort_release(self, context: Context, domain_id: str) -> Domain:
        """End a staged release, so that all servers get what was before it."""
        return self._replace_domain(context, domain_changes.abort_release, domain_id)

    def _replace_domain(self, context: Context, work: Callable[..., DomainAndLeftover], domain_id: str) -> Domain:
        domain, leftover = self._run(work, context, fields.domain_id(domain_id), new_id(), self._now(),
                                     self._allowance, self._settings.reserved_zone_names, self._journal)
        if leftover is not None:
            self._casts.put(context, [leftover])
        begins = domain.reported_serial is None and domain.first_serial in (None, domain.serial)
        self._events.zone(events.DELETE if domain.is_going else events.CREATE if begins else events.UPDATE,
                          context.actor, domain)
        return self._cast(context, self._announce_refresh(domain), not domain.awaits_transfer)

    def purge_domain(self, context: Context, domain_id: str) -> None:
        """Delete the contents and the versions of a deleted domain for good; its serial and generation stay."""
        domain = self._run(deleted_domains.purge, context, fields.domain_id(domain_id))
        LOG.info('%s was purged: it cannot be restored [%s]', domain.name, context.request_id)
        while self._storage.run(purge.purge_contents, [domain.id], BATCH, True) >= BATCH:
            pass

    def abandon_domain(self, context: Context, domain_id: str, delete_shares: bool = False) -> Domain:
        """Delete a domain in the database, so that its servers keep what they have."""
        domain, leftover = self._run(domain_changes.abandon_domain, context, domain_id, self._now(),
                                     new_id(), fields.boolean('delete_shares', delete_shares))
        self.backlog.delete_leftover(leftover)
        LOG.info('%s was abandoned: its servers keep it [%s]', domain.name, context.request_id)
        self._events.zone(events.DELETE, context.actor, domain, False)
        return domain

    def move_domain(self, context: Context, domain_id: str, pool_id: str | None = None) -> Domain:
        """Move a domain to another pool; its servers delete it some time after that pool serves it."""
        target = None if pool_id is None else fields.identifier(fields.text('pool_id', pool_id)) or pool_id
        moved, leftover = self._run(zone_moves.move, context, domain_id, target, self._scheduler, self._allowance,
                                    random.random(), self._now(), new_id(), self._journal)
        self.backlog.delete_leftover(leftover)
        self._events.zone(events.UPDATE, context.actor, moved)
        return self._cast(context, self._announce_refresh(moved), not moved.awaits_transfer)

    def wake_imports(self, context: Context) -> None:
        """Look for waiting imports now, if this Central runs imports."""
        self.imports.wake()

    def announce_import(self, context: Context) -> None:
        """Have a waiting import run at once, here or where the background work is done."""
        if self._background_work or self._announcer is None:
            self.imports.wake()
        else:
            self._announcer.announce_import(context)

    def check_export(self, context: Context, domain_id: str) -> Domain:
        """Check whether a domain may be exported, and return it."""
        return self._storage.read(self._allowance.check_export, context, domain_id)

    def validate_domain(self, context: Context, domain_id: str) -> list[Violation]:
        """What the rules of validation, and the servers of its pool, have against the stored records of a domain.

        :raises OverQuota: when it is larger than its project may export
        """
        domain = self.check_export(context, domain_id)
        sets, limits = self._storage.read(lambda tx: (recordset_store.of_domain(tx, domain.id),
                                                      self._allowance.server_limits(tx, domain.pool_id)))
        contents = recordset_edits.served_contents(domain, sets)
        verify = self.dnssec.verification(domain)
        return self._runtime.compute(lambda: [*rules.of_zone(domain.name, contents, limits), *verify()])

    def server_statuses(self, context: Context, domain_id: str) -> list[ServerStatus]:
        """Server statuses of a domain, for its owner: one for each action on each server."""
        return self._storage.read(queries.server_statuses, context, domain_id)

    # Transfers of domains to other projects, and shares with them

    def create_transfer_request(self, context: Context, domain_id: str,
                                values: Mapping[str, Any]) -> ZoneTransferRequest:
        """Request that another project take over a domain; its key is generated."""
        return self._events.value(events.CREATE, context, self._run(
            zone_transfers.create, context, domain_id, new_id(), zone_transfers.new_key(),
            zone_transfers.parse(values), self._now()))

    def find_transfer_requests(self, context: Context, page: PageRequest = PageRequest()) -> list[ZoneTransferRequest]:
        """Transfer requests that the context's project has made, or that name it as their target."""
        return self._storage.read(transfer_store.find_requests, page, context.scope)

    def get_transfer_request(self, context: Context, transfer_request_id: str) -> ZoneTransferRequest:
        """A transfer request, for its owner and whoever may accept it; NotFound for others."""
        return self._storage.read(zone_transfers.get, context, transfer_request_id)

    def update_transfer_request(self, context: Context, transfer_request_id: str,
                                values: Mapping[str, Any]) -> ZoneTransferRequest:
        """Change the ``description`` of a transfer request."""
        return self._events.value(events.UPDATE, context, self._run(
            zone_transfers.update, context, transfer_request_id, zone_transfers.parse_changes(values), self._now()))

    def delete_transfer_request(self, context: Context, transfer_request_id: str) -> None:
        """Withdraw a transfer request of the context's project."""
        self._events.value(events.DELETE, context, self._run(zone_transfers.delete, context, transfer_request_id))

    def create_transfer_accept(self, context: Context, transfer_request_id: str, key: str) -> ZoneTransferAccept:
        """Accept a transfer request: its domain moves to the context's project."""
        if not context.project_id:
            raise BadInput(why='a transfer is accepted for a project, and the request names none')
        accepted, domain = self._run(zone_transfers.accept, context, new_id(), transfer_request_id,
                                     fields.text('key', key), self._now(), self._allowance)
        self._events.value(events.CREATE, context, accepted)
        self._events.zone(events.UPDATE, context.actor, domain, False)
        return accepted

    def find_transfer_accepts(self, context: Context, page: PageRequest = PageRequest()) -> list[ZoneTransferAccept]:
        """Transfers that the context's project has accepted."""
        return self._storage.read(transfer_store.find_accepts, page, context.scope)

    def get_transfer_accept(self, context: Context, transfer_accept_id: str) -> ZoneTransferAccept:
        """A transfer that the context's project has accepted; NotFound for others."""
        return self._storage.read(zone_transfers.get_accept, context, transfer_accept_id)

    def share_domain(self, context: Context, domain_id: str, values: Mapping[str, Any]) -> ZoneShare:
        """Let another project see a domain, and have recordsets of its own in it."""
        return self._events.value(events.SHARE, context, self._run(
            zone_shares.create, context, domain_id, new_id(), zone_shares.parse(values), self._now()))

    def find_shares(self, context: Context, domain_id: str, page: PageRequest = PageRequest()) -> list[ZoneShare]:
        """The shares of a domain; a project that it is shared with sees its own one only."""
        return self._storage.read(zone_shares.find, context, domain_id, page)

    def get_share(self, context: Context, domain_id: str, share_id: str) -> ZoneShare:
        """A share of a domain, for the domain's owner."""
        return self._storage.read(zone_shares.get, context, domain_id, share_id)

    def unshare_domain(self, context: Context, domain_id: str, share_id: str) -> None:
        """Share a domain with a project no longer."""
        self._events.value(events.UNSHARE, context, self._run(zone_shares.delete, context, domain_id, share_id))

    # Recordsets

    def create_recordset(self, context: Context, domain_id: str, recordset: Mapping[str, Any]) -> RecordSet:
        """Create a recordset, in one transaction with concurrent requests unless it has many records."""
        is_large = self._is_large(requests.sizes([recordset]), context, domain_id)
        new = self._runtime.compute(requests.recordset, recordset) if is_large else requests.recordset(recordset)
        return self._change_recordset(RecordSetRequest(context, domain_id, new_id(), new), events.CREATE, is_large)

    def get_recordset(self, context: Context, domain_id: str, recordset_id: str) -> RecordSet:
        """A recordset of a domain that the context sees; RecordSetNotFound without it."""
        return self._storage.read(queries.recordset, context, domain_id, recordset_id)

    def find_recordsets(self, context: Context, domain_id: str, page: PageRequest = PageRequest()) -> list[RecordSet]:
        """Recordsets of a domain that match; the data of the SOA, which is not stored, never does."""
        return self._storage.read(queries.recordsets, context, domain_id, page)

    def find_all_recordsets(self, context: Context, page: PageRequest = PageRequest()) -> list[RecordSet]:
        """Matching recordsets of all domains that the context sees; of shared domains, its own."""
        return self._storage.read(queries.all_recordsets, context, page)

    def update_recordset(self, context: Context, domain_id: str, recordset_id: str,
                         values: Mapping[str, Any]) -> RecordSet:
        """Change ``records`` (texts, which replace all present ones), ``ttl`` or ``description``."""
        new = requests.recordset_values(values)
        is_large = self._is_large([len(values.get('records', ()))], context, domain_id)
        if is_large:
            rtype = self.get_recordset(context, domain_id, recordset_id).type
            rdatas = self._runtime.compute(names_and_rdata.rdatas, 'records', rtype, new.records)
            new = dataclasses.replace(new, rdatas=rdatas)
        return self._change_recordset(RecordSetRequest(context, domain_id, recordset_id, values=new), events.UPDATE,
                                      is_large)

    def delete_recordset(self, context: Context, domain_id: str, recordset_id: str) -> RecordSet:
        """Delete a recordset; the recordset as it was."""
        return self._change_recordset(RecordSetRequest(context, domain_id, recordset_id), events.DELETE)

    def _change_recordset(self, request: RecordSetRequest, verb: str, is_large: bool = False) -> RecordSet:
        """Change a recordset, together with other requests unless it is a large one, which would hold them up."""
        domain, recordset, changed = self._changes.call(request, is_large or bool(request.context.approved_by))
        self._events.zone(verb, request.context.actor, domain, changed, recordset)
        if changed:
            self._casts.put(request.context, [domain])
        return dataclasses.replace(recordset, domain=domain)

    def apply_changes(self, context: Context, domain_id: str,
                      changes: Sequence[RecordChange | Mapping[str, Any]], serial: int | None = None) -> Domain:
        """Make many changes of recordsets in one transaction and with one serial."""
        if serial is not None:
            fields.serial_number('serial', serial)
        parsed = self._parsed(requests.changes, changes, context, domain_id)
        domain, changed = self._run(recordset_changes.apply_changes, context, domain_id, parsed,
                                    self._now(), self._allowance, self._journal, serial)
        if changed:
            self._events.zone(events.UPDATE, context.actor, domain)
        return self._cast(context, domain, changed)

    def plan_revert(self, context: Context, domain_id: str, to: str, name: str | None = None,
                    rtype: str | None = None, is_checked: bool = True) -> Revert:
        """What leads a domain's contents back to a serial or a time, all or those of this name and type.

        :param to: as for :meth:`version_at`
        :param is_checked: whether to raise the PoolError here that :meth:`revert_domain` would raise
        """
        revert = self._storage.read(reverts.read, context, fields.domain_id(domain_id), *self.version_at('to', to),
                                    name, rtype)
        if is_checked:
            parsed = self._parsed(requests.changes, revert.changes, context, domain_id)
            self._run(recordset_changes.apply_changes, context, domain_id, parsed, self._now(), self._allowance,
                      self._journal, revert.serial, True)
        return revert

    def revert_domain(self, context: Context, domain_id: str, revert: Revert) -> Domain:
        """Lead a domain's contents back, if its serial is still that of *revert*."""
        return self.apply_changes(dataclasses.replace(context, kind=ChangeKind.UNDO), domain_id, revert.changes,
                                  revert.serial)

    # Records for resources of other services

    def find_floating_ips(self, context: Context, floating_ips: Sequence[Mapping[str, str]]) -> list[FloatingIp]:
        """Floating IPs of the context's project, in their order, with their PTR records."""
        parsed = list(map(managed_records.parse_floating_ip, fields.sequence('floating_ips', floating_ips)))
        return self._storage.read(managed_records.show_floating_ips, context, parsed)

    def set_floating_ip(self, context: Context, floating_ip: Mapping[str, str], ptr: Mapping[str, Any]) -> FloatingIp:
        """Give a floating IP a PTR record, in a reverse zone that is created if necessary."""
        parsed = managed_records.parse_floating_ip(floating_ip)
        recordset = managed_records.parse_ptr(parsed, ptr)
        zone = managed_records.reverse_domain(self._storage, self.creator.create_one, context, parsed.address,
                                              self._settings.managed_resource_tenant_id,
                                              self._settings.managed_resource_email)
        done, shown = self._run(managed_records.set_ptr, context, zone.id, parsed, recordset, self._now(),
                                self._journal, self._allowance)
        self._announce_managed(context, done)
        return shown

    def unset_floating_ip(self, context: Context, region: str, floating_ip_id: str) -> None:
        """Delete the PTR record of a floating IP of the context's project; NotFound without one."""
        self._release(context, self._storage.read(managed_records.own_ptr, context, fields.text('region', region),
                                                  fields.text('floating_ip_id', floating_ip_id)))

    def find_managed_records(self, context: Context, criterion: Mapping[str, Any] | None = None) -> list[ManagedRecord]:
        """Managed records that match; *criterion* has a text, or several, for each column."""
        return self._storage.read(managed_records.find, context, criterion or {})

    def delete_managed_records(self, context: Context, ids: Sequence[str]) -> None:
        """Delete managed records by their ids; it is no error if some do not exist."""
        self._release(context, self.find_managed_records(context, {'id': list(fields.sequence('ids', ids))}))

    def set_resource_records(self, context: Context, resource: Mapping[str, str], domain_id: str | None,
                             records: Sequence[Mapping[str, str]], at: datetime | None = None) -> None:
        parsed, _ = managed_records.parse_resource(resource), managed_records.parse_records(records)
        own = None if domain_id is None else fields.domain_id(domain_id)
        former = {row.domain_id for row in self.find_managed_records(context, parsed)}

        def change(domain_id: str) -> None:
            with contextlib.suppress(WaitsForApproval):
                self._set_resource_in(context, domain_id, parsed, records if domain_id == own else (), at)

        managed_records.change_each((*sorted(former - {own}), *(() if own is None else (own,))), change)

    def _set_resource_in(self, context: Context, domain_id: str, resource: Any, records: Any, at: Any) -> None:
        self._announce_managed(context, self._run(
            managed_records.set_resource, context, domain_id, resource, managed_records.parse_records(records),
            datetime.fromisoformat(at) if isinstance(at, str) else at, self._now(), self._journal, self._allowance))

    def _release(self, context: Context, rows: Sequence[ManagedRecord]) -> None:
        managed_records.change_each(dict.fromkeys(row.domain_id for row in rows), lambda domain_id: (
            self._announce_managed(context, self._run(managed_records.release, context, domain_id, [
                row.id for row in rows if row.domain_id == domain_id], self._now(), self._journal))))

    def _announce_managed(self, context: Context, done: managed_records.ManagedChange) -> None:
        for number, (verb, recordset) in enumerate(done.events):
            self._events.zone(verb, context.actor, done.domain, done.changed and not number, recordset)
        self._cast(context, done.domain, done.changed)

    # Plans

    def put_plan(self, context: Context, plan: StoredPlan) -> StoredPlan:
        """Store a plan; repeating it is no error; Conflict if another plan has its id."""
        return self._run(plans.put, context, plans.parse(plan, self._scheduler.default_name), self._now())

    def find_plans(self, context: Context, page: PageRequest = PageRequest()) -> list[StoredPlan]:
        """Plans that match, without their documents, the newest first."""
        return self._storage.read(plan_store.find, page, context.scope)

    def get_plan(self, context: Context, plan_id: str) -> StoredPlan:
        """A plan by its id, or at least the first four digits of it."""
        return self._storage.read(plans.get, context, plan_id)

    def approve_plan(self, context: Context, plan_id: str) -> StoredPlan:
        """Approve a parked plan, so that its pool manager applies it."""
        plan, domain = self._run(plans.approve, context, plan_id, self._now())
        self._cast(context, domain)
        return plan

    def drop_plan(self, context: Context, plan_id: str) -> StoredPlan:
        """Drop a plan; repeating it is no error; WrongPlanState once it was applied."""
        return self._run(plans.drop, context, plan_id, self._now())

    def settle_plan(self, context: Context, plan_id: str, state: PlanState, why: str | None = None) -> StoredPlan:
        """Record how an operator's plan ended: APPLIED, FAILED or DROPPED."""
        return self._run(plans.settle, context, plan_id, state, fields.optional_text('why', why), self._now())

    # Pools, their servers, quotas, services

    def create_pool(self, context: Context, pool: Mapping[str, Any]) -> Pool:
        new = Pool(name='', id=new_id(), project_id=context.project_id or None)
        return self._events.value(events.CREATE, context, self._run(
            pools.create, requests.pool(pool, new), self._now()))

    def find_pools(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                   limit: int | None = None, sort_key: str | None = None, sort_dir: str | None = None) -> list[Pool]:
        return self._storage.read(pool_store.find, PageRequest(criterion or {}, marker, limit, sort_key, sort_dir))

    def get_pool(self, context: Context, pool_id: str) -> Pool:
        return self._storage.read(queries.pool, fields.pool_id(pool_id))

    def pool_limits(self, context: Context, pool_id: str) -> Sequence[ServerLimit]:
        """What the servers of a pool do not take of a zone."""
        return self._storage.read(self._allowance.server_limits, self.get_pool(context, pool_id).id)

    def update_pool(self, context: Context, pool: Mapping[str, Any]) -> Pool:
        pool_id = fields.pool_id(fields.mapping('pool', pool).get('id'))
        updated, renewal = self._run(pools.update, context, pool_id, pool, self._now(), new_id())
        self._events.value(events.UPDATE, context, updated)
        if renewal is not None:
            self.backlog.update_name_servers(renewal)
        return updated

    def renew_pool(self, context: Context, pool_id: str) -> Pool:
        """Give every domain of the pool a new serial, so that every server transfers it again.

        After the database was restored from a backup, the servers may have other contents at newer serials.
        """
        pool, renewal = self._run(pools.renew, context, fields.pool_id(pool_id), self._now(), new_id())
        self.backlog.update_name_servers(renewal)
        return pool

    def delete_pool(self, context: Context, pool_id: str) -> None:
        self._events.value(events.DELETE, context, self._run(pools.delete, fields.pool_id(pool_id), self._now()))

    def find_servers(self, context: Context, pool_name: str) -> list[PoolServer]:
        """The servers of a pool, with the removed ones, in the order of the configuration."""
        return self._storage.read(servers.of_pool, fields.text('pool_name', pool_name))

    def report_servers(self, context: Context, pool_name: str) -> list[ServerReport]:
        """The state of the work on each server of a pool, without its failures."""
        return self._storage.read(servers.reports, self._counts, fields.text('pool_name', pool_name), self._now())

    def report_server(self, context: Context, server_id: str) -> ServerReport:
        """The state of the work on one server, with some of its failures."""
        return self._storage.read(servers.report, self._counts, context, server_id, self._now())

    def rest_server(self, context: Context, server_id: str) -> PoolServer:
        """Put a server into maintenance: nothing is sent to it, and it does not count."""
        return self._announce_server(self._run(servers.rest, server_id, self._now()))

    def resume_server(self, context: Context, server_id: str) -> PoolServer:
        """Take a server out of maintenance, let a joining one count, or a drained one join again."""
        return self._announce_server(self._run(servers.resume, server_id, self._now()))

    def drain_server(self, context: Context, server_id: str, delete_zones: bool = False) -> PoolServer:
        """Remove a server from its pool, even while its section is still in the configuration."""
        return self._announce_server(self._run(servers.drain, server_id,
                                               fields.boolean('delete_zones', delete_zones), self._now()))

    def get_quotas(self, context: Context, project_id: str) -> dict[str, int]:
        """A project's quotas as users see them, -1 for no limit."""
        check_project(context, project_id)
        return self._storage.read(self._allowance.read, project_id).shown()

    def set_quotas(self, context: Context, project_id: str, values: Mapping[str, int]) -> dict[str, int]:
        """Set the quotas in *values*, -1 for no limit; returns all quotas of the project."""
        check_project(context, parse_project_id(project_id))
        self._run(quota_store.save, project_id, parse_limits(values), self._now())
        self._allowance.forget(project_id)
        return self.get_quotas(context, project_id)

    def reset_quotas(self, context: Context, project_id: str) -> None:
        """Give a project the quotas of the configuration."""
        check_project(context, parse_project_id(project_id))
        self._run(quota_store.delete, project_id)
        self._allowance.forget(project_id)

    def find_service_statuses(self, context: Context, page: PageRequest = PageRequest()) -> list[ServiceStatus]:
        """Programs that match; those without a recent heartbeat are DOWN."""
        return self._storage.read(heartbeats.find, page, self._now() - timedelta(seconds=heartbeats.SILENCE))

    def delete_service_status(self, context: Context, service_id: str) -> None:
        """Forget a program; Refused while it runs."""
        self._storage.run(heartbeats.remove, service_id, self._now() - timedelta(seconds=heartbeats.SILENCE))

    # Reports of the pool managers

    def update_status(self, context: Context, domain: Domain, status: Outcome, serial_number: int) -> None:
        if self.update_statuses(context, [requests.report(domain, status, serial_number)]):
            raise DomainNotFound(domain=domain.id)

    def update_statuses(self, context: Context, reports: Sequence[Report]) -> list[str]:
        """Apply *reports*; the ids of domains that do not exist."""
        move_delay = timedelta(seconds=self._settings.pool_move_delay)
        transitions, unknown, retained = self._run(domain_changes.apply_reports, context, reports, self._now(),
                                                   self._journal, move_delay)
        self._events.transitions(context.actor, transitions)
        if retained and not move_delay:
            self.backlog.delete_from_former_pools()
        if unknown:
            LOG.warning('ignored: reports about zones that do not exist: %s', ', '.join(unknown))
        return unknown

    def raise_serial_above(self, context: Context, domain_id: str, serial: int) -> Domain:
        fields.serial_number('serial', serial)
        domain, changed = self._run(domain_changes.raise_serial_above, context, fields.domain_id(domain_id), serial,
                                    self._now(), self._journal)
        if changed:
            LOG.warning('%s got the new serial %d: one of its servers serves %d, which was never issued', domain.name,
                        domain.serial, serial)
            self._events.zone(events.UPDATE, context.actor, domain)
        return self._cast(context, domain, changed)

    def _parsed(self, parse: Callable[[Any], Any], given: Any, context: Context, domain_id: str | None = None) -> Any:
        """*parse* of *given* (recordsets or changes), beside other requests if they have many records."""
        is_large = self._is_large(requests.sizes(given), context, domain_id)
        return self._runtime.compute(parse, given) if is_large else parse(given)

    def _is_large(self, sizes: Sequence[int], context: Context, domain_id: str | None) -> bool:
        """Whether recordsets of these *sizes* have many records.

        :raises OverQuota: when they have, and certainly more than the quotas allow: parsing them might take minutes
        """
        if sum(sizes) <= _LARGE:
            return False
        self._storage.read(self._allowance.check_sizes, context, domain_id, sizes)
        return True

    def _cast(self, context: Context, domain: Domain, changed: bool = True) -> Domain:
        if changed:
            self._casts.put(context, [domain])
        return domain

    def _announce(self, *pool_names: str) -> None:
        """Have every MiniDNS look into the database now, and the pool managers of these pools."""
        if self._announcer is not None:
            self._announcer.put(*pool_names)

    def _announce_refresh(self, domain: Domain) -> Domain:
        if domain.is_secondary:
            self._announce()
        return domain

    def _announce_server(self, server: PoolServer) -> PoolServer:
        if self._announcer is not None:
            self._announce(self._storage.read(queries.pool, server.pool_id).name)
        return server
