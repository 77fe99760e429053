"""What the stand-in for Central keeps beside zones: pools, TSIG keys, quotas, services."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from designate_pool.errors import InvalidField, NotFound, PoolNotFound, Refused, ServiceStatusNotFound
from designate_pool.model import (Context, Domain, KeyScope, PageRequest, Pool, RecordSet, ServiceStatus, StoredTsigKey,
                                  new_id, utcnow)

POOL_ID = '794ccc2cd75144feb57f8894c9f5c842'
BEGAN = datetime(2026, 5, 1, 11, 48, tzinfo=timezone.utc)
KEPT_POOL = Pool(name='default', id=POOL_ID, name_servers=('ns1.example.org.', 'ns2.example.org.'),
                 created_at=BEGAN, updated_at=BEGAN, threshold_percentage=66, published_at=BEGAN)
SERVICES = tuple(ServiceStatus(id=f'{number:032x}', service_name=name, hostname='one.example.com', status=status,
                               heartbeated_at=BEGAN, created_at=BEGAN, updated_at=BEGAN, stats={'version': '1.0'})
                 for number, (name, status) in enumerate((('api', 'UP'), ('central', 'UP'), ('minidns', 'DOWN')), 1))
QUOTAS = {'zones': 1000, 'zone_recordsets': -1, 'zone_records': -1, 'recordset_records': 1000, 'api_export_size': -1}


class Kept:
    """The part of the stand-in for :class:`designate_pool.central.service.Central` that is about these.

    :ivar secrets: of TSIG keys, by their ids
    :ivar quotas: what was set, by project
    """

    domains: dict[str, Domain]
    recordsets: dict[str, RecordSet]

    def __init__(self) -> None:
        self.tsigkeys: dict[str, StoredTsigKey] = {}
        self.secrets: dict[str, str] = {}
        self.quotas: dict[str, dict[str, int]] = {}
        self.services: list[ServiceStatus] = list(SERVICES)

    def _enter(self, context: Context) -> None:
        raise NotImplementedError

    def find_pools(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                   limit: int | None = None, sort_key: str | None = None,
                   sort_dir: str | None = None) -> list[Pool]:
        self._enter(context)
        return select([KEPT_POOL], PageRequest(criterion or {}, marker, limit, sort_key, sort_dir))

    def get_pool(self, context: Context, pool_id: str) -> Pool:
        self._enter(context)
        if pool_id != POOL_ID:
            raise PoolNotFound(pool=pool_id)
        return KEPT_POOL

    def find_all_recordsets(self, context: Context,
                            page: PageRequest = PageRequest()) -> list[tuple[Domain, RecordSet]]:
        self._enter(context)
        return [(self.domains[each.domain_id], each)
                for each in select(list(self.recordsets.values()), page)]

    def create_tsigkey(self, context: Context, tsigkey: Mapping[str, Any]) -> StoredTsigKey:
        self._enter(context)
        values = dict(tsigkey)
        if any(each.name == values['name'] for each in self.tsigkeys.values()):
            raise Refused('duplicate_tsigkey', f'A TSIG key named {values["name"]} exists already.', 409)
        secret, scope = values.pop('secret'), KeyScope(values.pop('scope'))
        now = utcnow()
        made = StoredTsigKey(id=new_id(), scope=scope, created_at=now, updated_at=now, **values)
        self.tsigkeys[made.id] = made
        self.secrets[made.id] = secret
        return made

    def find_tsigkeys(self, context: Context, page: PageRequest = PageRequest()) -> list[StoredTsigKey]:
        self._enter(context)
        return select(list(self.tsigkeys.values()), page)

    def get_tsigkey(self, context: Context, tsigkey_id: str) -> StoredTsigKey:
        self._enter(context)
        if tsigkey_id not in self.tsigkeys:
            raise NotFound(what=f'TSIG key {tsigkey_id}', type='tsigkey_not_found')
        return self.tsigkeys[tsigkey_id]

    def update_tsigkey(self, context: Context, tsigkey_id: str, values: Mapping[str, Any]) -> StoredTsigKey:
        found = self.get_tsigkey(context, tsigkey_id)
        changed = dict(values)
        self.secrets[found.id] = changed.pop('secret', self.secrets[found.id])
        if 'scope' in changed:
            changed['scope'] = KeyScope(changed['scope'])
        self.tsigkeys[found.id] = dataclasses.replace(found, version=found.version + 1, updated_at=utcnow(), **changed)
        return self.tsigkeys[found.id]

    def delete_tsigkey(self, context: Context, tsigkey_id: str) -> None:
        del self.tsigkeys[self.get_tsigkey(context, tsigkey_id).id]

    def get_quotas(self, context: Context, project_id: str) -> dict[str, int]:
        self._enter(context)
        return {**QUOTAS, **self.quotas.get(project_id, {})}

    def set_quotas(self, context: Context, project_id: str, values: Mapping[str, int]) -> dict[str, int]:
        self._enter(context)
        self.quotas.setdefault(project_id, {}).update(values)
        return self.get_quotas(context, project_id)

    def reset_quotas(self, context: Context, project_id: str) -> None:
        self._enter(context)
        self.quotas.pop(project_id, None)

    def find_service_statuses(self, context: Context, page: PageRequest = PageRequest()) -> list[ServiceStatus]:
        self._enter(context)
        return select(self.services, page)

    def get_service_status(self, context: Context, service_id: str) -> ServiceStatus:
        self._enter(context)
        for each in self.services:
            if each.id == service_id:
                return each
        raise ServiceStatusNotFound(service=service_id)


def select(items: list[Any], page: PageRequest) -> list[Any]:
    found = [item for item in items if all(fnmatch.fnmatchcase(str(getattr(item, name)), str(value))
                                           for name, value in page.criterion.items())]
    if page.sort_key is not None:
        found.sort(key=lambda item: str(getattr(item, page.sort_key or '')), reverse=page.sort_dir == 'desc')
    ids = [item.id for item in found]
    if page.marker is not None and page.marker not in ids:
        raise InvalidField(field='marker', why='there is no such thing', type='invalid_marker')
    start = 0 if page.marker is None else ids.index(page.marker) + 1
    return found[start:None if page.limit is None else start + page.limit]
