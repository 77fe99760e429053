"""Ids in requests: an invalid id is answered like an unknown one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from designate_pool.central.validation import fields
from designate_pool.errors import (BlacklistNotFound, DomainNotFound, NotFound, PoolNotFound, RecordSetNotFound,
                                   ServerNotFound, ServiceStatusNotFound, SharedZoneNotFound, TldNotFound,
                                   TsigKeyNotFound, ZoneTransferAcceptNotFound, ZoneTransferRequestNotFound)


def _reader(error: type[NotFound], word: str) -> Callable[[Any], str]:
    """A function that parses an id, or raises *error* with the given value as *word*."""
    def read(given: Any) -> str:
        plain = fields.identifier(given)
        if plain is None:
            raise error(**{word: given})
        return plain

    return read


domain_id = _reader(DomainNotFound, 'domain')
recordset_id = _reader(RecordSetNotFound, 'recordset')
tsigkey_id = _reader(TsigKeyNotFound, 'tsigkey')
blacklist_id = _reader(BlacklistNotFound, 'blacklist')
transfer_request_id = _reader(ZoneTransferRequestNotFound, 'transfer_request')
transfer_accept_id = _reader(ZoneTransferAcceptNotFound, 'transfer_accept')
share_id = _reader(SharedZoneNotFound, 'share')
tld_id = _reader(TldNotFound, 'tld')
pool_id = _reader(PoolNotFound, 'pool')
server_id = _reader(ServerNotFound, 'server')
service_id = _reader(ServiceStatusNotFound, 'service')
