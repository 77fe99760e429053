"""TSIG keys given out through the API: their holders may transfer zones without being a server of the pool.

The keys are read only when the number of changes is another one, which is read when a key has changed, and every few
seconds.  So a query costs no statement, and a new or deleted key takes effect at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import dns.name

from designate_pool.minidns.access.acl import TsigGrant
from designate_pool.protocol import tsig
from designate_pool.storage.serving.watched import Watched
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import tsigkeys

LOG = logging.getLogger(__name__)


class TsigGrants:
    """Keeps the current grants, by the name of the key, in :attr:`grants`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._change_count: int | None = None
        self.grants: Mapping[dns.name.Name, TsigGrant] = {}

    def follow(self, found: Watched) -> None:
        """Read the keys if any of them has changed."""
        if found.key_changes != self._change_count:
            self.grants = grants_by_key(self._storage.read(tsigkeys.grants))
            self._change_count = found.key_changes  # of before the keys were read, so that none is missed


def grants_by_key(grants: Iterable[tsigkeys.Grant]) -> dict[dns.name.Name, TsigGrant]:
    """*grants* by the name of the key; of two with one name the older."""
    result: dict[dns.name.Name, TsigGrant] = {}
    for grant in grants:
        try:
            key = tsig.key_from(grant.key)
        except ValueError:  # its words could show the secret
            LOG.error('the TSIG key %s is not used: its secret is not Base64, or its name or algorithm is not valid',
                      grant.key.name)
            continue
        result.setdefault(key.name, TsigGrant(key, grant.pool_name, grant.domain_id))
    return result
