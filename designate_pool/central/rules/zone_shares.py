"""The sharing of domains with other projects; who sees a domain is in :mod:`designate_pool.storage.queries`.

The owner of a domain may do everything with it.  A project that it is shared with sees the domain and its recordsets,
creates recordsets, and changes and deletes those that it created; what names of others answer it does not change
(:func:`refuse_at_others`).

The invariant: the project of a recordset, where it is not the domain's, is one that the domain is shared with.  So a
share with a project that has recordsets is not deleted, and a domain that goes to another project takes all recordsets
with it.  Shares and recordsets are written under the lock of their domain.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from designate_pool.central.rules.quotas import parse_project_id
from designate_pool.central.validation import fields
from designate_pool.errors import BadInput, DomainBeingDeleted, DomainNotFound, Forbidden, NotFound, Refused
from designate_pool.model import Context, Domain, PageRequest, RecordSet, ZoneShare, names
from designate_pool.storage.queries import is_guest, owned, seen
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, zone_ancestry, zone_shares as store

#: Up to the last label with an underscore (RFC 8552) or asterisk: it speaks for the name below which it is.
_PREFIX = re.compile(r'^(?:(?:\\.|[^\\.])+\.)*(?:\*|_(?:\\.|[^\\.])*)\.')


def project_of_new(context: Context, domain: Domain) -> str | None:
    """The project of a recordset that the context creates in a domain; None for the domain's."""
    return context.project_id if is_guest(context, domain) else None


def refuse_foreign(guest: Context, changed: Iterable[RecordSet]) -> None:
    """Refuse a guest's change of recordsets that its project did not create."""
    for recordset in changed:
        if recordset.project_id != guest.project_id:
            raise Forbidden(what=f'change {recordset.name} {recordset.type}', why='another project created it')


def refuse_at_others(tx: Tx, context: Context, domain: Domain, new: Sequence[RecordSet]) -> None:
    """Refuse a guest's new recordsets that change what others' names answer, or speak for them.

    Those are recordsets at a name where others have records, or that a wildcard or delegation of theirs covers; NS, DS
    and DNAME above such a name; and names that have a label with an underscore (RFC 8552), or wildcards, below it.  The
    apex has records of the owner.

    :param new: in a locked domain
    """
    if not new or not is_guest(context, domain):
        return
    zones_above = len(names.above(domain.name))
    upper = {recordset.name: (above := names.above(recordset.name))[:len(above) - zones_above] for recordset in new}
    prefixless = {name: _PREFIX.sub('', name, 1) for name in upper}
    near = {name for every in upper.items() for name in (every[0], prefixless[every[0]], *every[1])}
    near |= {f'*.{above}' for every in upper.values() for above in every}
    present, types = set[str](), dict[str, set[str]]()
    for name, rtype, is_others in store.at(tx, domain.id, context.project_id, near):
        present.add(name)
        if is_others:
            types.setdefault(name, set()).add(rtype)
    for recordset in new:
        name = recordset.name
        # The wildcards from the closest encloser on (RFC 4592 section 3.3.1): what is above does not cover the name.
        enclosed = [name, *upper[name]]
        depth = next((number for number, at in enumerate(enclosed) if at in present), len(enclosed))
        others = [at for at in (name, prefixless[name], *(f'*.{above}' for above in upper[name][:depth]))
                  if at in types]
        others += [above for above in upper[name]
                   if types.get(above, set()) & ({'DNAME'} if above == domain.name else {'DNAME', 'NS'})]
        if not others and recordset.type in ('NS', 'DS', 'DNAME'):
            below = zone_ancestry.recordsets_at_or_below(tx, [domain.id], name, store.of_others(context.project_id))
            others = [at for at, _ in below]
        if others:
            raise Forbidden(what=f'create {name} {recordset.type}', why=f'another project has records at {others[0]}')


def parse(given: Any) -> str:
    """The project that a domain is to be shared with, checked."""
    fields.refuse_unknown(fields.mapping('shared_zone', given), '', ('target_project_id',))
    return parse_project_id(given.get('target_project_id'), 'target_project_id')


def create(tx: Tx, context: Context, domain_id: str, share_id: str, target: str, now: datetime) -> ZoneShare:
    """Share a domain with a project.

    :raises BadInput: when *target* owns the domain
    :raises Refused: when it is shared with *target* already
    """
    domain = owned(tx, context, domain_id, domains.lock(tx, domain_id))
    present = store.of_target(tx, domain.id, target)
    if present is not None and present.id == share_id:
        return present  # the commit came through, the answer to it did not
    if domain.is_going:
        raise DomainBeingDeleted(domain=domain.name)
    if target == domain.project_id:
        raise BadInput(why=f'{domain.name} belongs to this project, so it is not shared with it')
    if present is not None:
        raise store.duplicate(domain.name, target)
    share = ZoneShare(share_id, domain.id, context.project_id or domain.project_id, target, now, now)
    store.insert(tx, share, domain.name)
    _note(tx, domain)
    return share


def find(tx: Tx, context: Context, domain_id: str, page: PageRequest) -> list[ZoneShare]:
    """The shares of a domain; for a project that it is shared with, its own one."""
    domain = seen(tx, context, domain_id, domains.get(tx, domain_id))
    if not domain.shared:
        return []
    only = context.project_id if is_guest(context, domain) else None
    return store.find(tx, domain.id, page, only)


def get(tx: Tx, context: Context, domain_id: str, share_id: str) -> ZoneShare:
    """One share, for the owner of the domain."""
    return _get(tx, context, domain_id, share_id, domains.get(tx, domain_id))


def delete(tx: Tx, context: Context, domain_id: str, share_id: str) -> ZoneShare:
    """The share that was deleted.

    :raises Refused: when the project has zones below, or recordsets in the domain
    """
    domain = domains.lock(tx, domain_id)
    share = _get(tx, context, domain_id, share_id, domain)
    assert domain is not None
    target = share.target_project_id
    if any(neighbour.project_id == target for neighbour in zone_ancestry.neighbourhood(tx, domain.name, target).below):
        raise Refused('shared_zone_has_sub_zone', f'The project {target} has zones below {domain.name}; it has to '
                                                  'delete them before the share ends.')
    if store.has_recordsets(tx, domain.id, target):
        raise Refused('shared_zone_has_recordsets', f'The project {target} has recordsets in {domain.name}; they have '
                                                    'to be deleted before the share ends.')
    store.delete(tx, domain.id, target)
    _note(tx, domain)
    return share


def suspend(domain: Domain, agreed: bool) -> Domain:
    """A domain that is to be deleted, not shared any more; its shares are kept for its restoration.

    :param agreed: whether the request says so
    :raises Refused: when there are shares and it does not
    """
    if not domain.shared:
        return domain
    if not agreed:
        raise Refused('zone_is_shared', f'The zone {domain.name} is shared with other projects: delete its shares '
                                        'first, or with X-Designate-Delete-Shares.')
    return dataclasses.replace(domain, shared=False)


def hand_over(tx: Tx, domain: Domain, project_id: str) -> Domain:
    """Give a locked domain's recordsets to *project_id*, its new owner; the shares with others stay."""
    if not domain.shared:
        return domain
    store.leave_recordsets(tx, domain.id)
    store.delete(tx, domain.id, project_id)
    return _note(tx, domain)


def _note(tx: Tx, domain: Domain) -> Domain:
    """Write to a locked domain whether it is shared."""
    shared = store.has_any(tx, domain.id)
    if shared is domain.shared:
        return domain
    changed = dataclasses.replace(domain, shared=shared)
    domains.save(tx, changed)
    return changed


def _get(tx: Tx, context: Context, domain_id: str, share_id: str, found: Domain | None) -> ZoneShare:
    try:
        domain = seen(tx, context, domain_id, found)
    except DomainNotFound:
        raise _missing(share_id) from None
    share = store.get(tx, domain.id, share_id) if domain.shared else None
    if share is None or is_guest(context, domain) and share.target_project_id != context.project_id:
        raise _missing(share_id)
    owned(tx, context, domain_id, domain)
    return share


def _missing(share_id: str) -> NotFound:
    return NotFound(what=f'share {share_id} of this zone', type='shared_zone_not_found')
