"""Repeats through Designate's API what was changed here since the zones of pools were taken over.

What has to be done is found each time by comparison of both databases, so that a run that was ended at any moment is
continued by the next one.  Zones are told apart by their names: Designate gives its own ids to what it did not have.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import json
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from designate_pool.central.validation import masters
from designate_pool.cmd.takeover import zone_copy, zone_rows
from designate_pool.cmd.takeover.designate_api import CallRefused, DesignateApi
from designate_pool.errors import InvalidField
from designate_pool.model import Endpoint
from designate_pool.protocol.names_and_rdata import normal_name
from designate_pool.serial import newer
from designate_pool.storage.designate import back, source, target
from designate_pool.storage.designate.target import Copied
from designate_pool.storage.sql.database import Storage

#: Fields of a zone that Designate's API can change.
_FIELDS = ('email', 'ttl', 'description')
#: The attribute that says into which pool Designate puts a new zone, and stays with it.
_POOL = 'pool_id'
#: Where masters may be is no question when they are compared.
_ANYWHERE = tuple(map(ipaddress.ip_network, ('0.0.0.0/0', '::/0')))
_MOVED = 'it is in another pool here than in Designate; move it there'


@dataclasses.dataclass(frozen=True, slots=True)
class WantedSet:
    """A recordset as it is here, or as Designate has it.

    :ivar wires: of its records
    :ivar records: their texts, in the same order as the wires, which are sorted
    """

    id: str
    ttl: int | None
    description: str | None
    managed: bool
    project_id: str
    wires: tuple[bytes, ...]
    records: tuple[str, ...]

    def is_as(self, other: WantedSet) -> bool:
        return (self.ttl, self.description or None, self.wires) == (other.ttl, other.description or None, other.wires)


@dataclasses.dataclass(slots=True)
class ReplayReport:
    """
    :ivar calls: what was accepted, or would be sent
    :ivar refused: by zone, why it is not taken back
    """

    calls: list[str] = dataclasses.field(default_factory=list)
    refused: dict[str, str] = dataclasses.field(default_factory=dict)


class Replay:
    """
    :param api: None to find only what would be sent
    """

    def __init__(self, designate: Storage, storage: Storage, pool_ids: Sequence[str], api: DesignateApi | None,
                 progress: Callable[[ReplayReport], None] = lambda report: None) -> None:
        self._designate = designate
        self._storage = storage
        self._pool_ids = pool_ids
        self._api = api
        self._progress = progress
        self._report = ReplayReport()
        self._project = ''

    def run(self) -> ReplayReport:
        """Make one pass."""
        self._report = ReplayReport()
        ours = {each.name: each for pool_id in self._pool_ids for each in _all_of(self._storage, pool_id)}
        theirs = {normal_name(each.name): each for page in zone_copy.pages(self._designate, self._pool_ids)
                  for each in page}
        steps: list[tuple[str, Callable[..., None], tuple[Any, ...]]] = []
        # A zone cannot be deleted before those below it, nor created in the name of another project after them.
        steps += [(name, self._delete, (name, theirs[name]))
                  for name in sorted(theirs.keys() - ours.keys(), key=len)[::-1] if theirs[name].action != 'DELETE']
        steps += [(name, self._create, (ours[name],)) for name in sorted(ours.keys() - theirs.keys(), key=len)]
        steps += [(name, self._update, (ours[name], theirs[name])) for name in sorted(ours.keys() & theirs.keys())
                  if ours[name].is_ours or ours[name].serial != theirs[name].serial
                  or _is_of_another(ours[name], theirs[name])]
        for name, step, arguments in steps:
            try:
                step(*arguments)
            except (CallRefused, zone_copy.ZoneRefused) as refused:
                self._report.refused[name] = str(refused)
            self._progress(self._report)
        return self._report

    def _delete(self, name: str, theirs: Any) -> None:
        if self._storage.read(target.of_names, [name]):
            raise zone_copy.ZoneRefused(theirs, _MOVED)
        self._project = theirs.tenant_id or ''
        path = f'zones/{_dashed(theirs.id)}'
        if self._storage.read(back.is_abandoned, name):  # else Designate would delete it from its servers
            self._call('POST', f'{path}/tasks/abandon')
        else:
            self._call('DELETE', path)

    def _create(self, ours: Copied) -> None:
        row, = self._storage.read(back.domain_rows, [ours.id])
        self._project = row.project_id
        attributes = {**json.loads(row.attributes or '{}'), _POOL: _dashed(row.pool_id)}
        if row.masters:
            self._call('POST', 'zones', {'name': row.name, 'type': source.SECONDARY, 'masters': _master_texts(row),
                                         'description': row.description, 'attributes': attributes})
            return
        made = self._call('POST', 'zones', {
            'name': row.name, **{name: getattr(row, name) for name in _FIELDS if getattr(row, name) is not None},
            'attributes': attributes})
        self._write_sets(made and made['id'], self._our_sets(ours), {})

    def _update(self, ours: Copied, theirs: Any) -> None:
        row, = self._storage.read(back.domain_rows, [ours.id])
        if theirs.action == 'DELETE':
            raise zone_copy.ZoneRefused(theirs, 'Designate is still deleting a zone of this name')
        if _is_of_another(row, theirs):
            raise zone_copy.ZoneRefused(theirs, f'it belongs to the project {row.project_id} here, and to '
                                                f'{theirs.tenant_id} in Designate; transfer it there')
        if row.pool_id != theirs.pool_id:
            raise zone_copy.ZoneRefused(theirs, _MOVED)
        self._project = theirs.tenant_id or ''
        path = f'zones/{_dashed(theirs.id)}'
        is_secondary = zone_rows.is_secondary(theirs)
        if bool(row.masters) != is_secondary:
            raise zone_copy.ZoneRefused(theirs, f'it is a {theirs.type.lower()} zone in Designate alone')
        changes = {name: getattr(row, name) for name in (('description',) if is_secondary else _FIELDS)
                   if (getattr(row, name) or None) != (getattr(theirs, name) or None)}
        details = self._designate.read(source.details, [theirs.id])[theirs.id]
        if _chosen(json.loads(row.attributes or '{}')) != _chosen(details.attributes):
            raise zone_copy.ZoneRefused(theirs, 'its attributes differ; Designate does not change those of a zone')
        if is_secondary and _plain_masters(row.masters.split(',')) != _plain_masters(list(map(str, details.masters))):
            changes['masters'] = _master_texts(row)
        if changes:
            self._call('PATCH', path, changes)
        if is_secondary:
            return  # the rest comes from its masters
        self._write_sets(_dashed(theirs.id), self._our_sets(ours), self._their_sets(theirs))
        if not changes and not theirs.increment_serial and newer(row.serial, theirs.serial) and not any(
                path in call for call in self._report.calls[-1:]):
            # The contents are the same again; the serial has to go on.
            self._call('PATCH', path, {'ttl': row.ttl})

    def request_transfers(self, names: Collection[str]) -> None:
        """Have Designate transfer those of these zones that are secondary ones."""
        assert self._api is not None
        for page in zone_copy.pages(self._designate, self._pool_ids):
            for each in page:
                if zone_rows.is_secondary(each) and normal_name(each.name) in names:
                    with contextlib.suppress(CallRefused):  # its masters do not answer, for example
                        self._api.call('POST', f'zones/{_dashed(each.id)}/tasks/xfr', None, each.tenant_id or '')

    def _write_sets(self, zone_id: str | None, ours: Mapping[tuple[str, str], WantedSet],
                    theirs: Mapping[tuple[str, str], WantedSet]) -> None:
        path = f'zones/{zone_id or "NEW"}/recordsets'
        for key in sorted(theirs.keys() | ours.keys()):
            wanted, there = ours.get(key), theirs.get(key)
            if wanted is not None and there is not None and wanted.is_as(there):
                continue
            if (wanted and wanted.managed) or (there and there.managed):
                raise CallRefused(f'the {key[1]} recordset {key[0]} is managed, and differs')
            if wanted is None and there is not None:
                self._call('DELETE', f'{path}/{_dashed(there.id)}')
        # After all deletions, since a CNAME may stand in the place of others.
        for (name, rtype), wanted in sorted(ours.items()):
            there, body = theirs.get((name, rtype)), {'ttl': wanted.ttl, 'records': list(wanted.records),
                                                      'description': wanted.description}
            if there is None:
                self._call('POST', path, {'name': name, 'type': rtype, **body}, wanted.project_id)
            elif not wanted.is_as(there):
                self._call('PUT', f'{path}/{_dashed(there.id)}', body, wanted.project_id)

    def _our_sets(self, ours: Copied) -> dict[tuple[str, str], WantedSet]:
        sets, records = self._storage.read(back.contents, ours.id)
        found: dict[str, list[tuple[bytes, str]]] = {row.id: [] for row in sets}
        for row in records:
            found[row.recordset_id].append((row.wire, row.data))
        return {(row.name, row.type): _wanted(row, row.ttl, row.managed, row.project_id, found[row.id])
                for row in sets if not _is_generated(row.name, row.type, ours.name)}

    def _their_sets(self, theirs: Any) -> dict[tuple[str, str], WantedSet]:
        name = normal_name(theirs.name)
        sets: dict[str, Any] = {}
        managed: set[str] = set()
        found: dict[str, list[tuple[bytes, str]]] = {}
        for kind, rows in self._designate.stream(source.contents, [theirs.id]):
            if kind == 'managed':
                managed.update(rows)
            elif kind == 'sets':
                sets.update((row.id, row) for row in rows
                            if not _is_generated(normal_name(row.name), row.type, name))
            elif kind == 'records':
                for row in rows:
                    if row.recordset_id in sets:
                        found.setdefault(row.recordset_id, []).append(self._their_record(theirs, row, sets))
        # One whose records are all being deleted is not there any more.
        return {(normal_name(sets[key].name), sets[key].type):
                _wanted(sets[key], sets[key].ttl, key in managed, sets[key].tenant_id, each)
                for key, each in found.items()}

    def _their_record(self, theirs: Any, row: Any, sets: Mapping[str, Any]) -> tuple[bytes, str]:
        owner = sets[row.recordset_id]
        try:
            made = zone_rows.record(row, owner.name, owner.type)
        except InvalidField as error:
            raise zone_copy.ZoneRefused(theirs, f'{error.kwargs["field"]}: {error.kwargs["why"]}') from error
        return made['wire'], made['data']

    def _call(self, method: str, path: str, body: Any = None, project_id: str | None = None) -> Any:
        said = None if self._api is None else self._api.call(method, path, body, project_id or self._project)
        self._report.calls.append(f'{method} /v2/{path}' + (f' {json.dumps(body)}' if body is not None else ''))
        return said


def _all_of(storage: Storage, pool_id: str) -> Iterator[Copied]:
    after = ''
    while page := storage.read(target.page, pool_id, after, zone_copy.PAGE):
        yield from page
        after = page[-1].id


def _wanted(row: Any, ttl: int | None, managed: bool, project_id: str | None,
            found: list[tuple[bytes, str]]) -> WantedSet:
    pairs = sorted(dict(found).items())
    return WantedSet(row.id, ttl, row.description, managed, project_id or '', tuple(wire for wire, _ in pairs),
                     tuple(text for _, text in pairs))


def _plain_masters(found: list[str]) -> set[str]:
    """Masters as they are kept here; none when some could not be."""
    try:
        return set(masters.parse('masters', found, _ANYWHERE).split(','))
    except InvalidField:
        return set()


def _master_texts(ours: Any) -> list[str]:
    """The masters of a domain as Designate reads them: what follows the first colon is a port, or else there is none.

    :raises ZoneRefused: when it cannot have one of them
    """
    found = []
    for each in map(Endpoint.parse, sorted(ours.masters.split(','))):
        if ':' not in each.host:
            found.append(str(each))
        elif each.port == 53:
            found.append(each.host)
        else:
            raise zone_copy.ZoneRefused(ours, f'its master {each} has an IPv6 address and another port than 53, which '
                                              "Designate's API does not take")
    return found


def _is_of_another(ours: Any, theirs: Any) -> bool:
    """Whether a zone has another owner here; one that was made without authentication belongs to whoever repeats it."""
    return bool(ours.project_id) and ours.project_id != theirs.tenant_id


def _chosen(attributes: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in attributes.items() if key != _POOL}


def _is_generated(name: str, rtype: str, zone: str) -> bool:
    return rtype == zone_rows.SOA or (rtype == 'NS' and name == zone)


def _dashed(identifier: str) -> str:
    return str(uuid.UUID(identifier))
