"""Which project may use which names.

The invariant: no domain lies above or below another project's, except one created by a user who may nest; no domain of
a tenant is at, above or below the name of a pool's name server, or has a single label; and records at or below a
domain's name are in that domain, not in one above it, except the delegation (NS and DS at the name itself, and glue: A
and AAAA of the names that the NS point to).

To keep it, the creation of a domain checks twice: at its beginning, and again after its writes, under a lock that is
held until the commit and that names above and below one another share.  The creation of a recordset holds the lock of
its domain, which the creation of a domain below takes too.  Domains that were nested otherwise before stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from designate_pool.central.rules.zone_names import WHO_MAY_NEST
from designate_pool.central.validation.requests import WantedRecordSet
from designate_pool.errors import Forbidden, InvalidField, LostRace, NameTaken, Refused
from designate_pool.model import Context, Domain, RecordSet, names
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, zone_ancestry
from designate_pool.storage.zones.zone_ancestry import Neighbourhood


def check_name(tx: Tx, context: Context, name: str, project_id: str, *others: str) -> Neighbourhood:
    """Check that *project_id* may have a domain *name*; the domains above and below it.

    :param others: projects that agree, so that the domains above and below may be theirs too
    :raises InvalidField: for a single label, or the name of a name server
    :raises NameTaken: when a domain above or below belongs to a further project
    """
    if not context.may_nest and not names.above(name):
        raise InvalidField(field='name', why='a name of one label would give this project all names below it; '
                                             f'{WHO_MAY_NEST}', type='invalid_zone_name')
    neighbourhood = zone_ancestry.neighbourhood(tx, name, None if context.may_nest or others else project_id)
    if not context.may_nest:
        if neighbourhood.is_server and not others:  # whoever has it may give it away
            raise InvalidField(field='name', why="it is reserved: the name of a pool's name server, or one above or "
                                                 f'below it; {WHO_MAY_NEST}')
        for neighbours, kind in ((neighbourhood.above, 'illegal_child'), (neighbourhood.below, 'illegal_parent')):
            if any(neighbour.project_id not in (project_id, *others) for neighbour in neighbours):
                raise NameTaken(domain=name, code=403, type=kind)
    return neighbourhood


def recheck_name_and_records(tx: Tx, context: Context, name: str, project_id: str, seen: Neighbourhood,
                             is_approved: bool = False) -> None:
    """Check that :func:`check_name` still finds *seen*, under locks that are held until the commit.

    :param is_approved: whether this needs approval by itself, and so has it or will not be done
    :raises LostRace: when it does not
    :raises Refused: when a domain above has records at or below the new one
    :raises Forbidden: when changes of one need approval, and who asks for this may not approve them
    """
    if seen.above:
        locked = domains.lock_many(tx, [domain.id for domain in seen.above])
        refuse_guarded(context, name, locked.values(), is_approved)
        above = [domain.id for domain in seen.above]
        records = zone_ancestry.recordsets_at_or_below(tx, above, name, zone_ancestry.no_glue(tx, above, name))
        if records:
            is_seen = all(context.sees(domain.project_id) for domain in seen.above)
            shown = ', '.join(map(' '.join, records)) if is_seen else 'records of a zone above it'
            raise Refused('records_in_the_way', f'The zone {name} cannot be created or restored: delete these records '
                                                f'of a zone above it first: {shown}.', 409)
    recheck_name(tx, context, name, seen, project_id)


def refuse_guarded(context: Context, name: str, above: Iterable[Domain], is_approved: bool = False) -> None:
    """Refuse a domain that takes names from one whose changes need approval."""
    guarded = next((domain.name for domain in above if domain.needs_approval), None)
    if guarded is not None and not (context.may_approve or is_approved):
        raise Forbidden(what=f'have the zone {name}', why=f'it takes names from the zone {guarded}, whose changes '
                                                          'need approval: somebody who may approve them has to '
                                                          'create or restore it')


def recheck_name(tx: Tx, context: Context, name: str, seen: Neighbourhood, *projects: str) -> None:
    """As :func:`recheck_name_and_records`, without looking at the records of domains above."""
    zone_ancestry.lock(tx, name)
    if tx.dialect.name != 'sqlite' and check_name(tx, context, name, *projects) != seen:
        raise LostRace(what=f'name {name}')


def refuse_in_subzones(tx: Tx, context: Context, domain: Domain, below: Iterable[zone_ancestry.Neighbour],
                       wanted: Sequence[WantedRecordSet]) -> None:
    """Refuse recordsets that belong to a domain below *domain*.

    :raises InvalidField: when a recordset of *wanted* lies in one of them, and is no glue of its delegation
    """
    check = SubzoneCheck(context, domain, below)
    check.add(wanted)
    check.end(tx)


class SubzoneCheck:
    """Refuses recordsets that belong to a domain below *domain*; glue may come before the NS that point to it."""

    def __init__(self, context: Context, domain: Domain, below: Iterable[zone_ancestry.Neighbour]) -> None:
        self._context = context
        self._domain = domain
        self._owners = {neighbour.name: neighbour.project_id for neighbour in below}
        self._targets: set[str] = set()
        self._cuts = set(self._owners)
        self._addresses: list[tuple[str, InvalidField]] = []

    def add(self, wanted: Sequence[WantedRecordSet]) -> None:
        """Check some recordsets.

        :raises InvalidField: when one lies in a domain below, unless it may be glue
        """
        for recordset in wanted if self._owners else ():
            self.delegate(recordset)
            subzone = next((name for name in subzone_names(self._domain, recordset) if name in self._owners), None)
            if subzone is None:
                continue
            error = InvalidField(field=f'{recordset.prefix}name', why=f'it lies in the zone {subzone} and belongs there'
                                 if self._context.sees(self._owners[subzone]) else
                                 'it lies in another zone, below this one')
            if recordset.type not in zone_ancestry.GLUE:
                raise error
            self._addresses.append((recordset.name, error))

    def delegate(self, recordset: WantedRecordSet) -> None:
        """Take note of a delegation as it will be, for which glue may be."""
        if recordset.type == 'NS' and recordset.name in self._owners and isinstance(recordset.rdatas, tuple):
            self._cuts.discard(recordset.name)
            self._targets.update(rdata.text.lower() for rdata in recordset.rdatas)

    def end(self, tx: Tx | None = None) -> None:
        """Check the addresses, by the name servers of the delegations noted, and of others stored if there is a *tx*.

        :raises InvalidField: when one is no glue
        """
        if tx is not None and self._addresses:
            self._targets |= zone_ancestry.targets_of_delegations(tx, [self._domain.id], list(self._cuts))
        for name, error in self._addresses:
            if name not in self._targets:
                raise error


def refuse_new_in_subzones(tx: Tx, context: Context, domain: Domain, new: Sequence[RecordSet],
                           wanted: Sequence[WantedRecordSet]) -> None:
    """As :func:`refuse_in_subzones`, for those of *wanted* that are new in a locked domain."""
    keys = {(recordset.name, recordset.type) for recordset in new}
    candidates = [recordset for recordset in wanted if (recordset.name, recordset.type) in keys]
    possible = [name for recordset in candidates for name in subzone_names(domain, recordset)]
    if possible:
        check = SubzoneCheck(context, domain, zone_ancestry.live_domains(tx, possible))
        for recordset in wanted:  # also of delegations that are there
            check.delegate(recordset)
        check.add(candidates)
        check.end(tx)


def subzone_names(domain: Domain, wanted: WantedRecordSet) -> list[str]:
    """The names that a domain which contains the recordset, below *domain*, would have."""
    upper = names.at_or_above(wanted.name)
    if domain.name not in upper:
        return []
    first = 1 if wanted.type in zone_ancestry.DELEGATION else 0
    return upper[first:upper.index(domain.name)]
