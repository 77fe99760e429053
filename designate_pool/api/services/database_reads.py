"""Central as the API asks it, where zones, recordsets and pools are read from the database without a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from designate_pool.model import Context, Domain, Pool, RecordSet, ServerStatus
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.client import RpcClient
from designate_pool.storage.reads import queries
from designate_pool.storage.sql.database import Storage


class DatabaseReads(CentralClient):
    """Reads with the queries that Central uses, so what a project sees is the same; all else goes to Central.

    What Central has answered is committed, so these reads find it. Ids must be 32 digits, as those are that the API
    takes from addresses (:class:`designate_pool.api.http.request.PathParameters`); any other id is that of nothing.
    """

    def __init__(self, caller: RpcClient, storage: Storage) -> None:
        super().__init__(caller)
        self._storage = storage

    def get_domain(self, context: Context, domain_id: str) -> Domain:
        return self._storage.read(queries.domain, context, domain_id)

    def find_domains(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                     limit: int | None = None, sort_key: str | None = None,
                     sort_dir: str | None = None) -> list[Domain]:
        return self._storage.read(queries.domains, context, criterion or {}, marker, limit, sort_key, sort_dir)

    def server_statuses(self, context: Context, domain_id: str) -> list[ServerStatus]:
        return self._storage.read(queries.server_statuses, context, domain_id)

    def get_recordset(self, context: Context, domain_id: str, recordset_id: str) -> RecordSet:
        return self._storage.read(queries.recordset, context, domain_id, recordset_id)

    def find_recordsets(self, context: Context, domain_id: str, criterion: Mapping[str, Any] | None = None,
                        marker: str | None = None, limit: int | None = None, sort_key: str | None = None,
                        sort_dir: str | None = None) -> list[RecordSet]:
        return self._storage.read(queries.recordsets, context, domain_id, criterion or {}, marker, limit, sort_key,
                                  sort_dir)

    def find_all_recordsets(self, context: Context, criterion: Mapping[str, Any] | None = None,
                            marker: str | None = None, limit: int | None = None, sort_key: str | None = None,
                            sort_dir: str | None = None) -> list[tuple[Domain, RecordSet]]:
        return self._storage.read(queries.all_recordsets, context, criterion or {}, marker, limit, sort_key, sort_dir)

    def find_pools(self, context: Context, criterion: Mapping[str, Any] | None = None, marker: str | None = None,
                   limit: int | None = None, sort_key: str | None = None,
                   sort_dir: str | None = None) -> list[Pool]:
        return self._storage.read(queries.pools, criterion or {}, marker, limit, sort_key, sort_dir)

    def get_pool(self, context: Context, pool_id: str) -> Pool:
        return self._storage.read(queries.pool, pool_id)
