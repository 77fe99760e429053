"""The zones that servers are given: as small as zones can be, the same from the static primary and from MiniDNS."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import dns.rdata
import sqlalchemy as sa

from designate_pool.model import Action, Outcome, Status, Task, utcnow
from designate_pool.model.names import from_the_root
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import domains, pool_manager_status, pools, records, recordsets

SERIAL = 7
#: A zone file for any of them, whatever its name.
TEXT = f'''
$TTL 3600
@   IN SOA ns1.example.org. hostmaster.example.com. {SERIAL} 3600 600 86400 3600
    IN NS  ns1.example.org.
www IN A   192.0.2.1
'''
_RECORDS = (('', 'NS', 'ns1.example.org.'), ('www.', 'A', '192.0.2.1'))
#: Rows in one transaction.
_PAGE = 2000


def identifier(name: str) -> str:
    """The id of what is called *name*, always the same."""
    return uuid.uuid5(uuid.NAMESPACE_DNS, name).hex


def insert(storage: Storage, names: Sequence[str], *server_ids: str) -> None:
    """Put domains into the pool ``default`` that are ACTIVE at their serial.

    :param server_ids: servers that are known to serve them
    """
    for start in range(0, len(names), _PAGE):
        storage.run(_insert_page, names[start:start + _PAGE], server_ids)


def _insert_page(tx: Tx, names: Sequence[str], server_ids: Sequence[str]) -> None:
    pool_id = tx.execute(sa.select(pools.c.id).where(pools.c.name == 'default')).scalar_one()
    now = {'created_at': utcnow(), 'updated_at': utcnow()}
    tx.execute(domains.insert(), [
        {**now, 'id': identifier(name), 'pool_id': pool_id, 'name': name,
         'reversed_name': from_the_root(name), 'email': 'hostmaster@example.com',
         'ttl': 3600, 'refresh': 3600, 'retry': 600, 'expire': 86400, 'minimum': 3600, 'serial': SERIAL,
         'reported_serial': SERIAL, 'action': Action.NONE, 'status': Status.ACTIVE} for name in names])
    wires = {rtype: dns.rdata.from_text('IN', rtype, data).to_wire() for _, rtype, data in _RECORDS}
    sets, rows = [], []
    for name in names:
        for owner, rtype, data in _RECORDS:
            set_id = identifier(f'{rtype} {name}')
            sets.append({**now, 'id': set_id, 'domain_id': identifier(name), 'name': owner + name, 'type': rtype})
            rows.append({**now, 'id': identifier(f'record {set_id}'), 'domain_id': identifier(name),
                         'recordset_id': set_id, 'data': data, 'wire': wires[rtype], 'serial_number': SERIAL,
                         'task': Task.NONE, 'status': Status.ACTIVE})
    tx.execute(recordsets.insert(), sets)
    tx.execute(records.insert(), rows)
    if server_ids:
        tx.execute(pool_manager_status.insert(), [row for server_id in server_ids for name in names
                                                  for row in _served(name, server_id)])


def _served(name: str, server_id: str) -> Iterator[dict[str, Any]]:
    """The rows of a server that has the domain and serves it."""
    for action in (Action.CREATE, Action.UPDATE):
        yield {'id': identifier(f'{server_id} {action} {name}'), 'created_at': utcnow(), 'updated_at': utcnow(),
               'server_id': server_id, 'domain_id': identifier(name), 'action': action, 'status': Outcome.SUCCESS,
               'serial_number': SERIAL, 'expected_serial': SERIAL}
