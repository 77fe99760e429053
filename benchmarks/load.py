"""What the clients do: requests to the Central of their process, many at once or one after the other."""

from __future__ import annotations

import concurrent.futures
import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from benchmarks.system import Watch
from designate_pool.central.service import Central
from designate_pool.model import Context, Domain, PageRequest, RecordSet, Status

T = TypeVar('T')
R = TypeVar('R')

CLIENT = Context(request_id='benchmark', all_projects=True)
CHANGED = 'host'
#: Between two single changes, so that they do not keep step with anything that happens at intervals.
_PAUSE = 0.02


class Load:
    """The clients of Central.

    :param clients: how many requests are under way at once
    :param records: of a domain, each in a recordset of its own; with 0 it has its SOA and NS alone, and a change adds a
        recordset in place of changing one
    :param patience: seconds that one change may take
    """

    def __init__(self, central: Central, clients: int, records: int, patience: float = 30.0) -> None:
        self._central = central
        self._patience = patience
        self._clients = clients
        self.records = records
        self._numbers = itertools.count(1)

    def create(self, names: Sequence[str]) -> list[Domain]:
        return self.each(self._create, names)

    def changes(self, domains: Sequence[Domain]) -> Callable[[], Any]:
        """The change of one record in each of *domains*, ready to be made."""
        changed = self.each(self._changed, domains)
        return lambda: self.each(self._change, changed)

    def change(self, domain: Domain) -> int:
        """Change one record; the domain's new serial."""
        return self._change(self._changed(domain))

    def delete(self, domains: Sequence[Domain]) -> list[Domain]:
        return self.each(lambda domain: self._central.delete_domain(CLIENT, domain.id), domains)

    def create_and_wait(self, watch: Watch, name: str) -> tuple[Domain, float]:
        """A domain, and the milliseconds from just before the request until it was ACTIVE."""
        started = time.monotonic()
        domain = self._create(name)
        return domain, 1000 * (watch.one(domain.id, Status.ACTIVE, domain.serial, self._patience) - started)

    def change_and_wait(self, watch: Watch, domains: Sequence[Domain], count: int) -> list[float]:
        """The milliseconds of each of *count* changes, made in *domains* by turns."""
        changed = self.each(self._changed, domains)
        return [self._timed_change(watch, each) for each in itertools.islice(itertools.cycle(changed), count)]

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """*work* done on each of *items* by all clients; the results in the order of the items."""
        with concurrent.futures.ThreadPoolExecutor(self._clients) as executor:
            return list(executor.map(work, items))

    def _create(self, name: str) -> Domain:
        return self._central.create_domain(CLIENT, {'name': name, 'email': 'hostmaster@example.com'},
                                           list(self.recordsets(name)))

    def recordsets(self, name: str) -> Iterator[dict[str, Any]]:
        if self.records:
            yield {'name': f'{CHANGED}.{name}', 'type': 'TXT', 'records': ['"0"']}
        for number in range(self.records - 1):
            yield {'name': f'host{number}.{name}', 'type': 'A', 'records': [f'192.0.2.{number % 250}']}

    def _changed(self, domain: Domain) -> Domain | RecordSet:
        """The recordset that is changed, or the domain to which one is added."""
        if not self.records:
            return domain
        return self._central.find_recordsets(CLIENT, domain.id, PageRequest({'name': f'{CHANGED}.{domain.name}'}))[0]

    def _change(self, changed: Domain | RecordSet) -> int:
        """Change it; the domain's new serial."""
        number = next(self._numbers)
        if isinstance(changed, Domain):
            recordset = self._central.create_recordset(
                CLIENT, changed.id, {'name': f'{CHANGED}{number}.{changed.name}', 'type': 'TXT', 'records': ['"0"']})
        else:
            recordset = self._central.update_recordset(CLIENT, changed.domain_id, changed.id,
                                                       {'records': [f'"{number}"']})
        return recordset.records[0].serial_number

    def _timed_change(self, watch: Watch, changed: Domain | RecordSet) -> float:
        time.sleep(random.uniform(0, _PAUSE))
        domain_id = changed.id if isinstance(changed, Domain) else changed.domain_id
        started = time.monotonic()
        serial = self._change(changed)
        return 1000 * (watch.one(domain_id, Status.ACTIVE, serial, self._patience) - started)
